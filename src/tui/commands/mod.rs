//! The one table of commands: what keys, palette, hint bar, help screen and mouse have in common.
//!
//! A row names a command, documents it, gives its default keys, the screen they hold on, and its
//! handler. Handlers change the view and return effects; those that ask something of the engine
//! only send, what comes of it is told by events.

mod debug;
mod navigate;
mod operate;
#[cfg(test)]
mod tests;
mod view;

use crate::tui::app::{App, Screen};
use crate::tui::keys::Key;
use crate::tui::update::Effect;

pub(in crate::tui) use operate::send;

/// Where a command's keys hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Everywhere.
    Global,
    /// On one screen.
    On(Screen),
}

/// One command.
pub struct CommandRow {
    /// As it is typed.
    pub name: &'static str,
    /// Its argument, empty if it takes none.
    pub argument: &'static str,
    /// What it does, one sentence.
    pub doc: &'static str,
    /// Its default keys, the first one shown.
    pub keys: &'static [&'static str],
    /// Where they hold.
    pub scope: Scope,
    /// Its word in the hint bar, empty to leave it out.
    pub hint: &'static str,
    /// Whether it asks something of the engine.
    pub operates: bool,
    /// What it does; the argument is what follows the name.
    pub run: fn(&mut App, &str) -> Vec<Effect>,
}

const fn row(
    name: &'static str,
    keys: &'static [&'static str],
    scope: Scope,
    hint: &'static str,
    doc: &'static str,
    run: fn(&mut App, &str) -> Vec<Effect>,
) -> CommandRow {
    CommandRow {
        name,
        argument: "",
        doc,
        keys,
        scope,
        hint,
        operates: false,
        run,
    }
}

/// A row that asks something of the engine.
const fn operator(
    name: &'static str,
    argument: &'static str,
    keys: &'static [&'static str],
    hint: &'static str,
    doc: &'static str,
    run: fn(&mut App, &str) -> Vec<Effect>,
) -> CommandRow {
    CommandRow {
        name,
        argument,
        doc,
        keys,
        scope: Scope::Global,
        hint,
        operates: true,
        run,
    }
}

/// A row that decides about the held episode on Rollout.
const fn decision(
    name: &'static str,
    argument: &'static str,
    keys: &'static [&'static str],
    doc: &'static str,
    run: fn(&mut App, &str) -> Vec<Effect>,
) -> CommandRow {
    CommandRow {
        scope: ROLLOUT,
        ..operator(name, argument, keys, "", doc, run)
    }
}

const FLEET: Scope = Scope::On(Screen::Fleet);
const ROLLOUT: Scope = Scope::On(Screen::Rollout);
const TRAIN: Scope = Scope::On(Screen::Train);
const LOGS: Scope = Scope::On(Screen::Logs);
const GLOBAL: Scope = Scope::Global;

