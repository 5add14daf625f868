//! `arpo step`: one episode in a run of its own, held before each action.
//!
//! Scripted policies and a person run in `arpo` itself; for the embedded one this process becomes
//! `arpo-engine step`. With a terminal the engine runs apart and the console is attached to it;
//! without one decisions are lines on stdin.

use std::io::{BufRead, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;

use anyhow::{Context, anyhow, bail};
use serde_json::{Value, json};
use tokio::sync::{broadcast, mpsc};

use crate::bus::{CommandTicket, Controller, Watch};
use crate::cli::args::ProfileArgs;
use crate::cli::debug::{candidate_line, parse_decision, parse_episode};
use crate::cli::engine::{engine_command, exec_engine};
use crate::cli::eval::open_scripted;
use crate::cli::wiring::{self, OpenRun};
use crate::cli::{async_runtime, console, say, train};
use crate::config::{PolicyKind, Profile, Resolved};
use crate::env::simulated::suite;
use crate::event::{
    Command as EngineCommand, CommandStatus, DebugCommand, EpisodeHeld, EventKind, RunSummary,
};
use crate::policy::Policy;
use crate::policy::human::Human;
use crate::rollout::{Branch, Job, Outcome};
use crate::session::{debug_job, load_branch};
use crate::store::RunDir;
use crate::types::{Task, TaskId};

/// Step through one episode: see each action before it is done, change it, choose another
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    profile: ProfileArgs,
    /// The task: its id in the profile's task sets, or of a simulated task
    #[arg(long, value_name = "ID", required_unless_present = "branch")]
    task: Option<String>,
    /// Who answers, instead of the profile's; `human` means you, at every step
    #[arg(long, value_enum, value_name = "POLICY")]
    policy: Option<PolicyChoice>,
    /// Begin with the recorded steps of this episode; the profile is that run's unless -p is given
    #[arg(long, num_args = 2, value_names = ["RUN", "EPISODE"], requires = "at",
          conflicts_with = "task")]
    branch: Option<Vec<String>>,
    /// The step to hold at, from 1; those before it are replayed
    #[arg(long, value_name = "STEP", requires = "branch",
          value_parser = clap::value_parser!(u32).range(1..))]
    at: Option<u32>,
    /// Sampling temperature instead of the profile's
    #[arg(long, value_name = "T")]
    temperature: Option<f64>,
    /// Decides sampling and the desktop's chances
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Folder of the run; named by date and profile below run.dir if absent
    #[arg(long, value_name = "DIR")]
    run: Option<PathBuf>,
    /// No console: decisions are lines on stdin (accept, edit REPLY, write REPLY, regenerate N,
    /// choose N, skip, continue, abort), each step is a line on stdout
    #[arg(long)]
    headless: bool,
    /// The closing figures as one JSON object on stdout
    #[arg(long)]
    json: bool,
    /// Serve consoles only, apart from any terminal; what `arpo step` starts
    #[arg(long, hide = true)]
    detached: bool,
}

/// Who answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum PolicyChoice {
    /// A person writes every reply
    Human,
    /// The profile's script
    Scripted,
    /// The profile's checkpoint
    Embedded,
}

impl Args {
    /// The profile with this command's options laid over it.
    pub fn resolve(&self) -> anyhow::Result<Resolved> {
        let mut sets = self.profile.sets.clone();
        sets.extend(["env.desktops=1", "rollout.max_rerolls=0"].map(str::to_owned));
        let kind = match self.policy {
            Some(PolicyChoice::Scripted) => Some("scripted"),
            Some(PolicyChoice::Embedded) => Some("embedded"),
            Some(PolicyChoice::Human) | None => None,
        };
        sets.extend(kind.map(|kind| format!("policy.kind=\"{kind}\"")));
        let temperature = self.temperature;
        sets.extend(temperature.map(|value| format!("sampling.temperature={value:?}")));
        sets.extend(self.seed.map(|seed| format!("run.seed={seed}")));
        if let (Some((run, _)), true) = (self.branch_of(), self.profile.profiles.is_empty()) {
            let saved = crate::cli::show::folder_of(run).join("profile.toml");
            return Ok(Resolved::load_saved(&saved, &sets)?);
        }
        Ok(Resolved::load(&self.profile.profiles, &sets)?)
    }

    fn branch_of(&self) -> Option<(&Path, &str)> {
        match self.branch.as_deref() {
            Some([run, episode]) => Some((Path::new(run), episode)),
            _ => None,
        }
    }

    fn overlay(&self) -> String {
        format!("step-{}", wiring::overlay_name(&self.profile.profiles))
    }

    fn is_human(&self) -> bool {
        self.policy == Some(PolicyChoice::Human)
    }

