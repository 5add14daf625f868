//! `arpo eval`: rolls a task set out and scores every trajectory by all three protocols.
//!
//! Scripted policies run in `arpo` itself; for the embedded one this process becomes
//! `arpo-engine eval`, which calls `evaluate` with its own policy.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, bail};
use serde_json::{Value, json};

use crate::cli::args::ProfileArgs;
use crate::cli::engine::exec_engine;
use crate::cli::wiring::{self, OpenRun};
use crate::config::{PolicyKind, Profile, Protocol, Resolved, assets};
use crate::event::score::score_by_family;
use crate::event::{
    EvalReport, EvalRequest, EvalWeights, EvalWhen, EventKind, F, ProtocolScore, RunSummary,
};
use crate::policy::Policy;
use crate::policy::scripted::{Script, Scripted};
use crate::session::Evaluated;
use crate::store::{EvaluationRecord, RunDir};

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
    /// Go on with the evaluation in this folder, under the conditions it began with; no trial is
    /// done twice
    #[arg(
        long,
        value_name = "DIR",
        conflicts_with_all = ["run", "checkpoint", "tasks", "protocol", "trials", "temperature", "seed"]
    )]
    resume: Option<PathBuf>,
    /// The scores as one JSON object on stdout
    #[arg(long)]
    json: bool,
}

impl Args {
    /// The profile with this command's options laid over it.
    pub fn resolve(&self) -> anyhow::Result<Resolved> {
        if let Some(run) = &self.resume {
            let path = run.join("profile.toml");
            return Ok(Resolved::load_saved(&path, &self.profile.sets)?);
        }
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
    let mut open = if let Some(path) = &args.resume {
        OpenRun::go_on(path, resolved).await?
    } else {
        let path = run_path(args.run.as_deref(), profile, &overlay);
        OpenRun::create(&path, resolved, &overlay, tasks.len(), 0).await?
    };
    let record = match &args.resume {
        Some(_) => Some(unfinished(&open.run)?),
        None => None,
    };
    open.heed_signals(false)?;
    let shown = open.show().await?;
    let prompt = wiring::open_prompt(profile)?;
    let mut collector = open.collector(profile, policy, prompt)?;
    collector.close_evaluations("this run is an evaluation itself; start another `arpo eval`");
    let measured = if let Some(record) = record {
        collector.evaluate_further(record, tasks).await
    } else {
        let request = request(profile);
        collector.evaluate("eval", request, tasks).await
    };
    collector.close_evaluations("stopped; `arpo eval --resume` goes on with it");
    collector.close().await;
    drop(collector);
    let measured = measured?;
    let status = if measured.is_some() {
        "finished"
    } else {
        "stopped"
    };
    let summary = RunSummary {
        status: status.to_owned(),
        episodes: measured
            .as_ref()
            .map_or(0, |measured| measured.report.plain.all.n),
        env_errors: measured
            .as_ref()
            .map_or(0, |measured| measured.report.errors),
        wall_s: F(measured
            .as_ref()
            .map_or(0.0, |measured| measured.report.wall_ms as f64 / 1000.0)),
        ..RunSummary::default()
    };
    open.sink.emit(EventKind::RunFinished(summary));
    open.close().await?;
    shown.await.context("the progress display failed")?;
    let Some(Evaluated { report, trials }) = measured else {
        return Ok(ExitCode::from(crate::cli::INTERRUPTED));
    };
    if args.json {
        let mut figures = report_json(&report, profile.eval.protocol);
        figures["families"] = json!(score_by_family(&trials, profile.eval.protocol));
        crate::cli::say(figures);
    }
    Ok(ExitCode::SUCCESS)
}

/// What the profile asks for.
fn request(profile: &Profile) -> EvalRequest {
    EvalRequest {
        weights: EvalWeights::Current,
        tasks: profile.eval.tasks.clone(),
        trials: profile.eval.trials as u32,
        temperature: profile.eval.temperature,
        seed: profile.run.seed,
        protocol: profile.eval.protocol,
        when: EvalWhen::SafePoint,
        resume: None,
    }
}

/// The evaluation of a run of `arpo eval`, if it lacks trials.
fn unfinished(run: &RunDir) -> anyhow::Result<EvaluationRecord> {
    let Some(number) = run.evaluations()?.into_iter().next_back() else {
        bail!(
            "{} holds no evaluation to go on with: it has no evals/",
            run.root().display()
        );
    };
    let record = run.evaluation(number)?;
    if record.report.is_some() {
        bail!(
            "the evaluation in {} is complete; `arpo show` shows its scores",
            run.root().display()
        );
    }
    Ok(record)
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
        "manifest": report.manifest,
        "wall_s": report.wall_ms as f64 / 1000.0,
    })
}
