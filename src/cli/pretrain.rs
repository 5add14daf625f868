//! `arpo pretrain`: a base agent by behavior cloning, made by `arpo-engine`.

use std::path::PathBuf;

use crate::cli::args::ProfileArgs;
use crate::cli::engine;

/// Make a base agent by behavior cloning.
#[derive(Debug, clap::Args)]
pub struct PretrainArgs {
    /// Which profile.
    #[command(flatten)]
    pub profile: ProfileArgs,
    /// Folder of the checkpoint instead of pretrain.out; a run interrupted there goes on
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

pub(super) fn run(args: &PretrainArgs) -> anyhow::Error {
    // A bad profile is told without starting the engine.
    match args.profile.resolve() {
        Ok(_) => engine::exec_engine(),
        Err(error) => error.into(),
    }
}
