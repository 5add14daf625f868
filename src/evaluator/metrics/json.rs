//! Metrics over JSON.
//!
//! Departs: `NaN`, `Infinity`, halves of surrogate pairs and what is nested deeper than 128 are no
//! JSON here; Python reads them.

use serde_json::{Map, Value};

use super::python::{self, is_in, raised};
use super::{Call, MetricError, rule, score};

fn parse(text: &str) -> Result<Value, MetricError> {
    serde_json::from_str(text).map_err(|error| raised(format!("not JSON: {error}")))
}

/// A keybinding stands in VS Code's list of them, whose first line may be a comment.
pub(super) fn check_json_keybindings(call: &Call<'_>) -> Result<f64, MetricError> {
    let text = call.text().ok().flatten().unwrap_or_default();
    let after_first = text.split_once('\n').map_or("", |(_, rest)| rest);
    let lists = [text.as_str(), after_first]
        .into_iter()
        .filter_map(|text| parse(text).ok());
    let Some(bindings) = lists.into_iter().find(Value::is_array) else {
        return Ok(0.0);
    };
    let expected = rule::entry(call.rules()?, "expected")?;
    Ok(score(is_in(expected, &bindings)?))
}

/// VS Code's settings have all of `expected`.
pub(super) fn check_json_settings(call: &Call<'_>) -> Result<f64, MetricError> {
    let Ok(Some(Ok(settings))) = call.text().map(|text| text.map(|text| parse(&text))) else {
        return Ok(0.0);
    };
    let expected = rule::entry(call.rules()?, "expected")?;
    let wrong = || MetricError::Rules("\"expected\" is no object".into());
    for (key, value) in expected.as_object().ok_or_else(wrong)? {
        if !is_in(&Value::String(key.clone()), &settings)? {
            return Ok(0.0);
        }
        let Some(found) = settings.get(key) else {
            return Err(raised("the settings are no object"));
        };
        if !python::equal(found, value) {
            return Ok(0.0);
        }
    }
    Ok(1.0)
}

/// An object has all entries of another. The getters stand the other way round: what it has to
/// have is the result.
pub(super) fn is_included_all_json_objects(call: &Call<'_>) -> Result<f64, MetricError> {
    let (Some(wanted), Some(_)) = (call.text()?, call.expected_file()?) else {
        return Ok(0.0);
    };
    let Value::Object(wanted) = parse(&wanted)? else {
        return Err(raised("what there has to be is no object"));
    };
    let found = parse(&call.expected_text()?)?;
    if !wanted.is_empty() && !found.is_object() {
        return Err(raised("what was found is no object"));
    }
    let has = |(key, value)| {
        found
            .get(key)
            .is_some_and(|found| python::equal(found, value))
    };
    Ok(score(wanted.iter().all(has)))
}

/// An object, or a text that is one with single quotes or double ones, has what `expected` says:
/// equal values, or with `expect_in_result` texts that hold a text, or one of a list.
pub(super) fn check_direct_json_object(call: &Call<'_>) -> Result<f64, MetricError> {
    let found = match call.value()? {
        Value::String(text) => parse(&python::strip(text).replace('\'', "\""))?,
        value => value.clone(),
    };
    let rules = call.rules()?;
    // Anything else raises there, which is caught and 0.
    let Some(Value::Object(expected)) = rules.get("expected") else {
        return Ok(0.0);
    };
    let is_failure = |value: &Value| value.as_str() == Some("__EVALUATION_FAILED__");
    if found.is_null() || expected.values().any(is_failure) {
        return Ok(0.0);
    }
    let is_part = rules.get("expect_in_result").is_some_and(python::is_true);
    // The reference asks an object for a key even where it is none: that raises, is caught and 0.
    let empty = Map::new();
    let found = match &found {
        Value::Object(found) => found,
        _ if expected.is_empty() => &empty,
        _ => return Ok(0.0),
    };
    let ignore_order = expected
        .get("ignore_list_order")
        .is_some_and(python::is_true);
    let has = |(key, wanted): (&String, &Value)| {
        let found = found.get(key).unwrap_or(&Value::Null);
        match (is_part, ignore_order) {
            (true, _) => holds(found, wanted),
            (false, true) => same_items(found, wanted),
            (false, false) => python::equal(found, wanted),
        }
    };
    Ok(score(expected.iter().all(has)))
}

/// Whether what was found holds a text, or is or holds one of a list.
fn holds(found: &Value, wanted: &Value) -> bool {
    match (wanted, found) {
        (Value::Array(wanted), Value::Array(found)) => {
            let is_found = |wanted: &Value| found.iter().any(|found| python::equal(found, wanted));
            wanted.iter().any(is_found)
        }
        (Value::Array(wanted), Value::String(_)) => wanted.contains(found),
        (Value::String(_), _) => is_in(wanted, found).unwrap_or(false),
        _ => false,
    }
}

/// Whether two lists are equal once sorted. Departs: of lists only texts are sorted here, as in
/// all of OSWorld's; and `ignore_list_order`, an entry beside the lists, is compared with the
/// others, which fails, as there.
fn same_items(found: &Value, wanted: &Value) -> bool {
    let sorted = |value: &Value| -> Option<Vec<String>> {
        let mut texts = match value {
            Value::Array(items) => items
                .iter()
                .map(|item| item.as_str().map(str::to_owned))
                .collect::<Option<Vec<String>>>()?,
            Value::String(text) => text.chars().map(String::from).collect(),
            _ => return None,
        };
        texts.sort_unstable();
        Some(texts)
    };
    sorted(found).is_some_and(|found| sorted(wanted) == Some(found))
}
