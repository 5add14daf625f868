//! The console on a source, and what the operator's leaving means for the command.

use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail};

use crate::bus::{Role, Source, SourceItem, attach as attach_source};
use crate::cli::say;
use crate::event::RunState;
use crate::tui::{self, Exit, Options};
use crate::types::EpisodeId;

/// Attaches the console to the engine at a socket; the demo proposes to stop when it is left.
pub(super) async fn attach(socket: &Path, is_demo: bool) -> anyhow::Result<ExitCode> {
    let source = attach_source(socket, Role::Operate, "console").await?;
    let options = Options {
        is_demo,
        ..Options::new(&source.run)
    };
    attach_with(socket, source, options).await
}

/// Attaches the console to `arpo step`'s engine, on its one episode.
pub(super) async fn attach_to_step(socket: &Path) -> anyhow::Result<ExitCode> {
    let source = attach_source(socket, Role::Operate, "console").await?;
    let options = Options {
        is_demo: true,
        // Its number is known before it begins.
        episode: Some(EpisodeId {
            incarnation: 0,
            number: 0,
        }),
        ..Options::new(&source.run)
    };
    attach_with(socket, source, options).await
}

async fn attach_with(socket: &Path, source: Source, options: Options) -> anyhow::Result<ExitCode> {
    let run = source.run.clone();
    match run_console(source, options).await? {
        Exit::Detached => say(format_args!(
            "detached; `arpo attach {run}` comes back to the run"
        )),
        Exit::StopAsked => {
            say(format_args!(
                "{run} is stopping after the running phase, with a checkpoint"
            ));
            if has_ended(socket).await {
                say("stopped");
            } else {
                say("the engine hung up first; `arpo runs list` shows how the run stands");
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs the console beside the runtime, which feeds its source.
pub(super) async fn run_console(source: Source, options: Options) -> anyhow::Result<Exit> {
    if !std::io::stdout().is_terminal() {
        bail!("the console needs a terminal; `arpo ctl` and `arpo runs` work without one");
    }
    let console = tokio::task::spawn_blocking(move || tui::run(source, &options));
    Ok(console.await.context("the console failed")??)
}

/// Waits until the engine at a socket has ended its run; `false` if it cannot be reached before.
async fn has_ended(socket: &Path) -> bool {
    let Ok(mut source) = attach_source(socket, Role::Watch, "console").await else {
        return false;
    };
    let mut state: RunState = std::mem::take(&mut source.state);
    while !state.is_over() {
        match source.items.recv().await {
            Some(SourceItem::Event(event)) => state.apply(&event),
            Some(SourceItem::Resync { state: newer, .. }) => state = *newer,
            Some(SourceItem::Heard) => {}
            Some(SourceItem::Lost { .. }) | None => return false,
        }
    }
    true
}
