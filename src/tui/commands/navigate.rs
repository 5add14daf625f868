//! Moving about: rows, steps, charts, screens.

use crate::tui::app::{App, Pane, RolloutPage, Screen};
use crate::tui::draw::fleet_cards_across;
use crate::tui::fleet::{
    FleetLayout, rollout_episode, rows_in_order, selected_episode, selected_place,
};
use crate::tui::logs::log_rows;
use crate::tui::train::move_cursor;
use crate::tui::update::Effect;

/// Rows of a page, roughly: less than the smallest list, so that nothing is skipped.
const PAGE: isize = 10;

pub(super) fn up(app: &mut App, _: &str) -> Vec<Effect> {
    move_by(app, 0, -1)
}

pub(super) fn down(app: &mut App, _: &str) -> Vec<Effect> {
    move_by(app, 0, 1)
}

pub(super) fn left(app: &mut App, _: &str) -> Vec<Effect> {
    move_by(app, -1, 0)
}

pub(super) fn right(app: &mut App, _: &str) -> Vec<Effect> {
    move_by(app, 1, 0)
}

pub(super) fn page_up(app: &mut App, _: &str) -> Vec<Effect> {
    page(app, -1)
}

pub(super) fn page_down(app: &mut App, _: &str) -> Vec<Effect> {
    page(app, 1)
}

pub(super) fn first(app: &mut App, _: &str) -> Vec<Effect> {
    match app.ui.screen {
        Screen::Fleet => move_fleet(app, 0, isize::MIN / 2),
        Screen::Rollout => go_to_step(app, 0),
        Screen::Train => move_cursor(&app.run, &mut app.ui.train, isize::MIN / 2),
        Screen::Evals => crate::tui::evals::move_by(app, isize::MIN / 2),
        Screen::Replay => crate::tui::replay::move_by(app, 0, isize::MIN / 2),
        Screen::Logs => app.ui.logs.up = log_rows(app).len().saturating_sub(1),
    }
    Vec::new()
}

pub(super) fn last(app: &mut App, _: &str) -> Vec<Effect> {
    match app.ui.screen {
        Screen::Fleet => move_fleet(app, 0, isize::MAX / 2),
        Screen::Rollout => go_to_step(app, usize::MAX),
        Screen::Train => app.ui.train.cursor = None,
        Screen::Evals => crate::tui::evals::move_by(app, isize::MAX / 2),
        Screen::Replay => crate::tui::replay::move_by(app, 0, isize::MAX / 2),
        Screen::Logs => app.ui.logs.up = 0,
    }
    Vec::new()
}

fn page(app: &mut App, direction: isize) -> Vec<Effect> {
    if app.ui.screen == Screen::Rollout {
        let scroll = app.ui.rollout.thought_scroll;
        let lines = match app.ui.rollout.page {
            RolloutPage::Tokens => PAGE,
            RolloutPage::All | RolloutPage::Thought | RolloutPage::Siblings => 3,
        };
        app.ui.rollout.thought_scroll = scroll.saturating_add_signed(lines * direction);
        return Vec::new();
    }
    move_by(app, 0, PAGE * direction)
}

fn move_by(app: &mut App, across: isize, down: isize) -> Vec<Effect> {
    match app.ui.screen {
        Screen::Fleet => move_fleet(app, across, down),
        Screen::Rollout => move_step(app, across + down),
        Screen::Train if across == 0 => super::train::turn_chart(app, down.signum()),
        Screen::Train => move_cursor(&app.run, &mut app.ui.train, across),
        Screen::Evals => crate::tui::evals::move_by(app, across + down),
        Screen::Replay => crate::tui::replay::move_by(app, across, down),
        Screen::Logs => {
            let newest = log_rows(app).len().saturating_sub(1);
            app.ui.logs.up = app.ui.logs.up.saturating_add_signed(-down).min(newest);
        }
    }
    Vec::new()
}

fn move_fleet(app: &mut App, across: isize, down: isize) {
    let rows = rows_in_order(app);
    let (row, sample) = selected_place(app, &rows);
    let Some(current) = rows.get(row) else { return };
    let (row, sample) = match app.ui.fleet.layout {
        FleetLayout::Matrix => {
            let row = row.saturating_add_signed(down).min(rows.len() - 1);
            let widest = current.cells.len().saturating_sub(1);
            (row, sample.saturating_add_signed(across).min(widest))
        }
        FleetLayout::Cards | FleetLayout::Gallery => {
            let per_row: Vec<usize> = rows.iter().map(|row| row.cells.len()).collect();
            let place = per_row[..row].iter().sum::<usize>() + sample;
            let all: usize = per_row.iter().sum();
            let step = across + down * fleet_cards_across(app) as isize;
            place_of(
                &per_row,
                place.saturating_add_signed(step).min(all.saturating_sub(1)),
            )
        }
    };
    app.ui.fleet.row = rows[row].key.number();
    app.ui.fleet.sample = sample;
    app.ui.fleet.is_chosen = true;
}

