//! The thread that writes to the terminal. Writing may block for as long as the terminal does
//! not read; nothing else of the console waits for it.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::termios::{QueueSelector, tcflush};

/// Bytes a call: between them the thread looks whether it shall stop.
const PIECE: usize = 4096;
/// How long a restore waits for what is being written.
const PATIENCE: Duration = Duration::from_millis(700);

/// What the thread and those who stop it share. A mutex and a condition, as one waits for the
/// other to become idle.
#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    is_busy: bool,
    is_stopped: bool,
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_idle(&self) {
        self.lock().is_busy = false;
        self.changed.notify_all();
    }
}

/// The writer of this process, for whoever must restore the terminal.
static CURRENT: Mutex<Option<Arc<Shared>>> = Mutex::new(None);

/// Handle of the thread, which ends when it is dropped.
pub(in crate::tui) struct Writer {
    frames: SyncSender<Vec<u8>>,
    shared: Arc<Shared>,
}

impl Writer {
    /// Starts the thread. `told` hears after each frame whether it was written.
    pub(in crate::tui) fn spawn(
        terminal: OwnedFd,
        told: impl Fn(io::Result<()>) + Send + 'static,
    ) -> io::Result<Self> {
        let (frames, inbox) = sync_channel::<Vec<u8>>(1);
        let shared = Arc::new(Shared::default());
        let mine = Arc::clone(&shared);
        thread::Builder::new()
            .name("console-writer".to_owned())
            .spawn(move || {
                while let Ok(frame) = inbox.recv() {
                    let written = write_pieces(&terminal, &frame, || mine.lock().is_stopped);
                    mine.set_idle();
                    told(written);
                }
            })?;
        *CURRENT.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&shared));
        Ok(Self { frames, shared })
    }

    /// Whether a frame is being written.
    pub(in crate::tui) fn is_busy(&self) -> bool {
        self.shared.lock().is_busy
    }

    /// Hands over a frame; only when none is being written.
    pub(in crate::tui) fn send(&self, frame: Vec<u8>) {
        self.shared.lock().is_busy = true;
        if self.frames.try_send(frame).is_err() {
            self.shared.set_idle();
        }
    }

    /// Writes again after `write_directly` stopped it.
    pub(in crate::tui) fn resume(&self) {
        self.shared.lock().is_stopped = false;
    }
}

/// Stops the writer at the end of its frame, or in it if the terminal does not read, and writes
/// in its place: for leaving, suspending and panics.
pub(in crate::tui) fn write_directly(bytes: &[u8]) {
    let stdout = io::stdout();
    let current = CURRENT
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone();
    if let Some(shared) = current {
        let is_idle = wait_until_idle(&shared);
        shared.lock().is_stopped = true;
        if !is_idle {
            // What waits in a terminal that does not read is given up, which lets the writer go.
            let _ = tcflush(stdout.as_fd(), QueueSelector::OFlush);
            wait_until_idle(&shared);
        }
    }
    let _ = write_pieces(stdout.as_fd(), bytes, || false);
}

fn wait_until_idle(shared: &Shared) -> bool {
    let state = shared.lock();
    let waited = shared
        .changed
        .wait_timeout_while(state, PATIENCE, |state| state.is_busy);
    let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
    !state.is_busy
}

fn write_pieces(
    terminal: impl AsFd,
    bytes: &[u8],
    is_stopped: impl Fn() -> bool,
) -> io::Result<()> {
    let terminal = terminal.as_fd();
    for piece in bytes.chunks(PIECE) {
        let mut left = piece;
        while !left.is_empty() {
            if is_stopped() {
                return Ok(());
            }
            match rustix::io::write(terminal, left) {
                Ok(count) => left = &left[count..],
                Err(rustix::io::Errno::INTR) => {}
                // Someone who shares the terminal made it non-blocking.
                Err(rustix::io::Errno::AGAIN) => {
                    poll(
                        &mut [PollFd::from_borrowed_fd(terminal, PollFlags::OUT)],
                        None,
                    )?;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(())
}
