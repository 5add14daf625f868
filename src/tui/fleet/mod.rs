//! The fleet as the operator reads it: rows of cells, each with a code that needs no color, rows
//! in order of who needs attention. Pure: from `RunState`, without ratatui.
//!
//! A row is a group of the running iteration, or eight desktops while an evaluation runs.

mod cell;
mod order;
mod row;
#[cfg(test)]
mod tests;

use crate::event::{EpisodeState, MachineView, RunState};
use crate::tui::app::App;
use crate::types::{EpisodeId, ImageHash};

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

/// The desktop of a sample: the one its episode runs or ran on, or the one that its row shows.
pub fn desktop_of(run: &RunState, row: &FleetRow, sample: usize) -> Option<u32> {
    match row.key {
        RowKey::Desktops(first) => Some(first + sample as u32),
        RowKey::Group(_) => {
            let episode = row.cells.get(sample)?.episode?;
            Some(run.episodes.get(&episode)?.desktop)
        }
    }
}

/// The machine of a sample's desktop, while its episode runs there; of a desktop's own row always.
pub fn machine_of<'a>(
    run: &'a RunState,
    row: &FleetRow,
    sample: usize,
) -> Option<(u32, &'a MachineView)> {
    let number = desktop_of(run, row, sample)?;
    let desktop = run.desktops.get(number as usize)?;
    let episode = row.cells.get(sample)?.episode;
    let is_there = match row.key {
        RowKey::Desktops(_) => true,
        RowKey::Group(_) => {
            let episode = episode.and_then(|id| run.episodes.get(&id));
            episode.is_some_and(|one| one.is_running() && desktop.episode == Some(one.id))
        }
    };
    let machine = desktop.machine.as_ref().filter(|_| is_there)?;
    Some((number, machine))
}

/// The desktop selected in the fleet, whether or not an episode runs on it.
pub fn selected_desktop(app: &App) -> Option<u32> {
    let rows = rows_in_order(app);
    let (row, sample) = selected_place(app, &rows);
    desktop_of(&app.run, rows.get(row)?, sample)
}

/// The newest picture of an episode's screen, and the one before. One taken past the desktop's
/// server is newer than what the server gave.
pub fn newest_pictures<'a>(
    run: &'a RunState,
    episode: &'a EpisodeState,
) -> (Option<&'a ImageHash>, Option<&'a ImageHash>) {
    let desktop = run.desktops.get(episode.desktop as usize);
    let outside = desktop.filter(|desktop| {
        let machine = desktop.machine.as_ref();
        let is_outside = machine.is_some_and(|machine| machine.seen_from_outside);
        is_outside && episode.is_running() && desktop.episode == Some(episode.id)
    });
    let outside = outside.and_then(|desktop| desktop.image.as_ref());
    let images = episode
        .steps
        .iter()
        .rev()
        .filter_map(|step| step.image.as_ref());
    let mut newest = outside
        .into_iter()
        .chain(&episode.final_image)
        .chain(images);
    (newest.next(), newest.next())
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
