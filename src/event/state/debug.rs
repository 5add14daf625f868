//! Who is held, since when and why.

use serde::{Deserialize, Serialize};

use crate::event::{
    BranchReplayed, Candidate, CandidatesProposed, EpisodeBranched, EpisodeHeld, EpisodeReleased,
    HoldReason, RunState,
};
use crate::types::BranchOrigin;

/// An episode that stands before an action.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HeldState {
    /// The step, from 0.
    pub step: u32,
    /// `at_ms` since when.
    pub since_ms: u64,
    /// Why.
    pub reason: HoldReason,
    /// The task's instruction, shortened.
    pub instruction: String,
    /// What it would do.
    pub candidate: Candidate,
    /// Other replies to choose from.
    pub others: Vec<Candidate>,
}

/// What the debugger did to an episode.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EpisodeDebug {
    /// Whether a person touched it.
    pub human_touched: bool,
    /// The recorded episode it begins with: it is counterfactual.
    pub branched_from: Option<BranchOrigin>,
    /// The first replayed step whose screen was not the recorded one.
    pub differs_at: Option<u32>,
}

impl RunState {
    pub(super) fn episode_held(&mut self, held: &EpisodeHeld, at_ms: u64) {
        let state = HeldState {
            step: held.step,
            since_ms: at_ms,
            reason: held.reason.clone(),
            instruction: held.instruction.clone(),
            candidate: held.candidate.clone(),
            others: Vec::new(),
        };
        self.held.insert(held.episode, state);
    }

    pub(super) fn candidates_proposed(&mut self, proposed: &CandidatesProposed) {
        if let Some(held) = self.held.get_mut(&proposed.episode) {
            held.others.clone_from(&proposed.candidates);
        }
    }

    pub(super) fn episode_released(&mut self, released: &EpisodeReleased) {
        self.held.remove(&released.episode);
        if let Some(episode) = self.episodes.get_mut(&released.episode) {
            episode.debug.human_touched |= released.human_touched;
        }
    }

    pub(super) fn episode_branched(&mut self, branched: &EpisodeBranched) {
        if let Some(episode) = self.episodes.get_mut(&branched.episode) {
            episode.debug.branched_from = Some(branched.from.clone());
        }
    }

    pub(super) fn branch_replayed(&mut self, replayed: &BranchReplayed) {
        if let Some(episode) = self.episodes.get_mut(&replayed.episode) {
            episode.debug.differs_at = replayed.differs_at;
        }
    }
}
