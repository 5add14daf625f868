//! Episodes: JSON for people, and the token stream in a binary file beside it.
//!
//! `episodes/0000/0-000123.json` holds everything but the tokens; `0-000123.tokens` holds those:
//!
//! ```text
//! "ARPOTOKS"  u32 version = 1     body of the sealed file:
//! u32 n  u32 id × n  u8 mask × n  f32 log-prob × n     log-probs bit for bit
//! ```
//!
//! The JSON is renamed into place last: an episode is there once it is.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::store::atomic::{self, Durability};
use crate::store::sealed::{Body, Seal};
use crate::store::{RunDir, StoreError};
use crate::types::{
    BranchOrigin, Episode, EpisodeEnd, EpisodeId, FailedEpisode, GroupId, ImageHash, Reward, Step,
    TaskId, TokenStream,
};

const SEAL: Seal = Seal {
    name: b"ARPOTOKS",
    version: 1,
    what: "token file",
};

/// `Episode` with its tokens counted.
#[derive(Serialize, Deserialize)]
struct EpisodeRecord {
    id: EpisodeId,
    task: TaskId,
    group: Option<GroupId>,
    sample: u32,
    seed: u64,
    end: EpisodeEnd,
    reward: Reward,
    state_score: f32,
    infeasible: bool,
    human_touched: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    branched_from: Option<BranchOrigin>,
    tokens: usize,
    sampled_tokens: usize,
    steps: Vec<Step>,
    final_screenshot: Option<ImageHash>,
}

impl RunDir {
    /// Stores an episode. Storing one again replaces it.
    pub fn put_episode(&self, episode: &Episode) -> Result<(), StoreError> {
        let path = self.episode_path(episode.id, "tokens");
        atomic::write(&path, &encode_tokens(&episode.tokens), Durability::Process)?;
        let record = EpisodeRecord {
            id: episode.id,
            task: episode.task.clone(),
            group: episode.group,
            sample: episode.sample,
            seed: episode.seed,
            end: episode.end,
            reward: episode.reward,
            state_score: episode.state_score,
            infeasible: episode.infeasible,
            human_touched: episode.human_touched,
            branched_from: episode.branched_from.clone(),
            tokens: episode.tokens.len(),
            sampled_tokens: episode.tokens.num_sampled(),
            steps: episode.steps.clone(),
            final_screenshot: episode.final_screenshot.clone(),
        };
        write_json(&self.episode_path(episode.id, "json"), &record)
    }

    /// Stores what is known of an episode that an error ended.
    pub fn put_failed_episode(&self, episode: &FailedEpisode) -> Result<(), StoreError> {
        write_json(&self.episode_path(episode.id, "failed.json"), episode)
    }

    /// A stored episode with its tokens.
    pub fn episode(&self, id: EpisodeId) -> Result<Episode, StoreError> {
        let record = self.episode_record(id)?;
        let path = self.episode_path(id, "tokens");
        let bytes = fs::read(&path).map_err(|error| self.no_episode(id, &path, error))?;
        let tokens = decode_tokens(&path, &bytes)?;
        if tokens.len() != record.tokens {
            let reason = format!("it has {} tokens, not {}", tokens.len(), record.tokens);
            return Err(StoreError::damaged(&path, reason));
        }
        Ok(record.into_episode(tokens))
    }

    /// A stored episode without its tokens, which people do not read.
    pub fn episode_without_tokens(&self, id: EpisodeId) -> Result<Episode, StoreError> {
        let record = self.episode_record(id)?;
        Ok(record.into_episode(TokenStream::default()))
    }

    /// What is known of an episode that an error ended.
    pub fn failed_episode(&self, id: EpisodeId) -> Result<FailedEpisode, StoreError> {
        self.read_json(id, &self.episode_path(id, "failed.json"))
    }

    /// Whether the episode is stored.
    pub fn has_episode(&self, id: EpisodeId) -> bool {
        self.episode_path(id, "json").exists()
    }

