//! Figures of an update, an iteration, an evaluation and a whole run.

use serde::{Deserialize, Serialize};

use crate::event::{EvalManifest, F, TokenSignals};
use crate::types::{EpisodeId, Iteration, PolicyVersion, Protocol};

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
    /// Largest ratio.
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
    /// Loss tokens by ratio, one count a bin of `RATIO_BINS`; empty in old logs.
    #[serde(default)]
    pub ratios: Vec<u64>,
    /// Its trajectories one by one; no part of the event: `EventKind::EpisodeLearned` tells of
    /// their replies, files beside the episodes of their tokens.
    #[serde(skip)]
    pub samples: Vec<SampleSignal>,
}

/// What an update made of one trajectory.
#[derive(Clone, Debug, PartialEq)]
pub struct SampleSignal {
    /// The trajectory's episode.
    pub episode: EpisodeId,
    /// Whether it came out of the replay buffer.
    pub replayed: bool,
    /// Its replies in order.
    pub steps: Vec<StepSignal>,
    /// Its sampled tokens in order.
    pub tokens: TokenSignals,
}

/// What an update made of one reply's tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StepSignal {
    /// Tokens.
    pub tokens: u32,
    /// Mean ratio of the weights updated to those before the iteration's first update.
    pub ratio: F,
    /// Largest ratio.
    pub ratio_max: F,
    /// Smallest ratio.
    pub ratio_min: F,
    /// Share of tokens clipped above.
    pub clip_high: F,
    /// Share of tokens clipped below.
    pub clip_low: F,
    /// Mean entropy, nats a token.
    pub entropy: F,
    /// Mean log-probability under the weights updated, nats a token.
    pub logprob: F,
    /// Mean |log-probability under the weights updated - sampler's|, nats a token.
    pub gap: F,
}

/// Bins of a histogram of ratios: equal steps of the ratio's logarithm between
/// `RATIO_LOG_BOUND` below and above 0, and one bin on either side for what lies beyond.
pub const RATIO_BINS: usize = 26;
/// Logarithm of the ratio where the outermost bins begin: ratios of 0.55 and 1.82.
pub const RATIO_LOG_BOUND: f64 = 0.6;

/// Width of a bin, nats.
pub const fn ratio_bin_width() -> f64 {
    2.0 * RATIO_LOG_BOUND / (RATIO_BINS - 2) as f64
}

/// Ratio at the lower edge of a bin; 0 for the first one.
pub fn ratio_bin_edge(bin: usize) -> f64 {
    match bin {
        0 => 0.0,
        bin => ((bin - 1) as f64 * ratio_bin_width() - RATIO_LOG_BOUND).exp(),
    }
}

/// What an old log does not say.
fn unknown() -> F {
    F(f64::NAN)
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
    /// Mean share clipped above.
    #[serde(default = "unknown")]
    pub clip_high: F,
    /// Mean share clipped below.
    #[serde(default = "unknown")]
    pub clip_low: F,
    /// Loss tokens by ratio over the iteration's updates; empty in old logs.
    #[serde(default)]
    pub ratios: Vec<u64>,
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

impl IterationReport {
    /// What the same seed gives again: everything but wall time.
    #[must_use]
    pub fn without_times(mut self) -> Self {
        self.tokens_per_s = F(0.0);
        (self.collect_ms, self.train_ms, self.wall_ms) = (0, 0, 0);
        self
    }
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
