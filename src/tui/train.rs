//! What the Train screen plots, one row a chart; the window, the cursor and the other run. Pure.

use std::fmt::Write as _;

use crate::event::{EvaluationState, IterationReport, MarkKind, Phase, RunState};
use crate::tui::app::TrainUi;
use crate::tui::figures;
use crate::tui::fleet::episode_name;
use crate::types::Iteration;

/// Iterations of the moving average.
pub const AVERAGE_OVER: usize = 10;

/// A figure of an iteration; what the run's header says may be part of it.
pub type Figure = fn(&IterationReport) -> f64;

/// Another run, to compare with.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// Its name.
    pub name: String,
    /// Its iterations.
    pub history: Vec<IterationReport>,
    /// Its evaluations, oldest first.
    pub evaluations: Vec<EvaluationState>,
}

/// One figure over the iterations.
pub struct Chart {
    /// Its name.
    pub name: &'static str,
    /// Its unit, or what it is about.
    pub unit: &'static str,
    /// The figure.
    pub value: Figure,
    /// The column it has in an exported table.
    pub column: &'static str,
    /// A second figure to compare with, its name and its column.
    pub second: Option<(&'static str, &'static str, Figure)>,
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
    column: &'static str,
    value: Figure,
    format: fn(f64) -> String,
) -> Chart {
    Chart {
        name,
        unit,
        value,
        column,
        second: None,
        averaged: false,
        top: None,
        format,
    }
}

/// All charts; the first two are the large ones.
pub const CHARTS: [Chart; 10] = [
    Chart {
        averaged: true,
        top: Some(1.0),
        ..chart(
            "Reward",
            "mean outcome",
            "reward_mean",
            |it| it.reward_mean.0,
            figures::fraction,
        )
    },
    Chart {
        second: Some(("after replay", "group_std_after", |it| it.group_std_after.0)),
        ..chart(
            "Group std",
            "of outcomes",
            "group_std",
            |it| it.group_std.0,
            figures::fraction,
        )
    },
    // No profile has a KL term: the loss is clipped only, and the estimate is for the eye.
    chart(
        "KL",
        "coefficient 0: disabled, estimate in nats/token",
        "approx_kl",
        |it| it.approx_kl.0,
        figures::short,
    ),
    Chart {
        second: Some(("low", "clip_low", |it| it.clip_low.0)),
        ..chart(
            "Clip",
            "share of tokens, high and low",
            "clip_high",
            clip_high,
            figures::percent,
        )
    },
    chart(
        "Entropy",
        "nats/token",
        "entropy",
        |it| it.entropy.0,
        figures::short,
    ),
    chart(
        "Gradient norm",
        "before clipping",
        "grad_norm",
        |it| it.grad_norm.0,
        figures::short,
    ),
    Chart {
        second: Some(("max", "logprob_gap_max", |it| it.logprob_gap_max.0)),
        ..chart(
            "Log-prob gap",
            "nats/token, sampler to trainer",
            "logprob_gap",
            |it| it.logprob_gap.0,
            figures::short,
        )
    },
    chart(
        "Reply length",
        "tokens",
        "reply_tokens_mean",
        |it| it.reply_tokens_mean.0,
        figures::short,
    ),
    chart(
        "Longest",
        "tokens of the context",
        "tokens_max",
        |it| f64::from(it.tokens_max),
        figures::short,
    ),
    chart(
        "Throughput",
        "tokens/s",
        "tokens_per_s",
        |it| it.tokens_per_s.0,
        figures::short,
    ),
];

/// Place of the chart of the longest trajectory, which is read against the context.
pub const LONGEST: usize = 8;
/// Place of the histogram of ratios among what can have the focus.
pub const RATIOS: usize = CHARTS.len();

/// Old logs know only high and low together.
fn clip_high(report: &IterationReport) -> f64 {
    if report.clip_high.0.is_finite() {
        report.clip_high.0
    } else {
        report.clip_fraction.0
    }
}

