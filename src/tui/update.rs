//! What inputs do to the console. No terminal, no source of events: both testable as data.

use std::sync::Arc;

use crossterm::event::KeyCode;

use crate::event::{Command, CommandStatus, Event, RunState, TrainerState};
use crate::tui::app::{App, LostLink, Overlay, QuitChoice, Screen, SentStatus};
use crate::tui::commands::{command_for, command_named, run_line, send};
use crate::tui::fleet::{reorder, reorder_when_due, rollout_episode, rows_in_order};
use crate::tui::keys::Key;
use crate::tui::picture::{PictureKey, Raster};
use crate::tui::prompt::{PromptReply, edit};
use crate::tui::theme::Role;
use crate::tui::{debug, journal};

/// Messages stay so long; errors until esc.
const MESSAGE_MS: u64 = 8_000;

/// Something that happened.
#[derive(Clone, Debug)]
pub enum Input {
    /// A key was pressed.
    Key(Key),
    /// Text was pasted.
    Paste(String),
    /// Something drawn was clicked.
    Click(Target),
    /// The wheel was turned; downwards is positive.
    Wheel(i32),
    /// The terminal has this size now.
    Resize(u16, u16),
    /// The console's clock, ms since its start.
    Clock(u64),
    /// The run went on.
    Events(Vec<Arc<Event>>),
    /// The run as a whole after a gap, and how many events were never shown.
    Snapshot(Box<RunState>, u64),
    /// Nothing happened, but the engine lives.
    Heard,
    /// The engine cannot be reached; why.
    LinkLost(String),
    /// A picture was made, or cannot be.
    Picture(PictureKey, Result<Arc<Raster>, String>),
    /// What became of a command: the console's number for it, then the engine's with the
    /// answer, or nothing if no answer will come.
    Answer(u64, Option<(u64, CommandStatus)>),
}

/// What the console asks of the world.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Give the engine a command; its answers name the number.
    Send(u64, Command),
    /// Leave.
    Leave(Exit),
    /// Go back to the shell until continued.
    Suspend,
    /// Draw every cell anew.
    Repaint,
    /// Listen to the mouse, or not.
    Mouse(bool),
}

/// How the operator left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The run goes on, or there is none at work.
    Detached,
    /// The engine was asked to stop and accepted.
    StopAsked,
}

/// Something on the screen that can be clicked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A screen's tab.
    Tab(Screen),
    /// A sample: number of its row, place in it.
    Sample(u32, usize),
    /// A step of the episode shown.
    Step(usize),
    /// A chart.
    Chart(usize),
    /// A row of the logs, counted up from the newest.
    LogRow(usize),
}

/// Takes an input in; says what must be done in the world, and whether to draw.
pub fn update(app: &mut App, input: Input) -> Update {
    let mut dirty = true;
    let effects = match input {
        Input::Key(key) => press(app, key),
        Input::Paste(text) => paste(app, &text),
        Input::Click(target) => click(app, target),
        Input::Wheel(lines) => wheel(app, lines),
        Input::Resize(columns, rows) => {
            app.ui.size = (columns, rows);
            Vec::new()
        }
        Input::Clock(now_ms) => {
            dirty = tick(app, now_ms);
            Vec::new()
        }
        Input::Events(events) => {
            let iteration = app.run.iteration;
            for event in &events {
                app.run.apply(event);
            }
            heard(app, iteration != app.run.iteration)
        }
        Input::Snapshot(run, missed) => {
            app.run = *run;
            app.ui.dropped += missed;
            app.ui.pictures.forget_failures();
            heard(app, true)
        }
        Input::Heard => {
            app.ui.alive_ms = app.ui.now_ms;
            dirty = app.ui.lost.take().is_some();
            Vec::new()
        }
        Input::LinkLost(reason) => {
            let since_ms = app
                .ui
                .lost
                .as_ref()
                .map_or(app.ui.now_ms, |lost| lost.since_ms);
            app.ui.lost = Some(LostLink { reason, since_ms });
            leave_if_stopped(app)
        }
        Input::Picture(key, result) => {
            app.ui.pictures.put(key, result);
            Vec::new()
        }
        Input::Answer(ticket, answer) => {
            journal::note_answer(app, ticket, answer);
            debug::settle_editor(app);
            leave_if_stopped(app)
        }
    };
    Update { effects, dirty }
}

