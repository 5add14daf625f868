//! What every run is opened with: directory, event log, commands, socket, developer's log.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context;
use tokio::signal::unix::{SignalKind, signal};
use tracing_appender::non_blocking::WorkerGuard;

use crate::bus::{self, CommandInbox, Controller, EventSink, Server, Watch};
use crate::cli::headless::Headless;
use crate::config::{Profile, Resolved, assets};
use crate::evaluator::sidecar::{Limits, Sidecar, SidecarOptions};
use crate::evaluator::{Original, Scorer};
use crate::event::{Command, Event, EventKind, SCHEMA_VERSION};
use crate::prompt::PromptBuilder;
use crate::rollout::Recorder;
use crate::session::{
    Collector, CollectorParts, Control, Desktops, Settings, find_tasks, machine_ears,
};
use crate::store::{Checkpoint, RunDir, StoreError, run_name};
use crate::types::{Iteration, Task};

/// A run, open for work.
pub struct OpenRun {
    /// Its directory.
    pub run: Arc<RunDir>,
    /// Its event log.
    pub sink: EventSink,
    /// Where commands go in.
    pub controller: Controller,
    /// Where the session takes them out.
    pub inbox: CommandInbox,
    /// Which start of the engine this is.
    pub incarnation: u32,
    /// What it goes on from.
    pub checkpoint: Option<Checkpoint>,
    server: Option<Server>,
    _log: WorkerGuard,
}

/// Where a fresh run lies: as told, or a folder named by date and profile.
pub fn new_run_path(told: Option<&Path>, profile: &Profile, overlay: &str) -> PathBuf {
    match told {
        Some(path) => path.to_owned(),
        None => Path::new(&profile.run.dir).join(run_name(overlay, unix_ms())),
    }
}

/// Name of the last overlay, for people.
pub fn overlay_name(profiles: &[String]) -> String {
    let last = profiles.last().map_or("base", String::as_str);
    let stem = Path::new(last).file_stem();
    stem.map_or_else(
        || last.to_owned(),
        |stem| stem.to_string_lossy().into_owned(),
    )
}

/// OSWorld's own evaluators, if they are installed; started when they are first asked.
fn original(profile: &Profile) -> Option<Arc<dyn Original>> {
    let python = std::env::var_os("ARPO_SIDECAR_PYTHON")
        .map_or_else(|| assets::locate(".venv-sidecar/bin/python"), PathBuf::from);
    let folder = format!("sidecar-{}", std::process::id());
    let options = SidecarOptions {
        folder: bus::socket_dir().join(folder),
        confinement: profile.eval.sidecar_confinement,
        live_sites: profile.eval.live_sites,
        limits: Limits::default(),
        python,
    };
    remove_left(&bus::socket_dir());
    let is_installed = options.python.exists();
    is_installed.then(|| Arc::new(Sidecar::new(options)) as Arc<dyn Original>)
}

/// Removes what sidecars of engines that were killed have left.
fn remove_left(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix("sidecar-"));
        if pid.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            // Another engine may be faster.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

impl OpenRun {
    /// Makes the directory at `path` and everything around it, for so many `iterations` of
    /// training.
    pub async fn create(
        path: &Path,
        resolved: &Resolved,
        overlay: &str,
        num_tasks: usize,
        iterations: u64,
    ) -> anyhow::Result<Self> {
        let run = Arc::new(RunDir::create(path, &resolved.to_toml())?);
        let log = start_log(&run, &resolved.profile)?;
        let mut started = run_started(&run.name(), &resolved.profile, overlay, num_tasks);
        if let EventKind::RunStarted {
            iterations: planned,
            ..
        } = &mut started
        {
            *planned = iterations;
        }
        let sink = EventSink::start(&run, started)?;
        Self::serve(run, sink, 0, None, 0, log).await
    }

