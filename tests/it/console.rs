//! The built console on a real run, on a pseudo-terminal: every screen and every command of the
//! table, each with what must come of it on the screen, in the terminal or in the engine.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use arpo::bus::{Role, SourceItem, attach, probe};
use arpo::event::{
    Command, CommandStatus, DebugCommand, Decision, EpisodeState, EvaluationStatus, EventKind,
    Purpose, RunState, TrainerState,
};
use arpo::store::RunDir;
use arpo::tui::commands::COMMANDS;
use arpo::tui::fleet::episode_name;
use arpo::types::EpisodeId;
use regex::Regex;

use crate::live::SMALL;
use crate::pty::{Looks, PATIENCE, Plays, Session, record_run};

/// What shows that a command did its work.
#[derive(Clone, Copy)]
enum Proof {
    /// The screen says so.
    Shows(&'static str),
    /// The screen says one of these: it depends on what the run has come to.
    ShowsEither(&'static str, &'static str),
    /// The screen says so no more.
    Hides(&'static str),
    /// The screen is another one; only while the run stands still, so that nothing else moves it.
    Moves,
    /// The terminal is told so.
    Writes(&'static [u8]),
    /// The engine did what was asked.
    Done(fn(&Command) -> bool),
    /// The engine took it on; what comes of it is another step's.
    Accepted(fn(&Command) -> bool),
    /// The run is so.
    Is(fn(&RunState) -> bool),
}

/// Keys, and what comes of them.
struct Act {
    /// The commands they run, of the table.
    commands: &'static [&'static str],
    keys: &'static str,
    proof: Proof,
}

const fn act(commands: &'static [&'static str], keys: &'static str, proof: Proof) -> Act {
    Act {
        commands,
        keys,
        proof,
    }
}

/// Keys between commands, and waiting.
const fn then(keys: &'static str, proof: Proof) -> Act {
    act(&[], keys, proof)
}

macro_rules! is {
    ($pattern:pat $(if $guard:expr)?) => {
        |command| matches!(command, $pattern $(if $guard)?)
    };
}

/// A command of the debugger.
macro_rules! debugs {
    ($pattern:pat) => {
        |command| matches!(command, Command::Debug($pattern))
    };
}

/// A decision about a held episode.
macro_rules! decides {
    ($pattern:pat) => {
        debugs!(DebugCommand::Decide {
            decision: $pattern,
            ..
        })
    };
}

use Proof::{Accepted, Done, Hides, Is, Moves, Shows, ShowsEither, Writes};

fn stands(state: &RunState) -> bool {
    matches!(state.trainer, TrainerState::Paused(_))
}

fn stands_mid_episode(state: &RunState) -> bool {
    stands(state) && state.episodes_in_flight() > 0
}

fn has_learned_and_stored(state: &RunState) -> bool {
    let stored = state.replay.values().any(|task| !task.successes.is_empty());
    state.history.len() >= 12 && stored
}

/// An episode with several steps to look at.
fn is_long(_: &RunState, one: &EpisodeState) -> bool {
    one.purpose == Purpose::Train && !one.is_running() && one.steps.len() > 2
}

/// An episode that is held before its first action.
fn is_held_first(state: &RunState, one: &EpisodeState) -> bool {
    state.held.get(&one.id).is_some_and(|held| held.step == 0)
}

/// While the run goes on: settings and the lease.
const RUNNING: &[Act] = &[
    then(
        "{arpo} train {small} --iterations 500 --run {run}\r",
        Shows("by attention"),
    ),
    then("", Is(has_learned_and_stored)),
    act(
        &["lr"],
        ":lr 1e-4\r",
        Done(is!(Command::SetLearningRate { .. })),
    ),
    act(
        &["temperature"],
        ":temperature 0.9\r",
        Done(is!(Command::SetTemperature { .. })),
    ),
    act(
        &["clip"],
        ":clip .2 .3\r",
        Done(is!(Command::SetClip { .. })),
    ),
    act(
        &["replay-buffer"],
        ":replay-buffer off\r",
        Done(is!(Command::SetReplay { enabled: false })),
    ),
    act(
        &["desktops"],
        ":desktops 5\r",
        Done(is!(Command::SetDesktops { value: 5 })),
    ),
    act(&["checkpoint"], "C", Done(is!(Command::Checkpoint))),
    act(&["give"], ":give\r", Shows("nobody writes")),
    act(&["take"], ":take\r", Shows("rw:you")),
    act(&["pause"], "p", Done(is!(Command::Pause { .. }))),
    act(&["step-phase"], "s", Done(is!(Command::StepPhase))),
    act(&["step-iteration"], "S", Done(is!(Command::StepIteration))),
    act(&["resume"], "r", Done(is!(Command::Resume))),
    then("p", Is(stands_mid_episode)),
];

/// On Fleet and Rollout, while nothing moves.
const LOOKING: &[Act] = &[
    act(&["train"], "3", Shows("Group std")),
    act(&["fleet"], "1", Shows("by attention")),
    then("gg", Shows("by attention")),
    act(&["down"], "j", Moves),
    act(&["up"], "k", Moves),
    act(&["right"], "l", Moves),
    act(&["left"], "h", Moves),
    act(&["last"], "G", Moves),
    act(&["first"], "gg", Moves),
    act(&["sort"], "o", Shows("by number")),
    then("o", Shows("by attention")),
    act(&["desktops-view"], "b", Shows("6 desktops")),
    then("b", Shows("by attention")),
    act(&["layout"], "z", Hides("by attention")),
    then("z", Moves),
    then("z", Shows("by attention")),
    act(&["slowest"], "gs", Shows("has not moved for")),
    act(&["failure"], "gx", Shows("outcome .")),
    act(&["goto"], "'{long}\r", Shows("{sample}")),
    act(&["first-step"], "H", Shows("Screen at step 1 ")),
    act(&["last-step"], "L", Hides("Screen at step 1 ")),
    act(&["after"], "b", Shows("Screen after step")),
    then("b", Shows("Screen at step")),
    act(&["changes"], "d", Shows("changed")),
    act(&["thought"], "t", Hides("Screen at step")),
    then("t", Shows("Screen at step")),
    act(&["picture"], "v", Hides("Thought at step")),
    then("v", Shows("Thought at step")),
    act(&["siblings"], "c", Hides("Thought at step")),
    then("c", Shows("Thought at step")),
    act(&["tokens"], "T", Shows("Tokens at step")),
    then("T", Shows("Thought at step")),
    act(&["next-pane"], "\t", Shows("j scroll")),
    then("\t", Hides("j scroll")),
    act(&["next-sibling"], "n", Moves),
    act(&["previous-sibling"], "N", Moves),
    act(&["copy-id"], "yi", Writes(b"\x1b]52;c;")),
    act(&["copy-thought"], "yt", Writes(b"\x1b]52;c;")),
    act(&["copy-action"], "ya", Writes(b"\x1b]52;c;")),
    act(&["copy-ctl"], "yc", Writes(b"\x1b]52;c;")),
    act(&["copy-view"], "yv", Writes(b"\x1b]52;c;")),
    act(&["vm-log"], "M", Shows("nothing was logged")),
    then("\x1b", Hides("nothing was logged")),
    act(
        &["export"],
        ":export {folder}/shown.txt\r",
        Shows("shown.txt"),
    ),
    act(&["pager"], "V", Shows("pager has")),
    then("\r", Shows("Thought at step")),
    act(&["editor"], ":editor\r", Shows("editor has")),
    then("\r", Shows("Thought at step")),
    act(&["follow"], " ", Moves),
    act(
        &["widest"],
        "gd",
        ShowsEither("no group with two outcomes here", "by attention"),
    ),
    act(
        &["malformed"],
        "gm",
        ShowsEither("no reply that did not parse here", "did not parse: "),
    ),
    then("2", Shows("space follow")),
    act(
        &["replayed"],
        "gr",
        ShowsEither("no group that replay helped here", "by attention"),
    ),
    then("2", Shows("space follow")),
    then("\x1b", Hides("replay helped here")),
    act(&["back"], "\x1b", Shows("by attention")),
    then("'g00\r", Shows("by attention")),
    act(&["open"], "\r", Shows("space follow")),
    then("3", Shows("Group std")),
    act(&["rollout"], "2", Shows("space follow")),
    act(&["previous-screen"], "\x7f", Shows("Group std")),
    act(&["screen"], ":screen logs\r", Shows("source all")),
];

/// On Train, Logs, Replay and Evals.
const READING: &[Act] = &[
    then("3", Shows("Group std")),
    act(&["next-chart"], "\t", Moves),
    act(&["previous-chart"], "\x1b[Z", Moves),
    act(&["zoom"], "z", Hides("Group std")),
    then("z", Shows("Group std")),
    act(&["narrower"], "+", Moves),
    act(&["wider"], "--", Moves),
    act(&["log-axis"], "L", Shows("mean outcome, log")),
    act(&["csv"], ":csv {folder}/table.csv\r", Shows("table.csv")),
    then("gg", Shows("iteration 1 ")),
    act(
        &["compare"],
        ":compare {folder}/runs/other\r",
        Shows("other reward "),
    ),
    act(&["logs"], "6", Shows("source all")),
    then("k", Shows("held")),
    act(&["follow-newest"], "f", Shows("following")),
    act(&["page-up"], "\x15", Shows("held")),
    act(&["page-down"], "\x04", Shows("following")),
    act(&["filter"], "/journal\r", Shows("filter /journal/")),
    then("/\x15\r", Hides("filter /journal/")),
    act(&["source"], "o", Hides("source all")),
    then("oooo", Shows("source all")),
    act(&["graver"], ">", Shows("level warn")),
    act(&["milder"], "<", Shows("level info")),
    act(&["search"], "\x06journal\r", Shows("search /journal/")),
    act(&["next-match"], "n", Shows("$ arpo ctl everything resume")),
    act(
        &["previous-match"],
        "N",
        Hides("$ arpo ctl everything resume\n"),
    ),
    act(&["cause"], "c", Shows("cause")),
    act(&["open-record"], "\r", Shows("about no episode")),
    act(&["replay"], "5", Shows("by last injection")),
    act(&["replay-sort"], "o", Shows("by age")),
    act(&["replay-never"], "E", Shows("never succeeded")),
    then("E", Hides("never succeeded")),
    act(&["next-stored"], "\t", Moves),
    act(&["previous-stored"], "\x1b[Z", Moves),
    act(
        &["pin"],
        "L",
        Done(is!(Command::PinStored { pinned: true, .. })),
    ),
    then("D", Shows("y yes  n no")),
    act(&["drop"], "y", Done(is!(Command::DropStored { .. }))),
    act(&["open-stored"], "\r", Moves),
];

/// An evaluation: asked for, given up, gone on with, looked at.
const MEASURING: &[Act] = &[
    act(&["evals"], "4", Shows("e evaluate")),
    then(":evaluate {folder}/tasks.json\r", Shows("enter launches")),
    act(&["evaluate"], "\r", Accepted(is!(Command::Evaluate(_)))),
    then("", Is(|state| state.evaluations.len() == 1)),
    then("X", Shows("#1 with")),
    act(
        &["cancel-evaluation"],
        "y",
        Done(is!(Command::CancelEvaluation { .. })),
    ),
    act(
        &["resume-evaluation"],
        "R",
        Accepted(is!(Command::Evaluate(_))),
    ),
    then(
        "r",
        Is(|state| matches!(state.evaluations[0].status, EvaluationStatus::Finished)),
    ),
    act(&["mark-evaluation"], " j ", Hides("marks two evaluations")),
    act(&["flips"], "f", Shows("unlike conditions")),
    act(&["flip-protocol"], "t", Hides("  standard ━")),
];

/// Each decision about an episode that is held, and what is done to those that are not.
const DECIDING: &[Act] = &[
    act(
        &["break"],
        ":break step 1\r",
        Done(debugs!(DebugCommand::SetBreakpoint { .. })),
    ),
    then("1'{held}\r", Shows("Held before its action at step 1")),
    act(
        &["regenerate"],
        ":regenerate 2\r",
        Done(decides!(Decision::Regenerate { count: 2 })),
    ),
    act(&["next-candidate"], "\t", Moves),
    act(
        &["choose"],
        ":choose 2\r",
        Done(decides!(Decision::Choose { candidate: 2 })),
    ),
    then("1'{held}\r", Shows("Held before its action at step 1")),
    act(&["accept"], "\r", Done(decides!(Decision::Accept))),
    then("1'{held}\r", Shows("Held before its action at step 1")),
    act(
        &["edit"],
        ":edit Action: wait()\r",
        Done(decides!(Decision::Edit { .. })),
    ),
    then("1'{held}\r", Shows("Held before its action at step 1")),
    then("w", Shows("Write the reply at step 1")),
    act(
        &["write"],
        "{words}\rAction: wait()\x13",
        Done(decides!(Decision::Write { .. })),
    ),
    then("H\t", Shows("j scroll")),
    act(&["thought-down"], "j", Moves),
    act(&["thought-up"], "k", Moves),
    then("1'{held}\r", Shows("Held before its action at step 1")),
    act(&["skip"], "x", Done(decides!(Decision::Skip))),
    then("1'{held}\r", Shows("Held before its action at step 1")),
    act(&["continue"], "c", Done(decides!(Decision::Continue))),
    then("1'{held}\r", Shows("Held before its action at step 1")),
    act(&["abort"], "A", Done(decides!(Decision::Abort))),
    then("1'{held}\r", Shows("Held before its action at step 1")),
    act(&["hold"], "i", Done(debugs!(DebugCommand::Hold { .. }))),
    act(
        &["release"],
        "I",
        Done(debugs!(DebugCommand::Release { .. })),
    ),
    then("1'{held}\r", Shows("Held before its action at step 1")),
    then("K", Shows("y yes  n no")),
    act(&["kill"], "y", Done(is!(Command::KillEpisode { .. }))),
    then("1'{held}\r", Shows("Held before its action at step 1")),
    then(":reroll\r", Shows("y yes  n no")),
    act(&["reroll"], "y", Done(is!(Command::RerollEpisode { .. }))),
    then("1'{held}\r", Shows("Held before its action at step 1")),
    then("\x02", Shows("y yes  n no")),
    act(&["reboot"], "y", Done(is!(Command::RebootDesktop { .. }))),
    then(
        ":break clear\r",
        Done(debugs!(DebugCommand::ClearBreakpoint { .. })),
    ),
    then(
        ":release all\r",
        Done(debugs!(DebugCommand::Release { .. })),
    ),
    then("p", Is(stands_mid_episode)),
    then("'{long}\r", Shows("{sample}")),
    act(
        &["branch"],
        "B",
        Accepted(debugs!(DebugCommand::Branch { .. })),
    ),
    then(
        "r",
        Is(|state| {
            state
                .episodes
                .values()
                .any(|one| one.debug.branched_from.is_some())
        }),
    ),
    then("p", Is(stands)),
];

/// The console itself, up to its end.
const LEAVING: &[Act] = &[
    act(&["palette"], ":", Shows("tab completes")),
    then("\x1b", Hides("tab completes")),
    act(&["help"], "?", Shows("asks the engine")),
    then("\x1b", Hides("asks the engine")),
    act(&["keys"], ":keys\r", Shows("━ Keys ━")),
    then("\x1b", Hides("━ Keys ━")),
    act(&["about"], ":about\r", Shows("XTerm")),
    then("\x1b", Hides("XTerm")),
    act(&["profile"], "gp", Shows("Changed while it runs")),
    then("\x1b", Hides("Changed while it runs")),
    act(&["theme"], ":theme light\r", Moves),
    then(":theme dark\r", Moves),
    act(&["images"], ":images off\r", Shows("pictures: off")),
    act(
        &["picture-rate"],
        ":picture-rate 20\r",
        Shows("at most 20 kB/s"),
    ),
    act(&["ascii"], ":ascii\r", Hides("━")),
    then(":ascii\r", Shows("━")),
    act(&["mouse"], ":mouse\r", Writes(b"\x1b[?1000h")),
    act(&["redraw"], "\x0c", Writes(b"\x1b[2J")),
    act(&["suspend"], "\x1a", Shows("Stopped")),
    then("clear; fg\r", Shows("rw:you")),
    act(&["quit"], "q", Shows("stay")),
    then("\x1b", Hides("esc stay")),
    act(&["detach"], "Q", Shows("prompt>")),
    then("clear; {arpo} attach everything\r", Shows("rw:you")),
    then(":stop\r", Shows("cannot be undone")),
    act(&["stop"], "everything\r", Done(is!(Command::Stop))),
    then("", Shows("prompt>")),
];

/// The time line of the run, now recorded.
const REPLAYED: &[Act] = &[
    then("clear; {arpo} show {run}\r", Shows("recorded")),
    act(&["seek"], ":seek 2\r", Shows("iteration 2/")),
    act(&["iteration-on"], "]", Shows("iteration 3/")),
    act(&["iteration-back"], "[", Shows("iteration 2/")),
    act(&["time-on"], "}", Moves),
    act(&["time-back"], "{", Moves),
    act(&["play"], "\x10", Shows("play x10")),
    then("\x10", Shows("still")),
    then("q", Shows("prompt>")),
];

const ACTS: &[&[Act]] = &[
    RUNNING, LOOKING, READING, MEASURING, DECIDING, LEAVING, REPLAYED,
];

type Ids = BTreeSet<EpisodeId>;

/// The run as the engine tells it, followed beside the console.
#[derive(Clone)]
struct Follower(Arc<(Mutex<RunState>, Condvar)>);

impl Follower {
    /// Follows the run at `socket`, once it listens.
    fn start(socket: &Path) -> Self {
        let shared = Arc::new((Mutex::new(RunState::default()), Condvar::new()));
        let follower = Self(Arc::clone(&shared));
        let socket = socket.to_owned();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(follow(&socket, &shared));
        });
        follower
    }

    /// Waits until the run is as wanted.
    #[track_caller]
    fn wait_until(&self, wanted: impl Fn(&RunState) -> bool) {
        let (state, changed) = &*self.0;
        let state = state.lock().unwrap();
        let (state, waited) = changed
            .wait_timeout_while(state, PATIENCE, |state| !wanted(state))
            .unwrap();
        let newest = state.commands.back();
        assert!(
            !waited.timed_out(),
            "{:?}, phase {:?}, held {:?}, in flight {}, {newest:?}",
            state.trainer,
            state.phase(),
            state.held.keys(),
            state.episodes_in_flight(),
        );
    }

    /// The name of the newest episode that is so, once there is one.
    fn name_of(
        &self,
        is_so: &dyn Fn(&RunState, &EpisodeState) -> bool,
        name: &dyn Fn(&EpisodeState) -> String,
    ) -> String {
        self.wait_until(|state| state.episodes.values().any(|one| is_so(state, one)));
        let state = self.0.0.lock().unwrap();
        let mut all = state.episodes.values().rev();
        all.find(|one| is_so(&state, one))
            .map_or_else(String::new, name)
    }

    /// Commands answered so far.
    fn commands(&self) -> usize {
        self.0.0.lock().unwrap().commands.len()
    }
}

