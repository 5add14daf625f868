//! Train: is learning healthy? Charts over the iterations with one cursor, and panes beside them.

use ratatui::layout::{Constraint, Layout, Rect};

use crate::event::{IterationReport, RunState};
use crate::tui::figures;
use crate::tui::layout::SizeClass;
use crate::tui::text::one_line;
use crate::tui::theme::Role;
use crate::tui::train::{
    AVERAGE_OVER, CHARTS, Chart, LONGEST, RATIOS, at_cursor, mark_letter, marks_of, moving_average,
    shown_history,
};
use crate::tui::update::Target;

use super::Sketch;
use super::plot::{self, Plot, Series, Stroke};
use super::sketch::FrameTitle;
use super::train_panes::{draw_phases, draw_ratios, draw_settings, draw_sparks};

/// Rows of the panes below the charts.
const PANES_ROWS: u16 = 10;
/// A chart of fewer columns has its name and its newest figure only.
const NARROW: u16 = 34;
/// A chart of fewer columns has no second figure in its title.
const MIDDLE: u16 = 44;
/// Column of the chart of the KL estimate, which is always marked as such.
const KL: &str = "approx_kl";
/// Charts that the panes' figures leave out, as they are drawn above them.
const REWARD: usize = 0;

pub(super) fn draw(sketch: &mut Sketch<'_>, area: Rect, class: SizeClass) {
    let focused = sketch.app.ui.train.chart.min(RATIOS);
    if class < SizeClass::Narrow {
        draw_sparks(sketch, area, &[]);
        return;
    }
    let [page, cursor] = Layout::vertical([Constraint::Fill(1), Constraint::Length(1)]).areas(area);
    draw_cursor_line(sketch, cursor);
    if sketch.app.ui.train.zoomed {
        draw_focused(sketch, page, focused);
        return;
    }
    match class {
        SizeClass::Full => draw_full(sketch, page, focused),
        SizeClass::Wide => draw_wide(sketch, page),
        _ => {
            let [top, bottom] =
                Layout::vertical([Constraint::Fill(1), Constraint::Length(6)]).areas(page);
            draw_focused(sketch, top, focused);
            draw_sparks(sketch, bottom, &[]);
        }
    }
}

fn draw_focused(sketch: &mut Sketch<'_>, area: Rect, focused: usize) {
    if focused == RATIOS {
        draw_ratios(sketch, area);
    } else {
        draw_chart(sketch, area, focused);
    }
}

fn draw_full(sketch: &mut Sketch<'_>, area: Rect, focused: usize) {
    let [top, bottom] =
        Layout::vertical([Constraint::Fill(1), Constraint::Length(PANES_ROWS)]).areas(area);
    let [left, right] = Layout::horizontal([Constraint::Fill(1); 2]).areas(top);
    draw_chart(sketch, left, REWARD);
    // The second chart of a small terminal is the one in focus.
    let second = focused.max(1);
    draw_focused(sketch, right, second);
    let [sparks, phases] = Layout::horizontal([Constraint::Fill(1); 2]).areas(bottom);
    let title = FrameTitle {
        left: "Figures".to_owned(),
        right: Some((window_words(sketch), Role::Muted)),
        focused: false,
    };
    let inner = sketch.frame(sparks, &title);
    draw_sparks(sketch, inner, &[REWARD, second]);
    draw_phases(sketch, phases);
}

/// Which iterations are shown.
fn window_words(sketch: &Sketch<'_>) -> String {
    match sketch.app.ui.train.window {
        Some(window) => format!("last {window} iterations"),
        None => "all iterations".to_owned(),
    }
}