    /// Path of an episode's file. Folders hold a thousand numbers each.
    pub(super) fn episode_path(&self, id: EpisodeId, extension: &str) -> PathBuf {
        let folder = format!("{:04}", id.number / 1000);
        let file = format!("{id}.{extension}");
        self.root().join("episodes").join(folder).join(file)
    }

    fn episode_record(&self, id: EpisodeId) -> Result<EpisodeRecord, StoreError> {
        self.read_json(id, &self.episode_path(id, "json"))
    }

    fn read_json<T: for<'de> Deserialize<'de>>(
        &self,
        id: EpisodeId,
        path: &Path,
    ) -> Result<T, StoreError> {
        let text = fs::read(path).map_err(|error| self.no_episode(id, path, error))?;
        serde_json::from_slice(&text).map_err(|error| StoreError::damaged(path, error.to_string()))
    }

    fn no_episode(&self, id: EpisodeId, path: &Path, error: io::Error) -> StoreError {
        match error.kind() {
            io::ErrorKind::NotFound => StoreError::NoEpisode {
                id,
                path: self.root().to_owned(),
            },
            _ => StoreError::io("read", path)(error),
        }
    }
}

impl EpisodeRecord {
    fn into_episode(self, tokens: TokenStream) -> Episode {
        Episode {
            id: self.id,
            task: self.task,
            group: self.group,
            sample: self.sample,
            seed: self.seed,
            steps: self.steps,
            final_screenshot: self.final_screenshot,
            tokens,
            end: self.end,
            state_score: self.state_score,
            infeasible: self.infeasible,
            reward: self.reward,
            human_touched: self.human_touched,
            branched_from: self.branched_from,
        }
    }
}

fn write_json(path: &Path, value: &impl Serialize) -> Result<(), StoreError> {
    let mut text = serde_json::to_vec_pretty(value)
        .map_err(|error| StoreError::damaged(path, error.to_string()))?;
    text.push(b'\n');
    atomic::write(path, &text, Durability::Process)
}

/// The token file's bytes.
pub(super) fn encode_tokens(tokens: &TokenStream) -> Vec<u8> {
    let n = u32::try_from(tokens.len()).expect("no context holds 2^32 tokens");
    let mut body = n.to_le_bytes().to_vec();
    body.extend(tokens.ids().iter().flat_map(|id| id.to_le_bytes()));
    body.extend(tokens.mask().iter().map(|&sampled| u8::from(sampled)));
    let logprobs = tokens.sampler_logprobs().iter();
    body.extend(logprobs.flat_map(|logprob| logprob.to_le_bytes()));
    SEAL.seal(&body)
}

/// The tokens in a token file's bytes; `path` is for messages.
pub(super) fn decode_tokens(path: &Path, bytes: &[u8]) -> Result<TokenStream, StoreError> {
    read_tokens(SEAL.open(path, bytes)?)
        .ok_or_else(|| StoreError::damaged(path, "its length does not match"))
}

fn read_tokens(mut body: Body<'_>) -> Option<TokenStream> {
    let n = body.u32()? as usize;
    let (ids, mask, logprobs) = (body.u32s(n)?, body.bytes(n)?, body.f32s(n)?);
    body.end()?;
    Some(assemble(&ids, mask, &logprobs))
}

/// Puts runs of prompt and of sampled tokens together again.
fn assemble(ids: &[u32], mask: &[u8], logprobs: &[f32]) -> TokenStream {
    let mut tokens = TokenStream::default();
    let mut start = 0;
    for run in mask.chunk_by(|a, b| a == b) {
        let range = start..start + run.len();
        start = range.end;
        if run[0] == 0 {
            tokens.push_prompt(&ids[range]);
        } else {
            tokens.push_sampled(&ids[range.clone()], &logprobs[range]);
        }
    }
    tokens
}
