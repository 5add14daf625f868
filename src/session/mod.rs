//! Wires and serves a run.
