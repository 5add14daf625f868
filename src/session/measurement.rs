//! One evaluation under way: takes its trials as they come, to disk and to the log, until all
//! are in or it is given up.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::bus::{CommandRequest, EventSink};
use crate::event::{
    EvalManifest, EvalReport, EvalRequest, EventKind, NoticeLevel, Phase, TrialRow,
};
use crate::policy::{PinnedWeights, Policy};
use crate::rollout::{Fleet, Gate, Job, Lease, Outcome, TrialOf};
use crate::session::evaluate::EvaluationSpec;
use crate::store::{EvaluationRecord, RunDir};
use crate::types::ErrorClass;

/// What an evaluation works with.
#[derive(Clone)]
pub(super) struct Place {
    pub(super) run: Arc<RunDir>,
    pub(super) sink: EventSink,
    pub(super) policy: Arc<dyn Policy>,
    pub(super) fleet: Fleet,
    pub(super) lease: Lease,
    pub(super) gate: Gate,
}

/// What an evaluation is.
pub(super) struct Subject {
    pub(super) number: u32,
    pub(super) spec: EvaluationSpec,
    pub(super) request: EvalRequest,
    pub(super) manifest: EvalManifest,
    pub(super) weights: PinnedWeights,
    /// Trials it has already.
    pub(super) kept: Vec<TrialRow>,
    /// Whoever asked for it.
    pub(super) asked: Option<CommandRequest>,
}

/// An evaluation under way.
pub(super) struct Measurement {
    place: Place,
    number: u32,
    spec: EvaluationSpec,
    request: EvalRequest,
    manifest: EvalManifest,
    weights: PinnedWeights,
    started: Instant,
    state: Mutex<State>,
    /// Called once it is over.
    over: Box<dyn Fn() + Send + Sync>,
}

struct State {
    rows: Vec<Option<TrialRow>>,
    /// Whether it is told of as a phase of the run.
    is_phase: bool,
    asked: Option<CommandRequest>,
    /// Why it is being given up, and who waits for that.
    cancelled: Option<(String, Vec<CommandRequest>)>,
    ending: Option<End>,
}

/// How an evaluation ended.
#[derive(Clone, Debug)]
pub(super) enum End {
    Finished(Box<EvalReport>),
    Cancelled,
}

