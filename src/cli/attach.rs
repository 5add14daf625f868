//! `arpo attach`: the console on a live run.

use std::process::ExitCode;

use crate::bus::{Role, attach, find_socket, socket_dir};
use crate::cli::async_runtime;
use crate::cli::console::{self, ConsoleArgs};
use crate::tui::Options;

/// Watch and steer a live run
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The run: its name, the start of it, its folder or its socket; needless if only one is live
    run: Option<String>,
    /// Watch only; send no commands
    #[arg(long)]
    watch: bool,
    #[command(flatten)]
    console: ConsoleArgs,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    async_runtime()?.block_on(async {
        let socket = find_socket(&socket_dir(), args.run.as_deref()).await?;
        if !args.watch {
            return console::attach(&socket, false, args.console).await;
        }
        let source = attach(&socket, Role::Watch, "console").await?;
        let options = Options {
            watch_only: true,
            ..args.console.options(&source.run)
        };
        console::run_console(source, options).await?;
        Ok(ExitCode::SUCCESS)
    })
}
