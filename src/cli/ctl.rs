//! `arpo ctl`: every console command from a script. Exit code 1 if the engine refuses.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail};
use serde_json::{Value, json};

use crate::bus::{Role, attach, find_socket, socket_dir};
use crate::cli::debug::{DebugRequest, print_breakpoints};
use crate::cli::{async_runtime, say};
use crate::event::{
    Command, CommandStatus, EvalRequest, EvalWeights, EvalWhen, RunState, SafePoint, parse_switch,
};
use crate::types::{EpisodeId, Protocol, TaskId};

/// Steer a live run, and wait until the engine has done it
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The run: its name, the start of it, its folder or its socket
    run: String,
    #[command(subcommand)]
    request: Request,
    /// Print one JSON object
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Request {
    /// Stand still at the next safe point
    Pause {
        /// Which kind: before any desktop's next step, before the next rollouts, before the
        /// updates, or after the next checkpoint
        #[arg(long, value_enum, default_value_t = At::EnvStep)]
        at: At,
    },
    /// Go on
    Resume,
    /// Go on to the next safe point of any kind
    StepPhase,
    /// Go on for one iteration
    StepIteration,
    /// End after the running phase, with a checkpoint
    Stop,
    /// Write a checkpoint at the next safe point
    Checkpoint,
    /// Use this learning rate from the next update on
    SetLr {
        /// Above 0
        value: f64,
    },
    /// Use this temperature from the next rollout on
    SetTemperature {
        /// Above 0, up to 2
        value: f64,
    },
    /// Use this many desktops from the next iteration on
    SetDesktops {
        /// At least 1
        value: u32,
    },
    /// Clip ratios to 1 - LOW and 1 + HIGH from the next update on
    SetClip {
        /// Above 0, below 1
        low: f64,
        /// Above 0, up to 10
        high: f64,
    },
    /// Draw from and store into the replay buffer from the next iteration on, or do neither
    SetReplay {
        /// on or off
        #[arg(value_parser = switch, action = clap::ArgAction::Set)]
        enabled: bool,
    },
    /// End a running episode; its group goes on without it
    Kill {
        /// As in 0-000012
        episode: EpisodeId,
    },
    /// End a running training episode and try it again with other chances
    Reroll {
        /// As in 0-000012
        episode: EpisodeId,
    },
    /// Close a desktop and open it anew; the episode on it is tried again
    Reboot {
        /// Its number, from 0
        desktop: u32,
    },
    /// Keep a stored success whatever newer ones come
    Pin {
        /// Its task
        task: String,
        /// As in 0-000012
        episode: EpisodeId,
    },
    /// Let a pinned success go the way of the others
    Unpin {
        /// Its task
        task: String,
        /// As in 0-000012
        episode: EpisodeId,
    },
    /// Remove a stored success
    Drop {
        /// Its task
        task: String,
        /// As in 0-000012
        episode: EpisodeId,
    },
    /// Measure a policy on a task set, and wait for its scores
    Evaluate(Evaluate),
    /// Give up an evaluation that waits or runs; its trials so far are kept
    CancelEvaluation {
        /// Its number
        evaluation: u32,
    },
    #[command(flatten)]
    Debug(DebugRequest),
}

#[derive(Clone, Debug, clap::Args)]
struct Evaluate {
    /// Task set: a name under assets/tasks, a list file or a folder of task files
    #[arg(long, value_name = "SET", required_unless_present = "resume")]
    tasks: Option<String>,
    /// Episodes a task
    #[arg(long, value_name = "N", default_value_t = 1)]
    trials: u32,
    /// Sampling temperature; 0 is greedy
    #[arg(long, value_name = "T", default_value_t = 0.6)]
    temperature: f64,
    /// Decides sampling and the desktops' chances; the run's own seed if absent
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// The headline score: standard, hard or plain
    #[arg(long, value_name = "PROTOCOL", default_value = "standard", value_parser = protocol)]
    protocol: Protocol,
    /// Now, on so many of the run's desktops, while training goes on with the others
    #[arg(long, value_name = "N", conflicts_with = "at_safe_point")]
    desktops: Option<u32>,
    /// At the next safe point, on all desktops (the default)
    #[arg(long)]
    at_safe_point: bool,
    /// These weights instead of the current ones: a folder in Hugging Face layout, or the name
    /// of one of the run's checkpoints
    #[arg(long, value_name = "DIR")]
    checkpoint: Option<String>,
    /// Go on with this cancelled evaluation; all other options but the desktops are its own
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["tasks", "checkpoint", "seed"])]
    resume: Option<u32>,
    /// Do not wait for the end
    #[arg(long)]
    no_wait: bool,
}

