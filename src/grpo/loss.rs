//! The policy loss of one token, in plain floats: what the tensor version is tested against.

use crate::config::GrpoConfig;

/// Bounds of the ratio.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossParams {
    /// Ratios below `1 - clip_low` no longer count where the advantage is negative.
    pub clip_low: f64,
    /// Ratios above `1 + clip_high` no longer count where it is positive.
    pub clip_high: f64,
    /// With a negative advantage the loss never exceeds `-advantage * clip_dual`.
    pub clip_dual: f64,
}

impl From<&GrpoConfig> for LossParams {
    fn from(config: &GrpoConfig) -> Self {
        Self {
            clip_low: config.clip_low,
            clip_high: config.clip_high,
            clip_dual: config.clip_dual,
        }
    }
}

/// Loss of one token, and which bound held.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TokenLoss {
    /// The loss.
    pub loss: f64,
    /// The upper bound held.
    pub clipped_high: bool,
    /// The lower bound held.
    pub clipped_low: bool,
}

/// `-A * ratio`, clipped in log space and dual-clipped for negative advantages.
///
/// With `d = logprob - old_logprob`, `L1 = -A exp(d)`, `L2 = -A exp(clamp(d, ln(1 - low),
/// ln(1 + high)))`: `max(L1, L2)`, and for `A < 0` at most `-A * dual`.
///
/// Source: ARPO@7489ae3 `core_algos.py` `compute_policy_loss`; Ye et al. 2020 for the dual
/// clip. Departs: `d` is bounded to ±20 before `exp`, which cannot matter within the clips but
/// keeps infinities out of gradients.
pub fn token_loss(logprob: f64, old_logprob: f64, advantage: f64, params: LossParams) -> TokenLoss {
    let log_ratio = (logprob - old_logprob).clamp(-20.0, 20.0);
    let (low, high) = ((1.0 - params.clip_low).ln(), (1.0 + params.clip_high).ln());
    let plain = -advantage * log_ratio.exp();
    let clipped = -advantage * log_ratio.clamp(low, high).exp();
    let mut loss = plain.max(clipped);
    if advantage < 0.0 {
        loss = loss.min(-advantage * params.clip_dual);
    }
    TokenLoss {
        loss,
        clipped_high: advantage > 0.0 && log_ratio > high,
        clipped_low: advantage < 0.0 && log_ratio < low,
    }
}
