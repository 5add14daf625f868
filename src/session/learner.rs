//! The seam to whoever learns.

use std::path::Path;

use async_trait::async_trait;

use crate::event::UpdateReport;
use crate::grpo::TrainSample;
use crate::types::PolicyVersion;

/// What recomputing the log-probabilities before the first update showed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OldLogprobReport {
    /// Mean over sampled tokens, replayed trajectories left out, of |old - sampler's|.
    pub gap_mean: f64,
    /// Largest such gap.
    pub gap_max: f64,
}

/// What can go wrong while learning.
#[derive(Debug, thiserror::Error)]
pub enum LearnerError {
    /// The device or the network failed.
    #[error("training failed: {0}")]
    Failed(String),
    /// A checkpoint cannot be read or written.
    #[error("checkpoint {path}: {reason}")]
    Checkpoint {
        /// Its folder.
        path: String,
        /// What is wrong, and what to do.
        reason: String,
    },
}

/// What one update uses of the settings that an operator may change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UpdateSettings {
    /// The rate.
    pub learning_rate: f64,
    /// Ratios are clipped to `1 - clip_low`,
    pub clip_low: f64,
    /// and `1 + clip_high`.
    pub clip_high: f64,
}

/// Whoever turns trajectories into better weights, phase by phase.
#[async_trait]
pub trait Learner: Send {
    /// Takes the iteration's trajectories, sampled at `temperature`, and recomputes their
    /// log-probabilities under the weights as they are.
    async fn begin(
        &mut self,
        samples: Vec<TrainSample>,
        temperature: f64,
    ) -> Result<OldLogprobReport, LearnerError>;
    /// One optimizer update over the trajectories at `indices` of `begin`'s.
    async fn update(
        &mut self,
        indices: &[usize],
        settings: UpdateSettings,
    ) -> Result<UpdateReport, LearnerError>;
    /// Makes the trained weights those that the policy uses.
    async fn publish(&mut self) -> Result<PolicyVersion, LearnerError>;
    /// Writes weights, optimizer and counters into a folder and returns a hash of the weights.
    async fn save(&mut self, dir: &Path) -> Result<String, LearnerError>;
    /// Reads them back and publishes.
    async fn load(&mut self, dir: &Path) -> Result<PolicyVersion, LearnerError>;
}
