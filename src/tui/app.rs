//! What the console knows: the run, and what the operator is looking at.
//!
//! Plain data. `update` is the only one who changes it, `draw` reads it.

use std::path::PathBuf;

use crate::event::{Command, RunState, TrainerState};
use crate::tui::changes::Changes;
use crate::tui::debug::{DebugUi, ReplyEditor};
use crate::tui::evals::EvalsUi;
use crate::tui::fleet::FleetUi;
use crate::tui::focus::Pending;
use crate::tui::help::Help;
use crate::tui::keymap::Keymap;
use crate::tui::launch::LaunchForm;
use crate::tui::lease::LeaseView;
use crate::tui::logs::{LogFilter, LogLevel};
use crate::tui::machine_log::MachineLogUi;
use crate::tui::page::Page;
use crate::tui::picture::{PictureCache, Quality, Slots};
use crate::tui::prompt::Prompt;
use crate::tui::replay::ReplayUi;
use crate::tui::term::TerminalFacts;
use crate::tui::theme::{Role, Theme};
use crate::tui::timeline::TimelineUi;
use crate::tui::tokens::TokensUi;
use crate::tui::train::Compared;
use crate::types::{EpisodeId, ImageHash, Iteration};

/// Run and view.
pub struct App {
    /// The run, as the engine's events tell it.
    pub run: RunState,
    /// The operator's view of it.
    pub ui: UiState,
}

/// One full page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Screen {
    /// All episodes under way.
    Fleet,
    /// One episode, step by step.
    Rollout,
    /// How training goes.
    Train,
    /// What evaluations say.
    Evals,
    /// What the replay buffer holds, and what it does.
    Replay,
    /// What happened.
    Logs,
}

/// All of them, in the order of their keys.
pub const SCREENS: [Screen; 6] = [
    Screen::Fleet,
    Screen::Rollout,
    Screen::Train,
    Screen::Evals,
    Screen::Replay,
    Screen::Logs,
];

impl Screen {
    /// Its name on the tab.
    pub fn title(self) -> &'static str {
        match self {
            Screen::Fleet => "Fleet",
            Screen::Rollout => "Rollout",
            Screen::Train => "Train",
            Screen::Evals => "Evals",
            Screen::Replay => "Replay",
            Screen::Logs => "Logs",
        }
    }

    /// The command that goes there.
    pub fn command(self) -> &'static str {
        match self {
            Screen::Fleet => "fleet",
            Screen::Rollout => "rollout",
            Screen::Train => "train",
            Screen::Evals => "evals",
            Screen::Replay => "replay",
            Screen::Logs => "logs",
        }
    }
}

/// Where the events come from, and whether commands can go back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// A run at work; commands are answered.
    Live,
    /// A run at work, watched only.
    WatchOnly,
    /// A run of the past.
    Recorded,
}

/// The engine cannot be reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostLink {
    /// What happened.
    pub reason: String,
    /// When, by the console's clock.
    pub since_ms: u64,
}

/// What lies over the screen and takes the keys.
#[derive(Clone, Debug, PartialEq)]
pub enum Overlay {
    /// Keys, commands and codes.
    Help(Help),
    /// Text to read.
    Page(Page),
    /// The log of a desktop's machine.
    MachineLog(Box<MachineLogUi>),
    /// A command being typed.
    Prompt(Prompt),
    /// A filter of the logs being typed.
    Filter(String),
    /// What to look for in the logs being typed.
    Search(String),
    /// An evaluation being asked for.
    Launch(LaunchForm),
    /// Detach or stop.
    Quit(QuitChoice),
    /// A reply being written for a held episode.
    Reply(Box<ReplyEditor>),
    /// What is known of the terminal.
    About,
    /// Yes or no, on the row of messages.
    Confirm(Question),
    /// A name that must be typed first, and what is typed of it.
    Naming(Question, String),
}

/// A command that waits for its answer: shall it be done?
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Name of the command.
    pub command: &'static str,
    /// Its argument.
    pub argument: String,
    /// What it takes.
    pub victim: String,
}

/// What the operator is about to choose when leaving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuitChoice {
    /// Leave the run running.
    Detach,
    /// Stop the run, with a checkpoint.
    Stop,
    /// Stay.
    Stay,
}

impl QuitChoice {
    /// All, in the order shown.
    pub const ALL: [QuitChoice; 3] = [QuitChoice::Detach, QuitChoice::Stop, QuitChoice::Stay];
}

/// A line for the operator.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// What it says.
    pub text: String,
    /// How it looks.
    pub role: Role,
    /// When it came, by the console's clock.
    pub at_ms: u64,
}

