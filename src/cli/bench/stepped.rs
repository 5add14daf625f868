//! A training run that stands still before each iteration until it is told to go on.
//!
//! Nobody is attached to it while an iteration runs, and nothing is asked in a loop: the end of
//! an iteration is read off the line that the engine prints then.

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::ChildStderr;
use tokio::time::timeout;

use crate::bus::{Role, Source, SourceItem, attach};
use crate::cli::bench::memory;
use crate::cli::engine::engine_command;
use crate::event::{Command, CommandStatus, IterationReport, SafePoint, TrainerState};
use crate::store::RunDir;

/// An engine that is silent for so long does not come to the end of anything.
const PATIENCE: Duration = Duration::from_secs(300);

/// Which run, and where it is.
pub(super) struct StepSpec<'a> {
    /// Arguments of `arpo train` that say what is trained.
    pub(super) words: &'a [String],
    /// Folder of the run, which need not exist.
    pub(super) run: PathBuf,
    /// Folder of its socket.
    pub(super) sockets: PathBuf,
}

/// The run. Dropping it ends its engine.
pub(super) struct Stepped {
    engine: Child,
    lines: Lines<BufReader<ChildStderr>>,
    said: String,
    run: PathBuf,
    socket: PathBuf,
}

/// What an iteration took.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    /// Seconds that the engine kept cores busy, all of its threads together.
    pub(super) cpu_s: f64,
}

/// What a run ended with.
#[derive(Debug)]
pub(super) struct Closing {
    /// Every iteration's figures.
    pub(super) reports: Vec<IterationReport>,
    /// Hash of the last weights.
    pub(super) weights: String,
}

impl Closing {
    /// Whether the other run learned the same, bit for bit.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let timeless = |closing: &Self| -> Vec<_> {
            let reports = closing.reports.iter().cloned();
            reports.map(IterationReport::without_times).collect()
        };
        self.weights == other.weights && timeless(self) == timeless(other)
    }
}

impl Stepped {
    /// Starts the engine; it listens, and stands before its first iteration.
    pub(super) async fn start(spec: StepSpec<'_>) -> anyhow::Result<Self> {
        let name = spec.run.file_name().unwrap_or_default().to_string_lossy();
        let socket = crate::bus::socket_path(&spec.sockets, &name)?;
        let mut command = engine_command()?;
        command
            .args(["train", "--headless"])
            .args(spec.words)
            .arg("--run")
            .arg(&spec.run)
            .env("ARPO_RUNTIME_DIR", &spec.sockets)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut engine = command.spawn().context("cannot start arpo-engine")?;
        let stderr = engine.stderr.take().context("the engine has no stderr")?;
        let mut stepped = Self {
            lines: BufReader::new(ChildStderr::from_std(stderr)?).lines(),
            engine,
            said: String::new(),
            run: spec.run,
            socket,
        };
        // It says its name once it listens, and only then sets up what it computes with.
        stepped.line_of("run ").await?;
        let commands = stepped.attach().await?.into_commands();
        let commands = commands.context("the run takes no commands")?;
        let pause = Command::Pause {
            at: SafePoint::Batch,
        };
        match commands.send(pause).finished().await {
            Some((_, CommandStatus::Done)) => Ok(stepped),
            answer => bail!("the run does not pause: {answer:?}"),
        }
    }

    /// Where consoles attach.
    pub(super) fn socket(&self) -> &Path {
        &self.socket
    }

    /// Waits until the run stands before iteration `number`, from 0.
    pub(super) async fn stand(&self, number: usize) -> anyhow::Result<Standing> {
        let Source {
            mut state,
            mut items,
            commands,
            ..
        } = self.attach().await?;
        while state.trainer != TrainerState::Paused(SafePoint::Batch) {
            match timeout(PATIENCE, items.recv()).await {
                Ok(Some(SourceItem::Event(event))) => state.apply(&event),
                Ok(Some(SourceItem::Resync { state: newer, .. })) => state = *newer,
                Ok(Some(SourceItem::Heard | SourceItem::Lease(_) | SourceItem::Timeline(_))) => {}
                Ok(Some(SourceItem::Lost { .. }) | None) | Err(_) => {
                    bail!("the run does not stand before iteration {number}")
                }
            }
        }
        let done = state.history.len();
        anyhow::ensure!(
            done == number,
            "the run stands before iteration {done} instead of {number}"
        );
        let commands = commands.context("the run takes no commands")?;
        Ok(Standing {
            commands,
            _items: items,
        })
    }

    /// Lets a standing run do one iteration; back as soon as that is done.
    pub(super) async fn step(&mut self, standing: Standing) -> anyhow::Result<Cost> {
        let before = memory::cpu_seconds(self.engine.id())?;
        let mut ticket = standing.commands.send(Command::StepIteration);
        loop {
            match ticket.next().await {
                Some((_, CommandStatus::Received)) => {}
                Some((_, CommandStatus::Accepted)) => break,
                answer => bail!("the run does not go on: {answer:?}"),
            }
        }
        drop(standing);
        self.line_of("iteration ").await?;
        let cpu_s = memory::cpu_seconds(self.engine.id())? - before;
        Ok(Cost { cpu_s })
    }

    /// Waits for the end of a run whose last iteration was done.
    pub(super) async fn finish(mut self) -> anyhow::Result<Closing> {
        self.line_of("finished ").await?;
        while self.next_line().await?.is_some() {}
        let status = self.engine.wait().context("cannot watch the engine")?;
        anyhow::ensure!(status.success(), "the engine failed ({status})");
        let state = RunDir::open(&self.run)?.state()?;
        let summary = state.summary.context("the run has no summary")?;
        Ok(Closing {
            reports: state.history,
            weights: summary.weights,
        })
    }

    async fn attach(&self) -> anyhow::Result<Source> {
        Ok(attach(&self.socket, Role::Operate, "bench").await?)
    }

    /// Waits for the engine's next line that begins so.
    async fn line_of(&mut self, start: &str) -> anyhow::Result<()> {
        while let Some(line) = self.next_line().await? {
            if line.starts_with(start) {
                return Ok(());
            }
            self.said = line;
        }
        let status = self.engine.wait().context("cannot watch the engine")?;
        bail!("the engine ended too early ({status}): {}", self.said)
    }

    async fn next_line(&mut self) -> anyhow::Result<Option<String>> {
        let line = timeout(PATIENCE, self.lines.next_line()).await;
        let line = line.with_context(|| format!("silent for {} s", PATIENCE.as_secs()));
        line.and_then(|line| Ok(line?))
            .context("the engine cannot be read")
    }
}

/// A run that stands before an iteration, and the way to let it go on.
pub(super) struct Standing {
    commands: crate::bus::CommandSender,
    /// While they are there the connection is kept.
    _items: tokio::sync::mpsc::Receiver<SourceItem>,
}

impl Drop for Stepped {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.engine.kill();
        let _ = self.engine.wait();
    }
}
