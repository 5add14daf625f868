//! Optimizer and loss against torch's own values (`tests/it/fixtures/trainer/reference.py`
//! makes them) and against the plain-float loss; a small trainer end to end.

use std::sync::Arc;

use serde::Deserialize;
use tch::{Kind, Tensor, no_grad};

use arpo::config::{Denominator, GrpoConfig, OldLogprobs, OptimizerConfig};
use arpo::event::{Clip, UpdateReport};
use arpo::grpo::{LossParams, TrainSample, token_loss};
use arpo::screen::ProcessorConfig;
use arpo::types::{EpisodeId, Iteration, ScreenSize, Screenshot};

use super::loss::{LossInputs, policy_loss};
use super::optim::{self, Optimizer, Rule, learning_rate};
use super::state::weights_hash;
use super::{Trainer, TrainerConfig, lanes};
use crate::model::Weights;
use crate::model::qwen2_5_vl::config::ModelConfig;

#[derive(Deserialize)]
struct OptimizerCase {
    kind: String,
    shape: Vec<i64>,
    start: Vec<f32>,
    grads: Vec<Vec<f32>>,
    steps: Vec<Vec<f32>>,
}

#[derive(Deserialize)]
struct LossCase {
    clip_low: f64,
    clip_high: f64,
    clip_dual: f64,
    old_logprobs: Vec<f32>,
    logprobs: Vec<f32>,
    advantages: Vec<f32>,
    weights: Vec<f32>,
    loss: f64,
    grad: Vec<f32>,
}

const OPTIMIZER_CASES: &str = include_str!("../../../../tests/it/fixtures/trainer/optimizer.json");
const LOSS_CASE: &str = include_str!("../../../../tests/it/fixtures/trainer/loss.json");

/// Largest difference of two float tensors or slices.
fn distance(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter()
        .zip(b)
        .map(|(a, b)| (a - b).abs())
        .fold(0.0, f32::max)
}

fn floats(tensor: &Tensor) -> Vec<f32> {
    Vec::try_from(tensor.detach().to_kind(Kind::Float).reshape([-1])).unwrap()
}

#[test]
fn optimizers_step_as_torch_does() {
    let cases: Vec<OptimizerCase> = serde_json::from_str(OPTIMIZER_CASES).unwrap();
    for case in cases {
        let is_muon = case.kind == "muon";
        let config = optim::OptimizerConfig {
            beta1: 0.9,
            beta2: 0.98,
            eps: 1e-8,
            weight_decay: 0.01,
            muon_momentum: 0.95,
            muon_weight_decay: 0.05,
            max_grad_norm: f64::MAX,
        };
        let rule = if is_muon { Rule::Muon } else { Rule::AdamW };
        let param = Tensor::from_slice(&case.start).reshape(&case.shape);
        let mut optimizer = Optimizer::new(config, [("w", rule, &param)]);
        for (grad, wanted) in case.grads.iter().zip(&case.steps) {
            let mut grads = [Tensor::from_slice(grad).reshape(&case.shape)];
            optimizer.step(&[param.shallow_clone()], &mut grads, 1e-2, 2);
            let gap = distance(&floats(&param), wanted);
            assert!(gap < 2e-6, "{} {:?}: {gap}", case.kind, case.shape);
        }
    }
}

#[test]
fn a_norm_beyond_the_limit_is_scaled_and_an_infinite_one_skipped() {
    let config = optim::OptimizerConfig {
        beta1: 0.0,
        beta2: 0.0,
        eps: 0.0,
        weight_decay: 0.0,
        muon_momentum: 0.0,
        muon_weight_decay: 0.0,
        max_grad_norm: 1.0,
    };
    let param = Tensor::from_slice(&[1.0_f32, 2.0]);
    let mut optimizer = Optimizer::new(config, [("w", Rule::AdamW, &param)]);
    let mut grads = [Tensor::from_slice(&[3.0_f32, 4.0])];
    let report = optimizer.step(&[param.shallow_clone()], &mut grads, 0.1, 1);
    assert!((report.grad_norm - 5.0).abs() < 1e-6 && !report.skipped);
    assert!(distance(&floats(&grads[0]), &[0.6, 0.8]) < 1e-6);
    let before = floats(&param);
    let mut grads = [Tensor::from_slice(&[f32::INFINITY, 0.0])];
    let report = optimizer.step(&[param.shallow_clone()], &mut grads, 0.1, 1);
    assert!(report.skipped && !report.grad_norm.is_finite());
    assert_eq!(floats(&param), before);
    assert_eq!(optimizer.steps(), 1);
}

