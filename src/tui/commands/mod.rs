//! The one table of commands: what keys, palette, hint bar, help screen and mouse have in common.
//!
//! A row names a command, documents it, gives its default keys, where they hold, what it can
//! cost, its form as `arpo ctl`, and its handler. Handlers change the view and return effects;
//! those that ask something of the engine only send, what comes of it is told by events.
//!
//! Keys are names with spaces between them where several are pressed in a row: `g g`, `y t`.

mod ask;
mod complete;
mod debug;
mod evals;
mod goto;
mod hunt;
mod lease;
mod logs;
mod machine;
mod navigate;
mod operate;
mod replay;
mod single;
mod table;
#[cfg(test)]
mod tests;
mod text;
mod timeline;
mod train;
mod view;

use crate::tui::app::{App, Screen};
use crate::tui::prompt::rank;
use crate::tui::update::Effect;

pub(in crate::tui) use ask::invoke;
pub use complete::{Choice, places};
pub(in crate::tui) use logs::{set_filter, set_search};
pub(in crate::tui) use operate::send;

/// Where a command's keys hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Everywhere.
    Global,
    /// On one screen.
    On(Screen),
    /// In the detail pane of one screen, while it is focused.
    Detail(Screen),
    /// On Rollout, while the episode it shows is held.
    Held,
}

/// What a command can cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Danger {
    /// Only the view changes.
    Harmless,
    /// Something changes that can be changed back; nothing is asked.
    Reversible,
    /// Something is lost; asks y or n and names it.
    Costly,
    /// It cannot be undone; a name must be typed. The demo asks as for costly ones.
    Irreversible,
}

impl Danger {
    /// One word.
    pub fn word(self) -> &'static str {
        match self {
            Danger::Harmless => "harmless",
            Danger::Reversible => "reversible",
            Danger::Costly => "costly",
            Danger::Irreversible => "irreversible",
        }
    }
}

/// Names what a command is about to take, given its argument: as it is asked about, or, for an
/// irreversible one, as it must be typed. An error says why there is nothing to take.
pub type Victim = fn(&App, &str) -> Result<String, String>;

/// One command.
#[derive(Clone, Copy, Debug)]
pub struct CommandRow {
    /// As it is typed.
    pub name: &'static str,
    /// Its argument, empty if it takes none.
    pub argument: &'static str,
    /// What it does, one sentence.
    pub doc: &'static str,
    /// Its default keys, the first one shown; names separated by spaces are pressed in a row.
    pub keys: &'static [&'static str],
    /// Where they hold.
    pub scope: Scope,
    /// Its word in the hint bar, empty to leave it out.
    pub hint: &'static str,
    /// Whether it asks something of the engine.
    pub operates: bool,
    /// Whether it goes through a recorded run, and so means nothing for a live one.
    pub recorded: bool,
    /// Whether it is about machines, and so means nothing for desktops that have none.
    pub machines: bool,
    /// What it can cost.
    pub danger: Danger,
    /// What it takes, if it is costly or irreversible.
    pub victim: Option<Victim>,
    /// What its argument may be, where that can be listed.
    pub complete: Option<fn(&App) -> Vec<Choice>>,
    /// What follows `arpo ctl RUN`; empty if that is name and argument.
    pub ctl: &'static str,
    /// What it does; the argument is what follows the name.
    pub run: fn(&mut App, &str) -> Vec<Effect>,
}

impl CommandRow {
    /// With an argument.
    const fn takes(mut self, argument: &'static str) -> Self {
        self.argument = argument;
        self
    }

    /// With values to choose the argument from.
    const fn completes(mut self, complete: fn(&App) -> Vec<Choice>) -> Self {
        self.complete = Some(complete);
        self
    }

    /// Only where this scope holds.
    const fn on(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self
    }

    /// With another form as `arpo ctl RUN ...`.
    const fn ctl(mut self, form: &'static str) -> Self {
        self.ctl = form;
        self
    }

