//! Terminals too small for a page: a few figures, or one line.

use ratatui::layout::Rect;

use crate::tui::text::first_fit;
use crate::tui::theme::Role;
use crate::tui::{machines, wording};

use super::Sketch;
use super::chrome::{state_role, vitals};

/// One figure a row.
pub(super) fn draw_vitals(sketch: &mut Sketch<'_>, area: Rect) {
    let first = Rect { height: 1, ..area };
    draw_line(sketch, first);
    let run = &sketch.app.run;
    let mut row = 1;
    if let Some(phase) = run.phase() {
        let text = format!(
            "{} {}/{}",
            wording::phase(phase.phase),
            phase.done,
            phase.total
        );
        sketch.put(area, 0, row, &text, Role::Running);
        row += 1;
    }
    if let Some((forms, role)) = machines::fleet_forms(run, sketch.app.run_now_ms()) {
        let at = sketch.put(area, 0, row, "vms ", Role::Muted);
        let room = usize::from(area.width.saturating_sub(at));
        sketch.put(area, at, row, &first_fit(&forms, room), role);
        row += 1;
    }
    for (name, value, role) in vitals(run) {
        let at = sketch.put(area, 0, row, &format!("{name} "), Role::Muted);
        sketch.put(area, at, row, &value, role);
        row += 1;
    }
}

/// State, iteration and reward, cut to the width.
pub(super) fn draw_line(sketch: &mut Sketch<'_>, area: Rect) {
    let run = &sketch.app.run;
    let state = if sketch.app.ui.lost.is_some() {
        ("LOST", Role::Danger)
    } else {
        (wording::trainer(run.trainer), state_role(run.trainer))
    };
    let mut at = sketch.put(area, 0, 0, state.0, state.1) + 1;
    if let Some(iteration) = run.iteration {
        at = sketch.put(area, at, 0, &format!("{}", iteration.0 + 1), Role::Text) + 1;
    }
    for (name, value, role) in vitals(run).into_iter().take(2) {
        at = sketch.put(area, at, 0, &format!("{name} {value}"), role) + 1;
    }
}
