//! `arpo select`: keeps the tasks that a policy solves at least now and then.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;

use crate::cli::args::ProfileArgs;
use crate::cli::engine::exec_engine;
use crate::cli::eval::open_scripted;
use crate::cli::wiring::{self, OpenRun};
use crate::config::{PolicyKind, Resolved};
use crate::event::{EventKind, F, RunSummary};
use crate::policy::Policy;
use crate::session::{SelectSpec, Selection, select};

/// Roll every task of the pool out and write the list of those solved often enough
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    profile: ProfileArgs,
    /// Task set instead of the profile's pool
    #[arg(long, value_name = "SET")]
    tasks: Option<String>,
    /// Episodes a task
    #[arg(long, value_name = "N", default_value_t = 16)]
    rollouts: u32,
    /// Successes a task needs
    #[arg(long, value_name = "N", default_value_t = 1)]
    min_successes: u32,
    /// Successes a task may have; more teach nothing
    #[arg(long, value_name = "N")]
    max_successes: Option<u32>,
    /// Keep at most so many tasks, spread evenly over how often they were solved
    #[arg(long, value_name = "N")]
    max_tasks: Option<usize>,
    /// The list of task ids to write, JSON
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Folder of the selection's run, which can fill a replay buffer (replay.prefill)
    #[arg(long, value_name = "DIR")]
    run: Option<PathBuf>,
    /// Counts of every task as one JSON object on stdout
    #[arg(long)]
    json: bool,
}

impl Args {
    /// The profile.
    pub fn resolve(&self) -> anyhow::Result<Resolved> {
        Ok(self.profile.resolve()?)
    }
}

/// Runs the command in `arpo`.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let resolved = args.resolve()?;
    if resolved.profile.policy.kind == PolicyKind::Embedded {
        return Err(exec_engine());
    }
    let runtime = tokio::runtime::Runtime::new().context("cannot start the runtime")?;
    runtime.block_on(async {
        let policy = open_scripted(&resolved.profile)?;
        run_with(args, &resolved, policy).await
    })
}

/// Selects with `policy`.
pub async fn run_with(
    args: &Args,
    resolved: &Resolved,
    policy: Arc<dyn Policy>,
) -> anyhow::Result<ExitCode> {
    let profile = &resolved.profile;
    let name = args.tasks.as_ref().unwrap_or(&profile.tasks.pool);
    let tasks = wiring::tasks_of(name)?;
    let overlay = format!("select-{}", wiring::overlay_name(&args.profile.profiles));
    let path = wiring::new_run_path(args.run.as_deref(), profile, &overlay);
    let mut open = OpenRun::create(&path, resolved, &overlay, tasks.len(), 0).await?;
    open.heed_signals(false)?;
    let shown = open.show().await?;
    let spec = SelectSpec {
        tasks,
        rollouts: args.rollouts,
        min_successes: args.min_successes,
        max_successes: args.max_successes.unwrap_or(args.rollouts),
        max_tasks: args.max_tasks.unwrap_or(usize::MAX),
        temperature: profile.sampling.temperature as f32,
        seed: profile.run.seed,
    };
    let prompt = wiring::open_prompt(profile)?;
    let mut collector = open.collector(profile, policy, prompt)?;
    let began = std::time::Instant::now();
    let selection = select(&mut collector, &spec, &open.run).await?;
    collector.close().await;
    drop(collector);
    let status = if selection.is_some() {
        "finished"
    } else {
        "stopped"
    };
    let scored = |s: &Selection| s.tasks.iter().map(|task| u64::from(task.scored)).sum();
    let summary = RunSummary {
        status: status.to_owned(),
        episodes: selection.as_ref().map_or(0, scored),
        env_errors: selection.as_ref().map_or(0, |s| u64::from(s.errors)),
        wall_s: F(began.elapsed().as_secs_f64()),
        ..RunSummary::default()
    };
    open.sink.emit(EventKind::RunFinished(summary));
    open.close().await?;
    shown.await.context("the progress display failed")?;
    let Some(selection) = selection else {
        return Ok(ExitCode::from(crate::cli::INTERRUPTED));
    };
    let kept = selection.kept();
    let list = serde_json::to_string_pretty(&kept)? + "\n";
    std::fs::write(&args.out, list)
        .with_context(|| format!("cannot write {}", args.out.display()))?;
    crate::cli::note(format!(
        "kept {} of {} tasks",
        kept.len(),
        selection.tasks.len()
    ));
    if args.json {
        crate::cli::say(serde_json::to_string(&selection)?);
    }
    Ok(ExitCode::SUCCESS)
}
