//! Desktops and a policy under one roof: runs jobs while serving commands. Training, evaluation
//! and task selection all collect through it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::config::Profile;
use crate::env::{Admitted, Environment};
use crate::evaluator::Scorer;
use crate::event::{EvalReport, EvalRequest, EvalWhen, EventKind, NoticeLevel, Phase, TrialRow};
use crate::policy::{Policy, SamplingParams};
use crate::prompt::PromptBuilder;
use crate::rollout::{
    Care, Clock, CollectSpec, Collection, EpisodeContext, Job, Lease, Recorder, Settled, Steering,
    collect,
};
use crate::session::control::Control;
use crate::session::evaluations::{Evaluations, Queued};
use crate::session::measurement::{End, Measurement, Place};
use crate::session::{Desktops, SessionError};
use crate::store::{EvaluationRecord, RunDir};
use crate::types::{Iteration, Task};

/// What came of a whole evaluation.
#[derive(Clone, Debug)]
pub struct Evaluated {
    /// Its scores.
    pub report: EvalReport,
    /// Its trials, in the order of tasks and trials.
    pub trials: Vec<TrialRow>,
}

/// What a collector is made of.
pub struct CollectorParts {
    /// The resolved profile.
    pub profile: Profile,
    /// Where everything is told.
    pub recorder: Arc<Recorder>,
    /// The run directory.
    pub run: Arc<RunDir>,
    /// Who steers.
    pub control: Control,
    /// Who answers.
    pub policy: Arc<dyn Policy>,
    /// How conversations become tokens.
    pub prompt: Arc<PromptBuilder>,
    /// Who scores real desktops.
    pub scorer: Scorer,
    /// Who opens the desktops.
    pub desktops: Desktops,
    /// Which start of the engine this is.
    pub incarnation: u32,
}

/// Runs jobs over the desktops.
pub struct Collector {
    pub(super) profile: Profile,
    pub(super) recorder: Arc<Recorder>,
    pub(super) control: Control,
    pub(super) policy: Arc<dyn Policy>,
    prompt: Arc<PromptBuilder>,
    scorer: Scorer,
    incarnation: u32,
    evaluations: Evaluations,
    lease: Lease,
    desktops: Desktops,
    envs: Vec<Box<dyn Environment>>,
    /// Number of the next episode.
    pub(super) next_episode: u64,
    /// The run's clock, ms.
    pub(super) clock_ms: u64,
    /// The iteration that phases are told of.
    pub(super) iteration: Iteration,
}

impl Collector {
    /// A collector without desktops yet; they are opened when first needed.
    pub fn new(mut parts: CollectorParts) -> Self {
        let lease = Lease::default();
        let place = Place {
            run: parts.run,
            sink: parts.control.sink(),
            policy: Arc::clone(&parts.policy),
            fleet: parts.control.fleet(),
            lease: lease.clone(),
            gate: parts.control.gate(),
        };
        if let Some(admission) = parts.desktops.admission() {
            parts.control.admit_desktops(admission);
        }
        let evaluations = Evaluations::new(place, &parts.profile, &parts.prompt);
        parts.control.serve_evaluations(evaluations.clone());
        Self {
            profile: parts.profile,
            recorder: parts.recorder,
            control: parts.control,
            policy: parts.policy,
            prompt: parts.prompt,
            scorer: parts.scorer,
            incarnation: parts.incarnation,
            evaluations,
            lease,
            desktops: parts.desktops,
            envs: Vec::new(),
            next_episode: 0,
            clock_ms: 0,
            iteration: Iteration(0),
        }
    }