/// The iteration under the cursor among those known, or the newest.
pub fn at_cursor<'a>(run: &'a RunState, view: &TrainUi) -> Option<&'a IterationReport> {
    match view.cursor {
        Some(cursor) => run.history.iter().find(|it| it.iteration == cursor),
        None => run.history.last(),
    }
}

/// Moves the cursor; from the newest iteration where there is none yet.
pub fn move_cursor(run: &RunState, view: &mut TrainUi, by: isize) {
    let shown = shown_history(run, view.window);
    let Some(last) = shown.len().checked_sub(1) else {
        return;
    };
    let place = view
        .cursor
        .and_then(|cursor| shown.iter().position(|it| it.iteration == cursor))
        .unwrap_or(last);
    let place = place.saturating_add_signed(by).min(last);
    view.cursor = Some(shown[place].iteration);
}

/// What happened in an iteration, as letters for an axis and in words: checkpoint, pause,
/// setting, evaluation, replay.
pub fn marks_of(run: &RunState, report: &IterationReport) -> Vec<(char, String)> {
    let of_iteration = run
        .marks
        .iter()
        .filter(|mark| mark.iteration == report.iteration);
    let mut marks: Vec<(char, String)> = of_iteration
        .map(|mark| match &mark.kind {
            MarkKind::Checkpoint => ('c', "checkpoint".to_owned()),
            MarkKind::Pause => ('p', "pause".to_owned()),
            MarkKind::Setting { key, value } => ('s', format!("{key} = {}", value.0)),
            MarkKind::Evaluation { name } => ('e', format!("evaluation {name}")),
        })
        .collect();
    if report.replaced > 0 {
        marks.push(('r', format!("{} replayed", report.replaced)));
    }
    marks
}

/// The letter that an axis shows: the rarest of an iteration's.
pub fn mark_letter(marks: &[(char, String)]) -> Option<char> {
    "sepcr"
        .chars()
        .find(|letter| marks.iter().any(|(mark, _)| mark == letter))
}

/// The last episodes of a collection, which hold up everything else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tail {
    /// Their names with their desktops, the slowest first.
    pub names: Vec<String>,
    /// How long they held up the rest, ms.
    pub held_ms: u64,
    /// Whether they still do.
    pub is_running: bool,
}

/// Nine tenths of the episodes count as the rest.
const TAIL_FROM: usize = 9;
/// Episodes that are named.
const TAIL_NAMED: usize = 3;

/// The tail of the running collection, or of the newest one that is over.
pub fn tail(run: &RunState, now_ms: u64) -> Option<Tail> {
    let collects = run.phases.iter().any(|phase| phase.phase == Phase::Collect);
    let iteration = run.iteration?;
    let of = |iteration: Iteration| {
        let episodes = run.episodes.values();
        let mut all: Vec<_> = episodes
            .filter(|episode| episode.group.is_some_and(|g| g.iteration == iteration))
            .collect();
        all.sort_by_key(|episode| (episode.ended_ms.unwrap_or(u64::MAX), episode.started_ms));
        all
    };
    let mut all = of(iteration);
    if all.is_empty() {
        all = of(Iteration(iteration.0.checked_sub(1)?));
    }
    let rest = (all.len() * TAIL_FROM / 10).max(1);
    // Waits begin once most are in; before that nobody is the tail.
    let since_ms = all.get(rest - 1)?.ended_ms?;
    let mut held: Vec<_> = all.split_off(rest);
    held.reverse();
    let end_ms = held.first()?.ended_ms;
    let names = held
        .iter()
        .take(TAIL_NAMED)
        .map(|episode| format!("{} on desktop {}", episode_name(episode), episode.desktop))
        .collect();
    Some(Tail {
        names,
        held_ms: end_ms.unwrap_or(now_ms).saturating_sub(since_ms),
        is_running: collects && end_ms.is_none(),
    })
}

