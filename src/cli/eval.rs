//! `arpo eval`: rolls a task set out and scores every trajectory by all three protocols.
//!
//! Scripted policies run in `arpo` itself; for the embedded one this process becomes
//! `arpo-engine eval`, which calls `evaluate` with its own policy.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use serde_json::{Value, json};

use crate::cli::args::ProfileArgs;
use crate::cli::engine::exec_engine;
use crate::cli::wiring::{self, OpenRun};
use crate::config::{PolicyKind, Profile, Protocol, Resolved, assets};
use crate::event::{EvalReport, EventKind, F, ProtocolScore, RunSummary};
use crate::policy::Policy;
use crate::policy::scripted::{Script, Scripted};
use crate::rollout::Outcome;
use crate::session::EvaluationSpec;

/// Measure a policy on a task set; standard, hard and plain scores from the same trajectories
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    profile: ProfileArgs,
    /// Checkpoint folder instead of the profile's
    #[arg(long, value_name = "DIR")]
    checkpoint: Option<PathBuf>,
    /// Task set instead of the profile's: a name under assets/tasks, a list file or a folder of
    /// task files
    #[arg(long, value_name = "SET")]
    tasks: Option<String>,
    /// The headline score: standard, hard or plain
    #[arg(long, value_name = "PROTOCOL")]
    protocol: Option<String>,
    /// Episodes a task
    #[arg(long, value_name = "N")]
    trials: Option<usize>,
    /// Sampling temperature; 0 is greedy
    #[arg(long, value_name = "T")]
    temperature: Option<f64>,
    /// Decides sampling and the desktops' chances
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Folder of the evaluation's run; named by date and profile if absent
    #[arg(long, value_name = "DIR")]
    run: Option<PathBuf>,
    /// The scores as one JSON object on stdout
    #[arg(long)]
    json: bool,
}

impl Args {
    /// The profile with this command's options laid over it.
    pub fn resolve(&self) -> anyhow::Result<Resolved> {
        let mut profile = self.profile.clone();
        let text =
            |value: &dyn std::fmt::Display| toml::Value::String(value.to_string()).to_string();
        let mut set = |key: &str, value: Option<String>| {
            profile
                .sets
                .extend(value.map(|value| format!("{key}={value}")));
        };
        let checkpoint = self.checkpoint.as_ref().map(|path| text(&path.display()));
        set("policy.checkpoint", checkpoint);
        set("eval.tasks", self.tasks.as_ref().map(|name| text(name)));
        set(
            "eval.protocol",
            self.protocol.as_ref().map(|name| text(name)),
        );
        set("eval.trials", self.trials.map(|trials| trials.to_string()));
        set(
            "eval.temperature",
            self.temperature.map(|value| format!("{value:?}")),
        );
        set("run.seed", self.seed.map(|seed| seed.to_string()));
        Ok(profile.resolve()?)
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
        evaluate(args, &resolved, policy).await
    })
}

/// The scripted policy of a profile.
pub fn open_scripted(profile: &Profile) -> anyhow::Result<Arc<dyn Policy>> {
    let script = if profile.policy.script == "expert" {
        Script::Expert
    } else {
        Script::read(&assets::locate(&profile.policy.script))?
    };
    let prompt = wiring::open_prompt(profile)?;
    Ok(Arc::new(Scripted::new(
        script,
        prompt,
        profile.policy.clone(),
        profile.engine.cost,
    )))
}

/// Evaluates `policy` as the profile says, into a run directory of its own.
pub async fn evaluate(
    args: &Args,
    resolved: &Resolved,
    policy: Arc<dyn Policy>,
) -> anyhow::Result<ExitCode> {
    let profile = &resolved.profile;
    let overlay = wiring::overlay_name(&args.profile.profiles);
    let tasks = wiring::tasks_of(&profile.eval.tasks)?;
    let path = run_path(args.run.as_deref(), profile, &overlay);
    let mut open = OpenRun::create(&path, resolved, &overlay, tasks.len(), 0).await?;
    open.heed_signals(false)?;
    let shown = open.show().await?;
    let spec = EvaluationSpec {
        name: "eval".to_owned(),
        task_set: profile.eval.tasks.clone(),
        tasks,
        trials: profile.eval.trials as u32,
        temperature: profile.eval.temperature as f32,
        seed: profile.run.seed,
    };
    let prompt = wiring::open_prompt(profile)?;
    let mut collector = open.collector(profile, policy, prompt);
    let measured = collector.evaluate(&spec).await?;
    if let Some((_, collection)) = &measured {
        for outcome in &collection.outcomes {
            match outcome {
                Outcome::Scored(collected) => open.run.put_episode(&collected.episode)?,
                Outcome::Failed(failed) => open.run.put_failed_episode(failed)?,
            }
        }
    }
    collector.close().await;
    drop(collector);
    let status = if measured.is_some() {
        "finished"
    } else {
        "stopped"
    };
    let summary = RunSummary {
        status: status.to_owned(),
        episodes: measured
            .as_ref()
            .map_or(0, |(report, _)| report.plain.all.n),
        env_errors: measured.as_ref().map_or(0, |(report, _)| report.errors),
        wall_s: F(measured
            .as_ref()
            .map_or(0.0, |(report, _)| report.wall_ms as f64 / 1000.0)),
        ..RunSummary::default()
    };
    open.sink.emit(EventKind::RunFinished(summary));
    open.close().await?;
    shown.await.context("the progress display failed")?;
    let Some((report, collection)) = measured else {
        return Ok(ExitCode::from(crate::cli::INTERRUPTED));
    };
    if args.json {
        let mut figures = report_json(&report, profile.eval.protocol);
        figures["families"] = json!(spec.families(&collection, profile.eval.protocol));
        crate::cli::say(figures);
    }
    Ok(ExitCode::SUCCESS)
}

fn run_path(told: Option<&Path>, profile: &Profile, overlay: &str) -> PathBuf {
    wiring::new_run_path(told, profile, &format!("eval-{overlay}"))
}

/// The scores as one JSON object.
pub(super) fn report_json(report: &EvalReport, headline: Protocol) -> Value {
    let of = |score: &ProtocolScore| serde_json::to_value(score).expect("plain data");
    let chosen = match headline {
        Protocol::Standard => &report.standard,
        Protocol::Hard => &report.hard,
        Protocol::Plain => &report.plain,
    };
    json!({
        "tasks": report.tasks,
        "policy_version": report.policy,
        "temperature": report.temperature,
        "protocol": headline,
        "score": chosen.all.score,
        "success": chosen.all.success,
        "protocols": {
            "standard": of(&report.standard),
            "hard": of(&report.hard),
            "plain": of(&report.plain),
        },
        "errors": report.errors,
        "wall_s": report.wall_ms as f64 / 1000.0,
    })
}