#[test]
fn the_rate_warms_up_from_the_first_step_and_decays_to_zero() {
    let rate = |step| learning_rate(2.0, step, 4, 100, 0.2);
    // The reference starts at 0 and wastes its first step.
    let cases = [
        (0, 0.5),
        (3, 2.0),
        (4, 2.0),
        (80, 2.0),
        (90, 1.0),
        (99, 0.1),
    ];
    for (step, wanted) in cases {
        assert!(
            (rate(step) - wanted).abs() < 1e-12,
            "step {step}: {}",
            rate(step)
        );
    }
    assert_eq!(learning_rate(2.0, 1_000_000, 0, u64::MAX, 0.0), 2.0);
}

#[test]
fn the_loss_and_its_gradient_are_torchs_and_the_plain_one() {
    let case: LossCase = serde_json::from_str(LOSS_CASE).unwrap();
    let params = LossParams {
        clip_low: case.clip_low,
        clip_high: case.clip_high,
        clip_dual: case.clip_dual,
    };
    let logprobs = Tensor::from_slice(&case.logprobs).set_requires_grad(true);
    let inputs = LossInputs {
        logprobs: &logprobs,
        old_logprobs: &Tensor::from_slice(&case.old_logprobs),
        advantages: &Tensor::from_slice(&case.advantages),
        weights: &Tensor::from_slice(&case.weights),
    };
    let entropies = Tensor::ones([64], (Kind::Float, tch::Device::Cpu));
    let (loss, stats) = policy_loss(inputs, &entropies, params);
    loss.backward();
    assert!((stats.loss - case.loss).abs() < 1e-6);
    assert!(distance(&floats(&logprobs.grad()), &case.grad) < 1e-6);
    let (mut plain, mut high, mut low) = (0.0, 0.0, 0.0);
    for i in 0..case.logprobs.len() {
        let (new, old) = (f64::from(case.logprobs[i]), f64::from(case.old_logprobs[i]));
        let token = token_loss(new, old, f64::from(case.advantages[i]), params);
        plain += token.loss * f64::from(case.weights[i]);
        high += f64::from(u8::from(token.clipped_high));
        low += f64::from(u8::from(token.clipped_low));
    }
    assert!((stats.loss - plain).abs() < 1e-5);
    assert_eq!((stats.clipped_high, stats.clipped_low), (high, low));
    assert_eq!((stats.tokens, stats.entropy), (64.0, 64.0));
    assert!(high > 0.0 && low > 0.0);
}

#[test]
fn lanes_keep_order_and_split_evenly() {
    let doubled = lanes::run(vec![1, 2, 3], |lane, input| (lane, input * 2));
    assert_eq!(doubled, [(0, 2), (1, 4), (2, 6)]);
    let split = lanes::split_by_cost(vec![5, 1, 4, 2, 2], 2, |cost| *cost);
    assert_eq!(split, [vec![5, 2], vec![1, 4, 2]]);
}

/// A network of a few thousand weights whose pictures have four merged patches.
fn small_weights() -> Weights {
    let config = serde_json::json!({
        "model_type": "qwen2_5_vl",
        "image_token_id": 6,
        "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
        "num_attention_heads": 2, "num_key_value_heads": 1, "rms_norm_eps": 1e-6,
        "vocab_size": 24, "rope_theta": 1000.0, "initializer_range": 0.2,
        "rope_scaling": { "type": "mrope", "mrope_section": [2, 3, 3] },
        "tie_word_embeddings": true,
        "vision_config": {
            "depth": 2, "hidden_size": 16, "intermediate_size": 24, "num_heads": 1,
            "patch_size": 14, "window_size": 56, "fullatt_block_indexes": [1],
            "out_hidden_size": 32, "initializer_range": 0.1,
        },
    });
    let config = ModelConfig::parse(&config.to_string()).unwrap();
    Weights::random(Arc::new(config), 7)
}

