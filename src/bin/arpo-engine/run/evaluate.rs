//! `arpo-engine eval`, `select` and `step`: the library's commands with the embedded policy.

use std::process::ExitCode;

use anyhow::Context;
use arpo::cli::{eval, select, step};

use crate::run::device;

/// Evaluates the embedded policy.
pub fn eval(args: &eval::Args) -> anyhow::Result<ExitCode> {
    let resolved = args.resolve()?;
    let policy = device::open(&resolved.profile)?.policy;
    runtime()?.block_on(eval::evaluate(args, &resolved, policy))
}

/// Selects tasks with the embedded policy.
pub fn select(args: &select::Args) -> anyhow::Result<ExitCode> {
    let resolved = args.resolve()?;
    let policy = device::open(&resolved.profile)?.policy;
    runtime()?.block_on(select::run_with(args, &resolved, policy))
}

/// Steps through an episode of the embedded policy.
pub fn step(args: &step::Args) -> anyhow::Result<ExitCode> {
    let resolved = args.resolve()?;
    let policy = device::open(&resolved.profile)?.policy;
    runtime()?.block_on(step::run_with(args, &resolved, policy))
}

fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    tokio::runtime::Runtime::new().context("cannot start the runtime")
}
