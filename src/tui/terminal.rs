//! The terminal: taken at the start, given back at the end, whatever the end is.
//!
//! Invariant: while the console is up nothing but its writer thread writes to the terminal.
//! `restore` is idempotent and is what drop, panic, signals and suspending have in common. A
//! console that is killed does not get to it; the guard does it then.

use std::io;
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Condvar, Mutex, MutexGuard, Once, PoisonError};
use std::thread;
use std::time::Duration;

use crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use rustix::process::{Signal, getpid, getsid, kill_current_process_group};
use rustix::termios::tcgetwinsize;

use crate::tui::app::App;
use crate::tui::draw::Drawn;
use crate::tui::feed::Wake;
use crate::tui::guard;
use crate::tui::term::{
    ENTER, MOUSE_OFF, MOUSE_ON, Painter, Writer, restore_bytes, write_directly,
};

/// Set while the terminal is ours.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// How often the process was continued. A mutex and a condition: the signal's thread tells, the
/// loop waits.
static CONTINUED: (Mutex<u64>, Condvar) = (Mutex::new(0), Condvar::new());
/// A stop takes effect within this; that of a thread may be a little late.
const STOP_LIMIT: Duration = Duration::from_secs(2);

/// A shell may still own the terminal for a moment after it continued us.
const TAKE_TRIES: u32 = 10;

/// Room of a terminal that does not tell it.
const USUAL_CELLS: (u16, u16) = (80, 24);

/// Size of the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Room {
    /// Columns and rows.
    pub(super) cells: (u16, u16),
    /// Pixels of a cell, width and height, if the terminal told the system.
    pub(super) cell_px: Option<(u16, u16)>,
}

/// Asks the system how large the terminal is.
pub(super) fn room() -> Room {
    let Ok(size) = tcgetwinsize(io::stdout()) else {
        return Room {
            cells: USUAL_CELLS,
            cell_px: None,
        };
    };
    let cells = match (size.ws_col, size.ws_row) {
        (0, _) | (_, 0) => USUAL_CELLS,
        cells => cells,
    };
    let has_px = size.ws_xpixel > 0 && size.ws_ypixel > 0;
    Room {
        cells,
        cell_px: has_px.then(|| (size.ws_xpixel / cells.0, size.ws_ypixel / cells.1)),
    }
}

/// The terminal while it is ours; dropping it gives it back.
pub(super) struct ConsoleTerminal {
    painter: Painter,
    writer: Writer,
    mouse: bool,
}

impl ConsoleTerminal {
    /// Takes the terminal: raw mode, alternate screen, pastes as one. `wakes` hears what becomes
    /// of frames.
    pub(super) fn take(wakes: SyncSender<Wake>) -> io::Result<Self> {
        install_panic_hook();
        let stdout = rustix::io::fcntl_dupfd_cloexec(io::stdout(), 3)?;
        // A loop whose inbox is full comes by the writer's state anyway.
        let writer = Writer::spawn(stdout, move |written| {
            let _ = wakes.try_send(Wake::Written(written));
        })?;
        guard::start();
        enter()?;
        writer.resume();
        let (columns, rows) = room().cells;
        Ok(Self {
            painter: Painter::new(columns, rows),
            writer,
            mouse: false,
        })
    }

    /// What draws.
    pub(super) fn painter(&mut self) -> &mut Painter {
        &mut self.painter
    }

    /// Draws into memory; `send` writes it.
    pub(super) fn draw(&mut self, app: &App) -> Drawn {
        let (columns, rows) = app.ui.size;
        self.painter.set_size(columns, rows);
        self.painter.paint(app)
    }

    /// Whether a frame is still being written.
    pub(super) fn is_busy(&self) -> bool {
        self.writer.is_busy()
    }

    /// Hands a frame to the writer; only when none is being written.
    pub(super) fn send(&mut self, frame: Vec<u8>) {
        self.writer.send(frame);
    }

    /// Listens to the mouse, or not, from the next frame on. Clicks and wheel only.
    pub(super) fn set_mouse(&mut self, listens: bool) {
        self.mouse = listens;
        self.painter
            .command(if listens { MOUSE_ON } else { MOUSE_OFF });
    }

    /// Goes back to the shell and returns when it continues us. `false` if there is none.
    pub(super) fn suspend(&mut self) -> io::Result<bool> {
        if getsid(None).is_ok_and(|session| session == getpid()) {
            return Ok(false);
        }
        self.lend(|| {
            let before = *lock_continued();
            kill_current_process_group(Signal::STOP)?;
            wait_until_continued(before);
            Ok(true)
        })?
    }

    /// Lends the terminal to whoever `work` leaves it to and takes it back when that ends. The
    /// terminal keeps no picture meanwhile.
    pub(super) fn lend<T>(&mut self, work: impl FnOnce() -> T) -> io::Result<T> {
        restore();
        let result = work();
        let mut tries = 0;
        while let Err(error) = enter() {
            tries += 1;
            if tries == TAKE_TRIES {
                return Err(error);
            }
            thread::yield_now();
        }
        self.writer.resume();
        if self.mouse {
            self.set_mouse(true);
        }
        self.painter.repaint();
        Ok(result)
    }
}

impl Drop for ConsoleTerminal {
    fn drop(&mut self) {
        restore();
    }
}

fn lock_continued() -> MutexGuard<'static, u64> {
    CONTINUED.0.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The process goes on after a stop.
pub(super) fn note_continued() {
    *lock_continued() += 1;
    CONTINUED.1.notify_all();
}

/// Waits for the end of a stop. The signal stops one thread after the other: without waiting,
/// this one would take the terminal back before the shell has it.
fn wait_until_continued(before: u64) {
    let count = lock_continued();
    drop(
        CONTINUED
            .1
            .wait_timeout_while(count, STOP_LIMIT, |count| *count == before),
    );
}

fn enter() -> io::Result<()> {
    enable_raw_mode()?;
    TAKEN.store(true, Ordering::SeqCst);
    guard::note(true);
    write_directly(ENTER);
    Ok(())
}

/// Gives the terminal back if it is ours. What fails here fails because the terminal is gone.
pub(super) fn restore() {
    if !TAKEN.swap(false, Ordering::SeqCst) {
        return;
    }
    write_directly(&restore_bytes());
    let _ = disable_raw_mode();
    guard::note(false);
}

/// Before a panic of the console's thread is printed, the terminal is given back. Panics of
/// other threads go to the developer's log: printed, they would spoil the screen.
fn install_panic_hook() {
    static INSTALLED: Once = Once::new();
    let console = thread::current().id();
    INSTALLED.call_once(|| {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if TAKEN.load(Ordering::SeqCst) && thread::current().id() != console {
                tracing::error!("{info}");
                return;
            }
            restore();
            previous(info);
        }));
    });
}
