//! The trainer: gradients of whole trajectories over lanes, the optimizer, and the master
//! weights.
//!
//! The algorithm without tensors is `arpo::grpo`; who is trained on what is decided by the
//! session. Invariants: master weights are float32 and change only in `update`; `publish`
//! hands out copies; the same samples, weights and lane count give the same bits.

pub mod features;
pub mod lanes;
pub mod loss;
pub mod optim;
pub mod rows;
mod signal;
mod state;

#[cfg(test)]
mod tests;

use std::path::PathBuf;

use tch::{Kind, Tensor, no_grad};

use arpo::config::{GrpoConfig, OldLogprobs, OptimizerConfig};
use arpo::event::{F, SampleSignal, UpdateReport};
use arpo::grpo::{LossParams, TrainSample};
use arpo::screen::{ProcessorConfig, ScreenError, preprocess};
use arpo::types::{Iteration, PolicyVersion};

use crate::model::{ModelError, Weights};
use features::{FeatureCache, encode_pixels};
use loss::{LossInputs, LossStats, policy_loss};
use optim::{Optimizer, Rule, StepReport, learning_rate};
use rows::{Row, collate, group_by_length};
use signal::sample_signal;

/// What can go wrong while training.
#[derive(Debug, thiserror::Error)]
pub enum TrainerError {
    /// The network refused a trajectory.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// A screenshot could not be prepared.
    #[error(transparent)]
    Screen(#[from] ScreenError),
    /// A checkpoint's file could not be read or written.
    #[error("cannot {action} {}", .path.display())]
    Io {
        /// `read` or `write`.
        action: &'static str,
        /// Which file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A checkpoint does not fit the profile.
    #[error("{}: {message}", .path.display())]
    State {
        /// Which file.
        path: PathBuf,
        /// What does not fit.
        message: String,
    },
}

/// How to train; from the profile.
#[derive(Clone, Copy, Debug)]
pub struct TrainerConfig {
    /// The loss.
    pub grpo: GrpoConfig,
    /// The optimizer.
    pub optimizer: OptimizerConfig,
    /// What the ratio of a replayed token starts from.
    pub replayed_old_logprobs: OldLogprobs,
    /// What logits were divided by when sampling.
    pub temperature: f64,
    /// Threads with one intra-op thread each.
    pub num_lanes: usize,
}

/// Log-probabilities before an iteration's first update.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OldLogprobsReport {
    /// Of each sample's sampled tokens in order; empty where the advantage is 0.
    pub logprobs: Vec<Vec<f32>>,
    /// Mean of |trainer's - sampler's| over fresh samples' tokens; 0 without any.
    pub gap_mean: f64,
    /// Largest such gap.
    pub gap_max: f64,
}

/// Master weights and optimizer state.
pub struct Trainer {
    config: TrainerConfig,
    processor: ProcessorConfig,
    weights: Weights,
    optimizer: Optimizer,
    features: FeatureCache,
    /// Updates that changed the weights.
    version: PolicyVersion,
    /// Updates tried, skipped ones too; the warm-up counts them.
    updates: u64,
}

impl Trainer {
    /// A trainer over `weights`, which it owns from here on; they become float32.
    pub fn new(weights: &Weights, processor: ProcessorConfig, config: TrainerConfig) -> Self {
        let own = weights.map(|_, tensor| tensor.detach().to_kind(Kind::Float).copy());
        let optimizer = new_optimizer(&config.optimizer, &own);
        Self {
            version: weights.version,
            config,
            processor,
            weights: own,
            optimizer,
            features: FeatureCache::default(),
            updates: 0,
        }
    }

    /// Changes the learning rate from the next update on.
    pub fn set_learning_rate(&mut self, lr: f64) {
        self.config.optimizer.lr = lr;
    }

    /// Changes the clips of the ratio from the next update on.
    pub fn set_clip(&mut self, low: f64, high: f64) {
        self.config.grpo.clip_low = low;
        self.config.grpo.clip_high = high;
    }

    /// Changes the temperature that samples were drawn at, from the next call on.
    pub fn set_temperature(&mut self, temperature: f64) {
        self.config.temperature = temperature;
    }

