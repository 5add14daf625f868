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
mod navigate;
mod operate;
mod replay;
mod single;
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
        danger: Danger::Harmless,
        victim: None,
        complete: None,
        ctl: "",
        run,
    }
}

/// A row without keys that takes an argument.
const fn with_argument(
    name: &'static str,
    argument: &'static str,
    doc: &'static str,
    run: fn(&mut App, &str) -> Vec<Effect>,
) -> CommandRow {
    CommandRow {
        argument,
        ..row(name, &[], Scope::Global, "", doc, run)
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
    row(
        "next-candidate",
        &["tab"],
        Scope::Held,
        "",
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
    )
    .on(ROLLOUT),
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
        "next-pane",
        &["tab"],
        ROLLOUT,
        "pane",
        "Focus the thought, or the steps again.",
        view::next_pane,
    ),
    row(
        "thought-up",
        &["k", "up"],
        THOUGHT,
        "",
        "Scroll the thought up.",
        view::thought_up,
    ),
    row(
        "thought-down",
        &["j", "down"],
        THOUGHT,
        "scroll",
        "Scroll the thought down.",
        view::thought_down,
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
    row(
        "csv",
        &["X"],
        TRAIN,
        "csv",
        "Write all iterations into a CSV file.",
        train::export,
    )
    .takes("[FILE]"),
    row(
        "compare",
        &[],
        TRAIN,
        "",
        "Draw another run's course too: its folder, or its name in runs.",
        train::compare,
    )
    .takes("[RUN]"),
    operator(
        "evaluate",
        "[TASKS]",
        &["e"],
        "evaluate",
        "Ask for an evaluation: a form.",
        evals::evaluate,
    )
    .on(EVALS),
    operator(
        "cancel-evaluation",
        "[NUMBER]",
        &["X"],
        "cancel",
        "Give up the selected evaluation; its trials so far are kept.",
        evals::cancel,
    )
    .on(EVALS)
    .costly(evals::victim),
    operator(
        "resume-evaluation",
        "[NUMBER]",
        &["R"],
        "go on",
        "Go on with the selected evaluation that was cancelled.",
        evals::resume,
    )
    .on(EVALS),
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
    operator(
        "pin",
        "",
        &["L"],
        "pin",
        "Keep the success whatever newer ones come, or let it go again.",
        replay::pin,
    )
    .on(REPLAY),
    operator(
        "drop",
        "",
        &["D"],
        "drop",
        "Remove the success from the replay buffer.",
        replay::drop_stored,
    )
    .on(REPLAY)
    .costly(replay::stored_victim),
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
    row(
        "search",
        &["ctrl-f"],
        LOGS,
        "",
        "Look for a regular expression; n and N go on.",
        logs::search,
    )
    .takes("[REGEX]"),
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
        &["g g", "home"],
        GLOBAL,
        "",
        "Go to the first row or step.",
        navigate::first,
    ),
    row(
        "last",
        &["G", "end", "g e"],
        GLOBAL,
        "",
        "Go to the last row or step.",
        navigate::last,
    ),
    row(
        "slowest",
        &["g s"],
        GLOBAL,
        "",
        "Go to the desktop that has not moved for longest.",
        hunt::slowest,
    ),
    row(
        "failure",
        &["g x"],
        GLOBAL,
        "",
        "Go to the end of the newest failed episode; again, to the one before.",
        hunt::failure,
    ),
    row(
        "malformed",
        &["g m"],
        GLOBAL,
        "",
        "Go to the newest reply that did not parse; again, to the one before.",
        hunt::malformed,
    ),
    row(
        "widest",
        &["g d"],
        GLOBAL,
        "",
        "Go to the group whose outcomes differ most.",
        hunt::widest,
    ),
    row(
        "replayed",
        &["g r"],
        GLOBAL,
        "",
        "Go to the group that replay helped most.",
        hunt::replayed,
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
    row(
        "screen",
        &[],
        GLOBAL,
        "",
        "Go to a screen by its name.",
        goto::screen,
    )
    .takes("SCREEN")
    .completes(complete::screens),
    row(
        "goto",
        &["'"],
        GLOBAL,
        "",
        "Jump to a group, a sample, an episode or a task.",
        goto::goto,
    )
    .takes("[PLACE]")
    .completes(places),
    operator(
        "pause",
        "[env-step|batch|pre-update|post-checkpoint]",
        &["p"],
        "pause",
        "Pause the run at the next safe point.",
        operate::pause,
    )
    .completes(complete::safe_points)
    .ctl("pause --at POINT"),
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
        &["i"],
        "",
        "Hold the episode shown, EPISODE, desktop:N or all before each action; others: all stand still.",
        debug::hold,
    ),
    operator(
        "release",
        "[WHOM]",
        &["I"],
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
    )
    .ctl("set-lr RATE"),
    operator(
        "temperature",
        "VALUE",
        &[],
        "",
        "Use this sampling temperature from the next rollout on.",
        operate::temperature,
    )
    .ctl("set-temperature VALUE"),
    operator(
        "desktops",
        "COUNT",
        &[],
        "",
        "Use this many desktops from the next iteration on.",
        operate::desktops,
    )
    .ctl("set-desktops COUNT"),
    operator(
        "kill",
        "[EPISODE]",
        &["K"],
        "",
        "End the episode; its group goes on without it.",
        single::kill,
    )
    .costly(single::episode_victim)
    .ctl("kill EPISODE"),
    operator(
        "reroll",
        "[EPISODE]",
        &[],
        "",
        "End the episode and try it again with another seed.",
        single::reroll,
    )
    .costly(single::episode_victim)
    .ctl("reroll EPISODE"),
    operator(
        "reboot",
        "[DESKTOP]",
        &["ctrl-b"],
        "",
        "Close the desktop and open it anew; its episode is tried again.",
        single::reboot,
    )
    .costly(single::desktop_victim)
    .ctl("reboot DESKTOP"),
    operator(
        "clip",
        "LOW HIGH",
        &[],
        "",
        "Clip ratios to 1 - LOW and 1 + HIGH from the next update on.",
        single::clip,
    )
    .ctl("set-clip LOW HIGH"),
    operator(
        "replay-buffer",
        "on|off",
        &[],
        "",
        "Draw from the replay buffer and store into it, or not, from the next iteration on.",
        single::replay_buffer,
    )
    .completes(complete::switches)
    .ctl("set-replay true|false"),
    operator(
        "stop",
        "",
        &[],
        "",
        "Stop the run after the running phase, with a checkpoint.",
        operate::stop,
    )
    .irreversible(operate::run_to_stop),
    row(
        "palette",
        &[":"],
        GLOBAL,
        "command",
        "Type a command.",
        view::palette,
    ),
    row(
        "profile",
        &[],
        GLOBAL,
        "",
        "Show the run's profile, or what differs from another run's.",
        logs::profile,
    )
    .takes("[diff RUN]"),
    row("theme", &[], GLOBAL, "", "Use another theme.", view::theme)
        .takes("THEME")
        .completes(complete::themes),
    row(
        "copy-id",
        &["y i", "y y"],
        GLOBAL,
        "",
        "Copy the episode's id.",
        text::copy_id,
    ),
    row(
        "copy-thought",
        &["y t"],
        GLOBAL,
        "",
        "Copy the thought of the step.",
        text::copy_thought,
    ),
    row(
        "copy-action",
        &["y a"],
        GLOBAL,
        "",
        "Copy the action of the step.",
        text::copy_action,
    ),
    row(
        "copy-ctl",
        &["y c"],
        GLOBAL,
        "",
        "Copy the newest command as its arpo ctl line.",
        text::copy_ctl,
    ),
    row(
        "copy-view",
        &["y v"],
        GLOBAL,
        "",
        "Copy what the screen shows, as text.",
        text::copy_view,
    ),
    row(
        "export",
        &["x"],
        GLOBAL,
        "",
        "Write what the screen shows into a file.",
        text::export,
    )
    .takes("[PATH]"),
    row(
        "pager",
        &["V"],
        GLOBAL,
        "",
        "Show what the screen shows in $PAGER, in full.",
        text::pager,
    ),
    row(
        "editor",
        &[],
        GLOBAL,
        "",
        "Open what the screen shows in $EDITOR.",
        text::editor,
    ),
    row(
        "iteration-back",
        &["["],
        GLOBAL,
        "",
        "Go to the iteration before.",
        timeline::iteration_back,
    )
    .recorded(),
    row(
        "iteration-on",
        &["]"],
        GLOBAL,
        "iteration",
        "Go to the next iteration.",
        timeline::iteration_on,
    )
    .recorded(),
    row(
        "time-back",
        &["{"],
        GLOBAL,
        "",
        "Go back a hundredth of the run's time.",
        timeline::time_back,
    )
    .recorded(),
    row(
        "time-on",
        &["}"],
        GLOBAL,
        "",
        "Go on a hundredth of the run's time.",
        timeline::time_on,
    )
    .recorded(),
    row(
        "seek",
        &[],
        GLOBAL,
        "",
        "Go to an iteration, a time or a part: 12, +3, 1:30, 40%, end.",
        timeline::seek,
    )
    .takes("PLACE")
    .recorded(),
    row(
        "play",
        &["ctrl-p"],
        GLOBAL,
        "play",
        "Play the run, so many times as fast as it went, or stand still.",
        timeline::play,
    )
    .takes("[TIMES]")
    .recorded(),
    row(
        "take",
        &[],
        GLOBAL,
        "",
        "Ask the console that writes to let this one write.",
        lease::take,
    ),
    row(
        "give",
        &[],
        GLOBAL,
        "",
        "Write no more on this run; another console may.",
        lease::release,
    ),
    row(
        "ascii",
        &[],
        GLOBAL,
        "",
        "Draw frames, charts and marks in ASCII, or stop doing so.",
        view::ascii,
    ),
    with_argument(
        "images",
        "auto|kitty|sixel|cells|half|off",
        "Show pictures so from now on.",
        view::images,
    ),
    with_argument(
        "picture-rate",
        "KILOBYTES",
        "Let pictures take at most this many kilobytes a second.",
        view::picture_rate,
    ),
    row(
        "about",
        &[],
        GLOBAL,
        "",
        "Show what the terminal can do, what it answered, how the line to it is.",
        view::about,
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
        "keys",
        &[],
        GLOBAL,
        "",
        "Show what every key means, and conflicts of your own keys.",
        view::keys,
    ),
    row(
        "detach",
        &["Q"],
        GLOBAL,
        "",
        "Leave at once; the run goes on.",
        view::detach,
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
