//! The panes of the Train screen beside its charts: figures with their course, phases, the
//! histogram of ratios, settings in force.

use ratatui::layout::Rect;

use crate::event::{Phase, RATIO_BINS, RunState, ratio_bin_edge};
use crate::tui::text::{pad, pad_left};
use crate::tui::theme::Role;
use crate::tui::train::{CHARTS, RATIOS, at_cursor, shown_history, tail};
use crate::tui::update::Target;
use crate::tui::{figures, wording};

use super::Sketch;
use super::sketch::FrameTitle;

/// Figures, one a row, with their course; `shown` are those drawn as charts already.
pub(super) fn draw_sparks(sketch: &mut Sketch<'_>, area: Rect, shown: &[usize]) {
    let app = sketch.app;
    let history = shown_history(&app.run, app.ui.train.window);
    let Some(report) = at_cursor(&app.run, &app.ui.train) else {
        sketch.center(area, "after the first iteration", Role::Muted);
        return;
    };
    let room = usize::from(area.width).saturating_sub(25).min(60);
    let charts = CHARTS.iter().enumerate();
    let rest = charts.filter(|(number, _)| !shown.contains(number));
    for (row, (number, chart)) in rest.enumerate().take(usize::from(area.height)) {
        let row = row as u16;
        let values: Vec<f64> = history.iter().map(chart.value).collect();
        let role = if app.ui.train.chart == number {
            Role::Focus
        } else {
            Role::Muted
        };
        let at = sketch.put(area, 1, row, &pad(chart.name, 14), role);
        let value = (chart.format)((chart.value)(report));
        let at = sketch.put(area, at, row, &pad_left(&value, 7), Role::Text) + 2;
        let course = figures::sparkline(&values, room);
        sketch.put(area, at, row, &course, Role::Chart1);
    }
}

/// Tokens by ratio in the iteration under the cursor: one row a range, both clips among them.
pub(super) fn draw_ratios(sketch: &mut Sketch<'_>, area: Rect) {
    let app = sketch.app;
    let report = at_cursor(&app.run, &app.ui.train);
    let counts = report.map_or(&[][..], |report| report.ratios.as_slice());
    let total: u64 = counts.iter().sum();
    let when = report.map_or(String::new(), |report| {
        format!("share of tokens, it. {}", report.iteration.0 + 1)
    });
    let title = FrameTitle {
        left: "Ratios".to_owned(),
        right: Some((when, Role::Muted)),
        focused: app.ui.train.chart == RATIOS,
    };
    let inner = sketch.frame(area, &title);
    sketch.drawn.targets.push((area, Target::Chart(RATIOS)));
    if total == 0 || counts.len() != RATIO_BINS || inner.height == 0 {
        sketch.center(inner, "not told by this run's updates", Role::Muted);
        return;
    }
    let shares = merged_bins(counts, usize::from(inner.height));
    let bar_room = usize::from(inner.width).saturating_sub(16);
    // Nearly all tokens lie next to 1: a root keeps the rest visible, the figures are exact.
    for (row, (edge, count)) in shares.into_iter().enumerate() {
        let share = count as f64 / total as f64;
        let label = if row == 0 {
            format!(" <{:.2}", ratio_bin_edge(1))
        } else {
            format!(" ≥{edge:.2}")
        };
        let at = sketch.put(inner, 0, row as u16, &label, Role::Muted) + 1;
        let text = pad_left(&figures::percent(share), 6);
        let at = sketch.put(inner, at, row as u16, &text, Role::Text) + 1;
        let bar = figures::bar(share.sqrt(), bar_room);
        sketch.put(inner, at, row as u16, &bar, Role::Chart1);
    }
}

/// Bins put together so that they fit into `rows`, each with the ratio it begins at.
fn merged_bins(counts: &[u64], rows: usize) -> Vec<(f64, u64)> {
    let inner = RATIO_BINS - 2;
    let each = (1..=inner)
        .find(|each| inner.is_multiple_of(*each) && inner / each + 2 <= rows)
        .unwrap_or(inner);
    let mut merged = vec![(ratio_bin_edge(0), counts[0])];
    merged.extend(
        (1..=inner)
            .step_by(each)
            .map(|bin| (ratio_bin_edge(bin), counts[bin..bin + each].iter().sum())),
    );
    merged.push((ratio_bin_edge(RATIO_BINS - 1), counts[RATIO_BINS - 1]));
    merged.truncate(rows.max(1));
    merged
}

const PHASES: [Phase; 7] = [
    Phase::Evaluate,
    Phase::Collect,
    Phase::Replay,
    Phase::OldLogprobs,
    Phase::Update,
    Phase::Publish,
    Phase::Checkpoint,
];