    /// Updates behind the weights.
    #[cfg(test)]
    pub fn version(&self) -> PolicyVersion {
        self.version
    }

    /// A copy of the weights that later updates do not reach, for the policy.
    pub fn publish(&self) -> Weights {
        let is_trained = self.is_trained();
        self.weights.snapshot(self.version, is_trained)
    }

    /// Log-probabilities under the current weights. Call it before an iteration's first
    /// update. Samples without advantage are skipped: they get no gradient.
    pub fn old_logprobs(
        &mut self,
        samples: &[TrainSample],
    ) -> Result<OldLogprobsReport, TrainerError> {
        let wanted: Vec<&TrainSample> = samples.iter().filter(|s| s.advantage != 0.0).collect();
        self.prepare_features(&wanted)?;
        let jobs = self.jobs(&wanted, &vec![Vec::new(); wanted.len()]);
        let temperature = self.config.temperature;
        let processor = &self.processor;
        let inputs = jobs
            .into_iter()
            .map(|jobs| (self.weights.shallow_clone(), jobs))
            .collect();
        let results = lanes::run(inputs, |_, (weights, jobs): (Weights, Vec<Job<'_>>)| {
            no_grad(|| score(&weights, processor, &jobs, temperature))
        });
        let mut report = OldLogprobsReport {
            logprobs: vec![Vec::new(); samples.len()],
            ..OldLogprobsReport::default()
        };
        let places: Vec<usize> = (0..samples.len())
            .filter(|&i| samples[i].advantage != 0.0)
            .collect();
        for scored in results {
            for (index, logprobs) in scored? {
                report.logprobs[places[index]] = logprobs;
            }
        }
        measure_gap(samples, &mut report);
        self.behave_as_sampled(samples, &mut report);
        Ok(report)
    }

    /// Where the profile wants it, replayed tokens start from the sampler's log-probability;
    /// the clip then bounds their ratio.
    fn behave_as_sampled(&self, samples: &[TrainSample], report: &mut OldLogprobsReport) {
        if self.config.replayed_old_logprobs == OldLogprobs::Recomputed {
            return;
        }
        for (sample, logprobs) in samples.iter().zip(&mut report.logprobs) {
            if sample.replayed && sample.advantage != 0.0 {
                *logprobs = sampler_logprobs(sample).collect();
            }
        }
    }

    /// One update on the samples of a mini-batch; `old_logprobs[i]` belongs to `samples[i]`, as
    /// `old_logprobs` gave it. `iteration` and `update` only label the report.
    pub fn update(
        &mut self,
        samples: &[&TrainSample],
        old_logprobs: &[&[f32]],
        iteration: Iteration,
        update: u32,
    ) -> Result<UpdateReport, TrainerError> {
        let lr = learning_rate(
            self.config.optimizer.lr,
            self.updates,
            self.config.optimizer.warmup_updates,
            u64::MAX,
            0.0,
        );
        let (learned, old): (Vec<&TrainSample>, Vec<Vec<f32>>) = samples
            .iter()
            .zip(old_logprobs)
            .filter(|(sample, _)| sample.advantage != 0.0)
            .map(|(sample, old)| (*sample, old.to_vec()))
            .unzip();
        let (step, stats, signals) = self.step(&learned, &old, lr)?;
        Ok(UpdateReport {
            iteration,
            update,
            policy: self.version,
            loss: F(stats.loss),
            grad_norm: F(step.grad_norm),
            clip_high: F(stats.mean(stats.clipped_high)),
            clip_low: F(stats.mean(stats.clipped_low)),
            approx_kl: F(stats.mean(stats.kl)),
            entropy: F(stats.mean(stats.entropy)),
            ratio_max: F(if stats.tokens > 0.0 {
                stats.ratio_max
            } else {
                1.0
            }),
            ratio_min: F(if stats.tokens > 0.0 {
                stats.ratio_min
            } else {
                1.0
            }),
            learning_rate: F(lr),
            trajectories: samples.len() as u32,
            tokens: stats.tokens as u32,
            skipped: step.skipped,
            ratios: stats.ratios.iter().copied().map(u64::from).collect(),
            samples: signals,
        })
    }

