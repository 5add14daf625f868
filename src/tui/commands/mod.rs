//! The one table of commands: what keys, palette, hint bar, help screen and mouse have in common.
//!
//! A row names a command, documents it, gives its default keys, the screen they hold on, and its
//! handler. Handlers change the view and return effects; those that ask something of the engine
//! only send, what comes of it is told by events.

mod evals;
mod logs;
mod navigate;
mod operate;
mod replay;
#[cfg(test)]
mod tests;
mod train;
mod view;

use crate::tui::app::{App, Screen};
use crate::tui::keys::Key;
use crate::tui::update::Effect;

pub(in crate::tui) use logs::{set_filter, set_search};
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

const FLEET: Scope = Scope::On(Screen::Fleet);
const ROLLOUT: Scope = Scope::On(Screen::Rollout);
const TRAIN: Scope = Scope::On(Screen::Train);
const EVALS: Scope = Scope::On(Screen::Evals);
const REPLAY: Scope = Scope::On(Screen::Replay);
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
        "Go on from matrix to cards, from cards to pictures alone, and back.",
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
    row(
        "after",
        &["b"],
        ROLLOUT,
        "before/after",
        "Show the screen after the step, or the one it was decided on.",
        view::rollout_after,
    ),
    row(
        "changes",
        &["d"],
        ROLLOUT,
        "changes",
        "Outline what the step changed on the screen.",
        view::rollout_changes,
    ),
    row(
        "thought",
        &["t"],
        ROLLOUT,
        "thought",
        "Show the thought alone, in full.",
        view::rollout_thought,
    ),
    row(
        "siblings",
        &["c"],
        ROLLOUT,
        "compare",
        "Show the group's episodes side by side; where they part is marked.",
        view::rollout_compare,
    ),
    row(
        "zoom",
        &["enter", "z"],
        TRAIN,
        "zoom",
        "Show the chart in focus alone, or all of them.",
        train::zoom,
    ),
    row(
        "next-chart",
        &["tab"],
        TRAIN,
        "chart",
        "Focus the next chart.",
        train::next_chart,
    ),
    row(
        "previous-chart",
        &["backtab"],
        TRAIN,
        "",
        "Focus the previous chart.",
        train::previous_chart,
    ),
    row(
        "wider",
        &["-"],
        TRAIN,
        "",
        "Show more iterations.",
        train::wider,
    ),
    row(
        "narrower",
        &["+", "="],
        TRAIN,
        "window",
        "Show fewer, newer iterations.",
        train::narrower,
    ),
    row(
        "log-axis",
        &["L"],
        TRAIN,
        "log axis",
        "Make the axes of all charts logarithmic, or linear.",
        train::log_axis,
    ),
    CommandRow {
        argument: "[FILE]",
        ..row(
            "export",
            &["x"],
            TRAIN,
            "export",
            "Write all iterations into a CSV file.",
            train::export,
        )
    },
    CommandRow {
        argument: "[RUN]",
        ..row(
            "compare",
            &[],
            TRAIN,
            "",
            "Draw another run's course too: its folder, or its name in runs.",
            train::compare,
        )
    },
    CommandRow {
        keys: &["e"],
        scope: EVALS,
        ..operator(
            "evaluate",
            "[TASKS]",
            &[],
            "evaluate",
            "Ask for an evaluation: a form.",
            evals::evaluate,
        )
    },
    CommandRow {
        keys: &["X"],
        scope: EVALS,
        ..operator(
            "cancel-evaluation",
            "[NUMBER]",
            &[],
            "cancel",
            "Give up the selected evaluation; its trials so far are kept.",
            evals::cancel,
        )
    },
    CommandRow {
        keys: &["R"],
        scope: EVALS,
        ..operator(
            "resume-evaluation",
            "[NUMBER]",
            &[],
            "go on",
            "Go on with the selected evaluation that was cancelled.",
            evals::resume,
        )
    },
    row(
        "mark-evaluation",
        &["space"],
        EVALS,
        "mark",
        "Mark the evaluation: two marked ones are compared.",
        evals::mark,
    ),
    row(
        "flips",
        &["f", "enter"],
        EVALS,
        "flips",
        "Show what two evaluations solved differently, or the scores.",
        evals::flips,
    ),
    row(
        "flip-protocol",
        &["t"],
        EVALS,
        "protocol",
        "Count flips under the next protocol.",
        evals::protocol,
    ),
    row(
        "open-stored",
        &["enter"],
        REPLAY,
        "open",
        "Open the stored success in Rollout.",
        replay::open,
    ),
    row(
        "next-stored",
        &["tab"],
        REPLAY,
        "entry",
        "Show the task's next older success.",
        replay::next_entry,
    ),
    row(
        "previous-stored",
        &["backtab"],
        REPLAY,
        "",
        "Show the task's next newer success.",
        replay::previous_entry,
    ),
    CommandRow {
        keys: &["L"],
        scope: REPLAY,
        ..operator(
            "pin",
            "",
            &[],
            "pin",
            "Keep the success whatever newer ones come, or let it go again.",
            replay::pin,
        )
    },
    CommandRow {
        keys: &["D"],
        scope: REPLAY,
        ..operator(
            "drop",
            "",
            &[],
            "drop",
            "Remove the success from the replay buffer.",
            replay::drop_stored,
        )
    },
    row(
        "replay-sort",
        &["o"],
        REPLAY,
        "sort",
        "Order tasks by last injection, age, name or uses.",
        replay::sort,
    ),
    row(
        "replay-never",
        &["E"],
        REPLAY,
        "never solved",
        "Show only tasks that have never succeeded, or all.",
        replay::only_never,
    ),
    row(
        "filter",
        &["/"],
        LOGS,
        "filter",
        "Show only rows that match a regular expression; a leading ! inverts.",
        logs::filter,
    ),
    row(
        "source",
        &["o"],
        LOGS,
        "source",
        "Show only notices, journal, failures or trainer.",
        logs::source,
    ),
    row(
        "open-record",
        &["enter"],
        LOGS,
        "open",
        "Open the episode of the selected row in Rollout.",
        logs::open,
    ),
    row(
        "graver",
        &[">"],
        LOGS,
        "level",
        "Show only graver rows: warnings, then errors.",
        logs::graver,
    ),
    row(
        "milder",
        &["<"],
        LOGS,
        "",
        "Show less grave rows too.",
        logs::milder,
    ),
    CommandRow {
        argument: "[REGEX]",
        ..row(
            "search",
            &["ctrl-f"],
            LOGS,
            "",
            "Look for a regular expression; n and N go on.",
            logs::search,
        )
    },
    row(
        "next-match",
        &["n"],
        LOGS,
        "match",
        "Go to the next older row found; without a search, to a warning or an error.",
        logs::next_match,
    ),
    row(
        "previous-match",
        &["N"],
        LOGS,
        "",
        "Go to the next newer row found.",
        logs::previous_match,
    ),
    row(
        "cause",
        &["c"],
        LOGS,
        "cause",
        "Go to the first cause of the newest pause.",
        logs::cause,
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
        "evals",
        &["4"],
        GLOBAL,
        "",
        "Is it better, honestly? Evaluations by protocol.",
        navigate::evals,
    ),
    row(
        "replay",
        &["5"],
        GLOBAL,
        "",
        "Is replay helping or poisoning? Stored successes by task.",
        navigate::replay,
    ),
    row(
        "logs",
        &["6"],
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
    CommandRow {
        argument: "[diff RUN]",
        ..row(
            "profile",
            &[],
            GLOBAL,
            "",
            "Show the run's profile, or what differs from another run's.",
            logs::profile,
        )
    },
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
