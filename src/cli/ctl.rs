//! `arpo ctl`: every console command from a script. Exit code 1 if the engine refuses.

use std::process::ExitCode;

use anyhow::{Context, bail};
use serde_json::{Value, json};

use crate::bus::{Role, attach, find_socket, socket_dir};
use crate::cli::debug::{DebugRequest, print_breakpoints};
use crate::cli::{async_runtime, say};
use crate::event::{Command, CommandStatus, RunState, SafePoint};

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
    #[command(flatten)]
    Debug(DebugRequest),
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
        Ok(self.plain_command())
    }

    fn plain_command(&self) -> Option<Command> {
        Some(match *self {
            Request::Debug(_) => return None,
            Request::Pause { at } => Command::Pause {
                at: match at {
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
            Request::SetLr { value } => Command::SetLearningRate { value },
            Request::SetTemperature { value } => Command::SetTemperature { value },
            Request::SetDesktops { value } => Command::SetDesktops { value },
        })
    }
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    async_runtime()?.block_on(ask(args))
}

async fn ask(args: &Args) -> anyhow::Result<ExitCode> {
    // Here, where the message is plain, rather than as a refusal.
    if let Some(command) = args.request.plain_command() {
        command.check().map_err(anyhow::Error::msg)?;
    }
    let socket = find_socket(&socket_dir(), Some(&args.run)).await?;
    let source = attach(&socket, Role::Operate, "ctl").await?;
    let Some(command) = args.request.command(&source.state)? else {
        print_breakpoints(&source.state, args.json)?;
        return Ok(ExitCode::SUCCESS);
    };
    command.check().map_err(anyhow::Error::msg)?;
    let commands = source.commands.context("this run takes no commands")?;
    let mut ticket = commands.send(command.clone());
    let Some((id, status)) = ticket.finished().await else {
        bail!(
            "{} hung up before it answered; `arpo runs list` shows how it stands",
            source.run
        );
    };
    let reason = match &status {
        CommandStatus::Refused { reason } => Some(reason.as_str()),
        CommandStatus::Received | CommandStatus::Accepted | CommandStatus::Done => None,
    };
    if args.json {
        say(answer_json(&source.run, id, &command, reason)?);
    } else {
        match reason {
            Some(reason) => say(format_args!("refused: {reason}")),
            None => say("done"),
        }
    }
    Ok(match reason {
        Some(_) => ExitCode::FAILURE,
        None => ExitCode::SUCCESS,
    })
}

fn answer_json(
    run: &str,
    id: u64,
    command: &Command,
    refused: Option<&str>,
) -> anyhow::Result<Value> {
    Ok(json!({
        "run": run,
        "id": id,
        "request": serde_json::to_value(command)?,
        "status": if refused.is_some() { "refused" } else { "done" },
        "reason": refused,
    }))
}
