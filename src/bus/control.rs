//! Commands on their way to the session, and their answers.
//!
//! Queue of commands: bounded, overflow refuses. Every command gets exactly one final answer,
//! `Refused` or `Done`, as an event and as a reply: one that the session drops is refused.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::mpsc;

use crate::bus::EventSink;
use crate::event::{Command, CommandStatus, EventKind};

/// Commands that may wait for the session. An operator types; more is a script gone wrong.
const QUEUE_COMMANDS: usize = 64;
/// Answers of one command: received, accepted, done.
const ANSWERS: usize = 3;

/// Where commands go in. Clones share one queue.
#[derive(Clone, Debug)]
pub struct Controller {
    sink: EventSink,
    next_id: Arc<AtomicU64>,
    queue: mpsc::Sender<CommandRequest>,
}

/// Where the session takes commands out.
#[derive(Debug)]
pub struct CommandInbox {
    queue: mpsc::Receiver<CommandRequest>,
}

/// A command as the session gets it.
#[derive(Debug)]
pub struct CommandRequest {
    /// Its number, unique in the run.
    pub id: u64,
    /// What is asked.
    pub command: Command,
    /// From where: `console`, `ctl`, `signal`.
    pub origin: String,
    sink: EventSink,
    answers: mpsc::Sender<(u64, CommandStatus)>,
    answered: bool,
}

/// What becomes of a command.
#[derive(Debug)]
pub struct CommandTicket {
    pub(super) answers: mpsc::Receiver<(u64, CommandStatus)>,
}

/// Makes the queue of commands of one session; numbers begin with `first_id`, for a resumed run
/// above those in its state.
pub fn control(sink: EventSink, first_id: u64) -> (Controller, CommandInbox) {
    let (sender, receiver) = mpsc::channel(QUEUE_COMMANDS);
    let controller = Controller {
        sink,
        next_id: Arc::new(AtomicU64::new(first_id)),
        queue: sender,
    };
    (controller, CommandInbox { queue: receiver })
}

impl Controller {
    /// Asks for something. Returns at once; the ticket and the run's events tell the rest.
    pub fn submit(&self, command: Command, origin: &str) -> CommandTicket {
        let (answers, receiver) = mpsc::channel(ANSWERS);
        let checked = command.check();
        let request = CommandRequest {
            id: self.next_id.fetch_add(1, Ordering::Relaxed),
            command,
            origin: origin.to_owned(),
            sink: self.sink.clone(),
            answers,
            answered: false,
        };
        let ticket = CommandTicket { answers: receiver };
        if let Err(reason) = checked {
            request.refuse_unlogged(&reason);
            return ticket;
        }
        request.received();
        match self.queue.try_send(request) {
            Ok(()) => {}
            Err(mpsc::error::TrySendError::Full(request)) => {
                request.refuse(&format!(
                    "{QUEUE_COMMANDS} commands are waiting; try again later"
                ));
            }
            Err(mpsc::error::TrySendError::Closed(request)) => {
                request.refuse("the run takes no more commands: it is over");
            }
        }
        ticket
    }
}

impl CommandInbox {
    /// The next command; `None` once no controller is left.
    pub async fn recv(&mut self) -> Option<CommandRequest> {
        self.queue.recv().await
    }

    /// The next command if one is waiting.
    pub fn try_recv(&mut self) -> Option<CommandRequest> {
        self.queue.try_recv().ok()
    }
}

impl CommandRequest {
    fn received(&self) {
        self.sink.emit(EventKind::CommandReceived {
            id: self.id,
            request: self.command.clone(),
            origin: self.origin.clone(),
        });
        self.answer(CommandStatus::Received);
    }

    /// Says that it will be done.
    pub fn accept(&self) {
        self.sink.emit(EventKind::CommandAccepted { id: self.id });
        self.answer(CommandStatus::Accepted);
    }

    /// Says that it will not be done: why, and what to do instead.
    pub fn refuse(mut self, reason: &str) {
        self.answered = true;
        self.emit_refused(reason);
    }

    /// Says that it has been done.
    pub fn done(mut self) {
        self.answered = true;
        self.sink.emit(EventKind::CommandDone { id: self.id });
        self.answer(CommandStatus::Done);
    }

    /// A value that is no number cannot be logged; it was not taken for a command at all.
    fn refuse_unlogged(mut self, reason: &str) {
        self.answered = true;
        let reason = reason.to_owned();
        self.answer(CommandStatus::Refused { reason });
    }

    fn emit_refused(&self, reason: &str) {
        let reason = reason.to_owned();
        self.sink.emit(EventKind::CommandRefused {
            id: self.id,
            reason: reason.clone(),
        });
        self.answer(CommandStatus::Refused { reason });
    }

    fn answer(&self, status: CommandStatus) {
        // Whoever asked may have gone; there is room for every answer.
        let _ = self.answers.try_send((self.id, status));
    }
}

impl Drop for CommandRequest {
    fn drop(&mut self) {
        if !self.answered {
            self.emit_refused("the engine ended before it was done");
        }
    }
}

impl CommandTicket {
    /// The next answer and the command's number in the run; `None` after the last one, or if
    /// the connection was lost.
    pub async fn next(&mut self) -> Option<(u64, CommandStatus)> {
        self.answers.recv().await
    }

    /// The final answer, `Refused` or `Done`; `None` if the connection was lost before.
    pub async fn finished(&mut self) -> Option<(u64, CommandStatus)> {
        while let Some((id, status)) = self.next().await {
            if matches!(status, CommandStatus::Refused { .. } | CommandStatus::Done) {
                return Some((id, status));
            }
        }
        None
    }
}
