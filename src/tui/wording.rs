//! What the console calls actions, phases, states, ends and commands.

use crate::event::{
    Command, DebugCommand, Decision, EvalRequest, EvalWeights, EvalWhen, EvaluationStatus,
    HoldTarget, Phase, SafePoint, TrainerState,
};
use crate::tui::figures;
use crate::tui::text::one_line;
use crate::types::{Action, EpisodeEnd, ErrorClass, Point, ScrollDirection};

fn place(at: Point) -> String {
    format!("{:.0},{:.0}", at.x, at.y)
}

/// An action in few cells: `click 412,88`, `type "H2O"`, `hotkey ctrl z`.
pub fn action(action: &Action) -> String {
    match action {
        Action::Click { at } => format!("click {}", place(*at)),
        Action::LeftDouble { at } => format!("double {}", place(*at)),
        Action::RightSingle { at } => format!("right {}", place(*at)),
        Action::Hover { at } => format!("hover {}", place(*at)),
        Action::Drag { from, to } => format!("drag {}→{}", place(*from), place(*to)),
        Action::Hotkey { keys } => format!("hotkey {}", keys.join(" ")),
        Action::Press { key } => format!("press {key}"),
        Action::Type { content } => {
            let submits = if content.ends_with('\n') { "⏎" } else { "" };
            format!("type \"{}\"{submits}", one_line(content))
        }
        Action::Scroll { at, direction } => {
            let way = match direction {
                ScrollDirection::Up => "up",
                ScrollDirection::Down => "down",
                ScrollDirection::Left => "left",
                ScrollDirection::Right => "right",
            };
            let over = at.map_or(String::new(), |at| format!(" {}", place(at)));
            format!("scroll {way}{over}")
        }
        Action::Wait => "wait 5s".to_owned(),
        Action::Finished { content } if content.is_empty() => "finished".to_owned(),
        Action::Finished { content } => format!("finished \"{}\"", one_line(content)),
        Action::Fail => "fail (infeasible)".to_owned(),
        Action::CallUser => "call user".to_owned(),
    }
}

/// Several actions of one reply.
pub fn actions(all: &[Action]) -> String {
    all.iter().map(action).collect::<Vec<_>>().join(" + ")
}

/// A phase.
pub fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Evaluate => "evaluate",
        Phase::Collect => "collect",
        Phase::Replay => "replay",
        Phase::OldLogprobs => "old logprobs",
        Phase::Update => "update",
        Phase::Publish => "publish",
        Phase::Checkpoint => "checkpoint",
    }
}

/// A safe point, as it is typed.
pub fn safe_point(point: SafePoint) -> &'static str {
    match point {
        SafePoint::EnvStep => "env-step",
        SafePoint::Batch => "batch",
        SafePoint::PreUpdate => "pre-update",
        SafePoint::PostCheckpoint => "post-checkpoint",
    }
}

/// The safe point of this name.
pub fn parse_safe_point(name: &str) -> Option<SafePoint> {
    [
        SafePoint::EnvStep,
        SafePoint::Batch,
        SafePoint::PreUpdate,
        SafePoint::PostCheckpoint,
    ]
    .into_iter()
    .find(|point| safe_point(*point) == name)
}

/// The trainer's state, one word.
pub fn trainer(state: TrainerState) -> &'static str {
    match state {
        TrainerState::Starting => "START",
        TrainerState::Running => "RUN",
        TrainerState::Pausing(_) => "PAUSING",
        TrainerState::Paused(_) => "PAUSED",
        TrainerState::Stepping(_) => "STEPPING",
        TrainerState::Stopping => "STOPPING",
        TrainerState::Finished => "DONE",
        TrainerState::Failed => "FAILED",
    }
}

/// Where an evaluation stands, one word.
pub fn evaluation(status: &EvaluationStatus) -> &'static str {
    match status {
        EvaluationStatus::Waiting => "waiting",
        EvaluationStatus::Running => "running",
        EvaluationStatus::Cancelled { .. } => "cancelled",
        EvaluationStatus::Finished => "finished",
    }
}

/// How an episode ended.
pub fn end(end: EpisodeEnd) -> &'static str {
    match end {
        EpisodeEnd::Finished => "finished",
        EpisodeEnd::DeclaredInfeasible => "declared infeasible",
        EpisodeEnd::StepLimit => "step limit",
        EpisodeEnd::Malformed => "reply did not parse",
        EpisodeEnd::ContextFull => "context full",
    }
}

/// Whose fault a failed episode was.
pub fn error_class(class: ErrorClass) -> &'static str {
    match class {
        ErrorClass::Reset => "reset",
        ErrorClass::Timeout => "timeout",
        ErrorClass::Crash => "crash",
        ErrorClass::Screenshot => "screenshot",
        ErrorClass::Evaluator => "evaluator",
        ErrorClass::Policy => "policy",
        ErrorClass::Cancelled => "cancelled",
    }
}

