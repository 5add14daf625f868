//! The wiring of a run with the embedded policy and learner.

pub mod device;
pub mod evaluate;
pub mod gpu_check;
pub mod train;

#[cfg(test)]
mod full_size_tests;
#[cfg(test)]
mod tests;