/// What `update` says.
#[derive(Debug)]
pub struct Update {
    /// To be done in the world.
    pub effects: Vec<Effect>,
    /// Whether the screen may look different now.
    pub dirty: bool,
}

/// After news of the run.
fn heard(app: &mut App, reordered: bool) -> Vec<Effect> {
    app.ui.heard_ms = app.ui.now_ms;
    app.ui.alive_ms = app.ui.now_ms;
    app.ui.lost = None;
    journal::reconcile(app);
    debug::settle_editor(app);
    // Rows that nobody has looked at yet may take their place at once.
    if reordered || app.ui.fleet.order.len() != rows_in_order(app).len() {
        reorder(app);
    }
    leave_if_stopped(app)
}

/// Leaves once the stop that the operator chose is under way, or stays where it was refused.
fn leave_if_stopped(app: &mut App) -> Vec<Effect> {
    if !app.ui.leaving {
        return Vec::new();
    }
    let stops = app
        .ui
        .sent
        .iter()
        .rev()
        .find(|sent| sent.request == Command::Stop);
    match stops.map(|sent| &sent.status) {
        Some(SentStatus::Refused(_)) => {
            app.ui.leaving = false;
            return Vec::new();
        }
        Some(SentStatus::Accepted | SentStatus::Done) => {
            return vec![Effect::Leave(Exit::StopAsked)];
        }
        Some(SentStatus::Sent | SentStatus::Received | SentStatus::Unanswered) | None => {}
    }
    let ends = app.run.is_over() || app.run.trainer == TrainerState::Stopping;
    if ends || app.ui.lost.is_some() {
        vec![Effect::Leave(Exit::StopAsked)]
    } else {
        Vec::new()
    }
}

/// Lets time pass; says whether anything shown depends on it.
fn tick(app: &mut App, now_ms: u64) -> bool {
    let before_s = app.ui.now_ms / 1000;
    app.ui.now_ms = now_ms;
    let reordered = reorder_when_due(app);
    let forgot = journal::forget_answered(app);
    let expired = app.ui.message.as_ref().is_some_and(|message| {
        message.role != Role::Danger && now_ms >= message.at_ms + MESSAGE_MS
    });
    if expired {
        app.ui.message = None;
    }
    let shows_time = app.is_alive() || app.ui.lost.is_some();
    forgot || expired || shows_time && (reordered || now_ms / 1000 != before_s)
}

fn press(app: &mut App, key: Key) -> Vec<Effect> {
    match app.ui.overlay.take() {
        None => match command_for(key, app.ui.screen) {
            Some(row) => (row.run)(app, ""),
            None => Vec::new(),
        },
        Some(Overlay::Help { scroll }) => press_in_help(app, key, scroll),
        Some(Overlay::Prompt(prompt)) => match prompt.press(key, &app.ui.typed) {
            PromptReply::Open(prompt) => {
                app.ui.overlay = Some(Overlay::Prompt(prompt));
                Vec::new()
            }
            PromptReply::Closed => Vec::new(),
            PromptReply::Run(line) => {
                app.ui.typed.push(line.clone());
                run_line(app, &line)
            }
        },
        Some(Overlay::Filter(text)) => {
            press_in_filter(app, key, text);
            Vec::new()
        }
        Some(Overlay::Quit(choice)) => press_in_quit(app, key, choice),
        Some(Overlay::Reply(editor)) => debug::press_in_editor(app, key, editor),
    }
}

fn press_in_help(app: &mut App, key: Key, scroll: usize) -> Vec<Effect> {
    let by: isize = match command_for(key, Screen::Fleet).map(|row| row.name) {
        Some("up") => -1,
        Some("down") => 1,
        Some("page-up") => -10,
        Some("page-down") => 10,
        Some("first") => isize::MIN,
        Some("suspend") => {
            app.ui.overlay = Some(Overlay::Help { scroll });
            return vec![Effect::Suspend];
        }
        _ => return Vec::new(),
    };
    let last = crate::tui::draw::help_lines(app).saturating_sub(1);
    let scroll = scroll.saturating_add_signed(by).min(last);
    app.ui.overlay = Some(Overlay::Help { scroll });
    Vec::new()
}

