//! The `arpo-engine` executable: the embedded model, trainer and inference engine on libtorch,
//! and the wiring of a run with them.

mod bench;
mod device;
mod engine;
mod model;
mod pretrain;
mod run;
mod trainer;
mod version;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use arpo::cli::pretrain::PretrainArgs;
use arpo::cli::{eval, select, step, train};
use clap::Parser as _;

/// Command line of the engine; `arpo` starts it with the same words.
#[derive(clap::Parser)]
#[command(name = "arpo-engine", version)]
enum Command {
    Train(train::Args),
    Eval(eval::Args),
    Select(select::Args),
    Step(step::Args),
    /// Make a base agent by behavior cloning
    Pretrain(PretrainArgs),
    /// Load, decode and learn on the GPU and compare with the CPU
    GpuCheck(run::gpu_check::Args),
    Bench(arpo::cli::bench::Args),
    /// Print versions and device as JSON, for `arpo doctor`
    Version,
}

fn main() -> ExitCode {
    let result = match Command::parse() {
        Command::Train(args) => run::train::run(&args),
        Command::Eval(args) => run::evaluate::eval(&args),
        Command::Select(args) => run::evaluate::select(&args),
        Command::Step(args) => run::evaluate::step(&args),
        Command::Pretrain(args) => pretrain(&args),
        Command::GpuCheck(args) => run::gpu_check::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Version => Ok(version::print()),
    };
    arpo::cli::exit_code(result)
}

/// Clones a base agent.
fn pretrain(args: &PretrainArgs) -> anyhow::Result<ExitCode> {
    let profile = args.profile.resolve()?.profile;
    let out = args.out.clone();
    let out = out.unwrap_or_else(|| PathBuf::from(&profile.pretrain.out));
    let lanes = match profile.engine.lanes {
        0 => std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        lanes => lanes,
    };
    pretrain::run(&profile.pretrain, &out, lanes, say)?;
    Ok(ExitCode::SUCCESS)
}

/// Progress, to standard error.
fn say(line: &str) {
    // Nobody is left to tell if standard error is closed.
    let _ = writeln!(std::io::stderr(), "{line}");
}
