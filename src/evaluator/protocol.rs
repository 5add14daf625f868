//! Protocols: what an episode's end and its state's score are worth. All three are computed
//! from the same recorded trajectory.
//!
//! *Standard* is how agents are usually measured: running into the step limit counts as
//! giving up, which is right where the task is infeasible. *Hard* is the published rule: only
//! an agent that ends by itself scores, so it never exceeds standard. *Plain* scores the
//! state wherever a feasible task stopped; training uses it. Environment and evaluator errors
//! have no outcome and never come here.

use crate::types::EpisodeEnd;

pub use crate::types::Protocol;

/// All three, in the order of reports.
pub const ALL: [Protocol; 3] = Protocol::ALL;

/// `Protocol::outcome`, as the evaluator's callers spell it.
pub fn outcome(protocol: Protocol, end: EpisodeEnd, infeasible: bool, state_score: f32) -> f32 {
    protocol.outcome(end, infeasible, state_score)
}