    /// Differentiates and steps. Without anything to learn nothing moves, not even by momentum.
    fn step(
        &mut self,
        learned: &[&TrainSample],
        old_logprobs: &[Vec<f32>],
        lr: f64,
    ) -> Result<(StepReport, LossStats, Vec<SampleSignal>), TrainerError> {
        if learned.is_empty() {
            let step = StepReport {
                grad_norm: 0.0,
                skipped: false,
            };
            return Ok((step, LossStats::default(), Vec::new()));
        }
        self.prepare_features(learned)?;
        let (mut grads, stats, signals) = self.gradients(learned, old_logprobs)?;
        let params = self.trained_params();
        let num_lanes = self.config.num_lanes;
        let step = self.optimizer.step(&params, &mut grads, lr, num_lanes);
        self.updates += 1;
        if !step.skipped {
            self.version.0 += 1;
        }
        Ok((step, stats, signals))
    }

    /// Summed gradients of the trained tensors, and the loss's figures.
    fn gradients(
        &self,
        samples: &[&TrainSample],
        old_logprobs: &[Vec<f32>],
    ) -> Result<(Vec<Tensor>, LossStats, Vec<SampleSignal>), TrainerError> {
        let is_trained = self.is_trained();
        let inputs = self
            .jobs(samples, old_logprobs)
            .into_iter()
            .map(|jobs| (self.weights.leaves(is_trained), jobs))
            .collect();
        let (processor, temperature) = (&self.processor, self.config.temperature);
        let params = LossParams::from(&self.config.grpo);
        let results = lanes::run(inputs, |_, (weights, jobs): (Weights, Vec<Job<'_>>)| {
            differentiate(&weights, processor, &jobs, temperature, params)
        });
        let (mut grads, mut stats) = (Vec::new(), LossStats::default());
        let mut signals = Vec::new();
        for result in results {
            let (lane_grads, lane_stats, lane_signals) = result?;
            grads.push(lane_grads);
            stats = stats.merge(lane_stats);
            signals.extend(lane_signals);
        }
        signals.sort_by_key(|(index, _)| *index);
        let signals = signals.into_iter().map(|(_, signal)| signal).collect();
        Ok((lanes::sum_grads(grads), stats, signals))
    }

    /// Splits samples over the lanes by their length.
    fn jobs<'a>(&self, samples: &[&'a TrainSample], old: &[Vec<f32>]) -> Vec<Vec<Job<'a>>> {
        let jobs = samples
            .iter()
            .zip(old)
            .enumerate()
            .map(|(index, (sample, old))| Job {
                index,
                sample,
                old_logprobs: old.clone(),
                features: self.frozen_features(sample),
            })
            .collect();
        lanes::split_by_cost(jobs, self.config.num_lanes, |job| job.sample.ids.len())
    }

    /// Features of a sample's screenshots where the vision tower is frozen.
    fn frozen_features(&self, sample: &TrainSample) -> Option<Vec<(Tensor, [i64; 3])>> {
        self.config.optimizer.freeze_vision.then(|| {
            let hashes = sample.images.iter().map(arpo::types::Screenshot::hash);
            hashes.map(|hash| self.features.get(hash)).collect()
        })
    }

    /// Makes sure of the features of samples' screenshots where the vision tower is frozen.
    fn prepare_features(&mut self, samples: &[&TrainSample]) -> Result<(), TrainerError> {
        if self.config.optimizer.freeze_vision {
            let screenshots = samples.iter().flat_map(|sample| &sample.images);
            self.features.prepare(
                &self.weights,
                &self.processor,
                screenshots,
                self.config.num_lanes,
            )?;
        }
        Ok(())
    }

    /// Whether a tensor is trained, by its name.
    fn is_trained(&self) -> impl Fn(&str) -> bool + Copy + use<> {
        let freeze_vision = self.config.optimizer.freeze_vision;
        move |name| is_trained(name, freeze_vision)
    }

    /// The trained tensors in the optimizer's order.
    fn trained_params(&self) -> Vec<Tensor> {
        let is_trained = self.is_trained();
        let named = self.weights.named().iter();
        named
            .filter(|(name, _)| is_trained(name))
            .map(|(_, tensor)| tensor.shallow_clone())
            .collect()
    }
}

