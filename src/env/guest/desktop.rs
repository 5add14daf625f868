//! A machine with a guest server as an `Environment`: brought to a task's state, acted on, looked
//! at. Time is real.
//!
//! After a crash or a time-out every call fails in the same way until the next reset, since nobody
//! knows what state the desktop is in.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tokio::time::sleep;

use super::settle::{Settle, is_black};
use super::setup::{self, Moment, Stage};
use super::trend::Trend;
use super::upkeep::{Found, Reverts, Startup, Upkeep, show};
use super::{Command, Guest, GuestError};
use crate::env::{
    EnvError, Environment, Machine, Observation, Probe, ProbeBody, ProbeReply, RealDesktop,
};
use crate::http::with_causes;
use crate::tasks::FileCache;
use crate::types::osworld::{OsworldTask, Setup, TaskFault};
use crate::types::{Action, ErrorClass, ScreenSize, Screenshot, SetupStep, Task};

/// What the action `wait` waits, as on simulated desktops.
const WAIT: Duration = Duration::from_secs(5);

/// Further looks at a black screen before it is believed, and the time between them: a screen that
/// is being drawn may be black for a moment.
const BLACK_LOOKS: u32 = 3;
const BLACK_WAIT: Duration = Duration::from_millis(250);

/// An office program takes a minute on a machine whose instructions are translated: twenty pictures
/// at most.
const SHOW_EVERY: Duration = Duration::from_secs(3);

/// For a machine that stands still to go on before it is brought back in any case.
const WAKE: Duration = Duration::from_secs(5);

/// How a real desktop is waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DesktopOptions {
    /// After an action.
    pub settle: Settle,
    /// After the set-up steps of a reset.
    pub settle_reset: Settle,
    /// For the window of what a step opens. OSWorld waits half an hour.
    pub open_within: Duration,
    /// For Chrome to answer.
    pub chrome: ChromePatience,
    /// How often what the screen shows is told while a reset goes on, where it can be seen past the
    /// server: a step may take a minute.
    pub show_every: Duration,
}

/// How long Chrome is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChromePatience {
    /// Tries to reach it.
    pub tries: u32,
    /// Time between two.
    pub between: Duration,
    /// For a page to load; what it has loaded by then stays.
    pub load: Duration,
}

impl DesktopOptions {
    /// For applications that draw on an X server of this machine: pictures cost little.
    pub fn local() -> Self {
        Self {
            settle: Settle::Still {
                shortest: Duration::from_millis(150),
                between: Duration::from_millis(80),
                longest: Duration::from_secs(1),
            },
            settle_reset: Settle::Still {
                shortest: Duration::from_secs(1),
                between: Duration::from_secs(1),
                longest: Duration::from_secs(15),
            },
            open_within: Duration::from_secs(120),
            chrome: ChromePatience::OSWORLD,
            show_every: SHOW_EVERY,
        }
    }

    /// For a machine of our own whose instructions may be translated: its applications draw several
    /// times later.
    pub fn emulated() -> Self {
        Self {
            settle: Settle::Still {
                shortest: Duration::from_millis(300),
                between: Duration::from_millis(80),
                longest: Duration::from_secs(3),
            },
            // A program that a step has launched shows nothing for seconds, and a desktop that it has
            // not come to yet is still, too.
            settle_reset: Settle::Still {
                shortest: Duration::from_secs(10),
                between: Duration::from_secs(2),
                longest: Duration::from_secs(60),
            },
            open_within: Duration::from_secs(300),
            chrome: ChromePatience::OSWORLD,
            show_every: SHOW_EVERY,
        }
    }

    /// For a machine that is asked as OSWorld asks it, a fixed `pause` after each action: its own
    /// server dies of many screenshots. The minute after a reset is OSWorld's.
    pub fn paused(pause: Duration) -> Self {
        Self {
            settle: Settle::Pause(pause),
            settle_reset: Settle::Pause(Duration::from_secs(60)),
            open_within: Duration::from_secs(600),
            chrome: ChromePatience::OSWORLD,
            show_every: SHOW_EVERY,
        }
    }
}

