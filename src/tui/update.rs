//! What inputs do to the console. No terminal, no source of events: both testable as data.

use std::path::PathBuf;
use std::sync::Arc;

use crate::bus::{LeaseRequest, LeaseState, PlayRequest, TimelineInfo};
use crate::event::{Command, CommandStatus, Event, RunState, TrainerState};
use crate::tui::app::{App, LostLink, Overlay, Screen, SentStatus};
use crate::tui::commands::{command_named, invoke};
use crate::tui::fleet::{reorder, reorder_when_due, rollout_episode, rows_in_order};
use crate::tui::keys::Key;
use crate::tui::outlet::Reader;
use crate::tui::page::Page;
use crate::tui::picture::{PictureKey, Raster};
use crate::tui::press::press;
use crate::tui::rollout::wanted_changes;
use crate::tui::term::{LinkFigures, Reply};
use crate::tui::text::one_line;
use crate::tui::theme::Role;
use crate::tui::tokens::wanted_tokens;
use crate::tui::work::{Job, Worked};
use crate::tui::{debug, focus, journal, lease, machine_log, timeline};

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
    /// The terminal answered, with the bytes as they came.
    Reply(Reply, String),
    /// How the line to the terminal is.
    Link(LinkFigures),
    /// The run went on.
    Events(Vec<Arc<Event>>),
    /// The run as a whole after a gap, and how many events were never shown.
    Snapshot(Box<RunState>, u64),
    /// Nothing happened, but the engine lives.
    Heard,
    /// Who writes on the run.
    Lease(LeaseState),
    /// The time line of a recorded run is known.
    Timeline(Arc<TimelineInfo>),
    /// The engine cannot be reached; why.
    LinkLost(String),
    /// A picture was made, or cannot be.
    Picture(PictureKey, Result<Arc<Raster>, String>),
    /// What became of a command: the console's number for it, then the engine's with the
    /// answer, or nothing if no answer will come.
    Answer(u64, Option<(u64, CommandStatus)>),
    /// What came of work.
    Worked(Worked),
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
    /// Do what must not be done while drawing.
    Work(Job),
    /// Put text into the clipboard, and into a file.
    Copy {
        /// What it is, one word.
        what: &'static str,
        /// The text.
        text: String,
    },
    /// Write text into a file.
    Export {
        /// Where; the console's own place if absent.
        path: Option<PathBuf>,
        /// The file's name there.
        name: String,
        /// The text.
        text: String,
    },
    /// Show text in the operator's pager or editor.
    Read {
        /// Name of the file it is shown as.
        name: String,
        /// The text.
        text: String,
        /// In which.
        with: Reader,
    },
    /// Want something of the lease.
    Lease(LeaseRequest),
    /// Go elsewhere in a recorded run.
    Play(PlayRequest),
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
    /// An evaluation, by its place in the list.
    Eval(usize),
    /// A task of the replay buffer, by its place in the list.
    Replay(usize),
    /// A row of the logs, counted up from the newest.
    LogRow(usize),
}

/// Takes an input in; says what must be done in the world, and whether to draw.
pub fn update(app: &mut App, input: Input) -> Update {
    let mut dirty = true;
    let mut effects = match input {
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
        Input::Reply(reply, raw) => {
            app.ui.terminal.take(&reply, &raw);
            dirty = app.ui.terminal.is_settled;
            Vec::new()
        }
        Input::Link(figures) => {
            // Never worth a drawing of its own: that would be answered, and so on.
            app.ui.terminal.link = Some(figures);
            dirty = false;
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
            app.ui.rollout.tokens.forget_failures();
            heard(app, true)
        }
        Input::Heard => {
            app.ui.alive_ms = app.ui.now_ms;
            dirty = app.ui.lost.take().is_some();
            Vec::new()
        }
        Input::Lease(state) => {
            lease::note(app, state);
            Vec::new()
        }
        Input::Timeline(info) => {
            if let Some(timeline) = &mut app.ui.timeline {
                timeline.info = Some(info);
            }
            Vec::new()
        }
        Input::LinkLost(reason) => {
            let since_ms = app
                .ui
                .lost
                .as_ref()
                .map_or(app.ui.now_ms, |lost| lost.since_ms);
            app.ui.lost = Some(LostLink { reason, since_ms });
            // Whoever answers next may know of no lease.
            app.ui.lease = None;
            leave_if_stopped(app)
        }
        Input::Picture(key, result) => {
            app.ui.pictures.put(key, result);
            Vec::new()
        }
        Input::Worked(worked) => {
            take_work(app, worked);
            Vec::new()
        }
        Input::Answer(ticket, answer) => {
            journal::note_answer(app, ticket, answer);
            debug::settle_editor(app);
            leave_if_stopped(app)
        }
    };
    effects.extend(wanted_changes(app).map(Effect::Work));
    effects.extend(wanted_tokens(app).map(Effect::Work));
    effects.extend(machine_log::wanted(app).map(Effect::Work));
    Update { effects, dirty }
}

