//! Machines: what a guest server runs on, and who makes them.
//!
//! A machine belongs to one desktop of a run for the run's life. It is brought back to its clean
//! state between episodes and is only ever asked through its guest server.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use scopeguard::{ScopeGuard, guard};
use tokio::io::{AsyncRead, AsyncWrite};

use super::EnvError;
use super::admission::MachineNeed;
use super::guest::Guest;
use crate::tasks::FileCache;
use crate::types::osworld::PlaceholderValues;
use crate::types::{MachineHealth, MachinePhase, MachineStatus, Screenshot};

/// A stream to a port of a machine.
pub trait Connection: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Connection for T {}

/// How a machine itself is, whatever its server says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MachineState {
    /// It was never started, or was closed.
    Off,
    /// It runs; its layers above are `Guest::health`'s to tell.
    Running,
    /// It ended by itself, and waits to be reverted.
    Ended {
        /// Why.
        reason: String,
    },
    /// It did not come up when it was last reverted.
    Broken {
        /// Why.
        reason: String,
    },
}

impl MachineState {
    /// Of one that was started, and has `ended` for a reason or not.
    pub(super) fn of_started(ended: Option<&str>) -> Self {
        let ended = ended.map(str::to_owned);
        ended.map_or(Self::Running, |reason| Self::Ended { reason })
    }

    /// Of one that is not there, `broken` being why the last revert failed, if it did.
    pub(super) fn of_absent(broken: Option<&str>) -> Self {
        let broken = broken.map(str::to_owned);
        broken.map_or(Self::Off, |reason| Self::Broken { reason })
    }
}

/// A machine with a guest server.
#[async_trait]
pub trait Machine: Send + Sync {
    /// What it is called in messages: its provider and its number.
    fn name(&self) -> String;
    /// Brings it to its clean state, with a server that answers; starts it where it does not run.
    /// Nothing of an earlier episode is left, neither files nor programs.
    async fn revert(&mut self) -> Result<(), EnvError>;
    /// How it is, below its server.
    fn state(&self) -> MachineState {
        MachineState::Running
    }
    /// Its server's client. Asks nobody before `revert` has come back.
    fn guest(&self) -> &Guest;
    /// Starts its server anew and leaves all else as it is.
    async fn restart_server(&mut self) -> Result<(), EnvError>;
    /// A connection to a port that a program on it listens on, as a client on the machine itself
    /// would have.
    async fn connect(&self, port: u16) -> Result<Box<dyn Connection>, EnvError>;
    /// What it has for the placeholders of set-up steps.
    fn placeholders(&self) -> PlaceholderValues;
    /// What its screen shows, taken past its server, where that can be: a server that hangs says
    /// nothing of the screen.
    async fn picture(&self) -> Option<Screenshot> {
        None
    }
    /// Its kind in a word or two, where its provider has several: «kvm», «tcg», «container».
    fn kind(&self) -> String {
        String::new()
    }
    /// Its own memory on this host, bytes, where that is known.
    fn memory_bytes(&self) -> Option<u64> {
        None
    }
    /// The processor time that its own processes on this host have taken, where that is known.
    fn cpu_time(&self) -> Option<Duration> {
        None
    }
    /// Stops its time. A no-op where that cannot be.
    async fn suspend(&mut self) -> Result<(), EnvError> {
        Ok(())
    }
    /// Undoes `suspend`.
    async fn wake(&mut self) -> Result<(), EnvError> {
        Ok(())
    }
    /// Ends it and removes all that is left of it; the machine is gone even if this fails.
    async fn close(&mut self) -> Result<(), EnvError>;
}

/// Who makes machines of one kind.
pub trait Provider: Send + Sync {
    /// The machine of one desktop of the run, which tells of itself as it goes. Starts nothing: the
    /// first `revert` does.
    fn machine(&self, desktop: u32, reporter: Reporter) -> Result<Box<dyn Machine>, EnvError>;
    /// What one of its machines takes of this host.
    fn need(&self) -> MachineNeed {
        MachineNeed::default()
    }
    /// The most machines that it can make for this run, where that is known.
    fn most(&self) -> Option<u32> {
        None
    }
}

/// What a machine has to tell.
#[derive(Clone, Debug)]
pub enum MachineNews {
    /// It changed its state.
    Status(MachineStatus),
    /// It was looked at.
    Health(MachineHealth),
    /// What its screen shows, taken past its server.
    Picture(Screenshot),
    /// A line of its own log: its console, or its container's.
    Said(String),
}

/// Who hears what machines tell, by the desktop's number. Called from any thread, and never waits
/// for long.
pub type MachineEars = Arc<dyn Fn(u32, MachineNews) + Send + Sync>;

/// Where one machine tells of itself.
#[derive(Clone)]
pub struct Reporter {
    desktop: u32,
    ears: MachineEars,
}

impl Reporter {
    /// For the machine of this desktop.
    pub fn new(desktop: u32, ears: MachineEars) -> Self {
        Self { desktop, ears }
    }

    /// For machines that nobody watches.
    pub fn silent() -> Self {
        Self::new(0, Arc::new(|_, _| {}))
    }

    /// Tells it.
    pub fn tell(&self, news: MachineNews) {
        (self.ears)(self.desktop, news);
    }

    /// Tells of a change of state. `limit` is the longest it may last, `then` what happens after.
    pub fn status(&self, phase: MachinePhase, limit: Option<Duration>, then: &str, detail: &str) {
        self.tell(MachineNews::Status(MachineStatus {
            phase,
            limit_ms: limit.map(|limit| limit.as_millis() as u64),
            then: then.to_owned(),
            detail: detail.to_owned(),
        }));
    }

    /// Something begins, and `over` ends it. Tells that the machine is off if this is dropped
    /// before: it was given up.
    pub(super) fn begun(&self) -> Begun {
        guard(self.clone(), |reporter| {
            reporter.status(MachinePhase::Off, None, "", "");
        })
    }
}

/// Something that is under way, and may be given up.
pub(super) type Begun = ScopeGuard<Reporter, fn(Reporter)>;

/// It was not given up; what came of it is told by who began it.
pub(super) fn over(begun: Begun) {
    ScopeGuard::into_inner(begun);
}

impl std::fmt::Debug for Reporter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Reporter({})", self.desktop)
    }
}

/// What an evaluator reads a real desktop by.
#[derive(Clone, Copy)]
pub struct RealDesktop<'a> {
    /// The machine.
    pub machine: &'a dyn Machine,
    /// What set-up steps of this episode kept of their programs' output, by the name they gave it.
    pub kept: &'a BTreeMap<String, Vec<u8>>,
    /// Files from the web.
    pub files: &'a FileCache,
}
