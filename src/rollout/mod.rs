//! Running a policy on desktops until each episode ends, and collecting many at once.
//!
//! Invariants: every dispatched job ends in exactly one `Outcome`, in job order; a failed
//! episode is data and never unwinds the others; nothing here knows that there is a trainer.
//! On a virtual clock the order of everything is fixed by (time, desktop), so that the same
//! seed gives the same bits.

mod barrier;
mod branch;
mod care;
mod cause;
mod clock;
mod collect;
mod debug;
mod episode;
mod executor;
mod fleet;
mod freeze;
mod gate;
mod held;
mod lease;
mod queue;
mod recorder;

#[cfg(test)]
mod fault_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod wall_tests;

pub use branch::Branch;
pub use care::Care;
pub use clock::Clock;
pub use collect::{CollectSpec, Collection, Settled, Steering, collect};
pub use debug::Debugger;
pub use episode::{Collected, EpisodeContext, Job, Outcome, RolloutError, TrialOf, shorten};
pub use fleet::{Answer, Ending, Fleet};
pub use gate::{Gate, GateHandle, GateState};
pub use lease::{Lease, Settle};
pub use recorder::Recorder;
