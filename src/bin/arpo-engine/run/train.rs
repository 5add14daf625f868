//! `arpo-engine train`: the engine process of a training run.

use std::process::ExitCode;

use anyhow::Context;
use arpo::cli::train::Args;
use arpo::cli::wiring::{self, OpenRun};
use arpo::session::{TaskPool, TrainParts, TrainSession};

use crate::run::device;

/// Trains until done; 0 if so, 1 if the run failed, 130 if it was interrupted.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if args.detached {
        // Fails only if this process leads a session already, which is what is wanted.
        let _ = rustix::process::setsid();
    }
    let runtime = tokio::runtime::Runtime::new().context("cannot start the runtime")?;
    runtime.block_on(serve(args))
}

async fn serve(args: &Args) -> anyhow::Result<ExitCode> {
    let resolved = args.resolve()?;
    let profile = &resolved.profile;
    let pool = wiring::tasks_of(&profile.tasks.pool)?;
    let heldout = heldout(&profile.tasks.heldout, profile.eval.heldout_instances)?;
    let prompt = wiring::open_prompt(profile)?;
    let mut open = if let Some(path) = &args.resume {
        OpenRun::resume(path, &resolved).await?
    } else {
        let path = wiring::new_run_path(args.run.as_deref(), profile, &args.overlay());
        let planned = profile.run.iterations;
        OpenRun::create(&path, &resolved, &args.overlay(), pool.len(), planned).await?
    };
    open.heed_signals(args.detached)?;
    let shown = if args.detached {
        None
    } else {
        Some(open.show().await?)
    };
    let device = device::open(profile)?;
    let mut session = TrainSession::new(TrainParts {
        collector: open.collector(profile, device.policy, prompt)?,
        run: open.run.clone(),
        pool: TaskPool::new(pool, profile.run.seed, profile.tasks.shuffle)?,
        heldout,
        learner: device.learner,
    });
    match open.checkpoint.clone() {
        Some(checkpoint) => session.resume(&checkpoint).await?,
        None => session.prefill()?,
    }
    let summary = session.run().await;
    open.close().await?;
    if let Some(shown) = shown {
        shown.await.context("the progress display failed")?;
    }
    if args.json {
        arpo::cli::say(serde_json::to_string(&summary)?);
    }
    Ok(match summary.status.as_str() {
        "finished" => ExitCode::SUCCESS,
        "stopped" => ExitCode::from(arpo::cli::INTERRUPTED),
        _ => ExitCode::FAILURE,
    })
}

/// The first `count` of the held-out tasks.
fn heldout(name: &str, count: usize) -> anyhow::Result<Vec<std::sync::Arc<arpo::types::Task>>> {
    let mut tasks = if count == 0 {
        Vec::new()
    } else {
        wiring::tasks_of(name)?
    };
    tasks.truncate(count);
    Ok(tasks)
}
