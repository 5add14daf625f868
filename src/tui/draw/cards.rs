//! Cards: one sample each, its newest screenshot, what it does and thinks.

use ratatui::layout::Rect;

use crate::event::{EpisodeState, MachineView};
use crate::tui::app::App;
use crate::tui::fleet::{
    Cell, FleetLayout, FleetRow, RowKey, machine_of, newest_pictures, rows_in_order, selected_place,
};
use crate::tui::text::one_line;
use crate::tui::theme::Role;
use crate::tui::update::Target;
use crate::tui::{figures, wording};
use crate::types::{ImageHash, MachinePhase};

use super::Sketch;
use super::fleet::cell_role;
use super::machine;
use super::sketch::FrameTitle;

/// Least width of a card: a thumbnail in it still shows where windows are.
const MIN_WIDTH: u16 = 22;
/// Least width of a picture in the gallery.
const GALLERY_WIDTH: u16 = 14;
/// Rows of frame and of the least picture.
const MIN_HEIGHT: u16 = 6;
/// Rows and columns of the frame.
const FRAME: u16 = 2;

/// How cards fill a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Grid {
    pub(super) across: u16,
    pub(super) down: u16,
    pub(super) width: u16,
    pub(super) height: u16,
    /// Lines of text below the picture.
    pub(super) text: u16,
}

/// The grid that shows `count` cards with the largest pictures, or if they do not fit, as many
/// cards of the least width as do. Pictures are 4:3, so 8 cells across want 3 down.
pub(super) fn grid(width: u16, height: u16, count: usize) -> Grid {
    let count = (count.max(1) as u16).min(1024);
    let most_across = (width / MIN_WIDTH).max(1);
    let candidates = (1..=most_across.min(count)).filter_map(|across| {
        let down = count.div_ceil(across);
        let card = Grid {
            across,
            down,
            width: width / across,
            height: (height / down.max(1)).max(1),
            text: 0,
        };
        (card.height >= MIN_HEIGHT).then_some(card)
    });
    let picture = |card: &Grid| {
        let rows = card.height.saturating_sub(FRAME + 1);
        let columns = card.width.saturating_sub(FRAME);
        u32::from(columns.min(rows * 8 / 3)) * u32::from(rows.min(columns * 3 / 8))
    };
    let all_shown = candidates.max_by_key(|card| (picture(card), card.across));
    let card = all_shown.unwrap_or_else(|| {
        let wanted = (width / most_across) * 3 / 8 + FRAME + 2;
        let height_each = wanted.clamp(MIN_HEIGHT, height.max(MIN_HEIGHT));
        let down = (height / height_each).max(1);
        Grid {
            across: most_across,
            down,
            width: width / most_across,
            height: height / down,
            text: 0,
        }
    });
    let spare = card
        .height
        .saturating_sub(FRAME + (card.width.saturating_sub(FRAME)) * 3 / 8);
    let text = match card.height {
        0..6 => 0,
        6..12 => 1,
        _ => spare.clamp(2, 4),
    };
    // A card is no higher than its picture and text need.
    let height = card.height.min((card.width * 3).div_ceil(8) + FRAME + text);
    Grid {
        height,
        text,
        ..card
    }
}

/// The grid of pictures without words: as large as they can be with all of them on one page, or
/// of the least width and on several pages.
pub(super) fn gallery(width: u16, height: u16, count: usize) -> Grid {
    let count = (count.max(1) as u16).min(4096);
    let most = (width / GALLERY_WIDTH).max(1);
    let tile = |across: u16| {
        let width = width / across;
        let height = (width.saturating_sub(FRAME) * 3).div_ceil(8) + FRAME;
        (width, height.max(3))
    };
    let fits = |across: &u16| count.div_ceil(*across) * tile(*across).1 <= height;
    let across = (1..=most).find(fits).unwrap_or(most);
    let (width, tile_height) = tile(across);
    Grid {
        across,
        down: (height / tile_height).max(1),
        width,
        height: tile_height.min(height.max(1)),
        text: 0,
    }
}

