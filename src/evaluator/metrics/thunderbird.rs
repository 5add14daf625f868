//! Metrics over Thunderbird's preferences, filters and folders.

use serde_json::{Map, Value};

use super::python::{self, raised};
use super::{Call, MetricError, pattern, rule, score};
use crate::evaluator::found::{Found, FoundFile};

/// `prefs.js` sets what `expect` says, and nothing that `unexpect` says.
pub(super) fn check_thunderbird_prefs(call: &Call<'_>) -> Result<f64, MetricError> {
    let Some(text) = call.text()? else {
        return Ok(0.0);
    };
    let expect = rule::object(call.rules()?, "expect")?;
    let unexpect = rule::object(call.rules()?, "unexpect")?;
    // Of a preference set twice the last counts where it is expected, any where it is not.
    let mut met: Map<String, Value> = Map::new();
    let mut is_clean = true;
    for (key, written) in text
        .split('\n')
        .filter_map(|line| preference(python::strip(line)))
    {
        let value = serde_json::from_str(written);
        let value: Value = value.map_err(|error| raised(format!("preference {key}: {error}")))?;
        if let Some(wanted) = expect.and_then(|expect| expect.get(key)) {
            met.insert(key.to_owned(), rule::value_fits(&value, wanted)?.into());
        } else if let Some(unwanted) = unexpect.and_then(|unexpect| unexpect.get(key)) {
            is_clean = is_clean && !rule::value_fits(&value, unwanted)?;
        }
    }
    let mut wanted = expect.into_iter().flat_map(Map::keys);
    Ok(score(
        is_clean && wanted.all(|key| met.get(key) == Some(&Value::Bool(true))),
    ))
}

/// Key and value of a line `user_pref("KEY", VALUE);`.
fn preference(line: &str) -> Option<(&str, &str)> {
    let inner = line.strip_prefix("user_pref(\"")?.strip_suffix(");")?;
    // The reference's pattern lets quotes with a backslash before them stand in a key.
    let mut from = 0;
    loop {
        let at = from + inner[from..].find('"')?;
        let (key, rest) = (&inner[..at], &inner[at..]);
        match rest.strip_prefix("\", ") {
            Some(value) if !key.is_empty() && !value.is_empty() => return Some((key, value)),
            _ if key.ends_with('\\') => from = at + 1,
            _ => return None,
        }
    }
}

/// `msgFilterRules.dat` has all filters of `expect` and none of `unexpect`.
pub(super) fn check_thunderbird_filter(call: &Call<'_>) -> Result<f64, MetricError> {
    let Some(text) = call.text()? else {
        return Ok(0.0);
    };
    Ok(score(rule::records_fit(call.rules()?, &filters(&text)?)?))
}

/// The filters of a rules' file: what stands between two names, if it has a condition.
fn filters(text: &str) -> Result<Vec<Map<String, Value>>, MetricError> {
    let condition = pattern::compile(
        r#"\b(?:AND|OR) \((?:[\w ]+),(?:[\w ']+),(?:"(?:(?:[^"]|\")+)"|(?:[^)]+))\)|\bALL\b"#,
    )?;
    let mut filters: Vec<Map<String, Value>> = Vec::new();
    let keys = [
        "name",
        "enabled",
        "type",
        "action",
        "actionValue",
        "condition",
    ];
    for line in python::lines_with_ends(text) {
        let is_of = |key: &&&str| {
            line.strip_prefix(**key)
                .is_some_and(|rest| rest.starts_with('='))
        };
        let Some(key) = keys.iter().find(is_of) else {
            continue;
        };
        if *key == "name" {
            filters.push(Map::new());
        }
        let filter = filters
            .last_mut()
            .ok_or_else(|| raised(format!("{key} before a name")))?;
        let value = python::slice(line, key.len() + 2, 2)
            .replace("\\\"", "\"")
            .replace("\\\\", "\\");
        let value: Value = if *key == "condition" {
            let mut parts: Vec<Value> = Vec::new();
            for part in condition.find_iter(&value) {
                let part = part.map_err(|error| raised(format!("condition {value:?}: {error}")))?;
                parts.push(part.as_str().into());
            }
            parts.into()
        } else {
            value.into()
        };
        filter.insert((*key).to_owned(), value);
    }
    filters.retain(|filter| filter.contains_key("condition"));
    Ok(filters)
}

/// Folders are alike. As there, messages with anything in them are passed over, so that any two
/// folders of Thunderbird's are: what is compared is whether something is empty between two marks.
pub(super) fn check_thunderbird_folder(call: &Call<'_>) -> Result<f64, MetricError> {
    let one = |found| std::slice::from_ref(found);
    let (found, expected) = match (call.result, call.expected) {
        (Found::Many(found), Found::Many(expected)) => (found.as_slice(), expected.as_slice()),
        (found, expected) => (one(found), one(expected)),
    };
    for (found, expected) in found.iter().zip(expected) {
        let file = |found: &Found| match found {
            Found::File(FoundFile { bytes, .. }) => python::read_text(bytes).map(Some),
            Found::Value(Value::Null) => Ok(None),
            _ => Err(MetricError::Rules("a folder is a file".into())),
        };
        let Some(found) = file(found)? else {
            return Ok(0.0);
        };
        let expected =
            file(expected)?.ok_or_else(|| raised("there is no folder to compare with"))?;
        if messages(call, &found) != messages(call, &expected) {
            return Ok(0.0);
        }
    }
    Ok(1.0)
}

/// How many empty messages a folder has; one for all with `remove_duplicate`, which is on.
fn messages(call: &Call<'_>, folder: &str) -> usize {
    let parts = python::strip(folder).split("FROM - ");
    let count = parts.filter(|part| python::strip(part).is_empty()).count();
    let is_once = call
        .options
        .get("remove_duplicate")
        .is_none_or(python::is_true);
    if is_once { count.min(1) } else { count }
}
