//! Reads the end state and scores it.
