//! `arpo runs`: what runs and what ran on this machine, stopping, cleaning.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::bus::{
    BusError, Role, RunListing, RunStatus, attach, clean_sockets, find_socket, list_runs,
    socket_dir,
};
use crate::cli::{async_runtime, say};
use crate::env::docker::{self, Swept};
use crate::event::{Command, CommandStatus};
use crate::store::{LockHolder, RunDir};
use crate::tui::text::clean as clean_text;

/// List, stop and clean up the runs of this machine
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    /// Folder that holds runs
    #[arg(long, default_value = "runs", global = true)]
    dir: PathBuf,
    /// Print one JSON object
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Runs that are live, and those in the folder of runs
    List,
    /// End a run after its running phase, with a checkpoint; wait until it has
    Stop {
        /// Its name, the start of it, or its folder
        run: String,
    },
    /// Print what the machine of a desktop logged last: up to 64 KiB of its console
    Log {
        /// The run: its folder or name, or of a live one the start of its name or its socket
        run: String,
        /// The desktop's number, from 0
        desktop: u32,
        /// At most so many lines, the newest
        #[arg(long, value_name = "N")]
        lines: Option<usize>,
    },
    /// Remove sockets that nobody listens at, containers of dead engines, and from the runs named
    /// the episodes and pictures that no checkpoint needs
    Clean {
        /// Runs to prune, by folder or by name
        runs: Vec<String>,
    },
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let runtime = async_runtime()?;
    match &args.action {
        None | Some(Action::List) => runtime.block_on(list(args)),
        Some(Action::Stop { run }) => runtime.block_on(stop(args, run)),
        Some(Action::Log {
            run,
            desktop,
            lines,
        }) => runtime.block_on(log(args, run, *desktop, lines.unwrap_or(usize::MAX))),
        Some(Action::Clean { runs }) => runtime.block_on(clean(args, runs)),
    }
}

async fn list(args: &Args) -> anyhow::Result<ExitCode> {
    let runs = list_runs(&socket_dir(), std::slice::from_ref(&args.dir)).await;
    if args.json {
        say(json!({ "runs": runs }));
        return Ok(ExitCode::SUCCESS);
    }
    if runs.is_empty() {
        say(format_args!(
            "no run is live and none is in {}",
            args.dir.display()
        ));
        return Ok(ExitCode::SUCCESS);
    }
    let width = runs.iter().map(|run| run.name.len()).max().unwrap_or(0);
    say(format_args!(
        "{:width$}  {:11}  {:>11}  {:>7}  {:>8}  profile",
        "run", "status", "iterations", "reward", "age"
    ));
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now_ms = now.map_or(0, |now| now.as_millis() as u64);
    for run in &runs {
        say(row(run, width, now_ms));
    }
    Ok(ExitCode::SUCCESS)
}

fn row(run: &RunListing, width: usize, now_ms: u64) -> String {
    let iterations = format!("{}/{}", run.iterations_done, run.iterations);
    let reward = run
        .reward_mean
        .map_or("–".to_owned(), |mean| format!("{mean:.3}"));
    let age = age(now_ms.saturating_sub(run.started_unix_ms) / 1000);
    let (name, profile, status) = (&run.name, &run.profile, status_word(run.status));
    format!("{name:width$}  {status:11}  {iterations:>11}  {reward:>7}  {age:>8}  {profile}")
}

fn status_word(status: RunStatus) -> &'static str {
    match status {
        RunStatus::Live => "live",
        RunStatus::Silent => "silent",
        RunStatus::Finished => "finished",
        RunStatus::Failed => "failed",
        RunStatus::Interrupted => "interrupted",
    }
}

