//! The embedded policy: lanes behind the asynchronous `Policy` trait.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arpo::config::{CostTable, EngineConfig};
use arpo::policy::{
    Extension, Generation, PinnedWeights, Policy, PolicyError, PolicyStats, SamplingParams,
    SessionId, SessionSpec, WeightsId, WeightsSource,
};
use arpo::screen::ProcessorConfig;
use arpo::types::PolicyVersion;
use async_trait::async_trait;
use tokio::sync::oneshot;

use super::lane::LaneSpec;
use super::threads::{LaneThread, Request, gone};
use crate::model::{Weights, checkpoint};

/// What the checkpoint and the profile say beside `[engine]`.
#[derive(Clone, Debug)]
pub struct EmbeddedSpec {
    /// Most tokens of a session.
    pub context_tokens: usize,
    /// Tokens that end a turn.
    pub stop_ids: Vec<u32>,
    /// How screenshots become patches.
    pub processor: ProcessorConfig,
}

/// A policy computed in this process.
#[derive(Debug)]
pub struct Embedded {
    lanes: Vec<LaneThread>,
    // Written when sessions open and close; never held while waiting.
    lane_of: Mutex<HashMap<SessionId, usize>>,
    next_session: AtomicU64,
    version: AtomicU64,
    // The published weights. Held while lanes are told of others, so that all lanes pin the same.
    published: Mutex<Weights>,
    next_pin: AtomicU64,
    cost: CostTable,
}

impl Embedded {
    /// Starts the lanes with `weights`.
    pub fn start(
        weights: &Weights,
        config: &EngineConfig,
        spec: &EmbeddedSpec,
    ) -> Result<Self, PolicyError> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let num_lanes = if config.lanes == 0 {
            cores
        } else {
            config.lanes
        };
        let lane_spec = LaneSpec {
            context_tokens: spec.context_tokens,
            max_batch: config.max_batch,
            kv_budget_bytes: (config.kv_budget_mb << 20) / num_lanes,
            stop_ids: spec.stop_ids.clone(),
            processor: spec.processor.clone(),
        };
        let lanes = (0..num_lanes)
            .map(|idx| LaneThread::spawn(idx, weights.shallow_clone(), lane_spec.clone()))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            lanes,
            lane_of: Mutex::default(),
            next_session: AtomicU64::new(0),
            version: AtomicU64::new(weights.version.0),
            published: Mutex::new(weights.shallow_clone()),
            next_pin: AtomicU64::new(0),
            cost: config.cost,
        })
    }

    /// Hands out new weights: every reply asked for from now on uses them. `weights` must be a
    /// snapshot that nobody writes to.
    pub fn publish(&self, weights: &Weights) -> Result<(), PolicyError> {
        let mut published = self.published();
        for lane in &self.lanes {
            lane.send(Request::Publish(weights.shallow_clone()))?;
        }
        *published = weights.shallow_clone();
        self.version.store(weights.version.0, Ordering::Release);
        Ok(())
    }

    fn published(&self) -> MutexGuard<'_, Weights> {
        self.published
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Pins the published weights on every lane.
    fn pin_published(&self, id: WeightsId) -> Result<Weights, PolicyError> {
        let published = self.published();
        for lane in &self.lanes {
            lane.send(Request::Pin(id, None))?;
        }
        Ok(published.shallow_clone())
    }

    /// Loads a checkpoint of the same sizes, on the device of the published weights.
    async fn load(&self, path: PathBuf, version: PolicyVersion) -> Result<Weights, PolicyError> {
        let (device, kind, config) = {
            let published = self.published();
            let config = published.config.to_json();
            (published.device(), published.kind(), config)
        };
        let failed = |reason: String| PolicyError::Weights(reason);
        let loaded = tokio::task::spawn_blocking(move || checkpoint::load(&path, device, kind));
        let loaded = loaded.await.map_err(|error| failed(error.to_string()))?;
        let mut weights = loaded.map_err(|error| failed(error.to_string()))?;
        if weights.config.to_json() != config {
            let reason = "the checkpoint's config.json is not that of the agent in training";
            return Err(failed(reason.to_owned()));
        }
        weights.version = version;
        Ok(weights)
    }

    /// The lane of an open session.
    fn lane(&self, session: SessionId) -> Result<&LaneThread, PolicyError> {
        let lane_of = self.lane_of.lock().unwrap_or_else(PoisonError::into_inner);
        let lane_idx = lane_of
            .get(&session)
            .ok_or(PolicyError::NoSession(session))?;
        Ok(&self.lanes[*lane_idx])
    }

    /// A new session on a lane.
    fn register(&self, lane_idx: usize) -> SessionId {
        let id = SessionId(self.next_session.fetch_add(1, Ordering::Relaxed));
        let mut lane_of = self.lane_of.lock().unwrap_or_else(PoisonError::into_inner);
        lane_of.insert(id, lane_idx);
        id
    }

    /// Forgets a session and says on which lane it was.
    fn unregister(&self, session: SessionId) -> Option<usize> {
        self.lane_of
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&session)
    }
}

/// Waits for a lane's answer.
async fn answer<T>(inbox: oneshot::Receiver<Result<T, PolicyError>>) -> Result<T, PolicyError> {
    inbox.await.unwrap_or_else(|_| Err(gone()))
}

