//! The algorithm without tensors: advantages, replay, and what a trajectory weighs in the loss.
//!
//! Reads like the paper; time, disk and devices are not known here.
//! Source: ARPO@7489ae3 `verl/trainer/{core_algos,ray_trainer,replay_buffer}.py`.

mod advantage;
mod loss;
mod replay;
mod sample;

#[cfg(test)]
mod tests;

pub use advantage::{advantages, group_rewards, group_std};
pub use loss::{LossParams, TokenLoss, token_loss};
pub use replay::{Injection, Replay, Stored};
pub use sample::{TrainSample, minibatches, weights};
