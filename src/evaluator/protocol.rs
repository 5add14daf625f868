//! Protocols: what an episode's end and its state's score are worth. All three are computed
//! from the same recorded trajectory.
//!
//! *Standard* is how agents are usually measured: running into the step limit counts as
//! giving up, which is right where the task is infeasible. *Hard* is the published rule: only
//! an agent that ends by itself scores, so it never exceeds standard. *Plain* scores the
//! state wherever a feasible task stopped; training uses it. Environment and evaluator errors
//! have no outcome and never come here.

use crate::types::EpisodeEnd;

pub use crate::config::Protocol;

/// All three, in the order of reports.
pub const ALL: [Protocol; 3] = [Protocol::Standard, Protocol::Hard, Protocol::Plain];

/// Outcome of an episode in [0, 1]. `state_score` is the evaluator's and is not looked at
/// where the task is infeasible.
pub fn outcome(protocol: Protocol, end: EpisodeEnd, infeasible: bool, state_score: f32) -> f32 {
    match (end, infeasible) {
        (EpisodeEnd::Finished | EpisodeEnd::Malformed | EpisodeEnd::ContextFull, false) => {
            state_score
        }
        (EpisodeEnd::Finished | EpisodeEnd::Malformed | EpisodeEnd::ContextFull, true)
        | (EpisodeEnd::DeclaredInfeasible, false) => 0.0,
        (EpisodeEnd::DeclaredInfeasible, true) => 1.0,
        (EpisodeEnd::StepLimit, false) => match protocol {
            Protocol::Standard | Protocol::Hard => 0.0,
            Protocol::Plain => state_score,
        },
        (EpisodeEnd::StepLimit, true) => match protocol {
            Protocol::Standard => 1.0,
            Protocol::Hard | Protocol::Plain => 0.0,
        },
    }
}
