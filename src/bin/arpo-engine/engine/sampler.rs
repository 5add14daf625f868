//! Draws tokens from logits: temperature, nucleus, and the log-probability of what was drawn.
//!
//! On the CPU and in plain Rust, with one generator a session, so that a reply depends on the
//! session's seed and on nothing else in the batch.

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

use arpo::policy::SamplingParams;

/// A session's source of randomness. Draws one number a token.
#[derive(Clone, Debug)]
pub struct Sampler {
    rng: Pcg64Mcg,
}

/// A drawn token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampled {
    /// Its id.
    pub id: u32,
    /// Its log-probability at the sampling temperature (at 1 for greedy), before the nucleus cuts
    /// the tail off: what the trainer can recompute.
    pub logprob: f32,
}

impl Sampler {
    /// The same seed draws the same tokens from the same logits.
    pub fn new(seed: u64) -> Self {
        Self {
            rng: Pcg64Mcg::seed_from_u64(seed),
        }
    }

    /// Draws from `logits` `[vocab]`.
    pub fn sample(&mut self, logits: &[f32], params: &SamplingParams) -> Sampled {
        if params.temperature <= 0.0 {
            let id = argmax(logits);
            return Sampled {
                id: id as u32,
                logprob: logprob_at(logits, id, 1.0),
            };
        }
        let uniform: f64 = self.rng.random();
        let probs = softmax(logits, params.temperature);
        let id = if params.top_p < 1.0 {
            draw_nucleus(&probs, f64::from(params.top_p), uniform)
        } else {
            draw(probs.iter().copied().enumerate(), uniform)
        };
        Sampled {
            id: id as u32,
            logprob: logprob_at(logits, id, params.temperature),
        }
    }
}

/// Log-probability of one token under `softmax(logits / temperature)`.
pub fn logprob_at(logits: &[f32], id: usize, temperature: f32) -> f32 {
    let max = largest(logits);
    let scaled = |logit: f32| f64::from((logit - max) / temperature);
    let sum: f64 = logits.iter().map(|logit| scaled(*logit).exp()).sum();
    (scaled(logits[id]) - sum.ln()) as f32
}

/// `softmax(logits / temperature)`.
fn softmax(logits: &[f32], temperature: f32) -> Vec<f64> {
    let max = largest(logits);
    let mut probs: Vec<f64> = logits
        .iter()
        .map(|logit| f64::from((logit - max) / temperature).exp())
        .collect();
    let sum: f64 = probs.iter().sum();
    for prob in &mut probs {
        *prob /= sum;
    }
    probs
}

/// The candidate in which the cumulative probability passes `uniform`.
fn draw(candidates: impl Iterator<Item = (usize, f64)>, uniform: f64) -> usize {
    let mut cumulative = 0.0;
    let mut last = 0;
    for (id, prob) in candidates {
        if prob <= 0.0 {
            continue;
        }
        cumulative += prob;
        last = id;
        if uniform < cumulative {
            break;
        }
    }
    // Rounding may leave the sum a little below 1: then the last possible candidate.
    last
}

/// Draws from the fewest tokens that hold `top_p` of the probability, at least one.
fn draw_nucleus(probs: &[f64], top_p: f64, uniform: f64) -> usize {
    let mut ids: Vec<usize> = (0..probs.len()).collect();
    // Equal probabilities keep the order of ids, so that the cut does not depend on the sort.
    ids.sort_by(|a, b| probs[*b].total_cmp(&probs[*a]));
    let mut mass = 0.0;
    let kept = ids.iter().take_while(|id| {
        let inside = mass < top_p;
        mass += probs[**id];
        inside
    });
    let kept = kept.count().max(1);
    let mass: f64 = ids[..kept].iter().map(|id| probs[*id]).sum();
    draw(
        ids[..kept].iter().map(|id| (*id, probs[*id] / mass)),
        uniform,
    )
}

/// The lowest id among the largest logits.
fn argmax(logits: &[f32]) -> usize {
    let mut best = 0;
    for (id, logit) in logits.iter().enumerate() {
        if logits[best] < *logit {
            best = id;
        }
    }
    best
}

/// The largest logit.
fn largest(logits: &[f32]) -> f32 {
    logits.iter().copied().fold(f32::NEG_INFINITY, f32::max)
}
