//! `arpo bench decode`: a reply's time beside `transformers.generate` and beside a hand-batched
//! PyTorch loop with a static cache, and what a 15-step episode costs.
//!
//! The same checkpoint, pictures, batch and one thread each; the three take turns, round after
//! round, so that a busy machine slows all of them, and ratios are medians over rounds. A reply
//! is everything: pictures encoded, prompt prefilled, tokens decoded greedily.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, bail, ensure};
use arpo::cli::bench::median;
use arpo::policy::{Extension, FinishReason, SamplingParams, SessionId};
use arpo::screen::{ProcessorConfig, preprocess};
use arpo::types::{EpisodeId, ScreenSize, Screenshot};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tch::{Device, Kind, Tensor};

use super::peer::{Peer, Scratch};
use crate::engine::{Completion, Lane, LaneSpec};
use crate::model::qwen2_5_vl::rope::merged_grid;
use crate::model::{Weights, checkpoint};

/// The peers' code.
const PEER: &str = include_str!("../../../../assets/bench/decode_peer.py");

/// Batches compared: one desktop, and a lane's worth.
const BATCHES: [usize; 2] = [1, 16];

/// Tokens of text in a prompt, about what a first step has beside its screenshot.
const TEXT_TOKENS: usize = 30;

/// Ids that are kept for other things than text.
const SPECIAL_TOKENS: usize = 8;

/// Tokens of a reply: long enough that decoding dominates, as it does over an episode.
const NEW_TOKENS: usize = 64;

/// Turns that each contestant takes. The first is not counted: memory is mapped then.
const ROUNDS: usize = 9;

/// Steps of the episode whose work is counted.
const EPISODE_STEPS: usize = 15;

/// What the command prints.
#[derive(Debug, Serialize)]
pub struct DecodeReport {
    /// One entry per batch size.
    pub batches: Vec<BatchReport>,
    /// Screenshots that a 15-step episode ran through the vision tower.
    pub images_encoded: u64,
    /// Screenshots that it saw.
    pub images_seen: u64,
    /// Prompt tokens it ran.
    pub tokens_prefilled: u64,
    /// Prompt tokens it was given.
    pub tokens_new: u64,
    /// The peers' PyTorch.
    pub torch: String,
}

/// One batch size.
#[derive(Debug, Serialize)]
pub struct BatchReport {
    /// Sessions answered at the same time.
    pub batch: usize,
    /// Our time over that of `transformers.generate`; below 1 is faster.
    pub ratio_generate: f64,
    /// Our time over that of the hand-batched loop.
    pub ratio_loop: f64,
    /// Tokens sampled by us a second, encoding and prefill included.
    pub tokens_per_s: f64,
    /// Share of our time spent in decoding; the rest encodes pictures and prefills.
    pub decode_share: f64,
    /// Share of tokens on which we and the loop agree.
    pub agreement: f64,
}

/// Runs the comparison on the checkpoint in `folder`.
pub fn run(folder: &Path) -> anyhow::Result<DecodeReport> {
    tch::set_num_threads(1);
    let _no_grad = tch::no_grad_guard();
    let weights = checkpoint::load(folder, Device::Cpu, Kind::Float)?;
    let processor = ProcessorConfig::open(folder)?;
    let bench = Bench { weights, processor };
    let scratch = Scratch::new()?;
    let inputs = scratch.file("inputs.safetensors");
    bench.write_inputs(&inputs)?;
    bench.compare(&mut Peer::start(PEER, folder, &inputs, 1)?)
}

/// What our side needs.
struct Bench {
    weights: Weights,
    processor: ProcessorConfig,
}

/// One contestant's turn.
#[derive(Debug, Deserialize)]
struct Turn {
    seconds: f64,
    /// Of those, in decoding; told by us alone.
    #[serde(default)]
    decode_seconds: f64,
    ids: Vec<Vec<u32>>,
}

