//! Metrics over configuration files of other formats.

use serde_json::Value;

use super::python::{self, raised};
use super::{Call, MetricError, rule, score};

/// A line of GIMP's configuration names a key, or a key and a second word, and a value.
pub(super) fn check_config_status(call: &Call<'_>) -> Result<f64, MetricError> {
    let Some(text) = call.text()? else {
        return Ok(0.0);
    };
    let (key, value) = (
        rule::entry(call.rules()?, "key"),
        rule::entry(call.rules()?, "value"),
    );
    for line in python::lines_with_ends(&text) {
        if line.starts_with('#') || line == "\n" {
            continue;
        }
        let bare = python::strip(line)
            .trim_start_matches('(')
            .trim_end_matches([')', '\n']);
        let words: Vec<&str> = python::words(bare).collect();
        let wanted: Vec<Option<&str>> = match key.clone()? {
            Value::String(key) => vec![Some(key.as_str())],
            Value::Array(keys) if keys.len() == 2 => keys.iter().map(Value::as_str).collect(),
            _ => return Ok(0.0),
        };
        // The reference looks at the second word only where the first is right.
        let mut is_met = true;
        for (at, wanted) in wanted.iter().enumerate() {
            let missing = || raised(format!("line {line:?} has too few words"));
            is_met = is_met && Some(*words.get(at).ok_or_else(missing)?) == *wanted;
            if !is_met {
                break;
            }
        }
        if is_met && words.last().copied() == value.clone()?.as_str() {
            return Ok(score(true));
        }
    }
    Ok(0.0)
}
