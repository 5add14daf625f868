//! The policy loss over many tokens at once, and what an update reports of it.
//!
//! The same arithmetic as `arpo::grpo::token_loss`, which tests compare it with.

use tch::{Kind, Tensor, no_grad};

use arpo::event::{RATIO_BINS, RATIO_LOG_BOUND, ratio_bin_width};
use arpo::grpo::LossParams;

/// Bound of the log ratio before `exp`; far beyond the clips, so only infinities feel it.
const MAX_LOG_RATIO: f64 = 20.0;

/// What the loss is made of, one entry a token, all `[tokens]` float32.
#[derive(Clone, Copy, Debug)]
pub struct LossInputs<'a> {
    /// Under the current weights, with gradient.
    pub logprobs: &'a Tensor,
    /// Before the iteration's first update.
    pub old_logprobs: &'a Tensor,
    /// Of the token's trajectory.
    pub advantages: &'a Tensor,
    /// Of the token's trajectory: what its loss is multiplied with.
    pub weights: &'a Tensor,
}

/// Sums over tokens, to be added up over batches and lanes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossStats {
    /// Weighted loss.
    pub loss: f64,
    /// Tokens.
    pub tokens: f64,
    /// Tokens above the upper clip with positive advantage.
    pub clipped_high: f64,
    /// Tokens below the lower clip with negative advantage.
    pub clipped_low: f64,
    /// `ratio - 1 - ln ratio`.
    pub kl: f64,
    /// Entropy, nats.
    pub entropy: f64,
    /// Largest ratio.
    pub ratio_max: f64,
    /// Smallest ratio.
    pub ratio_min: f64,
    /// Tokens by ratio, as `arpo::event::UpdateReport` counts them.
    pub ratios: [u32; RATIO_BINS],
}

impl Default for LossStats {
    fn default() -> Self {
        Self {
            loss: 0.0,
            tokens: 0.0,
            clipped_high: 0.0,
            clipped_low: 0.0,
            kl: 0.0,
            entropy: 0.0,
            ratio_max: f64::NEG_INFINITY,
            ratio_min: f64::INFINITY,
            ratios: [0; RATIO_BINS],
        }
    }
}

impl LossStats {
    /// Both together.
    pub fn merge(self, other: Self) -> Self {
        Self {
            loss: self.loss + other.loss,
            tokens: self.tokens + other.tokens,
            clipped_high: self.clipped_high + other.clipped_high,
            clipped_low: self.clipped_low + other.clipped_low,
            kl: self.kl + other.kl,
            entropy: self.entropy + other.entropy,
            ratio_max: self.ratio_max.max(other.ratio_max),
            ratio_min: self.ratio_min.min(other.ratio_min),
            ratios: std::array::from_fn(|bin| self.ratios[bin] + other.ratios[bin]),
        }
    }

    /// A sum as a mean over tokens; 0 without any.
    pub fn mean(&self, sum: f64) -> f64 {
        sum / self.tokens.max(1.0)
    }
}

/// Weighted sum of the tokens' losses, with the graph behind it, and what is reported of it.
/// `entropies` is `[tokens]` float32.
///
/// Source: ARPO@7489ae3 `core_algos.py` `compute_policy_loss`: clip in log space, dual clip.
pub fn policy_loss(
    inputs: LossInputs<'_>,
    entropies: &Tensor,
    params: LossParams,
) -> (Tensor, LossStats) {
    let (low, high) = ((1.0 - params.clip_low).ln(), (1.0 + params.clip_high).ln());
    let log_ratio = (inputs.logprobs - inputs.old_logprobs).clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO);
    let ratio = log_ratio.exp();
    let gain = -inputs.advantages;
    let plain = &gain * &ratio;
    let clipped = &gain * log_ratio.clamp(low, high).exp();
    let loss = plain.maximum(&clipped);
    let is_negative = inputs.advantages.lt(0.0);
    let bounded = loss.minimum(&(&gain * params.clip_dual));
    let loss = bounded.where_self(&is_negative, &loss);
    let total = (loss * inputs.weights).sum(Kind::Float);
    let stats = no_grad(|| {
        let count = |which: &Tensor| which.sum(Kind::Float).double_value(&[]);
        let is_positive = inputs.advantages.gt(0.0);
        LossStats {
            loss: total.double_value(&[]),
            tokens: log_ratio.numel() as f64,
            clipped_high: count(&log_ratio.gt(high).logical_and(&is_positive)),
            clipped_low: count(&log_ratio.lt(low).logical_and(&is_negative)),
            kl: count(&(&ratio - 1.0 - &log_ratio)),
            entropy: count(entropies),
            ratio_max: ratio.max().double_value(&[]),
            ratio_min: ratio.min().double_value(&[]),
            ratios: count_ratios(&log_ratio),
        }
    });
    (total, stats)
}

/// Counts `log_ratio` `[tokens]` by bin. Counts are whole numbers, so their order is no matter;
/// what is no number counts as far too large.
fn count_ratios(log_ratio: &Tensor) -> [u32; RATIO_BINS] {
    let inner = (RATIO_BINS - 2) as i64;
    let bins = log_ratio
        .nan_to_num(MAX_LOG_RATIO, MAX_LOG_RATIO, -MAX_LOG_RATIO)
        .g_add_scalar(RATIO_LOG_BOUND)
        .g_div_scalar(ratio_bin_width())
        .floor()
        .clamp(-1, inner)
        .to_kind(Kind::Int64);
    let counts = (bins + 1_i64).bincount::<Tensor>(None, RATIO_BINS as i64);
    let counts = Vec::<i64>::try_from(&counts).expect("counts are a vector of whole numbers");
    std::array::from_fn(|bin| counts[bin] as u32)
}