/// Cards beside each other on the page of cards, or of pictures.
pub fn fleet_cards_across(app: &App) -> u16 {
    let (columns, rows) = app.ui.size;
    let count = rows_in_order(app).iter().map(|row| row.cells.len()).sum();
    layout(app, columns, rows.saturating_sub(4), count).across
}

fn layout(app: &App, width: u16, height: u16, count: usize) -> Grid {
    match app.ui.fleet.layout {
        FleetLayout::Gallery => gallery(width, height, count),
        FleetLayout::Matrix | FleetLayout::Cards => grid(width, height, count),
    }
}

/// Cards of all samples, the page with the selected one.
pub(super) fn draw_all(sketch: &mut Sketch<'_>, area: Rect, rows: &[FleetRow]) {
    let cards: Vec<(&FleetRow, usize)> = rows
        .iter()
        .flat_map(|row| (0..row.cells.len()).map(move |place| (row, place)))
        .collect();
    let (row, sample) = selected_place(sketch.app, rows);
    let selected: usize = rows[..row].iter().map(|row| row.cells.len()).sum::<usize>() + sample;
    let grid = layout(sketch.app, area.width, area.height, cards.len());
    draw_grid(sketch, area, &cards, Some(selected), grid);
}

/// Cards of one row.
pub(super) fn draw_row(sketch: &mut Sketch<'_>, area: Rect, row: &FleetRow) {
    let cards: Vec<(&FleetRow, usize)> = (0..row.cells.len()).map(|place| (row, place)).collect();
    let selected = sketch
        .app
        .ui
        .fleet
        .sample
        .min(cards.len().saturating_sub(1));
    let grid = grid(area.width, area.height, cards.len());
    draw_grid(sketch, area, &cards, Some(selected), grid);
}

fn draw_grid(
    sketch: &mut Sketch<'_>,
    area: Rect,
    cards: &[(&FleetRow, usize)],
    selected: Option<usize>,
    grid: Grid,
) {
    let page = usize::from(grid.across * grid.down);
    let first = selected.unwrap_or(0) / page * page;
    for (place, (row, sample)) in cards.iter().skip(first).take(page).enumerate() {
        let (column, line) = (place as u16 % grid.across, place as u16 / grid.across);
        let card = Rect {
            x: area.x + column * grid.width,
            y: area.y + line * grid.height,
            width: grid.width,
            height: grid.height,
        };
        let is_selected = selected == Some(first + place);
        draw_card(
            sketch,
            card.intersection(area),
            row,
            *sample,
            is_selected,
            grid.text,
        );
    }
}

fn draw_card(
    sketch: &mut Sketch<'_>,
    area: Rect,
    row: &FleetRow,
    sample: usize,
    is_selected: bool,
    text_rows: u16,
) {
    let app = sketch.app;
    let cell = &row.cells[sample];
    // On a tile for a picture alone there is room for one title only.
    let title = if area.width < MIN_WIDTH {
        FrameTitle {
            left: format!("{} {}", &card_name(row, sample)[1..], cell.short_code()),
            right: None,
            focused: is_selected,
        }
    } else {
        FrameTitle {
            left: card_name(row, sample),
            right: Some((cell.code(), cell_role(cell))),
            focused: is_selected,
        }
    };
    // Beside the matrix a card only shows what is selected there.
    sketch.is_inside = app.ui.fleet.layout == FleetLayout::Matrix;
    let inner = sketch.frame(area, &title);
    sketch.is_inside = false;
    sketch
        .drawn
        .targets
        .push((area, Target::Sample(row.key.number(), sample)));
    let picture = Rect {
        height: inner.height.saturating_sub(text_rows),
        ..inner
    };
    let text = Rect {
        y: picture.bottom(),
        height: inner.height - picture.height,
        ..inner
    };
    let of_desktop = machine_of(&app.run, row, sample);
    // A machine that is up goes without saying.
    let machine = of_desktop.map(|(_, machine)| machine);
    let machine = machine.filter(|machine| !machine.status.phase.is_up());
    match (
        cell.episode.and_then(|id| app.run.episodes.get(&id)),
        machine,
    ) {
        (Some(episode), machine) if machine.is_none() || episode.is_running() => {
            let image = draw_thumbnail(sketch, picture, episode, machine);
            draw_words(sketch, text, row, cell, episode);
            let has_steps = !episode.steps.is_empty();
            if let Some(machine) = machine.filter(|_| has_steps && text.height > 0) {
                machine::draw_line(sketch, Rect { height: 1, ..text }, machine);
            }
            if let Some((desktop, _)) = of_desktop.filter(|_| episode.is_running()) {
                machine::draw_picture_note(sketch, area, desktop, image);
            }
        }
        // Nothing runs there: how it stands is all there is to say.
        (_, Some(machine)) if is_worth_saying(machine) => {
            machine::draw_in_place(sketch, inner, machine);
        }
        (Some(episode), _) => {
            draw_thumbnail(sketch, picture, episode, None);
            draw_words(sketch, text, row, cell, episode);
        }
        (None, _) => sketch.center(picture, "not begun", Role::Muted),
    }
}