    /// As one that goes through a recorded run.
    const fn recorded(mut self) -> Self {
        self.recorded = true;
        self
    }

    /// As one about the machines under desktops.
    const fn machines(mut self) -> Self {
        self.machines = true;
        self
    }

    /// As one that loses something: asks y or n, naming what `victim` names.
    #[must_use]
    pub const fn costly(mut self, victim: Victim) -> Self {
        self.danger = Danger::Costly;
        self.victim = Some(victim);
        self
    }

    /// As one that cannot be undone: the name that `victim` names must be typed.
    const fn irreversible(mut self, victim: Victim) -> Self {
        self.danger = Danger::Irreversible;
        self.victim = Some(victim);
        self
    }

    /// What follows `arpo ctl RUN`; nothing for what only this console knows.
    pub fn ctl_form(&self) -> Option<String> {
        let own = || format!("{} {}", self.name, self.argument);
        let form = if self.ctl.is_empty() {
            own()
        } else {
            self.ctl.to_owned()
        };
        self.operates.then(|| form.trim_end().to_owned())
    }
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
        recorded: false,
        machines: false,
        danger: Danger::Harmless,
        victim: None,
        complete: None,
        ctl: "",
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
        recorded: false,
        machines: false,
        danger: Danger::Reversible,
        victim: None,
        complete: None,
        ctl: "",
        run,
    }
}

/// A row that decides about the held episode that Rollout shows.
const fn decision(
    name: &'static str,
    argument: &'static str,
    keys: &'static [&'static str],
    doc: &'static str,
    run: fn(&mut App, &str) -> Vec<Effect>,
) -> CommandRow {
    CommandRow {
        scope: Scope::Held,
        ..operator(name, argument, keys, "", doc, run)
    }
}

const FLEET: Scope = Scope::On(Screen::Fleet);
const ROLLOUT: Scope = Scope::On(Screen::Rollout);
const TRAIN: Scope = Scope::On(Screen::Train);
const EVALS: Scope = Scope::On(Screen::Evals);
const REPLAY: Scope = Scope::On(Screen::Replay);
const LOGS: Scope = Scope::On(Screen::Logs);
const THOUGHT: Scope = Scope::Detail(Screen::Rollout);
const GLOBAL: Scope = Scope::Global;

/// All commands. The hint bar shows hints in this order, those of the screen first.
pub static COMMANDS: &[CommandRow] = &table::ROWS;

/// The command of this name.
pub fn command_named(name: &str) -> Option<&'static CommandRow> {
    COMMANDS.iter().find(|row| row.name == name)
}

/// The command whose name is nearest to `name`.
pub fn nearest_command(name: &str) -> &'static str {
    COMMANDS
        .iter()
        .min_by_key(|row| strsim::damerau_levenshtein(row.name, name))
        .map_or("help", |row| row.name)
}

/// Commands whose name contains the letters of `typed` in order, best match first.
pub fn matching_commands(typed: &str) -> Vec<&'static CommandRow> {
    // What operates the run is what the palette is for; moving has keys.
    let (operating, others): (Vec<_>, Vec<_>) = COMMANDS.iter().partition(|row| row.operates);
    let all: Vec<&CommandRow> = operating.into_iter().chain(others).collect();
    let names = all.iter().map(|row| row.name.to_owned());
    rank(typed, names)
        .into_iter()
        .map(|place| all[place])
        .collect()
}

/// Runs a line as typed into the palette.
pub fn run_line(app: &mut App, line: &str) -> Vec<Effect> {
    let line = line.trim();
    if let Some(place) = line.strip_prefix('@') {
        return goto::goto(app, place.trim());
    }
    let (name, argument) = line.split_once(' ').unwrap_or((line, ""));
    let Some(row) = command_named(name) else {
        let nearest = nearest_command(name);
        app.say(
            crate::tui::theme::Role::Danger,
            format!("no command is called {name}; did you mean {nearest}?"),
        );
        return Vec::new();
    };
    invoke(app, row, argument.trim())
}