/// Takes in what came of work.
fn take_work(app: &mut App, worked: Worked) {
    match worked {
        Worked::Compared(compared) => {
            let text = format!(
                "compared with {}, {} iterations",
                one_line(&compared.name),
                compared.history.len()
            );
            app.ui.train.compared = Some(compared);
            app.say(Role::Good, text);
        }
        Worked::Written(path) => app.say(Role::Good, format!("wrote {}", path.display())),
        Worked::Changes {
            before,
            after,
            changes,
        } => app.ui.rollout.changes = Some((before, after, changes)),
        Worked::Tokens(reply, tokens) => app.ui.rollout.tokens.take(reply, tokens),
        Worked::MachineLog(desktop, after, piece) => {
            machine_log::take(app, desktop, after, piece);
        }
        Worked::Text(title, lines) => {
            app.ui.overlay = Some(Overlay::Page(Page::of_text(title, &lines)));
        }
        Worked::Failed(reason) => app.say(Role::Danger, reason),
    }
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
    timeline::settle(app);
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
    let before_ms = app.ui.now_ms;
    let before_s = before_ms / 1000;
    app.ui.now_ms = now_ms;
    let reordered = reorder_when_due(app);
    let forgot = journal::forget_answered(app);
    let explains = focus::is_due(app, before_ms);
    let expired = app.ui.message.as_ref().is_some_and(|message| {
        message.role != Role::Danger && now_ms >= message.at_ms + MESSAGE_MS
    });
    if expired {
        app.ui.message = None;
    }
    let shows_time = app.is_alive() || app.ui.lost.is_some();
    let settled = app.ui.terminal.tick(now_ms);
    forgot
        || expired
        || explains
        || settled
        || shows_time && (reordered || now_ms / 1000 != before_s)
}

fn paste(app: &mut App, text: &str) -> Vec<Effect> {
    let line = crate::tui::text::one_line(text);
    match &mut app.ui.overlay {
        Some(Overlay::Prompt(prompt)) => prompt.text.push_str(&line),
        Some(Overlay::Reply(editor)) => debug::paste_into(editor, text),
        Some(Overlay::Help(help)) if help.types => help.query.push_str(&line),
        Some(Overlay::Filter(text) | Overlay::Search(text) | Overlay::Naming(_, text)) => {
            text.push_str(&line);
        }
        Some(_) | None => {}
    }
    Vec::new()
}

fn click(app: &mut App, target: Target) -> Vec<Effect> {
    let run = |app: &mut App, name: &str| match command_named(name) {
        Some(row) => invoke(app, row, ""),
        None => Vec::new(),
    };
    match target {
        Target::Tab(screen) => return run(app, screen.command()),
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
        Target::Eval(place) => crate::tui::evals::select(app, place),
        Target::Replay(place) => crate::tui::replay::select(app, place),
        Target::LogRow(up) => app.ui.logs.up = up,
    }
    Vec::new()
}

fn wheel(app: &mut App, lines: i32) -> Vec<Effect> {
    let size = app.ui.size;
    if let Some(Overlay::MachineLog(log)) = &mut app.ui.overlay {
        log.scroll(lines.signum() as isize, size);
        return Vec::new();
    }
    let name = if lines < 0 { "up" } else { "down" };
    match command_named(name) {
        Some(row) if app.ui.overlay.is_none() => (row.run)(app, ""),
        _ => Vec::new(),
    }
}
