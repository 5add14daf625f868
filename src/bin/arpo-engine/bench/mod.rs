//! Figures of the embedded engine beside those of a peer doing the same work.

pub mod decode;
