//! Profiles: TOML to checked structs.
//!
//! `Profile` mirrors `profiles/base.toml`, which is complete: no struct has a default, so a
//! knob without a documented value cannot exist. `source` and `resolved` merge base, overlays
//! and `--set` and remember where each value came from; `plan` holds every check of ranges and
//! of keys against each other. Numbers that are not whole are `f64`, durations seconds (`_s`).
//!
//! Modules receive their own section (`GrpoConfig`), never the whole `Profile`.

mod agent;
pub mod assets;
mod desktops;
mod engine;
mod error;
mod fleet;
mod learning;
mod machines;
pub mod plan;
mod pretrain;
mod resolved;
pub mod simulated;
mod source;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

pub use agent::{PolicyConfig, PolicyKind, PromptStyle, SamplingConfig};
pub use desktops::{
    Accelerator, Confinement, EnvConfig, EnvKind, EvalConfig, Evaluators, Network, QemuConfig,
    RolloutConfig, Schedule, TasksConfig, XvfbConfig,
};
pub use engine::{CostTable, DeviceChoice, EngineConfig};
pub use error::ConfigError;
pub use fleet::{AdmissionMode, FleetConfig};
pub use learning::{
    Denominator, FormatScope, GrpoConfig, OldLogprobs, OptimizerConfig, ReplacedMember,
    ReplayConfig, RewardConfig,
};
pub use machines::{AttachedConfig, DockerConfig, Kvm};
pub use pretrain::{PretrainConfig, PretrainModelConfig, PretrainVisionConfig};
pub use resolved::Resolved;
pub use source::{Leaf, Origin};

pub use crate::types::Protocol;

/// A whole profile. Section and key names are those of the TOML, in the same order; what a key
/// means in full is written in `profiles/base.toml`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// The run as a whole.
    pub run: RunConfig,
    /// Who answers.
    pub policy: PolicyConfig,
    /// How replies are sampled while training data is collected.
    pub sampling: SamplingConfig,
    /// Embedded inference.
    pub engine: EngineConfig,
    /// What episodes run on.
    pub env: EnvConfig,
    /// What is asked.
    pub tasks: TasksConfig,
    /// How episodes are run.
    pub rollout: RolloutConfig,
    /// What an episode earns.
    pub reward: RewardConfig,
    /// Groups and the loss.
    pub grpo: GrpoConfig,
    /// The replay buffer of successes.
    pub replay: ReplayConfig,
    /// How weights move.
    pub optimizer: OptimizerConfig,
    /// How policies are measured.
    pub eval: EvalConfig,
    /// How a base agent is made.
    pub pretrain: PretrainConfig,
    /// The developer's log.
    pub log: LogConfig,
}

/// `[run]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunConfig {
    /// Everything random descends from it.
    pub seed: u64,
    /// Iterations to do.
    pub iterations: u64,
    /// Folder that gets a folder per run.
    pub dir: String,
    /// A checkpoint after every so many iterations.
    pub checkpoint_every_iterations: u64,
    /// Newest checkpoints kept.
    pub keep_checkpoints: usize,
}

/// `[log]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogConfig {
    /// Filter in tracing's syntax: `info`, `arpo=debug,warn`.
    pub level: String,
}