/// All commands. The hint bar shows hints in this order, those of the screen first.
pub const COMMANDS: &[CommandRow] = &[
    row(
        "open",
        &["enter"],
        FLEET,
        "open",
        "Open the selected episode in Rollout.",
        navigate::open,
    ),
    row(
        "layout",
        &["z"],
        FLEET,
        "cards",
        "Switch between matrix and cards.",
        view::fleet_layout,
    ),
    row(
        "sort",
        &["o"],
        FLEET,
        "sort",
        "Order rows by attention or by number.",
        view::fleet_sort,
    ),
    row(
        "desktops-view",
        &["b"],
        FLEET,
        "",
        "Show desktops instead of groups.",
        view::fleet_desktops,
    ),
    row(
        "first-step",
        &["H"],
        ROLLOUT,
        "",
        "Go to the first step.",
        navigate::first,
    ),
    row(
        "last-step",
        &["L"],
        ROLLOUT,
        "",
        "Go to the last step.",
        navigate::last,
    ),
    row(
        "follow",
        &["space"],
        ROLLOUT,
        "follow",
        "Follow the newest step of the episode selected in Fleet.",
        view::rollout_follow,
    ),
    row(
        "next-sibling",
        &["n"],
        ROLLOUT,
        "sibling",
        "Go to the next episode of the group.",
        navigate::next_sibling,
    ),
    row(
        "previous-sibling",
        &["N"],
        ROLLOUT,
        "",
        "Go to the previous episode of the group.",
        navigate::previous_sibling,
    ),
    row(
        "picture",
        &["v"],
        ROLLOUT,
        "picture",
        "Show the screenshot alone, as large as it goes.",
        view::rollout_picture,
    ),
    decision(
        "accept",
        "",
        &["enter"],
        "Carry out the reply looked at, of the held episode shown.",
        debug::accept,
    ),
    decision(
        "edit",
        "[REPLY]",
        &["e"],
        "Change the reply before it is carried out.",
        debug::edit,
    ),
    decision(
        "write",
        "[REPLY]",
        &["w"],
        "Write a reply of your own in its place.",
        debug::write,
    ),
    decision(
        "regenerate",
        "[COUNT]",
        &["R"],
        "Let the policy write other replies to choose from.",
        debug::regenerate,
    ),
    decision(
        "next-candidate",
        "",
        &["tab"],
        "Look at the next reply to choose from.",
        debug::next_candidate,
    ),
    decision(
        "choose",
        "NUMBER",
        &[],
        "Carry out one of the other replies.",
        debug::choose,
    ),
    decision(
        "skip",
        "",
        &["x"],
        "Do nothing and look again; the reply is forgotten.",
        debug::skip,
    ),
    decision(
        "continue",
        "",
        &["c"],
        "Carry the reply out and hold no more.",
        debug::go_on,
    ),
    decision(
        "abort",
        "",
        &["A"],
        "End the held episode as cancelled; it counts nowhere.",
        debug::abort,
    ),
    decision(
        "branch",
        "[STEP]",
        &["B"],
        "Replay the episode up to the step shown on a fresh desktop, with the next rollouts.",
        debug::branch,
    ),
    row(
        "zoom",
        &["enter", "z"],
        TRAIN,
        "zoom",
        "Show the chart in focus alone, or all of them.",
        view::train_zoom,
    ),
    row(
        "next-chart",
        &["tab"],
        TRAIN,
        "chart",
        "Focus the next chart.",
        navigate::right,
    ),
    row(
        "wider",
        &["-"],
        TRAIN,
        "",
        "Show more iterations.",
        view::train_wider,
    ),
    row(
        "narrower",
        &["+", "="],
        TRAIN,
        "window",
        "Show fewer, newer iterations.",
        view::train_narrower,
    ),
    row(
        "filter",
        &["/"],
        LOGS,
        "filter",
        "Show only rows that contain a text; a leading ! inverts.",
        view::logs_filter,
    ),
    row(
        "source",
        &["o"],
        LOGS,
        "source",
        "Show only notices, journal, failures or trainer.",
        view::logs_source,
    ),
    row(
        "follow-newest",
        &["f"],
        LOGS,
        "follow",
        "Go to the newest row and follow.",
        navigate::last,
    ),
    row("up", &["k", "up"], GLOBAL, "", "Move up.", navigate::up),
    row(
        "down",
        &["j", "down"],
        GLOBAL,
        "move",
        "Move down.",
        navigate::down,
    ),
    row(
        "left",
        &["h", "left"],
        GLOBAL,
        "",
        "Move left, or to the previous step or chart.",
        navigate::left,
    ),
    row(
        "right",
        &["l", "right"],
        GLOBAL,
        "",
        "Move right, or to the next step or chart.",
        navigate::right,
    ),
    row(
        "page-up",
        &["ctrl-u", "pageup"],
        GLOBAL,
        "",
        "Move up a page.",
        navigate::page_up,
    ),
    row(
        "page-down",
        &["ctrl-d", "pagedown"],
        GLOBAL,
        "",
        "Move down a page.",
        navigate::page_down,
    ),
    row(
        "first",
        &["g", "home"],
        GLOBAL,
        "",
        "Go to the first row or step.",
        navigate::first,
    ),
    row(
        "last",
        &["G", "end"],
        GLOBAL,
        "",
        "Go to the last row or step.",
        navigate::last,
    ),
    row(
        "fleet",
        &["1"],
        GLOBAL,
        "",
        "Who needs me? All episodes under way.",
        navigate::fleet,
    ),
    row(
        "rollout",
        &["2"],
        GLOBAL,
        "",
        "Why did it do that? One episode, step by step.",
        navigate::rollout,
    ),
    row(
        "train",
        &["3"],
        GLOBAL,
        "",
        "Is learning healthy? Reward, groups, updates.",
        navigate::train,
    ),
    row(
        "logs",
        &["4"],
        GLOBAL,
        "",
        "What happened? Notices, failures, commands.",
        navigate::logs,
    ),
    row(
        "back",
        &["esc"],
        GLOBAL,
        "",
        "Go one level up.",
        navigate::back,
    ),
    row(
        "previous-screen",
        &["backspace"],
        GLOBAL,
        "",
        "Go to the screen shown before.",
        navigate::previous_screen,
    ),
    operator(
        "pause",
        "[env-step|batch|pre-update|post-checkpoint]",
        &["p"],
        "pause",
        "Pause the run at the next safe point.",
        operate::pause,
    ),
    operator(
        "resume",
        "",
        &["r"],
        "resume",
        "Let the run go on.",
        operate::resume,
    ),
    operator(
        "step-phase",
        "",
        &["s"],
        "",
        "Go on until the next safe point, then pause.",
        operate::step_phase,
    ),
    operator(
        "step-iteration",
        "",
        &["S"],
        "",
        "Go on for one iteration, then pause.",
        operate::step_iteration,
    ),
    operator(
        "checkpoint",
        "",
        &["C"],
        "",
        "Write a checkpoint at the next safe point.",
        operate::checkpoint,
    ),
    operator(
        "hold",
        "[WHOM]",
        &["d"],
        "",
        "Hold the episode shown, EPISODE, desktop:N or all before each action; others: all stand still.",
        debug::hold,
    ),
    operator(
        "release",
        "[WHOM]",
        &["D"],
        "",
        "Hold an episode no more; a reply that waits is carried out.",
        debug::release,
    ),
    operator(
        "break",
        "[CONDITION]",
        &[],
        "",
        "Hold on a condition: step N, kind ACTION, parse-error, low-logprob X, unchanged; clear.",
        debug::breakpoint,
    ),
    operator(
        "lr",
        "RATE",
        &[],
        "",
        "Use this learning rate from the next update on.",
        operate::learning_rate,
    ),
    operator(
        "temperature",
        "VALUE",
        &[],
        "",
        "Use this sampling temperature from the next rollout on.",
        operate::temperature,
    ),
    operator(
        "desktops",
        "COUNT",
        &[],
        "",
        "Use this many desktops from the next iteration on.",
        operate::desktops,
    ),
    operator(
        "stop",
        "",
        &[],
        "",
        "Stop the run after the running phase, with a checkpoint.",
        operate::stop,
    ),
    row(
        "palette",
        &[":"],
        GLOBAL,
        "command",
        "Type a command.",
        view::palette,
    ),
    row(
        "theme",
        &[],
        GLOBAL,
        "",
        "Use another theme: default, light, high-contrast.",
        view::theme,
    ),
    row(
        "mouse",
        &[],
        GLOBAL,
        "",
        "Listen to the mouse, or stop doing so.",
        view::mouse,
    ),
    row(
        "redraw",
        &["ctrl-l"],
        GLOBAL,
        "",
        "Draw everything anew and try failed pictures again.",
        view::redraw,
    ),
    row(
        "suspend",
        &["ctrl-z"],
        GLOBAL,
        "",
        "Go back to the shell; fg returns.",
        view::suspend,
    ),
    row(
        "help",
        &["?", "f1"],
        GLOBAL,
        "help",
        "Show keys, commands and codes.",
        view::help,
    ),
    row(
        "quit",
        &["q", "ctrl-c"],
        GLOBAL,
        "quit",
        "Leave the console; a run at work goes on, or stops if you say so.",
        view::quit,
    ),
];

