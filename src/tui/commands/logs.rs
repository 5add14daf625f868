//! The Logs screen: filter, search, level, source; to the episode, to the cause. Profiles.

use crate::tui::app::{App, LogSource, Overlay, Screen};
use crate::tui::logs::{LogFilter, LogLevel, first_cause, found_row, log_rows};
use crate::tui::page::Page;
use crate::tui::profile::page_lines;
use crate::tui::text::one_line;
use crate::tui::theme::Role;
use crate::tui::update::Effect;
use crate::tui::work::{Job, OtherRun};

use super::navigate::go_to;

/// With an argument sets the filter, without one asks for it.
pub(super) fn filter(app: &mut App, argument: &str) -> Vec<Effect> {
    if argument.is_empty() {
        let known = app.ui.logs.filter.as_ref();
        let text = known.map_or(String::new(), |filter| filter.text.clone());
        app.ui.overlay = Some(Overlay::Filter(text));
    } else {
        set_filter(app, argument);
    }
    Vec::new()
}

/// Shows only what matches; a filter that cannot be read changes nothing.
pub(in crate::tui) fn set_filter(app: &mut App, text: &str) {
    match LogFilter::parse(text) {
        Ok(filter) => (app.ui.logs.filter, app.ui.logs.up) = (filter, 0),
        Err(error) => app.say(Role::Danger, error),
    }
}

/// With an argument looks for it, without one asks what for.
pub(super) fn search(app: &mut App, argument: &str) -> Vec<Effect> {
    if argument.is_empty() {
        app.ui.overlay = Some(Overlay::Search(String::new()));
    } else {
        set_search(app, argument);
    }
    Vec::new()
}

/// Goes to the newest row that matches, and remembers what was looked for.
pub(in crate::tui) fn set_search(app: &mut App, text: &str) {
    match LogFilter::parse(text) {
        Ok(search) => {
            app.ui.logs.search = search;
            app.ui.logs.up = 0;
            let rows = log_rows(app);
            let newest = rows.last().zip(app.ui.logs.search.as_ref());
            if newest.is_none_or(|(row, search)| !search.lets_through(row)) {
                go_to_found(app, true);
            }
        }
        Err(error) => app.say(Role::Danger, error),
    }
}

fn go_to_found(app: &mut App, older: bool) {
    let rows = log_rows(app);
    if let Some(up) = found_row(app, &rows, older) {
        app.ui.logs.up = up;
        return;
    }
    let what = match &app.ui.logs.search {
        Some(search) => format!("row that matches {}", search.text),
        None => "warning or error".to_owned(),
    };
    let side = if older { "older" } else { "newer" };
    app.say(Role::Muted, format!("no {side} {what}"));
}

pub(super) fn next_match(app: &mut App, _: &str) -> Vec<Effect> {
    go_to_found(app, true);
    Vec::new()
}

pub(super) fn previous_match(app: &mut App, _: &str) -> Vec<Effect> {
    go_to_found(app, false);
    Vec::new()
}

pub(super) fn graver(app: &mut App, _: &str) -> Vec<Effect> {
    app.ui.logs.least = match app.ui.logs.least {
        LogLevel::Info => LogLevel::Warning,
        LogLevel::Warning | LogLevel::Error => LogLevel::Error,
    };
    app.ui.logs.up = 0;
    Vec::new()
}

pub(super) fn milder(app: &mut App, _: &str) -> Vec<Effect> {
    app.ui.logs.least = match app.ui.logs.least {
        LogLevel::Error => LogLevel::Warning,
        LogLevel::Warning | LogLevel::Info => LogLevel::Info,
    };
    app.ui.logs.up = 0;
    Vec::new()
}

pub(super) fn source(app: &mut App, _: &str) -> Vec<Effect> {
    app.ui.logs.source = match app.ui.logs.source {
        LogSource::All => LogSource::Notices,
        LogSource::Notices => LogSource::Journal,
        LogSource::Journal => LogSource::Failures,
        LogSource::Failures => LogSource::Trainer,
        LogSource::Trainer => LogSource::All,
    };
    app.ui.logs.up = 0;
    Vec::new()
}

/// Opens the episode that the selected row is about.
pub(super) fn open(app: &mut App, _: &str) -> Vec<Effect> {
    let rows = log_rows(app);
    let place = rows.len().checked_sub(1 + app.ui.logs.up);
    let episode = place.and_then(|place| rows.get(place)?.episode);
    match episode {
        Some(id) if app.run.episodes.contains_key(&id) => {
            app.ui.rollout.pinned = Some(id);
            app.ui.rollout.step = None;
            app.ui.rollout.thought_scroll = 0;
            go_to(app, Screen::Rollout)
        }
        Some(id) => {
            let run = crate::tui::text::one_line(app.run_name());
            let text = format!("its steps are no longer kept here: arpo show {run} {id}");
            app.say(Role::Warning, text);
            Vec::new()
        }
        None => {
            app.say(Role::Muted, "this row is about no episode");
            Vec::new()
        }
    }
}

/// Goes to what made the run stand still: all rows are shown for it.
pub(super) fn cause(app: &mut App, _: &str) -> Vec<Effect> {
    let logs = &mut app.ui.logs;
    (logs.filter, logs.source, logs.least) = (None, LogSource::All, LogLevel::Info);
    let rows = log_rows(app);
    match first_cause(&app.run, &rows) {
        Some(up) => app.ui.logs.up = up,
        None => app.say(Role::Muted, "the run has not paused, or nothing says why"),
    }
    go_to(app, Screen::Logs)
}

/// Shows the run's profile, or what differs from another run's.
pub(super) fn profile(app: &mut App, argument: &str) -> Vec<Effect> {
    if app.ui.profile.is_empty() {
        let text = "the engine does not tell the run's profile; it is profile.toml in its folder";
        app.say(Role::Danger, text);
        return Vec::new();
    }
    let other = match argument.split_once(' ').unwrap_or((argument, "")) {
        ("", _) => {
            let lines = page_lines(&app.ui.profile, &app.run.settings.changed);
            let title = format!("Profile of {}", one_line(app.run_name()));
            app.ui.overlay = Some(Overlay::Page(Page::of_text(title, &lines)));
            return Vec::new();
        }
        ("diff", run) if !run.trim().is_empty() => OtherRun::named(app, run.trim()),
        _ => {
            app.say(Role::Danger, "write profile, or: profile diff RUN");
            return Vec::new();
        }
    };
    vec![Effect::Work(Job::ProfileDiff {
        name: app.run_name().to_owned(),
        profile: app.ui.profile.clone(),
        other,
    })]
}
