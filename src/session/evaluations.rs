//! The evaluations of a run: those that wait, and the one under way.
//!
//! One runs at a time, in the order they were asked for. One on leased desktops begins during
//! the next collection, one for a safe point between two phases. Weights are pinned when it
//! begins and let go when it ends, so that training never waits for it and never changes it.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::bus::CommandRequest;
use crate::config::{Profile, assets};
use crate::event::{EvalManifest, EvalRequest, EvalWeights, EvalWhen, EventKind, F, TrialRow};
use crate::policy::{PinnedWeights, PolicyError, WeightsSource};
use crate::prompt::PromptBuilder;
use crate::session::evaluate::EvaluationSpec;
use crate::session::measurement::{Measurement, Place, Subject};
use crate::session::tasks::find_tasks;
use crate::store::{Checkpoint, EvaluationRecord};
use crate::types::{PolicyVersion, Task, tasks_hash};

/// The evaluations of a run. Clones share them.
#[derive(Clone)]
pub(super) struct Evaluations(Arc<Shared>);

struct Shared {
    place: Place,
    /// All of the manifest that an evaluation does not choose.
    conditions: EvalManifest,
    inner: Mutex<Inner>,
    changed: Notify,
}

#[derive(Default)]
struct Inner {
    next_number: u32,
    waiting: VecDeque<Queued>,
    /// The one that was taken out of `waiting` and is about to become `current`.
    beginning: Option<Beginning>,
    current: Option<Arc<Measurement>>,
    /// Why no more are taken.
    closed: Option<String>,
}

/// An evaluation whose weights are being pinned.
#[derive(Default)]
struct Beginning {
    number: u32,
    /// Who wants it cancelled already.
    cancels: Vec<CommandRequest>,
}

/// An evaluation that waits.
pub(super) struct Queued {
    number: u32,
    name: String,
    request: EvalRequest,
    tasks: Vec<Arc<Task>>,
    kept: Vec<TrialRow>,
    /// The manifest it began with, if it is gone on with.
    manifest: Option<EvalManifest>,
    asked: Option<CommandRequest>,
}

impl Queued {
    /// One of the engine's own, not an operator's.
    pub(super) fn own(name: &str, request: EvalRequest, tasks: Vec<Arc<Task>>) -> Self {
        Self {
            number: 0,
            name: name.to_owned(),
            request,
            tasks,
            kept: Vec::new(),
            manifest: None,
            asked: None,
        }
    }

    /// One to go on with, as it lies on disk.
    pub(super) fn stored(record: EvaluationRecord, tasks: Vec<Arc<Task>>, when: EvalWhen) -> Self {
        Self {
            number: record.number,
            name: record.name,
            request: EvalRequest {
                when,
                ..record.request
            },
            tasks,
            kept: record.trials,
            manifest: Some(record.manifest),
            asked: None,
        }
    }

    fn spec(&self) -> EvaluationSpec {
        EvaluationSpec {
            name: self.name.clone(),
            task_set: self.request.tasks.clone(),
            tasks: self.tasks.clone(),
            trials: self.request.trials,
            temperature: self.request.temperature as f32,
            seed: self.request.seed,
        }
    }
}

