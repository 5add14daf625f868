//! `[reward]`, `[grpo]`, `[replay]` and `[optimizer]`: what an episode earns and what is
//! learned from it.

use serde::{Deserialize, Serialize};

use crate::config::Protocol;

/// `[reward]`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RewardConfig {
    /// Which protocol's outcome is trained on.
    pub protocol: Protocol,
    /// Weight of the format reward (-1 for a reply that does not parse).
    pub format_weight: f64,
    /// Where the format reward counts.
    pub format_scope: FormatScope,
}

/// Where the format reward counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FormatScope {
    /// Everywhere.
    Always,
    /// Only in groups whose outcomes differ, so that failing members are not reinforced for
    /// being well-formed.
    Signal,
}

/// `[grpo]`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GrpoConfig {
    /// Groups collected an iteration.
    pub tasks_per_iteration: usize,
    /// Episodes a group.
    pub group_size: usize,
    /// Added to a group's standard deviation.
    pub advantage_eps: f64,
    /// The ratio's lower clip: 1 - `clip_low`.
    pub clip_low: f64,
    /// The ratio's upper clip: 1 + `clip_high`.
    pub clip_high: f64,
    /// Bound of the loss at negative advantages, in advantages.
    pub clip_dual: f64,
    /// Updates an epoch.
    pub minibatches: usize,
    /// Passes over an iteration's trajectories.
    pub epochs: usize,
    /// What the loss is divided by.
    pub denominator: Denominator,
    /// Whether episodes that a person touched in the debugger are members of their group.
    pub train_on_human_touched: bool,
}

/// What the loss is divided by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Denominator {
    /// All valid trajectories of the update, those without advantage too.
    Dispatched,
    /// Trajectories with an advantage.
    Signal,
    /// Tokens with an advantage, whatever trajectory they belong to.
    TokenMean,
}

/// `[replay]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplayConfig {
    /// Whether failing groups get a stored success, and successes are stored.
    pub enabled: bool,
    /// Successes kept a task, first in first out.
    pub capacity: usize,
    /// A group fails if the population standard deviation of its outcomes is below this, and
    pub std_below: f64,
    /// if their mean is below this.
    pub mean_below: f64,
    /// An episode is stored if its outcome is above this and it is well-formed.
    pub insert_above: f64,
    /// Which member a stored success replaces.
    pub replaced: ReplacedMember,
    /// Successes older than this many iterations are not drawn; 0 is no limit.
    pub max_age_iterations: u64,
    /// What the ratio of a replayed token starts from.
    pub old_logprobs: OldLogprobs,
    /// A file of successes the buffer starts with; empty for an empty buffer.
    pub prefill: String,
}

/// Which member a stored success replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplacedMember {
    /// A uniformly drawn valid one.
    Random,
    /// The first valid one.
    First,
}

/// What the ratio of a replayed token starts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OldLogprobs {
    /// The current weights' log-probability, so that the ratio starts at 1.
    Recomputed,
    /// The log-probability at sampling, with a truncated weight.
    Behaviour,
}

/// `[optimizer]`: AdamW.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OptimizerConfig {
    /// Learning rate after warm-up.
    pub lr: f64,
    /// Decay of the first and the second moment.
    pub betas: (f64, f64),
    /// Added to the root of the second moment.
    pub eps: f64,
    /// Decoupled weight decay.
    pub weight_decay: f64,
    /// Global norm gradients are scaled down to.
    pub grad_clip_norm: f64,
    /// Updates over which the rate rises: `(update + 1) / warmup_updates`.
    pub warmup_updates: u64,
    /// Whether the vision tower keeps its weights, and its features are cached.
    pub freeze_vision: bool,
}
