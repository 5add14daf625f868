//! Desktops: what an episode runs on.
//!
//! `Environment` has two implementations, `simulated` and one over `guest`, the client of a real
//! desktop's server. It does not know what a reward is: the evaluator asks a simulated desktop
//! through `probe` and reads a real one by its `RealDesktop`.

pub mod admission;
mod apart;
pub mod attached;
pub mod docker;
pub mod guest;
mod lines;
pub mod machine;
pub mod qemu;
mod readiness;
mod sandbox;
pub mod simulated;
mod starts;
pub mod xvfb;

use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;

pub use admission::{Admission, Admitted, MachineNeed};
pub use machine::{
    Connection, Machine, MachineEars, MachineNews, MachineState, Provider, RealDesktop, Reporter,
};
pub use starts::{Starts, Turn};

use crate::types::{Action, ErrorClass, ScreenSize, Screenshot, SetupStep, Task};

/// What a desktop answered after an action or a reset.
#[derive(Clone, Debug)]
pub struct Observation {
    /// The picture.
    pub screenshot: Screenshot,
    /// How long the desktop took. Simulated desktops answer at once and say here how long
    /// their latency law makes it; the scheduler's clock advances by it.
    pub elapsed: Duration,
}

/// An evaluator's question about the end state.
#[derive(Clone, Debug, PartialEq)]
pub enum Probe {
    /// The whole state of a simulated desktop as JSON.
    State,
    /// The bytes of a file on the desktop.
    File {
        /// Its path there.
        path: String,
    },
    /// The output of a command run on the desktop.
    Command {
        /// Program and arguments.
        argv: Vec<String>,
    },
}

/// Answer to a `Probe`.
#[derive(Clone, Debug, PartialEq)]
pub struct ProbeReply {
    /// What was asked for.
    pub body: ProbeBody,
    /// How long it took, by the same clock as `Observation::elapsed`.
    pub elapsed: Duration,
}

/// Content of a `ProbeReply`.
#[derive(Clone, Debug, PartialEq)]
pub enum ProbeBody {
    /// State as JSON.
    State(Value),
    /// A file's bytes; `None` if there is no such file.
    File(Option<Vec<u8>>),
    /// What a command printed.
    Output {
        /// Its exit status.
        status: i32,
        /// Its standard output.
        stdout: String,
        /// Its standard error.
        stderr: String,
    },
}

/// A desktop that one episode at a time runs on.
#[async_trait]
pub trait Environment: Send {
    /// Size of its screen in pixels.
    fn screen_size(&self) -> ScreenSize;
    /// Brings the desktop to the task's starting state and looks at it. The seed decides
    /// whatever the desktop draws at random (latencies, faults), nothing of the task.
    async fn reset(&mut self, task: &Task, seed: u64) -> Result<Observation, EnvError>;
    /// Performs one action, waits for the screen to settle, looks again.
    async fn step(&mut self, action: &Action) -> Result<Observation, EnvError>;
    /// Looks without acting.
    async fn observe(&mut self) -> Result<Observation, EnvError>;
    /// Answers an evaluator's question.
    async fn probe(&mut self, probe: &Probe) -> Result<ProbeReply, EnvError>;
    /// What an evaluator reads a real desktop by; none where it is not one.
    fn real(&self) -> Option<RealDesktop<'_>> {
        None
    }
    /// Runs set-up steps of a task on the desktop as it is: those before judging. `key` is where in
    /// the task's file they stand.
    async fn set_up(
        &mut self,
        task: &Task,
        steps: &[SetupStep],
        key: &str,
    ) -> Result<Duration, EnvError> {
        match steps {
            [] => Ok(Duration::ZERO),
            [..] => Err(EnvError::Task {
                task: task.id.0.clone(),
                reason: format!("{key}: this desktop runs no steps after its reset"),
            }),
        }
    }
    /// Stops the desktop's own time while nobody looks. A no-op where there is none, or where it is
    /// to go on.
    async fn suspend(&mut self) -> Result<(), EnvError> {
        Ok(())
    }
    /// Undoes `suspend`.
    async fn wake(&mut self) -> Result<(), EnvError> {
        Ok(())
    }
    /// Whether its machine was starting when its last reset failed or was given up, and so never
    /// came to the task's own steps.
    fn failed_to_start(&self) -> bool {
        false
    }
    /// Whether its machine came up in its last reset, whatever came of that afterwards.
    fn came_up(&self) -> bool {
        false
    }
    /// Looks for the cause of a call that was given up, or that failed past the desktop, and tells
    /// what it sees; the error in its place if the cause lies below.
    async fn diagnose(&mut self, symptom: &str) -> Option<EnvError> {
        let _ = symptom;
        None
    }
    /// Looks after itself between two episodes, and tells how it is; why it is to be closed and
    /// opened anew, if it is.
    async fn inspect(&mut self) -> Option<String> {
        None
    }
    /// Releases everything; the environment is gone even if this fails.
    async fn close(&mut self) -> Result<(), EnvError>;
}

/// What can go wrong with a desktop. Never the policy's fault.
#[derive(Debug, thiserror::Error)]
pub enum EnvError {
    /// It did not answer in time.
    #[error("{what} did not answer within {} s", .after.as_secs_f64())]
    Timeout {
        /// What was waited for.
        what: &'static str,
        /// How long, by the desktop's clock.
        after: Duration,
    },
    /// It went away.
    #[error("desktop crashed during {what}")]
    Crashed {
        /// What was being done.
        what: &'static str,
    },
    /// The picture cannot be used.
    #[error("screenshot unusable: {reason}")]
    Screenshot {
        /// Black, torn, wrong size.
        reason: String,
    },
    /// A task asks for something this environment does not have.
    #[error("task {task}: {reason}")]
    Task {
        /// Which task.
        task: String,
        /// What is missing, and what to change.
        reason: String,
    },
    /// A real desktop's server, or what it was asked, failed.
    #[error("{what}: {}", crate::http::with_causes(.source))]
    Guest {
        /// What was being done.
        what: String,
        /// What came of it.
        #[source]
        source: Box<guest::GuestError>,
    },
    /// A machine did not come up, or could not be brought back.
    #[error("{machine}: {reason}")]
    Machine {
        /// Which.
        machine: String,
        /// Why, and what to do about it.
        reason: String,
    },
    /// A machine ended while it was in use.
    #[error("{machine}: {reason} (then: {symptom})")]
    Ended {
        /// Which.
        machine: String,
        /// Why.
        reason: String,
        /// What was noticed of it.
        symptom: String,
    },
    /// A question it cannot answer.
    #[error("this desktop cannot answer {probe}")]
    Unsupported {
        /// The question.
        probe: String,
    },
}

impl EnvError {
    /// The class shown to the operator.
    pub fn class(&self) -> ErrorClass {
        match self {
            EnvError::Timeout { .. } => ErrorClass::Timeout,
            EnvError::Crashed { .. } | EnvError::Ended { .. } => ErrorClass::Crash,
            EnvError::Screenshot { .. } => ErrorClass::Screenshot,
            EnvError::Guest { source, .. } => source.class(),
            EnvError::Machine { .. } | EnvError::Task { .. } | EnvError::Unsupported { .. } => {
                ErrorClass::Reset
            }
        }
    }

    /// How long the failed call took by the desktop's clock.
    pub fn elapsed(&self) -> Duration {
        match self {
            EnvError::Timeout { after, .. } => *after,
            _ => Duration::ZERO,
        }
    }
}