/// Where the time of the iteration goes.
pub(super) fn draw_phases(sketch: &mut Sketch<'_>, area: Rect) {
    let run = &sketch.app.run;
    let total = run.history.last().map_or(String::new(), |report| {
        format!("last iteration {}", figures::duration(report.wall_ms))
    });
    let title = FrameTitle {
        left: "Phases".to_owned(),
        right: Some((total, Role::Muted)),
        focused: false,
    };
    let inner = sketch.frame(area, &title);
    let now_ms = sketch.app.run_now_ms();
    let times = phase_times(run, now_ms);
    draw_tail(sketch, inner, times.len() as u16);
    let longest = times.iter().map(|(_, ms, _)| *ms).max().unwrap_or(0).max(1);
    let bar_room = usize::from(inner.width).saturating_sub(26);
    for (row, (phase, ms, is_running)) in times.into_iter().enumerate() {
        let row = row as u16;
        let (role, mark) = if is_running {
            (Role::Running, "▸")
        } else {
            (Role::Muted, " ")
        };
        let label = format!("{mark}{}", pad(wording::phase(phase), 13));
        let at = sketch.put(inner, 0, row, &label, role);
        let time = if ms == 0 {
            figures::NOTHING.to_owned()
        } else {
            figures::duration(ms)
        };
        let at = sketch.put(inner, at, row, &pad_left(&time, 7), Role::Text) + 2;
        let bar = figures::bar(ms as f64 / longest as f64, bar_room);
        sketch.put(
            inner,
            at,
            row,
            &bar,
            if is_running {
                Role::Running
            } else {
                Role::Frame
            },
        );
    }
}

/// Which episodes hold up the batch, or held up the last one.
fn draw_tail(sketch: &mut Sketch<'_>, area: Rect, row: u16) {
    let app = sketch.app;
    let Some(tail) = tail(&app.run, app.run_now_ms()) else {
        return;
    };
    let verb = if tail.is_running { "hold" } else { "held" };
    let role = if tail.is_running {
        Role::Warning
    } else {
        Role::Muted
    };
    let text = format!(
        " last tenth {verb} the batch {}: {}",
        figures::duration(tail.held_ms),
        tail.names.join(", ")
    );
    sketch.put(area, 0, row, &text, role);
}

/// Each phase with its newest length and whether it runs.
fn phase_times(run: &RunState, now_ms: u64) -> Vec<(Phase, u64, bool)> {
    PHASES
        .into_iter()
        .map(|phase| {
            let running = run.phases.iter().find(|state| state.phase == phase);
            let finished = run
                .finished_phases
                .iter()
                .rev()
                .find(|state| state.phase == phase);
            let ms = match (running, finished) {
                (Some(state), _) => now_ms.saturating_sub(state.since_ms),
                (None, Some(state)) => state.wall_ms,
                (None, None) => 0,
            };
            (phase, ms, running.is_some())
        })
        .collect()
}

/// Settings in force, weights, buffer, checkpoint, evaluations.
pub(super) fn draw_settings(sketch: &mut Sketch<'_>, area: Rect) {
    let run = &sketch.app.run;
    let title = FrameTitle {
        left: "Settings in force".to_owned(),
        right: Some((format!("policy v{}", run.policy.0), Role::Text)),
        focused: false,
    };
    let inner = sketch.frame(area, &title);
    let rows = setting_rows(run, sketch.app.run_now_ms());
    for (row, (label, text)) in rows.into_iter().enumerate() {
        let at = sketch.put(inner, 1, row as u16, &pad(label, 15), Role::Muted);
        sketch.put(inner, at, row as u16, &text, Role::Text);
    }
}

fn setting_rows(run: &RunState, now_ms: u64) -> Vec<(&'static str, String)> {
    let settings = &run.settings;
    let mut rows = vec![(
        "sampling",
        format!(
            "temperature {}, {} desktops",
            settings.temperature.0, settings.desktops
        ),
    )];
    let changed = |key: &str| settings.changed.keys().any(|known| known.contains(key));
    let mark = if changed("lr") || changed("learning_rate") {
        "  (changed)"
    } else {
        ""
    };
    rows.push((
        "learning rate",
        format!("{}{mark}", figures::short(settings.learning_rate.0)),
    ));
    if let Some(header) = &run.header {
        rows.push((
            "groups",
            format!(
                "{} x {} of {} tasks, at most {} steps",
                header.tasks_per_iteration, header.group_size, header.num_tasks, header.max_steps
            ),
        ));
    }
    let counters = &run.counters;
    rows.push((
        "replay",
        format!(
            "{} stored for {} tasks, {} injected",
            run.stored_successes(),
            run.covered_tasks(),
            counters.replaced
        ),
    ));
    rows.push((
        "episodes",
        format!(
            "{} scored, {} failed, {} malformed",
            figures::count(counters.episodes),
            figures::count(counters.all_errors()),
            figures::count(counters.malformed)
        ),
    ));
    rows.push((
        "updates",
        format!(
            "{} made, {} skipped",
            counters.updates, counters.skipped_updates
        ),
    ));
    rows.push((
        "checkpoint",
        match &run.checkpoint {
            Some(checkpoint) => format!(
                "after iteration {}, {} ago",
                checkpoint.iterations_done,
                figures::age(now_ms.saturating_sub(checkpoint.at_ms))
            ),
            None => "none yet".to_owned(),
        },
    ));
    let mut reports = run.evaluations.iter().rev();
    let newest = reports.find_map(|one| one.report.as_ref());
    rows.extend(newest.map(|eval| {
        let success = eval.plain.all;
        let low_high = (
            figures::fraction(success.interval.0),
            figures::fraction(success.interval.1),
        );
        let value = figures::fraction(success.success);
        (
            "evaluation",
            format!(
                "{} {value} [{}, {}] n {}",
                eval.name, low_high.0, low_high.1, success.n
            ),
        )
    }));
    rows
}
