//! The threads that feed the console's loop: the run and signals; keys come from `term`. None of them outlives the
//! process's need: each ends when the loop no longer listens.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use rustix::process::Signal as Signals;
use tokio::runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use crate::bus::{CommandSender, CommandTicket, SourceItem};
use crate::event::{Command, CommandStatus, Event};
use crate::tui::picture::{Encoded, PictureKey};
use crate::tui::run::{TuiError, spawn};
use crate::tui::term::TerminalEvent;
use crate::tui::terminal::note_continued;
use crate::tui::update::Input;

/// Events handed on together at most.
const BATCH: usize = 512;

/// Pause between batches: a large fleet's events come together, as each batch costs the loop a
/// look at all rows, and the screen shows them no sooner anyway.
const PAUSE: Duration = Duration::from_millis(25);

/// Something for the loop.
#[derive(Debug)]
pub(super) enum Wake {
    /// To be taken in as it is.
    Input(Input),
    /// A terminal's event, whose meaning depends on what is drawn.
    Terminal(TerminalEvent),
    /// A picture is ready to be sent, or cannot be.
    Encoded(Result<Encoded, (PictureKey, String)>),
    /// The terminal's size changed.
    Resized,
    /// A frame was written, or cannot be.
    Written(io::Result<()>),
    /// Go back to the shell.
    Suspend,
    /// End the console.
    Leave,
}

/// Turns HUP, TERM and INT into leaving, TSTP into suspending and WINCH into a new size. After the
/// console they end the process, as they would have without it: their handlers cannot be taken back. Once this returns
/// they are in force, so call it before the terminal is taken over.
pub(super) fn spawn_signals(wakes: SyncSender<Wake>) -> Result<(), TuiError> {
    let runtime = single_runtime("signal")?;
    let kinds = [
        SignalKind::hangup(),
        SignalKind::terminate(),
        SignalKind::interrupt(),
        SignalKind::from_raw(Signals::TSTP.as_raw()),
        SignalKind::from_raw(Signals::CONT.as_raw()),
        SignalKind::window_change(),
    ];
    let entered = runtime.enter();
    // A kind that cannot be caught keeps its default action.
    let caught = kinds.map(|kind| signal(kind).ok().map(|stream| (kind, stream)));
    drop(entered);
    spawn("signal", move || {
        runtime.block_on(async move {
            let caught = caught.into_iter().flatten();
            let mut waiting: FuturesUnordered<_> = caught
                .map(|(kind, stream)| next_signal(kind, stream))
                .collect();
            while let Some((kind, stream)) = waiting.next().await {
                if kind.as_raw_value() == Signals::CONT.as_raw() {
                    note_continued();
                    waiting.push(next_signal(kind, stream));
                    continue;
                }
                let (wake, ends) = match kind {
                    kind if kind == SignalKind::window_change() => (Wake::Resized, false),
                    kind if kind.as_raw_value() == Signals::TSTP.as_raw() => (Wake::Suspend, false),
                    _ => (Wake::Leave, true),
                };
                if wakes.send(wake).is_err() && ends {
                    std::process::exit(128 + kind.as_raw_value());
                }
                waiting.push(next_signal(kind, stream));
            }
        });
    })
}

async fn next_signal(kind: SignalKind, mut stream: Signal) -> (SignalKind, Signal) {
    stream.recv().await;
    (kind, stream)
}

fn single_runtime(what: &'static str) -> Result<runtime::Runtime, TuiError> {
    runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| TuiError::Thread { what, source })
}

/// Hands on what the run tells and takes commands back. Sending into the loop's inbox blocks
/// this thread on purpose: it serves nothing else, and waiting is the inbox's overflow rule.
pub(super) fn spawn_source(
    items: mpsc::Receiver<SourceItem>,
    commands: Option<CommandSender>,
    requested: mpsc::Receiver<(u64, Command)>,
    wakes: SyncSender<Wake>,
) -> Result<(), TuiError> {
    let runtime = single_runtime("source")?;
    spawn("source", move || {
        runtime.block_on(feed(items, commands, requested, wakes));
    })
}

async fn feed(
    mut items: mpsc::Receiver<SourceItem>,
    commands: Option<CommandSender>,
    mut requested: mpsc::Receiver<(u64, Command)>,
    wakes: SyncSender<Wake>,
) {
    let mut tickets = FuturesUnordered::new();
    let mut batch = Vec::with_capacity(BATCH);
    let mut is_open = true;
    let mut next_batch = Instant::now();
    loop {
        let pauses = Instant::now() < next_batch;
        tokio::select! {
            () = sleep_until(next_batch), if pauses => {}
            count = items.recv_many(&mut batch, BATCH), if is_open && !pauses => {
                is_open = count > 0;
                next_batch = Instant::now() + PAUSE;
                if !inputs_of(batch.drain(..)).into_iter().all(|input| hand_on(&wakes, input)) {
                    return;
                }
            }
            request = requested.recv() => {
                let Some((number, command)) = request else { return };
                match &commands {
                    Some(sender) => tickets.push(next_answer(number, sender.send(command))),
                    None => {
                        hand_on(&wakes, Input::Answer(number, None));
                    }
                }
            }
            Some((number, answer, ticket)) = tickets.next() => {
                if answer.is_some() {
                    tickets.push(next_answer(number, ticket));
                }
                if !hand_on(&wakes, Input::Answer(number, answer)) {
                    return;
                }
            }
        }
    }
}

async fn next_answer(
    number: u64,
    mut ticket: CommandTicket,
) -> (u64, Option<(u64, CommandStatus)>, CommandTicket) {
    let answer = ticket.next().await;
    (number, answer, ticket)
}

fn hand_on(wakes: &SyncSender<Wake>, input: Input) -> bool {
    wakes.send(Wake::Input(input)).is_ok()
}

/// Neighboring events together, in order.
fn inputs_of(items: impl Iterator<Item = SourceItem>) -> Vec<Input> {
    let mut inputs = Vec::new();
    let mut events: Vec<Arc<Event>> = Vec::new();
    for item in items {
        match item {
            SourceItem::Event(event) => events.push(event),
            other => {
                if !events.is_empty() {
                    inputs.push(Input::Events(std::mem::take(&mut events)));
                }
                inputs.push(match other {
                    SourceItem::Resync { state, missed } => Input::Snapshot(state, missed),
                    SourceItem::Lease(state) => Input::Lease(state),
                    SourceItem::Timeline(info) => Input::Timeline(info),
                    SourceItem::Lost { reason } => Input::LinkLost(reason),
                    SourceItem::Heard | SourceItem::Event(_) => Input::Heard,
                });
            }
        }
    }
    if !events.is_empty() {
        inputs.push(Input::Events(events));
    }
    inputs
}
