//! The Train screen: window, axis, cursor, the other run, export.

use std::path::PathBuf;

use crate::tui::app::App;
use crate::tui::text::one_line;
use crate::tui::theme::Role;
use crate::tui::train::{RATIOS, csv};
use crate::tui::update::Effect;
use crate::tui::work::{Job, OtherRun};

/// Fewest iterations a chart shows.
const MIN_WINDOW: usize = 10;

pub(super) fn zoom(app: &mut App, _: &str) -> Vec<Effect> {
    app.ui.train.zoomed = !app.ui.train.zoomed;
    Vec::new()
}

/// Focuses the next chart, or with -1 the one before.
pub(super) fn turn_chart(app: &mut App, by: isize) {
    let all = RATIOS as isize + 1;
    let chart = app.ui.train.chart as isize + by;
    app.ui.train.chart = chart.rem_euclid(all) as usize;
}

pub(super) fn next_chart(app: &mut App, _: &str) -> Vec<Effect> {
    turn_chart(app, 1);
    Vec::new()
}

pub(super) fn previous_chart(app: &mut App, _: &str) -> Vec<Effect> {
    turn_chart(app, -1);
    Vec::new()
}

pub(super) fn wider(app: &mut App, _: &str) -> Vec<Effect> {
    let all = app.run.history.len();
    let view = &mut app.ui.train;
    view.window = view.window.map(|window| 2 * window).filter(|w| *w < all);
    Vec::new()
}

pub(super) fn narrower(app: &mut App, _: &str) -> Vec<Effect> {
    let shown = app.ui.train.window.unwrap_or(app.run.history.len());
    if shown > MIN_WINDOW {
        app.ui.train.window = Some((shown / 2).max(MIN_WINDOW));
    }
    Vec::new()
}

pub(super) fn log_axis(app: &mut App, _: &str) -> Vec<Effect> {
    app.ui.train.is_log = !app.ui.train.is_log;
    Vec::new()
}

/// Reads another run; without an argument the comparison ends.
pub(super) fn compare(app: &mut App, argument: &str) -> Vec<Effect> {
    if argument.is_empty() {
        let text = match app.ui.train.compared.take() {
            Some(other) => format!("no longer compared with {}", one_line(&other.name)),
            None => "write the run to compare with, as in: compare demo-1129-1631".to_owned(),
        };
        app.say(Role::Muted, text);
        return Vec::new();
    }
    app.say(Role::Muted, format!("reading {}", one_line(argument)));
    vec![Effect::Work(Job::Compare(OtherRun::named(app, argument)))]
}

/// Writes all iterations into a file of comma-separated values.
pub(super) fn export(app: &mut App, argument: &str) -> Vec<Effect> {
    if app.run.history.is_empty() {
        app.say(
            Role::Warning,
            "nothing to export before the first iteration",
        );
        return Vec::new();
    }
    let path = if argument.is_empty() {
        PathBuf::from(format!("{}-iterations.csv", app.run_name()))
    } else {
        PathBuf::from(argument)
    };
    let text = csv(&app.run);
    vec![Effect::Work(Job::Write { path, text })]
}
