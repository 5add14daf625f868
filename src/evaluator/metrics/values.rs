//! Metrics over values: what a command printed, a list, a number.

use serde_json::Value;

use super::python::{self, is_in, raised};
use super::{Call, MetricError, likeness, rule, score};

/// What was found is `expected`.
pub(super) fn exact_match(call: &Call<'_>) -> Result<f64, MetricError> {
    let expected = rule::entry(call.rules()?, "expected")?;
    Ok(score(python::equal(call.value()?, expected)))
}

/// What was found stands in `expected`.
pub(super) fn match_in_list(call: &Call<'_>) -> Result<f64, MetricError> {
    let expected = rule::entry(call.rules()?, "expected")?;
    Ok(score(is_in(call.value()?, expected)?))
}

/// `expected` stands in what was found.
pub(super) fn is_in_list(call: &Call<'_>) -> Result<f64, MetricError> {
    let expected = rule::entry(call.rules()?, "expected")?;
    Ok(score(is_in(expected, call.value()?)?))
}

/// What was found, written out, is what is expected, written out.
pub(super) fn literal_match(call: &Call<'_>) -> Result<f64, MetricError> {
    let write = |value: &Value| {
        let text = python::to_text(value);
        if call.is_on("ignore_case") {
            text.to_lowercase()
        } else {
            text
        }
    };
    let kind = call.options.get("type");
    match kind.map_or(Some("str"), Value::as_str) {
        Some("str") => Ok(score(write(call.value()?) == write(call.rules()?))),
        Some("list") => {
            let (Value::Array(found), Value::Array(expected)) = (call.value()?, call.rules()?)
            else {
                return Ok(0.0);
            };
            Ok(score(
                found.iter().map(write).eq(expected.iter().map(write)),
            ))
        }
        _ => Err(MetricError::Rules(
            "\"type\" is neither \"str\" nor \"list\"".into(),
        )),
    }
}

/// How alike a text is to `expected`.
pub(super) fn fuzzy_match(call: &Call<'_>) -> Result<f64, MetricError> {
    let expected = rule::entry(call.rules()?, "expected")?;
    match (call.value()?, expected) {
        (Value::String(found), Value::String(expected)) => Ok(likeness::ratio(found, expected)),
        (Value::Null, _) | (_, Value::Null) => Ok(0.0),
        (found, _) => Err(raised(format!("{found} or {expected} is no text"))),
    }
}

/// A text holds every string of `include` and none of `exclude`. Departs: rules with neither,
/// which everything would pass, are an error.
pub(super) fn check_include_exclude(call: &Call<'_>) -> Result<f64, MetricError> {
    let (found, rules) = (call.value()?, call.rules()?);
    if rules.get("include").or(rules.get("exclude")).is_none() {
        let reason = "rules of check_include_exclude lack \"include\" and \"exclude\"";
        return Err(MetricError::Rules(reason.into()));
    }
    if found.is_null() {
        return Ok(0.0);
    }
    for (key, wanted) in [("include", true), ("exclude", false)] {
        for part in rule::list(rules, key)? {
            if is_in(part, found)? != wanted {
                return Ok(0.0);
            }
        }
    }
    Ok(1.0)
}

/// What was found is `expected`, and something.
pub(super) fn compare_answer(call: &Call<'_>) -> Result<f64, MetricError> {
    let found = call.value()?;
    if !python::is_true(found) {
        return Ok(0.0);
    }
    let expected = rule::entry(call.rules()?, "expected")?;
    Ok(score(python::equal(found, expected)))
}

/// A listing contains `expected`, or does not, by `type`.
pub(super) fn is_extension_installed(call: &Call<'_>) -> Result<f64, MetricError> {
    let rules = call.rules()?;
    let wanted = match rule::text(rules, "type")? {
        "contain" => true,
        "not_contain" => false,
        other => return Err(MetricError::Rules(format!("no type is called {other:?}"))),
    };
    let holds = is_in(rule::entry(rules, "expected")?, call.value()?)?;
    Ok(score(holds == wanted))
}

/// What a terminal shows holds `expected`, or all of it. The getters stand the other way round:
/// the rules are the result.
pub(super) fn is_in_vm_clickboard(call: &Call<'_>) -> Result<f64, MetricError> {
    let expected = rule::entry(call.value()?, "expected")?;
    let shown = call.rules()?;
    let wanted = expected
        .as_array()
        .map_or(std::slice::from_ref(expected), Vec::as_slice);
    for part in wanted {
        if !is_in(part, shown)? {
            return Ok(0.0);
        }
    }
    Ok(1.0)
}

/// The fourth line of `timedatectl` names a time zone without offset.
pub(super) fn is_utc_0(call: &Call<'_>) -> Result<f64, MetricError> {
    let shown = call.value()?.as_str().ok_or_else(|| raised("no text"))?;
    let line = shown
        .split('\n')
        .nth(3)
        .ok_or_else(|| raised("no fourth line"))?;
    Ok(score(line.ends_with("+0000)")))
}

/// The apps in GNOME's list, written as Python writes lists, are those of `expected`.
pub(super) fn check_gnome_favorite_apps(call: &Call<'_>) -> Result<f64, MetricError> {
    let shown = call.value()?.as_str().ok_or_else(|| raised("no text"))?;
    let apps = read_list(shown).ok_or_else(|| raised(format!("{shown:?} is no list of texts")))?;
    let expected = strings(rule::entry(call.rules()?, "expected")?)?;
    let apps: Vec<&str> = apps.iter().map(String::as_str).collect();
    Ok(score(same_set(&apps, &expected)))
}

/// A list of texts in quotes. Departs: OSWorld evaluates whatever Python stands there.
fn read_list(shown: &str) -> Option<Vec<String>> {
    let inner = python::strip(shown).strip_prefix('[')?.strip_suffix(']')?;
    let mut items = Vec::new();
    let mut rest = python::strip(inner);
    while !rest.is_empty() {
        let quote = rest.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
        let end = rest[1..].find(quote)? + 1;
        let item = &rest[1..end];
        // Escapes, which names of apps have none of.
        if item.contains('\\') {
            return None;
        }
        items.push(item.to_owned());
        rest = python::strip(&rest[end + 1..]);
        if !rest.is_empty() {
            rest = python::strip(rest.strip_prefix(',')?);
        }
    }
    Some(items)
}

/// The names in a folder are those of `expected`.
pub(super) fn check_moved_jpgs(call: &Call<'_>) -> Result<f64, MetricError> {
    let children = call.value()?.get("children").and_then(Value::as_array);
    let children = children.ok_or_else(|| raised("the listing has no \"children\""))?;
    let names = children
        .iter()
        .map(|node| node.get("name").and_then(Value::as_str));
    let names: Option<Vec<&str>> = names.collect();
    let names = names.ok_or_else(|| raised("an entry of the listing has no \"name\""))?;
    let expected = strings(rule::entry(call.rules()?, "expected")?)?;
    Ok(score(same_set(&names, &expected)))
}

/// A list of texts.
pub(super) fn strings(value: &Value) -> Result<Vec<&str>, MetricError> {
    let texts = value
        .as_array()
        .and_then(|items| items.iter().map(Value::as_str).collect());
    texts.ok_or_else(|| MetricError::Rules(format!("{value} is no list of texts")))
}

/// As many items, and the same set of them.
fn same_set(left: &[&str], right: &[&str]) -> bool {
    left.len() == right.len()
        && left.iter().all(|item| right.contains(item))
        && right.iter().all(|item| left.contains(item))
}