/// A command on its way to the engine.
#[derive(Clone, Debug, PartialEq)]
pub struct SentCommand {
    /// This console's number for it.
    pub ticket: u64,
    /// What.
    pub request: Command,
    /// When, by the console's clock.
    pub at_ms: u64,
    /// The engine's number for it, once the engine has it.
    pub id: Option<u64>,
    /// What became of it.
    pub status: SentStatus,
    /// When that became known, by the console's clock.
    pub answered_ms: Option<u64>,
}

/// What became of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SentStatus {
    /// No answer yet.
    Sent,
    /// The engine has it.
    Received,
    /// It will be done.
    Accepted,
    /// It will not; why.
    Refused(String),
    /// The connection was lost before a final answer.
    Unanswered,
    /// It has been done.
    Done,
}

/// A pane of a screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pane {
    /// Its list.
    #[default]
    Main,
    /// What is selected there.
    Detail,
}

/// What frames, charts and marks are drawn with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Glyphs {
    /// Box drawing, blocks, braille.
    #[default]
    Unicode,
    /// ASCII.
    Ascii,
}

/// What the Rollout screen shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RolloutPage {
    /// Steps, picture, thought and learning signal.
    #[default]
    All,
    /// The thought alone.
    Thought,
    /// The group's episodes side by side.
    Siblings,
    /// The reply token by token.
    Tokens,
}

/// View of the Rollout screen.
#[derive(Clone, Debug, Default)]
pub struct RolloutUi {
    /// The episode looked at; `None` follows what is selected in the fleet.
    pub pinned: Option<EpisodeId>,
    /// The step looked at, from 0; `None` follows the newest.
    pub step: Option<usize>,
    /// Whether only the picture is shown.
    pub only_picture: bool,
    /// Lines of the thought, or of the page of tokens, scrolled past.
    pub thought_scroll: usize,
    /// Whether the screen after the step is shown instead of the one it was decided on.
    pub shows_after: bool,
    /// Whether what the step changed is outlined.
    pub outlines: bool,
    /// What differs between two screens: the earlier, the later, the differences.
    pub changes: Option<(ImageHash, ImageHash, Result<Changes, String>)>,
    /// The two screens whose differences were asked for last.
    pub asked: Option<(ImageHash, ImageHash)>,
    /// What takes the whole page in place of all panes.
    pub page: RolloutPage,
    /// What the page of tokens has read.
    pub tokens: TokensUi,
}

/// View of the Train screen.
#[derive(Clone, Debug, Default)]
pub struct TrainUi {
    /// The chart in focus.
    pub chart: usize,
    /// Whether only that one is shown.
    pub zoomed: bool,
    /// Iterations shown; `None` shows all.
    pub window: Option<usize>,
    /// The iteration under the cursor of all charts; `None` is the newest.
    pub cursor: Option<Iteration>,
    /// Whether axes are logarithmic.
    pub is_log: bool,
    /// Another run whose course is drawn too.
    pub compared: Option<Compared>,
}

/// Which rows the Logs screen shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogSource {
    /// All.
    #[default]
    All,
    /// Notices of the engine.
    Notices,
    /// Commands of operators.
    Journal,
    /// Failed episodes.
    Failures,
    /// Phases and iterations.
    Trainer,
}

/// View of the Logs screen.
#[derive(Clone, Debug, Default)]
pub struct LogsUi {
    /// Rows up from the newest; 0 follows.
    pub up: usize,
    /// What rows must match to be shown.
    pub filter: Option<LogFilter>,
    /// What `n` and `N` look for; without it warnings and errors.
    pub search: Option<LogFilter>,
    /// The least grave level shown.
    pub least: LogLevel,
    /// Which rows.
    pub source: LogSource,
}

