//! Going through a recorded run.

use crate::bus::PlayRequest;
use crate::tui::app::App;
use crate::tui::theme::Role;
use crate::tui::timeline::{Place, moment, parse_place, toggle};
use crate::tui::update::Effect;

fn go(app: &mut App, place: Place) -> Vec<Effect> {
    match moment(app, place) {
        Ok(moment) => vec![Effect::Play(PlayRequest::Seek(moment))],
        Err(reason) => refuse(app, reason),
    }
}

fn refuse(app: &mut App, reason: String) -> Vec<Effect> {
    app.say(Role::Warning, reason);
    Vec::new()
}

pub(super) fn seek(app: &mut App, argument: &str) -> Vec<Effect> {
    match parse_place(argument) {
        Some(place) => go(app, place),
        None => refuse(
            app,
            "write an iteration or a time, as in: seek 12, seek +3, seek 40%, seek 1:30, seek end"
                .to_owned(),
        ),
    }
}

pub(super) fn iteration_back(app: &mut App, _: &str) -> Vec<Effect> {
    go(app, Place::Iterations(-1))
}

pub(super) fn iteration_on(app: &mut App, _: &str) -> Vec<Effect> {
    go(app, Place::Iterations(1))
}

pub(super) fn time_back(app: &mut App, _: &str) -> Vec<Effect> {
    go(app, Place::Steps(-1))
}

pub(super) fn time_on(app: &mut App, _: &str) -> Vec<Effect> {
    go(app, Place::Steps(1))
}

/// Plays, or stands still; with an argument plays so many times as fast as it went.
pub(super) fn play(app: &mut App, argument: &str) -> Vec<Effect> {
    let speed = match argument.trim_end_matches('x') {
        "" => None,
        text => match text
            .parse()
            .ok()
            .filter(|s: &f64| s.is_finite() && *s > 0.0)
        {
            Some(speed) => Some(speed),
            None => {
                return refuse(
                    app,
                    "write how many times as fast, as in: play 10".to_owned(),
                );
            }
        },
    };
    match toggle(app, speed) {
        Ok(requests) => requests.into_iter().map(Effect::Play).collect(),
        Err(reason) => refuse(app, reason),
    }
}
