//! The console on a source, and what the operator's leaving means for the command.

use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail};
use tokio::net::UnixStream;

use crate::bus::{Role, Source, SourceItem, attach as attach_source, attach_seated};
use crate::cli::say;
use crate::event::RunState;
use crate::tui::app::Glyphs;
use crate::tui::theme::{ColorDepth, Theme};
use crate::tui::{self, Exit, Images, Options, load_keymap};
use crate::types::EpisodeId;

/// How the console looks.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct ConsoleArgs {
    /// Print one line an event instead, without cursor control; implied where stdout is no terminal
    #[arg(long)]
    plain: bool,
    /// Draw frames, charts and marks in ASCII
    #[arg(long)]
    ascii: bool,
    /// Colors: default, light, high-contrast
    #[arg(long, value_name = "NAME")]
    theme: Option<String>,
    /// How screenshots are shown: auto, kitty, sixel, cells, half or off
    #[arg(
        long,
        value_name = "HOW",
        default_value = "auto",
        hide_default_value = true
    )]
    images: Images,
}

impl ConsoleArgs {
    /// Whether lines are printed.
    pub(super) fn is_plain(&self) -> bool {
        self.plain || !std::io::stdout().is_terminal()
    }

    /// Options of the console on a run of this name. What is wrong with the operator's keys or
    /// theme is found here, before anything is started.
    pub(super) fn options(&self, title: &str) -> anyhow::Result<Options> {
        let defaults = Options::new(title);
        let theme = self.theme.clone().unwrap_or(defaults.theme.clone());
        Theme::built_in(&theme, ColorDepth::None)?;
        Ok(Options {
            glyphs: if self.ascii {
                Glyphs::Ascii
            } else {
                Glyphs::Unicode
            },
            theme,
            keymap: load_keymap()?,
            images: self.images,
            ..defaults
        })
    }
}

/// Who looks, as other consoles are told: `li@laptop`.
fn seat_name() -> String {
    let user = ["USER", "LOGNAME"]
        .into_iter()
        .find_map(|name| std::env::var(name).ok())
        .unwrap_or_else(|| "user".to_owned());
    let host = rustix::system::uname();
    let host = host.nodename().to_string_lossy();
    format!("{user}@{host}")
}

/// Attaches the console to the engine at a socket; the demo proposes to stop when it is left.
pub(super) async fn attach(
    socket: &Path,
    is_demo: bool,
    options: Options,
) -> anyhow::Result<ExitCode> {
    let source = attach_seated(socket, &seat_name()).await?;
    let options = Options {
        is_demo,
        title: source.run.clone(),
        ..options
    };
    attach_with(socket, source, options).await
}

/// Attaches the console to `arpo step`'s engine, on its one episode.
pub(super) async fn attach_to_step(socket: &Path) -> anyhow::Result<ExitCode> {
    let options = ConsoleArgs::default().options("")?;
    let source = attach_seated(socket, &seat_name()).await?;
    let options = Options {
        is_demo: true,
        title: source.run.clone(),
        // Its number is known before it begins.
        episode: Some(EpisodeId {
            incarnation: 0,
            number: 0,
        }),
        ..options
    };
    attach_with(socket, source, options).await
}

async fn attach_with(socket: &Path, source: Source, options: Options) -> anyhow::Result<ExitCode> {
    let run = source.run.clone();
    match run_console(source, options).await? {
        // An engine that has ended hangs up.
        Exit::Detached if UnixStream::connect(socket).await.is_err() => say(format_args!(
            "{run} has ended; `arpo show {run}` looks at it again"
        )),
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
            Some(SourceItem::Heard | SourceItem::Lease(_) | SourceItem::Timeline(_)) => {}
            Some(SourceItem::Lost { .. }) | None => return false,
        }
    }
    true
}