/// The operator's view.
pub struct UiState {
    /// Name shown for the run before its first event.
    pub title: String,
    /// The run's folder, which need not be on this machine.
    pub root: PathBuf,
    /// The run's profile, TOML; empty where it is not known.
    pub profile: String,
    /// Whether this is the demo, which ends with its console unless told otherwise.
    pub is_demo: bool,
    /// Where events come from.
    pub link: Link,
    /// Who writes, where several consoles may.
    pub lease: Option<LeaseView>,
    /// The time line, for a recorded run that can be gone through.
    pub timeline: Option<TimelineUi>,
    /// Set while the engine cannot be reached.
    pub lost: Option<LostLink>,
    /// The page shown.
    pub screen: Screen,
    /// The page shown before.
    pub previous: Screen,
    /// Which pane of the screen is focused.
    pub pane: Pane,
    /// What lies over it.
    pub overlay: Option<Overlay>,
    /// What keys mean.
    pub keymap: Keymap,
    /// Keys pressed that begin a chord.
    pub pending: Pending,
    /// The newest line for the operator.
    pub message: Option<Message>,
    /// Commands under way, and those answered a moment ago.
    pub sent: Vec<SentCommand>,
    /// Number of the next command.
    pub next_ticket: u64,
    /// Size of the terminal in cells.
    pub size: (u16, u16),
    /// Styles.
    pub theme: Theme,
    /// Pictures at hand.
    pub pictures: PictureCache,
    /// The console's clock, ms since its start.
    pub now_ms: u64,
    /// When the newest events arrived, by that clock.
    pub heard_ms: u64,
    /// When the engine was last heard of, by that clock: events or signs of life.
    pub alive_ms: u64,
    /// Updates that this console had to skip.
    pub dropped: u64,
    /// Whether a stop was chosen and the console leaves once it is accepted.
    pub leaving: bool,
    /// Fleet.
    pub fleet: FleetUi,
    /// Rollout.
    pub rollout: RolloutUi,
    /// The debugger's panel on it.
    pub debug: DebugUi,
    /// Train.
    pub train: TrainUi,
    /// Evals.
    pub evals: EvalsUi,
    /// Replay.
    pub replay: ReplayUi,
    /// Logs.
    pub logs: LogsUi,
    /// Commands typed before, newest last.
    pub typed: Vec<String>,
    /// Whether the mouse is listened to.
    pub mouse: bool,
    /// What frames, charts and marks are drawn with.
    pub glyphs: Glyphs,
    /// What is known of the terminal.
    pub terminal: TerminalFacts,
    /// Pictures that the terminal shows by itself.
    pub slots: Slots,
    /// How good those are, for the line's sake.
    pub quality: Quality,
}

impl App {
    /// A console on a run, before its first key.
    pub fn new(run: RunState, title: &str, link: Link, theme: Theme) -> Self {
        let ui = UiState {
            title: title.to_owned(),
            root: PathBuf::new(),
            profile: String::new(),
            is_demo: false,
            link,
            lease: None,
            timeline: None,
            lost: None,
            screen: Screen::Fleet,
            previous: Screen::Fleet,
            pane: Pane::default(),
            overlay: None,
            keymap: Keymap::default(),
            pending: Pending::default(),
            message: None,
            sent: Vec::new(),
            next_ticket: 0,
            size: (80, 24),
            theme,
            pictures: PictureCache::default(),
            now_ms: 0,
            heard_ms: 0,
            alive_ms: 0,
            dropped: 0,
            leaving: false,
            fleet: FleetUi::default(),
            rollout: RolloutUi::default(),
            debug: DebugUi::default(),
            train: TrainUi::default(),
            evals: EvalsUi::default(),
            replay: ReplayUi::default(),
            logs: LogsUi::default(),
            typed: Vec::new(),
            mouse: false,
            glyphs: Glyphs::default(),
            terminal: TerminalFacts::default(),
            slots: Slots::default(),
            quality: Quality::High,
        };
        let mut app = Self { run, ui };
        crate::tui::fleet::reorder(&mut app);
        app
    }

    /// The run's time now, ms since its first start: that of the newest event, plus the time
    /// since it arrived where the run is alive.
    pub fn run_now_ms(&self) -> u64 {
        self.run.at_ms
            + if self.is_alive() {
                self.silence_ms()
            } else {
                0
            }
    }

    /// Whether the run is at work and can be heard.
    pub fn is_alive(&self) -> bool {
        self.ui.link != Link::Recorded && self.ui.lost.is_none() && !self.run.is_over()
    }

    /// Whether it stands until an operator says otherwise, so that no events are due.
    pub fn is_paused(&self) -> bool {
        matches!(self.run.trainer, TrainerState::Paused(_))
    }

    /// How long ago the newest events arrived.
    pub fn silence_ms(&self) -> u64 {
        self.ui.now_ms.saturating_sub(self.ui.heard_ms)
    }

    /// Whether commands can be sent; if not, why.
    pub fn can_command(&self) -> Result<(), &'static str> {
        match self.ui.link {
            Link::Live if self.run.is_over() => Err("the run is over"),
            Link::Live if self.ui.lost.is_some() => Err("the engine cannot be reached"),
            Link::Live if crate::tui::lease::is_elsewhere(self) => {
                Err("another console writes; :take asks for the lease")
            }
            Link::Live => Ok(()),
            Link::WatchOnly => Err("this console only watches"),
            Link::Recorded => Err("this is a recorded run"),
        }
    }

    /// Says something to the operator.
    pub fn say(&mut self, role: Role, text: impl Into<String>) {
        self.ui.message = Some(Message {
            text: text.into(),
            role,
            at_ms: self.ui.now_ms,
        });
    }

    /// The run's name.
    pub fn run_name(&self) -> &str {
        self.run
            .header
            .as_ref()
            .map_or(self.ui.title.as_str(), |header| header.run.as_str())
    }
}