impl Bench {
    /// All batch sizes, then the episode.
    fn compare(&self, peer: &mut Peer) -> anyhow::Result<DecodeReport> {
        let batches = BATCHES
            .iter()
            .map(|batch| self.compare_batch(peer, *batch))
            .collect::<Result<_, _>>()?;
        let mut lane = self.lane();
        self.run_episode(&mut lane)?;
        let stats = lane.stats();
        Ok(DecodeReport {
            batches,
            images_encoded: stats.images_encoded,
            images_seen: stats.images_seen,
            tokens_prefilled: stats.tokens_prefilled,
            tokens_new: stats.tokens_new,
            torch: peer.torch.clone(),
        })
    }

    /// Rounds of one batch size.
    fn compare_batch(&self, peer: &mut Peer, batch: usize) -> anyhow::Result<BatchReport> {
        let mut lane = self.lane();
        let (mut ratios_generate, mut ratios_loop) = (vec![], vec![]);
        let (mut seconds, mut decode_shares) = (vec![], vec![]);
        let mut agreement = 0.0;
        for round in 0..ROUNDS {
            let ours = self.answer(&mut lane, round, batch)?;
            let ask = |peer: &mut Peer, who: &str| -> anyhow::Result<Turn> {
                let request = json!({"peer": who, "batch": batch, "new_tokens": NEW_TOKENS});
                peer.ask(&request)
            };
            let generate = ask(peer, "generate")?;
            let by_hand = ask(peer, "loop")?;
            if round == 0 {
                agreement = share_equal(&ours.ids, &by_hand.ids);
                continue;
            }
            ratios_generate.push(ours.seconds / generate.seconds);
            ratios_loop.push(ours.seconds / by_hand.seconds);
            seconds.push(ours.seconds);
            decode_shares.push(ours.decode_seconds / ours.seconds);
        }
        Ok(BatchReport {
            batch,
            ratio_generate: median(ratios_generate),
            ratio_loop: median(ratios_loop),
            tokens_per_s: (batch * NEW_TOKENS) as f64 / median(seconds),
            decode_share: median(decode_shares),
            agreement,
        })
    }

    /// Our turn. Each round has its own pictures, so that none is found in a cache.
    fn answer(&self, lane: &mut Lane, round: usize, batch: usize) -> anyhow::Result<Turn> {
        let prompts: Vec<Extension> = (0..batch)
            .map(|row| self.prompt(round * batch + row))
            .collect::<anyhow::Result<_>>()?;
        let first = (round * batch) as u64;
        let started = Instant::now();
        for (number, prompt) in (first..).zip(prompts) {
            lane.open(SessionId(number), episode(number), number);
            lane.generate(SessionId(number), prompt, GREEDY)?;
        }
        let mut ids = vec![Vec::new(); batch];
        let (mut tick_started, mut decode_seconds) = (started, 0.0);
        while let Some(report) = lane.tick() {
            if report.work.decoded_rows > 0 {
                decode_seconds += tick_started.elapsed().as_secs_f64();
            }
            tick_started = Instant::now();
            for (id, completion) in report.completions {
                let Completion::Generated(generation) = completion else {
                    bail!("session {} was not answered: {completion:?}", id.0);
                };
                ensure!(
                    generation.finish == FinishReason::Length,
                    "a reply ended early"
                );
                ids[(id.0 - first) as usize] = generation.ids;
            }
        }
        let seconds = started.elapsed().as_secs_f64();
        (first..first + batch as u64).for_each(|number| _ = lane.close(SessionId(number)));
        Ok(Turn {
            seconds,
            decode_seconds,
            ids,
        })
    }

    /// One session of 15 steps.
    fn run_episode(&self, lane: &mut Lane) -> anyhow::Result<()> {
        let number = u64::MAX;
        lane.open(SessionId(number), episode(number), 0);
        for step in 0..EPISODE_STEPS {
            let params = SamplingParams {
                max_tokens: 14,
                ..GREEDY
            };
            lane.generate(SessionId(number), self.prompt(1000 + step)?, params)?;
            while lane.tick().is_some() {}
        }
        Ok(())
    }