    /// Goes on with the run in `path` from its newest checkpoint, or from its start if it was
    /// killed before there was one.
    pub async fn resume(path: &Path, resolved: &Resolved) -> anyhow::Result<Self> {
        let run = Arc::new(RunDir::open_to_write(path)?);
        let log = start_log(&run, &resolved.profile)?;
        let checkpoint = match run.newest_checkpoint() {
            Ok(checkpoint) => Some(checkpoint),
            Err(StoreError::NoCheckpoint { reasons, .. }) if reasons.is_empty() => None,
            Err(error) => return Err(error.into()),
        };
        let (from, discard_from) = match &checkpoint {
            Some(checkpoint) => {
                run.discard_checkpoints_after(checkpoint)?;
                let done = Iteration(checkpoint.manifest.iterations_done);
                (done, run.resume_seq(checkpoint)?)
            }
            // All but the event that the run began with.
            None => (Iteration(0), 1),
        };
        let resumed = EventSink::resume(&run, from, discard_from)?;
        let newest = resumed
            .state
            .commands
            .iter()
            .map(|command| command.id)
            .max();
        let first_command = newest.map_or(0, |id| id + 1);
        let incarnation = resumed.incarnation;
        Self::serve(
            run,
            resumed.sink,
            incarnation,
            checkpoint,
            first_command,
            log,
        )
        .await
    }

    /// Goes on with a run that has no checkpoints, an evaluation: all its events go on counting.
    pub async fn go_on(path: &Path, resolved: &Resolved) -> anyhow::Result<Self> {
        let run = Arc::new(RunDir::open_to_write(path)?);
        let log = start_log(&run, &resolved.profile)?;
        let state = run.state()?;
        let resumed = EventSink::resume(&run, Iteration(0), state.next_seq)?;
        let newest = state.commands.iter().map(|command| command.id).max();
        let first_command = newest.map_or(0, |id| id + 1);
        let incarnation = resumed.incarnation;
        Self::serve(run, resumed.sink, incarnation, None, first_command, log).await
    }

    async fn serve(
        run: Arc<RunDir>,
        sink: EventSink,
        incarnation: u32,
        checkpoint: Option<Checkpoint>,
        first_command: u64,
        log: WorkerGuard,
    ) -> anyhow::Result<Self> {
        let (controller, inbox) = bus::control(sink.clone(), first_command);
        let dir = bus::socket_dir();
        bus::check_socket_dir(&dir)?;
        let socket = bus::socket_path(&dir, &run.name())?;
        let server =
            Server::bind(&socket, run.root(), sink.clone(), Some(controller.clone())).await?;
        Ok(Self {
            run,
            sink,
            controller,
            inbox,
            incarnation,
            checkpoint,
            server: Some(server),
            _log: log,
        })
    }

    /// A collector for this run; takes the inbox. The run learns the texts of the policy's tokens.
    pub fn collector(
        &mut self,
        profile: &Profile,
        policy: Arc<dyn crate::policy::Policy>,
        prompt: Arc<PromptBuilder>,
    ) -> anyhow::Result<Collector> {
        self.run.put_vocabulary(&prompt.token_texts())?;
        let (_, unused) = bus::control(self.sink.clone(), 0);
        let inbox = std::mem::replace(&mut self.inbox, unused);
        let settings = Settings::of(profile);
        let recorder = Arc::new(Recorder::start(self.sink.clone(), Arc::clone(&self.run)));
        Ok(Collector::new(CollectorParts {
            profile: profile.clone(),
            desktops: Desktops::of_run(
                profile,
                &self.run.name(),
                machine_ears(&self.run, &recorder),
            )?,
            recorder,
            run: Arc::clone(&self.run),
            control: Control::new(inbox, self.sink.clone(), settings),
            policy,
            prompt,
            scorer: Scorer {
                evaluators: profile.eval.evaluators,
                original: original(profile),
            },
            incarnation: self.incarnation,
        }))
    }

    /// Shows the run on stderr until its log closes.
    pub async fn show(&self) -> anyhow::Result<tokio::task::JoinHandle<()>> {
        let Watch { state, mut lines } = self.sink.watch().await?;
        let mut headless = Headless::new();
        headless.show_start(&state);
        Ok(tokio::spawn(async move {
            loop {
                match lines.recv().await {
                    Ok(line) => headless.show(&line.event),
                    Err(tokio::sync::broadcast::error::RecvError::Lagged(_)) => {}
                    Err(tokio::sync::broadcast::error::RecvError::Closed) => break,
                }
            }
        }))
    }

