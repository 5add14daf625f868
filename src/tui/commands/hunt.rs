//! Jumping to what operators look for: the slowest desktop, the newest failure, a reply that did
//! not parse, the group that differs most, one that replay helped.

use crate::event::EpisodeState;
use crate::tui::app::{App, Screen};
use crate::tui::fleet::{FleetRow, Note, rows_in_order};
use crate::tui::theme::Role;
use crate::tui::update::Effect;
use crate::types::EpisodeId;

use super::navigate::go_to;

fn nothing(app: &mut App, what: &str) -> Vec<Effect> {
    app.say(Role::Muted, format!("no {what} here"));
    Vec::new()
}

/// Opens an episode at a step, or at its newest one.
fn open(app: &mut App, id: EpisodeId, step: Option<usize>) -> Vec<Effect> {
    app.ui.rollout.pinned = Some(id);
    app.ui.rollout.step = step;
    app.ui.rollout.thought_scroll = 0;
    go_to(app, Screen::Rollout)
}

/// The newest episode that `wanted` says something of; pressed again, the one before.
fn newest<T>(app: &App, wanted: impl Fn(&EpisodeState) -> Option<T>) -> Option<(EpisodeId, T)> {
    let mut found: Vec<(EpisodeId, T)> = app
        .run
        .episodes
        .values()
        .rev()
        .filter_map(|episode| Some((episode.id, wanted(episode)?)))
        .collect();
    let shown = app
        .ui
        .rollout
        .pinned
        .filter(|_| app.ui.screen == Screen::Rollout);
    let here = found.iter().position(|(id, _)| Some(*id) == shown);
    let next = here.map_or(0, |place| place + 1);
    (!found.is_empty()).then(|| found.swap_remove(next % found.len()))
}

/// The end of the newest episode that an error ended or that failed its task.
pub(super) fn failure(app: &mut App, _: &str) -> Vec<Effect> {
    let failed = newest(app, |episode| {
        let is_failed = episode.failure.is_some() || episode.outcome.is_some_and(|o| o < 0.5);
        is_failed.then(|| episode.steps.len().saturating_sub(1))
    });
    match failed {
        Some((id, last)) => open(app, id, Some(last)),
        None => nothing(app, "failed episode"),
    }
}

/// The newest step whose reply the parser refused.
pub(super) fn malformed(app: &mut App, _: &str) -> Vec<Effect> {
    let refused = newest(app, |episode| {
        episode
            .steps
            .iter()
            .rposition(|step| step.malformed.is_some())
    });
    match refused {
        Some((id, step)) => open(app, id, Some(step)),
        None => nothing(app, "reply that did not parse"),
    }
}

/// The episode under way that has not moved for longest.
pub(super) fn slowest(app: &mut App, _: &str) -> Vec<Effect> {
    let moved = |episode: &EpisodeState| {
        let observed = episode.steps.last().map(|step| step.observed_ms);
        observed.unwrap_or(episode.started_ms)
    };
    let running = app.run.episodes.values().filter(|e| e.is_running());
    let slowest = running.min_by_key(|episode| moved(episode));
    let found = slowest.map(|episode| (episode.id, episode.desktop, moved(episode)));
    let Some((id, desktop, moved_ms)) = found else {
        return nothing(app, "episode under way");
    };
    let age = crate::tui::figures::age(app.run_now_ms().saturating_sub(moved_ms));
    app.say(
        Role::Warning,
        format!("desktop {desktop} has not moved for {age}"),
    );
    open(app, id, None)
}

/// Selects the row that `rank` puts highest.
fn select(app: &mut App, what: &str, rank: impl Fn(&FleetRow) -> Option<f64>) -> Vec<Effect> {
    let rows = rows_in_order(app);
    let ranked = rows
        .iter()
        .filter_map(|row| Some((rank(row)?, row.key.number())));
    let best = ranked.max_by(|a, b| a.0.total_cmp(&b.0));
    let Some((_, number)) = best else {
        return nothing(app, what);
    };
    app.ui.fleet.row = number;
    app.ui.fleet.is_chosen = true;
    go_to(app, Screen::Fleet)
}

pub(super) fn widest(app: &mut App, _: &str) -> Vec<Effect> {
    select(app, "group with two outcomes", |row| row.std)
}

pub(super) fn replayed(app: &mut App, _: &str) -> Vec<Effect> {
    select(app, "group that replay helped", |row| match row.note {
        Note::Replayed(count) => Some(count as f64),
        _ => None,
    })
}