/// All iterations as a table of comma-separated values, one row each.
pub fn csv(run: &RunState) -> String {
    let mut text = "iteration,policy".to_owned();
    for chart in &CHARTS {
        let _ = write!(text, ",{}", chart.column);
        if let Some((_, column, _)) = chart.second {
            let _ = write!(text, ",{column}");
        }
    }
    text.push_str(
        ",groups,groups_all_fail,groups_all_pass,groups_zero_variance,replaced,episodes,\
         env_errors,malformed,learning_rate,temperature,collect_ms,train_ms,wall_ms\n",
    );
    for it in &run.history {
        let _ = write!(text, "{},{}", it.iteration.0 + 1, it.policy.0);
        for chart in &CHARTS {
            let _ = write!(text, ",{}", (chart.value)(it));
            if let Some((_, _, second)) = chart.second {
                let _ = write!(text, ",{}", second(it));
            }
        }
        let _ = writeln!(
            text,
            ",{},{},{},{},{},{},{},{},{},{},{},{},{}",
            it.groups,
            it.groups_all_fail,
            it.groups_all_pass,
            it.groups_zero_variance,
            it.replaced,
            it.episodes,
            it.env_errors,
            it.malformed,
            it.learning_rate.0,
            it.temperature.0,
            it.collect_ms,
            it.train_ms,
            it.wall_ms
        );
    }
    text
}

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
    use super::{csv, mark_letter, move_cursor, moving_average, nice_top, tail};
    use crate::event::{IterationReport, Purpose, RunState};
    use crate::tui::app::TrainUi;
    use crate::types::{EpisodeId, GroupId, Iteration, TaskId};

    fn run(iterations: u64) -> RunState {
        let report = |number| IterationReport {
            iteration: Iteration(number),
            ..IterationReport::default()
        };
        RunState {
            history: (0..iterations).map(report).collect(),
            ..RunState::default()
        }
    }

    #[test]
    fn the_cursor_begins_at_the_newest_and_stays_within_the_window() {
        let run = run(30);
        let mut view = TrainUi {
            window: Some(10),
            ..TrainUi::default()
        };
        for (by, expected) in [(-1, 28), (-100, 20), (3, 23), (100, 29)] {
            move_cursor(&run, &mut view, by);
            assert_eq!(view.cursor, Some(Iteration(expected)));
        }
        let mut empty = TrainUi::default();
        move_cursor(&RunState::default(), &mut empty, 1);
        assert_eq!(empty.cursor, None);
    }

    #[test]
    fn tables_have_as_many_values_as_columns() {
        let text = csv(&run(2));
        let counts: Vec<_> = text.lines().map(|line| line.split(',').count()).collect();
        assert_eq!(counts.len(), 3);
        assert!(counts.iter().all(|count| *count == counts[0]), "{text}");
    }

    #[test]
    fn the_rarest_mark_is_shown() {
        let mark = |letter| (letter, String::new());
        assert_eq!(mark_letter(&[mark('r'), mark('c')]), Some('c'));
        assert_eq!(mark_letter(&[mark('c'), mark('s')]), Some('s'));
        assert_eq!(mark_letter(&[]), None);
    }

    #[test]
    fn the_tail_is_what_the_rest_waits_for() {
        let mut run = run(0);
        run.iteration = Some(Iteration(0));
        for number in 0..10 {
            let id = EpisodeId {
                incarnation: 0,
                number,
            };
            let task = TaskId("t".to_owned());
            let mut episode = crate::event::EpisodeState::new(id, Purpose::Train, task, 0);
            episode.group = Some(GroupId {
                iteration: Iteration(0),
                index: 0,
            });
            (episode.sample, episode.desktop) = (number as u32, number as u32);
            episode.ended_ms = (number < 9).then_some(1000 + number);
            run.episodes.insert(id, episode);
        }
        let found = tail(&run, 5008).unwrap();
        assert_eq!(found.names, ["g00.s9 on desktop 9"]);
        assert_eq!(found.held_ms, 4000);
    }

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
