//! Who needs attention first.

use crate::tui::app::App;
use crate::tui::machines::Standing;

use super::FleetSort;
use super::cell::{Cell, CellKind};
use super::row::{FleetRow, Note, rows};

/// An order stays so long, so that rows do not jump under the cursor.
const STABLE_MS: u64 = 10_000;

/// How much a row needs a look, most first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Attention {
    /// A sample waits for a decision.
    Held,
    /// A machine was given up, or should be up by now.
    Machine,
    /// So far all failed: the group is about to teach nothing.
    Failing,
    /// Errors ended samples.
    Fault,
    /// A sample does not move.
    Stuck,
    /// At work; the slowest hold up the rest.
    AtWork,
    /// Done, and without signal.
    Dead,
    /// Done.
    Done,
    /// Not begun.
    Waiting,
}

impl Attention {
    pub(super) fn of(note: &Note, cells: &[Cell]) -> Self {
        match note {
            Note::Held(_) => Attention::Held,
            Note::Failing => Attention::Failing,
            Note::Faults(_) if cells.iter().any(Cell::is_at_work) => Attention::Fault,
            Note::Stuck(_) => Attention::Stuck,
            Note::Machines(note) => match note.standing {
                Standing::Fault | Standing::Overdue => Attention::Machine,
                Standing::Suspect => Attention::Stuck,
                Standing::Busy | Standing::Quiet => Attention::AtWork,
            },
            Note::AllFail => Attention::Dead,
            Note::Signal | Note::Replayed(_) | Note::AllPass | Note::Faults(_) => Attention::Done,
            Note::Running if cells.iter().all(|cell| cell.kind == CellKind::Waiting) => {
                Attention::Waiting
            }
            Note::Running => Attention::AtWork,
        }
    }
}

/// Makes a new order now.
pub fn reorder(app: &mut App) {
    let mut all = rows(&app.run, &app.ui.fleet, app.run_now_ms());
    match app.ui.fleet.sort {
        FleetSort::Attention => {
            all.sort_by_key(|row| (row.attention, slowness(row), row.key.number()));
        }
        FleetSort::Number => all.sort_by_key(|row| row.key.number()),
    }
    app.ui.fleet.order = all.iter().map(|row| row.key.number()).collect();
    app.ui.fleet.ordered_ms = app.ui.now_ms;
    if let (false, Some(first)) = (app.ui.fleet.is_chosen, app.ui.fleet.order.first()) {
        app.ui.fleet.row = *first;
    }
}

/// Makes a new order if the last one is old.
pub fn reorder_when_due(app: &mut App) -> bool {
    let due = app.ui.now_ms.saturating_sub(app.ui.fleet.ordered_ms) >= STABLE_MS;
    if due {
        reorder(app);
    }
    due
}

/// Steps of the sample furthest behind, so that the slowest come first.
fn slowness(row: &FleetRow) -> u32 {
    let step = |cell: &Cell| match cell.kind {
        CellKind::Booting | CellKind::Overdue => Some(0),
        CellKind::Running(step)
        | CellKind::Paused(step)
        | CellKind::Held(step)
        | CellKind::Stuck(step) => Some(step),
        _ => None,
    };
    row.cells.iter().filter_map(step).min().unwrap_or(u32::MAX)
}
