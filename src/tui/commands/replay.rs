//! The Replay screen: looking at stored successes.

use crate::event::Command;
use crate::tui::app::{App, Screen};
use crate::tui::replay::{ReplaySort, rows, selected_place, selected_success, turn_entry};
use crate::tui::theme::Role;
use crate::tui::update::Effect;
use crate::types::{EpisodeId, TaskId};

use super::navigate::go_to;
use super::operate::send;

/// Opens the success in Rollout, where its steps are still known.
pub(super) fn open(app: &mut App, _: &str) -> Vec<Effect> {
    let rows = rows(&app.run, &app.ui.replay);
    let row = rows.get(selected_place(&app.ui.replay, &rows));
    let success = row.and_then(|row| selected_success(&app.ui.replay, row));
    let Some(id) = success.map(|(_, success)| success.episode) else {
        app.say(Role::Warning, "no success is stored for this task");
        return Vec::new();
    };
    if !app.run.episodes.contains_key(&id) {
        let run = crate::tui::text::one_line(app.run_name());
        let text = format!("its steps are no longer kept here: arpo show {run} {id}");
        app.say(Role::Warning, text);
        return Vec::new();
    }
    app.ui.rollout.pinned = Some(id);
    app.ui.rollout.step = Some(app.ui.replay.frame);
    app.ui.rollout.thought_scroll = 0;
    go_to(app, Screen::Rollout)
}

pub(super) fn next_entry(app: &mut App, _: &str) -> Vec<Effect> {
    turn_entry(app, 1);
    Vec::new()
}

pub(super) fn previous_entry(app: &mut App, _: &str) -> Vec<Effect> {
    turn_entry(app, -1);
    Vec::new()
}

pub(super) fn sort(app: &mut App, _: &str) -> Vec<Effect> {
    app.ui.replay.sort = match app.ui.replay.sort {
        ReplaySort::LastInjection => ReplaySort::Age,
        ReplaySort::Age => ReplaySort::Uses,
        ReplaySort::Uses => ReplaySort::Name,
        ReplaySort::Name => ReplaySort::LastInjection,
    };
    Vec::new()
}

pub(super) fn only_never(app: &mut App, _: &str) -> Vec<Effect> {
    app.ui.replay.only_never = !app.ui.replay.only_never;
    app.ui.replay.task = None;
    app.ui.replay.entry = 0;
    Vec::new()
}

/// The task and the success looked at; says so where there is none.
fn selected(app: &mut App) -> Option<(TaskId, EpisodeId, bool)> {
    let rows = rows(&app.run, &app.ui.replay);
    let row = rows.get(selected_place(&app.ui.replay, &rows));
    let found = row.and_then(|row| {
        let (_, success) = selected_success(&app.ui.replay, row)?;
        Some((row.task.clone(), success.episode, success.pinned))
    });
    if found.is_none() {
        app.say(Role::Warning, "no success is stored for this task");
    }
    found
}

pub(super) fn pin(app: &mut App, _: &str) -> Vec<Effect> {
    match selected(app) {
        Some((task, episode, pinned)) => send(
            app,
            Command::PinStored {
                task,
                episode,
                pinned: !pinned,
            },
        ),
        None => Vec::new(),
    }
}

/// The success as it is asked about.
pub(super) fn stored_victim(app: &App, _: &str) -> Result<String, String> {
    let rows = rows(&app.run, &app.ui.replay);
    let row = rows.get(selected_place(&app.ui.replay, &rows));
    let found = row.and_then(|row| {
        let (_, success) = selected_success(&app.ui.replay, row)?;
        Some(format!("success {} of {}", success.episode, row.task))
    });
    found.ok_or_else(|| "no success is stored for this task".to_owned())
}

pub(super) fn drop_stored(app: &mut App, _: &str) -> Vec<Effect> {
    match selected(app) {
        Some((task, episode, _)) => send(app, Command::DropStored { task, episode }),
        None => Vec::new(),
    }
}
