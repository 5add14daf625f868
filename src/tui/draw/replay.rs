//! Replay: is replay helping or poisoning? Tasks with their stored successes; the success looked
//! at, frame by frame; injections and coverage over the iterations.

use ratatui::layout::{Constraint, Layout, Rect};

use crate::event::{F, MemberPlace, StepSignal, StoredSuccess};
use crate::tui::layout::SizeClass;
use crate::tui::picture::Mark;
use crate::tui::replay::{
    BAR_CELLS, Condition, ReplayRow, STALE_VERSIONS, rows, selected_place, selected_success,
    sort_name,
};
use crate::tui::text::{one_line, pad, pad_left};
use crate::tui::theme::Role;
use crate::tui::update::Target;
use crate::tui::{figures, wording};
use crate::types::PolicyVersion;

use super::Sketch;
use super::plot::{self, Plot, Series, Stroke};
use super::sketch::FrameTitle;

/// Rows of the charts.
const CHART_ROWS: u16 = 10;
/// Rows of the detail below the list.
const DETAIL_ROWS: u16 = 10;
/// Columns of the detail beside the list.
const DETAIL_COLUMNS: (u16, u16) = (42, 64);
/// Columns of the list apart from the task.
const FIXED: usize = 56;

pub(super) fn draw(sketch: &mut Sketch<'_>, area: Rect, class: SizeClass) {
    let app = sketch.app;
    let rows = rows(&app.run, &app.ui.replay);
    let selected = selected_place(&app.ui.replay, &rows);
    let row = rows.get(selected);
    match class {
        SizeClass::Line | SizeClass::Vitals | SizeClass::List | SizeClass::Narrow => {
            draw_list(sketch, area, &rows, selected);
        }
        SizeClass::Full => {
            let [top, bottom] =
                Layout::vertical([Constraint::Fill(1), Constraint::Length(DETAIL_ROWS)])
                    .areas(area);
            framed_list(sketch, top, &rows, selected);
            draw_detail(sketch, bottom, row);
        }
        SizeClass::Wide => {
            let [top, bottom] =
                Layout::vertical([Constraint::Fill(1), Constraint::Length(CHART_ROWS)]).areas(area);
            let beside = (area.width * 2 / 5).clamp(DETAIL_COLUMNS.0, DETAIL_COLUMNS.1);
            let [left, right] =
                Layout::horizontal([Constraint::Fill(1), Constraint::Length(beside)]).areas(top);
            framed_list(sketch, left, &rows, selected);
            draw_detail(sketch, right, row);
            let [uses, coverage] = Layout::horizontal([Constraint::Fill(1); 2]).areas(bottom);
            draw_uses(sketch, uses);
            draw_coverage(sketch, coverage);
        }
    }
}

fn framed_list(sketch: &mut Sketch<'_>, area: Rect, rows: &[ReplayRow<'_>], selected: usize) {
    let app = sketch.app;
    let run = &app.run;
    let all = run.header.as_ref().map_or(0, |header| header.num_tasks);
    let what = if app.ui.replay.only_never {
        format!("{} of {all} tasks have never succeeded", rows.len())
    } else {
        format!(
            "{} of {all} tasks, {} stored",
            run.covered_tasks(),
            run.stored_successes()
        )
    };
    let title = FrameTitle {
        left: what,
        right: Some((format!("by {}", sort_name(app.ui.replay.sort)), Role::Muted)),
        focused: true,
    };
    let inner = sketch.frame(area, &title);
    draw_list(sketch, inner, rows, selected);
}

fn draw_list(sketch: &mut Sketch<'_>, area: Rect, rows: &[ReplayRow<'_>], selected: usize) {
    if rows.is_empty() {
        let text = if sketch.app.ui.replay.only_never {
            "every task tried has succeeded at least once"
        } else {
            "nothing stored yet: after the first groups"
        };
        sketch.center(area, text, Role::Muted);
        return;
    }
    let task_cells = usize::from(area.width).saturating_sub(FIXED).max(10);
    let heading = format!(
        " {} {} newest oldest uses  last    R  state",
        pad("task", task_cells),
        pad("stored", BAR_CELLS)
    );
    sketch.put(area, 0, 0, &heading, Role::Muted);
    let list = Rect {
        y: area.y + 1,
        height: area.height.saturating_sub(1),
        ..area
    };
    let shown = usize::from(list.height);
    let first = (selected + 1).saturating_sub(shown);
    for (line, (place, row)) in rows.iter().enumerate().skip(first).take(shown).enumerate() {
        let row_area = Rect {
            y: list.y + line as u16,
            height: 1,
            ..list
        };
        draw_row(sketch, row_area, row, task_cells, place == selected);
        sketch.drawn.targets.push((row_area, Target::Replay(place)));
    }
    let hidden = rows.len().saturating_sub(first + shown);
    sketch.put_hidden(list, hidden, "", Role::Warning);
}

