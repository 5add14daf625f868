//! Stepping through an episode: what is held here, which reply is looked at, the reply being
//! written. Nothing counts before the engine has answered.

use crossterm::event::KeyCode;
use ratatui::style::Style;
use ratatui_textarea::{Input, TextArea, WrapMode};

use crate::event::{Candidate, Command, DebugCommand, Decision, HeldState};
use crate::tui::app::{App, Overlay, SentCommand, SentStatus};
use crate::tui::commands::send;
use crate::tui::fleet::rollout_episode;
use crate::tui::keys::Key;
use crate::tui::update::Effect;
use crate::types::EpisodeId;

/// View of the debugger's panel.
#[derive(Clone, Debug, Default)]
pub struct DebugUi {
    /// The reply looked at, with the hold it belongs to: 0 is the sampled one, then candidates.
    looked_at: Option<(EpisodeId, u32, usize)>,
    /// What was being written when the editor was left, with the hold it belongs to.
    kept: Option<(EpisodeId, u32, String)>,
}

/// A reply being written.
#[derive(Clone, Debug)]
pub struct ReplyEditor {
    /// For which episode.
    pub episode: EpisodeId,
    /// At which step, from 0.
    pub step: u32,
    /// Whether it began empty.
    pub is_new: bool,
    /// The text.
    pub area: TextArea<'static>,
    /// The command that carries it to the engine, until that is answered.
    pub ticket: Option<u64>,
    /// Why the engine refused it.
    pub refusal: Option<String>,
}

impl PartialEq for ReplyEditor {
    fn eq(&self, other: &Self) -> bool {
        (self.episode, self.step, self.is_new, self.ticket)
            == (other.episode, other.step, other.is_new, other.ticket)
            && self.refusal == other.refusal
            && self.area.lines() == other.area.lines()
    }
}

/// The hold of the episode that the Rollout screen shows.
pub fn held_here(app: &App) -> Option<(EpisodeId, &HeldState)> {
    let id = rollout_episode(app)?.id;
    Some((id, app.run.held.get(&id)?))
}

/// Which reply of a hold is looked at: 0 is the sampled one, then candidates.
pub fn looked_at(app: &App, episode: EpisodeId, held: &HeldState) -> usize {
    let place = match app.ui.debug.looked_at {
        Some((id, step, place)) if (id, step) == (episode, held.step) => place,
        _ => 0,
    };
    place.min(held.others.len())
}

/// The reply at a place of a hold.
pub fn candidate_at(held: &HeldState, place: usize) -> &Candidate {
    let other = place
        .checked_sub(1)
        .and_then(|index| held.others.get(index));
    other.unwrap_or(&held.candidate)
}

/// Looks at the next reply of the hold shown.
pub fn look_at_next(app: &mut App) {
    let Some((episode, held)) = held_here(app) else {
        return;
    };
    let next = (looked_at(app, episode, held) + 1) % (held.others.len() + 1);
    app.ui.debug.looked_at = Some((episode, held.step, next));
}

/// The newest command about a hold.
pub fn newest_sent<'a>(
    app: &'a App,
    episode: EpisodeId,
    held: &HeldState,
) -> Option<&'a SentCommand> {
    let step = held.step;
    let is_about = |sent: &&SentCommand| {
        matches!(&sent.request, Command::Debug(DebugCommand::Decide { episode: id, step: at, .. })
            if (*id, *at) == (episode, step))
    };
    app.ui.sent.iter().rev().find(is_about)
}

/// Opens the editor on the hold shown, with the reply looked at or empty. What was left unsent
/// comes back.
pub fn open_editor(app: &mut App, is_new: bool) -> bool {
    let Some((episode, held)) = held_here(app) else {
        return false;
    };
    let step = held.step;
    let kept = match &app.ui.debug.kept {
        Some((id, at, text)) if (*id, *at) == (episode, step) => Some(text.clone()),
        _ => None,
    };
    let text = kept.unwrap_or_else(|| {
        if is_new {
            String::new()
        } else {
            candidate_at(held, looked_at(app, episode, held))
                .reply
                .clone()
        }
    });
    let mut area = TextArea::from(text.lines());
    area.set_cursor_line_style(Style::default());
    area.set_wrap_mode(WrapMode::WordOrGlyph);
    area.move_cursor(ratatui_textarea::CursorMove::Bottom);
    area.move_cursor(ratatui_textarea::CursorMove::End);
    app.ui.overlay = Some(Overlay::Reply(Box::new(ReplyEditor {
        episode,
        step,
        is_new,
        area,
        ticket: None,
        refusal: None,
    })));
    true
}

