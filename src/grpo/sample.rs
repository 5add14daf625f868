//! Trajectories as training sees them, their weights in the loss, and mini-batches.

use crate::config::Denominator;
use crate::types::{EpisodeId, Screenshot};

/// One trajectory to learn from.
#[derive(Clone, Debug)]
pub struct TrainSample {
    /// The episode it comes from.
    pub episode: EpisodeId,
    /// Token ids, `[seq]`.
    pub ids: Vec<u32>,
    /// True where the token was sampled: the loss mask, `[seq]`.
    pub mask: Vec<bool>,
    /// The sampler's log-probabilities where sampled, 0 elsewhere, `[seq]`.
    pub sampler_logprobs: Vec<f32>,
    /// Screenshots in order, `[images]`.
    pub images: Vec<Screenshot>,
    /// Its advantage, the same for all its tokens. 0 skips the forward pass.
    pub advantage: f32,
    /// What the sum of its token losses is multiplied with; see `weights`.
    pub weight: f32,
    /// Whether it came out of the replay buffer.
    pub replayed: bool,
}

impl TrainSample {
    /// Number of loss tokens.
    pub fn num_sampled(&self) -> usize {
        self.mask.iter().filter(|sampled| **sampled).count()
    }
}

/// Weight of each trajectory's token-loss sum within one update: the loss is
/// `sum_i weight_i * sum_t loss_it`.
///
/// - `tokens`: loss tokens of each trajectory of the update, `[trajectories]`
/// - `has_signal`: whether its advantage differs from 0, `[trajectories]`
///
/// `Dispatched` and `Signal` are the mean over a trajectory's tokens, then over all
/// trajectories or those with signal; `TokenMean` is the mean over all tokens with signal.
/// Source: ARPO@7489ae3 `dp_actor.py` with its micro-batch of 1, which makes its `masked_mean`
/// the first of these.
pub fn weights(tokens: &[usize], has_signal: &[bool], denominator: Denominator) -> Vec<f32> {
    let with_signal = has_signal.iter().filter(|signal| **signal).count().max(1) as f32;
    let signal_tokens: usize = tokens
        .iter()
        .zip(has_signal)
        .filter(|(_, signal)| **signal)
        .map(|(count, _)| count)
        .sum();
    tokens
        .iter()
        .map(|count| {
            let own = (*count).max(1) as f32;
            match denominator {
                Denominator::Dispatched => 1.0 / (own * tokens.len() as f32),
                Denominator::Signal => 1.0 / (own * with_signal),
                Denominator::TokenMean => 1.0 / signal_tokens.max(1) as f32,
            }
        })
        .collect()
}

/// Indices of each mini-batch: whole groups, in order, as even as can be.
///
/// `groups` holds the number of trajectories of each group. There are never more mini-batches
/// than groups; an empty input gives none.
pub fn minibatches(groups: &[usize], count: usize) -> Vec<Vec<usize>> {
    let count = count.clamp(1, groups.len().max(1));
    let mut batches = vec![Vec::new(); count];
    let mut next = 0;
    for (index, size) in groups.iter().enumerate() {
        let batch = index * count / groups.len();
        batches[batch].extend(next..next + size);
        next += size;
    }
    batches.retain(|batch| !batch.is_empty());
    batches
}
