//! The wiring of a run with the embedded policy and learner.

pub mod device;
pub mod evaluate;
pub mod train;
