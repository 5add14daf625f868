//! The log of a desktop's machine, read piece by piece and followed while it is open.
//!
//! What a guest wrote is hostile: lines are cleaned and bounded before they get here, and cleaned
//! again for this terminal.

use crate::tui::app::{App, Overlay};
use crate::tui::text::{clean, wrap};
use crate::tui::work::Job;
use crate::types::{LogPlace, MachineLog};

/// Most lines kept.
const LINES_MAX: usize = 5000;
/// A log that is open is asked for what is new this often, ms.
const FOLLOW_MS: u64 = 1_000;
/// An answer that has not come by then is asked for again, ms.
const PATIENCE_MS: u64 = 15_000;
/// Widest page, cells.
const WIDTH: u16 = 140;

/// A log that is shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MachineLogUi {
    /// Of which desktop.
    pub desktop: u32,
    /// What was read of it, oldest first.
    pub lines: Vec<String>,
    /// Lines up from the newest; 0 follows.
    pub up: usize,
    /// Why nothing could be read last.
    pub error: Option<String>,
    /// Whether an answer has come.
    pub was_read: bool,
    /// What was read up to.
    end: Option<LogPlace>,
    /// When it was last asked for, by the console's clock.
    asked_ms: Option<u64>,
    /// Whether the answer is still to come.
    waits: bool,
}

impl MachineLogUi {
    /// Of a desktop's machine, before anything was read.
    pub fn new(desktop: u32) -> Self {
        Self {
            desktop,
            ..Self::default()
        }
    }

    /// What was read up to.
    pub fn end(&self) -> Option<LogPlace> {
        self.end
    }

    /// Takes in a piece.
    fn take(&mut self, piece: Result<MachineLog, String>) {
        (self.waits, self.was_read) = (false, true);
        let piece = match piece {
            Ok(piece) => piece,
            Err(error) => {
                self.error = Some(error);
                return;
            }
        };
        self.error = None;
        if !piece.goes_on {
            self.lines.clear();
        }
        let before = self.lines.len();
        self.lines.extend(
            piece
                .lines
                .iter()
                .map(|line| clean(line).replace('\n', " ")),
        );
        // Who looks at older lines goes on looking at them.
        if self.up > 0 {
            self.up += self.lines.len() - before;
        }
        let too_many = self.lines.len().saturating_sub(LINES_MAX);
        self.lines.drain(..too_many);
        self.up = self.up.min(self.lines.len().saturating_sub(1));
        self.end = piece.end;
    }

    /// Scrolls by so many lines, downwards if positive, within a page of this size.
    pub fn scroll(&mut self, by: isize, size: (u16, u16)) {
        let (width, height) = page_size(size);
        self.up = self.up.saturating_add_signed(by.saturating_neg());
        // The oldest lines fill a page.
        let mut rows = 0;
        let fits = |line: &&String| {
            rows += rows_of(line, width).len();
            rows <= usize::from(height)
        };
        let fitting = self.lines.iter().take_while(fits).count().max(1);
        self.up = self.up.min(self.lines.len().saturating_sub(fitting));
    }

    /// The rows of a page of this size, and how many newer lines are below it.
    pub fn page(&self, size: (u16, u16)) -> (Vec<String>, usize) {
        let (width, height) = page_size(size);
        let last = self.lines.len().saturating_sub(self.up);
        let mut rows = Vec::new();
        for line in self.lines[..last].iter().rev() {
            let more = rows_of(line, width);
            rows.extend(more.into_iter().rev());
            if rows.len() >= usize::from(height) {
                break;
            }
        }
        rows.truncate(usize::from(height));
        rows.reverse();
        // Above the oldest line there is nothing: newer ones fill the page.
        let mut below = self.up;
        for line in &self.lines[last..] {
            let more = rows_of(line, width);
            if rows.len() + more.len() > usize::from(height) {
                break;
            }
            rows.extend(more);
            below -= 1;
        }
        (rows, below)
    }
}

/// Width and height of the page within its frame, in a terminal of this size.
pub fn page_size((columns, rows): (u16, u16)) -> (u16, u16) {
    // The frame and a blank on its left; the row of hints stays in view.
    let width = columns.min(WIDTH).saturating_sub(3);
    (width.max(1), rows.saturating_sub(3).max(1))
}

/// A line in as many rows as it takes.
fn rows_of(line: &str, width: u16) -> Vec<String> {
    let rows = wrap(line, usize::from(width));
    if rows.is_empty() {
        return vec![String::new()];
    }
    rows
}

/// What the open log lacks, if it is time to ask for it.
pub fn wanted(app: &mut App) -> Option<Job> {
    let (now_ms, follows) = (app.ui.now_ms, app.is_alive());
    let Some(Overlay::MachineLog(log)) = &mut app.ui.overlay else {
        return None;
    };
    let waited_ms = log
        .asked_ms
        .map_or(u64::MAX, |asked_ms| now_ms.saturating_sub(asked_ms));
    let is_due = match (log.asked_ms, log.waits) {
        (None, _) => true,
        (Some(_), true) => waited_ms >= PATIENCE_MS,
        (Some(_), false) => follows && waited_ms >= FOLLOW_MS,
    };
    if !is_due {
        return None;
    }
    (log.asked_ms, log.waits) = (Some(now_ms), true);
    Some(Job::MachineLog {
        desktop: log.desktop,
        after: log.end,
    })
}

/// Takes in the piece of a log that comes after a place, if that is still open and at that place:
/// one that came late was asked for twice.
pub fn take(
    app: &mut App,
    desktop: u32,
    after: Option<LogPlace>,
    piece: Result<MachineLog, String>,
) {
    let goes_on = piece.as_ref().is_ok_and(|piece| piece.goes_on);
    if let Some(Overlay::MachineLog(log)) = &mut app.ui.overlay
        && log.desktop == desktop
        && (!goes_on || log.end == after)
    {
        log.take(piece);
    }
}
