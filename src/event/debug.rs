//! The debugger's part of the vocabulary: holding an episode before an action, what the operator
//! decides, breakpoints, branches.

use serde::{Deserialize, Serialize};

use crate::event::F;
use crate::types::{Action, BranchOrigin, EpisodeId};

/// Candidates of one request at most: each is a session of its own.
pub const CANDIDATES_MAX: u32 = 16;
/// Longest reply that a person may write, bytes.
pub const REPLY_BYTES_MAX: usize = 16 * 1024;

/// Who is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "target", rename_all = "snake_case")]
pub enum HoldTarget {
    /// One episode.
    Episode {
        /// Which.
        episode: EpisodeId,
    },
    /// The episode that runs on a desktop now.
    Desktop {
        /// Its number, from 0.
        desktop: u32,
    },
    /// Every episode, those that begin later too.
    All,
}

/// What an operator asks of the debugger.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "debug", rename_all = "snake_case")]
pub enum DebugCommand {
    /// Hold before each action: the reply is written and parsed, nothing reaches the desktop.
    Hold {
        /// Whom.
        target: HoldTarget,
        /// Whether all others stand still meanwhile, until the run is resumed.
        others: bool,
    },
    /// Hold no more; a reply that waits is carried out.
    Release {
        /// Whom.
        target: HoldTarget,
    },
    /// Say what a held episode does.
    Decide {
        /// Which.
        episode: EpisodeId,
        /// The step it is held at, from 0: a decision about another one comes too late.
        step: u32,
        /// What.
        decision: Decision,
    },
    /// Hold whenever this is met.
    SetBreakpoint {
        /// What.
        on: BreakOn,
        /// Of one episode, or of all.
        episode: Option<EpisodeId>,
    },
    /// Take a breakpoint away, or all of them.
    ClearBreakpoint {
        /// Its number.
        id: Option<u32>,
    },
    /// Replay the first steps of an episode of this run on a fresh desktop and hold there, with the
    /// next rollouts.
    Branch {
        /// Which episode.
        episode: EpisodeId,
        /// Steps replayed.
        step: u32,
    },
}

impl DebugCommand {
    /// Whether it makes sense for any run; if not, why.
    pub fn check(&self) -> Result<(), String> {
        match self {
            DebugCommand::Decide { decision, .. } => decision.check(),
            DebugCommand::SetBreakpoint { on, .. } => on.check(),
            _ => Ok(()),
        }
    }
}

/// What a held episode does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "decision", rename_all = "snake_case")]
pub enum Decision {
    /// Carry the reply out.
    Accept,
    /// Carry out this changed reply instead.
    Edit {
        /// The whole reply, in the policy's grammar.
        reply: String,
    },
    /// Carry out this new reply instead.
    Write {
        /// The whole reply, in the policy's grammar.
        reply: String,
    },
    /// Let the policy write so many other replies, and go on waiting.
    Regenerate {
        /// How many.
        count: u32,
    },
    /// Carry out one of them.
    Choose {
        /// Its number, from 1.
        candidate: u32,
    },
    /// Do nothing and look again; the reply is forgotten.
    Skip,
    /// Carry the reply out and hold no more.
    Continue,
    /// End the episode as cancelled.
    Abort,
}

impl Decision {
    /// Its name, as it is typed.
    pub fn name(&self) -> &'static str {
        match self {
            Decision::Accept => "accept",
            Decision::Edit { .. } => "edit",
            Decision::Write { .. } => "write",
            Decision::Regenerate { .. } => "regenerate",
            Decision::Choose { .. } => "choose",
            Decision::Skip => "skip",
            Decision::Continue => "continue",
            Decision::Abort => "abort",
        }
    }

    fn check(&self) -> Result<(), String> {
        match self {
            Decision::Edit { reply } | Decision::Write { reply } if reply.trim().is_empty() => {
                Err("the reply is empty: write a thought and an action, or skip".to_owned())
            }
            Decision::Edit { reply } | Decision::Write { reply }
                if reply.len() > REPLY_BYTES_MAX =>
            {
                Err(format!("a reply has at most {REPLY_BYTES_MAX} bytes"))
            }
            Decision::Regenerate { count } if !(1..=CANDIDATES_MAX).contains(count) => Err(
                format!("ask for 1 to {CANDIDATES_MAX} candidates, not {count}"),
            ),
            _ => Ok(()),
        }
    }
}

