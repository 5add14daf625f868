//! Desktops and a policy under one roof: runs jobs while serving commands. Training, evaluation
//! and task selection all collect through it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::config::Profile;
use crate::env::Environment;
use crate::event::{EvalReport, EventKind, NoticeLevel, Phase};
use crate::policy::{Policy, SamplingParams};
use crate::prompt::PromptBuilder;
use crate::rollout::{Clock, CollectSpec, Collection, EpisodeContext, Job, Recorder, collect};
use crate::session::control::Control;
use crate::session::evaluate::EvaluationSpec;
use crate::session::{SessionError, open_desktops};
use crate::types::Iteration;

/// What a collector is made of.
pub struct CollectorParts {
    /// The resolved profile.
    pub profile: Profile,
    /// Where everything is told.
    pub recorder: Recorder,
    /// Who steers.
    pub control: Control,
    /// Who answers.
    pub policy: Arc<dyn Policy>,
    /// How conversations become tokens.
    pub prompt: Arc<PromptBuilder>,
    /// Which start of the engine this is.
    pub incarnation: u32,
}

/// Runs jobs over the desktops.
pub struct Collector {
    pub(super) profile: Profile,
    pub(super) recorder: Recorder,
    pub(super) control: Control,
    pub(super) policy: Arc<dyn Policy>,
    prompt: Arc<PromptBuilder>,
    incarnation: u32,
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
    pub fn new(parts: CollectorParts) -> Self {
        Self {
            profile: parts.profile,
            recorder: parts.recorder,
            control: parts.control,
            policy: parts.policy,
            prompt: parts.prompt,
            incarnation: parts.incarnation,
            envs: Vec::new(),
            next_episode: 0,
            clock_ms: 0,
            iteration: Iteration(0),
        }
    }

    /// Runs jobs over the desktops while serving commands.
    pub async fn collect(
        &mut self,
        jobs: &[Job],
        temperature: f32,
        phase: Phase,
    ) -> Result<Collection, SessionError> {
        self.resize_fleet().await?;
        let (jobs, branches) = self.with_branches(jobs);
        let clock = Clock::starting_at(Duration::from_millis(self.clock_ms));
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
            recorder: &self.recorder,
        };
        let spec = CollectSpec {
            schedule: rollout.schedule,
            max_rerolls: rollout.max_rerolls,
            incarnation: self.incarnation,
            first_episode: self.next_episode,
        };
        let total = jobs.len() as u32;
        let tell = |done| {
            self.recorder
                .emit(EventKind::PhaseProgress { phase, done, total });
        };
        let mut collection = tokio::select! {
            collection = collect(&context, &mut self.envs, &jobs, spec, &tell) => collection,
            () = self.control.serve() => unreachable!("serving commands never ends"),
        };
        self.next_episode = collection.next_episode;
        self.clock_ms = clock.now_ms();
        self.keep_branches(&mut collection, branches);
        Ok(collection)
    }

    /// Runs an evaluation and tells of it; `None` if it was stopped meanwhile.
    pub async fn evaluate(
        &mut self,
        spec: &EvaluationSpec,
    ) -> Result<Option<(EvalReport, Collection)>, SessionError> {
        let started = Instant::now();
        let jobs = spec.jobs();
        self.begin_phase(Phase::Evaluate, jobs.len() as u32);
        let collection = self
            .collect(&jobs, spec.temperature, Phase::Evaluate)
            .await?;
        self.end_phase(Phase::Evaluate, started);
        if self.control.is_stopping() {
            return Ok(None);
        }
        let report = spec.report(&collection, self.policy.version(), started);
        self.recorder
            .emit(EventKind::EvalFinished(Box::new(report.clone())));
        Ok(Some((report, collection)))
    }

    /// Opens or closes desktops until there are as many as asked for.
    async fn resize_fleet(&mut self) -> Result<(), SessionError> {
        let wanted = self.control.settings().desktops as usize;
        while self.envs.len() > wanted {
            if let Some(mut env) = self.envs.pop() {
                env.close().await.map_err(SessionError::Env)?;
            }
        }
        let missing = (wanted - self.envs.len()) as u32;
        self.envs.extend(open_desktops(&self.profile.env, missing)?);
        Ok(())
    }

    /// Closes all desktops. One that cannot close is gone anyway.
    pub async fn close(&mut self) {
        for mut env in self.envs.drain(..) {
            if let Err(error) = env.close().await {
                tracing::warn!(%error, "closing a desktop");
            }
        }
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