impl Evaluations {
    pub(super) fn new(place: Place, profile: &Profile, prompt: &PromptBuilder) -> Self {
        let stored = place.run.evaluations().unwrap_or_default();
        let inner = Inner {
            next_number: stored.last().map_or(1, |last| last + 1),
            ..Inner::default()
        };
        Self(Arc::new(Shared {
            place,
            conditions: conditions(profile, prompt),
            inner: Mutex::new(inner),
            changed: Notify::new(),
        }))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks an operator's request over: what it needs, or why it cannot be done.
    pub(super) fn prepare(&self, request: &EvalRequest, desktops: u32) -> Result<Queued, String> {
        if let Some(reason) = &self.lock().closed {
            return Err(reason.clone());
        }
        if let EvalWhen::Now { desktops: wanted } = request.when
            && wanted >= desktops
        {
            return Err(format!(
                "the run has {desktops} desktops and training needs one of them; ask for fewer \
                 than {desktops}, or for the next safe point"
            ));
        }
        let Some(number) = request.resume else {
            let tasks = find_tasks(&request.tasks).map_err(|error| error.to_string())?;
            self.find_weights(&request.weights)?;
            return Ok(Queued::own("operator", request.clone(), tasks));
        };
        if self.is_open(number) {
            return Err(format!("evaluation {number} waits or runs already"));
        }
        let record = self.0.place.run.evaluation(number).map_err(|_| {
            format!("there is no evaluation {number} to go on with in this run's evals/")
        })?;
        if record.trials.len() >= record.total as usize {
            return Err(format!("evaluation {number} has all its trials"));
        }
        let tasks = find_tasks(&record.request.tasks).map_err(|error| error.to_string())?;
        Ok(Queued::stored(record, tasks, request.when))
    }

    fn is_open(&self, number: u32) -> bool {
        let inner = self.lock();
        let mut waiting = inner.waiting.iter();
        let beginning = inner.beginning.as_ref();
        waiting.any(|queued| queued.number == number)
            || beginning.is_some_and(|beginning| beginning.number == number)
            || inner
                .current
                .as_ref()
                .is_some_and(|current| current.number() == number)
    }

    /// Puts an accepted request into the queue.
    pub(super) fn queue(&self, mut queued: Queued, asked: CommandRequest) {
        let mut inner = self.lock();
        if queued.number == 0 {
            queued.number = inner.number();
        }
        self.0.place.sink.emit(EventKind::EvaluationQueued {
            evaluation: queued.number,
            command: asked.id,
            request: queued.request.clone(),
        });
        queued.asked = Some(asked);
        inner.waiting.push_back(queued);
        drop(inner);
        self.0.changed.notify_waiters();
    }

    /// Gives one up that waits or runs; `who` is answered once it is over.
    pub(super) fn cancel(&self, number: u32, who: CommandRequest) {
        let mut inner = self.lock();
        let place = inner.waiting.iter().position(|one| one.number == number);
        if let Some(queued) = place.and_then(|place| inner.waiting.remove(place)) {
            drop(inner);
            self.give_up(queued, "cancelled before it began");
            who.done();
            return;
        }
        if let Some(beginning) = &mut inner.beginning
            && beginning.number == number
        {
            beginning.cancels.push(who);
            return;
        }
        let current = inner.current.clone();
        let current = current.filter(|current| current.number() == number);
        drop(inner);
        match current {
            Some(current) => current.cancel("cancelled", Some(who)),
            None => who.refuse("it has just ended"),
        }
    }

    /// Why an evaluation of this number cannot be cancelled.
    pub(super) fn cannot_cancel(&self, number: u32) -> Option<String> {
        (!self.is_open(number)).then(|| format!("no evaluation {number} waits or runs"))
    }

    fn give_up(&self, queued: Queued, reason: &str) {
        self.0.place.sink.emit(EventKind::EvaluationCancelled {
            evaluation: queued.number,
            done: queued.kept.len() as u32,
            reason: reason.to_owned(),
        });
        if let Some(asked) = queued.asked {
            asked.refuse(reason);
        }
    }

    /// Takes no more, and gives up those that wait and the one under way.
    pub(super) fn close(&self, reason: &str) {
        let mut inner = self.lock();
        inner.closed = Some(reason.to_owned());
        let waiting = std::mem::take(&mut inner.waiting);
        let current = inner.current.clone();
        drop(inner);
        for queued in waiting {
            self.give_up(queued, reason);
        }
        if let Some(current) = current {
            current.cancel(reason, None);
        }
    }

    /// Whether the next one waits for a safe point, and nothing keeps it from beginning there.
    pub(super) fn wants_safe_point(&self) -> bool {
        let inner = self.lock();
        let first = inner.waiting.front();
        inner.is_free() && first.is_some_and(|one| one.request.when == EvalWhen::SafePoint)
    }

    /// Takes the next one out if it waits for a safe point.
    pub(super) fn take_for_safe_point(&self) -> Option<Queued> {
        let mut inner = self.lock();
        if !inner.is_free() {
            return None;
        }
        let first = inner.waiting.front()?;
        (first.request.when == EvalWhen::SafePoint)
            .then(|| inner.waiting.pop_front())
            .flatten()
    }

    /// Begins those for leased desktops one after the other, for as long as it is polled; never
    /// ready. What it has begun goes on when it is dropped.
    pub(super) async fn begin_leased(&self) {
        loop {
            let changed = self.0.changed.notified();
            if let Some((queued, desktops)) = self.take_leased() {
                let own = self.clone();
                // A task of its own: loading weights must outlive this collection.
                tokio::spawn(async move { own.begin(queued, desktops).await });
            }
            changed.await;
        }
    }

    fn take_leased(&self) -> Option<(Queued, u32)> {
        let mut inner = self.lock();
        if !inner.is_free() {
            return None;
        }
        let EvalWhen::Now { desktops } = inner.waiting.front()?.request.when else {
            return None;
        };
        let queued = inner.waiting.pop_front()?;
        inner.beginning = Some(Beginning {
            number: queued.number,
            ..Beginning::default()
        });
        Some((queued, desktops))
    }

    /// Pins the weights, tells of the beginning and leases desktops; why not if that fails, which
    /// is told too.
    pub(super) async fn begin(
        &self,
        mut queued: Queued,
        desktops: u32,
    ) -> Result<Arc<Measurement>, String> {
        {
            let mut inner = self.lock();
            if queued.number == 0 {
                queued.number = inner.number();
            }
            let number = queued.number;
            inner.beginning.get_or_insert_with(|| Beginning {
                number,
                ..Beginning::default()
            });
        }
        let begun = self.pin(&queued).await;
        let (weights, manifest) = match begun {
            Ok(begun) => begun,
            Err(reason) => {
                self.give_up(queued, &reason);
                for who in self.begun() {
                    who.refuse("it could not begin at all");
                }
                return Err(reason);
            }
        };
        let is_asked = queued.asked.is_some();
        let own = self.clone();
        let subject = Subject {
            number: queued.number,
            spec: queued.spec(),
            request: queued.request,
            manifest,
            weights,
            kept: queued.kept,
            asked: queued.asked,
        };
        let begun = Measurement::begin(self.0.place.clone(), subject, move || own.over());
        let closed = {
            let mut inner = self.lock();
            inner.current = Some(Arc::clone(&begun));
            // The engine's own come when it wants them.
            inner.closed.clone().filter(|_| is_asked)
        };
        match closed {
            Some(reason) => begun.cancel(&reason, None),
            None => begun.lease(desktops),
        }
        for who in self.begun() {
            begun.cancel("cancelled", Some(who));
        }
        Ok(begun)
    }

    /// Nothing is beginning any more; those who want what was cancelled.
    fn begun(&self) -> Vec<CommandRequest> {
        let beginning = self.lock().beginning.take();
        self.0.changed.notify_waiters();
        beginning.map_or_else(Vec::new, |beginning| beginning.cancels)
    }

    /// The one under way, once it is clear whether there is one.
    pub(super) async fn settled(&self) -> Option<Arc<Measurement>> {
        loop {
            let changed = self.0.changed.notified();
            {
                let inner = self.lock();
                if inner.beginning.is_none() {
                    return inner.current.clone();
                }
            }
            changed.await;
        }
    }

    fn over(&self) {
        self.lock().current = None;
        self.0.changed.notify_waiters();
    }

    /// The weights of an evaluation and the conditions it runs under. One that is gone on with
    /// must find those it began with.
    async fn pin(&self, queued: &Queued) -> Result<(PinnedWeights, EvalManifest), String> {
        let source = self.find_weights(&queued.request.weights)?;
        let pin = |source| self.0.place.policy.pin(source);
        let told = |error: PolicyError| error.to_string();
        let mut weights = pin(source).await.map_err(told)?;
        if let Some(before) = &queued.manifest
            && before.weights != weights.hash
        {
            self.0.place.policy.unpin(weights.id);
            let Some(checkpoint) = self.checkpoint_of(&before.weights) else {
                return Err(format!(
                    "it measured weights {} of version {}, which are neither in use nor in a \
                     checkpoint of this run any more; begin a new evaluation",
                    before.weights, before.policy.0
                ));
            };
            weights = pin(checkpoint).await.map_err(told)?;
        }
        let manifest = self.manifest(queued, &weights);
        let differences = queued
            .manifest
            .as_ref()
            .map_or_else(Vec::new, |before| before.differences(&manifest));
        if let Some(first) = differences.first() {
            self.0.place.policy.unpin(weights.id);
            return Err(format!(
                "it began under other conditions: {} was {}, and is {} now; begin a new evaluation",
                first.what, first.first, first.second
            ));
        }
        Ok((weights, manifest))
    }

    fn manifest(&self, queued: &Queued, weights: &PinnedWeights) -> EvalManifest {
        EvalManifest {
            temperature: F(queued.request.temperature),
            tasks: queued.request.tasks.clone(),
            tasks_hash: tasks_hash(queued.tasks.iter().map(Arc::as_ref)),
            num_tasks: queued.tasks.len() as u32,
            trials: queued.request.trials,
            seed: queued.request.seed,
            weights: weights.hash.clone(),
            policy: weights.version,
            ..self.0.conditions.clone()
        }
    }

    /// Where the weights asked for lie.
    fn find_weights(&self, weights: &EvalWeights) -> Result<WeightsSource, String> {
        let EvalWeights::Checkpoint { path } = weights else {
            return Ok(WeightsSource::Current);
        };
        let of_run = self.0.place.run.root().join("checkpoints").join(path);
        let candidates = [PathBuf::from(path), of_run, assets::locate(path)];
        let found = candidates
            .into_iter()
            .find(|folder| folder.join("config.json").exists());
        let Some(folder) = found else {
            return Err(format!(
                "no checkpoint {path:?}: neither a folder with a config.json nor one of this \
                 run's checkpoints"
            ));
        };
        let version = version_of(&folder);
        Ok(WeightsSource::Folder {
            path: folder,
            version,
        })
    }

    /// The run's checkpoint of these weights, if it still has one.
    fn checkpoint_of(&self, weights: &str) -> Option<WeightsSource> {
        let checkpoints = self.0.place.run.checkpoints().ok()?;
        checkpoints.into_iter().rev().find_map(|(_, path)| {
            let checkpoint = Checkpoint::open(&path).ok()?;
            (checkpoint.manifest.weights == weights).then_some(WeightsSource::Folder {
                path,
                version: checkpoint.manifest.policy,
            })
        })
    }
}

impl Inner {
    fn number(&mut self) -> u32 {
        self.next_number += 1;
        self.next_number - 1
    }

