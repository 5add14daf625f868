//! Protocols: who counts as successful, by how an episode ended.

use serde::{Deserialize, Serialize};

use crate::types::EpisodeEnd;

/// Who counts as successful, by how an episode ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// A step limit counts as declaring the task infeasible.
    #[default]
    Standard,
    /// A step limit scores nothing.
    Hard,
    /// A step limit is scored by the state.
    Plain,
}

impl Protocol {
    /// All three, in the order of reports.
    pub const ALL: [Protocol; 3] = [Protocol::Standard, Protocol::Hard, Protocol::Plain];

    /// Its name, as it is typed.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Standard => "standard",
            Protocol::Hard => "hard",
            Protocol::Plain => "plain",
        }
    }

    /// The protocol of this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }

    /// Outcome of an episode in [0, 1]. `state_score` is the evaluator's and is not looked at
    /// where the task is infeasible.
    pub fn outcome(self, end: EpisodeEnd, infeasible: bool, state_score: f32) -> f32 {
        match (end, infeasible) {
            (EpisodeEnd::Finished | EpisodeEnd::Malformed | EpisodeEnd::ContextFull, false) => {
                state_score
            }
            (EpisodeEnd::Finished | EpisodeEnd::Malformed | EpisodeEnd::ContextFull, true)
            | (EpisodeEnd::DeclaredInfeasible, false) => 0.0,
            (EpisodeEnd::DeclaredInfeasible, true) => 1.0,
            (EpisodeEnd::StepLimit, false) => match self {
                Protocol::Standard | Protocol::Hard => 0.0,
                Protocol::Plain => state_score,
            },
            (EpisodeEnd::StepLimit, true) => match self {
                Protocol::Standard => 1.0,
                Protocol::Hard | Protocol::Plain => 0.0,
            },
        }
    }
}
