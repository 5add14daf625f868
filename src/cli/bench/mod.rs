//! `arpo bench`: figures, as ratios where a peer exists. Those that need libtorch are made by
//! `arpo-engine`.

mod console;
mod desktops;
mod fleet;
mod folder;
mod line;
mod memory;
mod paired;
mod rollout;
mod stepped;
mod watched;

use std::process::ExitCode;

use crate::cli::args::ProfileArgs;
use crate::cli::engine;
use crate::config::{ConfigError, Profile, Resolved};

pub use console::ConsoleArgs;
pub use rollout::RolloutArgs;
pub use watched::WatchedArgs;

/// Measure, beside a peer where there is one
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What to measure.
    #[command(subcommand)]
    pub what: Bench,
}

/// What can be measured.
#[derive(Debug, clap::Subcommand)]
pub enum Bench {
    /// An epoch of slow desktops in virtual time beside what desktops and policy bound it to
    Rollout(RolloutArgs),
    /// The console on a fleet of 256 desktops: its cost, its answers, its bytes
    Console(ConsoleArgs),
    /// The engine's iterations with a console attached, and with one whose terminal is stalled,
    /// beside the same iterations with none
    Watched(WatchedArgs),
    /// Replies of the embedded policy beside transformers.generate and a hand-batched loop
    Decode(PeerArgs),
    /// Updates of the embedded trainer beside a hand-batched loop
    Train(PeerArgs),
}

/// `arpo bench decode` and `arpo bench train`: they need the Python of `just setup-ref`.
#[derive(Debug, clap::Args)]
pub struct PeerArgs {
    #[command(flatten)]
    profile: ProfileArgs,
    /// The figures as one JSON object on stdout
    #[arg(long)]
    pub json: bool,
}

impl PeerArgs {
    /// The profile, the demo's where none is named.
    pub fn resolve(&self) -> Result<Profile, ConfigError> {
        Ok(resolve_or(&self.profile, "demo")?.profile)
    }
}

/// The profile that `args` name, else `default`.
fn resolve_or(args: &ProfileArgs, default: &str) -> Result<Resolved, ConfigError> {
    let mut args = args.clone();
    if args.profiles.is_empty() {
        args.profiles.push(default.to_owned());
    }
    args.resolve()
}

/// The middle value; NaN of none.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.what {
        Bench::Rollout(args) => rollout::run(args),
        Bench::Console(args) => console::run(args),
        Bench::Watched(args) => watched::run(args),
        Bench::Decode(args) | Bench::Train(args) => {
            // A bad profile is told without starting the engine.
            args.resolve()?;
            Err(engine::exec_engine())
        }
    }
}
