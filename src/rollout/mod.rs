//! Running a policy in an environment until it ends.
