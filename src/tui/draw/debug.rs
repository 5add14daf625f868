//! The debugger's panel on Rollout, and the editor of replies over it.

use ratatui::layout::Rect;
use ratatui::widgets::Widget;

use crate::event::{Candidate, HeldState};
use crate::tui::app::SentStatus;
use crate::tui::commands::command_named;
use crate::tui::debug::{ReplyEditor, candidate_at, looked_at, newest_sent};
use crate::tui::keys::Key;
use crate::tui::text::{one_line, pad};
use crate::tui::theme::Role;
use crate::tui::{figures, wording};
use crate::types::EpisodeId;

use super::Sketch;
use super::sketch::FrameTitle;

/// Commands that the panel names, with their words there.
const KEYS: [(&str, &str); 8] = [
    ("accept", "accept"),
    ("edit", "edit"),
    ("write", "write"),
    ("regenerate", "others"),
    ("next-candidate", "next"),
    ("skip", "skip"),
    ("continue", "continue"),
    ("abort", "abort"),
];

/// Rows around the thought: task, action, figures, answer, keys.
const FIXED_ROWS: u16 = 5;

/// Rows that the panel wants of a page, frame included; the picture keeps what it can.
pub(super) fn panel_rows(held: &HeldState, page: u16) -> u16 {
    let thought = if page >= 30 { 4 } else { 2 };
    let wanted = 2 + FIXED_ROWS + thought + choice_rows(held) as u16;
    wanted.min(page.saturating_sub(6)).max(7)
}

fn choice_rows(held: &HeldState) -> usize {
    match held.others.len() {
        0 => 0,
        count => (count + 1).min(5),
    }
}

/// What is held, why, and what can be done about it.
pub(super) fn draw_panel(
    sketch: &mut Sketch<'_>,
    area: Rect,
    episode: EpisodeId,
    held: &HeldState,
) {
    let waited = sketch.app.run_now_ms().saturating_sub(held.since_ms);
    let why = format!("{}, {}", held.reason.words(), figures::age(waited));
    let title = FrameTitle {
        left: format!("Held before its action at step {}", held.step + 1),
        right: Some((why, Role::Warning)),
        focused: true,
    };
    let inner = sketch.frame(area, &title);
    let place = looked_at(sketch.app, episode, held);
    let candidate = candidate_at(held, place);
    let choices = choice_rows(held).min(usize::from(inner.height.saturating_sub(FIXED_ROWS)));
    let at = sketch.put(inner, 0, 0, "task   ", Role::Muted);
    sketch.put(inner, at, 0, &one_line(&held.instruction), Role::Muted);
    let thought = Rect {
        y: inner.y + 1,
        height: inner.height.saturating_sub(FIXED_ROWS + choices as u16),
        ..inner
    };
    draw_thought(sketch, thought, candidate);
    let mut row = 1 + thought.height;
    draw_action(sketch, inner, row, candidate);
    row += 2;
    for shown in 0..choices {
        // The one looked at stays in view.
        let first = (place + 1).saturating_sub(choices);
        let line = Rect {
            y: inner.y + row,
            height: 1,
            ..inner
        };
        draw_choice(sketch, line, first + shown, held);
        if first + shown == place {
            sketch.select(line.intersection(inner));
        }
        row += 1;
    }
    draw_answer(sketch, inner, row, episode, held);
    draw_keys(sketch, inner, row + 1, held);
}

fn draw_thought(sketch: &mut Sketch<'_>, area: Rect, candidate: &Candidate) {
    // Where nothing parses the whole reply tells more than its thought.
    let (text, role) = match &candidate.malformed {
        Some(_) => (&candidate.reply, Role::Bad),
        None => (&candidate.thought, Role::Text),
    };
    let skip = sketch.app.ui.rollout.thought_scroll;
    sketch.text(area, text, role, skip);
}

fn draw_action(sketch: &mut Sketch<'_>, area: Rect, row: u16, candidate: &Candidate) {
    let (text, role) = does(candidate);
    let at = sketch.put(area, 0, row, "action ", Role::Muted);
    sketch.put(area, at, row, &text, role);
    if candidate.tokens > 0 {
        let figures = format!(
            "{} tokens, mean log-prob {}",
            candidate.tokens,
            figures::short(candidate.mean_logprob.0)
        );
        sketch.put(area, 7, row + 1, &figures, Role::Muted);
    }
}

