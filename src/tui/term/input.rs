//! The thread that reads the terminal.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use crossterm::event::KeyCode;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use termina::event::{
    Event as ParsedEvent, KeyCode as ParsedCode, KeyEvent, KeyEventKind, Modifiers, MouseButton,
    MouseEventKind,
};

use super::reply::{Piece, Reply, Splitter};
use crate::tui::feed::Wake;
use crate::tui::gate::Gate;
use crate::tui::keys::Key;
use crate::tui::run::{TuiError, is_done, spawn};

/// How long the terminal is waited for before looking whether the loop still listens.
const POLL: Duration = Duration::from_millis(250);

/// What came from the terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::tui) enum TerminalEvent {
    /// A key.
    Key(Key),
    /// A left click at column and row.
    Click(u16, u16),
    /// The wheel; downwards is positive.
    Wheel(i32),
    /// Pasted text.
    Paste(String),
    /// An answer, and its bytes for people.
    Reply(Reply, String),
}

/// Opens the terminal anew: a flag on standard input would hold for its output too.
fn open_terminal() -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let own = rustix::termios::ttyname(io::stdin(), Vec::new())
        .and_then(|name| rustix::fs::open(name, flags, Mode::empty()));
    match own.or_else(|_| rustix::fs::open("/dev/tty", flags, Mode::empty())) {
        Ok(terminal) => Ok(terminal),
        // Neither name leads anywhere. Reading what `poll` announced does not block either.
        Err(_) => Ok(rustix::io::fcntl_dupfd_cloexec(io::stdin(), 3)?),
    }
}

/// Reads the terminal: the only thread that does.
pub(in crate::tui) fn spawn_reader(
    wakes: SyncSender<Wake>,
    done: Arc<AtomicBool>,
    gate: Arc<Gate>,
) -> Result<(), TuiError> {
    let terminal = open_terminal().map_err(|source| TuiError::Terminal {
        what: "read",
        source,
    })?;
    spawn("terminal", move || {
        let mut reader = Reader::default();
        while !is_done(&done) {
            gate.pass();
            let Ok(events) = reader.next_events(&terminal) else {
                let _ = wakes.send(Wake::Leave);
                return;
            };
            for event in events {
                if wakes.send(Wake::Terminal(event)).is_err() {
                    return;
                }
            }
        }
    })
}

#[derive(Default)]
struct Reader {
    splitter: Splitter,
    parser: termina::Parser,
}

impl Reader {
    /// Waits for what comes next; nothing if nothing came for a while.
    fn next_events(&mut self, terminal: &OwnedFd) -> io::Result<Vec<TerminalEvent>> {
        let patience = self.splitter.patience().unwrap_or(POLL);
        let patience = Timespec::try_from(patience).map_err(io::Error::other)?;
        let mut polled = [PollFd::new(terminal, PollFlags::IN)];
        match poll(&mut polled, Some(&patience)) {
            Ok(0) => {
                let rest = self.splitter.give_up();
                return Ok(rest.map_or_else(Vec::new, |piece| self.events_of(piece)));
            }
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        }
        let mut bytes = [0; 4096];
        match rustix::io::read(terminal, &mut bytes) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                let pieces = self.splitter.feed(&bytes[..count]);
                Ok(pieces
                    .into_iter()
                    .flat_map(|piece| self.events_of(piece))
                    .collect())
            }
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
    }

    fn events_of(&mut self, piece: Piece) -> Vec<TerminalEvent> {
        match piece {
            Piece::Reply(reply, bytes) => return vec![TerminalEvent::Reply(reply, bytes)],
            Piece::Escape => self.parser.parse(b"\x1b", false),
            Piece::Input(bytes) => self.parser.parse(&bytes, true),
        }
        std::iter::from_fn(|| self.parser.pop())
            .filter_map(translate)
            .collect()
    }
}

fn translate(event: ParsedEvent) -> Option<TerminalEvent> {
    match event {
        ParsedEvent::Key(key) if key.kind != KeyEventKind::Release => {
            key_of(key).map(TerminalEvent::Key)
        }
        ParsedEvent::Mouse(mouse) => match mouse.kind {
            MouseEventKind::Down(MouseButton::Left) => {
                Some(TerminalEvent::Click(mouse.column, mouse.row))
            }
            MouseEventKind::ScrollUp => Some(TerminalEvent::Wheel(-1)),
            MouseEventKind::ScrollDown => Some(TerminalEvent::Wheel(1)),
            _ => None,
        },
        ParsedEvent::Paste(text) => Some(TerminalEvent::Paste(text)),
        _ => None,
    }
}

fn key_of(key: KeyEvent) -> Option<Key> {
    let code = match key.code {
        ParsedCode::Char(character) => KeyCode::Char(character),
        ParsedCode::Enter => KeyCode::Enter,
        ParsedCode::Backspace => KeyCode::Backspace,
        ParsedCode::Tab if key.modifiers.contains(Modifiers::SHIFT) => KeyCode::BackTab,
        ParsedCode::Tab => KeyCode::Tab,
        ParsedCode::BackTab => KeyCode::BackTab,
        ParsedCode::Escape => KeyCode::Esc,
        ParsedCode::Left => KeyCode::Left,
        ParsedCode::Right => KeyCode::Right,
        ParsedCode::Up => KeyCode::Up,
        ParsedCode::Down => KeyCode::Down,
        ParsedCode::Home => KeyCode::Home,
        ParsedCode::End => KeyCode::End,
        ParsedCode::PageUp => KeyCode::PageUp,
        ParsedCode::PageDown => KeyCode::PageDown,
        ParsedCode::Insert => KeyCode::Insert,
        ParsedCode::Delete => KeyCode::Delete,
        ParsedCode::Function(number) => KeyCode::F(number),
        _ => return None,
    };
    Some(Key {
        code,
        ctrl: key.modifiers.contains(Modifiers::CONTROL),
        alt: key.modifiers.contains(Modifiers::ALT),
    })
}
