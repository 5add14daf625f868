//! Metrics over a simulated desktop's state, found by the names that task files use.

use serde_json::Value;

use crate::env::simulated::Goal;

/// A metric: what was seen and the rules it is held against, to a score in [0, 1].
pub(super) type Metric = fn(&Value, &Value) -> Result<f32, String>;

/// All metrics by name.
const METRICS: [(&str, Metric); 3] = [
    ("state_match", state_match),
    ("exact_match", exact_match),
    ("check_include_exclude", check_include_exclude),
];

/// The metric of a name.
pub(super) fn find(name: &str) -> Result<Metric, String> {
    let found = METRICS.iter().find(|(known, _)| *known == name);
    found.map(|(_, metric)| *metric).ok_or_else(|| {
        let known: Vec<&str> = METRICS.iter().map(|(known, _)| *known).collect();
        format!(
            "no metric is called {name:?}; there are {}",
            known.join(", ")
        )
    })
}

/// The rules of an `expected` entry.
pub(super) fn rules(expected: &Value) -> Result<&Value, String> {
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
pub(super) fn check_result(result: &Value) -> Result<(), String> {
    match result.get("type").and_then(Value::as_str) {
        Some("simulated_state") => Ok(()),
        kind => Err(format!(
            "\"result\" is of type {}; a simulated desktop has \"simulated_state\" only",
            kind.unwrap_or("none")
        )),
    }
}

/// The part of the state that a `result` entry names by its JSON pointer `path`, or all.
pub(super) fn select<'a>(result: &Value, state: &'a Value) -> &'a Value {
    let path = result.get("path").and_then(Value::as_str).unwrap_or("");
    state.pointer(path).unwrap_or(&Value::Null)
}

/// The goal is reached and everything else is as it was; see `Goal::score`.
fn state_match(seen: &Value, rules: &Value) -> Result<f32, String> {
    let goal: Goal = serde_json::from_value(rules.clone())
        .map_err(|error| format!("rules of state_match: {error}"))?;
    Ok(goal.score(seen))
}

/// What was seen is the value `expected`, as in OSWorld's metric of this name.
fn exact_match(seen: &Value, rules: &Value) -> Result<f32, String> {
    let expected = rules
        .get("expected")
        .ok_or("rules of exact_match lack \"expected\"")?;
    Ok(f32::from(u8::from(python_equal(seen, expected))))
}

/// Whether Python calls two values equal: of numbers it compares the worth, and `True` is 1.
fn python_equal(left: &Value, right: &Value) -> bool {
    let worth = |value: &Value| match value {
        Value::Bool(is_true) => Some(f64::from(u8::from(*is_true))),
        Value::Number(number) => number.as_f64(),
        _ => None,
    };
    match (left, right) {
        (Value::Array(left), Value::Array(right)) => {
            let mut pairs = left.iter().zip(right);
            left.len() == right.len() && pairs.all(|(left, right)| python_equal(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            let equal = |(key, left)| {
                right
                    .get(key)
                    .is_some_and(|right| python_equal(left, right))
            };
            left.len() == right.len() && left.iter().all(equal)
        }
        _ => match (worth(left), worth(right)) {
            (Some(left), Some(right)) => left == right,
            _ => left == right,
        },
    }
}

/// A text holds every string of `include` and none of `exclude`, as in OSWorld's metric of
/// this name. Departs: rules with neither, which everything would pass, are an error.
fn check_include_exclude(seen: &Value, rules: &Value) -> Result<f32, String> {
    let strings = |name: &str| -> Vec<&str> {
        let list = rules.get(name).and_then(Value::as_array);
        list.map_or_else(Vec::new, |all| {
            all.iter().filter_map(Value::as_str).collect()
        })
    };
    if rules.get("include").or(rules.get("exclude")).is_none() {
        return Err("rules of check_include_exclude lack \"include\" and \"exclude\"".into());
    }
    // What Python's `in` says of each.
    let holds = |part: &str| match seen {
        Value::String(text) => text.contains(part),
        Value::Array(items) => items.iter().any(|item| item.as_str() == Some(part)),
        Value::Object(object) => object.contains_key(part),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    };
    if !matches!(seen, Value::String(_) | Value::Array(_) | Value::Object(_)) {
        return Ok(0.0);
    }
    let included = strings("include").into_iter().all(holds);
    let excluded = !strings("exclude").into_iter().any(holds);
    Ok(f32::from(u8::from(included && excluded)))
}
