//! The terminal: taken at the start, given back at the end, whatever the end is.
//!
//! Invariant: while the console is up nothing but its draws writes to the terminal. `restore` is
//! idempotent and is what drop, panic, signals and suspending have in common.

use std::io::{self, BufWriter, Stdout, Write};
use std::panic;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crossterm::cursor::{Hide, Show};
use crossterm::event::{
    DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture,
};
use crossterm::terminal::{
    BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate, EnterAlternateScreen,
    LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use crossterm::{execute, queue};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use rustix::process::{Signal, getpid, getsid, kill_current_process_group};

use crate::tui::app::App;
use crate::tui::draw::{Drawn, draw};

/// Set while the terminal is ours.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// A shell may still own the terminal for a moment after it continued us.
const TAKE_TRIES: u32 = 10;

type Backend = CrosstermBackend<BufWriter<Stdout>>;

/// The terminal while it is ours; dropping it gives it back.
pub(super) struct ConsoleTerminal {
    terminal: Terminal<Backend>,
    mouse: bool,
}

impl ConsoleTerminal {
    /// Takes the terminal: raw mode, alternate screen, pastes as one.
    pub(super) fn take() -> io::Result<Self> {
        // Colors are the theme's business. Left to itself crossterm answers NO_COLOR by resets
        // that also clear the reverse video of the selection.
        crossterm::style::force_color_output(true);
        install_panic_hook();
        enter()?;
        let backend = CrosstermBackend::new(BufWriter::with_capacity(1 << 16, io::stdout()));
        let terminal = Terminal::new(backend);
        if terminal.is_err() {
            restore();
        }
        Ok(Self {
            terminal: terminal?,
            mouse: false,
        })
    }

    /// Draws; the terminal shows all of it or none.
    pub(super) fn draw(&mut self, app: &App) -> io::Result<Drawn> {
        let mut drawn = Drawn::default();
        queue!(self.terminal.backend_mut(), BeginSynchronizedUpdate)?;
        self.terminal.draw(|frame| drawn = draw(app, frame))?;
        execute!(self.terminal.backend_mut(), EndSynchronizedUpdate)?;
        Ok(drawn)
    }

    /// Forgets what the terminal shows, so that the next draw writes every cell.
    pub(super) fn repaint(&mut self) -> io::Result<()> {
        // Not `Terminal::clear`: it asks the terminal where its cursor is, and waits for the answer.
        execute!(self.terminal.backend_mut(), Clear(ClearType::All))?;
        self.terminal.swap_buffers();
        Ok(())
    }

    /// Writes an escape sequence that moves nothing on the screen.
    pub(super) fn send(&mut self, sequence: &str) -> io::Result<()> {
        let out = self.terminal.backend_mut();
        out.write_all(sequence.as_bytes())?;
        Write::flush(out)
    }

    /// Lends the terminal to another program and takes it back when `work` ends.
    pub(super) fn lend<T>(&mut self, work: impl FnOnce() -> T) -> io::Result<T> {
        restore();
        let result = work();
        enter()?;
        if self.mouse {
            self.set_mouse(true)?;
        }
        self.repaint()?;
        Ok(result)
    }

    /// Listens to the mouse, or not. Clicks and wheel only; moves are not asked for in vain, as
    /// terminals send them anyway, but ignored.
    pub(super) fn set_mouse(&mut self, listens: bool) -> io::Result<()> {
        self.mouse = listens;
        if listens {
            execute!(self.terminal.backend_mut(), EnableMouseCapture)
        } else {
            execute!(self.terminal.backend_mut(), DisableMouseCapture)
        }
    }

    /// Goes back to the shell and returns when it continues us. `false` if there is none.
    pub(super) fn suspend(&mut self) -> io::Result<bool> {
        if getsid(None).is_ok_and(|session| session == getpid()) {
            return Ok(false);
        }
        restore();
        kill_current_process_group(Signal::STOP)?;
        let mut tries = 0;
        while let Err(error) = enter() {
            tries += 1;
            if tries == TAKE_TRIES {
                return Err(error);
            }
            thread::yield_now();
        }
        if self.mouse {
            self.set_mouse(true)?;
        }
        self.repaint()?;
        Ok(true)
    }
}

impl Drop for ConsoleTerminal {
    fn drop(&mut self) {
        restore();
    }
}

fn enter() -> io::Result<()> {
    enable_raw_mode()?;
    TAKEN.store(true, Ordering::SeqCst);
    let entered = execute!(
        io::stdout(),
        EnterAlternateScreen,
        EnableBracketedPaste,
        Hide
    );
    if entered.is_err() {
        restore();
    }
    entered
}

/// Gives the terminal back if it is ours. What fails here fails because the terminal is gone.
pub(super) fn restore() {
    if !TAKEN.swap(false, Ordering::SeqCst) {
        return;
    }
    let mut stdout = io::stdout();
    let _ = execute!(
        stdout,
        EndSynchronizedUpdate,
        DisableMouseCapture,
        DisableBracketedPaste,
        LeaveAlternateScreen,
        Show
    );
    let _ = stdout.flush();
    let _ = disable_raw_mode();
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