fn does(candidate: &Candidate) -> (String, Role) {
    match &candidate.malformed {
        Some(_) if candidate.tokens == 0 => ("none yet: write one".to_owned(), Role::Muted),
        Some(reason) => (format!("does not parse: {}", one_line(reason)), Role::Bad),
        None => (wording::actions(&candidate.actions), Role::Running),
    }
}

fn draw_choice(sketch: &mut Sketch<'_>, line: Rect, place: usize, held: &HeldState) {
    let candidate = candidate_at(held, place);
    let name = match place {
        0 => "sampled".to_owned(),
        place => format!("{place}"),
    };
    let (text, role) = does(candidate);
    let at = sketch.put(line, 0, 0, &pad(&name, 9), Role::Muted);
    let logprob = figures::short(candidate.mean_logprob.0);
    let at = sketch.put(line, at, 0, &pad(&logprob, 8), Role::Text);
    let at = sketch.put(line, at, 0, &pad(&text, 28), role) + 1;
    sketch.put(line, at, 0, &one_line(&candidate.thought), Role::Muted);
}

/// What became of the newest decision: asked until the engine answers.
fn draw_answer(
    sketch: &mut Sketch<'_>,
    area: Rect,
    row: u16,
    episode: EpisodeId,
    held: &HeldState,
) {
    let app = sketch.app;
    let Some(sent) = newest_sent(app, episode, held) else {
        return;
    };
    let (text, role) = match &sent.status {
        SentStatus::Sent | SentStatus::Received | SentStatus::Accepted => {
            let since = figures::age(app.ui.now_ms.saturating_sub(sent.at_ms));
            let what = wording::command(&sent.request);
            (format!("asked {since}: {what}"), Role::Running)
        }
        SentStatus::Refused(reason) => (format!("refused: {}", one_line(reason)), Role::Danger),
        SentStatus::Unanswered => (
            "no answer: the connection was lost".to_owned(),
            Role::Danger,
        ),
        SentStatus::Done => return,
    };
    sketch.put(area, 0, row, &text, role);
}

fn draw_keys(sketch: &mut Sketch<'_>, area: Rect, row: u16, held: &HeldState) {
    if let Err(reason) = sketch.app.can_command() {
        sketch.put(area, 0, row, reason, Role::Muted);
        return;
    }
    let mut at = 0;
    for (name, word) in KEYS {
        if name == "next-candidate" && held.others.is_empty() {
            continue;
        }
        let key = command_named(name).and_then(|command| command.keys.first());
        let Some(key) = key.and_then(|key| key.parse::<Key>().ok()) else {
            continue;
        };
        at = sketch.put(area, at, row, &key.to_string(), Role::Key) + 1;
        at = sketch.put(area, at, row, word, Role::Text) + 2;
    }
}

/// The editor, at the foot of the screen so that picture and steps stay in view.
pub(super) fn draw_editor(sketch: &mut Sketch<'_>, area: Rect, editor: &ReplyEditor) {
    let height = area.height.saturating_sub(2).min(12);
    let width = area.width.min(110);
    let place = Rect {
        x: area.x + (area.width - width) / 2,
        y: area.bottom().saturating_sub(height + 1),
        width,
        height,
    };
    sketch.clear(place);
    let verb = if editor.is_new { "Write" } else { "Edit" };
    let title = FrameTitle {
        left: format!("{verb} the reply at step {}", editor.step + 1),
        right: Some((
            "ctrl-s sends, esc keeps it for later".to_owned(),
            Role::Muted,
        )),
        focused: true,
    };
    let inner = sketch.frame(place, &title);
    let text = Rect {
        height: inner.height.saturating_sub(1),
        ..inner
    };
    let visible = text.intersection(sketch.buffer.area);
    if !visible.is_empty() {
        (&editor.area).render(visible, sketch.buffer);
    }
    let (line, role) = match (&editor.refusal, editor.ticket) {
        (_, Some(_)) => ("asked; waits for the engine".to_owned(), Role::Running),
        (Some(reason), None) => (format!("refused: {}", one_line(reason)), Role::Danger),
        (None, None) => (
            "Thought: why   Action: what, as in click(start_box='(100,80)')".to_owned(),
            Role::Muted,
        ),
    };
    sketch.put(inner, 0, inner.height.saturating_sub(1), &line, role);
}
