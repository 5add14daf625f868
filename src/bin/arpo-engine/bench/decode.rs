//! `arpo bench decode`: a reply's time beside `transformers.generate` and beside a hand-batched
//! PyTorch loop with a static cache, and what a 15-step episode costs.
//!
//! The same checkpoint, pictures, batch and one thread each; the three take turns, round after
//! round, so that a busy machine slows all of them, and ratios are medians over rounds. A reply
//! is everything: pictures encoded, prompt prefilled, tokens decoded greedily.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, bail, ensure};
use arpo::policy::{Extension, FinishReason, SamplingParams, SessionId};
use arpo::screen::{ProcessorConfig, preprocess};
use arpo::types::{EpisodeId, ScreenSize, Screenshot};
use serde::{Deserialize, Serialize};
use tch::{Device, Kind, Tensor};

use crate::engine::{Completion, Lane, LaneSpec};
use crate::model::qwen2_5_vl::rope::merged_grid;
use crate::model::{Weights, checkpoint};

/// The peers' code.
const PEER: &str = include_str!("../../../../assets/bench/decode_peer.py");

/// Batches compared: one desktop, and a lane's worth.
const BATCHES: [usize; 2] = [1, 16];

/// Tokens of text in a prompt, about what a first step has beside its screenshot.
const TEXT_TOKENS: usize = 30;

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
    /// Share of tokens on which we and the loop agree.
    pub agreement: f64,
}

/// Runs the comparison on the checkpoint in `folder` with the reference `python`.
pub fn run(folder: &Path, python: &Path) -> anyhow::Result<DecodeReport> {
    tch::set_num_threads(1);
    let _no_grad = tch::no_grad_guard();
    let weights = checkpoint::load(folder, Device::Cpu, Kind::Float)?;
    let processor = ProcessorConfig::open(folder)?;
    let bench = Bench { weights, processor };
    let scratch = std::env::temp_dir().join(format!("arpo-bench-{}", std::process::id()));
    std::fs::create_dir_all(&scratch).context("cannot create a scratch folder")?;
    let inputs = scratch.join("inputs.safetensors");
    let report = bench
        .write_inputs(&inputs)
        .and_then(|()| Peer::start(python, folder, &inputs))
        .and_then(|mut peer| bench.compare(&mut peer));
    // A left-over scratch folder is no reason to withhold the figures.
    let _ = std::fs::remove_dir_all(&scratch);
    report
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
        let (mut ratios_generate, mut ratios_loop, mut seconds) = (vec![], vec![], vec![]);
        let mut agreement = 0.0;
        for round in 0..ROUNDS {
            let ours = self.answer(&mut lane, round, batch)?;
            let generate = peer.answer("generate", batch)?;
            let by_hand = peer.answer("loop", batch)?;
            if round == 0 {
                agreement = share_equal(&ours.ids, &by_hand.ids);
                continue;
            }
            ratios_generate.push(ours.seconds / generate.seconds);
            ratios_loop.push(ours.seconds / by_hand.seconds);
            seconds.push(ours.seconds);
        }
        Ok(BatchReport {
            batch,
            ratio_generate: median(ratios_generate),
            ratio_loop: median(ratios_loop),
            tokens_per_s: (batch * NEW_TOKENS) as f64 / median(seconds),
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
        while let Some(report) = lane.tick() {
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
        Ok(Turn { seconds, ids })
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
        // Past the special tokens.
        let text = (0..TEXT_TOKENS).map(|i| (8 + (seed * 37 + i * 11) % 800) as u32);
        let mut ids: Vec<u32> = text.collect();
        ids.splice(TEXT_TOKENS - 4..TEXT_TOKENS - 4, placeholders);
        Ok(Extension {
            ids,
            images: vec![screenshot],
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

/// The peers' process.
struct Peer {
    child: Child,
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    torch: String,
}

/// The first line it writes.
#[derive(Deserialize)]
struct Greeting {
    torch: String,
}

impl Peer {
    fn start(python: &Path, checkpoint: &Path, inputs: &Path) -> anyhow::Result<Self> {
        let mut child = Command::new(python)
            .args(["-c", PEER])
            .args([checkpoint, inputs])
            // One thread in every library it may load.
            .envs([("OMP_NUM_THREADS", "1"), ("MKL_NUM_THREADS", "1")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}; run `just setup-ref`", python.display()))?;
        let requests = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().context("the peer has no output")?);
        let mut peer = Self {
            child,
            requests,
            answers,
            torch: String::new(),
        };
        let greeting: Greeting = peer.read()?;
        peer.torch = greeting.torch;
        Ok(peer)
    }

    /// A peer's turn.
    fn answer(&mut self, peer: &str, batch: usize) -> anyhow::Result<Turn> {
        let request = serde_json::json!({"peer": peer, "batch": batch, "new_tokens": NEW_TOKENS});
        let requests = self.requests.as_mut().context("the peer has no input")?;
        writeln!(requests, "{request}").context("the peer has ended")?;
        self.read()
    }

    /// Its next line.
    fn read<T: for<'de> Deserialize<'de>>(&mut self) -> anyhow::Result<T> {
        let mut line = String::new();
        self.answers
            .read_line(&mut line)
            .context("the peer has ended")?;
        serde_json::from_str(&line).context("the peer failed; its error is above")
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It ends with its input; waiting only keeps it from staying behind as a zombie.
        self.requests = None;
        let _ = self.child.wait();
    }
}

/// The reference Python: `ARPO_REF_PYTHON`, else what `just setup-ref` made.
pub fn reference_python() -> PathBuf {
    std::env::var_os("ARPO_REF_PYTHON").map_or_else(
        || arpo::config::assets::locate(".venv-ref/bin/python"),
        PathBuf::from,
    )
}

/// Share of equal tokens.
fn share_equal(ours: &[Vec<u32>], theirs: &[Vec<u32>]) -> f64 {
    let pairs = ours.iter().flatten().zip(theirs.iter().flatten());
    let equal = pairs.filter(|(ours, theirs)| ours == theirs).count();
    equal as f64 / ours.iter().flatten().count().max(1) as f64
}

/// The middle value.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