fn press_in_filter(app: &mut App, key: Key, mut text: String) {
    match key.code {
        KeyCode::Esc => return,
        KeyCode::Char('c') if key.ctrl => return,
        KeyCode::Enter => {
            app.ui.logs.filter = text;
            app.ui.logs.up = 0;
            return;
        }
        _ => edit(&mut text, key),
    }
    app.ui.overlay = Some(Overlay::Filter(text));
}

fn press_in_quit(app: &mut App, key: Key, choice: QuitChoice) -> Vec<Effect> {
    let place = QuitChoice::ALL
        .iter()
        .position(|known| *known == choice)
        .unwrap_or(0);
    let by = |step: usize| QuitChoice::ALL[(place + step) % QuitChoice::ALL.len()];
    let next = match key.code {
        KeyCode::Left | KeyCode::Up | KeyCode::BackTab => by(QuitChoice::ALL.len() - 1),
        KeyCode::Right | KeyCode::Down | KeyCode::Tab => by(1),
        KeyCode::Char('d') if !key.ctrl => return leave(app, QuitChoice::Detach),
        KeyCode::Char('s') if !key.ctrl => return leave(app, QuitChoice::Stop),
        KeyCode::Enter => return leave(app, choice),
        // A second ctrl-c means it: the run is left as it is.
        KeyCode::Char('c') if key.ctrl => return leave(app, QuitChoice::Detach),
        KeyCode::Esc | KeyCode::Char(_) => return Vec::new(),
        _ => choice,
    };
    app.ui.overlay = Some(Overlay::Quit(next));
    Vec::new()
}

fn leave(app: &mut App, choice: QuitChoice) -> Vec<Effect> {
    match choice {
        QuitChoice::Detach => vec![Effect::Leave(Exit::Detached)],
        QuitChoice::Stay => Vec::new(),
        QuitChoice::Stop => {
            let effects = send(app, Command::Stop);
            app.ui.leaving = !effects.is_empty();
            effects
        }
    }
}

fn paste(app: &mut App, text: &str) -> Vec<Effect> {
    let line = crate::tui::text::one_line(text);
    match &mut app.ui.overlay {
        Some(Overlay::Prompt(prompt)) => prompt.text.push_str(&line),
        Some(Overlay::Filter(filter)) => filter.push_str(&line),
        Some(Overlay::Reply(editor)) => debug::paste_into(editor, text),
        Some(Overlay::Help { .. } | Overlay::Quit(_)) | None => {}
    }
    Vec::new()
}

fn click(app: &mut App, target: Target) -> Vec<Effect> {
    let run = |app: &mut App, name: &str| match command_named(name) {
        Some(row) => (row.run)(app, ""),
        None => Vec::new(),
    };
    match target {
        Target::Tab(Screen::Fleet) => return run(app, "fleet"),
        Target::Tab(Screen::Rollout) => return run(app, "rollout"),
        Target::Tab(Screen::Train) => return run(app, "train"),
        Target::Tab(Screen::Logs) => return run(app, "logs"),
        Target::Sample(row, sample) => {
            if (app.ui.fleet.row, app.ui.fleet.sample) == (row, sample) {
                return run(app, "open");
            }
            app.ui.fleet.row = row;
            app.ui.fleet.sample = sample;
            app.ui.fleet.is_chosen = true;
        }
        Target::Step(step) => {
            app.ui.rollout.pinned = rollout_episode(app).map(|episode| episode.id);
            app.ui.rollout.step = Some(step);
        }
        Target::Chart(chart) => app.ui.train.chart = chart,
        Target::LogRow(up) => app.ui.logs.up = up,
    }
    Vec::new()
}

fn wheel(app: &mut App, lines: i32) -> Vec<Effect> {
    let name = if lines < 0 { "up" } else { "down" };
    match command_named(name) {
        Some(row) if app.ui.overlay.is_none() => (row.run)(app, ""),
        _ => Vec::new(),
    }
}
