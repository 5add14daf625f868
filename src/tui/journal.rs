//! Commands of this console from sent to done, as the engine's answers tell it.

use crate::event::{Command, CommandStatus};
use crate::tui::app::{App, SentCommand, SentStatus};

/// How long a final answer stays in view.
const SHOWN_MS: u64 = 8_000;

/// Notes that a command is sent; returns the number that its answers will name.
pub fn note_sent(app: &mut App, request: Command) -> u64 {
    let ticket = app.ui.next_ticket;
    app.ui.next_ticket += 1;
    app.ui.sent.push(SentCommand {
        ticket,
        request,
        at_ms: app.ui.now_ms,
        id: None,
        status: SentStatus::Sent,
        answered_ms: None,
    });
    ticket
}

/// Notes an answer; `None` says that none will come any more.
pub fn note_answer(app: &mut App, ticket: u64, answer: Option<(u64, CommandStatus)>) {
    let now_ms = app.ui.now_ms;
    let Some(sent) = app.ui.sent.iter_mut().find(|sent| sent.ticket == ticket) else {
        return;
    };
    match answer {
        Some((id, status)) => {
            sent.id = Some(id);
            advance(sent, &status, now_ms);
        }
        None if is_final(&sent.status) => {}
        None => {
            sent.status = SentStatus::Unanswered;
            sent.answered_ms = Some(now_ms);
        }
    }
}

/// Brings the notes up to what the run's events say; after a reconnection only they know.
pub fn reconcile(app: &mut App) {
    let now_ms = app.ui.now_ms;
    for sent in &mut app.ui.sent {
        let known = app
            .run
            .commands
            .iter()
            .find(|command| Some(command.id) == sent.id);
        if let Some(command) = known {
            advance(sent, &command.status, now_ms);
        }
    }
}

/// Takes a status over unless it is older than what is known: answers and events come by
/// different ways.
fn advance(sent: &mut SentCommand, status: &CommandStatus, now_ms: u64) {
    let status = match status {
        CommandStatus::Received => SentStatus::Received,
        CommandStatus::Accepted => SentStatus::Accepted,
        CommandStatus::Refused { reason } => SentStatus::Refused(reason.clone()),
        CommandStatus::Done => SentStatus::Done,
    };
    if rank(&status) > rank(&sent.status) {
        sent.status = status;
        sent.answered_ms = Some(now_ms);
    }
}

fn rank(status: &SentStatus) -> u8 {
    match status {
        SentStatus::Sent => 0,
        SentStatus::Unanswered => 1,
        SentStatus::Received => 2,
        SentStatus::Accepted => 3,
        SentStatus::Refused(_) | SentStatus::Done => 4,
    }
}

fn is_final(status: &SentStatus) -> bool {
    rank(status) == 4
}

/// Drops notes whose last answer has been seen long enough; says whether any was.
pub fn forget_answered(app: &mut App) -> bool {
    let now_ms = app.ui.now_ms;
    let before = app.ui.sent.len();
    app.ui.sent.retain(|sent| {
        let is_over = is_final(&sent.status) || sent.status == SentStatus::Unanswered;
        !is_over || now_ms < sent.answered_ms.unwrap_or(now_ms) + SHOWN_MS
    });
    app.ui.sent.len() != before
}