/// A span in its largest whole unit.
fn age(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..86_400 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

async fn stop(args: &Args, run: &str) -> anyhow::Result<ExitCode> {
    let folder = folder_of(&args.dir, run);
    let named = folder
        .as_ref()
        .and_then(|folder| folder.to_str())
        .unwrap_or(run);
    let attached = match find_socket(&socket_dir(), Some(named)).await {
        Ok(socket) => attach(&socket, Role::Operate, "ctl").await,
        Err(error) => Err(error),
    };
    let source = match attached {
        Ok(source) => source,
        Err(error) => return stop_by_signal(args, folder.as_deref(), error),
    };
    let run = source.run.clone();
    let commands = source.into_commands();
    let commands = commands.context("this run takes no commands")?;
    let mut ticket = commands.send(Command::Stop);
    match ticket.finished().await {
        Some((_, CommandStatus::Refused { reason })) => {
            bail!("{run} does not stop: {reason}")
        }
        Some(_) => {}
        None => bail!("{run} hung up before it said that it stopped"),
    }
    report_stopped(args, &run);
    Ok(ExitCode::SUCCESS)
}

/// An engine that lives but does not answer drains and checkpoints on TERM, too.
fn stop_by_signal(args: &Args, folder: Option<&Path>, error: BusError) -> anyhow::Result<ExitCode> {
    let run = match folder {
        Some(folder) => RunDir::open(folder)?,
        None => return Err(error.into()),
    };
    let Some(holder) = run.writer().filter(LockHolder::is_here) else {
        return Err(error.into());
    };
    let pid = i32::try_from(holder.pid).ok().and_then(Pid::from_raw);
    let pid = pid.context("the lock names no process")?;
    kill_process(pid, Signal::TERM)
        .with_context(|| format!("cannot signal process {}", holder.pid))?;
    report_stopped(args, &run.name());
    Ok(ExitCode::SUCCESS)
}

fn report_stopped(args: &Args, run: &str) {
    if args.json {
        say(json!({ "run": run, "status": "stopping" }));
    } else {
        say(format_args!(
            "{run} stops; its last checkpoint is for --resume"
        ));
    }
}

/// A machine's log, from the run's folder or, where that is on another machine, from the engine.
async fn log(args: &Args, run: &str, desktop: u32, most: usize) -> anyhow::Result<ExitCode> {
    let (name, log) = if let Some(folder) = folder_of(&args.dir, run) {
        let run = RunDir::open(&folder)?;
        (run.name(), run.machine_log(desktop, None)?)
    } else {
        let socket = find_socket(&socket_dir(), Some(run)).await?;
        let source = attach(&socket, Role::Watch, "runs").await?;
        let log = source.pictures.machine_log(desktop, None).await?;
        (source.run, log)
    };
    let lines: Vec<String> = log.lines.iter().map(|line| clean_text(line)).collect();
    let newest = &lines[lines.len().saturating_sub(most)..];
    if args.json {
        say(json!({ "run": name, "desktop": desktop, "lines": newest }));
        return Ok(ExitCode::SUCCESS);
    }
    if log.end.is_none() {
        bail!(
            "desktop {desktop} of {name} logged nothing: only desktops with a machine of their own \
             do, once it starts"
        );
    }
    for line in newest {
        say(line);
    }
    Ok(ExitCode::SUCCESS)
}

async fn clean(args: &Args, runs: &[String]) -> anyhow::Result<ExitCode> {
    let sockets = clean_sockets(&socket_dir()).await?;
    let containers = sweep_containers().await;
    let mut pruned = Vec::new();
    for name in runs {
        let folder = folder_of(&args.dir, name);
        let folder = folder.with_context(|| {
            format!(
                "no run {name}: give its folder, or its name in {}",
                args.dir.display()
            )
        })?;
        let run = RunDir::open(&folder)?;
        pruned.push((run.name(), run.prune()?));
    }
    if args.json {
        let pruned: Vec<_> = pruned
            .iter()
            .map(|(run, report)| {
                json!({ "run": run, "episodes": report.episodes, "pictures": report.pictures,
                    "bytes": report.bytes })
            })
            .collect();
        let mut report = json!({ "sockets": sockets, "pruned": pruned });
        match containers {
            None => {}
            Some(Ok(swept)) => {
                report["containers"] = json!({ "removed": swept.removed, "left": swept.left,
                    "failed": swept.failed });
            }
            Some(Err(reason)) => report["containers"] = json!({ "error": reason }),
        }
        say(report);
        return Ok(ExitCode::SUCCESS);
    }
    say(format_args!("{} dead sockets removed", sockets.len()));
    match containers {
        None => {}
        Some(Ok(swept)) => say_swept(&swept),
        Some(Err(reason)) => say(format_args!("containers were not looked at: {reason}")),
    }
    for (run, report) in pruned {
        let megabytes = report.bytes as f64 / 1e6;
        say(format_args!(
            "{run}: {} episodes and {} pictures removed, {megabytes:.1} MB",
            report.episodes, report.pictures
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// What dead engines left with the Docker daemon; none where there is no daemon.
async fn sweep_containers() -> Option<Result<Swept, String>> {
    let docker_host = std::env::var("DOCKER_HOST").ok();
    let socket = match docker::socket_of(docker_host.as_deref()) {
        Ok(socket) => socket,
        Err(reason) => return Some(Err(reason)),
    };
    if !socket.exists() && docker_host.is_none() {
        return None;
    }
    let swept = docker::sweep(&socket).await;
    Some(swept.map_err(|error| error.to_string()))
}

fn say_swept(swept: &Swept) {
    say(format_args!(
        "{} containers of dead engines removed",
        swept.removed.len()
    ));
    for container in swept.left.iter().chain(&swept.failed) {
        say(format_args!("left {container}"));
    }
}

/// The folder of a run given by path or by name.
fn folder_of(dir: &Path, run: &str) -> Option<PathBuf> {
    let candidates = [PathBuf::from(run), dir.join(run)];
    candidates
        .into_iter()
        .find(|path| path.join("events").is_dir())
}