/// The command a key stands for on a screen: the screen's own first.
pub fn command_for(key: Key, screen: Screen) -> Option<&'static CommandRow> {
    let holds = |row: &&CommandRow, scope: Scope| {
        row.scope == scope && row.keys.iter().any(|name| name.parse() == Ok(key))
    };
    let own = COMMANDS.iter().find(|row| holds(row, Scope::On(screen)));
    own.or_else(|| COMMANDS.iter().find(|row| holds(row, Scope::Global)))
}

/// The command of this name.
pub fn command_named(name: &str) -> Option<&'static CommandRow> {
    COMMANDS.iter().find(|row| row.name == name)
}

/// Commands whose name contains the letters of `typed` in order, best match first.
pub fn matching_commands(typed: &str) -> Vec<&'static CommandRow> {
    let rank = |row: &CommandRow| {
        if row.name.starts_with(typed) {
            Some(0)
        } else if row.name.contains(typed) {
            Some(1)
        } else {
            is_subsequence(typed, row.name).then_some(2)
        }
    };
    let mut ranked: Vec<_> = COMMANDS
        .iter()
        .filter_map(|row| Some((rank(row)?, row)))
        .collect();
    // What operates the run is what the palette is for; moving has keys.
    ranked.sort_by_key(|(rank, row)| (*rank, !row.operates));
    ranked.into_iter().map(|(_, row)| row).collect()
}

fn is_subsequence(letters: &str, name: &str) -> bool {
    let mut rest = name.chars();
    letters.chars().all(|letter| rest.any(|c| c == letter))
}

/// Runs a line as typed into the palette.
pub fn run_line(app: &mut App, line: &str) -> Vec<Effect> {
    let line = line.trim();
    let (name, argument) = line.split_once(' ').unwrap_or((line, ""));
    let Some(row) = command_named(name) else {
        let nearest = COMMANDS
            .iter()
            .min_by_key(|row| strsim::damerau_levenshtein(row.name, name))
            .map_or("help", |row| row.name);
        app.say(
            crate::tui::theme::Role::Danger,
            format!("no command is called {name}; did you mean {nearest}?"),
        );
        return Vec::new();
    };
    (row.run)(app, argument.trim())
}
