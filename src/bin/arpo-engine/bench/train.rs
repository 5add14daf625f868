//! `arpo bench train`: an update's time beside a hand-batched PyTorch loop's.
//!
//! The shipped agent's own trajectories on the profile's tasks, the profile's loss and optimizer.
//! An update is forward, backward, clipping and the optimizer's step. Where the profile freezes
//! the vision tower, both sides have the screenshots' features already. With n threads the
//! trainer computes n lanes of one thread each, the loop runs with n intra-op threads, in the
//! better of two layouts. Turns alternate, round after round, so that a busy machine slows both;
//! ratios are medians over rounds.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use arpo::cli::bench::median;
use arpo::cli::wiring;
use arpo::config::{Profile, Schedule};
use arpo::evaluator::Scorer;
use arpo::event::Purpose;
use arpo::grpo::{TrainSample, weights as sample_weights};
use arpo::policy::SamplingParams;
use arpo::rollout::{
    Clock, CollectSpec, Collected, Debugger, EpisodeContext, GateHandle, Job, Outcome, Recorder,
    Steering, collect,
};
use arpo::session::{TaskPool, open_desktops};
use arpo::types::{Iteration, derive_seed};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tch::{Device, Kind, Tensor};

use super::peer::{Peer, Scratch};
use crate::engine::{Embedded, EmbeddedSpec};
use crate::model::qwen2_5_vl::rope::rope_index;
use crate::model::{Weights, checkpoint};
use crate::trainer::features::FeatureCache;
use crate::trainer::{Trainer, TrainerConfig};

/// The peer's code.
const PEER: &str = include_str!("../../../../assets/bench/train_peer.py");

/// Tasks rolled out, as many times each as the second says: an update of the demo's.
const TASKS: usize = 4;
const GROUP_SIZE: u32 = 8;

/// Turns that each side takes. The first is not counted: memory is mapped then.
const ROUNDS: usize = 8;

/// What the command prints.
#[derive(Debug, Serialize)]
pub(super) struct TrainReport {
    /// Our time over the loop's with as many threads as there are cores; below 1 is faster.
    pub(super) ratio: f64,
    /// Trajectories an update learns from.
    pub(super) trajectories: usize,
    /// Their tokens.
    pub(super) tokens: usize,
    /// Those that the loss is over.
    pub(super) tokens_sampled: usize,
    /// Their steps, one screenshot each.
    pub(super) steps: usize,
    /// One entry per count of threads.
    pub(super) by_threads: Vec<ThreadsReport>,
    /// The peer's PyTorch.
    pub(super) torch: String,
}

/// One count of threads.
#[derive(Debug, Serialize)]
pub(super) struct ThreadsReport {
    /// Our lanes of one thread each, and the loop's intra-op threads.
    pub(super) threads: usize,
    /// Our time over the loop's.
    pub(super) ratio: f64,
    /// Our update, s.
    pub(super) update_s: f64,
    /// The loop's, s.
    pub(super) peer_update_s: f64,
    /// The layout in which the loop is faster: `grouped` by length or `whole`.
    pub(super) peer_layout: String,
    /// Difference of the first update's gradient norms, relative: both do the same work.
    pub(super) grad_norm_error: f64,
}

/// The peer's turn.
#[derive(Debug, Deserialize)]
struct Turn {
    seconds: f64,
    grad_norm: f64,
    layout: String,
}

/// Runs the comparison on the profile's checkpoint.
pub(super) fn run(profile: &Profile) -> anyhow::Result<TrainReport> {
    ensure!(
        profile.optimizer.freeze_vision,
        "the comparison is of training with a frozen vision tower: set optimizer.freeze_vision"
    );
    tch::set_num_threads(1);
    let folder = wiring::checkpoint_path(profile);
    let weights = checkpoint::load(&folder, Device::Cpu, Kind::Float)
        .with_context(|| format!("policy.checkpoint {}", folder.display()))?;
    let bench = Bench::new(profile, weights)?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let scratch = Scratch::new()?;
    let inputs = scratch.file("inputs.safetensors");
    bench.write_inputs(&inputs)?;
    let mut peer = Peer::start(PEER, &folder, &inputs, cores)?;
    let counts = if cores == 1 { vec![1] } else { vec![cores, 1] };
    let by_threads = counts
        .into_iter()
        .map(|threads| bench.compare(&mut peer, threads))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let samples = || bench.samples.iter();
    Ok(TrainReport {
        ratio: by_threads[0].ratio,
        trajectories: bench.samples.len(),
        tokens: samples().map(|sample| sample.ids.len()).sum(),
        tokens_sampled: samples().map(TrainSample::num_sampled).sum(),
        steps: samples().map(|sample| sample.images.len()).sum(),
        by_threads,
        torch: peer.torch.clone(),
    })
}

