//! One session: its content, what of it is computed, and what it waits for.

use std::rc::Rc;

use arpo::policy::{FinishReason, Generation, SamplingParams, WeightsId};
use arpo::types::{EpisodeId, ImageHash, PolicyVersion, Screenshot};
use tch::Tensor;

use super::kv::Slot;
use super::lane::Prepared;
use super::sampler::{Distribution, Sampled, Sampler};
use crate::model::ModelError;
use crate::model::qwen2_5_vl::ModelConfig;
use crate::model::qwen2_5_vl::rope::{Position, PositionCursor};

/// A session of one lane.
///
/// Invariant: `ids` and `positions` are equally long; KV holds their first `kv_len`, computed
/// by the weights of `kv_epoch`. The last sampled token is never in the KV: it is run with
/// whatever follows it.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) episode: EpisodeId,
    pub(super) ids: Vec<u32>,
    pub(super) positions: Vec<Position>,
    pub(super) images: Vec<SessionImage>,
    pub(super) slot: Option<Slot>,
    pub(super) kv_len: usize,
    pub(super) kv_epoch: u64,
    /// The most tokens ever computed: below it, computing is repeating.
    pub(super) computed_len: usize,
    /// Tokens up to the last sampled one.
    pub(super) sampled_end: usize,
    pub(super) last_used_tick: u64,
    pub(super) work: Work,
    /// Pinned weights that write all its replies; the published ones if absent.
    pub(super) weights: Option<WeightsId>,
    cursor: PositionCursor,
    sampler: Sampler,
}

/// An image of a session.
#[derive(Debug)]
pub(super) struct SessionImage {
    /// Index of its first placeholder among the session's tokens.
    pub(super) first_token: usize,
    /// Its features, `[merged, hidden]`, once encoded. Kept as long as the session, so that an
    /// evicted session reads no pixels again.
    pub(super) features: Option<Tensor>,
    /// Its pixels until then.
    pub(super) screenshot: Option<Screenshot>,
    pub(super) hash: ImageHash,
}

/// What a session waits for.
#[derive(Debug)]
pub(super) enum Work {
    /// Nothing: its desktop acts.
    Idle,
    /// Its newest tokens are to be computed, then to be answered.
    Prefill(Job),
    /// Its reply is under way.
    Decode(Reply),
}

/// What comes after a prefill.
#[derive(Debug)]
pub(super) enum Job {
    /// A reply.
    Generate(Reply),
    /// Log-probabilities of these tokens if they were appended.
    Score {
        /// The tokens.
        ids: Vec<u32>,
        /// The weights that judge.
        prepared: Rc<Prepared>,
    },
}

/// A reply under way.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) params: SamplingParams,
    pub(super) first_token: usize,
    pub(super) logprobs: Vec<f32>,
    pub(super) prepared: Rc<Prepared>,
}

impl Work {
    /// The weights it is to be done with.
    pub(super) fn prepared(&self) -> Option<&Rc<Prepared>> {
        match self {
            Self::Idle => None,
            Self::Prefill(Job::Score { prepared, .. }) => Some(prepared),
            Self::Prefill(Job::Generate(reply)) | Self::Decode(reply) => Some(&reply.prepared),
        }
    }
}

impl Session {
    pub(super) fn new(episode: EpisodeId, seed: u64) -> Self {
        Self {
            episode,
            ids: Vec::new(),
            positions: Vec::new(),
            images: Vec::new(),
            slot: None,
            kv_len: 0,
            kv_epoch: 0,
            computed_len: 0,
            sampled_end: 0,
            last_used_tick: 0,
            work: Work::Idle,
            weights: None,
            cursor: PositionCursor::default(),
            sampler: Sampler::new(seed),
        }
    }

    /// The same content for another episode; its KV is copied by the caller, if at all.
    pub(super) fn fork(&self, episode: EpisodeId, seed: u64) -> Self {
        let images = self.images.iter().map(|image| SessionImage {
            first_token: image.first_token,
            features: image.features.as_ref().map(Tensor::shallow_clone),
            screenshot: image.screenshot.clone(),
            hash: image.hash.clone(),
        });
        Self {
            ids: self.ids.clone(),
            positions: self.positions.clone(),
            images: images.collect(),
            cursor: self.cursor,
            sampled_end: self.sampled_end,
            weights: self.weights,
            ..Self::new(episode, seed)
        }
    }

