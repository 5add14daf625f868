//! Draws tokens: temperature, nucleus, and the log-probability of what was drawn.
//!
//! With one generator a session, so that a reply depends on the session's seed and on nothing
//! else in the batch.

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

use arpo::policy::SamplingParams;
use tch::{Device, Kind, Tensor};

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

    /// Draws from a distribution over the vocabulary.
    pub fn sample(&mut self, from: Distribution<'_>, params: &SamplingParams) -> Sampled {
        let id = if params.temperature <= 0.0 {
            argmax(from.logprobs)
        } else {
            let uniform: f64 = self.rng.random();
            if params.top_p < 1.0 {
                draw_nucleus(from.probs, f64::from(params.top_p), uniform)
            } else {
                draw(from.probs.iter().copied().enumerate(), uniform)
            }
        };
        Sampled {
            id: id as u32,
            logprob: from.logprobs[id] as f32,
        }
    }
}

/// Distributions over the vocabulary, one a row, each at its own temperature.
#[derive(Debug)]
pub struct Distributions {
    vocab: usize,
    logprobs: Vec<f64>,
    probs: Vec<f64>,
}

/// One of them.
#[derive(Clone, Copy, Debug)]
pub struct Distribution<'a> {
    /// `ln softmax(logits / temperature)`, `[vocab]`.
    pub logprobs: &'a [f64],
    /// Its exponential.
    pub probs: &'a [f64],
}

impl Distributions {
    /// `softmax(logits / temperature)` of each row of `logits` `[rows, vocab]` in float64; greedy
    /// rows (temperature 0) at 1. `temperatures` has one entry a row.
    ///
    /// All rows at once and by torch, whose exponentials are vectorised: in a loop over the
    /// vocabulary they were a tenth of a small model's decoding.
    pub fn new(logits: &Tensor, temperatures: &[f32]) -> Self {
        let vocab = logits.size().last().map_or(0, |vocab| *vocab as usize);
        let divisor = |temperature: &f32| {
            if *temperature > 0.0 {
                f64::from(*temperature)
            } else {
                1.0
            }
        };
        let divisors: Vec<f64> = temperatures.iter().map(divisor).collect();
        let divisors = Tensor::from_slice(&divisors).unsqueeze(1);
        let logits = logits.to_device(Device::Cpu).to_kind(Kind::Double);
        let logprobs = (logits / divisors).log_softmax(-1, Kind::Double);
        let flat = |x: Tensor| Vec::try_from(x.reshape([-1])).expect("numbers in a row");
        Self {
            vocab,
            probs: flat(logprobs.exp()),
            logprobs: flat(logprobs),
        }
    }

    /// All rows in order.
    pub fn rows(&self) -> impl Iterator<Item = Distribution<'_>> {
        let rows = self.logprobs.chunks_exact(self.vocab);
        rows.zip(self.probs.chunks_exact(self.vocab))
            .map(|(logprobs, probs)| Distribution { logprobs, probs })
    }
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

/// The lowest id among the largest.
fn argmax(values: &[f64]) -> usize {
    let mut best = 0;
    for (id, value) in values.iter().enumerate() {
        if values[best] < *value {
            best = id;
        }
    }
    best
}
