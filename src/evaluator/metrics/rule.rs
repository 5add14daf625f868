//! Rules that several metrics read: entries by key, records to match, values with a method.

use serde_json::{Map, Value};

use super::python::{self, raised};
use super::{MetricError, pattern};

/// An entry that the rules have to have.
pub(super) fn entry<'a>(rules: &'a Value, key: &str) -> Result<&'a Value, MetricError> {
    let missing = || MetricError::Rules(format!("the rules lack {key:?}"));
    rules.get(key).ok_or_else(missing)
}

/// A text that the rules have to have.
pub(super) fn text<'a>(rules: &'a Value, key: &str) -> Result<&'a str, MetricError> {
    let wrong = || MetricError::Rules(format!("{key:?} is no text"));
    entry(rules, key)?.as_str().ok_or_else(wrong)
}

/// A list of the rules, which may be missing.
pub(super) fn list<'a>(rules: &'a Value, key: &str) -> Result<&'a [Value], MetricError> {
    let wrong = || MetricError::Rules(format!("{key:?} is no list"));
    match rules.get(key) {
        None => Ok(&[]),
        Some(list) => list.as_array().map(Vec::as_slice).ok_or_else(wrong),
    }
}

/// An object of the rules, which may be missing.
pub(super) fn object<'a>(
    rules: &'a Value,
    key: &str,
) -> Result<Option<&'a Map<String, Value>>, MetricError> {
    let wrong = || MetricError::Rules(format!("{key:?} is no object"));
    let found = rules
        .get(key)
        .map(|value| value.as_object().ok_or_else(wrong));
    found.transpose()
}

/// Whether a record has all that a pattern asks for, `_match_record`.
pub(super) fn record_fits(
    pattern: &Value,
    record: &Map<String, Value>,
) -> Result<bool, MetricError> {
    let wrong = || MetricError::Rules(format!("{pattern} is no object"));
    let mut wanted = pattern.as_object().ok_or_else(wrong)?.iter();
    Ok(wanted.all(|(key, value)| {
        record
            .get(key)
            .is_some_and(|found| python::equal(found, value))
    }))
}

/// Whether all of `expect` and none of `unexpect` fit one of the records.
pub(super) fn records_fit(
    rules: &Value,
    records: &[Map<String, Value>],
) -> Result<bool, MetricError> {
    let fits_one = |pattern: &Value| -> Result<bool, MetricError> {
        for record in records {
            if record_fits(pattern, record)? {
                return Ok(true);
            }
        }
        Ok(false)
    };
    let mut fit = true;
    for pattern in list(rules, "expect")? {
        fit &= fits_one(pattern)?;
    }
    for pattern in list(rules, "unexpect")? {
        fit &= !fits_one(pattern)?;
    }
    Ok(fit)
}

/// Whether a value is what a rule's `method` and `ref` ask for, `_match_value_to_rule`.
///
/// Departs: `spreadsheet_range` is no method here; no rule of OSWorld's tasks that comes this way
/// uses it.
pub(super) fn value_fits(value: &Value, rule: &Value) -> Result<bool, MetricError> {
    let method = text(rule, "method")?;
    let reference = entry(rule, "ref")?;
    if let Some(flags) = method.strip_prefix("re") {
        return matches_pattern(value, reference, flags);
    }
    if let Some(threshold) = method.strip_prefix("approx") {
        return is_near(value, reference, threshold);
    }
    if let Some(ends) = method.strip_prefix("range.") {
        return is_between(value, reference, ends);
    }
    match method {
        "eq" => Ok(python::equal(value, reference)),
        "ne" => Ok(!python::equal(value, reference)),
        "le" | "lt" | "ge" | "gt" => compare(method, value, reference),
        "str_list_eq" | "str_set_eq" => items_equal(value, reference, method),
        _ => Err(MetricError::Rules(format!(
            "no method is called {method:?}"
        ))),
    }
}

fn matches_pattern(value: &Value, reference: &Value, flags: &str) -> Result<bool, MetricError> {
    let flags: Vec<&str> = flags.split('.').skip(1).collect();
    let wrong = || MetricError::Rules(format!("{reference} is no pattern"));
    let pattern = pattern::compile_with(reference.as_str().ok_or_else(wrong)?, &flags)?;
    let text = value
        .as_str()
        .ok_or_else(|| raised(format!("{value} is no text")))?;
    pattern::search(&pattern, text)
}

fn is_near(value: &Value, reference: &Value, threshold: &str) -> Result<bool, MetricError> {
    let wrong = |what: &str| MetricError::Rules(format!("{what} is no number"));
    let threshold = threshold.split(':').nth(1).and_then(python::parse_float);
    let threshold = threshold.ok_or_else(|| wrong("the threshold of \"approx\""))?;
    let reference = python::worth(reference).ok_or_else(|| wrong("\"ref\""))?;
    let value = match value {
        Value::String(text) => python::parse_float(text),
        _ => python::worth(value),
    };
    Ok(value.is_some_and(|value| (value - reference).abs() <= threshold))
}

fn is_between(value: &Value, reference: &Value, ends: &str) -> Result<bool, MetricError> {
    let wrong = || MetricError::Rules(format!("range.{ends} takes two ends"));
    let [low, high] = reference.as_array().map(Vec::as_slice).ok_or_else(wrong)? else {
        return Err(wrong());
    };
    let mut ends = ends.chars();
    let (Some(left), Some(right)) = (ends.next(), ends.next()) else {
        return Err(wrong());
    };
    Ok(compare(&format!("l{left}"), low, value)? && compare(&format!("l{right}"), value, high)?)
}

/// `operator.le` and the like.
fn compare(operator: &str, left: &Value, right: &Value) -> Result<bool, MetricError> {
    let order = match (left, right) {
        (Value::String(left), Value::String(right)) => left.partial_cmp(right),
        _ => match (python::worth(left), python::worth(right)) {
            (Some(left), Some(right)) => left.partial_cmp(&right),
            _ => return Err(raised(format!("{left} and {right} have no order"))),
        },
    };
    let holds = |test: fn(std::cmp::Ordering) -> bool| Ok(order.is_some_and(test));
    match operator {
        "le" => holds(std::cmp::Ordering::is_le),
        "lt" => holds(std::cmp::Ordering::is_lt),
        "ge" => holds(std::cmp::Ordering::is_ge),
        "gt" => holds(std::cmp::Ordering::is_gt),
        _ => Err(MetricError::Rules(format!(
            "no comparison is called {operator:?}"
        ))),
    }
}

/// Items that commas part, in order or as a set.
fn items_equal(value: &Value, reference: &Value, method: &str) -> Result<bool, MetricError> {
    let text = value
        .as_str()
        .ok_or_else(|| raised(format!("{value} is no text")))?;
    let mut items: Vec<&str> = text.trim_matches(['"', '\'']).split(',').collect();
    let wrong = || MetricError::Rules(format!("{reference} is no list"));
    let wanted = reference.as_array().ok_or_else(wrong)?;
    let mut wanted: Vec<&str> = match wanted.iter().map(Value::as_str).collect() {
        Some(wanted) => wanted,
        None => return Ok(false),
    };
    if method == "str_set_eq" {
        for items in [&mut items, &mut wanted] {
            items.sort_unstable();
            items.dedup();
        }
    }
    Ok(items == wanted)
}
