//! Wires a run and serves it: collect, replay, train, publish, again, steered by commands.
//!
//! A session knows the seams only: desktops as `Environment`, whoever answers as `Policy`, and
//! whoever learns as `Learner`. It reads the clock and draws seeds; nothing below it does.
//! Invariant: a run is a pure function of its profile and of the iterations done, so that a
//! resumed run goes on exactly as the uninterrupted one.

mod checkpoint;
mod collector;
mod control;
mod debug;
mod desktops;
mod evaluate;
mod evaluations;
mod iteration;
mod learner;
mod machines;
mod measurement;
mod progress;
mod rehearsal;
mod select;
mod summary;
mod tasks;
mod timing;
mod train;

#[cfg(test)]
mod fleet_tests;
#[cfg(test)]
mod live_tests;
#[cfg(test)]
mod tests;

pub use collector::{Collector, CollectorParts, Evaluated};
pub use control::{Control, Settings};
pub use debug::{debug_job, load_branch};
pub use desktops::{
    Desktops, FleetCare, attached_options, beside_sockets, docker_options, open_desktops, qemu,
};
pub use evaluate::EvaluationSpec;
pub use learner::{Learner, LearnerError, OldLogprobReport, UpdateSettings};
pub use machines::machine_ears;
pub use progress::Progress;
pub use rehearsal::{Rehearsal, RehearsalSpec, rehearse};
pub use select::{SelectSpec, Selection, TaskRecord, select};
pub use tasks::{TaskPool, default_files, find_tasks, load_tasks, open_files};
pub use timing::{Timed, TimingSpec, time_episodes};
pub use train::{TrainParts, TrainSession};

use crate::bus::BusError;
use crate::env::EnvError;
use crate::store::StoreError;

/// What ends a session.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The run directory.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// The event log.
    #[error("{0}")]
    Bus(#[from] BusError),
    /// The learner.
    #[error("{0}")]
    Learner(#[from] LearnerError),
    /// A desktop could not be made at all.
    #[error("{0}")]
    Env(#[source] EnvError),
    /// This machine has no room for the desktops.
    #[error("{0}")]
    NoRoom(String),
    /// No desktop starts any more.
    #[error("{0}")]
    NoDesktop(String),
    /// A task set.
    #[error("{0}")]
    Tasks(String),
    /// The same error in nearly every episode: going on would burn time for nothing.
    #[error("{failed} of {total} episodes of iteration {iteration} failed, last with: {last}")]
    TooManyErrors {
        /// Episodes without score.
        failed: usize,
        /// Episodes dispatched.
        total: usize,
        /// Which iteration.
        iteration: u64,
        /// The last message.
        last: String,
    },
    /// An evaluation could not begin.
    #[error("the evaluation cannot begin: {0}")]
    Evaluation(String),
    /// The policy broke down.
    #[error("{0}")]
    Policy(String),
}
