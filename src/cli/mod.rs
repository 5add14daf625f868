//! The command line of `arpo`: one file a command, one line each to register it below.
//!
//! What a command prints for people goes through `say`, which a closed pipe does not break.
//! Exit codes: 0 done, 1 failed, 2 usage or profile, 130 interrupted.

pub mod args;
mod attach;
pub mod bench;
mod console;
mod ctl;
mod debug;
mod doctor;
mod engine;
pub mod eval;
mod guest;
mod headless;
mod plain;
pub mod pretrain;
mod profile;
mod runs;
pub mod select;
mod show;
pub mod step;
mod tasks;
pub mod train;
pub mod wiring;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

pub use engine::{ALLOCATOR_VARIABLE, engine_command, exec_engine, find_engine};

use crate::config::ConfigError;
use crate::tui::KeysError;
use crate::tui::theme::ThemeError;

/// A command that stopped because the operator said so.
pub const INTERRUPTED: u8 = 130;
const FAILED: u8 = 1;
const USAGE: u8 = 2;

/// Operator console and trainer for GUI agents: ARPO over many desktops.
#[derive(Debug, Parser)]
#[command(name = "arpo", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Train(train::Args),
    Eval(eval::Args),
    Select(select::Args),
    Step(step::Args),
    Attach(attach::Args),
    Show(show::Args),
    Ctl(ctl::Args),
    Runs(runs::Args),
    Tasks(tasks::Args),
    /// Make a base agent by behavior cloning
    Pretrain(pretrain::PretrainArgs),
    Bench(bench::Args),
    Profile(profile::Args),
    Guest(guest::Args),
    Doctor(doctor::Args),
    /// Wait for a console's end and mend its terminal if it was killed; started by the console
    #[command(hide = true)]
    GuardTerminal,
}

/// Entry point of `arpo`.
pub fn main() -> ExitCode {
    // Clap prints its own errors and leaves with 2.
    let result = match Cli::parse().command {
        Command::Train(args) => train::run(&args),
        Command::Eval(args) => eval::run(&args),
        Command::Select(args) => select::run(&args),
        Command::Step(args) => step::run(&args),
        Command::Attach(args) => attach::run(&args),
        Command::Show(args) => show::run(&args),
        Command::Ctl(args) => ctl::run(&args),
        Command::Runs(args) => runs::run(&args),
        Command::Tasks(args) => tasks::run(&args),
        Command::Pretrain(args) => Err(pretrain::run(&args)),
        Command::Bench(args) => bench::run(&args),
        Command::Profile(args) => profile::run(&args),
        Command::Guest(args) => guest::run(args),
        Command::Doctor(args) => doctor::run(&args),
        Command::GuardTerminal => guard_terminal(),
    };
    exit_code(result)
}

/// Runs beside a console, started by it.
fn guard_terminal() -> anyhow::Result<ExitCode> {
    crate::tui::stand_guard()?;
    Ok(ExitCode::SUCCESS)
}

/// The exit code of a command's result; an error is printed on stderr, causes after colons.
pub fn exit_code(result: anyhow::Result<ExitCode>) -> ExitCode {
    let error = match result {
        Ok(code) => return code,
        Err(error) => error,
    };
    let _ = writeln!(std::io::stderr(), "arpo: {error:#}");
    let is_usage = error.chain().any(|cause| {
        cause.is::<ConfigError>() || cause.is::<KeysError>() || cause.is::<ThemeError>()
    });
    ExitCode::from(if is_usage { USAGE } else { FAILED })
}

/// Prints a line on stdout.
pub fn say(line: impl std::fmt::Display) {
    // A reader that left (`| head`) is no failure of the command.
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// Prints a line for people on stderr.
pub fn note(line: impl std::fmt::Display) {
    // As above.
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// The runtime that commands wait in.
pub(crate) fn async_runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Runtime::new()?)
}
