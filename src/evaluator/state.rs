//! Scores simulated desktops, whose whole state is one JSON value.

use std::time::Duration;

use serde_json::{Map, Value};

use super::found::Found;
use super::metrics::{self, Call};
use super::{Evaluation, EvaluatorError, join};
use crate::env::{Environment, Probe, ProbeBody};
use crate::types::osworld::Join;
use crate::types::{OneOrMany, Task};

/// The score of the state that a simulated desktop is in.
pub(super) async fn evaluate(
    task: &Task,
    env: &mut dyn Environment,
) -> Result<Evaluation, EvaluatorError> {
    let mut elapsed = Duration::ZERO;
    let mut state = None;
    let mut scores = Vec::new();
    for (i, func) in task.evaluator.func.iter().enumerate() {
        let spec = |reason: String| EvaluatorError::Spec {
            task: task.id.0.clone(),
            reason,
        };
        let unscored = |error| EvaluatorError::scoring(&task.id.0, func, error);
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
    let is_or = task.evaluator.conj.as_deref() == Some("or");
    Ok(Evaluation {
        elapsed,
        ..Evaluation::of(join(&scores, if is_or { Join::Or } else { Join::And }))
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
