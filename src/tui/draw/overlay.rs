//! What lies over a screen: the palette, the filter, the question before leaving.

use ratatui::layout::Rect;

use crate::tui::app::QuitChoice;
use crate::tui::prompt::Prompt;
use crate::tui::text::{one_line, pad, width};
use crate::tui::theme::Role;

use super::Sketch;
use super::help::keys_of;
use super::sketch::FrameTitle;

/// Proposals shown at once.
const PROPOSALS: usize = 10;

fn popup(area: Rect, width: u16, height: u16) -> Rect {
    let (width, height) = (area.width.min(width), area.height.min(height));
    Rect {
        x: area.x + (area.width - width) / 2,
        y: area.y + (area.height - height) / 3,
        width,
        height,
    }
}

pub(super) fn draw_prompt(sketch: &mut Sketch<'_>, area: Rect, prompt: &Prompt) {
    let proposals = prompt.proposals();
    let shown = proposals.len().clamp(1, PROPOSALS);
    let place = popup(area, 84, shown as u16 + 3);
    sketch.clear(place);
    let title = FrameTitle {
        left: "Command".to_owned(),
        right: Some(("tab completes, enter runs".to_owned(), Role::Muted)),
        focused: true,
    };
    let inner = sketch.frame(place, &title);
    let at = sketch.put(inner, 0, 0, ":", Role::Key);
    let at = sketch.put(inner, at, 0, &one_line_kept(&prompt.text), Role::Text);
    sketch.put_styled(inner, at, 0, " ", cursor_style(sketch));
    let first = (prompt.selected + 1).saturating_sub(shown);
    for (line, (place, row)) in proposals
        .iter()
        .enumerate()
        .skip(first)
        .take(shown)
        .enumerate()
    {
        let line_area = Rect {
            y: inner.y + 1 + line as u16,
            height: 1,
            ..inner
        }
        .intersection(inner);
        let name = pad(
            &format!("{} {}", row.name, short_argument(row.argument)),
            26,
        );
        let role = if row.operates {
            Role::Running
        } else {
            Role::Text
        };
        let at = sketch.put(line_area, 1, 0, &name, role);
        let keys = if row.keys.is_empty() {
            String::new()
        } else {
            keys_of(row)
        };
        let at = sketch.put(line_area, at, 0, &pad(&keys, 12), Role::Key);
        sketch.put(line_area, at, 0, row.doc, Role::Muted);
        if place == prompt.selected && !prompt.text.contains(' ') {
            sketch.select(line_area);
        }
    }
    if proposals.is_empty() {
        sketch.put(inner, 1, 1, "no such command", Role::Warning);
    }
}

fn short_argument(argument: &str) -> &str {
    if argument.contains('|') {
        "[POINT]"
    } else {
        argument
    }
}

/// As typed: a trailing space stays.
fn one_line_kept(text: &str) -> String {
    let trailing = if text.ends_with(' ') { " " } else { "" };
    format!("{}{trailing}", one_line(text))
}

fn cursor_style(sketch: &Sketch<'_>) -> ratatui::style::Style {
    sketch
        .style(Role::Text)
        .add_modifier(ratatui::style::Modifier::REVERSED)
}

pub(super) fn draw_filter(sketch: &mut Sketch<'_>, area: Rect, text: &str) {
    let place = popup(area, 60, 3);
    sketch.clear(place);
    let title = FrameTitle {
        left: "Filter".to_owned(),
        right: Some(("! inverts, enter applies".to_owned(), Role::Muted)),
        focused: true,
    };
    let inner = sketch.frame(place, &title);
    let at = sketch.put(inner, 0, 0, "/", Role::Key);
    let at = sketch.put(inner, at, 0, &one_line_kept(text), Role::Text);
    sketch.put_styled(inner, at, 0, " ", cursor_style(sketch));
}

pub(super) fn draw_quit(sketch: &mut Sketch<'_>, area: Rect, choice: QuitChoice) {
    let place = popup(area, 64, 8);
    sketch.clear(place);
    let title = FrameTitle {
        left: "Leave".to_owned(),
        right: None,
        focused: true,
    };
    let inner = sketch.frame(place, &title);
    let run = one_line(sketch.app.run_name());
    sketch.put(
        inner,
        1,
        1,
        &format!("Detach from {run}, or stop it?"),
        Role::Text,
    );
    let meaning = match choice {
        QuitChoice::Detach => "The run goes on; `arpo attach` comes back to it.",
        QuitChoice::Stop => "It ends after the running phase, with a checkpoint.",
        QuitChoice::Stay => "Nothing happens.",
    };
    sketch.put(inner, 1, 2, meaning, Role::Muted);
    let mut at = 1;
    for option in QuitChoice::ALL {
        let label = match option {
            QuitChoice::Detach => "  d detach  ",
            QuitChoice::Stop => "  s stop  ",
            QuitChoice::Stay => "  esc stay  ",
        };
        let place = Rect {
            x: inner.x + at,
            y: inner.y + 4,
            width: width(label) as u16,
            height: 1,
        };
        sketch.put(inner, at, 4, label, Role::Text);
        if option == choice {
            sketch.select(place.intersection(inner));
        }
        at += width(label) as u16 + 2;
    }
}