    /// A lane as the engine has them; no token ends a turn.
    fn lane(&self) -> Lane {
        let spec = LaneSpec {
            context_tokens: EPISODE_STEPS * (TEXT_TOKENS + NEW_TOKENS + 64),
            max_batch: 64,
            kv_budget_bytes: 1 << 30,
            stop_ids: Vec::new(),
            processor: self.processor.clone(),
        };
        Lane::new(self.weights.shallow_clone(), spec)
    }

    /// Text, then a screenshot of noise.
    fn prompt(&self, seed: usize) -> anyhow::Result<Extension> {
        let config = &self.weights.config;
        let screenshot = noise(seed as u64);
        let grid = preprocess(&screenshot, &self.processor)?.grid_thw;
        let merged = merged_grid(&grid, config.vision.spatial_merge_size);
        let placeholders =
            vec![config.image_token_id as u32; merged.iter().product::<i64>() as usize];
        // Past the special tokens, which come first in the shipped vocabulary.
        let words = config.text.vocab_size as usize - SPECIAL_TOKENS;
        let text = (0..TEXT_TOKENS).map(|i| (SPECIAL_TOKENS + (seed * 37 + i * 11) % words) as u32);
        let mut ids: Vec<u32> = text.collect();
        ids.splice(TEXT_TOKENS - 4..TEXT_TOKENS - 4, placeholders);
        Ok(Extension {
            ids,
            images: vec![screenshot],
            replies: Vec::new(),
        })
    }

    /// The first round's prompts for the peers.
    fn write_inputs(&self, path: &Path) -> anyhow::Result<()> {
        let largest = *BATCHES.iter().max().expect("there are batches");
        let (mut ids, mut pixels, mut grids) = (Vec::new(), Vec::new(), Vec::new());
        for row in 0..largest {
            let prompt = self.prompt(row)?;
            ids.extend(prompt.ids.iter().map(|id| i64::from(*id)));
            let values = preprocess(&prompt.images[0], &self.processor)?;
            pixels.extend(values.values);
            grids.extend(values.grid_thw);
        }
        let patch_dim = self.weights.config.vision.patch_dim();
        let tensors = [
            (
                "input_ids",
                Tensor::from_slice(&ids).reshape([largest as i64, -1]),
            ),
            (
                "pixel_values",
                Tensor::from_slice(&pixels).reshape([-1, patch_dim]),
            ),
            ("grid_thw", Tensor::from_slice(&grids).reshape([-1, 3])),
        ];
        Tensor::write_safetensors(&tensors, path).context("cannot write the peers' inputs")
    }
}

const GREEDY: SamplingParams = SamplingParams {
    temperature: 0.0,
    top_p: 1.0,
    max_tokens: NEW_TOKENS,
};

/// Episode of a session.
fn episode(number: u64) -> EpisodeId {
    EpisodeId {
        incarnation: 0,
        number,
    }
}

/// A screenshot of the shipped agent's own size, so that none is resized.
fn noise(seed: u64) -> Screenshot {
    let (width, height) = (224, 168);
    let mut state = arpo::types::derive_seed(seed, &[]) | 1;
    let rgb = (0..width * height * 3).map(|_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    });
    Screenshot::new(ScreenSize { width, height }, rgb.collect())
}

/// Share of equal tokens.
fn share_equal(ours: &[Vec<u32>], theirs: &[Vec<u32>]) -> f64 {
    let pairs = ours.iter().flatten().zip(theirs.iter().flatten());
    let equal = pairs.filter(|(ours, theirs)| ours == theirs).count();
    equal as f64 / ours.iter().flatten().count().max(1) as f64
}