#[async_trait]
impl Policy for Embedded {
    async fn open(&self, spec: SessionSpec) -> Result<SessionId, PolicyError> {
        let lane_idx = (spec.episode.number % self.lanes.len() as u64) as usize;
        let id = self.register(lane_idx);
        let (episode, seed) = (spec.episode, spec.seed);
        self.lanes[lane_idx].send(Request::Open {
            id,
            episode,
            seed,
            weights: spec.weights,
        })?;
        Ok(id)
    }

    async fn generate(
        &self,
        session: SessionId,
        extension: Extension,
        params: SamplingParams,
    ) -> Result<Generation, PolicyError> {
        let (sender, inbox) = oneshot::channel();
        let request = Request::Generate {
            id: session,
            extension,
            params,
            answer: sender,
        };
        self.lane(session)?.send(request)?;
        answer(inbox).await
    }

    /// The fork lives on its parent's lane, where the KV is.
    async fn fork(&self, session: SessionId, spec: SessionSpec) -> Result<SessionId, PolicyError> {
        let lane_idx = {
            let lane_of = self.lane_of.lock().unwrap_or_else(PoisonError::into_inner);
            *lane_of
                .get(&session)
                .ok_or(PolicyError::NoSession(session))?
        };
        let id = self.register(lane_idx);
        let (sender, inbox) = oneshot::channel();
        let (episode, seed) = (spec.episode, spec.seed);
        let request = Request::Fork {
            parent: session,
            id,
            episode,
            seed,
            answer: sender,
        };
        self.lanes[lane_idx].send(request)?;
        if let Err(error) = answer(inbox).await {
            self.unregister(id);
            return Err(error);
        }
        Ok(id)
    }

    async fn score(&self, session: SessionId, ids: Vec<u32>) -> Result<Vec<f32>, PolicyError> {
        let (sender, inbox) = oneshot::channel();
        self.lane(session)?.send(Request::Score {
            id: session,
            ids,
            answer: sender,
        })?;
        answer(inbox).await
    }

    async fn close(&self, session: SessionId) {
        if let Some(lane_idx) = self.unregister(session) {
            // A lane that is gone holds nothing to close.
            let _ = self.lanes[lane_idx].send(Request::Close(session));
        }
    }

    async fn cancel(&self, session: SessionId) {
        if let Ok(lane) = self.lane(session) {
            // A lane that is gone has failed all who waited.
            let _ = lane.send(Request::Cancel(session));
        }
    }

    async fn pin(&self, source: WeightsSource) -> Result<PinnedWeights, PolicyError> {
        let id = WeightsId(self.next_pin.fetch_add(1, Ordering::Relaxed));
        let weights = match source {
            WeightsSource::Current => self.pin_published(id)?,
            WeightsSource::Folder { path, version } => {
                let weights = self.load(path, version).await?;
                for lane in &self.lanes {
                    lane.send(Request::Pin(id, Some(weights.shallow_clone())))?;
                }
                weights
            }
        };
        let version = weights.version;
        let hashed = tokio::task::spawn_blocking(move || checkpoint::hash(&weights));
        let hash = match hashed.await {
            Ok(Ok(hash)) => hash,
            Ok(Err(error)) => return Err(PolicyError::Weights(error.to_string())),
            Err(error) => return Err(PolicyError::Weights(error.to_string())),
        };
        Ok(PinnedWeights { id, version, hash })
    }

    fn unpin(&self, weights: WeightsId) {
        for lane in &self.lanes {
            // A lane that is gone holds none.
            let _ = lane.send(Request::Unpin(weights));
        }
    }

    fn version(&self) -> PolicyVersion {
        PolicyVersion(self.version.load(Ordering::Acquire))
    }

    fn stats(&self) -> PolicyStats {
        let lanes = self.lanes.iter().map(LaneThread::stats);
        lanes.fold(PolicyStats::default(), |sum, lane| PolicyStats {
            images_encoded: sum.images_encoded + lane.images_encoded,
            images_seen: sum.images_seen + lane.images_seen,
            tokens_prefilled: sum.tokens_prefilled + lane.tokens_prefilled,
            tokens_new: sum.tokens_new + lane.tokens_new,
            tokens_sampled: sum.tokens_sampled + lane.tokens_sampled,
            sessions_refilled: sum.sessions_refilled + lane.sessions_refilled,
            kv_bytes: sum.kv_bytes + lane.kv_bytes,
        })
    }

    /// One batch on every lane at the same time: it takes as long as the slowest.
    async fn tick(&self) -> Option<Duration> {
        let ticks: Vec<_> = self
            .lanes
            .iter()
            .map(|lane| {
                let (sender, inbox) = oneshot::channel();
                // A lane that is gone drops the sender, which reads as nothing to do.
                let _ = lane.send(Request::Tick(sender));
                inbox
            })
            .collect();
        let mut longest_us = None;
        for tick in ticks {
            let work = tick.await.ok().flatten();
            let took_us = work.map(|work| {
                self.cost
                    .batch_us(work.images, work.prefilled_tokens, work.decoded_rows)
            });
            longest_us = longest_us.max(took_us);
        }
        longest_us.map(Duration::from_micros)
    }
}
