//! The simulated desktop.
