//! What a console is started with, and its threads.
//!
//! ```text
//! reader thread ──keys, answers──┐
//! source thread ──events─────────┼──► inbox ──► update ──► draw (when dirty and the line has room)
//! signal thread ─────────────────┤                 │          │
//! picture threads ◄──────────────┼── wanted ───────┼──────────┤
//!        └────pictures───────────┘                 │          └──► writer thread ──► terminal
//!                                                  └──commands──► source thread
//! ```
//!
//! Inbox: bounded, whoever is faster waits; a source that waits falls behind, catches up by a
//! snapshot and says what was skipped. The loop itself never waits for the terminal.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

use tokio::sync::mpsc as async_mpsc;

use crate::bus::{Pictures, Source};
use crate::screen::decode_png;
use crate::tui::app::{App, Glyphs, Link, Screen};
use crate::tui::console::{Console, Hands};
use crate::tui::desk::PictureDesk;
use crate::tui::feed::{self, Wake};
use crate::tui::gate::Gate;
use crate::tui::keymap::Keymap;
use crate::tui::picture::{Encoder, PictureWorker};
use crate::tui::term::{Environment, Images, spawn_reader};
use crate::tui::terminal::ConsoleTerminal;
use crate::tui::theme::{Theme, ThemeError};
use crate::tui::timeline::TimelineUi;
use crate::tui::update::{Exit, Input};
use crate::tui::work::Worker;
use crate::types::{EpisodeId, ImageHash};

/// What may wait for the loop: bursts of a large fleet, a second's worth.
const INBOX: usize = 1024;
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
    /// How pictures are shown.
    pub images: Images,
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
            images: Images::Auto,
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
    let environment = Environment::detect(|name| std::env::var(name).ok());
    let theme = Theme::built_in(&options.theme, environment.depth)?;
    let link = match (&source.commands, options.watch_only) {
        (_, true) => Link::WatchOnly,
        (Some(_), false) => Link::Live,
        (None, false) => Link::Recorded,
    };
    let Source {
        run: _,
        root,
        profile,
        state,
        items,
        pictures,
        commands,
        player,
    } = source;
    let mut app = App::new(state, &options.title, link, theme);
    (app.ui.root, app.ui.profile) = (root, profile);
    app.ui.is_demo = options.is_demo;
    app.ui.glyphs = options.glyphs;
    app.ui.keymap = options.keymap.clone();
    app.ui.timeline = player.as_ref().map(|_| TimelineUi::default());
    app.ui.terminal.environment = environment;
    app.ui.terminal.choose(options.images);
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
    let encoder = spawn_encoder(wakes.clone())?;
    let done = Arc::new(AtomicBool::new(false));
    feed::spawn_signals(wakes.clone())?;
    let terminal = ConsoleTerminal::take(wakes.clone()).map_err(|source| TuiError::Terminal {
        what: "take over",
        source,
    })?;
    let gate = Arc::new(Gate::default());
    feed::spawn_source(items, commands.clone(), requested, wakes.clone())?;
    spawn_reader(wakes, Arc::clone(&done), Arc::clone(&gate))?;
    let mut console = Console::new(
        app,
        terminal,
        PictureDesk::new(worker, encoder),
        Hands {
            requests,
            commands,
            player,
            files,
            gate,
        },
        options.theme.clone(),
    );
    let exit = console.run(&inbox);
    done.store(true, Ordering::Relaxed);
    exit
}

fn spawn_encoder(wakes: SyncSender<Wake>) -> Result<Encoder, TuiError> {
    let deliver = move |made| wakes.send(Wake::Encoded(made)).is_ok();
    Encoder::spawn(deliver).map_err(|source| TuiError::Thread {
        what: "encoder",
        source,
    })
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
