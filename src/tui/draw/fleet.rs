//! Fleet: who needs me? Groups by samples; beside it the selected sample, below it its group.

use ratatui::layout::{Constraint, Layout, Rect};

use crate::tui::fleet::{
    Cell, CellKind, FleetLayout, FleetRow, FleetSort, Note, RowKey, rows_in_order, selected_place,
};
use crate::tui::layout::SizeClass;
use crate::tui::text::{first_fit, one_line, pad, pad_left};
use crate::tui::theme::Role;
use crate::tui::update::Target;
use crate::tui::{figures, wording};

use super::sketch::FrameTitle;
use super::{Sketch, cards, preview};

/// Columns of the pane beside the matrix, least and most.
const PREVIEW_COLUMNS: (u16, u16) = (42, 76);
/// Rows that cards below the matrix need at least.
const CARDS_MIN_ROWS: u16 = 7;

pub(super) fn draw(sketch: &mut Sketch<'_>, area: Rect, class: SizeClass) {
    let rows = rows_in_order(sketch.app);
    if rows.iter().all(|row| row.cells.is_empty()) {
        draw_nothing_yet(sketch, area);
        return;
    }
    if sketch.app.ui.fleet.layout != FleetLayout::Matrix && class >= SizeClass::Narrow {
        cards::draw_all(sketch, area, &rows);
        return;
    }
    if class < SizeClass::Wide {
        draw_matrix_and_cards(sketch, area, &rows, class);
        return;
    }
    let beside = (area.width * 2 / 5).clamp(PREVIEW_COLUMNS.0, PREVIEW_COLUMNS.1);
    let [left, right] =
        Layout::horizontal([Constraint::Fill(1), Constraint::Length(beside)]).areas(area);
    draw_matrix_and_cards(sketch, left, &rows, class);
    preview::draw(sketch, right, &rows);
}

fn draw_nothing_yet(sketch: &mut Sketch<'_>, area: Rect) {
    let app = sketch.app;
    let text = match app.run.header {
        None => "waiting for the run's first event",
        Some(_) => "no episode yet",
    };
    sketch.center(area, text, Role::Muted);
}

fn draw_matrix_and_cards(sketch: &mut Sketch<'_>, area: Rect, rows: &[FleetRow], class: SizeClass) {
    let framed = class >= SizeClass::Full;
    let wanted = rows.len() as u16 + if framed { 3 } else { 1 };
    let left_over = area.height.saturating_sub(wanted);
    let below = if left_over >= CARDS_MIN_ROWS && class >= SizeClass::Full {
        left_over
    } else {
        0
    };
    let [top, bottom] =
        Layout::vertical([Constraint::Fill(1), Constraint::Length(below)]).areas(area);
    draw_matrix(sketch, top, rows, framed);
    if below > 0 {
        let (row, _) = selected_place(sketch.app, rows);
        cards::draw_row(sketch, bottom, &rows[row]);
    }
}

/// Widths of the matrix' columns.
struct Columns {
    task: usize,
    cell: usize,
    /// Mean and std.
    figures: bool,
    note: usize,
}

impl Columns {
    /// Shares out `width` cells among `samples` cells a row and the rest.
    fn share(width: usize, samples: usize) -> Self {
        let label = 5;
        for (cell, figures, note, least_task) in [
            (5, true, 13, 14),
            (5, true, 9, 12),
            (4, true, 8, 10),
            (4, true, 0, 8),
            (4, false, 0, 6),
        ] {
            let fixed = label + samples * cell + if figures { 11 } else { 0 } + note;
            if width >= fixed + least_task {
                return Self {
                    task: (width - fixed).min(34),
                    cell,
                    figures,
                    note,
                };
            }
        }
        let task = width.saturating_sub(label + samples);
        Self {
            task: task.min(12),
            cell: 1,
            figures: false,
            note: 0,
        }
    }
}

fn draw_matrix(sketch: &mut Sketch<'_>, area: Rect, rows: &[FleetRow], framed: bool) {
    let app = sketch.app;
    let inner = if framed {
        sketch.frame(area, &matrix_title(sketch, rows))
    } else {
        area
    };
    let samples = rows.iter().map(|row| row.cells.len()).max().unwrap_or(0);
    let columns = Columns::share(usize::from(inner.width), samples);
    let is_desktops = matches!(rows.first().map(|row| row.key), Some(RowKey::Desktops(_)));
    draw_heading(sketch, inner, &columns, samples, is_desktops);
    let list = Rect {
        y: inner.y + 1,
        height: inner.height.saturating_sub(1),
        ..inner
    };
    let (selected, sample) = selected_place(app, rows);
    let shown = usize::from(list.height);
    let first = (selected + 1).saturating_sub(shown);
    for (line, row) in rows.iter().skip(first).take(shown).enumerate() {
        let chosen = (line + first == selected).then_some(sample);
        draw_row(sketch, list, line as u16, row, &columns, chosen);
    }
    let hidden = rows.len().saturating_sub(first + shown);
    sketch.put_hidden(list, hidden, "", Role::Warning);
}

fn matrix_title(sketch: &Sketch<'_>, rows: &[FleetRow]) -> FrameTitle {
    let app = sketch.app;
    let what = match rows.first().map(|row| row.key) {
        Some(RowKey::Group(group)) => {
            format!("{} groups, iteration {}", rows.len(), group.iteration.0 + 1)
        }
        _ => match app.run.phase() {
            Some(phase) => format!(
                "{} desktops, {}",
                app.run.desktops.len(),
                wording::phase(phase.phase)
            ),
            None => format!("{} desktops", app.run.desktops.len()),
        },
    };
    let sort = match app.ui.fleet.sort {
        FleetSort::Attention => "by attention",
        FleetSort::Number => "by number",
    };
    FrameTitle {
        left: what,
        right: Some((sort.to_owned(), Role::Muted)),
        focused: true,
    }
}