impl ChromePatience {
    /// As `SetupController._chrome_open_tabs_setup`.
    pub const OSWORLD: Self = Self {
        tries: 15,
        between: Duration::from_secs(5),
        load: Duration::from_secs(60),
    };
}

/// What every call ends in until the next reset.
#[derive(Clone, Debug)]
pub(super) enum Lost {
    Crashed,
    TimedOut { after: Duration },
    Ended { machine: String, reason: String },
}

/// One real desktop.
pub struct GuestDesktop {
    pub(super) machine: Box<dyn Machine>,
    files: FileCache,
    options: DesktopOptions,
    kept: BTreeMap<String, Vec<u8>>,
    pub(super) lost: Option<Lost>,
    /// What a run adds; none for whoever looks after it alone.
    pub(super) upkeep: Option<Upkeep>,
    /// How far its machine came in the newest reset.
    pub(super) startup: Startup,
    /// Whether its machine stands still, or may do so.
    pub(super) frozen: bool,
    /// What was found when the cause of its loss was looked for.
    pub(super) found: Found,
    pub(super) trend: Trend,
    pub(super) reverts: Reverts,
}

impl GuestDesktop {
    /// A desktop that is not started yet. `files` is where what tasks bring from the web lies.
    pub fn new(machine: Box<dyn Machine>, files: FileCache, options: DesktopOptions) -> Self {
        Self {
            machine,
            files,
            options,
            kept: BTreeMap::new(),
            lost: Some(Lost::Crashed),
            upkeep: None,
            startup: Startup::default(),
            frozen: false,
            found: Found::default(),
            trend: Trend::default(),
            reverts: Reverts::default(),
        }
    }

    /// The same, looked after by a run.
    #[must_use]
    pub fn kept_by(mut self, upkeep: Upkeep) -> Self {
        self.upkeep = Some(upkeep);
        self
    }

    pub(super) fn guest(&self) -> &Guest {
        self.machine.guest()
    }

    fn check_usable(&self, what: &'static str) -> Result<(), EnvError> {
        Err(match self.lost.clone() {
            None => return Ok(()),
            Some(Lost::Crashed) => EnvError::Crashed { what },
            Some(Lost::TimedOut { after }) => EnvError::Timeout { what, after },
            Some(Lost::Ended { machine, reason }) => EnvError::Ended {
                machine,
                reason,
                symptom: what.to_owned(),
            },
        })
    }

    /// A machine that has ended neither stops nor goes on, and has been told of.
    fn check_not_ended(&self, what: &'static str) -> Result<(), EnvError> {
        match self.lost {
            Some(Lost::Ended { .. }) => self.check_usable(what),
            _ => Ok(()),
        }
    }

    /// Remembers what leaves the desktop in a state that nobody knows.
    async fn noted<T>(
        &mut self,
        began: Instant,
        result: Result<T, EnvError>,
    ) -> Result<T, EnvError> {
        let error = match result {
            Ok(done) => return Ok(done),
            Err(error) => error,
        };
        match error.class() {
            ErrorClass::Crash => self.lost = Some(Lost::Crashed),
            ErrorClass::Timeout => {
                let after = began.elapsed();
                self.lost = Some(Lost::TimedOut { after });
            }
            _ => {}
        }
        Err(self.explained(error).await)
    }

    async fn unfreeze(&mut self) -> Result<(), EnvError> {
        if self.frozen {
            self.machine.wake().await?;
            self.frozen = false;
        }
        Ok(())
    }

