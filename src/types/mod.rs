//! The nouns of the product: plain data with serde, no IO, no async.
//!
//! One meaning each; the vocabulary is in CONTRIBUTING.md.

mod action;
mod episode;
mod machine;
mod machine_log;
pub mod osworld;
mod protocol;
mod reward;
mod screenshot;
mod task;
mod tokens;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use action::{Action, Point, ReplyFormat, ScrollDirection};
pub use episode::{BranchOrigin, Episode, EpisodeEnd, ErrorClass, FailedEpisode, Step, StepTiming};
pub use machine::{LayerStatus, MachineHealth, MachinePhase, MachineStatus};
pub use machine_log::{LogPlace, MachineLog};
pub use protocol::Protocol;
pub use reward::Reward;
pub use screenshot::{ImageHash, ScreenSize, Screenshot};
pub use task::{EvaluatorSpec, OneOrMany, SetupStep, Task, tasks_hash};
pub use tokens::TokenStream;

/// A task's own identifier, as the data set spells it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TaskId(pub String);

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Number of optimizer updates behind the weights. Version 0 is the base checkpoint.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct PolicyVersion(pub u64);

/// One collect-and-train cycle, counted from 0.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Iteration(pub u64);

/// One group of one iteration: the episodes of one task sampled together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct GroupId {
    /// The iteration it was collected in.
    pub iteration: Iteration,
    /// Its place in the iteration, from 0.
    pub index: u32,
}

/// One episode. The incarnation counts the starts of the run's engine, so that a resumed
/// run's episodes are never mistaken for those it replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct EpisodeId {
    /// Which start of the engine wrote it, from 0.
    pub incarnation: u32,
    /// Count within the run, from 0, without gaps.
    pub number: u64,
}

impl fmt::Display for EpisodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{:06}", self.incarnation, self.number)
    }
}

impl std::str::FromStr for EpisodeId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts = text.split_once('-').and_then(|(incarnation, number)| {
            Some(Self {
                incarnation: incarnation.parse().ok()?,
                number: number.parse().ok()?,
            })
        });
        parts.ok_or_else(|| format!("an episode is written as in 0-000012, not {text:?}"))
    }
}

/// Derives the seed of one purpose from a parent seed: a hash, so neighbours are unrelated.
/// `path` names what it is for, for instance `&[SEED_EPISODE, iteration, group, sample]`.
pub fn derive_seed(parent: u64, path: &[u64]) -> u64 {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&parent.to_le_bytes());
    for part in path {
        hasher.update(&part.to_le_bytes());
    }
    let mut bytes = [0_u8; 8];
    bytes.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    u64::from_le_bytes(bytes)
}
