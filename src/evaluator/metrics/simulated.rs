//! What is particular to simulated desktops: their one getter, and the metric over a goal.

use serde_json::Value;

use super::{Call, MetricError};
use crate::env::simulated::Goal;

/// The rules of an `expected` entry.
pub(in crate::evaluator) fn rules(expected: &Value) -> Result<&Value, String> {
    match (
        expected.get("type").and_then(Value::as_str),
        expected.get("rules"),
    ) {
        (Some("rule"), Some(rules)) => Ok(rules),
        (Some("rule"), None) => Err("\"expected\" is a rule without \"rules\"".into()),
        (kind, _) => Err(format!(
            "\"expected\" is of type {}; only \"rule\" can be held against a simulated desktop",
            kind.unwrap_or("none")
        )),
    }
}

/// Whether a `result` entry asks for something simulated desktops have.
pub(in crate::evaluator) fn check_result(result: &Value) -> Result<(), String> {
    match result.get("type").and_then(Value::as_str) {
        Some("simulated_state") => Ok(()),
        kind => Err(format!(
            "\"result\" is of type {}; a simulated desktop has \"simulated_state\" only",
            kind.unwrap_or("none")
        )),
    }
}

/// The part of the state that a `result` entry names by its JSON pointer `path`, or all.
pub(in crate::evaluator) fn select<'a>(result: &Value, state: &'a Value) -> &'a Value {
    let path = result.get("path").and_then(Value::as_str).unwrap_or("");
    state.pointer(path).unwrap_or(&Value::Null)
}

/// The goal is reached and everything else is as it was; see `Goal::score`.
pub(super) fn state_match(call: &Call<'_>) -> Result<f64, MetricError> {
    let goal: Goal = serde_json::from_value(call.rules()?.clone())
        .map_err(|error| MetricError::Rules(format!("rules of state_match: {error}")))?;
    Ok(f64::from(goal.score(call.value()?)))
}
