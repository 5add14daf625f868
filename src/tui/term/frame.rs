//! A frame: the text that changed, shown at once, then pictures, then the question whose answer
//! tells that all of it has arrived.

use std::convert::Infallible;

use ratatui::Terminal;
use ratatui::layout::{Rect, Size};

use super::backend::LeanBackend;
use crate::tui::app::App;
use crate::tui::draw::{Drawn, draw};

/// Begins and ends an update that the terminal shows as a whole.
const SYNC: (&[u8], &[u8]) = (b"\x1b[?2026h", b"\x1b[?2026l");
/// Text shorter than this arrives in one piece anyway.
const TORN_BYTES: usize = 48;
/// Asks for a sign of life.
pub(in crate::tui) const ASK: &[u8] = b"\x1b[5n";

/// Draws the console into bytes.
pub struct Painter {
    terminal: Terminal<LeanBackend>,
    /// Commands that go in front of the next text.
    commands: Vec<u8>,
    /// Whether updates are bracketed; a terminal that does not know the mode ignores it.
    is_synchronized: bool,
}

/// What cannot fail.
fn sure<T>(result: Result<T, Infallible>) -> T {
    match result {
        Ok(value) => value,
        Err(never) => match never {},
    }
}

impl Painter {
    /// For a terminal of this size whose screen is empty.
    pub fn new(columns: u16, rows: u16) -> Self {
        let backend = LeanBackend::new(Size::new(columns, rows));
        Self {
            terminal: sure(Terminal::new(backend)),
            commands: Vec::new(),
            is_synchronized: true,
        }
    }

    /// The terminal has this size now; the next drawing is a whole one.
    pub fn set_size(&mut self, columns: u16, rows: u16) {
        self.terminal
            .backend_mut()
            .set_size(Size::new(columns, rows));
    }

    /// Whether to bracket updates.
    pub fn set_synchronized(&mut self, is_synchronized: bool) {
        self.is_synchronized = is_synchronized;
    }

    /// Forgets what the terminal shows, so that the next drawing writes every cell.
    pub fn repaint(&mut self) {
        self.terminal.backend_mut().forget();
        sure(self.terminal.clear());
    }

    /// Puts a command in front of the next text.
    pub fn command(&mut self, bytes: &[u8]) {
        self.commands.extend_from_slice(bytes);
    }

    /// Blanks cells that a picture covers, whatever text was thought to be there; cursor and pen
    /// stay as they are.
    pub fn erase(&mut self, area: Rect) {
        self.commands.extend_from_slice(b"\x1b7\x1b[m");
        for y in area.top()..area.bottom() {
            let row = format!("\x1b[{};{}H\x1b[{}X", y + 1, area.x + 1, area.width);
            self.commands.extend_from_slice(row.as_bytes());
        }
        self.commands.extend_from_slice(b"\x1b8");
    }

    /// Draws; the bytes wait for `frame`.
    pub fn paint(&mut self, app: &App) -> Drawn {
        let mut drawn = Drawn::default();
        sure(self.terminal.draw(|frame| drawn = draw(app, frame)));
        drawn
    }

    /// All that is to be written, pictures after the text, without the question at its end.
    pub fn frame(&mut self, pictures: &[u8]) -> Vec<u8> {
        let text = self.terminal.backend_mut().take();
        let mut frame = std::mem::take(&mut self.commands);
        if self.is_synchronized && text.len() > TORN_BYTES {
            frame.extend_from_slice(SYNC.0);
            frame.extend_from_slice(&text);
            frame.extend_from_slice(SYNC.1);
        } else {
            frame.extend_from_slice(&text);
        }
        if !pictures.is_empty() {
            frame.extend_from_slice(pictures);
            // Terminals differ in where a picture leaves the cursor.
            self.terminal.backend_mut().forget();
        }
        frame
    }
}