    fn load_branch(&self) -> anyhow::Result<Option<Branch>> {
        let Some((run, episode)) = self.branch_of() else {
            return Ok(None);
        };
        let steps = self.at.unwrap_or(1) - 1;
        let id = parse_episode(episode).map_err(|reason| anyhow!("{episode}: {reason}"))?;
        let run = RunDir::open(&crate::cli::show::folder_of(run))?;
        let branch = load_branch(&run, id, steps as usize);
        branch.map(Some).map_err(|reason| anyhow!(reason))
    }

    fn job(&self, profile: &Profile) -> anyhow::Result<Job> {
        let branch = self.load_branch()?;
        let id = match (&branch, &self.task) {
            (Some(branch), _) => branch.episode().task.clone(),
            (None, Some(id)) => TaskId(id.clone()),
            (None, None) => bail!("name a task with --task, or an episode with --branch"),
        };
        let task = find_task(profile, &id)?;
        Ok(debug_job(task, branch, profile.run.seed))
    }
}

/// The task of this id: of the profile's sets, or a simulated one.
fn find_task(profile: &Profile, id: &TaskId) -> anyhow::Result<Arc<Task>> {
    let sets = [
        &profile.eval.tasks,
        &profile.tasks.pool,
        &profile.tasks.heldout,
    ];
    for set in sets {
        // A set that is not there is no reason to refuse a task of another one.
        let tasks = wiring::tasks_of(set).unwrap_or_default();
        if let Some(task) = tasks.into_iter().find(|task| task.id == *id) {
            return Ok(task);
        }
    }
    if let Ok(task) = suite::task_by_id(id) {
        return Ok(Arc::new(task));
    }
    // One of OSWorld's, by its id or the beginning of one.
    let found = if profile.env.kind.is_virtual() {
        Vec::new()
    } else {
        wiring::tasks_of(&id.0)?
    };
    match <[_; 1]>::try_from(found) {
        Ok([task]) => Ok(task),
        Err(_) => bail!("no task {id} in the profile's task sets"),
    }
}

/// Runs the command in `arpo`.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let resolved = args.resolve()?;
    let embedded = resolved.profile.policy.kind == PolicyKind::Embedded && !args.is_human();
    let has_terminal = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
    let serves = args.headless || args.json || args.detached;
    if !serves && has_terminal {
        // What is wrong is better said here than by an engine without a terminal.
        args.job(&resolved.profile)?;
        return attach(args, &resolved.profile, embedded);
    }
    if embedded {
        return Err(exec_engine());
    }
    if !serves {
        bail!("the console needs a terminal; --headless reads decisions from stdin");
    }
    async_runtime()?.block_on(async {
        let policy: Arc<dyn Policy> = if args.is_human() {
            Arc::new(Human::default())
        } else {
            open_scripted(&resolved.profile)?
        };
        run_with(args, &resolved, policy).await
    })
}

/// Starts the engine apart and opens the console on its episode.
fn attach(args: &Args, profile: &Profile, embedded: bool) -> anyhow::Result<ExitCode> {
    let path = wiring::new_run_path(args.run.as_deref(), profile, &args.overlay());
    let mut command = if embedded {
        engine_command()?
    } else {
        Command::new(std::env::current_exe().context("cannot find the path of this executable")?)
    };
    command.args(std::env::args_os().skip(1)).arg("--detached");
    if args.run.is_none() {
        command.arg("--run").arg(&path);
    }
    async_runtime()?.block_on(async {
        let socket = train::start_engine(command, &path).await?;
        console::attach_to_step(&socket).await
    })
}

/// Steps with `policy`, in a run directory of its own.
pub async fn run_with(
    args: &Args,
    resolved: &Resolved,
    policy: Arc<dyn Policy>,
) -> anyhow::Result<ExitCode> {
    if args.detached {
        // Fails only if this process leads a session already, which is what is wanted.
        let _ = rustix::process::setsid();
    }
    let profile = &resolved.profile;
    let job = args.job(profile)?;
    let path = wiring::new_run_path(args.run.as_deref(), profile, &args.overlay());
    let mut open = OpenRun::create(&path, resolved, &args.overlay(), 1, 0).await?;
    open.heed_signals(args.detached)?;
    let operator = if args.detached {
        None
    } else {
        let watch = open.sink.watch().await?;
        Some(tokio::spawn(operate(watch, open.controller.clone())))
    };
    let prompt = wiring::open_prompt(profile)?;
    let mut collector = open.collector(profile, policy, prompt)?;
    let began = std::time::Instant::now();
    let stepped = collector
        .step(&job, profile.sampling.temperature as f32)
        .await;
    let (outcome, status) = match &stepped {
        Ok(Outcome::Scored(_)) => (stepped.as_ref().ok(), "finished"),
        Ok(Outcome::Failed(_)) => (stepped.as_ref().ok(), "stopped"),
        Err(_) => (None, "failed"),
    };
    collector.close().await;
    drop(collector);
    open.sink.emit(EventKind::RunFinished(RunSummary {
        status: status.to_owned(),
        error: stepped.as_ref().err().map(ToString::to_string),
        episodes: u64::from(status == "finished"),
        wall_s: crate::event::F(began.elapsed().as_secs_f64()),
        ..RunSummary::default()
    }));
    let name = open.run.name();
    open.close().await?;
    if let Some(operator) = operator {
        operator.await.context("the reader of decisions failed")?;
    }
    let figures = outcome.map(|outcome| figures(&name, outcome));
    if let (true, Some(figures)) = (args.json, figures) {
        say(figures);
    }
    Ok(match stepped? {
        Outcome::Scored(_) => ExitCode::SUCCESS,
        Outcome::Failed(failed) if failed.class == crate::types::ErrorClass::Cancelled => {
            ExitCode::from(crate::cli::INTERRUPTED)
        }
        Outcome::Failed(_) => ExitCode::FAILURE,
    })
}

