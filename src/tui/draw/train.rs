//! Train: is learning healthy? Charts over the iterations, phases, settings in force.

use ratatui::layout::{Constraint, Layout, Rect};

use crate::event::{IterationReport, Phase, RunState};
use crate::tui::layout::SizeClass;
use crate::tui::text::{pad, pad_left};
use crate::tui::theme::Role;
use crate::tui::train::{AVERAGE_OVER, CHARTS, Chart, moving_average, shown_history};
use crate::tui::update::Target;
use crate::tui::{figures, wording};

use super::Sketch;
use super::plot::{self, Plot, Series, Stroke};
use super::sketch::FrameTitle;

/// Rows of the panes below the charts.
const PANES_ROWS: u16 = 10;

pub(super) fn draw(sketch: &mut Sketch<'_>, area: Rect, class: SizeClass) {
    let focused = sketch.app.ui.train.chart.min(CHARTS.len() - 1);
    if sketch.app.ui.train.zoomed && class >= SizeClass::Narrow {
        draw_chart(sketch, area, focused);
        return;
    }
    match class {
        SizeClass::Line | SizeClass::Vitals | SizeClass::List => draw_sparks(sketch, area),
        SizeClass::Narrow => {
            let [top, bottom] =
                Layout::vertical([Constraint::Fill(1), Constraint::Length(6)]).areas(area);
            draw_chart(sketch, top, focused);
            draw_sparks(sketch, bottom);
        }
        SizeClass::Full => draw_full(sketch, area),
        SizeClass::Wide => draw_wide(sketch, area),
    }
}

fn draw_full(sketch: &mut Sketch<'_>, area: Rect) {
    let [top, bottom] =
        Layout::vertical([Constraint::Fill(1), Constraint::Length(PANES_ROWS)]).areas(area);
    let [reward, std] = Layout::horizontal([Constraint::Fill(1); 2]).areas(top);
    draw_chart(sketch, reward, 0);
    // The second chart of a small terminal is the one in focus.
    draw_chart(sketch, std, sketch.app.ui.train.chart.max(1));
    let [sparks, phases] = Layout::horizontal([Constraint::Fill(1); 2]).areas(bottom);
    let title = FrameTitle {
        left: "Figures".to_owned(),
        ..FrameTitle::default()
    };
    let inner = sketch.frame(sparks, &title);
    draw_sparks(sketch, inner);
    draw_phases(sketch, phases);
}

fn draw_wide(sketch: &mut Sketch<'_>, area: Rect) {
    let [top, middle, below, bottom] = Layout::vertical([
        Constraint::Fill(5),
        Constraint::Fill(3),
        Constraint::Fill(3),
        Constraint::Length(PANES_ROWS),
    ])
    .areas(area);
    let [reward, std] = Layout::horizontal([Constraint::Fill(1); 2]).areas(top);
    draw_chart(sketch, reward, 0);
    draw_chart(sketch, std, 1);
    for (row, first) in [(middle, 2), (below, 5)] {
        let places: [Rect; 3] = Layout::horizontal([Constraint::Fill(1); 3]).areas(row);
        for (place, area) in places.into_iter().enumerate() {
            draw_chart(sketch, area, first + place);
        }
    }
    let [phases, settings] = Layout::horizontal([Constraint::Fill(1); 2]).areas(bottom);
    draw_phases(sketch, phases);
    draw_settings(sketch, settings);
}

fn draw_chart(sketch: &mut Sketch<'_>, area: Rect, number: usize) {
    let app = sketch.app;
    let chart = &CHARTS[number];
    let history = shown_history(&app.run, app.ui.train.window);
    let values: Vec<f64> = history.iter().map(chart.value).collect();
    let averages = moving_average(&values, AVERAGE_OVER);
    let title = FrameTitle {
        left: format!("{}  {}", chart.name, chart.unit),
        right: chart_figures(chart, history, &averages),
        focused: app.ui.train.chart == number,
    };
    let mut inner = sketch.frame(area, &title);
    sketch.drawn.targets.push((area, Target::Chart(number)));
    if values.is_empty() {
        sketch.center(inner, "after the first iteration", Role::Muted);
        return;
    }
    let first = history.first().map_or(0, |report| report.iteration.0 + 1);
    let planned = app
        .run
        .header
        .as_ref()
        .map_or(0, |header| header.iterations as usize);
    let span = match app.ui.train.window {
        Some(window) => window,
        None => planned.max(values.len()),
    };
    if number == 1 && inner.height >= 7 {
        inner.height -= 1;
        draw_dead(
            sketch,
            Rect {
                y: inner.bottom(),
                height: 1,
                ..inner
            },
            history,
            span,
        );
    }
    let series = chart_series(chart, history, values, averages);
    plot::draw(
        sketch,
        inner,
        &Plot {
            series,
            first,
            span,
            top: chart.top,
            format: chart.format,
        },
    );
}

