//! The log of a desktop's machine, over all of the screen but its last row.

use ratatui::layout::Rect;

use crate::tui::machine_log::{MachineLogUi, page_size};
use crate::tui::machines;
use crate::tui::text::{first_fit, width};
use crate::tui::theme::Role;

use super::Sketch;
use super::overlay::popup;
use super::sketch::FrameTitle;

pub(super) fn draw(sketch: &mut Sketch<'_>, area: Rect, log: &MachineLogUi) {
    let app = sketch.app;
    let size = (area.width, area.height);
    let (columns, rows) = page_size(size);
    let place = Rect {
        y: area.y,
        ..popup(area, columns + 3, rows + 2)
    };
    sketch.clear(place);
    let (lines, below) = log.page(size);
    let right = match (below, app.is_alive()) {
        (0, true) => "following".to_owned(),
        (0, false) if app.ui.lost.is_some() => "not followed".to_owned(),
        (0, false) => "end".to_owned(),
        (1, _) => "1 line below".to_owned(),
        (below, _) => format!("{below} lines below"),
    };
    let name = format!("Log of desktop {}", log.desktop);
    let desktop = app.run.desktops.get(log.desktop as usize);
    let machine = desktop.and_then(|desktop| desktop.machine.as_ref());
    let room = usize::from(place.width).saturating_sub(width(&right) + 10);
    let now_ms = app.run_now_ms();
    let left = machine.map_or(name.clone(), |machine| {
        let most = room.saturating_sub(width(&name) + 2);
        let state = machines::words(machine, now_ms, most);
        first_fit(&[format!("{name}  {state}"), name.clone()], room)
    });
    let title = FrameTitle {
        left,
        right: Some((right, Role::Muted)),
        focused: true,
    };
    let inner = sketch.frame(place, &title);
    if lines.is_empty() {
        let text = match (&log.error, log.was_read, machine) {
            (Some(error), ..) => error.as_str(),
            (None, false, _) => "loading",
            (None, true, Some(_)) => "nothing was logged since the machine began or was restored",
            (None, true, None) => "nothing was logged: only a machine of the desktop's own logs",
        };
        let role = if log.error.is_some() {
            Role::Danger
        } else {
            Role::Muted
        };
        let body = Rect {
            x: inner.x + 1,
            width: inner.width.saturating_sub(1),
            ..inner
        };
        sketch.text(body, text, role, 0);
        return;
    }
    for (row, line) in lines.iter().enumerate() {
        sketch.put(inner, 1, row as u16, line, Role::Text);
    }
    if let Some(error) = &log.error {
        let edge = Rect {
            x: place.x + 2,
            y: place.bottom() - 1,
            width: place.width.saturating_sub(4),
            height: 1,
        };
        let text = crate::tui::text::fit_words(error, usize::from(edge.width.saturating_sub(2)));
        sketch.put(edge, 0, 0, &format!(" {text} "), Role::Danger);
    }
}
