//! What a desktop's machine is at: in place of its picture, in the frame around it, in words
//! beside it.

use ratatui::layout::Rect;

use crate::event::MachineView;
use crate::tui::app::Glyphs;
use crate::tui::machines::{self, Layer, Standing};
use crate::tui::text::{first_fit, pad, width, wrap};
use crate::tui::theme::Role;
use crate::types::ImageHash;

use super::Sketch;

/// Cells of a gauge, at most.
const GAUGE: u16 = 16;

/// A thin bar filled to `part`, in the row `row` of `area`.
fn draw_gauge(sketch: &mut Sketch<'_>, area: Rect, row: u16, cells: u16, part: f64, role: Role) {
    let filled = (part.clamp(0.0, 1.0) * f64::from(cells)).round() as usize;
    // In ASCII both lines would be the same character.
    let (full, empty) = match sketch.app.ui.glyphs {
        Glyphs::Unicode => ("━", "─"),
        Glyphs::Ascii => ("#", "-"),
    };
    let at = sketch.put(area, 0, row, &full.repeat(filled), role);
    let rest = usize::from(cells) - filled;
    sketch.put(area, at, row, &empty.repeat(rest), Role::Frame);
}

/// In place of a picture: how the machine stands, below it how much of its limit is over.
pub(super) fn draw_in_place(sketch: &mut Sketch<'_>, area: Rect, machine: &MachineView) {
    let now_ms = sketch.app.run_now_ms();
    let role = machines::standing(machine, now_ms).role();
    let cells = usize::from(area.width);
    // In full where there are rows for it, one of them for the gauge.
    let full = wrap(&machines::all_words(machine, now_ms), cells);
    let lines = if full.len() < usize::from(area.height) {
        full
    } else {
        vec![machines::words(machine, now_ms, cells)]
    };
    let high = lines.len() as u16;
    let top = area.height.saturating_sub(high) / 2;
    for (row, line) in lines.iter().enumerate() {
        let column = cells.saturating_sub(width(line)) / 2;
        sketch.put(area, column as u16, top + row as u16, line, role);
    }
    let below = top + high;
    if let Some(part) = machines::part_over(machine, now_ms).filter(|_| below < area.height) {
        let cells = GAUGE.min(area.width);
        let gauge = Rect {
            x: area.x + (area.width - cells) / 2,
            width: cells,
            ..area
        };
        draw_gauge(sketch, gauge, below, cells, part, role);
    }
}

/// Into the lower edge of a frame around a desktop's newest picture: how old that is, and that it
/// was taken past the desktop's server.
pub(super) fn draw_picture_note(
    sketch: &mut Sketch<'_>,
    frame: Rect,
    desktop: u32,
    shown: Option<&ImageHash>,
) {
    let app = sketch.app;
    let newest = app.run.desktops.get(desktop as usize);
    let newest = newest.and_then(|desktop| desktop.image.as_ref());
    if newest.is_none() || newest != shown || frame.height < 2 || frame.width < 8 {
        return;
    }
    let forms = machines::picture_forms(&app.run, desktop, app.run_now_ms());
    let room = usize::from(frame.width - 6);
    let Some(text) = forms.iter().find(|form| width(form) <= room) else {
        return;
    };
    let edge = Rect {
        x: frame.x + 2,
        y: frame.bottom() - 1,
        width: frame.width - 4,
        height: 1,
    };
    sketch.put_right(edge, 0, &[(format!(" {text} "), Role::Warning)]);
}

/// Rows that `draw_rows` takes at least where it has all to say.
pub(super) const ROWS: u16 = 5;