async fn follow(socket: &Path, shared: &(Mutex<RunState>, Condvar)) {
    while probe(socket).await.is_err() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let mut source = attach(socket, Role::Watch, "test").await.unwrap();
    *shared.0.lock().unwrap() = std::mem::take(&mut source.state);
    while let Some(item) = source.items.recv().await {
        match item {
            SourceItem::Event(event) => shared.0.lock().unwrap().apply(&event),
            SourceItem::Resync { state, .. } => *shared.0.lock().unwrap() = *state,
            SourceItem::Heard | SourceItem::Lease(_) | SourceItem::Timeline(_) => {}
            SourceItem::Lost { .. } => return,
        }
        shared.1.notify_all();
    }
}

/// A console and the run behind it.
struct Stage {
    session: Session,
    run: Follower,
    folder: tempfile::TempDir,
}

impl Stage {
    /// A shell on a terminal.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        std::fs::create_dir(path("runs")).unwrap();
        record_run(Path::new(&path("runs/other")));
        std::fs::write(path("tasks.json"), r#"["compact/ed_sub/1000000"]"#).unwrap();
        for program in ["pager", "editor"] {
            let script = format!("echo the {program} has $(wc -c < \"$1\") bytes\nread end\n");
            std::fs::write(path(program), script).unwrap();
        }
        let own = ["PAGER", "EDITOR"].map(|name| {
            let program = name.to_lowercase();
            (name, format!("sh {}", path(&program)))
        });
        let (sockets, state) = (path("sockets"), path("state"));
        let env = [
            ("ARPO_RUNTIME_DIR", sockets.as_str()),
            ("XDG_STATE_HOME", &state),
            (own[0].0, &own[0].1),
            (own[1].0, &own[1].1),
        ];
        let session = Session::shell(Plays::Xterm, (40, 120), &env);
        let run = Follower::start(Path::new(&path("sockets/everything.sock")));
        Self {
            session,
            run,
            folder,
        }
    }

