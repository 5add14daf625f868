//! Changing the view: layouts, filters, overlays, the terminal itself.

use crate::tui::app::{App, Glyphs, Link, Overlay, Pane, QuitChoice, RolloutPage};
use crate::tui::fleet::{FleetLayout, FleetSort, reorder};
use crate::tui::help::Help;
use crate::tui::page::keys_page;
use crate::tui::prompt::Prompt;
use crate::tui::theme::{Role, Theme};
use crate::tui::update::{Effect, Exit};

pub(super) fn fleet_layout(app: &mut App, _: &str) -> Vec<Effect> {
    app.ui.fleet.layout = match app.ui.fleet.layout {
        FleetLayout::Matrix => FleetLayout::Cards,
        FleetLayout::Cards => FleetLayout::Gallery,
        FleetLayout::Gallery => FleetLayout::Matrix,
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
    app.ui.rollout.page = RolloutPage::All;
    Vec::new()
}

pub(super) fn rollout_after(app: &mut App, _: &str) -> Vec<Effect> {
    app.ui.rollout.shows_after = !app.ui.rollout.shows_after;
    Vec::new()
}

pub(super) fn next_pane(app: &mut App, _: &str) -> Vec<Effect> {
    app.ui.pane = match app.ui.pane {
        Pane::Main => Pane::Detail,
        Pane::Detail => Pane::Main,
    };
    Vec::new()
}

pub(super) fn thought_up(app: &mut App, _: &str) -> Vec<Effect> {
    let scroll = &mut app.ui.rollout.thought_scroll;
    *scroll = scroll.saturating_sub(1);
    Vec::new()
}

pub(super) fn thought_down(app: &mut App, _: &str) -> Vec<Effect> {
    let scroll = &mut app.ui.rollout.thought_scroll;
    *scroll = scroll.saturating_add(1);
    Vec::new()
}

pub(super) fn rollout_changes(app: &mut App, _: &str) -> Vec<Effect> {
    app.ui.rollout.outlines = !app.ui.rollout.outlines;
    // Asked anew each time, in case the last try failed.
    app.ui.rollout.asked = None;
    Vec::new()
}

/// Shows a page alone, or all panes again.
fn turn_page(app: &mut App, page: RolloutPage) -> Vec<Effect> {
    let view = &mut app.ui.rollout;
    let is_shown = view.page == page && !view.only_picture;
    view.page = if is_shown { RolloutPage::All } else { page };
    view.only_picture = false;
    view.thought_scroll = 0;
    Vec::new()
}

pub(super) fn rollout_thought(app: &mut App, _: &str) -> Vec<Effect> {
    turn_page(app, RolloutPage::Thought)
}

pub(super) fn rollout_tokens(app: &mut App, _: &str) -> Vec<Effect> {
    // Asked anew each time, in case the last try failed.
    app.ui.rollout.tokens.asked = None;
    turn_page(app, RolloutPage::Tokens)
}

pub(super) fn rollout_compare(app: &mut App, _: &str) -> Vec<Effect> {
    turn_page(app, RolloutPage::Siblings)
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
    app.ui.overlay = Some(Overlay::Help(Help::default()));
    Vec::new()
}

pub(super) fn keys(app: &mut App, _: &str) -> Vec<Effect> {
    app.ui.overlay = Some(Overlay::Page(keys_page(app)));
    Vec::new()
}

pub(super) fn ascii(app: &mut App, _: &str) -> Vec<Effect> {
    app.ui.glyphs = match app.ui.glyphs {
        Glyphs::Unicode => Glyphs::Ascii,
        Glyphs::Ascii => Glyphs::Unicode,
    };
    Vec::new()
}

pub(super) fn detach(_: &mut App, _: &str) -> Vec<Effect> {
    vec![Effect::Leave(Exit::Detached)]
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