impl Measurement {
    /// Tells of the evaluation's beginning and of the trials it has already.
    pub(super) fn begin(
        place: Place,
        subject: Subject,
        over: impl Fn() + Send + Sync + 'static,
    ) -> Arc<Self> {
        let total = subject.spec.total();
        let mut rows = vec![None; total as usize];
        for row in subject.kept {
            if let Some(index) = subject.spec.index_of(&row) {
                rows[index] = Some(row);
            }
        }
        place.sink.emit(EventKind::EvaluationStarted {
            evaluation: subject.number,
            name: subject.spec.name.clone(),
            request: subject.request.clone(),
            manifest: Box::new(subject.manifest.clone()),
            total,
        });
        for trial in rows.iter().flatten().cloned() {
            let evaluation = subject.number;
            place
                .sink
                .emit(EventKind::TrialFinished { evaluation, trial });
        }
        let new = Self {
            place,
            number: subject.number,
            spec: subject.spec,
            request: subject.request,
            manifest: subject.manifest,
            weights: subject.weights,
            started: Instant::now(),
            state: Mutex::new(State {
                rows,
                is_phase: false,
                asked: subject.asked,
                cancelled: None,
                ending: None,
            }),
            over: Box::new(over),
        };
        new.store(&new.lock());
        Arc::new(new)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn number(&self) -> u32 {
        self.number
    }

    /// Its trials in all.
    pub(super) fn total(&self) -> u32 {
        self.spec.total()
    }

    /// How it ended, if it has.
    pub(super) fn ending(&self) -> Option<End> {
        self.lock().ending.clone()
    }

    /// Its trials so far, in order.
    pub(super) fn rows(&self) -> Vec<TrialRow> {
        self.lock().rows.iter().flatten().cloned().collect()
    }

    /// Whether its progress is told as a phase of the run.
    pub(super) fn set_phase(&self, is_phase: bool) {
        self.lock().is_phase = is_phase;
    }

    /// Episodes still to run, with their indices.
    fn jobs(&self) -> Vec<(usize, Job)> {
        let jobs = self.spec.jobs(TrialOf {
            evaluation: self.number,
            temperature: self.spec.temperature,
            weights: Some(self.weights.id),
        });
        let state = self.lock();
        let all = jobs.into_iter().enumerate();
        all.filter(|(index, _)| state.rows[*index].is_none())
            .collect()
    }

    /// Lets up to `desktops` desktops run its trials whenever a collection runs.
    pub(super) fn lease(self: &Arc<Self>, desktops: u32) {
        let own = Arc::clone(self);
        let settle = move |index, outcome: Outcome| own.settle(index, &outcome);
        self.place
            .lease
            .grant(desktops, self.jobs(), Arc::new(settle));
        self.place.fleet.nudge();
        // It may have been complete when it was gone on with.
        self.end_if_over(self.lock());
    }

    /// Takes what came of a trial.
    fn settle(&self, index: usize, outcome: &Outcome) {
        let mut state = self.lock();
        let ended_with_it = match outcome {
            Outcome::Failed(failed) if failed.class == ErrorClass::Cancelled => {
                state.cancelled.is_some() || self.place.gate.is_shut()
            }
            _ => false,
        };
        if !ended_with_it {
            self.keep(outcome);
            let trial = self.spec.row(index, outcome);
            state.rows[index] = Some(trial.clone());
            self.place.sink.emit(EventKind::TrialFinished {
                evaluation: self.number,
                trial,
            });
            self.store(&state);
            self.progress(&state);
        }
        self.end_if_over(state);
    }

    /// Writes the episode to the run.
    fn keep(&self, outcome: &Outcome) {
        let kept = match outcome {
            Outcome::Scored(collected) => self.place.run.put_episode(&collected.episode),
            Outcome::Failed(failed) => self.place.run.put_failed_episode(failed),
        };
        if let Err(error) = kept {
            self.complain(&error.to_string());
        }
    }

    fn progress(&self, state: &State) {
        if state.is_phase {
            self.place.sink.emit(EventKind::PhaseProgress {
                phase: Phase::Evaluate,
                done: state.rows.iter().flatten().count() as u32,
                total: self.spec.total(),
            });
        }
    }

    fn store(&self, state: &State) {
        let report = match &state.ending {
            Some(End::Finished(report)) => Some((**report).clone()),
            _ => None,
        };
        let stored = self.place.run.put_evaluation(&EvaluationRecord {
            number: self.number,
            name: self.spec.name.clone(),
            request: self.request.clone(),
            manifest: self.manifest.clone(),
            total: self.spec.total(),
            trials: state.rows.iter().flatten().cloned().collect(),
            report,
        });
        if let Err(error) = stored {
            self.complain(&error.to_string());
        }
    }

    fn complain(&self, error: &str) {
        self.place.sink.emit(EventKind::Notice {
            level: NoticeLevel::Error,
            text: format!("evaluation {} is not being stored: {error}", self.number),
        });
    }

    /// Gives it up for `reason`; who asked for that is answered once its last episode has ended.
    pub(super) fn cancel(&self, reason: &str, who: Option<CommandRequest>) {
        let mut state = self.lock();
        if state.ending.is_some() {
            drop(state);
            return who
                .into_iter()
                .for_each(|who| who.refuse("it has just ended"));
        }
        let (_, waiting) = state
            .cancelled
            .get_or_insert_with(|| (reason.to_owned(), Vec::new()));
        waiting.extend(who);
        drop(state);
        self.place.lease.revoke();
        self.place.fleet.end_evaluation(self.number);
        // Its desktops may wait for trials that do not come any more.
        self.place.fleet.nudge();
        self.end_if_over(self.lock());
    }

    /// Ends it if all trials are in, or if it was given up and no desktop is at it any more.
    fn end_if_over(&self, mut state: MutexGuard<'_, State>) {
        if state.ending.is_some() {
            return;
        }
        let done = state.rows.iter().flatten().count() as u32;
        if done == self.spec.total() {
            self.finish(&mut state);
        } else if state.cancelled.is_some() && self.place.lease.is_idle() {
            self.give_up(&mut state, done);
        } else {
            return;
        }
        drop(state);
        self.place.policy.unpin(self.weights.id);
        (self.over)();
    }

    fn finish(&self, state: &mut State) {
        let rows: Vec<TrialRow> = state.rows.iter().flatten().cloned().collect();
        let wall_ms = self.started.elapsed().as_millis() as u64;
        let report = self
            .spec
            .report(self.number, &rows, &self.manifest, wall_ms);
        state.ending = Some(End::Finished(Box::new(report.clone())));
        self.store(state);
        self.place
            .sink
            .emit(EventKind::EvalFinished(Box::new(report)));
        if let Some(asked) = state.asked.take() {
            asked.done();
        }
        // It came too late to change anything.
        for who in state.cancelled.take().into_iter().flat_map(|(_, who)| who) {
            who.refuse("the evaluation has just finished");
        }
    }

    fn give_up(&self, state: &mut State, done: u32) {
        let Some((reason, waiting)) = state.cancelled.take() else {
            return;
        };
        state.ending = Some(End::Cancelled);
        self.store(state);
        self.place.sink.emit(EventKind::EvaluationCancelled {
            evaluation: self.number,
            done,
            reason: reason.clone(),
        });
        if let Some(asked) = state.asked.take() {
            asked.refuse(&format!(
                "{reason} after {done} of {} trials; `evaluate --resume {}` goes on with it",
                self.spec.total(),
                self.number
            ));
        }
        for who in waiting {
            who.done();
        }
    }
}
