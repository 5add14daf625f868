//! The fleet as the operator reads it: rows of cells, each with a code that needs no color, rows
//! in order of who needs attention. Pure: from `RunState`, without ratatui.
//!
//! A row is a group of the running iteration, or eight desktops while an evaluation runs.

mod cell;
mod order;
mod row;
#[cfg(test)]
mod tests;

use crate::event::{EpisodeState, RunState};
use crate::tui::app::App;
use crate::types::EpisodeId;

pub use cell::{Cell, CellKind};
pub use order::{Attention, reorder, reorder_when_due};
pub use row::{FleetRow, Note, RowKey, rows, step_median_ms};

/// How rows are ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FleetSort {
    /// Who needs attention first.
    #[default]
    Attention,
    /// By number.
    Number,
}

/// What the Fleet screen shows of the rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FleetLayout {
    /// Matrix, and cards of the selected row where there is room.
    #[default]
    Matrix,
    /// Cards of all samples.
    Cards,
    /// Pictures of all samples, with hardly a word.
    Gallery,
}

/// View of the Fleet screen.
#[derive(Clone, Debug, Default)]
pub struct FleetUi {
    /// Matrix, cards or gallery.
    pub layout: FleetLayout,
    /// Order of rows.
    pub sort: FleetSort,
    /// Whether rows are desktops even where there are groups.
    pub by_desktop: bool,
    /// The selected row: number of its group or of its first desktop.
    pub row: u32,
    /// The selected sample in it.
    pub sample: usize,
    /// Whether the operator has chosen; until then the first row is selected.
    pub is_chosen: bool,
    /// Rows' numbers in the order shown; renewed every ten seconds, so that rows do not jump.
    pub order: Vec<u32>,
    /// When it was made, by the console's clock.
    pub ordered_ms: u64,
}

/// Rows in the order shown.
pub fn rows_in_order(app: &App) -> Vec<FleetRow> {
    let mut all = rows(&app.run, &app.ui.fleet, app.run_now_ms());
    let order = &app.ui.fleet.order;
    // Rows that came after the order was made stand at the end, by number.
    all.sort_by_key(|row| {
        let number = row.key.number();
        (
            order
                .iter()
                .position(|known| *known == number)
                .unwrap_or(usize::MAX),
            number,
        )
    });
    all
}

/// The selected row's place among `rows`, and the selected sample within it; both within bounds
/// if there is any row.
pub fn selected_place(app: &App, rows: &[FleetRow]) -> (usize, usize) {
    let fleet = &app.ui.fleet;
    let row = rows
        .iter()
        .position(|row| row.key.number() == fleet.row)
        .unwrap_or(0);
    let samples = rows.get(row).map_or(0, |row| row.cells.len());
    (row, fleet.sample.min(samples.saturating_sub(1)))
}

/// The episode selected in the fleet.
pub fn selected_episode(app: &App) -> Option<EpisodeId> {
    let rows = rows_in_order(app);
    let (row, sample) = selected_place(app, &rows);
    rows.get(row)?.cells.get(sample)?.episode
}

/// The episode the Rollout screen shows.
pub fn rollout_episode(app: &App) -> Option<&EpisodeState> {
    let pinned = app
        .ui
        .rollout
        .pinned
        .filter(|id| app.run.episodes.contains_key(id));
    let id = pinned.or_else(|| selected_episode(app))?;
    app.run.episodes.get(&id)
}

/// An episode's name on screen: `g07.s2` in a group, else its id.
pub fn episode_name(episode: &EpisodeState) -> String {
    match episode.group {
        Some(group) => format!("g{:02}.s{}", group.index, episode.sample),
        None => format!("e{}", episode.id),
    }
}

/// The instruction of an episode's task, if its group is known.
pub fn instruction<'a>(run: &'a RunState, episode: &EpisodeState) -> Option<&'a str> {
    let group = run.groups.get(&episode.group?)?;
    Some(group.instruction.as_str())
}