fn draw_wide(sketch: &mut Sketch<'_>, area: Rect) {
    let [top, middle, below, bottom] = Layout::vertical([
        Constraint::Fill(5),
        Constraint::Fill(4),
        Constraint::Fill(4),
        Constraint::Length(PANES_ROWS),
    ])
    .areas(area);
    let [reward, std] = Layout::horizontal([Constraint::Fill(1); 2]).areas(top);
    draw_chart(sketch, reward, REWARD);
    draw_chart(sketch, std, 1);
    for (row, first) in [(middle, 2), (below, 6)] {
        let places: [Rect; 4] = Layout::horizontal([Constraint::Fill(1); 4]).areas(row);
        for (place, area) in places.into_iter().enumerate() {
            draw_chart(sketch, area, first + place);
        }
    }
    let [phases, ratios, settings] = Layout::horizontal([
        Constraint::Fill(36),
        Constraint::Fill(30),
        Constraint::Fill(54),
    ])
    .areas(bottom);
    draw_phases(sketch, phases);
    draw_ratios(sketch, ratios);
    draw_settings(sketch, settings);
}

/// All figures of the iteration under the cursor, and what happened in it.
fn draw_cursor_line(sketch: &mut Sketch<'_>, area: Rect) {
    let app = sketch.app;
    let Some(report) = at_cursor(&app.run, &app.ui.train) else {
        return;
    };
    let role = if app.ui.train.cursor.is_some() {
        Role::Focus
    } else {
        Role::Muted
    };
    let label = format!("iteration {} ", report.iteration.0 + 1);
    let mut at = sketch.put(area, 1, 0, &label, role);
    // What is rare first: a line that is cut loses the usual.
    let marks = marks_of(&app.run, report);
    let marks: Vec<String> = marks.into_iter().map(|(_, words)| words).collect();
    if !marks.is_empty() {
        let text = format!("[{}] ", one_line(&marks.join(", ")));
        at = sketch.put(area, at, 0, &text, Role::Warning);
    }
    let mut figures = vec![
        ("reward", figures::fraction(report.reward_mean.0)),
        ("std", figures::fraction(report.group_std.0)),
        (
            "dead",
            format!("{}/{}", report.groups_zero_variance, report.groups),
        ),
    ];
    if let Some(other) = compared_at(sketch, report) {
        let compared = app.ui.train.compared.as_ref();
        let name = one_line(compared.map_or("", |run| run.name.as_str()));
        let value = figures::fraction(other.reward_mean.0);
        at = sketch.put(
            area,
            at,
            0,
            &format!("{name} reward {value}  "),
            Role::Chart4,
        );
    }
    figures.extend([
        ("clip", figures::percent(report.clip_fraction.0)),
        ("entropy", figures::short(report.entropy.0)),
        ("gap", figures::short(report.logprob_gap.0)),
        ("took", figures::duration(report.wall_ms)),
    ]);
    for (name, value) in figures {
        at = sketch.put(area, at, 0, &format!("{name} "), Role::Muted);
        at = sketch.put(area, at, 0, &format!("{value}  "), Role::Text);
    }
}

/// The same iteration of the other run.
fn compared_at<'a>(sketch: &Sketch<'a>, report: &IterationReport) -> Option<&'a IterationReport> {
    let app = sketch.app;
    let compared = app.ui.train.compared.as_ref()?;
    let mut others = compared.history.iter();
    others.find(|other| other.iteration == report.iteration)
}

fn draw_chart(sketch: &mut Sketch<'_>, area: Rect, number: usize) {
    let app = sketch.app;
    let chart = &CHARTS[number];
    let view = &app.ui.train;
    let history = shown_history(&app.run, view.window);
    let values: Vec<f64> = history.iter().map(chart.value).collect();
    let averages = moving_average(&values, AVERAGE_OVER);
    let title = FrameTitle {
        left: chart_title(chart, view.is_log, area.width),
        right: chart_figures(sketch, number, history, &averages, area.width < MIDDLE),
        focused: view.chart == number,
    };
    let mut inner = sketch.frame(area, &title);
    sketch.drawn.targets.push((area, Target::Chart(number)));
    if values.is_empty() {
        sketch.center(inner, "after the first iteration", Role::Muted);
        return;
    }
    let first = history.first().map_or(0, |report| report.iteration.0);
    let span = shown_span(&app.run, view.window, history.len());
    if number == 1 && inner.height >= 5 {
        inner.height -= 1;
        let dead = Rect {
            y: inner.bottom(),
            height: 1,
            ..inner
        };
        draw_dead(sketch, dead, history, span);
    }
    let mut series = compared_series(sketch, chart, first, span);
    series.extend(chart_series(chart, history, values, averages));
    let cursor = view.cursor.and_then(|cursor| cursor.0.checked_sub(first));
    let plot = Plot {
        series,
        first: first + 1,
        span,
        top: chart_top(&app.run, number),
        format: chart.format,
        is_log: view.is_log,
        cursor: cursor.map(|cursor| cursor as usize),
        // Letters on every axis are too many.
        marks: if number <= 1 || view.zoomed {
            axis_marks(&app.run, history)
        } else {
            Vec::new()
        },
    };
    plot::draw(sketch, inner, &plot);
}

