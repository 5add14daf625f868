//! Evaluators: read the end state of a desktop through its environment and say how much of
//! the task is done.
//!
//! `evaluate` gives the state's score alone; `protocol` turns it and the way the episode ended
//! into an outcome. Metrics are a table of named functions, as OSWorld's task files name them.
//! Whether the agent rightly declared a task infeasible is none of a metric's business.

pub mod found;
pub mod metrics;
pub mod protocol;
pub mod registry;

#[cfg(test)]
mod differential_tests;
#[cfg(test)]
mod tests;

use std::time::Duration;

use found::Found;
use metrics::{Call, MetricError};
use serde_json::{Map, Value};

use crate::env::{EnvError, Environment, Probe, ProbeBody};
use crate::types::{OneOrMany, Task};

/// What an evaluator found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Evaluation {
    /// How much of the task the state shows done, in [0, 1]. 0 for infeasible tasks.
    pub state_score: f32,
    /// How long it took by the desktop's clock.
    pub elapsed: Duration,
}

/// Why a state has no score. Never the policy's fault.
#[derive(Debug, thiserror::Error)]
pub enum EvaluatorError {
    /// The desktop did not answer.
    #[error("evaluator of task {task} could not read the desktop")]
    Environment {
        /// Which task.
        task: String,
        /// What happened.
        #[source]
        source: EnvError,
    },
    /// The task file asks for a metric, getter or rule that does not exist.
    #[error("evaluator of task {task}: {reason}")]
    Spec {
        /// Which task.
        task: String,
        /// What is wrong in the file, and what would be right.
        reason: String,
    },
    /// What the desktop shows is nothing that the metric can judge; OSWorld gives no score either.
    #[error("evaluator of task {task}: {metric} found what {source}")]
    Judging {
        /// Which task.
        task: String,
        /// Which metric.
        metric: String,
        /// What it met.
        #[source]
        source: MetricError,
    },
}

impl EvaluatorError {
    /// How long the failed evaluation took by the desktop's clock.
    pub fn elapsed(&self) -> Duration {
        match self {
            EvaluatorError::Environment { source, .. } => source.elapsed(),
            EvaluatorError::Spec { .. } | EvaluatorError::Judging { .. } => Duration::ZERO,
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
) -> Result<Evaluation, EvaluatorError> {
    let nothing = Evaluation {
        state_score: 0.0,
        elapsed: Duration::ZERO,
    };
    if task.is_infeasible() {
        return Ok(nothing);
    }
    let mut elapsed = Duration::ZERO;
    let mut state = None;
    let mut scores = Vec::new();
    for (i, func) in task.evaluator.func.iter().enumerate() {
        let spec = |reason: String| EvaluatorError::Spec {
            task: task.id.0.clone(),
            reason,
        };
        let unscored = |error: MetricError| match error {
            MetricError::Rules(reason) => spec(reason),
            MetricError::Raised(_) => EvaluatorError::Judging {
                task: task.id.0.clone(),
                metric: func.clone(),
                source: error,
            },
        };
        let metric = metrics::find(func).map_err(unscored)?;
        let result = getter(task.evaluator.result.as_ref(), i, "result").map_err(spec)?;
        let expected = getter(task.evaluator.expected.as_ref(), i, "expected").map_err(spec)?;
        let rules = metrics::rules(expected).map_err(spec)?;
        metrics::check_result(result).map_err(spec)?;
        if state.is_none() {
            let (value, took) = read_state(task, env).await?;
            elapsed += took;
            state = Some(value);
        }
        let state = state.as_ref().unwrap_or(&Value::Null);
        let call = Call {
            result: &Found::Value(metrics::select(result, state).clone()),
            expected: &Found::Value(rules.clone()),
            options: &Map::new(),
        };
        scores.push(metric(&call).map_err(unscored)? as f32);
    }
    Ok(Evaluation {
        state_score: join(&scores, task.evaluator.conj.as_deref()),
        elapsed,
    })
}

/// The state, read once however many metrics look at it.
async fn read_state(
    task: &Task,
    env: &mut dyn Environment,
) -> Result<(Value, Duration), EvaluatorError> {
    let failed = |source| EvaluatorError::Environment {
        task: task.id.0.clone(),
        source,
    };
    let reply = env.probe(&Probe::State).await.map_err(failed)?;
    match reply.body {
        ProbeBody::State(state) => Ok((state, reply.elapsed)),
        ProbeBody::File(_) | ProbeBody::Output { .. } => Err(EvaluatorError::Spec {
            task: task.id.0.clone(),
            reason: "the desktop answered a question about its state with something else".into(),
        }),
    }
}

fn getter<'a>(
    all: Option<&'a OneOrMany<Value>>,
    i: usize,
    name: &str,
) -> Result<&'a Value, String> {
    all.and_then(|all| all.iter().nth(i))
        .ok_or_else(|| format!("metric {i} has no {name:?}; give one per entry of \"func\""))
}

fn join(scores: &[f32], conj: Option<&str>) -> f32 {
    if conj == Some("or") {
        return scores.iter().copied().fold(0.0, f32::max);
    }
    if scores.is_empty() || scores.contains(&0.0) {
        return 0.0;
    }
    scores.iter().sum::<f32>() / scores.len() as f32
}
