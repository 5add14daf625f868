//! What a run has done so far, beside weights and replay buffer: a checkpoint's third part.

use serde::{Deserialize, Serialize};

use crate::event::IterationReport;
use crate::session::Settings;

/// Counters that a resumed run goes on from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Iterations done.
    pub iterations_done: u64,
    /// Number of the next episode.
    pub next_episode: u64,
    /// The run's clock, ms.
    pub clock_ms: u64,
    /// Settings in force.
    pub settings: Settings,
    /// Reports of all iterations, for the closing figures.
    pub reports: Vec<IterationReport>,
    /// Success on held-out instances before training.
    pub heldout_first: Option<f64>,
}

impl Progress {
    /// Nothing done yet.
    pub fn start(settings: Settings) -> Self {
        Self {
            iterations_done: 0,
            next_episode: 0,
            clock_ms: 0,
            settings,
            reports: Vec::new(),
            heldout_first: None,
        }
    }
}