fn config(freeze_vision: bool, num_lanes: usize) -> TrainerConfig {
    TrainerConfig {
        grpo: GrpoConfig {
            tasks_per_iteration: 1,
            group_size: 2,
            advantage_eps: 1e-6,
            clip_low: 0.2,
            clip_high: 0.3,
            clip_dual: 3.0,
            minibatches: 1,
            epochs: 1,
            denominator: Denominator::Dispatched,
            train_on_human_touched: false,
        },
        optimizer: OptimizerConfig {
            lr: 1e-3,
            betas: (0.9, 0.999),
            eps: 1e-8,
            weight_decay: 0.0,
            grad_clip_norm: 1.0,
            warmup_updates: 0,
            freeze_vision,
        },
        replayed_old_logprobs: OldLogprobs::Recomputed,
        temperature: 1.0,
        num_lanes,
    }
}

fn trainer(freeze_vision: bool, num_lanes: usize) -> Trainer {
    let processor = ProcessorConfig {
        min_pixels: 28 * 28,
        ..ProcessorConfig::default()
    };
    Trainer::new(
        &small_weights(),
        processor,
        config(freeze_vision, num_lanes),
    )
}

/// A trajectory of `turns` turns on pictures of their own.
fn sample(number: u64, turns: usize, advantage: f32) -> TrainSample {
    let (mut ids, mut mask, mut images) = (vec![1, 9], vec![false; 2], Vec::new());
    for turn in 0..turns {
        let shade = (number * 40 + turn as u64 * 90 + 5) as u8;
        let size = ScreenSize {
            width: 56,
            height: 56,
        };
        let rgb = (0..56 * 56 * 3)
            .map(|i| shade.wrapping_mul(i as u8 | 1))
            .collect();
        images.push(Screenshot::new(size, rgb));
        ids.extend([3, 6, 6, 6, 6, 4, 10]);
        mask.extend([false; 7]);
        let said = [11 + number as u32 % 5, 16 + turn as u32, 2];
        ids.extend(said);
        mask.extend([true; 3]);
    }
    let sampled = mask.iter().filter(|sampled| **sampled).count() as f32;
    TrainSample {
        episode: EpisodeId {
            incarnation: 0,
            number,
        },
        sampler_logprobs: vec![-1.0; ids.len()],
        ids,
        mask,
        images,
        advantage,
        weight: 1.0 / (sampled * 3.0),
        replayed: false,
    }
}

fn samples() -> Vec<TrainSample> {
    vec![
        sample(0, 3, 1.5),
        sample(1, 1, -0.5),
        sample(2, 2, 0.0),
        sample(3, 2, -1.0),
    ]
}

/// Runs `count` updates on the same samples.
fn train(trainer: &mut Trainer, count: u32) -> Vec<UpdateReport> {
    let samples = samples();
    (0..count)
        .map(|update| {
            let old = trainer.old_logprobs(&samples).unwrap().logprobs;
            let old: Vec<&[f32]> = old.iter().map(Vec::as_slice).collect();
            let samples: Vec<&TrainSample> = samples.iter().collect();
            trainer
                .update(&samples, &old, Iteration(0), update)
                .unwrap()
        })
        .collect()
}

#[test]
fn an_update_makes_good_trajectories_likelier_and_bad_ones_less_likely() {
    for freeze_vision in [true, false] {
        let mut trainer = trainer(freeze_vision, 2);
        let before = trainer.old_logprobs(&samples()).unwrap();
        let reports = train(&mut trainer, 3);
        let after = trainer.old_logprobs(&samples()).unwrap();
        let sum = |logprobs: &[f32]| logprobs.iter().sum::<f32>();
        assert!(sum(&before.logprobs[0]) < sum(&after.logprobs[0]));
        assert!(sum(&after.logprobs[3]) < sum(&before.logprobs[3]));
        assert!(
            before.logprobs[2].is_empty(),
            "no advantage, no forward pass"
        );
        assert_eq!(before.logprobs[0].len(), 9);
        assert!(before.gap_mean > 0.0 && before.gap_mean <= before.gap_max);
        let first = &reports[0];
        assert_eq!((first.trajectories, first.tokens), (4, 18));
        assert_eq!((first.ratio_max.0, first.ratio_min.0), (1.0, 1.0));
        // Every token has its bin and its reply; before the first step all ratios are 1.
        assert_eq!(first.ratios.iter().sum::<u64>(), 18);
        assert_eq!(first.ratios[arpo::event::RATIO_BINS / 2], 18);
        let told = first.samples.iter().flat_map(|sample| &sample.steps);
        assert_eq!(told.map(|step| step.tokens).sum::<u32>(), 18);
        assert!(first.approx_kl.0.abs() < 1e-9 && first.entropy.0 > 0.0);
        assert_eq!(trainer.version().0, 3);
    }
}