/// Row and sample of the card at `place`.
fn place_of(per_row: &[usize], mut place: usize) -> (usize, usize) {
    for (row, cells) in per_row.iter().enumerate() {
        if place < *cells {
            return (row, place);
        }
        place -= cells;
    }
    (per_row.len().saturating_sub(1), 0)
}

fn move_step(app: &mut App, by: isize) {
    let Some(episode) = rollout_episode(app) else {
        return;
    };
    let newest = episode.steps.len().saturating_sub(1);
    let step = app.ui.rollout.step.unwrap_or(newest).min(newest);
    go_to_step(app, step.saturating_add_signed(by));
}

/// Stays at a step, and with its episode, whatever the run does.
fn go_to_step(app: &mut App, step: usize) {
    let Some(episode) = rollout_episode(app) else {
        return;
    };
    let (id, newest) = (episode.id, episode.steps.len().saturating_sub(1));
    app.ui.rollout.pinned = Some(id);
    app.ui.rollout.step = Some(step.min(newest));
    app.ui.rollout.thought_scroll = 0;
}

pub(super) fn next_sibling(app: &mut App, _: &str) -> Vec<Effect> {
    sibling(app, 1)
}

pub(super) fn previous_sibling(app: &mut App, _: &str) -> Vec<Effect> {
    sibling(app, -1)
}

fn sibling(app: &mut App, by: isize) -> Vec<Effect> {
    let Some(episode) = rollout_episode(app) else {
        return Vec::new();
    };
    let group = episode.group.and_then(|id| app.run.groups.get(&id));
    let Some(group) = group else {
        return Vec::new();
    };
    let members = &group.members;
    let mut place = episode.sample as isize;
    for _ in 0..members.len() {
        place = (place + by).rem_euclid(members.len() as isize);
        let known = members[place as usize].filter(|id| app.run.episodes.contains_key(id));
        if let Some(id) = known {
            app.ui.fleet.row = group.id.index;
            app.ui.fleet.sample = place as usize;
            app.ui.fleet.is_chosen = true;
            if app.ui.rollout.pinned.is_some() {
                app.ui.rollout.pinned = Some(id);
            }
            app.ui.rollout.thought_scroll = 0;
            break;
        }
    }
    Vec::new()
}

pub(super) fn open(app: &mut App, _: &str) -> Vec<Effect> {
    app.ui.fleet.is_chosen = true;
    app.ui.rollout.pinned = selected_episode(app);
    app.ui.rollout.step = None;
    app.ui.rollout.thought_scroll = 0;
    go_to(app, Screen::Rollout)
}

pub(super) fn go_to(app: &mut App, screen: Screen) -> Vec<Effect> {
    if app.ui.screen != screen {
        app.ui.previous = app.ui.screen;
        app.ui.screen = screen;
        app.ui.pane = Pane::Main;
    }
    Vec::new()
}

pub(super) fn fleet(app: &mut App, _: &str) -> Vec<Effect> {
    go_to(app, Screen::Fleet)
}

pub(super) fn rollout(app: &mut App, _: &str) -> Vec<Effect> {
    go_to(app, Screen::Rollout)
}

pub(super) fn train(app: &mut App, _: &str) -> Vec<Effect> {
    go_to(app, Screen::Train)
}

pub(super) fn evals(app: &mut App, _: &str) -> Vec<Effect> {
    go_to(app, Screen::Evals)
}

pub(super) fn replay(app: &mut App, _: &str) -> Vec<Effect> {
    go_to(app, Screen::Replay)
}

pub(super) fn logs(app: &mut App, _: &str) -> Vec<Effect> {
    go_to(app, Screen::Logs)
}

pub(super) fn previous_screen(app: &mut App, _: &str) -> Vec<Effect> {
    let previous = app.ui.previous;
    go_to(app, previous)
}

pub(super) fn back(app: &mut App, _: &str) -> Vec<Effect> {
    let ui = &mut app.ui;
    if ui.message.take().is_some() {
        return Vec::new();
    }
    if std::mem::take(&mut ui.pane) == Pane::Detail {
        return Vec::new();
    }
    match ui.screen {
        Screen::Rollout if ui.rollout.only_picture => ui.rollout.only_picture = false,
        Screen::Rollout if ui.rollout.page != RolloutPage::All => {
            ui.rollout.page = RolloutPage::All;
        }
        Screen::Train if ui.train.cursor.is_some() => ui.train.cursor = None,
        Screen::Train if ui.train.zoomed => ui.train.zoomed = false,
        Screen::Logs if ui.logs.filter.is_some() => ui.logs.filter = None,
        Screen::Fleet => ui.fleet.layout = FleetLayout::Matrix,
        Screen::Rollout | Screen::Train | Screen::Evals | Screen::Replay | Screen::Logs => {
            return go_to(app, Screen::Fleet);
        }
    }
    Vec::new()
}
