//! What training made of an episode's tokens: `episodes/0000/0-000123.learned`, beside its token
//! file, and a reply's tokens with everything known of them.
//!
//! Body of the sealed file, all lists over the sampled tokens in order:
//!
//! ```text
//! u64 iteration  u8 replayed  f32 advantage  f64 clip low  f64 clip high  u32 n
//! f32 log-prob × n  f32 old log-prob × n  f32 entropy × n       bit for bit
//! ```
//!
//! A trajectory that is learned from again, out of the replay buffer, leaves its newest figures.
//! The file is there before the event that tells of it.

use std::fs;
use std::io;
use std::path::Path;

use crate::event::{LearnedTokens, ReplyId, ReplyTokens, SampleSignal, TokenSignals};
use crate::store::atomic::{self, Durability};
use crate::store::sealed::{Body, Seal};
use crate::store::{RunDir, StoreError};
use crate::types::{EpisodeId, Iteration};

const SEAL: Seal = Seal {
    name: b"ARPOLRND",
    version: 1,
    what: "file of what was learned",
};

impl RunDir {
    /// Stores what an iteration made of a trajectory's tokens, in the place of what was there.
    pub fn put_learned(
        &self,
        iteration: Iteration,
        sample: &SampleSignal,
    ) -> Result<(), StoreError> {
        let path = self.episode_path(sample.episode, "learned");
        let bytes = encode_learned(iteration, sample);
        atomic::write(&path, &bytes, Durability::Process)
    }

    /// What was learned from an episode's tokens; `None` before, and after it was pruned.
    pub fn learned(&self, id: EpisodeId) -> Result<Option<LearnedTokens>, StoreError> {
        let path = self.episode_path(id, "learned");
        match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(StoreError::io("read", &path)(error)),
            Ok(bytes) => decode_learned(&path, &bytes).map(Some),
        }
    }

    /// A reply's tokens, with all that is known of them.
    pub fn reply_tokens(&self, reply: ReplyId) -> Result<ReplyTokens, StoreError> {
        let episode = self.episode(reply.episode)?;
        let Some(step) = episode.steps.get(reply.step as usize) else {
            return Err(StoreError::NoStep {
                id: reply.episode,
                step: reply.step + 1,
                steps: episode.steps.len(),
            });
        };
        let tokens = &episode.tokens;
        let (start, end) = step.reply_tokens;
        if start > end || end > tokens.len() {
            let path = self.episode_path(reply.episode, "json");
            let reason = format!(
                "the reply of step {} lies outside its tokens",
                reply.step + 1
            );
            return Err(StoreError::damaged(&path, reason));
        }
        let ids = tokens.ids()[start..end].to_vec();
        let pieces = self.texts_of(&ids)?.unwrap_or_default();
        let mut found = ReplyTokens {
            ids,
            pieces,
            ..ReplyTokens::default()
        };
        // A reply is sampled as a whole, or a person wrote it.
        if tokens.mask()[start..end].iter().all(|sampled| *sampled) {
            found.sampler_logprobs = tokens.sampler_logprobs()[start..end].to_vec();
            let before = tokens.mask()[..start].iter().filter(|sampled| **sampled);
            let first = before.count();
            let learned = self.learned(reply.episode)?;
            if let Some(learned) = &learned
                && learned.signals.len() != tokens.num_sampled()
            {
                let path = self.episode_path(reply.episode, "learned");
                let (has, sampled) = (learned.signals.len(), tokens.num_sampled());
                let reason = format!("it has {has} tokens, not {sampled}");
                return Err(StoreError::damaged(&path, reason));
            }
            found.learned = learned.map(|learned| LearnedTokens {
                signals: learned.signals.part(first..first + (end - start)),
                ..learned
            });
        }
        Ok(found)
    }
}

/// The file's bytes.
pub(super) fn encode_learned(iteration: Iteration, sample: &SampleSignal) -> Vec<u8> {
    let signals = &sample.tokens;
    let n = u32::try_from(signals.len()).expect("no context holds 2^32 tokens");
    let mut body = iteration.0.to_le_bytes().to_vec();
    body.push(u8::from(sample.replayed));
    body.extend(signals.advantage.to_le_bytes());
    body.extend(signals.clip_low.to_le_bytes());
    body.extend(signals.clip_high.to_le_bytes());
    body.extend(n.to_le_bytes());
    for floats in [&signals.logprobs, &signals.old_logprobs, &signals.entropies] {
        body.extend(floats.iter().flat_map(|float| float.to_le_bytes()));
    }
    SEAL.seal(&body)
}

/// What is in the file's bytes; `path` is for messages.
pub(super) fn decode_learned(path: &Path, bytes: &[u8]) -> Result<LearnedTokens, StoreError> {
    read_learned(SEAL.open(path, bytes)?)
        .ok_or_else(|| StoreError::damaged(path, "its length does not match"))
}

fn read_learned(mut body: Body<'_>) -> Option<LearnedTokens> {
    let (iteration, replayed) = (Iteration(body.u64()?), body.u8()? != 0);
    let (advantage, clip_low, clip_high) = (body.f32()?, body.f64()?, body.f64()?);
    let n = body.u32()? as usize;
    let signals = TokenSignals {
        advantage,
        clip_low,
        clip_high,
        logprobs: body.f32s(n)?,
        old_logprobs: body.f32s(n)?,
        entropies: body.f32s(n)?,
    };
    body.end()?;
    Some(LearnedTokens {
        iteration,
        replayed,
        signals,
    })
}