    async fn begin(&mut self, task: &Task, steps: &[Setup]) -> Result<Screenshot, EnvError> {
        self.revert().await?;
        // A stage takes all of the desktop.
        let upkeep = self.upkeep.clone();
        let mut stage = self.stage(Moment::Reset);
        let (machine, options) = (stage.machine, stage.options);
        let setting_up = async {
            setup::run(&mut stage, task, steps, "config").await?;
            look(machine.guest(), options.settle_reset).await
        };
        tokio::select! {
            seen = setting_up => seen,
            never = show(machine, options.show_every, upkeep.as_ref()) => match never {},
        }
    }

    fn stage(&mut self, moment: Moment) -> Stage<'_> {
        Stage {
            machine: self.machine.as_ref(),
            files: &self.files,
            kept: &mut self.kept,
            options: &self.options,
            moment,
        }
    }

    async fn act(&mut self, action: &Action) -> Result<Screenshot, EnvError> {
        // Between two steps: nothing that is under way is lost by it.
        if self.guest().needs_restart() {
            self.machine.restart_server().await?;
            self.guest().restarted();
        }
        if matches!(action, Action::Wait) {
            sleep(WAIT).await;
            return look(self.guest(), Settle::Pause(Duration::ZERO)).await;
        }
        let done = self.guest().act(action).await;
        done.map_err(failed(&format!("action {}", action.name())))?;
        look(self.guest(), self.options.settle).await
    }

    async fn answer(&self, probe: &Probe) -> Result<ProbeBody, EnvError> {
        let what = failed("probe");
        match probe {
            Probe::State => Err(EnvError::Unsupported {
                probe: "for its whole state; a real one is read through getters".to_owned(),
            }),
            Probe::File { path } => {
                let file = self.guest().read_file(path).await.map_err(what)?;
                Ok(ProbeBody::File(file))
            }
            Probe::Command { argv } => {
                let command = Command::Program(argv.clone());
                let output = self.guest().execute(&command).await.map_err(what)?;
                Ok(ProbeBody::Output {
                    status: output.returncode,
                    stdout: output.stdout,
                    stderr: output.stderr,
                })
            }
        }
    }
}

async fn look(guest: &Guest, settle: Settle) -> Result<Screenshot, EnvError> {
    let seen = settle.look(guest).await;
    let mut picture = seen.map_err(failed("screenshot"))?;
    for _ in 0..BLACK_LOOKS {
        if !is_black(&picture) {
            return Ok(picture);
        }
        sleep(BLACK_WAIT).await;
        let again = guest.screenshot().await;
        picture = again.map_err(failed("screenshot"))?;
    }
    if is_black(&picture) {
        check_empty(guest).await?;
    }
    Ok(picture)
}

/// A black picture is right where there is no window, and only there.
async fn check_empty(guest: &Guest) -> Result<(), EnvError> {
    let listed = guest.run(&Command::program(["wmctrl", "-l"])).await;
    let reason = match listed {
        Ok(windows) if windows.stdout.trim().is_empty() => return Ok(()),
        Ok(_) => "all of it is black, though there are windows".to_owned(),
        Err(error) => format!(
            "all of it is black, and nobody can say whether there are windows: {}",
            with_causes(&error)
        ),
    };
    Err(EnvError::Screenshot { reason })
}

/// The guest's fault, in the middle of something.
fn failed(what: &str) -> impl Fn(GuestError) -> EnvError + use<> {
    let what = what.to_owned();
    move |source| EnvError::Guest {
        what: what.clone(),
        source: Box::new(source),
    }
}

fn faulty(task: &Task) -> impl Fn(TaskFault) -> EnvError + use<> {
    let task = task.id.0.clone();
    move |fault| EnvError::Task {
        task: task.clone(),
        reason: fault.to_string(),
    }
}

#[async_trait]
impl Environment for GuestDesktop {
    fn screen_size(&self) -> ScreenSize {
        self.machine.placeholders().screen
    }

