//! What the Train screen plots, one row a chart. Pure.

use crate::event::{IterationReport, RunState};
use crate::tui::figures;

/// Iterations of the moving average.
pub const AVERAGE_OVER: usize = 10;

/// A figure of an iteration.
pub type Figure = fn(&IterationReport) -> f64;

/// One figure over the iterations.
pub struct Chart {
    /// Its name.
    pub name: &'static str,
    /// Its unit, or what it is about.
    pub unit: &'static str,
    /// The figure.
    pub value: Figure,
    /// A second figure to compare with, and its name.
    pub second: Option<(&'static str, Figure)>,
    /// Whether a moving average is drawn.
    pub averaged: bool,
    /// Top of the axis, where it is known.
    pub top: Option<f64>,
    /// How its numbers are written.
    pub format: fn(f64) -> String,
}

const fn chart(
    name: &'static str,
    unit: &'static str,
    value: Figure,
    format: fn(f64) -> String,
) -> Chart {
    Chart {
        name,
        unit,
        value,
        second: None,
        averaged: false,
        top: None,
        format,
    }
}

/// All charts; the first two are the large ones.
pub const CHARTS: [Chart; 8] = [
    Chart {
        averaged: true,
        top: Some(1.0),
        ..chart(
            "Reward",
            "mean outcome",
            |it| it.reward_mean.0,
            figures::fraction,
        )
    },
    Chart {
        second: Some(("after replay", |it| it.group_std_after.0)),
        ..chart(
            "Group std",
            "of outcomes",
            |it| it.group_std.0,
            figures::fraction,
        )
    },
    chart(
        "Clip fraction",
        "of tokens",
        |it| it.clip_fraction.0,
        figures::percent,
    ),
    chart("Entropy", "nats/token", |it| it.entropy.0, figures::short),
    chart(
        "Log-prob gap",
        "sampler to trainer",
        |it| it.logprob_gap.0,
        figures::short,
    ),
    chart(
        "Gradient norm",
        "before clipping",
        |it| it.grad_norm.0,
        figures::short,
    ),
    chart(
        "Throughput",
        "tokens/s",
        |it| it.tokens_per_s.0,
        figures::short,
    ),
    chart(
        "Approx. KL",
        "nats/token",
        |it| it.approx_kl.0,
        figures::short,
    ),
];

/// The newest `window` iterations, or all.
pub fn shown_history(run: &RunState, window: Option<usize>) -> &[IterationReport] {
    let all = run.history.as_slice();
    &all[all.len().saturating_sub(window.unwrap_or(usize::MAX))..]
}

/// Mean of each value and the `over - 1` before it; what is not finite is left out.
pub fn moving_average(values: &[f64], over: usize) -> Vec<f64> {
    (0..values.len())
        .map(|end| {
            let start = (end + 1).saturating_sub(over);
            let (sum, count) = values[start..=end]
                .iter()
                .filter(|value| value.is_finite())
                .fold((0.0, 0), |(sum, count), value| (sum + value, count + 1));
            if count == 0 {
                f64::NAN
            } else {
                sum / f64::from(count)
            }
        })
        .collect()
}

/// The smallest of 1, 2, 2.5, 5 times a power of ten that is not below `value`.
pub fn nice_top(value: f64) -> f64 {
    if !value.is_finite() || value <= 0.0 {
        return 1.0;
    }
    let power = 10_f64.powf(value.log10().floor());
    let factor = [1.0, 2.0, 2.5, 5.0, 10.0]
        .into_iter()
        .find(|f| value <= f * power * 1.000_001);
    factor.unwrap_or(10.0) * power
}

#[cfg(test)]
mod tests {
    use super::{moving_average, nice_top};

    #[test]
    fn averages_look_back_and_skip_gaps() {
        let averages = moving_average(&[1.0, 3.0, f64::NAN, 5.0], 2);
        assert_eq!(averages, [1.0, 2.0, 3.0, 5.0]);
        assert!(moving_average(&[f64::NAN], 2)[0].is_nan());
    }

    #[test]
    fn axes_end_at_round_numbers() {
        for (value, top) in [
            (0.37, 0.5),
            (0.02, 0.02),
            (130.0, 200.0),
            (0.0, 1.0),
            (9.1, 10.0),
        ] {
            assert!(
                (nice_top(value) - top).abs() < 1e-9,
                "{value}: {}",
                nice_top(value)
            );
        }
    }
}
