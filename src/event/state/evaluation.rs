//! What is known of each evaluation, and how its events fold.

use serde::{Deserialize, Serialize};

use crate::event::{EvalManifest, EvalReport, EvalRequest, EventKind, RunState, TrialRow};

use super::EVALUATIONS_KEPT;

/// Evaluations whose trials are kept one by one.
pub(crate) const TRIALS_OF_EVALUATIONS_KEPT: usize = 16;
/// Trials kept of one evaluation; three of each of OSWorld's tasks fit.
pub(crate) const TRIALS_KEPT: usize = 2048;

/// Where an evaluation stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "status")]
pub enum EvaluationStatus {
    /// Asked for; its desktops are not free yet.
    #[default]
    Waiting,
    /// Under way.
    Running,
    /// Given up; what it has is kept.
    Cancelled {
        /// Why.
        reason: String,
    },
    /// All trials are in.
    Finished,
}

/// One evaluation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EvaluationState {
    /// Its number in the run; absent in older logs.
    pub number: Option<u32>,
    /// What for: `heldout_first`, `heldout_last`, `eval`, or `operator`.
    pub name: String,
    /// The command that asked for it.
    pub command: Option<u64>,
    /// What was asked for.
    pub request: Option<EvalRequest>,
    /// Under which conditions; known once it began.
    pub manifest: Option<EvalManifest>,
    /// Where it stands.
    pub status: EvaluationStatus,
    /// Trials done, those given up over errors included.
    pub done: u32,
    /// Trials in all; 0 while it waits.
    pub total: u32,
    /// `at_ms` of its newest change of status.
    pub since_ms: u64,
    /// Its scores, once finished.
    pub report: Option<EvalReport>,
    /// Its trials as they came; of older evaluations none are kept, of long ones the first.
    pub trials: Vec<TrialRow>,
}

impl EvaluationState {
    /// Whether it waits or runs.
    pub fn is_open(&self) -> bool {
        matches!(
            self.status,
            EvaluationStatus::Waiting | EvaluationStatus::Running
        )
    }

    /// Whether every trial done is among `trials`, so that figures over them are whole.
    pub fn has_all_trials(&self) -> bool {
        self.trials.len() == self.done as usize && self.done > 0
    }
}

impl RunState {
    /// The evaluation of this number.
    pub fn evaluation(&self, number: u32) -> Option<&EvaluationState> {
        let mut found = self.evaluations.iter().rev();
        found.find(|evaluation| evaluation.number == Some(number))
    }

    pub(super) fn evaluation_event(&mut self, kind: &EventKind, at_ms: u64) {
        match kind {
            EventKind::EvaluationQueued {
                evaluation,
                command,
                request,
            } => {
                let state = self.evaluation_mut(*evaluation);
                state.command = Some(*command);
                // The request that resumes has little of its own to say.
                if request.resume.is_none() || state.request.is_none() {
                    state.request = Some(request.clone());
                }
                state.change(EvaluationStatus::Waiting, at_ms);
            }
            EventKind::EvaluationStarted {
                evaluation,
                name,
                request,
                manifest,
                total,
            } => {
                let state = self.evaluation_mut(*evaluation);
                state.name.clone_from(name);
                state.request = Some(request.clone());
                state.manifest = Some((**manifest).clone());
                state.total = *total;
                // Those it has already are told again.
                state.trials.clear();
                state.done = 0;
                state.change(EvaluationStatus::Running, at_ms);
            }
            EventKind::TrialFinished { evaluation, trial } => {
                let state = self.evaluation_mut(*evaluation);
                state.done += 1;
                if state.trials.len() < TRIALS_KEPT {
                    state.trials.push(trial.clone());
                }
            }
            EventKind::EvaluationCancelled {
                evaluation,
                done,
                reason,
            } => {
                let state = self.evaluation_mut(*evaluation);
                state.done = *done;
                let reason = reason.clone();
                state.change(EvaluationStatus::Cancelled { reason }, at_ms);
            }
            EventKind::EvalFinished(report) => self.evaluation_finished(report, at_ms),
            _ => {}
        }
    }

    fn evaluation_finished(&mut self, report: &EvalReport, at_ms: u64) {
        let state = match report.evaluation {
            Some(number) => self.evaluation_mut(number),
            None => self.new_evaluation(None),
        };
        state.name.clone_from(&report.name);
        if let Some(manifest) = &report.manifest {
            state.manifest = Some((**manifest).clone());
        }
        state.report = Some(report.clone());
        state.change(EvaluationStatus::Finished, at_ms);
    }

    /// The engine is new: what waited or ran in the old one does so no longer.
    pub(super) fn interrupt_evaluations(&mut self, at_ms: u64) {
        for evaluation in self.evaluations.iter_mut().filter(|one| one.is_open()) {
            let reason = "the engine ended before it was done".to_owned();
            evaluation.change(EvaluationStatus::Cancelled { reason }, at_ms);
        }
    }

    /// The evaluation of this number, made if it is not known.
    fn evaluation_mut(&mut self, number: u32) -> &mut EvaluationState {
        let known = self
            .evaluations
            .iter()
            .position(|one| one.number == Some(number));
        match known {
            Some(index) => &mut self.evaluations[index],
            None => self.new_evaluation(Some(number)),
        }
    }

    fn new_evaluation(&mut self, number: Option<u32>) -> &mut EvaluationState {
        while self.evaluations.len() >= EVALUATIONS_KEPT {
            self.evaluations.pop_front();
        }
        let older = self
            .evaluations
            .len()
            .saturating_sub(TRIALS_OF_EVALUATIONS_KEPT - 1);
        for evaluation in self.evaluations.iter_mut().take(older) {
            evaluation.trials = Vec::new();
        }
        self.evaluations.push_back(EvaluationState {
            number,
            ..EvaluationState::default()
        });
        let last = self.evaluations.len() - 1;
        &mut self.evaluations[last]
    }
}

impl EvaluationState {
    fn change(&mut self, status: EvaluationStatus, at_ms: u64) {
        if self.status != status {
            self.since_ms = at_ms;
        }
        self.status = status;
    }
}