/// Iterations from edge to edge: the window, or all that are planned.
fn shown_span(run: &RunState, window: Option<usize>, known: usize) -> usize {
    let planned = run.header.as_ref().map_or(0, |header| header.iterations);
    window.unwrap_or_else(|| known.max(planned as usize))
}

fn chart_title(chart: &Chart, is_log: bool, width: u16) -> String {
    let axis = if is_log { ", log" } else { "" };
    if width < NARROW {
        let off = if chart.column == KL { " disabled" } else { "" };
        return format!("{}{off}{axis}", chart.name);
    }
    format!("{}  {}{axis}", chart.name, chart.unit)
}

/// Top of a chart's axis, where it is known.
fn chart_top(run: &RunState, number: usize) -> Option<f64> {
    let context = run
        .header
        .as_ref()
        .map_or(0, |header| header.context_tokens);
    match number {
        LONGEST if context > 0 => Some(f64::from(context)),
        number => CHARTS[number].top,
    }
}

fn axis_marks(run: &RunState, history: &[IterationReport]) -> Vec<(usize, char)> {
    let letter = |report| mark_letter(&marks_of(run, report));
    let marks = history.iter().map(letter).enumerate();
    marks
        .filter_map(|(place, letter)| Some((place, letter?)))
        .collect()
}

/// The other run's course over the same iterations.
fn compared_series(sketch: &Sketch<'_>, chart: &Chart, first: u64, span: usize) -> Vec<Series> {
    let Some(compared) = &sketch.app.ui.train.compared else {
        return Vec::new();
    };
    let mut values = vec![f64::NAN; span];
    for report in &compared.history {
        let place = report.iteration.0.checked_sub(first);
        if let Some(value) = place.and_then(|place| values.get_mut(place as usize)) {
            *value = (chart.value)(report);
        }
    }
    if chart.averaged {
        values = moving_average(&values, AVERAGE_OVER);
    }
    vec![Series {
        values,
        role: Role::Chart4,
        stroke: Stroke::Points,
    }]
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
    if let Some((_, _, second)) = chart.second {
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

/// The figures under the cursor for the title, or the newest.
fn chart_figures(
    sketch: &Sketch<'_>,
    number: usize,
    history: &[IterationReport],
    averages: &[f64],
    is_narrow: bool,
) -> Option<(String, Role)> {
    let (app, chart) = (sketch.app, &CHARTS[number]);
    let report = at_cursor(&app.run, &app.ui.train)?;
    let mut text = (chart.format)((chart.value)(report));
    let place = history
        .iter()
        .position(|known| known.iteration == report.iteration);
    if let (true, Some(average)) = (chart.averaged, place.and_then(|p| averages.get(p))) {
        let average = (chart.format)(*average);
        text = format!("{text}  mean of {AVERAGE_OVER} {average}");
    }
    // The two clips are never told apart from one another by half.
    let has_room = !is_narrow || chart.column == "clip_high";
    if let Some((name, _, second)) = chart.second.filter(|_| has_room) {
        text = format!("{text}  {name} {}", (chart.format)(second(report)));
    }
    if number == 1 {
        let (dead, all) = (report.groups_zero_variance, report.groups);
        text = format!("{text}  dead {dead}/{all}");
    }
    if let (LONGEST, Some(header)) = (number, &app.run.header) {
        let left = header.context_tokens.saturating_sub(report.tokens_max);
        text = format!("{left} left");
    }
    if let Some(other) = compared_at(sketch, report) {
        text = format!("{text}  other {}", (chart.format)((chart.value)(other)));
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
