//! Changing the view: layouts, filters, overlays, the terminal itself.

use crate::tui::app::{App, Link, LogSource, Overlay, QuitChoice};
use crate::tui::fleet::{FleetLayout, FleetSort, reorder};
use crate::tui::prompt::Prompt;
use crate::tui::theme::{Role, Theme};
use crate::tui::update::{Effect, Exit};

/// Fewest iterations a chart shows.
const MIN_WINDOW: usize = 10;

pub(super) fn fleet_layout(app: &mut App, _: &str) -> Vec<Effect> {
    app.ui.fleet.layout = match app.ui.fleet.layout {
        FleetLayout::Matrix => FleetLayout::Cards,
        FleetLayout::Cards => FleetLayout::Matrix,
    };
    Vec::new()
}

pub(super) fn fleet_sort(app: &mut App, _: &str) -> Vec<Effect> {
    app.ui.fleet.sort = match app.ui.fleet.sort {
        FleetSort::Attention => FleetSort::Number,
        FleetSort::Number => FleetSort::Attention,
    };
    reorder(app);
    Vec::new()
}

pub(super) fn fleet_desktops(app: &mut App, _: &str) -> Vec<Effect> {
    app.ui.fleet.by_desktop = !app.ui.fleet.by_desktop;
    reorder(app);
    Vec::new()
}

pub(super) fn rollout_follow(app: &mut App, _: &str) -> Vec<Effect> {
    app.ui.rollout.pinned = None;
    app.ui.rollout.step = None;
    app.ui.rollout.thought_scroll = 0;
    Vec::new()
}

pub(super) fn rollout_picture(app: &mut App, _: &str) -> Vec<Effect> {
    app.ui.rollout.only_picture = !app.ui.rollout.only_picture;
    Vec::new()
}

pub(super) fn train_zoom(app: &mut App, _: &str) -> Vec<Effect> {
    app.ui.train.zoomed = !app.ui.train.zoomed;
    Vec::new()
}

pub(super) fn train_wider(app: &mut App, _: &str) -> Vec<Effect> {
    let all = app.run.history.len();
    app.ui.train.window = app
        .ui
        .train
        .window
        .map(|window| 2 * window)
        .filter(|w| *w < all);
    Vec::new()
}

pub(super) fn train_narrower(app: &mut App, _: &str) -> Vec<Effect> {
    let shown = app.ui.train.window.unwrap_or(app.run.history.len());
    if shown > MIN_WINDOW {
        app.ui.train.window = Some((shown / 2).max(MIN_WINDOW));
    }
    Vec::new()
}

/// With an argument sets the filter, without one asks for it.
pub(super) fn logs_filter(app: &mut App, argument: &str) -> Vec<Effect> {
    if argument.is_empty() {
        app.ui.overlay = Some(Overlay::Filter(app.ui.logs.filter.clone()));
    } else {
        argument.clone_into(&mut app.ui.logs.filter);
        app.ui.logs.up = 0;
    }
    Vec::new()
}

pub(super) fn logs_source(app: &mut App, _: &str) -> Vec<Effect> {
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

pub(super) fn palette(app: &mut App, _: &str) -> Vec<Effect> {
    app.ui.overlay = Some(Overlay::Prompt(Prompt::default()));
    Vec::new()
}

pub(super) fn theme(app: &mut App, argument: &str) -> Vec<Effect> {
    match Theme::built_in(argument, app.ui.theme.depth()) {
        Ok(theme) => app.ui.theme = theme,
        Err(error) => app.say(Role::Danger, error.to_string()),
    }
    Vec::new()
}

pub(super) fn mouse(app: &mut App, _: &str) -> Vec<Effect> {
    app.ui.mouse = !app.ui.mouse;
    app.say(
        Role::Muted,
        if app.ui.mouse {
            "mouse on"
        } else {
            "mouse off"
        },
    );
    vec![Effect::Mouse(app.ui.mouse)]
}

/// Shows pictures as the argument says.
pub(super) fn images(app: &mut App, argument: &str) -> Vec<Effect> {
    match argument.parse() {
        Ok(images) => {
            app.ui.terminal.choose(images);
            let graphics = app.ui.terminal.graphics;
            let why = app.ui.terminal.why.clone();
            app.say(Role::Muted, format!("pictures: {} ({why})", graphics.focus));
        }
        Err(error) => app.say(Role::Danger, error),
    }
    Vec::new()
}

pub(super) fn picture_rate(app: &mut App, argument: &str) -> Vec<Effect> {
    match argument.parse::<u32>() {
        Ok(kilobytes) => {
            app.ui.terminal.picture_rate = u64::from(kilobytes) * 1_000;
            app.say(
                Role::Muted,
                format!("pictures take at most {kilobytes} kB/s"),
            );
        }
        Err(_) => app.say(
            Role::Danger,
            format!("picture-rate takes kilobytes a second, for instance 100, not {argument:?}"),
        ),
    }
    Vec::new()
}

pub(super) fn about(app: &mut App, _: &str) -> Vec<Effect> {
    app.ui.overlay = Some(Overlay::About);
    Vec::new()
}

pub(super) fn redraw(app: &mut App, _: &str) -> Vec<Effect> {
    app.ui.pictures.forget_failures();
    vec![Effect::Repaint]
}

pub(super) fn suspend(_: &mut App, _: &str) -> Vec<Effect> {
    vec![Effect::Suspend]
}

pub(super) fn help(app: &mut App, _: &str) -> Vec<Effect> {
    app.ui.overlay = Some(Overlay::Help { scroll: 0 });
    Vec::new()
}

/// Leaves at once where nothing is at stake, else asks.
pub(super) fn quit(app: &mut App, _: &str) -> Vec<Effect> {
    let at_work = app.ui.link == Link::Live && app.is_alive();
    if !at_work || app.ui.leaving {
        return vec![Effect::Leave(if app.ui.leaving {
            Exit::StopAsked
        } else {
            Exit::Detached
        })];
    }
    let proposed = if app.ui.is_demo {
        QuitChoice::Stop
    } else {
        QuitChoice::Detach
    };
    app.ui.overlay = Some(Overlay::Quit(proposed));
    Vec::new()
}
