//! `arpo train`: a detached engine with the console on it, or everything in the foreground.
//!
//! The engine is `arpo-engine train` with the same arguments; `--headless` replaces this
//! process by it.

use std::fs::File;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};

use crate::bus;
use crate::cli::args::ProfileArgs;
use crate::cli::console::{self, ConsoleArgs};
use crate::cli::engine::{engine_command, exec_engine};
use crate::cli::wiring;
use crate::config::Resolved;

/// How long an engine may take to listen.
const START_LIMIT: Duration = Duration::from_secs(60);

/// Train a policy by ARPO; start an engine and attach the console to it
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    profile: ProfileArgs,
    /// Iterations instead of the profile's
    #[arg(long, value_name = "N")]
    iterations: Option<u64>,
    /// Folder of the run; named by date and profile below run.dir if absent
    #[arg(long, value_name = "DIR")]
    pub run: Option<PathBuf>,
    /// Go on with the run in this folder from its newest checkpoint
    #[arg(long, value_name = "DIR", conflicts_with = "run")]
    pub resume: Option<PathBuf>,
    /// No console: everything in the foreground, progress on stderr
    #[arg(long)]
    headless: bool,
    /// The closing figures as one JSON object on stdout
    #[arg(long)]
    pub json: bool,
    /// Serve consoles only, apart from any terminal; what `arpo train` starts
    #[arg(long, hide = true)]
    pub detached: bool,
    #[command(flatten)]
    console: ConsoleArgs,
}

impl Args {
    /// The resolved profile: the saved one of a run to go on with, else base and overlays.
    pub fn resolve(&self) -> anyhow::Result<Resolved> {
        let mut profile = self.profile.clone();
        if let Some(iterations) = self.iterations {
            profile.sets.push(format!("run.iterations={iterations}"));
        }
        Ok(match &self.resume {
            Some(run) => Resolved::load_saved(&run.join("profile.toml"), &profile.sets)?,
            None => profile.resolve()?,
        })
    }

    /// Name of the last overlay.
    pub fn overlay(&self) -> String {
        wiring::overlay_name(&self.profile.profiles)
    }
}

/// Runs the command in `arpo`.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let resolved = args.resolve()?;
    let words: Vec<_> = std::env::args_os().skip(1).collect();
    let has_terminal = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
    if args.headless || args.json || args.console.is_plain() || !has_terminal {
        return Err(exec_engine());
    }
    // What is wrong with the operator's keys is told before an engine runs.
    let options = args.console.options("")?;
    let path = match &args.resume {
        Some(run) => run.clone(),
        None => wiring::new_run_path(args.run.as_deref(), &resolved.profile, &args.overlay()),
    };
    let mut command = engine_command()?;
    command.args(&words).arg("--detached");
    if args.resume.is_none() && args.run.is_none() {
        command.arg("--run").arg(&path);
    }
    let is_demo = args.overlay() == "demo";
    let runtime = tokio::runtime::Runtime::new().context("cannot start the runtime")?;
    runtime.block_on(async {
        let socket = start_engine(command, &path).await?;
        console::attach(&socket, is_demo, options).await
    })
}

/// Starts the engine apart from this terminal and waits until it listens.
pub(super) async fn start_engine(mut command: Command, path: &Path) -> anyhow::Result<PathBuf> {
    let log_path = std::env::temp_dir().join(format!("arpo-engine-{}.log", std::process::id()));
    let log =
        File::create(&log_path).with_context(|| format!("cannot write {}", log_path.display()))?;
    let errors = log.try_clone().context("cannot share the engine's log")?;
    let engine = command
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(errors)
        .spawn();
    let mut engine = engine.context("cannot start arpo-engine")?;
    let name = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let socket = bus::socket_path(&bus::socket_dir(), &name)?;
    let listening = wait_until_listening(&mut engine, &socket, &log_path).await;
    // The engine keeps the open file; the name is not needed once it listens.
    let _ = std::fs::remove_file(&log_path);
    listening.map(|()| socket)
}

async fn wait_until_listening(
    engine: &mut Child,
    socket: &Path,
    log_path: &Path,
) -> anyhow::Result<()> {
    let pause = Duration::from_millis(20);
    let mut waited = Duration::ZERO;
    while bus::probe(socket).await.is_err() {
        if let Some(status) = engine.try_wait().context("cannot watch the engine")? {
            let said = std::fs::read_to_string(log_path).unwrap_or_default();
            bail!("the engine ended at once ({status}): {}", said.trim());
        }
        if waited > START_LIMIT {
            bail!(
                "the engine does not listen after {} s",
                START_LIMIT.as_secs()
            );
        }
        tokio::time::sleep(pause).await;
        waited += pause;
    }
    Ok(())
}