/// Whether a machine was started, or could not be.
fn is_worth_saying(machine: &MachineView) -> bool {
    let status = &machine.status;
    status.phase != MachinePhase::Off || !status.detail.is_empty()
}

fn card_name(row: &FleetRow, sample: usize) -> String {
    match row.key {
        RowKey::Group(group) => format!("g{:02}.s{sample}", group.index),
        RowKey::Desktops(first) => format!("d{:02}", first as usize + sample),
    }
}

/// The newest picture, or why there is none; returns which.
fn draw_thumbnail<'a>(
    sketch: &mut Sketch<'a>,
    area: Rect,
    episode: &'a EpisodeState,
    machine: Option<&MachineView>,
) -> Option<&'a ImageHash> {
    let (image, older) = newest_pictures(&sketch.app.run, episode);
    match (&episode.failure, image, machine) {
        (Some(failure), None, _) => {
            sketch.center(area, wording::error_class(failure.class), Role::Danger);
        }
        (None, None, Some(machine)) => machine::draw_in_place(sketch, area, machine),
        (None, None, None) => {
            let desktop = sketch.app.run.desktops.get(episode.desktop as usize);
            // What is left of its start is the task's part.
            let words = match desktop.and_then(|desktop| desktop.machine.as_ref()) {
                Some(machine) if machine.status.phase.is_up() => "setting up",
                _ => "booting",
            };
            sketch.center(area, words, Role::Muted);
        }
        _ => sketch.picture(area, image, older, None),
    }
    image
}

/// Action and age, thought, task: as many lines as there are.
fn draw_words(
    sketch: &mut Sketch<'_>,
    area: Rect,
    row: &FleetRow,
    cell: &Cell,
    episode: &EpisodeState,
) {
    if area.height == 0 {
        return;
    }
    let app = sketch.app;
    let last = episode.steps.iter().rev().find(|step| step.finished);
    let (action, role) = match (&episode.failure, last) {
        (Some(failure), _) => (one_line(&failure.message), Role::Danger),
        (None, Some(step)) => match &step.malformed {
            Some(reason) => (one_line(reason), Role::Bad),
            None => (wording::actions(&step.actions), Role::Text),
        },
        (None, None) => (String::new(), Role::Muted),
    };
    let age = if cell.is_at_work() {
        figures::age(app.run_now_ms().saturating_sub(cell.since_ms))
    } else {
        String::new()
    };
    let room = Rect {
        width: area.width.saturating_sub(age.len() as u16 + 1),
        ..area
    };
    sketch.put(room, 0, 0, &action, role);
    sketch.put_right(Rect { height: 1, ..area }, 0, &[(age, Role::Muted)]);
    let thought = last.map_or(String::new(), |step| one_line(&step.thought));
    let asked = if row.instruction.is_empty() {
        &episode.task.0
    } else {
        &row.instruction
    };
    let task = one_line(asked);
    if area.height >= 3 {
        let middle = Rect {
            y: area.y + 1,
            height: area.height - 2,
            ..area
        };
        sketch.text(middle, &thought, Role::Muted, 0);
        sketch.put(area, 0, area.height - 1, &task, Role::Muted);
    } else {
        sketch.put(
            area,
            0,
            1,
            if thought.is_empty() { &task } else { &thought },
            Role::Muted,
        );
    }
}
