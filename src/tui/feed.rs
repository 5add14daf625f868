//! The threads that feed the console's loop: keys, the run, signals. None of them outlives the
//! process's need: each ends when the loop no longer listens.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use crossterm::event::Event as TerminalEvent;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

use crate::bus::{CommandSender, CommandTicket, SourceItem};
use crate::event::{Command, CommandStatus, Event};
use crate::tui::gate::Gate;
use crate::tui::run::{TuiError, is_done, spawn};
use crate::tui::update::Input;

/// Events handed on together at most.
const BATCH: usize = 512;
/// How long the terminal is waited for before looking whether the loop still listens.
const POLL: Duration = Duration::from_millis(100);
/// Number of SIGTSTP on every Linux.
const SIGTSTP: i32 = 20;

/// Something for the loop.
#[derive(Debug)]
pub(super) enum Wake {
    /// To be taken in as it is.
    Input(Input),
    /// A terminal's event, whose meaning depends on what is drawn.
    Terminal(TerminalEvent),
    /// Go back to the shell.
    Suspend,
    /// End the console.
    Leave,
}

/// Reads the terminal: the only thread that does.
pub(super) fn spawn_terminal(
    wakes: SyncSender<Wake>,
    done: Arc<AtomicBool>,
    gate: Arc<Gate>,
) -> Result<(), TuiError> {
    spawn("terminal", move || {
        while !is_done(&done) {
            gate.pass();
            let wake = match crossterm::event::poll(POLL) {
                Ok(false) => continue,
                Ok(true) => crossterm::event::read().map_or(Wake::Leave, Wake::Terminal),
                Err(_) => Wake::Leave,
            };
            let is_last = matches!(wake, Wake::Leave);
            if wakes.send(wake).is_err() || is_last {
                return;
            }
        }
    })
}

/// Turns HUP, TERM and INT into leaving and TSTP into suspending. After the console they end the
/// process, as they would have without it: their handlers cannot be taken back. Once this returns
/// they are in force, so call it before the terminal is taken over.
pub(super) fn spawn_signals(wakes: SyncSender<Wake>) -> Result<(), TuiError> {
    let runtime = single_runtime("signal")?;
    let kinds = [
        SignalKind::hangup(),
        SignalKind::terminate(),
        SignalKind::interrupt(),
        SignalKind::from_raw(SIGTSTP),
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
                let suspends = kind.as_raw_value() == SIGTSTP;
                let wake = if suspends { Wake::Suspend } else { Wake::Leave };
                if wakes.send(wake).is_err() && !suspends {
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
    loop {
        tokio::select! {
            count = items.recv_many(&mut batch, BATCH), if is_open => {
                is_open = count > 0;
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
                    SourceItem::Lost { reason } => Input::LinkLost(reason),
                    SourceItem::Lease(state) => Input::Lease(state),
                    SourceItem::Timeline(info) => Input::Timeline(info),
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
