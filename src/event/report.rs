//! Figures of an update, an iteration, an evaluation and a whole run.

use serde::{Deserialize, Serialize};

use crate::event::{EvalManifest, F};
use crate::types::{Iteration, PolicyVersion, Protocol};

/// One optimizer update.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UpdateReport {
    /// Of which iteration.
    pub iteration: Iteration,
    /// Its number within the iteration, from 0.
    pub update: u32,
    /// The weights it made.
    pub policy: PolicyVersion,
    /// Policy loss.
    pub loss: F,
    /// Gradient norm before clipping.
    pub grad_norm: F,
    /// Share of tokens whose ratio was above the upper clip with positive advantage.
    pub clip_high: F,
    /// Share of tokens whose ratio was below the lower clip with negative advantage.
    pub clip_low: F,
    /// Mean of `ratio - 1 - ln ratio` over tokens.
    pub approx_kl: F,
    /// Mean entropy of the policy at the sampled positions, nats a token.
    pub entropy: F,
    /// Largest and smallest ratio.
    pub ratio_max: F,
    /// Smallest ratio.
    pub ratio_min: F,
    /// Learning rate used.
    pub learning_rate: F,
    /// Trajectories in it.
    pub trajectories: u32,
    /// Loss tokens in it.
    pub tokens: u32,
    /// True if the norm was not finite and the weights were left as they were.
    pub skipped: bool,
}

/// One iteration. Outcomes are raw: replayed members are not counted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IterationReport {
    /// Which.
    pub iteration: Iteration,
    /// The weights after it.
    pub policy: PolicyVersion,
    /// Mean outcome of the valid episodes.
    pub reward_mean: F,
    /// Mean over groups of the sample standard deviation of outcomes, before replay.
    pub group_std: F,
    /// The same after replay.
    pub group_std_after: F,
    /// Groups whose members all failed, before replay.
    pub groups_all_fail: u32,
    /// Groups whose members all succeeded.
    pub groups_all_pass: u32,
    /// Groups without variance after replay: no gradient.
    pub groups_zero_variance: u32,
    /// Groups collected.
    pub groups: u32,
    /// Members replaced by stored successes.
    pub replaced: u32,
    /// Successes in the replay buffer.
    pub stored: u32,
    /// Valid episodes.
    pub episodes: u32,
    /// Episodes ended by an error.
    pub env_errors: u32,
    /// Episodes that ended in a reply that did not parse.
    pub malformed: u32,
    /// Mean steps of an episode.
    pub steps_mean: F,
    /// Mean sampled tokens of a reply.
    pub reply_tokens_mean: F,
    /// Longest trajectory, tokens.
    pub tokens_max: u32,
    /// Mean over sampled tokens of |trainer's old log-prob - sampler's|.
    pub logprob_gap: F,
    /// Largest such gap.
    pub logprob_gap_max: F,
    /// Mean entropy, nats a token, over the iteration's updates.
    pub entropy: F,
    /// Mean clipped share, high and low together.
    pub clip_fraction: F,
    /// Mean gradient norm.
    pub grad_norm: F,
    /// Mean policy loss.
    pub loss: F,
    /// Mean approximate KL.
    pub approx_kl: F,
    /// Learning rate of its updates.
    pub learning_rate: F,
    /// Sampling temperature of its rollouts.
    pub temperature: F,
    /// Tokens sampled a second of wall time during collection.
    pub tokens_per_s: F,
    /// Collection, ms of wall time.
    pub collect_ms: u64,
    /// Training, ms of wall time.
    pub train_ms: u64,
    /// All of it, ms of wall time.
    pub wall_ms: u64,
    /// Collection by the run's clock, ms; equals `collect_ms` where time is real.
    pub clock_ms: u64,
}

/// Outcomes of a set of episodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// Mean outcome, a fraction.
    pub score: f64,
    /// Share of scored episodes with an outcome above 0.5.
    pub success: f64,
    /// Scored episodes.
    pub n: u64,
    /// 95 % Wilson interval of `success`.
    pub interval: (f64, f64),
    /// Episodes that an error ended: in none of the above.
    #[serde(default)]
    pub errors: u64,
    /// What `score` would be if all of those had outcome 0, or all 1.
    #[serde(default)]
    pub score_bounds: (f64, f64),
    /// What `success` would be then.
    #[serde(default)]
    pub success_bounds: (f64, f64),
}

/// One protocol's scores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProtocolScore {
    /// All tasks.
    #[serde(flatten)]
    pub all: Score,
    /// Feasible tasks.
    pub feasible: Score,
    /// Infeasible tasks.
    pub infeasible: Score,
}

/// One evaluation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EvalReport {
    /// What for: `heldout_first`, `heldout_last`, or an operator's name.
    pub name: String,
    /// Name of the task set.
    pub tasks: String,
    /// Weights evaluated.
    pub policy: PolicyVersion,
    /// Temperature.
    pub temperature: F,
    /// Scores by protocol.
    pub standard: ProtocolScore,
    /// Scores by protocol.
    pub hard: ProtocolScore,
    /// Scores by protocol.
    pub plain: ProtocolScore,
    /// Episodes without a score.
    pub errors: u64,
    /// Wall time, ms.
    pub wall_ms: u64,
    /// Its number in the run; absent in older logs.
    #[serde(default)]
    pub evaluation: Option<u32>,
    /// Under which conditions; absent in older logs.
    #[serde(default)]
    pub manifest: Option<Box<EvalManifest>>,
}

impl EvalReport {
    /// Scores under one protocol.
    pub fn under(&self, protocol: Protocol) -> &ProtocolScore {
        match protocol {
            Protocol::Standard => &self.standard,
            Protocol::Hard => &self.hard,
            Protocol::Plain => &self.plain,
        }
    }
}

/// The closing figures of a run; the JSON of `arpo train --json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunSummary {
    /// `finished`, `stopped` or `failed`.
    pub status: String,
    /// Why it failed.
    pub error: Option<String>,
    /// Iterations done.
    pub iterations: u64,
    /// Mean raw outcome over the first 10 % of iterations, replayed samples not counted.
    pub reward_first: F,
    /// The same over the last 10 %.
    pub reward_last: F,
    /// Group standard deviation over the first 10 %.
    pub group_std_first: F,
    /// The same over the last 10 %.
    pub group_std_last: F,
    /// Success on held-out instances before training; absent if not measured.
    pub heldout_first: Option<f64>,
    /// The same after.
    pub heldout_last: Option<f64>,
    /// Valid training episodes.
    pub episodes: u64,
    /// Episodes ended by errors.
    pub env_errors: u64,
    /// Groups without gradient.
    pub zero_variance_groups: u64,
    /// Members replaced by stored successes.
    pub replaced: u64,
    /// Optimizer updates behind the weights.
    pub policy_version: PolicyVersion,
    /// Wall time of all iterations, s; evaluations before and after left out.
    pub wall_s: F,
    /// Hash of the final weights.
    pub weights: String,
}
