//! What lies over a screen: the palette, the filter, the question before leaving.

use ratatui::layout::Rect;

use crate::tui::app::{Question, QuitChoice};
use crate::tui::commands::{Danger, command_named};
use crate::tui::focus::scopes;
use crate::tui::launch::{FIELDS, LaunchForm, rule};
use crate::tui::page::Page;
use crate::tui::prompt::{Prompt, Proposal};
use crate::tui::text::{one_line, pad, width};
use crate::tui::theme::Role;

use super::Sketch;
use super::sketch::FrameTitle;

/// Proposals shown at once.
const PROPOSALS: usize = 10;

pub(super) fn popup(area: Rect, width: u16, height: u16) -> Rect {
    let (width, height) = (area.width.min(width), area.height.min(height));
    Rect {
        x: area.x + (area.width - width) / 2,
        y: area.y + (area.height - height) / 3,
        width,
        height,
    }
}

pub(super) fn draw_prompt(sketch: &mut Sketch<'_>, area: Rect, prompt: &Prompt) {
    let proposals = prompt.proposals(sketch.app);
    let shown = proposals.len().clamp(1, PROPOSALS);
    let place = popup(area, 84, shown as u16 + 4);
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
    for (line, proposal) in proposals.iter().skip(first).take(shown).enumerate() {
        let line_area = Rect {
            y: inner.y + 1 + line as u16,
            height: 1,
            ..inner
        }
        .intersection(inner);
        draw_proposal(sketch, line_area, proposal);
        if first + line == prompt.selected {
            sketch.select(line_area);
        }
    }
    match proposals.get(prompt.selected) {
        Some(proposal) => draw_cost(sketch, inner, proposal),
        None => {
            sketch.put(inner, 1, 1, "no such command", Role::Warning);
        }
    }
}

fn draw_proposal(sketch: &mut Sketch<'_>, line: Rect, proposal: &Proposal) {
    let role = if proposal.row.operates {
        Role::Running
    } else {
        Role::Text
    };
    let label = match proposal.label.split_once(" [") {
        Some((name, choices)) if choices.contains('|') => format!("{name} [..]"),
        _ => proposal.label.clone(),
    };
    let at = sketch.put(line, 1, 0, &pad(&label, 24), role) + 1;
    // Keys run the command without what is chosen here.
    let keys = if proposal.line.contains(' ') {
        String::new()
    } else {
        sketch.app.ui.keymap.keys_of(proposal.row).join("  ")
    };
    let at = sketch.put(line, at, 0, &pad(&keys, 12), Role::Key) + 1;
    sketch.put(line, at, 0, &proposal.doc, Role::Muted);
}

/// What the proposal in focus can cost, and how a script asks for it.
fn draw_cost(sketch: &mut Sketch<'_>, inner: Rect, proposal: &Proposal) {
    if inner.height < 3 {
        return;
    }
    let (row, last) = (proposal.row, inner.height - 1);
    let role = danger_role(row.danger);
    let at = sketch.put(inner, 1, last, row.danger.word(), role) + 3;
    if let Some(form) = row.ctl_form() {
        let run = one_line(sketch.app.run_name());
        sketch.put(
            inner,
            at,
            last,
            &format!("$ arpo ctl {run} {form}"),
            Role::Muted,
        );
    }
}

/// How a danger class looks.
pub(super) fn danger_role(danger: Danger) -> Role {
    match danger {
        Danger::Harmless => Role::Muted,
        Danger::Reversible => Role::Running,
        Danger::Costly => Role::Warning,
        Danger::Irreversible => Role::Danger,
    }
}

/// Text to read, over all of the screen but its edges.
pub(super) fn draw_page(sketch: &mut Sketch<'_>, area: Rect, page: &Page) {
    let high = (page.lines.len() as u16).saturating_add(2);
    let place = popup(area, 100, high.min(area.height.saturating_sub(3).max(1)));
    sketch.clear(place);
    let shown = usize::from(place.height.saturating_sub(2));
    let scroll = page.scroll.min(page.lines.len().saturating_sub(shown));
    let rest = page.lines.len().saturating_sub(scroll + shown);
    let right = if rest > 0 {
        format!("{rest} more")
    } else {
        "end".to_owned()
    };
    let title = FrameTitle {
        left: page.title.clone(),
        right: Some((right, Role::Muted)),
        focused: true,
    };
    let inner = sketch.frame(place, &title);
    for (row, line) in page.lines.iter().skip(scroll).take(shown).enumerate() {
        sketch.put_all(inner, 1, row as u16, line);
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

/// A question of yes or no, on the row of messages.
pub(super) fn draw_confirm(sketch: &mut Sketch<'_>, area: Rect, question: &Question) {
    let row = Rect {
        y: area
            .bottom()
            .saturating_sub(if area.height > 3 { 2 } else { 1 }),
        height: area.height.min(1),
        ..area
    };
    sketch.clear(row);
    let ask = format!("{} {}? ", question.command, one_line(&question.victim));
    let at = sketch.put(row, 1, 0, &ask, Role::Warning);
    let at = sketch.put(row, at, 0, "y", Role::Key);
    let at = sketch.put(row, at, 0, " yes  ", Role::Muted);
    let at = sketch.put(row, at, 0, "n", Role::Key);
    sketch.put(row, at, 0, " no", Role::Muted);
}

/// A question that is answered by typing a name.
pub(super) fn draw_naming(sketch: &mut Sketch<'_>, area: Rect, question: &Question, typed: &str) {
    let place = popup(area, 64, 6);
    sketch.clear(place);
    let title = FrameTitle {
        left: format!("{} {}", question.command, one_line(&question.victim)),
        right: Some(("cannot be undone".to_owned(), Role::Danger)),
        focused: true,
    };
    let inner = sketch.frame(place, &title);
    let doc = command_named(question.command).map_or("", |row| row.doc);
    sketch.put(inner, 1, 0, doc, Role::Muted);
    sketch.put(inner, 1, 1, "Type the name to go on:", Role::Text);
    let at = sketch.put(inner, 1, 2, "> ", Role::Key);
    let at = sketch.put(inner, at, 2, &one_line_kept(typed), Role::Text);
    sketch.put_styled(inner, at, 2, " ", cursor_style(sketch));
}

/// What may follow the keys of a chord that was begun.
pub(super) fn draw_ahead(sketch: &mut Sketch<'_>, area: Rect) {
    let app = sketch.app;
    let ahead = app.ui.keymap.ahead(&app.ui.pending.keys, &scopes(app));
    let wide = area.width.min(56);
    let high = area.height.saturating_sub(2).min(ahead.len() as u16 + 2);
    let place = Rect {
        x: area.right() - wide,
        y: area.bottom().saturating_sub(high + 2).max(area.y),
        width: wide,
        height: high,
    };
    sketch.clear(place);
    let title = FrameTitle {
        left: format!("{} …", crate::tui::keys::chord_name(&app.ui.pending.keys)),
        right: None,
        focused: true,
    };
    let inner = sketch.frame(place, &title);
    for (row, (rest, binding)) in ahead.iter().enumerate() {
        if row as u16 >= inner.height {
            break;
        }
        let at = sketch.put(inner, 1, row as u16, &pad(rest, 8), Role::Key);
        sketch.put(inner, at, row as u16, binding.row.doc, Role::Text);
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