    /// Appends prompt tokens with their images, whose grids in patches are `grids`.
    pub(super) fn append_prompt(
        &mut self,
        config: &ModelConfig,
        ids: &[u32],
        screenshots: Vec<Screenshot>,
        grids: &[[i64; 3]],
    ) -> Result<(), ModelError> {
        let positions = self.cursor.extend(config, ids, grids)?;
        let mut from = 0;
        for (screenshot, grid) in screenshots.into_iter().zip(grids) {
            let is_placeholder = |id: &u32| i64::from(*id) == config.image_token_id;
            let first = from + ids[from..].iter().position(is_placeholder).unwrap_or(0);
            from =
                first + grid.iter().product::<i64>() as usize / config.vision.merge_unit() as usize;
            self.images.push(SessionImage {
                first_token: self.ids.len() + first,
                features: None,
                hash: screenshot.hash().clone(),
                screenshot: Some(screenshot),
            });
        }
        self.ids.extend_from_slice(ids);
        self.positions.extend(positions);
        Ok(())
    }

    /// Positions that `ids` would get if appended.
    pub(super) fn next_positions(&self, count: usize) -> impl Iterator<Item = Position> {
        let next = self.cursor.next();
        (next..next + count as i64).map(|position| [position; 3])
    }

    /// Appends a token drawn from `logits` `[vocab]` and says whether the reply is finished.
    pub(super) fn append_sampled(
        &mut self,
        config: &ModelConfig,
        next: Distribution<'_>,
        limits: &ReplyLimits<'_>,
    ) -> Option<FinishReason> {
        let reply = match &mut self.work {
            Work::Decode(reply) | Work::Prefill(Job::Generate(reply)) => reply,
            Work::Idle | Work::Prefill(Job::Score { .. }) => return None,
        };
        let Sampled { id, logprob } = self.sampler.sample(next, &reply.params);
        reply.logprobs.push(logprob);
        let (sampled, max_tokens) = (reply.logprobs.len(), reply.params.max_tokens);
        let position = self
            .cursor
            .extend(config, &[id], &[])
            .expect("the image placeholder is never sampled");
        self.ids.push(id);
        self.positions.extend(position);
        self.sampled_end = self.ids.len();
        if limits.stop_ids.contains(&id) {
            Some(FinishReason::Stop)
        } else if max_tokens <= sampled {
            Some(FinishReason::Length)
        } else {
            (limits.context_tokens <= self.ids.len()).then_some(FinishReason::Context)
        }
    }

    /// Temperature at which the reply under way is sampled; 1 for scoring.
    pub(super) fn temperature(&self) -> f32 {
        match &self.work {
            Work::Decode(reply) | Work::Prefill(Job::Generate(reply)) => reply.params.temperature,
            Work::Idle | Work::Prefill(Job::Score { .. }) => 1.0,
        }
    }

    /// Ends the reply under way.
    pub(super) fn finish(&mut self, finish: FinishReason) -> Option<Generation> {
        match std::mem::replace(&mut self.work, Work::Idle) {
            Work::Decode(reply) | Work::Prefill(Job::Generate(reply)) => Some(Generation {
                ids: self.ids[reply.first_token..].to_vec(),
                logprobs: reply.logprobs,
                finish,
                version: reply.prepared.version(),
            }),
            Work::Idle | Work::Prefill(Job::Score { .. }) => None,
        }
    }
}

/// What ends a reply.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReplyLimits<'a> {
    /// Tokens that end a turn.
    pub(super) stop_ids: &'a [u32],
    /// Most tokens of a session.
    pub(super) context_tokens: usize,
}

impl Prepared {
    /// Which weights these are.
    pub(super) fn version(&self) -> PolicyVersion {
        self.weights.version
    }
}