fn draw_heading(
    sketch: &mut Sketch<'_>,
    area: Rect,
    columns: &Columns,
    samples: usize,
    is_desktops: bool,
) {
    let label = if is_desktops { "  vm" } else { "  grp" };
    let mut at = sketch.put(area, 0, 0, &pad(label, 5), Role::Muted);
    at = sketch.put(area, at, 0, &pad(" task", columns.task), Role::Muted);
    for sample in 0..samples {
        let label = if columns.cell == 1 {
            String::new()
        } else {
            format!("s{sample}")
        };
        at = sketch.put(area, at, 0, &pad(&label, columns.cell), Role::Muted);
    }
    if columns.figures {
        let text = if is_desktops {
            // The longest stand of one of them, and what their actions take.
            "  age  act "
        } else {
            " mean  std "
        };
        at = sketch.put(area, at, 0, text, Role::Muted);
    }
    if columns.note > 0 {
        sketch.put(area, at, 0, " note", Role::Muted);
    }
}

/// Draws a row; `chosen` is the selected sample if it is the selected row.
fn draw_row(
    sketch: &mut Sketch<'_>,
    area: Rect,
    line: u16,
    row: &FleetRow,
    columns: &Columns,
    chosen: Option<usize>,
) {
    let pointer = if chosen.is_some() { "▸" } else { " " };
    let mut at = sketch.put(
        area,
        0,
        line,
        &format!("{pointer} {:02} ", row.key.number()),
        match chosen {
            Some(_) => Role::Focus,
            None => Role::Muted,
        },
    );
    let role = if chosen.is_some() {
        Role::Focus
    } else {
        Role::Text
    };
    // What is asked tells an operator more than an identifier, which is beside and in Rollout.
    let asked = if row.instruction.is_empty() {
        &row.task.0
    } else {
        &row.instruction
    };
    let task = format!(" {}", one_line(asked));
    at = sketch.put(
        area,
        at,
        line,
        &format!("{} ", pad(&task, columns.task.saturating_sub(1))),
        role,
    );
    for (sample, cell) in row.cells.iter().enumerate() {
        let code = match columns.cell {
            1 => cell.letter().to_string(),
            4 => cell.short_code(),
            _ => cell.code(),
        };
        let start = at;
        sketch.put(area, at, line, &pad(&code, columns.cell), cell_role(cell));
        at += columns.cell as u16;
        let width = (columns.cell as u16).max(2) - 1;
        let place = Rect {
            x: area.x + start,
            y: area.y + line,
            width,
            height: 1,
        };
        if chosen == Some(sample) {
            sketch.select(place.intersection(area));
        }
        sketch
            .drawn
            .targets
            .push((place, Target::Sample(row.key.number(), sample)));
    }
    if columns.figures {
        let (first, second, role) = row_figures(row);
        at = sketch.put(area, at, line, &pad_left(&first, 5), Role::Text);
        let text = format!("{} ", pad_left(&second, 5));
        at = sketch.put(area, at, line, &text, role);
    }
    if columns.note > 0 {
        let (text, role) = note_words(&row.note, columns.note - 1);
        sketch.put(
            area,
            at,
            line,
            &pad(&format!(" {text}"), columns.note),
            role,
        );
    }
}

/// Mean and standard deviation of a group, or that it is dead; for desktops the longest stand
/// and what an action takes.
fn row_figures(row: &FleetRow) -> (String, String, Role) {
    let nothing = || figures::NOTHING.to_owned();
    if matches!(row.key, RowKey::Desktops(_)) {
        let age = row.longest_ms.map_or_else(nothing, figures::age);
        let latency = row.latency_ms.map_or_else(nothing, figures::brief);
        return (age, latency, Role::Text);
    }
    let mean = row.mean.map_or_else(nothing, figures::fraction);
    if row.is_dead() {
        return (mean, "DEAD".to_owned(), Role::Warning);
    }
    let std = row.std.map_or_else(nothing, figures::fraction);
    (mean, std, Role::Text)
}

/// The role of a cell's code.
pub(super) fn cell_role(cell: &Cell) -> Role {
    match cell.kind {
        CellKind::Waiting => Role::Waiting,
        CellKind::Booting | CellKind::Scoring | CellKind::Running(_) => Role::Running,
        CellKind::Paused(_) | CellKind::Replayed(_) => Role::Replay,
        CellKind::Overdue | CellKind::Held(_) | CellKind::Stuck(_) => Role::Warning,
        CellKind::Done(outcome) if outcome > 0.5 => Role::Good,
        CellKind::Done(_) | CellKind::Malformed(_) => Role::Bad,
        CellKind::Fault => Role::Danger,
    }
}

/// A note in few words; in fewer where the longer ones take more than `cells`.
pub(super) fn note_words(note: &Note, cells: usize) -> (String, Role) {
    match note {
        Note::Running => (String::new(), Role::Muted),
        Note::Signal => ("signal".to_owned(), Role::Good),
        Note::Replayed(count) => (format!("replay {count}"), Role::Replay),
        Note::AllFail => ("all fail".to_owned(), Role::Warning),
        Note::AllPass => ("all pass".to_owned(), Role::Muted),
        Note::Failing => ("failing".to_owned(), Role::Bad),
        Note::Held(count) => (format!("{count} held"), Role::Warning),
        Note::Stuck(ms) => (format!("stuck {}", figures::age(*ms)), Role::Warning),
        Note::Faults(1) => ("fault".to_owned(), Role::Danger),
        Note::Faults(count) => (format!("{count} faults"), Role::Danger),
        Note::Machines(note) => (first_fit(&note.forms(), cells), note.standing.role()),
    }
}