/// What a breakpoint waits for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "on", rename_all = "snake_case")]
pub enum BreakOn {
    /// A step.
    Step {
        /// Its number, from 0.
        step: u32,
    },
    /// An action of a kind.
    Kind {
        /// The grammar's name, for instance `click`.
        action: String,
    },
    /// A reply that does not parse.
    ParseError,
    /// A reply whose tokens have a mean log-probability below this.
    LowLogprob {
        /// The threshold, below 0.
        below: f64,
    },
    /// A screen that looks exactly as before the last action.
    UnchangedScreen,
}

impl BreakOn {
    fn check(&self) -> Result<(), String> {
        match self {
            BreakOn::Kind { action } if !Action::NAMES.contains(&action.as_str()) => {
                let known = Action::NAMES.join(", ");
                Err(format!("no action is called {action:?}: one of {known}"))
            }
            BreakOn::LowLogprob { below } if below.is_nan() || *below > 0.0 => Err(format!(
                "a mean log-probability lies at 0 or below, not at {below}"
            )),
            _ => Ok(()),
        }
    }

    /// In words, a step counted from 1 as people do.
    pub fn words(&self) -> String {
        match self {
            BreakOn::Step { step } => format!("step {}", u64::from(*step) + 1),
            BreakOn::Kind { action } => format!("action {action}"),
            BreakOn::ParseError => "reply does not parse".to_owned(),
            BreakOn::LowLogprob { below } => format!("mean log-prob below {below}"),
            BreakOn::UnchangedScreen => "screen unchanged".to_owned(),
        }
    }
}

/// A breakpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Breakpoint {
    /// Its number, from 1, never given again.
    pub id: u32,
    /// What it waits for.
    pub on: BreakOn,
    /// Of one episode, or of all.
    pub episode: Option<EpisodeId>,
}

/// Why an episode is held.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum HoldReason {
    /// An operator asked for it.
    Asked,
    /// A breakpoint was met.
    Breakpoint(Breakpoint),
    /// A branch came to its end.
    Branched,
    /// A person writes the replies.
    Human,
}

impl HoldReason {
    /// In words.
    pub fn words(&self) -> String {
        match self {
            HoldReason::Asked => "asked".to_owned(),
            HoldReason::Breakpoint(breakpoint) => {
                format!("breakpoint {}: {}", breakpoint.id, breakpoint.on.words())
            }
            HoldReason::Branched => "branched here".to_owned(),
            HoldReason::Human => "a person writes the replies".to_owned(),
        }
    }
}

/// A reply that waits for a decision.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Candidate {
    /// The whole reply as text.
    pub reply: String,
    /// The thought in it.
    pub thought: String,
    /// The actions in it, in screen pixels; empty if it does not parse.
    pub actions: Vec<Action>,
    /// Why it does not parse.
    pub malformed: Option<String>,
    /// Its tokens.
    pub tokens: u32,
    /// Mean log-probability of its tokens.
    pub mean_logprob: F,
}

/// An episode stands before an action.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EpisodeHeld {
    /// Which.
    pub episode: EpisodeId,
    /// The step, from 0.
    pub step: u32,
    /// Why.
    pub reason: HoldReason,
    /// The task's instruction, shortened to 400 characters.
    pub instruction: String,
    /// What it would do.
    #[serde(flatten)]
    pub candidate: Candidate,
}

/// The policy wrote other replies for a held episode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CandidatesProposed {
    /// Which episode.
    pub episode: EpisodeId,
    /// The step, from 0.
    pub step: u32,
    /// The replies, chosen by their place, from 1; they take the place of those before.
    pub candidates: Vec<Candidate>,
}

/// A held episode goes on, or ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EpisodeReleased {
    /// Which.
    pub episode: EpisodeId,
    /// The step it was held at, from 0.
    pub step: u32,
    /// What was decided.
    #[serde(flatten)]
    pub decision: Decision,
    /// Whether the episode counts as touched by a person from now on.
    pub human_touched: bool,
}

/// An episode that begins with the recorded steps of another one: counterfactual.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EpisodeBranched {
    /// The new one.
    pub episode: EpisodeId,
    /// Where it comes from.
    pub from: BranchOrigin,
}

/// The recorded steps have been replayed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BranchReplayed {
    /// Which episode.
    pub episode: EpisodeId,
    /// Steps replayed.
    pub steps: u32,
    /// The first step, from 0, whose screen was not the recorded one.
    pub differs_at: Option<u32>,
}

/// The breakpoints in force changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BreakpointsChanged {
    /// All of them.
    pub breakpoints: Vec<Breakpoint>,
}