/// Whether the tensor of this name is trained.
fn is_trained(name: &str, freeze_vision: bool) -> bool {
    !(freeze_vision && name.starts_with("visual."))
}

/// AdamW over the trained tensors.
fn new_optimizer(config: &OptimizerConfig, weights: &Weights) -> Optimizer {
    let rules = optim::OptimizerConfig {
        beta1: config.betas.0,
        beta2: config.betas.1,
        eps: config.eps,
        weight_decay: config.weight_decay,
        muon_momentum: 0.0,
        muon_weight_decay: 0.0,
        max_grad_norm: config.grad_clip_norm,
    };
    let named = weights
        .named()
        .iter()
        .filter(|(name, _)| is_trained(name, config.freeze_vision))
        .map(|(name, tensor)| (name.as_str(), Rule::AdamW, tensor));
    Optimizer::new(rules, named)
}

/// One trajectory's part of a lane's work.
struct Job<'a> {
    /// Its place among the samples given.
    index: usize,
    sample: &'a TrainSample,
    /// `[sampled]`; empty while scoring.
    old_logprobs: Vec<f32>,
    /// Features `[merged, hidden]` and size of each screenshot, where the tower is frozen.
    features: Option<Vec<(Tensor, [i64; 3])>>,
}

/// A lane's trajectories in batches of similar length.
fn batches<'j, 'a>(jobs: &'j [Job<'a>]) -> Vec<Vec<&'j Job<'a>>> {
    let lengths: Vec<usize> = jobs.iter().map(|job| job.sample.ids.len()).collect();
    let groups = group_by_length(&lengths);
    groups
        .into_iter()
        .map(|group| group.into_iter().map(|i| &jobs[i]).collect())
        .collect()
}

