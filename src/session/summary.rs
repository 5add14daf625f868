//! The closing figures of a run.

use crate::event::{F, IterationReport, RunSummary};
use crate::session::Progress;
use crate::types::PolicyVersion;

/// Figures over the first and the last tenth of the iterations, at least one each.
pub(super) fn summarize(
    progress: &Progress,
    status: &str,
    error: Option<String>,
    heldout_last: Option<f64>,
    weights: String,
) -> RunSummary {
    let reports = &progress.reports;
    let tenth = reports.len().div_ceil(10).max(1);
    let first = &reports[..tenth.min(reports.len())];
    let last = &reports[reports.len().saturating_sub(tenth)..];
    RunSummary {
        status: status.to_owned(),
        error,
        iterations: progress.iterations_done,
        reward_first: mean(first, |report| report.reward_mean),
        reward_last: mean(last, |report| report.reward_mean),
        group_std_first: mean(first, |report| report.group_std),
        group_std_last: mean(last, |report| report.group_std),
        heldout_first: progress.heldout_first,
        heldout_last,
        episodes: reports
            .iter()
            .map(|report| u64::from(report.episodes))
            .sum(),
        env_errors: reports
            .iter()
            .map(|report| u64::from(report.env_errors))
            .sum(),
        zero_variance_groups: reports
            .iter()
            .map(|report| u64::from(report.groups_zero_variance))
            .sum(),
        replaced: reports
            .iter()
            .map(|report| u64::from(report.replaced))
            .sum(),
        policy_version: reports
            .last()
            .map_or(PolicyVersion(0), |report| report.policy),
        wall_s: F(reports
            .iter()
            .map(|report| report.wall_ms as f64 / 1000.0)
            .sum()),
        weights,
    }
}

fn mean(reports: &[IterationReport], value: impl Fn(&IterationReport) -> F) -> F {
    if reports.is_empty() {
        return F(f64::NAN);
    }
    F(reports.iter().map(|report| value(report).0).sum::<f64>() / reports.len() as f64)
}