    /// Runs jobs over the desktops while serving commands; evaluations may have some of the
    /// desktops meanwhile.
    pub async fn collect(
        &mut self,
        jobs: &[Job],
        temperature: f32,
        phase: Phase,
    ) -> Result<Collection, SessionError> {
        let total = jobs.len() as u32;
        let sink = self.control.sink();
        let tell = move |settled: Settled<'_>| {
            sink.emit(EventKind::PhaseProgress {
                phase,
                done: settled.done,
                total,
            });
        };
        self.run_jobs(jobs, temperature, Some(&tell)).await
    }

    /// `collect`, or with nobody to tell of jobs, the lease's jobs on all desktops.
    async fn run_jobs(
        &mut self,
        jobs: &[Job],
        temperature: f32,
        told: Option<&dyn Fn(Settled<'_>)>,
    ) -> Result<Collection, SessionError> {
        self.resize_fleet().await?;
        let (jobs, branches) = self.with_branches(jobs);
        let now = Duration::from_millis(self.clock_ms);
        let clock = if self.desktops.are_virtual() {
            Clock::starting_at(now)
        } else {
            Clock::wall(now)
        };
        let rollout = &self.profile.rollout;
        let context = EpisodeContext {
            policy: self.policy.as_ref(),
            prompt: &self.prompt,
            sampling: SamplingParams {
                temperature,
                top_p: self.profile.sampling.top_p as f32,
                max_tokens: self.profile.sampling.max_reply_tokens,
            },
            max_steps: rollout.max_steps,
            speech: &self.profile.policy,
            protocol: self.profile.reward.protocol,
            deadline: rollout.deadline(),
            clock: clock.clone(),
            gate: self.control.gate(),
            debugger: self.control.debugger(),
            scorer: self.scorer.clone(),
            recorder: &self.recorder,
        };
        let desktops = &self.desktops;
        let reopen = |desktop| desktops.open(desktop).map_err(|error| error.to_string());
        let spec = CollectSpec {
            schedule: rollout.schedule,
            max_rerolls: rollout.max_rerolls,
            incarnation: self.incarnation,
            first_episode: self.next_episode,
            steering: Steering {
                fleet: self.control.fleet(),
                lease: self.lease.clone(),
                leased_only: told.is_none(),
                reopen: Some(&reopen),
                care: Care {
                    max_start_failures: self.profile.env.fleet.max_start_failures,
                    ..Care::default()
                },
            },
        };
        let evaluations = self.evaluations.clone();
        let begin_leased = async {
            match told {
                Some(_) => evaluations.begin_leased().await,
                None => std::future::pending().await,
            }
        };
        let told = told.unwrap_or(&|_| ());
        let mut collection = tokio::select! {
            collection = collect(&context, &mut self.envs, &jobs, spec, told) => collection,
            () = self.control.serve() => unreachable!("serving commands never ends"),
            () = begin_leased => unreachable!("beginning evaluations never ends"),
        };
        self.next_episode = collection.next_episode;
        self.clock_ms = clock.now_ms();
        self.keep_branches(&mut collection, branches);
        match collection.stranded {
            Some(reason) => Err(SessionError::NoDesktop(reason)),
            None => Ok(collection),
        }
    }

    /// Runs an evaluation of the engine's own on all desktops and tells of it; `None` if it was
    /// stopped or cancelled meanwhile.
    pub async fn evaluate(
        &mut self,
        name: &str,
        request: EvalRequest,
        tasks: Vec<Arc<Task>>,
    ) -> Result<Option<Evaluated>, SessionError> {
        let queued = Queued::own(name, request, tasks);
        self.evaluate_queued(queued).await
    }

    /// Goes on with an evaluation as it lies on disk.
    pub async fn evaluate_further(
        &mut self,
        record: EvaluationRecord,
        tasks: Vec<Arc<Task>>,
    ) -> Result<Option<Evaluated>, SessionError> {
        let queued = Queued::stored(record, tasks, EvalWhen::SafePoint);
        self.evaluate_queued(queued).await
    }

    async fn evaluate_queued(&mut self, queued: Queued) -> Result<Option<Evaluated>, SessionError> {
        let begun = self.evaluations.begin(queued, 0).await;
        let measurement = begun.map_err(SessionError::Evaluation)?;
        self.on_all_desktops(&measurement).await?;
        Ok(match measurement.ending() {
            Some(End::Finished(report)) => Some(Evaluated {
                report: *report,
                trials: measurement.rows(),
            }),
            Some(End::Cancelled) | None => None,
        })
    }

    /// Runs the evaluations that wait for a safe point; call it at one.
    pub(super) async fn evaluate_waiting(&mut self) -> Result<(), SessionError> {
        while let Some(queued) = self.evaluations.take_for_safe_point() {
            // Whoever asked for it hears why it cannot begin; training goes on.
            if let Ok(measurement) = self.evaluations.begin(queued, 0).await {
                self.on_all_desktops(&measurement).await?;
            }
            if self.control.is_stopping() {
                break;
            }
        }
        Ok(())
    }

    /// Lets the evaluation that runs beside training come to its end, training being over.
    pub(super) async fn finish_evaluation(&mut self) -> Result<(), SessionError> {
        if let Some(measurement) = self.evaluations.settled().await {
            self.on_all_desktops(&measurement).await?;
        }
        Ok(())
    }

    async fn on_all_desktops(
        &mut self,
        measurement: &Arc<Measurement>,
    ) -> Result<(), SessionError> {
        let started = Instant::now();
        self.begin_phase(Phase::Evaluate, measurement.total());
        measurement.set_phase(true);
        measurement.lease(u32::MAX);
        self.run_jobs(&[], 0.0, None).await?;
        measurement.set_phase(false);
        self.end_phase(Phase::Evaluate, started);
        Ok(())
    }

    /// No desktop has another episode before it.
    pub(super) fn refuse_reboots(&self) {
        let fleet = self.control.fleet();
        fleet.refuse_reboots(0, "the training ended before the desktop's next episode");
    }

    /// Takes no more evaluations, and gives up those that wait or run.
    pub fn close_evaluations(&self, reason: &str) {
        self.evaluations.close(reason);
    }

    /// Opens or closes desktops until there are as many as asked for. One that does not open ends no
    /// run that has others.
    async fn resize_fleet(&mut self) -> Result<(), SessionError> {
        let wanted = self.control.settings().desktops as usize;
        let surplus = self.envs.split_off(wanted.min(self.envs.len()));
        close_all(surplus).await;
        let fleet = self.control.fleet();
        fleet.refuse_reboots(wanted as u32, "the desktop was taken out of the run");
        fleet.forget(wanted as u32);
        if !self.has_room(wanted as u32)? {
            return Ok(());
        }
        for desktop in self.envs.len()..wanted {
            match self.desktops.open(desktop as u32) {
                Ok(env) => self.envs.push(env),
                Err(error) if desktop == 0 => return Err(error),
                Err(error) => {
                    let text = format!("the run goes on with {desktop} desktops: {error}");
                    self.notice(NoticeLevel::Warning, text);
                    break;
                }
            }
        }
        Ok(())
    }

    /// Whether so many desktops are admitted. A run that has some goes on with those.
    fn has_room(&self, wanted: u32) -> Result<bool, SessionError> {
        let open = self.envs.len() as u32;
        let admission = self.desktops.admission();
        match admission.map_or(Admitted::Fits, |one| one.ask(open, wanted)) {
            Admitted::Fits => Ok(true),
            Admitted::Warned(says) => {
                self.notice(NoticeLevel::Warning, says);
                Ok(true)
            }
            Admitted::Refused(says) if open == 0 => Err(SessionError::NoRoom(says)),
            Admitted::Refused(says) => {
                let text = format!("the run goes on with {open} desktops: {says}");
                self.notice(NoticeLevel::Warning, text);
                Ok(false)
            }
        }
    }

    /// Closes all desktops. Who asked the run to stop is told that it has.
    pub async fn close(&mut self) {
        close_all(std::mem::take(&mut self.envs)).await;
        self.control.stopped();
    }

    pub(super) fn begin_phase(&self, phase: Phase, total: u32) {
        let iteration = self.iteration;
        self.recorder.emit(EventKind::PhaseStarted {
            iteration,
            phase,
            total,
        });
    }

    pub(super) fn end_phase(&self, phase: Phase, started: Instant) {
        let wall_ms = started.elapsed().as_millis() as u64;
        let iteration = self.iteration;
        self.recorder.emit(EventKind::PhaseFinished {
            iteration,
            phase,
            wall_ms,
        });
    }

    pub(super) fn notice(&self, level: NoticeLevel, text: String) {
        self.recorder.emit(EventKind::Notice { level, text });
    }
}

/// Closes desktops. One that cannot close is gone anyway.
async fn close_all(envs: Vec<Box<dyn Environment>>) {
    for mut env in envs {
        if let Err(error) = env.close().await {
            tracing::warn!(%error, "closing a desktop");
        }
    }
}
