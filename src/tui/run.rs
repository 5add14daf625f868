//! The loop that wires `update` and `draw` to a terminal and a source.
//!
//! ```text
//! terminal thread ──keys──┐
//! source thread ──events──┼──► inbox ──► update ──► draw (at most 30 a second, when dirty)
//! signal thread ──────────┤                 │          │
//! picture thread ◄────────┼── wanted ───────┼──────────┘
//!        └────pictures────┘                 └──commands──► source thread
//! ```
//!
//! Inbox: bounded, whoever is faster waits; a source that waits falls behind, catches up by a
//! snapshot and says what was skipped.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use crossterm::event::{Event as TerminalEvent, KeyEventKind, MouseButton, MouseEventKind};
use tokio::sync::mpsc as async_mpsc;

use crate::bus::{CommandSender, Pictures, Player, Source};
use crate::event::Command;
use crate::screen::decode_png;
use crate::tui::app::{App, Glyphs, Link, Screen};
use crate::tui::draw::Drawn;
use crate::tui::feed::{self, Wake};
use crate::tui::gate::Gate;
use crate::tui::keymap::Keymap;
use crate::tui::outlet::{self, Reader};
use crate::tui::picture::PictureWorker;
use crate::tui::terminal::ConsoleTerminal;
use crate::tui::theme::{ColorDepth, Role, Theme, ThemeError};
use crate::tui::timeline::TimelineUi;
use crate::tui::update::{Effect, Exit, Input, update};
use crate::tui::work::Worker;
use crate::types::{EpisodeId, ImageHash};

/// What may wait for the loop: bursts of a large fleet, a second's worth.
const INBOX: usize = 1024;
/// Inputs taken in before a draw at most, so that a flood cannot starve the screen.
const DRAIN: usize = 4096;
/// Least time between draws.
const FRAME: Duration = Duration::from_millis(33);
/// The console's clock ticks at least this often.
const TICK: Duration = Duration::from_millis(250);
/// Commands on their way to the source thread; an operator types slower.
const COMMANDS: usize = 16;

/// How a console is started.
#[derive(Clone, Debug)]
pub struct Options {
    /// Name shown for the run before its first event.
    pub title: String,
    /// Whether this is the demo: leaving proposes to stop the run.
    pub is_demo: bool,
    /// Whether commands are not to be sent, though the source could.
    pub watch_only: bool,
    /// Name of the theme.
    pub theme: String,
    /// An episode to open in Rollout at the start.
    pub episode: Option<EpisodeId>,
    /// What frames, charts and marks are drawn with.
    pub glyphs: Glyphs,
    /// What keys mean.
    pub keymap: Keymap,
}

impl Options {
    /// For a run of this name, steered, in the default theme.
    pub fn new(title: &str) -> Self {
        Self {
            title: title.to_owned(),
            is_demo: false,
            watch_only: false,
            theme: "default".to_owned(),
            episode: None,
            glyphs: Glyphs::default(),
            keymap: Keymap::default(),
        }
    }
}

