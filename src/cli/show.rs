//! `arpo show`: the console on a recorded run.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;

use crate::bus::Source;
use crate::cli::console::ConsoleArgs;
use crate::cli::debug::parse_episode;
use crate::cli::{async_runtime, console, plain};
use crate::event::RunState;
use crate::store::RunDir;
use crate::types::EpisodeId;

/// Look at a recorded run, or at one of its episodes
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Folder of the run, or its name in `runs`
    run: PathBuf,
    /// An episode, as the console names it: 0-000531
    #[arg(value_parser = parse_episode)]
    episode: Option<EpisodeId>,
    #[command(flatten)]
    console: ConsoleArgs,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let folder = folder_of(&args.run);
    if args.console.is_plain() {
        let source = Source::playback(RunDir::open(&folder)?, 0)?;
        async_runtime()?.block_on(plain::follow(source));
        return Ok(ExitCode::SUCCESS);
    }
    let mut options = args.console.options("")?;
    let mut source = Source::replayable(RunDir::open(&folder)?)?;
    options.title.clone_from(&source.run);
    if let Some(id) = args.episode {
        if !source.state.episodes.contains_key(&id) {
            source.state = early_state(&RunDir::open(&folder)?, id)?;
        }
        options.episode = Some(id);
    }
    async_runtime()?.block_on(console::run_console(source, options))?;
    Ok(ExitCode::SUCCESS)
}

/// The run's folder: what was given, or its namesake in `runs/`.
pub(super) fn folder_of(given: &Path) -> PathBuf {
    if given.exists() {
        return given.to_owned();
    }
    Path::new("runs").join(given)
}

/// The run as it was in the iteration of an episode, for one that the last iterations no longer
/// show.
fn early_state(run: &RunDir, id: EpisodeId) -> anyhow::Result<RunState> {
    let group = match run.episode_without_tokens(id) {
        Ok(episode) => episode.group,
        Err(_) => run.failed_episode(id)?.group,
    };
    let group = group.with_context(|| {
        format!("{id} belongs to an evaluation long past, which is not kept step by step")
    })?;
    let state = run.iteration_state(group.iteration)?;
    state.with_context(|| {
        format!(
            "the event log of {} lacks that episode's iteration",
            run.name()
        )
    })
}
