//! Who answers: turns a prompt into the next tokens.
//!
//! A policy holds sessions: append-only token streams whose computed state survives between
//! steps. Invariant: a session's content is exactly the tokens given to it and sampled by it,
//! in order; nothing is re-tokenised.

pub mod human;
pub mod scripted;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::types::{EpisodeId, PolicyVersion, Screenshot, Task};

/// A session of one policy. Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SessionId(pub u64);

/// Weights kept apart from those that training publishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WeightsId(pub u64);

/// Which weights are kept apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WeightsSource {
    /// Those in use at this moment.
    Current,
    /// Those of a checkpoint.
    Folder {
        /// Its folder, Hugging Face layout.
        path: PathBuf,
        /// Updates behind them, for the reports.
        version: PolicyVersion,
    },
}

/// Weights that stay as they are until they are let go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinnedWeights {
    /// What sessions name them by.
    pub id: WeightsId,
    /// Updates behind them.
    pub version: PolicyVersion,
    /// Hash of their contents, as a checkpoint of them has it.
    pub hash: String,
}

/// What is known when a session opens.
#[derive(Clone, Debug)]
pub struct SessionSpec {
    /// The episode it serves; orders batches and picks the lane.
    pub episode: EpisodeId,
    /// Its place in its group, or among its task's trials.
    pub sample: u32,
    /// Seed of its sampling.
    pub seed: u64,
    /// The task, for policies that do not read tokens (scripts, experts).
    pub task: Arc<Task>,
    /// Pinned weights that write all its replies; the published ones if absent.
    pub weights: Option<WeightsId>,
}

/// How to sample one reply.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SamplingParams {
    /// 0 is greedy.
    pub temperature: f32,
    /// Nucleus; 1 is off.
    pub top_p: f32,
    /// The most tokens of a reply, its end token included.
    pub max_tokens: usize,
}

/// Prompt tokens appended to a session before it generates.
#[derive(Clone, Debug, Default)]
pub struct Extension {
    /// Token ids `[new]`; each image's placeholder is already repeated once per merged patch.
    pub ids: Vec<u32>,
    /// The screenshots those placeholders stand for, in order, as the desktop delivered them
    /// (the policy resizes).
    pub images: Vec<Screenshot>,
    /// Replies among `ids` that this session did not write, in order: a person's, or those of a
    /// recorded episode. For policies that do not read tokens.
    pub replies: Vec<String>,
}

/// Why generation stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// The end-of-turn token was sampled; it is the last of `ids`.
    Stop,
    /// `max_tokens` came first.
    Length,
    /// The context had no more room.
    Context,
}

/// One reply.
#[derive(Clone, Debug, PartialEq)]
pub struct Generation {
    /// Sampled token ids, the end token included where it was sampled.
    pub ids: Vec<u32>,
    /// Log-probability of each under the sampling distribution at its temperature (the plain
    /// one for greedy), `[ids.len()]`.
    pub logprobs: Vec<f32>,
    /// Why it stopped.
    pub finish: FinishReason,
    /// Which weights wrote it.
    pub version: PolicyVersion,
}

/// Work counters since the start; `arpo bench decode` and the console show them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyStats {
    /// Screenshots run through the vision tower.
    pub images_encoded: u64,
    /// Screenshots given to sessions.
    pub images_seen: u64,
    /// Prompt tokens run through the text model, repeats after an eviction included.
    pub tokens_prefilled: u64,
    /// Prompt tokens given to sessions.
    pub tokens_new: u64,
    /// Tokens sampled.
    pub tokens_sampled: u64,
    /// Sessions whose KV memory was evicted and computed again.
    pub sessions_refilled: u64,
    /// KV memory in use, bytes.
    pub kv_bytes: u64,
}

/// Whoever turns a prompt into the next tokens.
#[async_trait]
pub trait Policy: Send + Sync {
    /// Starts a session.
    async fn open(&self, spec: SessionSpec) -> Result<SessionId, PolicyError>;
    /// Appends a prompt, samples a reply and appends it too.
    async fn generate(
        &self,
        session: SessionId,
        extension: Extension,
        params: SamplingParams,
    ) -> Result<Generation, PolicyError>;
    /// Whether it has replies of its own. Without them a person writes each one.
    fn writes(&self) -> bool {
        true
    }
    /// A new session with the same content and its own seed; the content's state is shared.
    async fn fork(&self, session: SessionId, spec: SessionSpec) -> Result<SessionId, PolicyError>;
    /// Log-probability of each of `ids` (`[new]`) if appended to the session, which stays as
    /// it is. At temperature 1.
    async fn score(&self, session: SessionId, ids: Vec<u32>) -> Result<Vec<f32>, PolicyError>;
    /// Ends a session and frees its memory. Unknown sessions are ignored.
    async fn close(&self, session: SessionId);
    /// Gives up a running generation, which then fails with `PolicyError::Cancelled`.
    async fn cancel(&self, session: SessionId);
    /// Keeps weights apart for the sessions that name them.
    async fn pin(&self, source: WeightsSource) -> Result<PinnedWeights, PolicyError>;
    /// Lets pinned weights go; sessions that name them must be closed. Unknown ones are ignored.
    fn unpin(&self, weights: WeightsId);
    /// The weights that the next generation uses.
    fn version(&self) -> PolicyVersion;
    /// Work done so far.
    fn stats(&self) -> PolicyStats;
    /// Runs one batch over the waiting generations and says how long it takes by the cost
    /// table; `None` if nothing waits. Whoever waits for generations must tick, or have someone
    /// tick; a policy on another machine works by itself and always says `None`.
    async fn tick(&self) -> Option<Duration>;
}

/// What can go wrong with a policy.
#[derive(Debug, Clone, thiserror::Error)]
pub enum PolicyError {
    /// The engine or server failed.
    #[error("policy failed: {0}")]
    Failed(String),
    /// The weights asked for cannot be used.
    #[error("weights: {0}")]
    Weights(String),
    /// The session is unknown or closed.
    #[error("session {} is not open", .0.0)]
    NoSession(SessionId),
    /// Given up by `cancel`.
    #[error("generation cancelled")]
    Cancelled,
    /// The prompt alone exceeds the context.
    #[error("prompt of {tokens} tokens exceeds the context of {limit}")]
    ContextFull {
        /// Tokens of the session with the prompt appended.
        tokens: usize,
        /// The context's size.
        limit: usize,
    },
}