    /// With what only this run knows in its place.
    fn fill(&self, text: &str) -> String {
        let folder = || self.folder.path().to_str().unwrap().to_owned();
        let known: [(&str, &dyn Fn() -> String); 8] = [
            ("{arpo}", &|| env!("CARGO_BIN_EXE_arpo").to_owned()),
            ("{run}", &|| folder() + "/runs/everything"),
            ("{folder}", &folder),
            ("{small}", &|| SMALL.join(" ")),
            ("{long}", &|| {
                self.run.name_of(&is_long, &|one| one.id.to_string())
            }),
            ("{sample}", &|| self.run.name_of(&is_long, &episode_name)),
            ("{held}", &|| {
                self.run.name_of(&is_held_first, &episode_name)
            }),
            ("{words}", &|| {
                "Thought: words that fill the pane. ".to_owned() + &"More of them. ".repeat(80)
            }),
        ];
        let mut text = text.to_owned();
        for (name, value) in known {
            if text.contains(name) {
                text = text.replace(name, &value());
            }
        }
        text
    }

    #[track_caller]
    #[expect(clippy::print_stderr, reason = "told where the test fails")]
    fn play(&mut self, act: &Act) {
        self.session.settle();
        let before = below_the_header(&self.session);
        let written = self.session.written();
        let asked = self.run.commands();
        let keys = self.fill(act.keys);
        eprintln!("{:?} {keys:?}", act.commands);
        self.session.press(&keys);
        let answered = |wanted: fn(&Command) -> bool, is: fn(&CommandStatus) -> bool| {
            self.run.wait_until(|state| {
                let mut new = state.commands.iter().skip(asked);
                new.any(|one| wanted(&one.request) && is(&one.status))
            });
        };
        match act.proof {
            Shows(text) => self.session.wait_for(&self.fill(text)),
            ShowsEither(one, other) => self.session.read_until("neither is on", |session| {
                let text = session.text();
                text.contains(one) || text.contains(other)
            }),
            Hides(text) => self.session.wait_until_gone(text),
            Moves => self.session.read_until("nothing moves on", |session| {
                below_the_header(session) != before
            }),
            Writes(bytes) => self.session.wait_for_bytes(written, bytes),
            Done(wanted) => answered(wanted, |status| *status == CommandStatus::Done),
            Accepted(wanted) => answered(wanted, |status| {
                matches!(status, CommandStatus::Accepted | CommandStatus::Done)
            }),
            Is(wanted) => self.run.wait_until(wanted),
        }
    }
}