fn chart_series(
    chart: &Chart,
    history: &[IterationReport],
    values: Vec<f64>,
    averages: Vec<f64>,
) -> Vec<Series> {
    let main = Series {
        values: Vec::new(),
        role: Role::Chart1,
        stroke: Stroke::Line,
    };
    if chart.averaged {
        // The course of the average before its unrest, which without color is points.
        let raw = Series {
            values,
            role: Role::Frame,
            stroke: Stroke::Faint,
        };
        return vec![
            raw,
            Series {
                values: averages,
                ..main
            },
        ];
    }
    let mut series = Vec::new();
    if let Some((_, second)) = chart.second {
        let values = history.iter().map(second).collect();
        series.push(Series {
            values,
            role: Role::Chart4,
            stroke: Stroke::Points,
        });
    }
    series.push(Series { values, ..main });
    series
}

/// The newest figures for the title.
fn chart_figures(
    chart: &Chart,
    history: &[IterationReport],
    averages: &[f64],
) -> Option<(String, Role)> {
    let last = history.last()?;
    let mut text = (chart.format)((chart.value)(last));
    if chart.averaged {
        let average = averages
            .last()
            .map_or(String::new(), |value| (chart.format)(*value));
        text = format!("{text}  avg {AVERAGE_OVER} it. {average}");
    }
    if let Some((name, second)) = chart.second {
        text = format!("{text}  {name} {}", (chart.format)(second(last)));
    }
    Some((text, Role::Chart1))
}

/// Dead groups of each iteration as heights under the group chart.
fn draw_dead(sketch: &mut Sketch<'_>, area: Rect, history: &[IterationReport], span: usize) {
    const HEIGHTS: [&str; 9] = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];
    let at = sketch.put(area, 0, 0, " dead ", Role::Muted);
    let room = usize::from(area.width.saturating_sub(at));
    for column in 0..room {
        // The iteration nearest to this column, as the plot above spreads them.
        let place = (column as f64 / (room.max(2) - 1) as f64 * (span.max(2) - 1) as f64).round();
        let Some(report) = history.get(place as usize) else {
            break;
        };
        let share = f64::from(report.groups_zero_variance) / f64::from(report.groups.max(1));
        let height = HEIGHTS[((share * 8.0).ceil() as usize).min(8)];
        sketch.put(area, at + column as u16, 0, height, Role::Warning);
    }
}

/// All figures, one a row, with their course.
fn draw_sparks(sketch: &mut Sketch<'_>, area: Rect) {
    let app = sketch.app;
    let history = shown_history(&app.run, app.ui.train.window);
    let Some(last) = history.last() else {
        sketch.center(area, "after the first iteration", Role::Muted);
        return;
    };
    let room = usize::from(area.width).saturating_sub(25).min(60);
    for (row, chart) in CHARTS.iter().enumerate().take(usize::from(area.height)) {
        let row = row as u16;
        let values: Vec<f64> = history.iter().map(chart.value).collect();
        let role = if app.ui.train.chart == usize::from(row) {
            Role::Focus
        } else {
            Role::Muted
        };
        let at = sketch.put(area, 1, row, &pad(chart.name, 14), role);
        let value = (chart.format)((chart.value)(last));
        let at = sketch.put(area, at, row, &pad_left(&value, 7), Role::Text) + 2;
        sketch.put(
            area,
            at,
            row,
            &figures::sparkline(&values, room),
            Role::Chart1,
        );
    }
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
fn draw_phases(sketch: &mut Sketch<'_>, area: Rect) {
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
    let times = phase_times(run, sketch.app.run_now_ms());
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
fn draw_settings(sketch: &mut Sketch<'_>, area: Rect) {
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
            run.replay.len(),
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
    let mut evaluations = run.evaluations.iter().rev();
    let newest = evaluations.find_map(|one| one.report.as_ref());
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