#[test]
fn tokens_are_told_one_by_one_as_their_replies_are() {
    let mut trainer = trainer(true, 2);
    // So narrow that the second update clips on both sides.
    trainer.set_clip(1e-3, 1e-3);
    let samples = samples();
    let old = trainer.old_logprobs(&samples).unwrap().logprobs;
    let given: Vec<&TrainSample> = samples.iter().collect();
    let old: Vec<&[f32]> = old.iter().map(Vec::as_slice).collect();
    let reports = [0, 1, 2].map(|update| {
        let report = trainer.update(&given, &old, Iteration(0), update);
        report.unwrap()
    });
    reports.iter().for_each(check_tokens);
    let last = &reports[2];
    assert!(last.clip_high.0 > 0.0 && last.clip_low.0 > 0.0, "{last:?}");
    // Sample 2 has no advantage.
    let told: Vec<u64> = last.samples.iter().map(|s| s.episode.number).collect();
    assert_eq!(told, [0, 1, 3]);
    for (sample, place) in last.samples.iter().zip([0, 1, 3]) {
        assert_eq!(
            sample.tokens.old_logprobs, old[place],
            "before the first update"
        );
        assert_eq!(sample.tokens.advantage, samples[place].advantage);
    }
}

/// Figures of tokens have those of their replies, and of the update, as their means.
fn check_tokens(report: &UpdateReport) {
    let near = |a: f64, b: f64| (a - b).abs() < 1e-6;
    let (mut entropy, mut high, mut low) = (0.0, 0_u32, 0_u32);
    for sample in &report.samples {
        let mut first = 0;
        for step in &sample.steps {
            let tokens = sample.tokens.part(first..first + step.tokens as usize);
            first += step.tokens as usize;
            let places = || 0..tokens.len();
            let mean = |sum: f64| sum / tokens.len() as f64;
            let ratios: Vec<f64> = places().map(|place| tokens.ratio(place)).collect();
            let floats = |of: &[f32]| mean(of.iter().map(|one| f64::from(*one)).sum());
            let share = |clip| places().filter(|p| tokens.clip(*p) == Some(clip)).count();
            assert!(near(mean(ratios.iter().sum()), step.ratio.0));
            assert!(near(
                ratios.iter().copied().fold(0.0, f64::max),
                step.ratio_max.0
            ));
            assert!(near(floats(&tokens.logprobs), step.logprob.0));
            assert!(near(floats(&tokens.entropies), step.entropy.0));
            assert!(near(mean(share(Clip::High) as f64), step.clip_high.0));
            assert!(near(mean(share(Clip::Low) as f64), step.clip_low.0));
            entropy += tokens.entropies.iter().copied().map(f64::from).sum::<f64>();
            high += share(Clip::High) as u32;
            low += share(Clip::Low) as u32;
        }
        assert_eq!(first, sample.tokens.len());
    }
    let all = f64::from(report.tokens);
    assert!((entropy / all - report.entropy.0).abs() < 1e-4);
    assert!(near(f64::from(high) / all, report.clip_high.0));
    assert!(near(f64::from(low) / all, report.clip_low.0));
}