/// Why a console cannot run.
#[derive(Debug, thiserror::Error)]
pub enum TuiError {
    /// Standard input or output is a file or a pipe.
    #[error("the console needs a terminal; use --headless or `arpo ctl` without one")]
    NoTerminal,
    /// The terminal failed.
    #[error("cannot {what} the terminal")]
    Terminal {
        /// What was attempted.
        what: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// The theme cannot be used.
    #[error(transparent)]
    Theme(#[from] ThemeError),
    /// A thread could not be started.
    #[error("cannot start the console's {what} thread")]
    Thread {
        /// Which.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
}

/// Runs a console on a source until the operator leaves, or a signal ends it. Blocks; a source's
/// own tasks must run on other threads. Signals that come after it end the process, as they
/// would have without it.
pub fn run(source: Source, options: &Options) -> Result<Exit, TuiError> {
    use std::io::IsTerminal;
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        return Err(TuiError::NoTerminal);
    }
    let depth = ColorDepth::detect(|name| std::env::var(name).ok());
    let theme = Theme::built_in(&options.theme, depth)?;
    let link = match (&source.commands, options.watch_only) {
        (_, true) => Link::WatchOnly,
        (Some(_), false) => Link::Live,
        (None, false) => Link::Recorded,
    };
    let Source {
        run: _,
        state,
        items,
        pictures,
        commands,
        player,
    } = source;
    let mut app = App::new(state, &options.title, link, theme);
    app.ui.is_demo = options.is_demo;
    app.ui.glyphs = options.glyphs;
    app.ui.keymap = options.keymap.clone();
    app.ui.timeline = player.as_ref().map(|_| TimelineUi::default());
    if let Some(episode) = options.episode {
        app.ui.rollout.pinned = Some(episode);
        app.ui.screen = Screen::Rollout;
    }
    let (wakes, inbox) = sync_channel(INBOX);
    let (requests, requested) = async_mpsc::channel(COMMANDS);
    let results = wakes.clone();
    let files = Worker::spawn(pictures.clone(), move |worked| {
        results.send(Wake::Input(Input::Worked(worked))).is_ok()
    })?;
    let worker = spawn_pictures(pictures, wakes.clone())?;
    let done = Arc::new(AtomicBool::new(false));
    feed::spawn_signals(wakes.clone())?;
    let mut terminal = ConsoleTerminal::take().map_err(|source| TuiError::Terminal {
        what: "take over",
        source,
    })?;
    let gate = Arc::new(Gate::default());
    feed::spawn_source(items, commands.clone(), requested, wakes.clone())?;
    feed::spawn_terminal(wakes, Arc::clone(&done), Arc::clone(&gate))?;
    let mut console = Console {
        app,
        worker,
        files,
        requests,
        commands,
        player,
        gate,
        drawn: Drawn::default(),
        repaint: false,
    };
    let exit = console.run(&mut terminal, &inbox);
    done.store(true, Ordering::Relaxed);
    exit
}

fn spawn_pictures(pictures: Pictures, wakes: SyncSender<Wake>) -> Result<PictureWorker, TuiError> {
    let fetch = move |hash: &ImageHash| {
        let png = pictures
            .png_blocking(hash)
            .map_err(|error| error.to_string())?;
        decode_png(&png).map_err(|error| error.to_string())
    };
    let deliver = move |key, result| wakes.send(Wake::Input(Input::Picture(key, result))).is_ok();
    PictureWorker::spawn(Box::new(fetch), deliver).map_err(|source| TuiError::Thread {
        what: "picture",
        source,
    })
}

struct Console {
    app: App,
    worker: PictureWorker,
    files: Worker,
    requests: async_mpsc::Sender<(u64, Command)>,
    commands: Option<CommandSender>,
    player: Option<Player>,
    /// Where the thread that reads the terminal waits while another program has it.
    gate: Arc<Gate>,
    /// What the last draw left behind.
    drawn: Drawn,
    /// Whether the next draw writes every cell.
    repaint: bool,
}

/// What comes of an input.
enum Next {
    Go,
    Draw,
    Leave(Exit),
}

impl Console {
    fn run(
        &mut self,
        terminal: &mut ConsoleTerminal,
        inbox: &Receiver<Wake>,
    ) -> Result<Exit, TuiError> {
        let started = Instant::now();
        if let Ok((columns, rows)) = crossterm::terminal::size() {
            update(&mut self.app, Input::Resize(columns, rows));
        }
        let mut dirty = true;
        let mut next_draw = started;
        loop {
            let now = Instant::now();
            if dirty && now >= next_draw {
                self.draw(terminal)?;
                (dirty, next_draw) = (false, now + FRAME);
            }
            let wait = if dirty {
                next_draw.saturating_duration_since(now)
            } else {
                TICK
            };
            let first = match inbox.recv_timeout(wait) {
                Ok(wake) => Some(wake),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return Ok(Exit::Detached),
            };
            let now_ms = started.elapsed().as_millis() as u64;
            dirty |= update(&mut self.app, Input::Clock(now_ms)).dirty;
            let more = std::iter::from_fn(|| inbox.try_recv().ok()).take(DRAIN);
            for wake in first.into_iter().chain(more) {
                match self.take_in(wake, terminal)? {
                    Next::Go => {}
                    Next::Draw => dirty = true,
                    Next::Leave(exit) => return Ok(exit),
                }
            }
        }
    }

    fn draw(&mut self, terminal: &mut ConsoleTerminal) -> Result<(), TuiError> {
        let failed = |source| TuiError::Terminal {
            what: "draw on",
            source,
        };
        if std::mem::take(&mut self.repaint) {
            terminal.repaint().map_err(failed)?;
        }
        self.drawn = terminal.draw(&self.app).map_err(failed)?;
        let missing = self.app.ui.pictures.want(&self.drawn.pictures);
        if !missing.is_empty() {
            let dropped = self.worker.request(missing);
            self.app.ui.pictures.forget(&dropped);
        }
        Ok(())
    }

    fn take_in(&mut self, wake: Wake, terminal: &mut ConsoleTerminal) -> Result<Next, TuiError> {
        let input = match wake {
            Wake::Input(input) => input,
            Wake::Terminal(event) => match self.translate(event) {
                Some(input) => input,
                None => return Ok(Next::Go),
            },
            // The terminal is gone or someone wants the console gone; the run goes on.
            Wake::Leave => return Ok(Next::Leave(Exit::Detached)),
            Wake::Suspend => {
                self.suspend(terminal)?;
                return Ok(Next::Draw);
            }
        };
        let outcome = update(&mut self.app, input);
        for effect in outcome.effects {
            if let Some(exit) = self.perform(effect, terminal)? {
                return Ok(Next::Leave(exit));
            }
        }
        Ok(if outcome.dirty { Next::Draw } else { Next::Go })
    }

    fn perform(
        &mut self,
        effect: Effect,
        terminal: &mut ConsoleTerminal,
    ) -> Result<Option<Exit>, TuiError> {
        match effect {
            Effect::Leave(exit) => return Ok(Some(exit)),
            Effect::Send(ticket, command) => {
                if self.requests.try_send((ticket, command)).is_err() {
                    update(&mut self.app, Input::Answer(ticket, None));
                }
            }
            Effect::Suspend => self.suspend(terminal)?,
            Effect::Copy { what, text } => self.copy(what, &text, terminal)?,
            Effect::Export { path, name, text } => self.export(path.as_deref(), &name, &text),
            Effect::Read { name, text, with } => self.read(&name, &text, with, terminal)?,
            Effect::Lease(request) => {
                if let Some(commands) = &self.commands {
                    commands.lease(request);
                }
            }
            Effect::Play(request) => {
                if let Some(player) = &self.player {
                    player.send(request);
                }
            }
            Effect::Repaint => self.repaint = true,
            Effect::Work(job) => {
                if let Err(reason) = self.files.ask(job) {
                    self.app.say(Role::Danger, reason);
                }
            }
            Effect::Mouse(listens) => {
                terminal
                    .set_mouse(listens)
                    .map_err(|source| TuiError::Terminal {
                        what: "set the mouse of",
                        source,
                    })?;
            }
        }
        Ok(None)
    }

    fn copy(
        &mut self,
        what: &'static str,
        text: &str,
        terminal: &mut ConsoleTerminal,
    ) -> Result<(), TuiError> {
        let sequence = outlet::clipboard(text);
        if let Some(sequence) = &sequence {
            terminal
                .send(sequence)
                .map_err(|source| TuiError::Terminal {
                    what: "write to",
                    source,
                })?;
        }
        let written = outlet::write(None, "copied.txt", text);
        let (role, said) = match (sequence.is_some(), written) {
            (true, Ok(path)) => (
                Role::Muted,
                format!("{what} copied; also in {}", path.display()),
            ),
            (false, Ok(path)) => (
                Role::Warning,
                format!(
                    "too long for the clipboard; the {what} is in {}",
                    path.display()
                ),
            ),
            (true, Err(error)) => (
                Role::Warning,
                format!("{what} copied, but no file: {error}"),
            ),
            (false, Err(error)) => (
                Role::Danger,
                format!("too long for the clipboard, and no file: {error}"),
            ),
        };
        self.app.say(role, said);
        Ok(())
    }

    fn export(&mut self, path: Option<&Path>, name: &str, text: &str) {
        match outlet::write(path, name, text) {
            Ok(path) => self
                .app
                .say(Role::Good, format!("written to {}", path.display())),
            Err(error) => self.app.say(Role::Danger, format!("not written: {error}")),
        }
    }

    fn read(
        &mut self,
        name: &str,
        text: &str,
        with: Reader,
        terminal: &mut ConsoleTerminal,
    ) -> Result<(), TuiError> {
        let path = match outlet::write(None, name, text) {
            Ok(path) => path,
            Err(error) => {
                self.app.say(Role::Danger, format!("not written: {error}"));
                return Ok(());
            }
        };
        self.gate.close();
        let read = terminal.lend(|| outlet::open(&path, with));
        self.gate.open();
        let read = read.map_err(|source| TuiError::Terminal {
            what: "take back",
            source,
        })?;
        if let Err(error) = read {
            self.app.say(Role::Danger, format!("not shown: {error}"));
        }
        if let Ok((columns, rows)) = crossterm::terminal::size() {
            update(&mut self.app, Input::Resize(columns, rows));
        }
        Ok(())
    }

    fn suspend(&mut self, terminal: &mut ConsoleTerminal) -> Result<(), TuiError> {
        let suspended = terminal.suspend().map_err(|source| TuiError::Terminal {
            what: "take back",
            source,
        })?;
        if !suspended {
            self.app.say(Role::Warning, "no shell to return to");
        }
        if let Ok((columns, rows)) = crossterm::terminal::size() {
            update(&mut self.app, Input::Resize(columns, rows));
        }
        Ok(())
    }

    /// What a terminal's event means, given what was drawn.
    fn translate(&self, event: TerminalEvent) -> Option<Input> {
        match event {
            TerminalEvent::Key(key) if key.kind != KeyEventKind::Release => {
                Some(Input::Key(key.into()))
            }
            TerminalEvent::Mouse(mouse) => match mouse.kind {
                MouseEventKind::Down(MouseButton::Left) => self
                    .drawn
                    .target_at(mouse.column, mouse.row)
                    .map(Input::Click),
                MouseEventKind::ScrollUp => Some(Input::Wheel(-1)),
                MouseEventKind::ScrollDown => Some(Input::Wheel(1)),
                _ => None,
            },
            TerminalEvent::Resize(columns, rows) => Some(Input::Resize(columns, rows)),
            TerminalEvent::Paste(text) => Some(Input::Paste(text)),
            TerminalEvent::Key(_) | TerminalEvent::FocusGained | TerminalEvent::FocusLost => None,
        }
    }
}

/// Ends the console's threads once the loop is gone.
pub(super) fn is_done(done: &AtomicBool) -> bool {
    done.load(Ordering::Relaxed)
}

/// Starts a named thread of the console.
pub(super) fn spawn(
    what: &'static str,
    work: impl FnOnce() + Send + 'static,
) -> Result<(), TuiError> {
    thread::Builder::new()
        .name(format!("console-{what}"))
        .spawn(work)
        .map(drop)
        .map_err(|source| TuiError::Thread { what, source })
}