impl Evaluate {
    /// The request, with the run's own seed where none was told.
    fn request(&self, run_seed: u64) -> EvalRequest {
        let weights = match &self.checkpoint {
            // The engine may stand in another folder.
            Some(path) => EvalWeights::Checkpoint {
                path: Path::new(path)
                    .canonicalize()
                    .map_or_else(|_| path.clone(), |full| full.display().to_string()),
            },
            None => EvalWeights::Current,
        };
        let tasks = self.tasks.clone().unwrap_or_default();
        EvalRequest {
            weights,
            // A file or folder here is named in full for the same reason.
            tasks: if Path::new(&tasks).exists() {
                Path::new(&tasks)
                    .canonicalize()
                    .map_or(tasks, |full| full.display().to_string())
            } else {
                tasks
            },
            trials: self.trials,
            temperature: self.temperature,
            seed: self.seed.unwrap_or(run_seed),
            protocol: self.protocol,
            when: match self.desktops {
                Some(desktops) => EvalWhen::Now { desktops },
                None => EvalWhen::SafePoint,
            },
            resume: self.resume,
        }
    }
}

fn switch(text: &str) -> Result<bool, String> {
    parse_switch(text).ok_or_else(|| format!("write on or off, not {text:?}"))
}

fn protocol(text: &str) -> Result<Protocol, String> {
    Protocol::parse(text).ok_or_else(|| format!("write standard, hard or plain, not {text:?}"))
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum At {
    EnvStep,
    Batch,
    PreUpdate,
    PostCheckpoint,
}

impl Request {
    /// The command it stands for, given the run as it is; none if it only asks.
    fn command(&self, run: &RunState) -> anyhow::Result<Option<Command>> {
        if let Request::Debug(request) = self {
            return request.command(run);
        }
        let seed = run.header.as_ref().map_or(0, |header| header.seed);
        Ok(self.plain_command(seed))
    }

    /// The command, if it can be told without looking at the run; `run_seed` is its seed.
    fn plain_command(&self, run_seed: u64) -> Option<Command> {
        let stored = |task: &str| TaskId(task.to_owned());
        Some(match self {
            Request::Debug(_) => return None,
            Request::Pause { at } => Command::Pause {
                at: match *at {
                    At::EnvStep => SafePoint::EnvStep,
                    At::Batch => SafePoint::Batch,
                    At::PreUpdate => SafePoint::PreUpdate,
                    At::PostCheckpoint => SafePoint::PostCheckpoint,
                },
            },
            Request::Resume => Command::Resume,
            Request::StepPhase => Command::StepPhase,
            Request::StepIteration => Command::StepIteration,
            Request::Stop => Command::Stop,
            Request::Checkpoint => Command::Checkpoint,
            Request::SetLr { value } => Command::SetLearningRate { value: *value },
            Request::SetTemperature { value } => Command::SetTemperature { value: *value },
            Request::SetDesktops { value } => Command::SetDesktops { value: *value },
            Request::SetClip { low, high } => Command::SetClip {
                low: *low,
                high: *high,
            },
            Request::SetReplay { enabled } => Command::SetReplay { enabled: *enabled },
            Request::Kill { episode } => Command::KillEpisode { episode: *episode },
            Request::Reroll { episode } => Command::RerollEpisode { episode: *episode },
            Request::Reboot { desktop } => Command::RebootDesktop { desktop: *desktop },
            Request::Pin { task, episode } => Command::PinStored {
                task: stored(task),
                episode: *episode,
                pinned: true,
            },
            Request::Unpin { task, episode } => Command::PinStored {
                task: stored(task),
                episode: *episode,
                pinned: false,
            },
            Request::Drop { task, episode } => Command::DropStored {
                task: stored(task),
                episode: *episode,
            },
            Request::Evaluate(evaluate) => Command::Evaluate(evaluate.request(run_seed)),
            Request::CancelEvaluation { evaluation } => Command::CancelEvaluation {
                evaluation: *evaluation,
            },
        })
    }
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    async_runtime()?.block_on(ask(args))
}

async fn ask(args: &Args) -> anyhow::Result<ExitCode> {
    // Here, where the message is plain, rather than as a refusal.
    if let Some(command) = args.request.plain_command(0) {
        command.check().map_err(anyhow::Error::msg)?;
    }
    let socket = find_socket(&socket_dir(), Some(&args.run)).await?;
    let source = attach(&socket, Role::Operate, "ctl").await?;
    let Some(command) = args.request.command(&source.state)? else {
        print_breakpoints(&source.state, args.json)?;
        return Ok(ExitCode::SUCCESS);
    };
    command.check().map_err(anyhow::Error::msg)?;
    let run = source.run.clone();
    let commands = source.into_commands();
    let commands = commands.context("this run takes no commands")?;
    let mut ticket = commands.send(command.clone());
    let waits = !matches!(&args.request, Request::Evaluate(evaluate) if evaluate.no_wait);
    let answer = if waits {
        ticket.finished().await
    } else {
        accepted(&mut ticket).await
    };
    let Some((id, status)) = answer else {
        bail!("{run} hung up before it answered; `arpo runs list` shows how it stands");
    };
    let reason = match &status {
        CommandStatus::Refused { reason } => Some(reason.as_str()),
        CommandStatus::Received | CommandStatus::Accepted | CommandStatus::Done => None,
    };
    let what = match &status {
        CommandStatus::Refused { .. } => "refused",
        CommandStatus::Accepted => "accepted",
        CommandStatus::Received | CommandStatus::Done => "done",
    };
    let figures = match (&command, &status) {
        (Command::Evaluate(_), CommandStatus::Done) => scores(&socket, id).await?,
        _ => None,
    };
    if args.json {
        let mut answer = answer_json(&run, id, &command, what, reason)?;
        if let Some(figures) = figures {
            answer["evaluation"] = figures;
        }
        say(answer);
    } else {
        match (reason, figures) {
            (Some(reason), _) => say(format_args!("refused: {reason}")),
            (None, Some(figures)) => say(figures),
            (None, None) => say(what),
        }
    }
    Ok(match reason {
        Some(_) => ExitCode::FAILURE,
        None => ExitCode::SUCCESS,
    })
}

/// The first answer that says whether it will be done.
async fn accepted(ticket: &mut crate::bus::CommandTicket) -> Option<(u64, CommandStatus)> {
    loop {
        match ticket.next().await? {
            (_, CommandStatus::Received) => {}
            answer => return Some(answer),
        }
    }
}

/// The scores of the evaluation that command `id` asked for, as `arpo eval` prints them.
async fn scores(socket: &Path, id: u64) -> anyhow::Result<Option<Value>> {
    let (_, state) = crate::bus::probe(socket).await?;
    Ok(scores_of(&state, id))
}

fn scores_of(state: &RunState, id: u64) -> Option<Value> {
    let mut evaluations = state.evaluations.iter().rev();
    let evaluation = evaluations.find(|one| one.command == Some(id))?;
    let request = evaluation.request.as_ref()?;
    let report = evaluation.report.as_ref()?;
    let mut figures = crate::cli::eval::report_json(report, request.protocol);
    figures["evaluation"] = json!(evaluation.number);
    Some(figures)
}

fn answer_json(
    run: &str,
    id: u64,
    command: &Command,
    status: &str,
    refused: Option<&str>,
) -> anyhow::Result<Value> {
    Ok(json!({
        "run": run,
        "id": id,
        "request": serde_json::to_value(command)?,
        "status": status,
        "reason": refused,
    }))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::{Args, Command, SafePoint};
    use crate::tui::wording;
    use crate::types::{EpisodeId, TaskId};

    const EPISODE: EpisodeId = EpisodeId {
        incarnation: 1,
        number: 42,
    };

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn the_line_that_the_journal_prints_asks_for_the_same() {
        let at = |at| Command::Pause { at };
        for command in [
            at(SafePoint::EnvStep),
            at(SafePoint::Batch),
            at(SafePoint::PreUpdate),
            at(SafePoint::PostCheckpoint),
            Command::Resume,
            Command::StepPhase,
            Command::StepIteration,
            Command::Stop,
            Command::Checkpoint,
            Command::SetLearningRate { value: 3e-7 },
            Command::SetTemperature { value: 0.7 },
            Command::SetDesktops { value: 12 },
            Command::SetClip {
                low: 0.2,
                high: 0.3,
            },
            Command::SetReplay { enabled: false },
            Command::KillEpisode { episode: EPISODE },
            Command::RerollEpisode { episode: EPISODE },
            Command::RebootDesktop { desktop: 3 },
            Command::PinStored {
                task: TaskId("compact/ed_sub/7".to_owned()),
                episode: EPISODE,
                pinned: true,
            },
            Command::PinStored {
                task: TaskId("compact/ed_sub/7".to_owned()),
                episode: EPISODE,
                pinned: false,
            },
            Command::DropStored {
                task: TaskId("compact/ed_sub/7".to_owned()),
                episode: EPISODE,
            },
            Command::CancelEvaluation { evaluation: 4 },
        ] {
            let line = wording::ctl_line("demo-1", &command);
            let words = line.strip_prefix("arpo ").unwrap().split(' ');
            let parsed = Line::try_parse_from(words).unwrap();
            assert_eq!(parsed.args.run, "demo-1");
            assert_eq!(
                parsed.args.request.plain_command(0),
                Some(command),
                "{line}"
            );
        }
    }
}