/// Log-probabilities `[sampled]` and entropies `[sampled]` of a batch's sampled tokens, row by
/// row.
fn forward_batch(
    weights: &Weights,
    processor: &ProcessorConfig,
    batch: &[&Job<'_>],
    temperature: f64,
) -> Result<(Tensor, Tensor), TrainerError> {
    let (mut features, mut grids) = (Vec::new(), Vec::new());
    for job in batch {
        let pictures = match &job.features {
            Some(features) => features
                .iter()
                .map(|(tensor, grid)| (tensor.shallow_clone(), *grid))
                .collect(),
            None => encode_images(weights, processor, job.sample)?,
        };
        let (tensors, sizes): (Vec<Tensor>, Vec<[i64; 3]>) = pictures.into_iter().unzip();
        features.extend(tensors);
        grids.push(sizes);
    }
    let rows: Vec<Row<'_>> = batch
        .iter()
        .zip(&grids)
        .map(|(job, grids)| Row {
            ids: &job.sample.ids,
            wanted: &job.sample.mask,
            grids,
        })
        .collect();
    let width = weights.config.text.hidden_size;
    let features = if features.is_empty() {
        Tensor::zeros([0, width], (weights.kind(), weights.device()))
    } else {
        Tensor::cat(&features, 0)
    };
    let batch = collate(&weights.config, &rows)?;
    Ok(batch.logprobs(weights, &features, temperature))
}

/// Features of a sample's screenshots with gradient.
fn encode_images(
    weights: &Weights,
    processor: &ProcessorConfig,
    sample: &TrainSample,
) -> Result<Vec<(Tensor, [i64; 3])>, TrainerError> {
    let pixels = sample
        .images
        .iter()
        .map(|screenshot| preprocess(screenshot, processor))
        .collect::<Result<Vec<_>, _>>()?;
    let features = encode_pixels(weights, &pixels);
    Ok(features
        .into_iter()
        .zip(pixels.iter().map(|picture| picture.grid_thw))
        .collect())
}

/// A lane's log-probabilities, each list with its sample's index.
fn score(
    weights: &Weights,
    processor: &ProcessorConfig,
    jobs: &[Job<'_>],
    temperature: f64,
) -> Result<Vec<(usize, Vec<f32>)>, TrainerError> {
    let mut scored = Vec::with_capacity(jobs.len());
    for batch in batches(jobs) {
        let (logprobs, _) = forward_batch(weights, processor, &batch, temperature)?;
        let logprobs = Vec::<f32>::try_from(&logprobs).expect("log-probs are a float vector");
        let mut rest = logprobs.as_slice();
        for job in batch {
            let (own, others) = rest.split_at(job.sample.num_sampled());
            scored.push((job.index, own.to_vec()));
            rest = others;
        }
    }
    Ok(scored)
}

/// A lane's gradients, its figures, and each trajectory's with its place among the samples.
type LaneGradients = (Vec<Tensor>, LossStats, Vec<(usize, SampleSignal)>);

/// `[tokens]` as plain numbers.
fn floats(tensor: &Tensor) -> Vec<f32> {
    Vec::try_from(tensor.detach()).expect("figures of tokens are a float vector")
}

/// A lane's gradients of the trained tensors in the optimizer's order, and its figures.
fn differentiate(
    weights: &Weights,
    processor: &ProcessorConfig,
    jobs: &[Job<'_>],
    temperature: f64,
    params: LossParams,
) -> Result<LaneGradients, TrainerError> {
    let mut stats = LossStats::default();
    let mut signals = Vec::with_capacity(jobs.len());
    let device = weights.device();
    for batch in batches(jobs) {
        let (logprobs, entropies) = forward_batch(weights, processor, &batch, temperature)?;
        let (mut old, mut advantages, mut token_weights) = (Vec::new(), Vec::new(), Vec::new());
        for job in &batch {
            let sampled = job.sample.num_sampled();
            old.extend_from_slice(&job.old_logprobs);
            advantages.resize(advantages.len() + sampled, job.sample.advantage);
            token_weights.resize(token_weights.len() + sampled, job.sample.weight);
        }
        let inputs = LossInputs {
            logprobs: &logprobs,
            old_logprobs: &Tensor::from_slice(&old).to_device(device),
            advantages: &Tensor::from_slice(&advantages).to_device(device),
            weights: &Tensor::from_slice(&token_weights).to_device(device),
        };
        let (loss, batch_stats) = policy_loss(inputs, &entropies, params);
        loss.backward();
        stats = stats.merge(batch_stats);
        let (logprobs, entropies) = (floats(&logprobs), floats(&entropies));
        let (mut logprobs, mut entropies) = (logprobs.as_slice(), entropies.as_slice());
        for job in batch {
            let sampled = job.sample.num_sampled();
            let (own, rest) = logprobs.split_at(sampled);
            let (own_entropies, rest_entropies) = entropies.split_at(sampled);
            (logprobs, entropies) = (rest, rest_entropies);
            let signal = sample_signal(job.sample, own, own_entropies, &job.old_logprobs, params);
            signals.push((job.index, signal));
        }
    }
    let leaves: Vec<Tensor> = weights
        .named()
        .iter()
        .filter(|(_, tensor)| tensor.requires_grad())
        .map(|(_, tensor)| tensor.shallow_clone())
        .collect();
    Ok((lanes::take_grads(&leaves), stats, signals))
}

/// The sampler's log-probabilities of a sample's sampled tokens.
fn sampler_logprobs(sample: &TrainSample) -> impl Iterator<Item = f32> + '_ {
    let sampled = sample.mask.iter().zip(&sample.sampler_logprobs);
    sampled
        .filter(|(sampled, _)| **sampled)
        .map(|(_, logprob)| *logprob)
}

/// How far trainer and sampler are apart on fresh samples.
fn measure_gap(samples: &[TrainSample], report: &mut OldLogprobsReport) {
    let (mut sum, mut count) = (0.0, 0_u64);
    for (sample, logprobs) in samples.iter().zip(&report.logprobs) {
        if sample.replayed {
            continue;
        }
        for (own, sampler) in logprobs.iter().zip(sampler_logprobs(sample)) {
            let gap = f64::from((own - sampler).abs());
            sum += gap;
            count += 1;
            report.gap_max = report.gap_max.max(gap);
        }
    }
    report.gap_mean = sum / count.max(1) as f64;
}