fn draw_row(
    sketch: &mut Sketch<'_>,
    area: Rect,
    row: &ReplayRow<'_>,
    task_cells: usize,
    is_selected: bool,
) {
    let version = |policy: Option<PolicyVersion>| {
        policy.map_or(figures::NOTHING.to_owned(), |policy| {
            format!("v{}", policy.0)
        })
    };
    let pointer = if is_selected { "▸" } else { " " };
    let name = format!("{pointer}{} ", pad(&one_line(&row.task.0), task_cells));
    let at = sketch.put(area, 0, 0, &name, Role::Text);
    let stored = row.state.successes.len();
    let bar = "█".repeat(stored.min(BAR_CELLS));
    let at = sketch.put(area, at, 0, &bar, Role::Replay);
    let rest = "·".repeat(BAR_CELLS.saturating_sub(stored));
    let at = sketch.put(area, at, 0, &rest, Role::Muted);
    let last = row
        .state
        .last_injected
        .map_or(figures::NOTHING.to_owned(), |last| {
            format!("it.{}", last.0 + 1)
        });
    let reward = row
        .state
        .reward
        .map_or(figures::NOTHING.to_owned(), |reward| {
            figures::fraction(reward.0)
        });
    let figures = format!(
        " {} {} {} {} {}  ",
        pad_left(&version(row.newest), 6),
        pad_left(&version(row.oldest), 6),
        pad_left(&row.uses.to_string(), 4),
        pad_left(&last, 6),
        pad_left(&reward, 4),
    );
    let at = sketch.put(area, at, 0, &figures, Role::Text);
    let (words, role) = condition_words(row.condition);
    sketch.put(area, at, 0, &words, role);
    if is_selected {
        sketch.select(area);
    }
}

fn condition_words(condition: Condition) -> (String, Role) {
    match condition {
        Condition::Never => ("EMPTY never".to_owned(), Role::Danger),
        Condition::Empty => ("EMPTY".to_owned(), Role::Warning),
        Condition::Stale(versions) => (format!("stale {versions} v"), Role::Warning),
        Condition::Injected => ("injected".to_owned(), Role::Replay),
        Condition::Idle => ("idle".to_owned(), Role::Muted),
    }
}

/// The success looked at: a frame, where it came from, where it was used, what it did.
fn draw_detail(sketch: &mut Sketch<'_>, area: Rect, row: Option<&ReplayRow<'_>>) {
    let view = &sketch.app.ui.replay;
    let Some(row) = row else {
        sketch.frame(area, &FrameTitle::default());
        return;
    };
    let Some((number, success)) = selected_success(view, row) else {
        draw_without_success(sketch, area, row);
        return;
    };
    let title = FrameTitle {
        left: format!(
            "{}  {number}/{}",
            one_line(&row.task.0),
            row.state.successes.len()
        ),
        right: Some((format!("v{}", success.policy.0), Role::Replay)),
        focused: false,
    };
    let inner = sketch.frame(area, &title);
    // Beside the words where the pane is wide and low, else above them.
    let is_low = inner.height < 14;
    let [picture, words] = if is_low {
        Layout::horizontal([Constraint::Length(inner.width / 3), Constraint::Fill(1)]).areas(inner)
    } else {
        Layout::vertical([Constraint::Fill(1), Constraint::Length(9)]).areas(inner)
    };
    let last = success.frames.len().saturating_sub(1);
    let at = view.frame.min(last);
    match success.frames.get(at) {
        Some(frame) => {
            let mark = frame.actions.iter().find_map(Mark::of);
            sketch.picture(picture, frame.image.as_ref(), None, mark.as_ref());
        }
        None => sketch.center(picture, "its frames are not known", Role::Muted),
    }
    let words = Rect {
        x: words.x + u16::from(is_low),
        width: words.width.saturating_sub(u16::from(is_low)),
        ..words
    };
    draw_facts(sketch, words, success, at);
}

fn draw_without_success(sketch: &mut Sketch<'_>, area: Rect, row: &ReplayRow<'_>) {
    let title = FrameTitle {
        left: one_line(&row.task.0),
        right: Some(condition_words(row.condition)),
        focused: false,
    };
    let inner = sketch.frame(area, &title);
    let state = row.state;
    let text = format!(
        "Nothing is stored for this task. Groups: {}, of which failed altogether: {}; episodes \
         that succeeded: {}. A group that fails altogether has no gradient, and there is no \
         success to put into it.",
        state.groups, state.groups_all_fail, state.solved
    );
    sketch.text(inner, &text, Role::Text, 0);
}

fn place_words(place: MemberPlace) -> String {
    format!(
        "g{:02}.s{} of iteration {}",
        place.group.index,
        place.sample,
        place.group.iteration.0 + 1
    )
}

/// How far the weights have gone from those that wrote it, as its newest use showed.
fn drift_words(success: &StoredSuccess) -> String {
    let tokens: u32 = success.learned.iter().map(|step| step.tokens).sum();
    if tokens == 0 {
        return "not known before an update uses it".to_owned();
    }
    let mean = |figure: &dyn Fn(&StepSignal) -> F| {
        let steps = success.learned.iter();
        let sum: f64 = steps
            .map(|step| figure(step).0 * f64::from(step.tokens))
            .sum();
        sum / f64::from(tokens)
    };
    format!(
        "gap {} nats/token, clipped {} high, {} low",
        figures::short(mean(&|step| step.gap)),
        figures::percent(mean(&|step| step.clip_high)),
        figures::percent(mean(&|step| step.clip_low)),
    )
}