/// An evaluation as it is asked for on a command line.
fn evaluate(request: &EvalRequest) -> String {
    let when = match request.when {
        EvalWhen::Now { desktops } => format!("--desktops {desktops}"),
        EvalWhen::SafePoint => "--at-safe-point".to_owned(),
    };
    if let Some(evaluation) = request.resume {
        return format!("evaluate --resume {evaluation} {when}");
    }
    let weights = match &request.weights {
        EvalWeights::Current => String::new(),
        EvalWeights::Checkpoint { path } => format!(" --checkpoint {path}"),
    };
    format!(
        "evaluate --tasks {} --trials {} --temperature {} --seed {} --protocol {}{weights} {when}",
        request.tasks,
        request.trials,
        request.temperature,
        request.seed,
        request.protocol.name(),
    )
}

/// A command as it is typed.
pub fn command(command: &Command) -> String {
    match command {
        Command::Pause { at } => format!("pause {}", safe_point(*at)),
        Command::Resume => "resume".to_owned(),
        Command::StepPhase => "step-phase".to_owned(),
        Command::StepIteration => "step-iteration".to_owned(),
        Command::Stop => "stop".to_owned(),
        Command::Checkpoint => "checkpoint".to_owned(),
        Command::SetLearningRate { value } => format!("lr {}", figures::short(*value)),
        Command::SetTemperature { value } => format!("temperature {value}"),
        Command::SetDesktops { value } => format!("desktops {value}"),
        Command::SetClip { low, high } => format!("clip {low} {high}"),
        Command::SetReplay { enabled } => {
            format!("replay {}", if *enabled { "on" } else { "off" })
        }
        Command::KillEpisode { episode } => format!("kill {episode}"),
        Command::RerollEpisode { episode } => format!("reroll {episode}"),
        Command::RebootDesktop { desktop } => format!("reboot {desktop}"),
        Command::PinStored {
            task,
            episode,
            pinned,
        } => {
            let verb = if *pinned { "pin" } else { "unpin" };
            format!("{verb} {task} {episode}")
        }
        Command::DropStored { task, episode } => format!("drop {task} {episode}"),
        Command::Evaluate(request) => evaluate(request),
        Command::CancelEvaluation { evaluation } => format!("cancel-evaluation {evaluation}"),
        Command::Debug(command) => debug_command(command),
    }
}

fn debug_command(command: &DebugCommand) -> String {
    match command {
        DebugCommand::Hold { target, others } => {
            let others = if *others { " others" } else { "" };
            format!("hold {}{others}", hold_target(*target))
        }
        DebugCommand::Release { target } => format!("release {}", hold_target(*target)),
        DebugCommand::Decide {
            episode,
            step,
            decision,
        } => {
            let more = match decision {
                Decision::Regenerate { count } => format!(" {count}"),
                Decision::Choose { candidate } => format!(" {candidate}"),
                Decision::Edit { reply } | Decision::Write { reply } => {
                    format!(" \"{}\"", one_line(reply))
                }
                _ => String::new(),
            };
            let name = decision.name();
            format!("{name}{more} ({episode} step {})", u64::from(*step) + 1)
        }
        DebugCommand::SetBreakpoint { on, episode } => {
            let whose = episode.map_or(String::new(), |id| format!(" of {id}"));
            format!("break {}{whose}", on.words())
        }
        DebugCommand::ClearBreakpoint { id: Some(id) } => format!("break clear {id}"),
        DebugCommand::ClearBreakpoint { id: None } => "break clear".to_owned(),
        DebugCommand::Branch { episode, step } => {
            format!("branch {episode} {}", u64::from(*step) + 1)
        }
    }
}

fn hold_target(target: HoldTarget) -> String {
    match target {
        HoldTarget::Episode { episode } => episode.to_string(),
        HoldTarget::Desktop { desktop } => format!("desktop:{desktop}"),
        HoldTarget::All => "all".to_owned(),
    }
}

/// A command as `arpo ctl RUN` takes it.
pub fn ctl(command: &Command) -> String {
    match command {
        Command::Pause { at } => format!("pause --at {}", safe_point(*at)),
        Command::SetLearningRate { value } => format!("set-lr {value:e}"),
        Command::SetTemperature { .. }
        | Command::SetDesktops { .. }
        | Command::SetClip { .. }
        | Command::SetReplay { .. } => format!("set-{}", self::command(command)),
        _ => self::command(command),
    }
}

/// The whole line.
pub fn ctl_line(run: &str, command: &Command) -> String {
    format!("arpo ctl {run} {}", ctl(command))
}