/// What both sides compute on.
struct Bench<'a> {
    profile: &'a Profile,
    weights: Weights,
    samples: Vec<TrainSample>,
    /// Log-probabilities under `weights`, one list a sample.
    old_logprobs: Vec<Vec<f32>>,
}

impl<'a> Bench<'a> {
    fn new(profile: &'a Profile, weights: Weights) -> anyhow::Result<Self> {
        let mut samples = roll_out(profile, &weights)?;
        let tokens: Vec<usize> = samples.iter().map(TrainSample::num_sampled).collect();
        let signal = vec![true; samples.len()];
        let loss_weights = sample_weights(&tokens, &signal, profile.grpo.denominator);
        for (sample, weight) in samples.iter_mut().zip(loss_weights) {
            sample.weight = weight;
        }
        let mut bench = Self {
            profile,
            weights,
            samples,
            old_logprobs: Vec::new(),
        };
        let mut trainer = bench.trainer(1)?;
        bench.old_logprobs = trainer.old_logprobs(&bench.samples)?.logprobs;
        Ok(bench)
    }

    fn trainer(&self, lanes: usize) -> anyhow::Result<Trainer> {
        let config = TrainerConfig {
            grpo: self.profile.grpo,
            optimizer: self.profile.optimizer,
            replayed_old_logprobs: self.profile.replay.old_logprobs,
            temperature: self.profile.sampling.temperature,
            num_lanes: lanes,
        };
        let processor = wiring::open_prompt(self.profile)?.processor().clone();
        Ok(Trainer::new(&self.weights, processor, config))
    }

    /// Rounds with one count of threads, from the same weights.
    fn compare(&self, peer: &mut Peer, threads: usize) -> anyhow::Result<ThreadsReport> {
        let mut trainer = self.trainer(threads)?;
        // Its screenshots' features are there from the iteration's first phase.
        trainer.old_logprobs(&self.samples)?;
        let mut report = ThreadsReport {
            threads,
            ratio: f64::NAN,
            update_s: f64::NAN,
            peer_update_s: f64::NAN,
            peer_layout: String::new(),
            grad_norm_error: f64::NAN,
        };
        let (mut ratios, mut ours, mut theirs) = (vec![], vec![], vec![]);
        for round in 0..ROUNDS {
            let (seconds, grad_norm) = self.update(&mut trainer, round)?;
            let turn: Turn = peer.ask(&self.request(threads, round == 0))?;
            if round == 0 {
                report.grad_norm_error = (turn.grad_norm / grad_norm - 1.0).abs();
                report.peer_layout = turn.layout;
                continue;
            }
            ratios.push(seconds / turn.seconds);
            ours.push(seconds);
            theirs.push(turn.seconds);
        }
        report.ratio = median(ratios);
        report.update_s = median(ours);
        report.peer_update_s = median(theirs);
        Ok(report)
    }

    /// Our turn: seconds, and the gradient's norm.
    fn update(&self, trainer: &mut Trainer, round: usize) -> anyhow::Result<(f64, f64)> {
        let samples: Vec<&TrainSample> = self.samples.iter().collect();
        let old: Vec<&[f32]> = self.old_logprobs.iter().map(Vec::as_slice).collect();
        let started = Instant::now();
        let report = trainer.update(&samples, &old, Iteration(0), round as u32)?;
        Ok((started.elapsed().as_secs_f64(), report.grad_norm.0))
    }

    /// What the peer is asked: an update; the first one of a comparison from the checkpoint.
    fn request(&self, threads: usize, fresh: bool) -> serde_json::Value {
        let optimizer = &self.profile.optimizer;
        let grpo = &self.profile.grpo;
        json!({
            "threads": threads,
            "fresh": fresh,
            "lr": optimizer.lr,
            "betas": optimizer.betas,
            "eps": optimizer.eps,
            "weight_decay": optimizer.weight_decay,
            "grad_clip_norm": optimizer.grad_clip_norm,
            "temperature": self.profile.sampling.temperature,
            "clip_low": grpo.clip_low,
            "clip_high": grpo.clip_high,
            "clip_dual": grpo.clip_dual,
        })
    }

