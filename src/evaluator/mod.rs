//! Evaluators: read the end state of a desktop through its environment and say how much of
//! the task is done.
//!
//! `evaluate` gives the state's score alone; `protocol` turns it and the way the episode ended
//! into an outcome. Metrics are a table of named functions, as OSWorld's task files name them;
//! getters bring what they look at. Whether the agent rightly declared a task infeasible is none
//! of a metric's business.

mod checks;
mod error;
pub mod found;
pub mod getters;
pub mod metrics;
mod original;
pub mod protocol;
pub mod registry;
pub mod sidecar;
mod state;

#[cfg(test)]
mod checks_tests;
#[cfg(test)]
mod differential_tests;
#[cfg(test)]
mod tests;

use std::time::Duration;

pub use checks::{CheckState, Difference, EndState};
pub use error::EvaluatorError;
pub use original::{Original, Scorer};

use crate::env::Environment;
use crate::types::Task;
use crate::types::osworld::Join;

/// What an evaluator found.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluation {
    /// How much of the task the state shows done, in [0, 1]. 0 for infeasible tasks.
    pub state_score: f32,
    /// How long it took by the desktop's clock.
    pub elapsed: Duration,
    /// What was read of a real desktop to score it.
    pub end_state: Option<EndState>,
    /// Where OSWorld's own code, asked too, scored otherwise.
    pub differences: Vec<Difference>,
}

impl Evaluation {
    /// A score that took no time.
    fn of(state_score: f32) -> Self {
        Self {
            state_score,
            elapsed: Duration::ZERO,
            end_state: None,
            differences: Vec::new(),
        }
    }
}

/// Scores the state that a desktop is in.
///
/// Several metrics are joined as OSWorld joins them: `or` takes the best, `and` (which is what
/// a missing `conj` means) the mean, or 0 if any is 0.
pub async fn evaluate(
    task: &Task,
    env: &mut dyn Environment,
    scorer: &Scorer,
) -> Result<Evaluation, EvaluatorError> {
    if task.is_infeasible() {
        return Ok(Evaluation::of(0.0));
    }
    if env.real().is_some() {
        checks::evaluate(task, env, scorer).await
    } else {
        state::evaluate(task, env).await
    }
}

fn join(scores: &[f32], how: Join) -> f32 {
    match how {
        Join::Or => scores.iter().copied().fold(0.0, f32::max),
        Join::And if scores.is_empty() || scores.contains(&0.0) => 0.0,
        Join::And => scores.iter().sum::<f32>() / scores.len() as f32,
    }
}