/// Labelled rows on a machine: how it stands, its layers, its health, its actions. Returns how
/// many there are.
pub(super) fn draw_rows(
    sketch: &mut Sketch<'_>,
    area: Rect,
    machine: &MachineView,
    label: u16,
) -> u16 {
    let now_ms = sketch.app.run_now_ms();
    let body = Rect {
        x: area.x + label.min(area.width),
        width: area.width.saturating_sub(label),
        ..area
    };
    let cells = usize::from(body.width);
    let standing = machines::standing(machine, now_ms);
    let role = match standing {
        Standing::Quiet => Role::Text,
        other => other.role(),
    };
    let mut at = 0;
    if body.height == 0 {
        return 0;
    }
    sketch.put(area, 0, at, "machine", Role::Muted);
    at += if standing == Standing::Quiet {
        let text = machines::words(machine, now_ms, cells);
        sketch.put(body, 0, at, &text, role);
        1
    } else {
        // A reason is worth three rows.
        let room = Rect {
            height: body.height.min(3),
            ..body
        };
        let text = machines::all_words(machine, now_ms);
        sketch.text(room, &text, role, 0)
    };
    if let Some(part) = machines::part_over(machine, now_ms) {
        if at < body.height {
            draw_gauge(sketch, body, at, GAUGE.min(body.width), part, role);
        }
        at += 1;
    }
    at += draw_layers(sketch, area, body, at, machine);
    if let Some(health) = &machine.health {
        let forms = machines::health_forms(health);
        let (acts, is_slow) = machines::act_forms(machine, now_ms);
        let act_role = if is_slow { Role::Warning } else { Role::Text };
        let act_label = if health.act_ms.is_some() { "acts" } else { "" };
        for (name, forms, role) in [("health", forms, Role::Text), (act_label, acts, act_role)] {
            if forms.is_empty() || at >= body.height {
                continue;
            }
            sketch.put(area, 0, at, name, Role::Muted);
            sketch.put(body, 0, at, &first_fit(&forms, cells), role);
            at += 1;
        }
    }
    at
}

/// The layers, each whole in a row, and what is wrong with the one that does not work.
fn draw_layers(
    sketch: &mut Sketch<'_>,
    area: Rect,
    body: Rect,
    mut at: u16,
    machine: &MachineView,
) -> u16 {
    let first = at;
    let ascii = sketch.app.ui.glyphs == Glyphs::Ascii;
    let layers = machines::layers(machine);
    if layers.is_empty() || at >= body.height {
        return 0;
    }
    let cells = |layer: &Layer, timed: bool| {
        let (name, mark, took_ms) = layer;
        let time = took_ms.filter(|_| timed).map_or(0, |ms| time_of(ms).len());
        width(name) + 1 + width(mark.sign(ascii)) + time
    };
    // Times only where the layers do not take more than two rows with them.
    let all: usize = layers.iter().map(|layer| cells(layer, true) + 2).sum();
    let timed = all <= 2 * usize::from(body.width).saturating_sub(12);
    sketch.put(area, 0, at, "layers", Role::Muted);
    let mut column = 0;
    for layer in &layers {
        let needed = cells(layer, timed) as u16;
        if column > 0 && column + needed > body.width {
            (column, at) = (0, at + 1);
        }
        let (name, mark, took_ms) = layer;
        column = sketch.put(body, column, at, &format!("{name} "), Role::Text);
        column = sketch.put(body, column, at, mark.sign(ascii), mark.role());
        if let Some(ms) = took_ms.filter(|_| timed) {
            column = sketch.put(body, column, at, &time_of(ms), Role::Muted);
        }
        column += 2;
    }
    at += 1;
    if let Some(broken) = machines::broken(machine).filter(|_| at < body.height) {
        let room = Rect {
            y: body.y + at,
            height: (body.height - at).min(2),
            ..body
        };
        at += sketch.text(room, &broken, Role::Warning, 0);
    }
    at - first
}

fn time_of(ms: u64) -> String {
    format!(" {}", crate::tui::figures::duration(ms))
}

/// How a machine that is not up stands, in one row.
pub(super) fn draw_line(sketch: &mut Sketch<'_>, area: Rect, machine: &MachineView) {
    let now_ms = sketch.app.run_now_ms();
    let role = machines::standing(machine, now_ms).role();
    let text = machines::words(machine, now_ms, usize::from(area.width));
    let text = pad(&text, usize::from(area.width));
    sketch.put(area, 0, 0, &text, role);
}
