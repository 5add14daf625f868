//! What an operator can ask of a running engine, and which values make sense for any run.

use serde::{Deserialize, Serialize};

use crate::event::{DebugCommand, EvalRequest, SafePoint};
use crate::types::{EpisodeId, TaskId};

/// What an operator can ask of a running engine. Each is answered by events, never assumed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum Command {
    /// Something of the debugger.
    Debug(DebugCommand),
    /// Stand still at the next safe point of this kind.
    Pause {
        /// Which.
        at: SafePoint,
    },
    /// Go on.
    Resume,
    /// Go on until the next safe point of any kind, then pause again.
    StepPhase,
    /// Go on for one iteration, then pause again.
    StepIteration,
    /// End after the running phase, with a checkpoint.
    Stop,
    /// Write a checkpoint at the next safe point.
    Checkpoint,
    /// Use this learning rate from the next update on.
    SetLearningRate {
        /// The rate.
        value: f64,
    },
    /// Use this temperature from the next rollout on.
    SetTemperature {
        /// The temperature, above 0.
        value: f64,
    },
    /// Use this many desktops from the next iteration on.
    SetDesktops {
        /// How many, at least 1.
        value: u32,
    },
    /// Clip ratios to `[1 - low, 1 + high]` from the next update on.
    SetClip {
        /// The lower clip, above 0 and below 1.
        low: f64,
        /// The upper clip, above 0 and up to 10.
        high: f64,
    },
    /// Draw from and store into the replay buffer from the next iteration on, or do neither.
    SetReplay {
        /// Whether it is on.
        enabled: bool,
    },
    /// End a running episode; its group goes on without it.
    KillEpisode {
        /// Which.
        episode: EpisodeId,
    },
    /// End a running episode and try it again under a new id with other chances.
    RerollEpisode {
        /// Which.
        episode: EpisodeId,
    },
    /// Close a desktop and open it anew; the episode on it is tried again.
    RebootDesktop {
        /// Its number, from 0.
        desktop: u32,
    },
    /// Keep a stored success whatever newer ones come, or let it go the way of the others.
    PinStored {
        /// Of which task.
        task: TaskId,
        /// Which.
        episode: EpisodeId,
        /// Whether it is kept.
        pinned: bool,
    },
    /// Remove a stored success.
    DropStored {
        /// Of which task.
        task: TaskId,
        /// Which.
        episode: EpisodeId,
    },
    /// Measure a policy on a task set.
    Evaluate(EvalRequest),
    /// Give up an evaluation that waits or runs; its trials so far are kept.
    CancelEvaluation {
        /// Its number.
        evaluation: u32,
    },
}

impl Command {
    /// Whether its value makes sense for any run; if not, why.
    pub fn check(&self) -> Result<(), String> {
        match self {
            Command::SetLearningRate { value } if !(*value > 0.0 && *value <= 1.0) => Err(format!(
                "a learning rate lies above 0 and up to 1, not at {value}"
            )),
            Command::SetTemperature { value } if !(*value > 0.0 && *value <= 2.0) => Err(format!(
                "a temperature lies above 0 and up to 2, not at {value}"
            )),
            Command::SetDesktops { value } if !(1..=4096).contains(value) => {
                Err(format!("a run has 1 to 4096 desktops, not {value}"))
            }
            Command::SetClip { low, .. } if !(*low > 0.0 && *low < 1.0) => Err(format!(
                "the lower clip lies above 0 and below 1, not at {low}"
            )),
            Command::SetClip { high, .. } if !(*high > 0.0 && *high <= 10.0) => Err(format!(
                "the upper clip lies above 0 and up to 10, not at {high}"
            )),
            Command::RebootDesktop { desktop } if *desktop >= 4096 => Err(format!(
                "a run has at most 4096 desktops, numbered from 0; there is no number {desktop}"
            )),
            Command::Debug(command) => command.check(),
            Command::Evaluate(request) => request.check(),
            Command::CancelEvaluation { evaluation: 0 } => {
                Err("evaluations are numbered from 1".to_owned())
            }
            _ => Ok(()),
        }
    }
}

/// `on` or `off`, as switches are typed.
pub fn parse_switch(text: &str) -> Option<bool> {
    match text {
        "on" | "true" | "1" => Some(true),
        "off" | "false" | "0" => Some(false),
        _ => None,
    }
}
