//! What an episode earned.

use serde::{Deserialize, Serialize};

/// Reward of one episode, its parts apart.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reward {
    /// The evaluator's score in [0, 1], under the protocol the run trains on.
    pub outcome: f32,
    /// 0, or -1 where a reply did not parse.
    pub format: f32,
}

impl Reward {
    /// `outcome + weight * format`.
    ///
    /// Source: ARPO@7489ae3 `ray_trainer.py` `fit` with weight 0.5; the paper has 1.0.
    pub fn total(self, format_weight: f32) -> f32 {
        self.outcome + format_weight * self.format
    }
}
