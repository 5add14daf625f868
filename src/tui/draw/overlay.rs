//! What lies over a screen: the palette, the filter, the question before leaving.

use ratatui::layout::Rect;

use crate::tui::app::QuitChoice;
use crate::tui::launch::{FIELDS, LaunchForm, rule};
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
    if argument.starts_with('[') {
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

pub(super) fn draw_filter(sketch: &mut Sketch<'_>, area: Rect, name: &str, text: &str) {
    let place = popup(area, 60, 3);
    sketch.clear(place);
    let title = FrameTitle {
        left: name.to_owned(),
        right: Some(("regex, ! inverts, enter applies".to_owned(), Role::Muted)),
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

/// A text over nearly the whole screen.
pub(super) fn draw_text(
    sketch: &mut Sketch<'_>,
    area: Rect,
    title: &str,
    lines: &[String],
    scroll: usize,
) {
    let place = popup(
        area,
        area.width.min(110),
        area.height.saturating_sub(4).max(3),
    );
    sketch.clear(place);
    let height = usize::from(place.height.saturating_sub(2));
    let first = scroll.min(lines.len().saturating_sub(height));
    let last = lines.len().min(first + height);
    let title = FrameTitle {
        left: one_line(title),
        right: Some((
            format!("{}-{last} of {}, esc closes", first + 1, lines.len()),
            Role::Muted,
        )),
        focused: true,
    };
    let inner = sketch.frame(place, &title);
    for (row, line) in lines.iter().skip(first).take(height).enumerate() {
        let line = crate::tui::text::clean(line);
        let role = match line.trim_start().chars().next() {
            Some('+') => Role::Good,
            Some('-') => Role::Bad,
            Some('#') => Role::Muted,
            _ => Role::Text,
        };
        sketch.put(inner, 1, row as u16, &line, role);
    }
}

/// The form an evaluation is asked for with.
pub(super) fn draw_launch(sketch: &mut Sketch<'_>, area: Rect, form: &LaunchForm) {
    let place = popup(area, 76, FIELDS.len() as u16 + 7);
    sketch.clear(place);
    let title = FrameTitle {
        left: "Evaluate".to_owned(),
        right: Some(("enter launches, esc gives up".to_owned(), Role::Muted)),
        focused: true,
    };
    let inner = sketch.frame(place, &title);
    for (line, field) in FIELDS.into_iter().enumerate() {
        let line = line as u16;
        let is_focused = form.field() == field;
        let role = if is_focused { Role::Focus } else { Role::Muted };
        let pointer = if is_focused { "▸" } else { " " };
        let label = format!("{pointer} {}", pad(field.label(), 16));
        let at = sketch.put(inner, 0, line, &label, role);
        let at = sketch.put(
            inner,
            at,
            line,
            &one_line_kept(&form.shown(field)),
            Role::Text,
        );
        if is_focused {
            sketch.put_styled(inner, at, line, " ", cursor_style(sketch));
        }
    }
    let run = &sketch.app.run;
    let below = FIELDS.len() as u16 + 1;
    let rule = format!("{}: {}", form.protocol.name(), rule(form.protocol));
    sketch.put(inner, 2, below, &rule, Role::Muted);
    sketch.put(inner, 2, below + 1, &form.cost(run), Role::Warning);
    let problem = form.error.clone().or_else(|| form.request(run).err());
    match problem {
        Some(problem) => sketch.put(inner, 2, below + 3, &problem, Role::Danger),
        None => sketch.put(
            inner,
            2,
            below + 3,
            "↑↓ field  ←→ choose  all three protocols are scored",
            Role::Muted,
        ),
    };
}