fn draw_facts(sketch: &mut Sketch<'_>, area: Rect, success: &StoredSuccess, at: usize) {
    let app = sketch.app;
    let ago = figures::age(app.run_now_ms().saturating_sub(success.at_ms));
    let age = app.run.policy.0.saturating_sub(success.policy.0);
    let role = if age > STALE_VERSIONS {
        Role::Warning
    } else {
        Role::Text
    };
    let from = match success.source {
        Some(place) => place_words(place),
        None => format!("iteration {}", success.iteration.0 + 1),
    };
    let used = match success.uses.back() {
        Some(place) => format!(
            "{}x, last in place of {}",
            success.used,
            place_words(*place)
        ),
        None => "not yet".to_owned(),
    };
    let frame = success.frames.get(at);
    let did = match frame.map(|frame| &frame.actions) {
        Some(actions) if !actions.is_empty() => wording::actions(actions),
        Some(_) => "the screen it ended on".to_owned(),
        None => figures::NOTHING.to_owned(),
    };
    let pinned = if success.pinned { "  pinned" } else { "" };
    let rows = [
        (
            "episode",
            format!("{}{pinned}", success.episode),
            Role::Text,
        ),
        ("from", format!("{from}, {ago} ago"), Role::Text),
        ("age", format!("{age} versions of the weights"), role),
        ("used", used, Role::Text),
        ("drift", drift_words(success), Role::Text),
        (
            "frame",
            format!("{}/{}  {did}", at + 1, success.frames.len().max(1)),
            Role::Running,
        ),
    ];
    let mut line = 0;
    for (label, text, role) in rows {
        let column = sketch.put(area, 0, line, &pad(label, 8), Role::Muted);
        sketch.put(area, column, line, &text, role);
        line += 1;
    }
    let steps: Vec<String> = success
        .frames
        .iter()
        .filter_map(|frame| frame.actions.first())
        .map(|action| {
            let text = wording::action(action);
            text.split(' ').next().unwrap_or_default().to_owned()
        })
        .collect();
    sketch.put(area, 0, line, "steps", Role::Muted);
    let body = Rect {
        x: area.x + 8.min(area.width),
        y: area.y + line,
        width: area.width.saturating_sub(8),
        height: area.height.saturating_sub(line),
    };
    sketch.text(body, &steps.join(" "), Role::Muted, 0);
}

/// Injections and groups that failed altogether, by iteration.
fn draw_uses(sketch: &mut Sketch<'_>, area: Rect) {
    let history = &sketch.app.run.history;
    let figures = history.last().map_or(String::new(), |last| {
        format!(
            "{} of {}, injected (points) {}",
            last.groups_all_fail, last.groups, last.replaced
        )
    });
    let all_fail = Series {
        values: history
            .iter()
            .map(|report| f64::from(report.groups_all_fail))
            .collect(),
        role: Role::Chart1,
        stroke: Stroke::Line,
    };
    let injected = Series {
        values: history
            .iter()
            .map(|report| f64::from(report.replaced))
            .collect(),
        role: Role::Chart4,
        stroke: Stroke::Points,
    };
    let title = "All-fail groups (line)";
    draw_chart(sketch, area, title, figures, vec![all_fail, injected], None);
}

/// Tasks with a stored success, by iteration.
fn draw_coverage(sketch: &mut Sketch<'_>, area: Rect) {
    let run = &sketch.app.run;
    let all = run.header.as_ref().map_or(0, |header| header.num_tasks);
    let figures = format!("{} of {all} tasks", run.covered_tasks());
    let covered = Series {
        values: run.coverage.iter().map(|count| f64::from(*count)).collect(),
        role: Role::Chart1,
        stroke: Stroke::Line,
    };
    let top = (all > 0).then_some(f64::from(all));
    draw_chart(
        sketch,
        area,
        "Tasks with a stored success",
        figures,
        vec![covered],
        top,
    );
}

fn draw_chart(
    sketch: &mut Sketch<'_>,
    area: Rect,
    title: &str,
    figures: String,
    series: Vec<Series>,
    top: Option<f64>,
) {
    let title = FrameTitle {
        left: title.to_owned(),
        right: Some((figures, Role::Chart1)),
        focused: false,
    };
    let inner = sketch.frame(area, &title);
    let run = &sketch.app.run;
    let span = series.iter().map(|series| series.values.len()).max();
    let Some(span) = span.filter(|span| *span > 0) else {
        sketch.center(inner, "after the first iteration", Role::Muted);
        return;
    };
    let planned = run.header.as_ref().map_or(0, |header| header.iterations);
    plot::draw(
        sketch,
        inner,
        &Plot {
            series,
            first: 1,
            span: span.max(planned as usize),
            top,
            format: whole,
            ..Plot::default()
        },
    );
}

fn whole(value: f64) -> String {
    figures::short(value).replace(".0", "")
}
