//! Rewards of a group and the advantages of its members.

use crate::config::FormatScope;
use crate::types::Reward;

/// Group-relative advantages: `(reward - mean) / (std + eps)`, one per member.
///
/// `rewards` is `[members]`; `std` is the sample standard deviation (n - 1). A group whose
/// rewards are all equal gets exact zeros, hence no gradient: the case replay exists to avoid.
/// So does a lone member.
///
/// Source: ARPO@7489ae3 `core_algos.py` `compute_grpo_outcome_advantage`. Departs: exact zeros,
/// where floating point would leave a residue divided by `eps` (eight times 0.7, for instance).
pub fn advantages(rewards: &[f32], eps: f32) -> Vec<f32> {
    if rewards.windows(2).all(|pair| pair[0] == pair[1]) {
        return vec![0.0; rewards.len()];
    }
    let mean = mean(rewards);
    let std = group_std(rewards);
    rewards
        .iter()
        .map(|reward| (reward - mean) / (std + eps))
        .collect()
}

/// Sample standard deviation (n - 1) of a group, exactly 0 for equal or fewer than two values.
pub fn group_std(values: &[f32]) -> f32 {
    if values.len() < 2 || values.windows(2).all(|pair| pair[0] == pair[1]) {
        return 0.0;
    }
    (squared_deviations(values) / (values.len() - 1) as f32).sqrt()
}

/// Population standard deviation (n); what replay's trigger looks at.
pub(super) fn population_std(values: &[f32]) -> f32 {
    if values.is_empty() {
        return 0.0;
    }
    (squared_deviations(values) / values.len() as f32).sqrt()
}

/// Arithmetic mean, 0 for none.
pub(super) fn mean(values: &[f32]) -> f32 {
    values.iter().sum::<f32>() / values.len().max(1) as f32
}

fn squared_deviations(values: &[f32]) -> f32 {
    let mean = mean(values);
    values.iter().map(|value| (value - mean).powi(2)).sum()
}

/// Total rewards of a group's members.
///
/// With `FormatScope::Signal` the format penalty counts only where outcomes differ. Otherwise a
/// group of failures with one malformed reply would reinforce the other failures merely for
/// being well-formed (arithmetic: seven zeros and one -0.5 give the seven +0.35 each).
pub fn group_rewards(rewards: &[Reward], weight: f32, scope: FormatScope) -> Vec<f32> {
    let has_signal = rewards
        .windows(2)
        .any(|pair| pair[0].outcome != pair[1].outcome);
    let weight = match scope {
        FormatScope::Always => weight,
        FormatScope::Signal if has_signal => weight,
        FormatScope::Signal => 0.0,
    };
    rewards.iter().map(|reward| reward.total(weight)).collect()
}
