//! Jumping by name: a group, a sample, an episode, a task.

use crate::tui::app::{App, Overlay, Screen};
use crate::tui::fleet::{RowKey, rows_in_order};
use crate::tui::prompt::Prompt;
use crate::tui::theme::Role;
use crate::tui::update::Effect;
use crate::types::EpisodeId;

use super::navigate::go_to;

/// What a row is called.
pub(super) fn row_name(key: RowKey, number: u32) -> String {
    match key {
        RowKey::Group(_) => format!("g{number:02}"),
        RowKey::Desktops(_) => format!("d{number:02}"),
    }
}

pub(super) fn goto(app: &mut App, place: &str) -> Vec<Effect> {
    if place.is_empty() {
        app.ui.overlay = Some(Overlay::Prompt(Prompt::with_text("goto ")));
        return Vec::new();
    }
    if let Some(id) = parse_episode(place).filter(|id| app.run.episodes.contains_key(id)) {
        app.ui.rollout.pinned = Some(id);
        app.ui.rollout.step = None;
        return go_to(app, Screen::Rollout);
    }
    let (name, sample) = match place.split_once(".s") {
        Some((name, sample)) => (name, sample.parse().ok()),
        None => (place, None),
    };
    let rows = rows_in_order(app);
    let found = rows.iter().find(|row| {
        row_name(row.key, row.key.number()) == name
            || row.task.0 == name
            || parse_row(name) == Some(row.key.number())
    });
    let Some(row) = found.filter(|row| sample.unwrap_or(0) < row.cells.len().max(1)) else {
        app.say(
            Role::Danger,
            format!(
                "{place} is not here; write a group, sample, episode or task: g07, g07.s3, 0-000531"
            ),
        );
        return Vec::new();
    };
    app.ui.fleet.row = row.key.number();
    app.ui.fleet.is_chosen = true;
    app.ui.rollout.pinned = None;
    app.ui.rollout.step = None;
    match sample {
        Some(sample) => {
            app.ui.fleet.sample = sample;
            go_to(app, Screen::Rollout)
        }
        None => go_to(app, Screen::Fleet),
    }
}

fn parse_row(name: &str) -> Option<u32> {
    name.strip_prefix(['g', 'd'])?.parse().ok()
}

fn parse_episode(text: &str) -> Option<EpisodeId> {
    let (incarnation, number) = text.trim_start_matches('e').split_once('-')?;
    Some(EpisodeId {
        incarnation: incarnation.parse().ok()?,
        number: number.parse().ok()?,
    })
}

pub(super) fn screen(app: &mut App, name: &str) -> Vec<Effect> {
    let known = crate::tui::app::SCREENS
        .into_iter()
        .find(|screen| screen.title().eq_ignore_ascii_case(name));
    if let Some(screen) = known {
        return go_to(app, screen);
    }
    app.say(Role::Danger, format!("no screen is called {name:?}"));
    Vec::new()
}