/// Takes a key into the editor.
pub fn press_in_editor(app: &mut App, key: Key, mut editor: Box<ReplyEditor>) -> Vec<Effect> {
    let sends =
        key.ctrl && matches!(key.code, KeyCode::Char('s')) || key.alt && key.code == KeyCode::Enter;
    let mut effects = Vec::new();
    match key.code {
        KeyCode::Esc => {
            let text = editor.area.lines().join("\n");
            app.ui.debug.kept = Some((editor.episode, editor.step, text));
            return effects;
        }
        // Until it is answered the text stands as it was asked for.
        _ if editor.ticket.is_some() => {}
        _ if sends => effects = send_reply(app, &mut editor),
        _ => {
            editor.area.input(input_of(key));
        }
    }
    app.ui.overlay = Some(Overlay::Reply(editor));
    effects
}

/// Takes pasted text into the editor, line breaks kept.
pub fn paste_into(editor: &mut ReplyEditor, text: &str) {
    if editor.ticket.is_none() {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let is_kept = |c: &char| *c == '\n' || !c.is_control();
        editor
            .area
            .insert_str(text.chars().filter(is_kept).collect::<String>());
    }
}

fn send_reply(app: &mut App, editor: &mut ReplyEditor) -> Vec<Effect> {
    let reply = editor.area.lines().join("\n");
    let decision = if editor.is_new {
        Decision::Write { reply }
    } else {
        Decision::Edit { reply }
    };
    let command = Command::Debug(DebugCommand::Decide {
        episode: editor.episode,
        step: editor.step,
        decision,
    });
    if let Err(reason) = command.check() {
        editor.refusal = Some(reason);
        return Vec::new();
    }
    editor.refusal = app.can_command().err().map(str::to_owned);
    let ticket = app.ui.next_ticket;
    let effects = send(app, command);
    editor.ticket = (!effects.is_empty()).then_some(ticket);
    effects
}

/// Closes the editor once its reply is done, or shows why it was refused.
pub fn settle_editor(app: &mut App) {
    let Some(Overlay::Reply(editor)) = &mut app.ui.overlay else {
        return;
    };
    let Some(ticket) = editor.ticket else { return };
    let mut sent = app.ui.sent.iter();
    let status = sent
        .find(|sent| sent.ticket == ticket)
        .map(|sent| &sent.status);
    match status {
        Some(SentStatus::Done) => {
            app.ui.overlay = None;
            app.ui.debug.kept = None;
        }
        Some(SentStatus::Refused(reason)) => {
            editor.refusal = Some(reason.clone());
            editor.ticket = None;
        }
        Some(SentStatus::Unanswered) | None => {
            editor.refusal = Some("no answer: the connection was lost".to_owned());
            editor.ticket = None;
        }
        Some(SentStatus::Sent | SentStatus::Received | SentStatus::Accepted) => {}
    }
}

fn input_of(key: Key) -> Input {
    use ratatui_textarea::Key as To;
    let code = match key.code {
        KeyCode::Char(c) => To::Char(c),
        KeyCode::Backspace => To::Backspace,
        KeyCode::Enter => To::Enter,
        KeyCode::Left => To::Left,
        KeyCode::Right => To::Right,
        KeyCode::Up => To::Up,
        KeyCode::Down => To::Down,
        KeyCode::Delete => To::Delete,
        KeyCode::Home => To::Home,
        KeyCode::End => To::End,
        KeyCode::PageUp => To::PageUp,
        KeyCode::PageDown => To::PageDown,
        _ => To::Null,
    };
    Input {
        key: code,
        ctrl: key.ctrl,
        alt: key.alt,
        shift: false,
    }
}