    async fn reset(&mut self, task: &Task, _seed: u64) -> Result<Observation, EnvError> {
        let began = Instant::now();
        self.lost = Some(Lost::Crashed);
        self.kept.clear();
        self.found = Found::default();
        self.startup = Startup::default();
        let typed = OsworldTask::read(task).map_err(faulty(task))?;
        // What can be refused is refused before the machine is touched.
        setup::check(&self.files, task, &typed)?;
        // What stands still may not even take its end.
        let woken = tokio::time::timeout(WAKE, self.unfreeze()).await;
        if let Ok(Err(error)) = woken {
            tracing::warn!(%error, "a machine does not go on; it is brought back all the same");
        }
        let screenshot = match self.begin(task, &typed.setup).await {
            Ok(screenshot) => screenshot,
            Err(error) => return Err(self.explained(error).await),
        };
        self.lost = None;
        Ok(Observation {
            screenshot,
            elapsed: began.elapsed(),
        })
    }

    async fn step(&mut self, action: &Action) -> Result<Observation, EnvError> {
        let began = Instant::now();
        self.check_usable("action")?;
        let acted = self.act(action).await;
        if acted.is_ok() && !matches!(action, Action::Wait) {
            let took = began.elapsed().saturating_sub(self.options.settle.least());
            self.trend.acted(took.as_millis() as u64);
        }
        Ok(Observation {
            screenshot: self.noted(began, acted).await?,
            elapsed: began.elapsed(),
        })
    }

    async fn observe(&mut self) -> Result<Observation, EnvError> {
        let began = Instant::now();
        self.check_usable("screenshot")?;
        let seen = look(self.guest(), Settle::Pause(Duration::ZERO)).await;
        Ok(Observation {
            screenshot: self.noted(began, seen).await?,
            elapsed: began.elapsed(),
        })
    }

    async fn probe(&mut self, probe: &Probe) -> Result<ProbeReply, EnvError> {
        let began = Instant::now();
        self.check_usable("probe")?;
        let answered = self.answer(probe).await;
        Ok(ProbeReply {
            body: self.noted(began, answered).await?,
            elapsed: began.elapsed(),
        })
    }

    fn real(&self) -> Option<RealDesktop<'_>> {
        Some(RealDesktop {
            machine: self.machine.as_ref(),
            kept: &self.kept,
            files: &self.files,
        })
    }

    async fn set_up(
        &mut self,
        task: &Task,
        steps: &[SetupStep],
        key: &str,
    ) -> Result<Duration, EnvError> {
        let began = Instant::now();
        self.check_usable("set-up")?;
        let numbered = steps.iter().enumerate();
        let read = numbered.map(|(i, step)| Setup::read(step, &format!("{key}[{i}]")));
        let read: Vec<Setup> = read.collect::<Result<_, _>>().map_err(faulty(task))?;
        let mut stage = self.stage(Moment::Judging);
        let ran = setup::run(&mut stage, task, &read, key).await;
        self.noted(began, ran).await?;
        Ok(began.elapsed())
    }

    async fn suspend(&mut self) -> Result<(), EnvError> {
        if self.upkeep.as_ref().is_none_or(|u| u.freeze_while_thinking) {
            self.check_not_ended("a stop of its time")?;
            // Nobody knows what a call did that does not come back.
            self.frozen = true;
            let suspended = self.machine.suspend().await;
            return self.unless_ended(suspended).await;
        }
        Ok(())
    }

    async fn wake(&mut self) -> Result<(), EnvError> {
        self.check_not_ended("a start of its time")?;
        let woken = self.unfreeze().await;
        self.unless_ended(woken).await
    }

    fn failed_to_start(&self) -> bool {
        self.startup == Startup::Starting
    }

    fn came_up(&self) -> bool {
        self.startup == Startup::Up
    }

    async fn diagnose(&mut self, symptom: &str) -> Option<EnvError> {
        self.lost.get_or_insert(Lost::Crashed);
        self.cause(symptom).await
    }

    async fn inspect(&mut self) -> Option<String> {
        self.after_episode().await
    }

    async fn close(&mut self) -> Result<(), EnvError> {
        self.lost = Some(Lost::Crashed);
        self.machine.close().await
    }
}
