//! The training loop of one run.

use std::sync::{Arc, MutexGuard, PoisonError};

use crate::config::assets;
use crate::event::{
    EvalRequest, EvalWeights, EvalWhen, EventKind, NoticeLevel, RunSummary, SafePoint, TrainerState,
};
use crate::grpo::Replay;
use crate::session::SessionError;
use crate::session::collector::Collector;
use crate::session::control::SharedReplay;
use crate::session::learner::Learner;
use crate::session::progress::Progress;
use crate::session::select::prefill;
use crate::session::summary::summarize;
use crate::session::tasks::TaskPool;
use crate::store::RunDir;
use crate::types::{Iteration, Task, derive_seed};

const SEED_HELDOUT: u64 = 0x686f_6c64;

/// What a run is made of.
pub struct TrainParts {
    /// Desktops, policy and whoever steers.
    pub collector: Collector,
    /// The run directory.
    pub run: Arc<RunDir>,
    /// Tasks trained on.
    pub pool: TaskPool,
    /// Tasks only measured.
    pub heldout: Vec<Arc<Task>>,
    /// Who learns.
    pub learner: Box<dyn Learner>,
}

/// A run under way.
pub struct TrainSession {
    pub(super) collector: Collector,
    pub(super) run: Arc<RunDir>,
    pub(super) pool: TaskPool,
    heldout: Vec<Arc<Task>>,
    pub(super) learner: Box<dyn Learner>,
    pub(super) replay: SharedReplay,
    pub(super) progress: Progress,
    pub(super) last_weights: String,
    pub(super) last_checkpoint: Option<u64>,
}

impl TrainSession {
    /// A fresh run.
    pub fn new(mut parts: TrainParts) -> Self {
        let replay = SharedReplay::default();
        parts.collector.control.serve_replay(Arc::clone(&replay));
        let progress = Progress::start(parts.collector.control.settings());
        Self {
            collector: parts.collector,
            run: parts.run,
            pool: parts.pool,
            heldout: parts.heldout,
            learner: parts.learner,
            replay,
            progress,
            last_weights: String::new(),
            last_checkpoint: None,
        }
    }

    /// Fills the replay buffer of a fresh run as the profile says.
    pub fn prefill(&mut self) -> Result<(), SessionError> {
        let config = self.collector.profile.replay.clone();
        if !config.enabled || config.prefill.is_empty() {
            return Ok(());
        }
        let from = assets::locate(&config.prefill);
        let stored = prefill(&mut self.replay(), &from, &self.run, &config)?;
        let text = format!(
            "replay buffer filled with {stored} successes of {}",
            from.display()
        );
        self.collector.notice(NoticeLevel::Info, text);
        Ok(())
    }

    /// The replay buffer; let it go before waiting for anything.
    pub(super) fn replay(&self) -> MutexGuard<'_, Replay> {
        self.replay.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Trains until all iterations are done, the operator stops it, or it fails; the summary is
    /// the last event either way.
    pub async fn run(mut self) -> RunSummary {
        let result = self.train().await;
        let stopped = self.collector.control.is_stopping();
        let result = match result {
            Ok(()) if !stopped => self.collector.finish_evaluation().await,
            other => other,
        };
        let reason = if stopped {
            "the run was stopped"
        } else {
            "the training has ended; `arpo eval` measures its checkpoints"
        };
        self.collector.close_evaluations(reason);
        let (status, state, error) = match &result {
            Ok(()) if stopped => ("stopped", TrainerState::Finished, None),
            Ok(()) => ("finished", TrainerState::Finished, None),
            Err(error) => ("failed", TrainerState::Failed, Some(error.to_string())),
        };
        if let Some(text) = &error {
            self.collector
                .notice(NoticeLevel::Error, format!("the run failed: {text}"));
        }
        self.collector.refuse_reboots();
        let heldout_last = if result.is_ok() && !stopped {
            self.measure_after().await
        } else {
            None
        };
        let weights = std::mem::take(&mut self.last_weights);
        let summary = summarize(&self.progress, status, error, heldout_last, weights);
        self.collector.control.stopped();
        self.collector
            .recorder
            .emit(EventKind::RunFinished(summary.clone()));
        self.collector.control.set_state(state);
        self.collector.close().await;
        summary
    }

    async fn train(&mut self) -> Result<(), SessionError> {
        self.collector.control.set_state(TrainerState::Running);
        if self.progress.iterations_done == 0 {
            self.progress.heldout_first = self.measure_heldout("heldout_first").await?;
        }
        let wanted = self.collector.profile.run.iterations;
        while self.progress.iterations_done < wanted {
            self.collector.iteration = Iteration(self.progress.iterations_done);
            if !self.safe_point(SafePoint::Batch).await? || !self.iterate().await? {
                break;
            }
            self.checkpoint_if_due().await?;
        }
        if self.progress.iterations_done > 0 {
            self.checkpoint().await?;
        }
        Ok(())
    }

    /// A safe point: stands still if that was asked for, and runs the evaluations that wait for
    /// one. False if the run is to end.
    pub(super) async fn safe_point(&mut self, at: SafePoint) -> Result<bool, SessionError> {
        loop {
            if !self.collector.control.safe_point(at).await {
                return Ok(false);
            }
            if !self.collector.control.wants_safe_point() {
                return Ok(true);
            }
            self.collector.evaluate_waiting().await?;
        }
    }

    async fn measure_after(&mut self) -> Option<f64> {
        match self.measure_heldout("heldout_last").await {
            Ok(success) => success,
            Err(error) => {
                let text = format!("held-out evaluation failed: {error}");
                self.collector.notice(NoticeLevel::Error, text);
                None
            }
        }
    }

    /// Success on the held-out instances at the profile's evaluation temperature.
    async fn measure_heldout(&mut self, name: &str) -> Result<Option<f64>, SessionError> {
        if self.heldout.is_empty() {
            return Ok(None);
        }
        let profile = &self.collector.profile;
        let request = EvalRequest {
            weights: EvalWeights::Current,
            tasks: profile.tasks.heldout.clone(),
            trials: 1,
            temperature: profile.eval.temperature,
            seed: derive_seed(profile.run.seed, &[SEED_HELDOUT]),
            protocol: profile.eval.protocol,
            when: EvalWhen::SafePoint,
            resume: None,
        };
        let tasks = self.heldout.clone();
        let measured = self.collector.evaluate(name, request, tasks).await?;
        Ok(measured.map(|measured| measured.report.plain.all.success))
    }

    async fn checkpoint_if_due(&mut self) -> Result<(), SessionError> {
        let every = self.collector.profile.run.checkpoint_every_iterations;
        let due = every > 0 && self.progress.iterations_done.is_multiple_of(every);
        if due || self.collector.control.wants_checkpoint() {
            self.checkpoint().await?;
            self.safe_point(SafePoint::PostCheckpoint).await?;
        }
        Ok(())
    }
}