#[test]
fn a_frozen_vision_tower_keeps_its_weights_and_gives_the_same_text_gradients() {
    let start = small_weights();
    let (mut frozen, mut trained) = (trainer(true, 1), trainer(false, 1));
    let old = frozen.old_logprobs(&samples()).unwrap();
    let same = trained.old_logprobs(&samples()).unwrap();
    for (a, b) in old.logprobs.iter().zip(&same.logprobs) {
        assert!(distance(a, b) < 1e-5);
    }
    train(&mut frozen, 1);
    train(&mut trained, 1);
    let changed = |trainer: &Trainer, name: &str| {
        let now = trainer.publish();
        let before = floats(start.get(name).unwrap());
        distance(&floats(now.get(name).unwrap()), &before) > 0.0
    };
    let (vision, text) = (
        "visual.merger.mlp.2.weight",
        "model.layers.1.mlp.up_proj.weight",
    );
    assert!(!changed(&frozen, vision) && changed(&frozen, text));
    assert!(changed(&trained, vision) && changed(&trained, text));
}

#[test]
fn one_lane_and_three_give_the_same_update_and_each_repeats_its_bits() {
    let published = |num_lanes| {
        let mut trainer = trainer(true, num_lanes);
        train(&mut trainer, 2);
        trainer.publish()
    };
    let (one, three) = (published(1), published(3));
    for ((name, a), (_, b)) in one.named().iter().zip(three.named()) {
        assert!(distance(&floats(a), &floats(b)) < 2e-4, "{name}");
    }
    assert_eq!(weights_hash(&three), weights_hash(&published(3)));
}

#[test]
fn published_weights_stay_as_they_were() {
    let mut trainer = trainer(true, 1);
    let published = trainer.publish();
    let hash = weights_hash(&published);
    train(&mut trainer, 1);
    assert_eq!(weights_hash(&published), hash);
    assert_eq!(published.version.0, 0);
    assert_ne!(trainer.weights_hash(), hash);
    assert_eq!(trainer.publish().version.0, 1);
}

#[test]
fn a_saved_trainer_goes_on_with_the_same_bits() {
    let folder = tempfile::tempdir().unwrap();
    let mut whole = trainer(true, 2);
    train(&mut whole, 2);
    whole.save(folder.path()).unwrap();
    train(&mut whole, 2);
    let mut resumed = trainer(true, 2);
    resumed.load(folder.path()).unwrap();
    assert_eq!(resumed.version().0, 2);
    train(&mut resumed, 2);
    assert_eq!(resumed.weights_hash(), whole.weights_hash());
}

#[test]
fn samples_without_advantage_change_nothing_and_poisoned_ones_are_skipped() {
    let mut trainer = trainer(true, 1);
    let hash = trainer.weights_hash();
    let mut samples = samples();
    samples[0].advantage = f32::NAN;
    let old = trainer.old_logprobs(&samples).unwrap().logprobs;
    let old: Vec<&[f32]> = old.iter().map(Vec::as_slice).collect();
    let given: Vec<&TrainSample> = samples.iter().collect();
    let report = trainer.update(&given, &old, Iteration(0), 0).unwrap();
    assert!(report.skipped && report.grad_norm.0.is_nan());
    assert_eq!(trainer.weights_hash(), hash);
    assert_eq!(trainer.version().0, 0);
    let report = trainer
        .update(&given[2..3], &old[2..3], Iteration(0), 1)
        .unwrap();
    assert_eq!((report.tokens, report.trajectories), (0, 1));
    assert_eq!(trainer.weights_hash(), hash);
}

#[test]
fn replayed_tokens_may_start_from_the_samplers_logprobs() {
    let mut trainer = trainer(true, 1);
    trainer.config.replayed_old_logprobs = OldLogprobs::Behaviour;
    let mut samples = samples();
    samples[0].replayed = true;
    let report = trainer.old_logprobs(&samples).unwrap();
    assert_eq!(report.logprobs[0], vec![-1.0; 9]);
    assert_ne!(report.logprobs[1], vec![-1.0; 3]);
}

#[test]
fn gradients_flow_through_every_trained_tensor() {
    let trainer = trainer(false, 1);
    let samples = samples();
    let learned: Vec<&TrainSample> = samples.iter().filter(|s| s.advantage != 0.0).collect();
    let old: Vec<Vec<f32>> = learned
        .iter()
        .map(|s| vec![-1.0; s.num_sampled()])
        .collect();
    let (grads, ..) = trainer.gradients(&learned, &old).unwrap();
    no_grad(|| {
        for ((name, _), grad) in trainer.weights.named().iter().zip(&grads) {
            assert!(grad.abs().max().double_value(&[]) > 0.0, "{name}");
        }
    });
}