/// What the screen shows but for what a clock moves: the header, and ages.
fn below_the_header(session: &Session) -> (String, Vec<Looks>) {
    let text: Vec<_> = session.text().lines().skip(2).map(str::to_owned).collect();
    let ages = Regex::new(r"[0-9.]+(ms|s|m|h)\b( ago)?").unwrap();
    let text = ages.replace_all(&text.join("\n"), "").into_owned();
    (text, session.looks(2))
}

/// What a person touched, and what went back to a step, is never learned from.
fn check_what_was_learned(run: &Path) {
    let (mut touched, mut branched, mut learned) = <(Ids, Ids, Ids)>::default();
    for event in RunDir::open(run).unwrap().read_events(0).unwrap() {
        match event.unwrap().kind {
            EventKind::EpisodeReleased(released) if released.human_touched => {
                touched.insert(released.episode);
            }
            EventKind::EpisodeBranched(branch) => {
                branched.insert(branch.episode);
            }
            EventKind::EpisodeLearned { episode, .. } => {
                learned.insert(episode);
            }
            _ => {}
        }
    }
    assert!(!touched.is_empty() && !branched.is_empty() && !learned.is_empty());
    let apart: Ids = &touched | &branched;
    assert!(apart.is_disjoint(&learned), "{apart:?}");
}

#[test]
fn every_screen_and_every_command_on_a_run_of_the_demo() {
    let mut stage = Stage::new();
    let acts = || ACTS.iter().copied().flatten();
    let played: BTreeSet<_> = acts().flat_map(|act| act.commands).copied().collect();
    let known: BTreeSet<_> = COMMANDS.iter().map(|row| row.name).collect();
    assert_eq!(played, known, "a command that is not played, or not known");
    for act in acts() {
        stage.play(act);
    }
    check_what_was_learned(&stage.folder.path().join("runs/everything"));
    stage.session.press("exit\r");
    stage.session.check_restored();
}
