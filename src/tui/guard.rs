//! A process beside the console that mends the terminal when the console was killed and could not.
//!
//! It reads a pipe on which the console tells when it takes the terminal and when it gives it
//! back. The pipe ends with the console, however that ends; if the terminal was not given back by
//! then, the guard does it.

use std::io::{self, PipeWriter, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use rustix::termios::{InputModes, LocalModes, OptionalActions, OutputModes, tcgetattr, tcsetattr};

use crate::tui::term::restore_bytes;

/// The hidden command that runs the guard.
const GUARD_COMMAND: &str = "guard-terminal";

const TAKEN: u8 = b'1';
const GIVEN_BACK: u8 = b'0';

/// The guard; nothing before it was started, or where it could not be.
static GUARD: Mutex<Option<Guard>> = Mutex::new(None);

struct Guard {
    process: Child,
    pipe: PipeWriter,
}

/// Starts the guard. Where that fails the console does without, and says so in the log.
pub(super) fn start() {
    let mut guard = GUARD.lock().unwrap_or_else(PoisonError::into_inner);
    match spawn() {
        Ok(started) => *guard = Some(started),
        Err(error) => tracing::warn!("no guard of the terminal: {error}"),
    }
}

fn spawn() -> io::Result<Guard> {
    let (reader, pipe) = io::pipe()?;
    let process = Command::new(std::env::current_exe()?)
        .arg(GUARD_COMMAND)
        .stdin(reader)
        .stdout(Stdio::inherit())
        .stderr(Stdio::null())
        .spawn()?;
    Ok(Guard { process, pipe })
}

/// Tells the guard whether the terminal is the console's.
pub(super) fn note(is_taken: bool) {
    let mut guard = GUARD.lock().unwrap_or_else(PoisonError::into_inner);
    let state = if is_taken { TAKEN } else { GIVEN_BACK };
    if let Some(known) = guard.as_mut()
        && known.pipe.write_all(&[state]).is_err()
    {
        // It is gone, and guards nothing any more; the console goes on.
        let _ = known.process.wait();
        *guard = None;
    }
}

/// What the guard does: waits for the console's end on stdin, and mends the terminal on stdout if
/// the console still had it.
pub fn stand_guard() -> io::Result<()> {
    let mut state = GIVEN_BACK;
    let mut heard = [0; 64];
    loop {
        match io::stdin().read(&mut heard) {
            Ok(0) => break,
            Ok(count) => state = heard[count - 1],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    if state == TAKEN { mend() } else { Ok(()) }
}

/// Undoes the console's modes, and makes lines of what is typed again.
fn mend() -> io::Result<()> {
    let mut stdout = io::stdout();
    stdout.write_all(&restore_bytes())?;
    stdout.flush()?;
    // A shell that has its terminal back already sets the line's modes itself, and does not let
    // a process in the background do so.
    if let Ok(mut modes) = tcgetattr(&stdout) {
        modes.input_modes |= InputModes::BRKINT | InputModes::ICRNL | InputModes::IXON;
        modes.output_modes |= OutputModes::OPOST | OutputModes::ONLCR;
        modes.local_modes |=
            LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG | LocalModes::IEXTEN;
        let _ = tcsetattr(&stdout, OptionalActions::Now, &modes);
    }
    Ok(())
}