fn figures(run: &str, outcome: &Outcome) -> Value {
    match outcome {
        Outcome::Scored(collected) => {
            let episode = &collected.episode;
            json!({
                "run": run,
                "status": "finished",
                "episode": episode.id.to_string(),
                "task": episode.task,
                "end": episode.end,
                "outcome": episode.reward.outcome,
                "state_score": episode.state_score,
                "steps": episode.steps.len(),
                "tokens": episode.tokens.len(),
                "sampled_tokens": episode.tokens.num_sampled(),
                "human_touched": episode.human_touched,
                "branched_from": episode.branched_from,
            })
        }
        Outcome::Failed(failed) => json!({
            "run": run,
            "status": failed.class,
            "episode": failed.id.to_string(),
            "task": failed.task,
            "message": failed.message,
        }),
    }
}

/// Prints what is held and hands over the decisions that stdin brings, until the run is over.
/// When stdin ends, whoever is held is aborted: nothing is done that nobody decided.
async fn operate(watch: Watch, controller: Controller) {
    let mut lines = watch.lines;
    let mut decisions = stdin_lines();
    let mut held: Option<EpisodeHeld> = None;
    loop {
        let line = match lines.recv().await {
            Ok(line) => line,
            Err(broadcast::error::RecvError::Lagged(_)) => continue,
            Err(broadcast::error::RecvError::Closed) => return,
        };
        say_event(&line.event.kind);
        let waits = match &line.event.kind {
            EventKind::EpisodeHeld(new) => {
                held = Some((**new).clone());
                true
            }
            EventKind::CandidatesProposed(_) => true,
            _ => false,
        };
        if let (true, Some(held)) = (waits, &held) {
            decide(held, &controller, &mut decisions).await;
        }
    }
}

fn say_event(kind: &EventKind) {
    match kind {
        EventKind::EpisodeHeld(held) => say_held(held),
        EventKind::CandidatesProposed(proposed) => {
            for (place, candidate) in proposed.candidates.iter().enumerate() {
                say(format_args!(
                    "  {}: {}",
                    place + 1,
                    candidate_line(candidate)
                ));
            }
        }
        EventKind::BranchReplayed(replayed) => match replayed.differs_at {
            Some(step) => say(format_args!(
                "replayed {} steps; the screen differs from the recorded one at step {}",
                replayed.steps,
                step + 1
            )),
            None => say(format_args!(
                "replayed {} steps; every screen is the recorded one",
                replayed.steps
            )),
        },
        EventKind::EpisodeFinished { outcome, steps, .. } => {
            say(format_args!("outcome {outcome} after {steps} steps"));
        }
        EventKind::EpisodeFailed { message, .. } => say(format_args!("no score: {message}")),
        _ => {}
    }
}

fn say_held(held: &EpisodeHeld) {
    say(format_args!(
        "step {} ({}): {}",
        held.step + 1,
        held.reason.words(),
        candidate_line(&held.candidate)
    ));
}

/// Takes lines until the engine has done what one of them asks.
async fn decide(
    held: &EpisodeHeld,
    controller: &Controller,
    lines: &mut mpsc::UnboundedReceiver<String>,
) {
    loop {
        let line = lines.recv().await.unwrap_or_else(|| "abort".to_owned());
        if line.trim().is_empty() {
            continue;
        }
        let decision = match parse_decision(&line) {
            Ok(decision) => decision,
            Err(reason) => {
                say(format_args!("refused: {reason}"));
                continue;
            }
        };
        let command = EngineCommand::Debug(DebugCommand::Decide {
            episode: held.episode,
            step: held.step,
            decision,
        });
        let ticket = controller.submit(command, "stdin");
        match refusal(ticket).await {
            Some(reason) => say(format_args!("refused: {reason}")),
            None => return,
        }
    }
}

async fn refusal(mut ticket: CommandTicket) -> Option<String> {
    match ticket.finished().await {
        Some((_, CommandStatus::Refused { reason })) => Some(reason),
        _ => None,
    }
}

/// Lines of stdin, read by a thread: a runtime would wait for its last line when it ends.
fn stdin_lines() -> mpsc::UnboundedReceiver<String> {
    let (sender, receiver) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { return };
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}