    /// INT, TERM and, unless detached, HUP ask the run to stop; a second INT ends it now.
    pub fn heed_signals(&self, detached: bool) -> anyhow::Result<()> {
        let controller = self.controller.clone();
        let interrupts = std::sync::atomic::AtomicU32::new(0);
        ctrlc::set_handler(move || {
            if interrupts.fetch_add(1, std::sync::atomic::Ordering::SeqCst) > 0 {
                std::process::exit(i32::from(crate::cli::INTERRUPTED));
            }
            drop(controller.submit(Command::Stop, "signal"));
        })
        .context("cannot heed interrupts")?;
        let mut hangups = signal(SignalKind::hangup())?;
        let controller = self.controller.clone();
        tokio::spawn(async move {
            while hangups.recv().await.is_some() {
                if !detached {
                    drop(controller.submit(Command::Stop, "signal"));
                }
            }
        });
        Ok(())
    }

    /// Writes out what is left and closes log and socket.
    pub async fn close(mut self) -> anyhow::Result<()> {
        self.sink.flush().await?;
        self.sink.close()?;
        if let Some(server) = self.server.take() {
            server.close().await;
        }
        Ok(())
    }
}

fn run_started(run: &str, profile: &Profile, overlay: &str, num_tasks: usize) -> EventKind {
    EventKind::RunStarted {
        schema: SCHEMA_VERSION,
        run: run.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        profile: overlay.to_owned(),
        unix_ms: unix_ms(),
        seed: profile.run.seed,
        desktops: profile.env.desktops as u32,
        group_size: profile.grpo.group_size as u32,
        tasks_per_iteration: profile.grpo.tasks_per_iteration as u32,
        iterations: profile.run.iterations,
        max_steps: profile.rollout.max_steps as u32,
        num_tasks: num_tasks as u32,
        context_tokens: profile.policy.context_tokens as u32,
        learning_rate: profile.optimizer.lr,
        temperature: profile.sampling.temperature,
        clip_low: Some(profile.grpo.clip_low),
        clip_high: Some(profile.grpo.clip_high),
        replay: Some(profile.replay.enabled),
        virtual_clock: profile.env.kind.is_virtual(),
    }
}

/// The developer's log goes to the run's `logs/`, never to the terminal.
fn start_log(run: &RunDir, profile: &Profile) -> anyhow::Result<WorkerGuard> {
    let file = tracing_appender::rolling::never(run.logs_path(), "arpo.log");
    let (writer, guard) = tracing_appender::non_blocking(file);
    let filter = tracing_subscriber::EnvFilter::try_new(&profile.log.level)
        .with_context(|| format!("log.level is not a filter: {}", profile.log.level))?;
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(false);
    // A second run of the same process, as in tests, logs into the first one's file.
    let _ = subscriber.with_writer(writer).try_init();
    Ok(guard)
}

/// Tokenizer, template and processor of the profile's checkpoint.
pub fn open_prompt(profile: &Profile) -> anyhow::Result<Arc<PromptBuilder>> {
    let dir = checkpoint_path(profile);
    let prompt = PromptBuilder::open(&dir);
    Ok(Arc::new(prompt.with_context(|| {
        format!("policy.checkpoint {}", dir.display())
    })?))
}

/// Folder of the profile's checkpoint.
pub fn checkpoint_path(profile: &Profile) -> PathBuf {
    assets::locate(&profile.policy.checkpoint)
}

/// The tasks a profile names: a list file, a folder of task files, or the name of a list under
/// `assets/tasks/`.
pub fn tasks_of(name: &str) -> anyhow::Result<Vec<Arc<Task>>> {
    if name.is_empty() {
        return Ok(Vec::new());
    }
    Ok(find_tasks(name)?)
}

/// Milliseconds since 1970.
pub fn unix_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_millis() as u64)
}

/// Whether an event ends its run.
pub fn is_last(event: &Event) -> bool {
    matches!(event.kind, EventKind::RunFinished(_))
}