    fn is_free(&self) -> bool {
        self.current.is_none() && self.beginning.is_none()
    }
}

/// Updates behind a checkpoint's weights; 0 for one that is no run's.
fn version_of(folder: &Path) -> PolicyVersion {
    Checkpoint::open(folder).map_or(PolicyVersion(0), |one| one.manifest.policy)
}

/// What a profile says of the conditions of its evaluations.
fn conditions(profile: &Profile, prompt: &PromptBuilder) -> EvalManifest {
    let mut desktops = blake3::Hasher::new();
    let config = serde_json::to_vec(&profile.env.simulated).unwrap_or_default();
    desktops.update(&config);
    EvalManifest {
        prompt: PromptBuilder::style_hash(profile.policy.prompt),
        template: prompt.template_hash(),
        history_images: profile.rollout.max_history_images as u32,
        context_tokens: profile.policy.context_tokens as u32,
        top_p: F(profile.sampling.top_p),
        max_reply_tokens: profile.sampling.max_reply_tokens as u32,
        max_steps: profile.rollout.max_steps as u32,
        environment: format!("{:?}", profile.env.kind).to_lowercase(),
        environment_hash: short(&desktops),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..EvalManifest::default()
    }
}

fn short(hasher: &blake3::Hasher) -> String {
    hasher.finalize().to_hex()[..16].to_owned()
}