    /// The trajectories for the peer, one after another; `lengths` tells them apart.
    fn write_inputs(&self, path: &Path) -> anyhow::Result<()> {
        let config = &self.weights.config;
        let mut features = FeatureCache::default();
        let images = self.samples.iter().flat_map(|sample| &sample.images);
        let processor = wiring::open_prompt(self.profile)?.processor().clone();
        features.prepare(&self.weights, &processor, images, 1)?;
        let (mut ids, mut mask, mut lengths) = (Vec::new(), Vec::new(), Vec::new());
        let (mut positions, mut pictures) = (Vec::new(), Vec::new());
        for sample in &self.samples {
            ids.extend(sample.ids.iter().map(|id| i64::from(*id)));
            mask.extend(sample.mask.iter().map(|sampled| i64::from(*sampled)));
            lengths.push(sample.ids.len() as i64);
            let seen = sample.images.iter().map(|image| features.get(image.hash()));
            let (tensors, grids): (Vec<Tensor>, Vec<[i64; 3]>) = seen.unzip();
            pictures.extend(tensors);
            positions.push(rope_index(config, &[(&sample.ids, &grids)])?.squeeze_dim(1));
        }
        let per_sample = |value: &dyn Fn(&TrainSample) -> f32| -> Tensor {
            Tensor::from_slice(&self.samples.iter().map(value).collect::<Vec<f32>>())
        };
        let tensors = [
            ("ids", Tensor::from_slice(&ids)),
            ("mask", Tensor::from_slice(&mask)),
            ("lengths", Tensor::from_slice(&lengths)),
            ("positions", Tensor::cat(&positions, 1)), // [3, tokens]
            ("features", Tensor::cat(&pictures, 0)),   // [merged, hidden]
            (
                "old_logprobs",
                Tensor::from_slice(&self.old_logprobs.concat()),
            ),
            ("advantages", per_sample(&|sample| sample.advantage)),
            ("weights", per_sample(&|sample| sample.weight)),
        ];
        Tensor::write_safetensors(&tensors, path).context("cannot write the peer's inputs")
    }
}

/// An iteration's trajectories by the embedded policy, half of them with a good advantage.
fn roll_out(profile: &Profile, weights: &Weights) -> anyhow::Result<Vec<TrainSample>> {
    let runtime = tokio::runtime::Runtime::new().context("cannot start the runtime")?;
    let outcomes = runtime.block_on(play(profile, weights))?;
    let collected = outcomes.iter().filter_map(Outcome::scored);
    let samples: Vec<TrainSample> = collected.enumerate().map(train_sample).collect();
    ensure!(!samples.is_empty(), "no episode came to its end");
    Ok(samples)
}

async fn play(profile: &Profile, weights: &Weights) -> anyhow::Result<Vec<Outcome>> {
    let prompt = wiring::open_prompt(profile)?;
    let spec = EmbeddedSpec {
        context_tokens: profile.policy.context_tokens,
        stop_ids: vec![prompt.special().turn_end],
        processor: prompt.processor().clone(),
    };
    let policy = Embedded::start(weights, &profile.engine, &spec)?;
    let jobs = jobs(profile)?;
    let mut desktops = open_desktops(profile, jobs.len() as u32)?;
    let (_open, gate) = GateHandle::new();
    let context = EpisodeContext {
        policy: &policy,
        prompt: &prompt,
        speech: &profile.policy,
        sampling: SamplingParams {
            temperature: profile.sampling.temperature as f32,
            top_p: profile.sampling.top_p as f32,
            max_tokens: profile.sampling.max_reply_tokens,
        },
        max_steps: profile.rollout.max_steps,
        protocol: profile.reward.protocol,
        deadline: profile.rollout.deadline(),
        clock: Clock::starting_at(Duration::ZERO),
        gate,
        debugger: Debugger::default(),
        scorer: Scorer::NATIVE,
        recorder: &Recorder::silent(),
    };
    let spec = CollectSpec {
        schedule: Schedule::Async,
        max_rerolls: profile.rollout.max_rerolls,
        incarnation: 0,
        first_episode: 0,
        steering: Steering::default(),
    };
    Ok(collect(&context, &mut desktops, &jobs, spec, &|_| ())
        .await
        .outcomes)
}

fn jobs(profile: &Profile) -> anyhow::Result<Vec<Job>> {
    let tasks = wiring::tasks_of(&profile.tasks.pool)?;
    let pool = TaskPool::new(tasks, profile.run.seed, profile.tasks.shuffle)?;
    let tasks = pool.batch(0, TASKS).into_iter().enumerate();
    Ok(tasks
        .flat_map(|(index, task)| {
            (0..GROUP_SIZE).map(move |sample| {
                let seed = derive_seed(profile.run.seed, &[index as u64, u64::from(sample)]);
                Job {
                    sample,
                    ..Job::alone(Arc::clone(&task), Purpose::Train, seed)
                }
            })
        })
        .collect())
}

fn train_sample((index, collected): (usize, &Collected)) -> TrainSample {
    let tokens = &collected.episode.tokens;
    TrainSample {
        episode: collected.episode.id,
        ids: tokens.ids().to_vec(),
        mask: tokens.mask().to_vec(),
        sampler_logprobs: tokens.sampler_logprobs().to_vec(),
        images: collected.screenshots.clone(),
        // None is 0: those would be left out.
        advantage: if index % 2 == 0 { 1.0 } else { -1.0 },
        weight: 0.0,
        replayed: false,
    }
}
