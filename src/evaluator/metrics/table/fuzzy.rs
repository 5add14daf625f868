//! Values of cells that need not be quite the same.

use serde_json::Value;

use super::super::python::{self, raised};
use super::super::{MetricError, likeness, rule};

/// Per cent of likeness that is enough unless a rule says otherwise.
const THRESHOLD: f64 = 85.0;

/// Whether two values are alike in the way that an entry of `sheet_fuzzy` asks for.
pub(super) fn alike(found: &Value, expected: &Value, way: &Value) -> Result<bool, MetricError> {
    let found = prepared(found, way)?;
    let expected = prepared(expected, way)?;
    match rule::text(way, "type")? {
        "includes" => Ok(found.contains(&expected)),
        "included_by" => Ok(expected.contains(&found)),
        "fuzzy_match" => {
            let threshold = way.get("threshold").map_or(Some(THRESHOLD), python::worth);
            let wrong = || MetricError::Rules("\"threshold\" is no number".into());
            Ok(likeness::percent(&found, &expected) >= threshold.ok_or_else(wrong)?)
        }
        "exact_match" => Ok(found == expected),
        way => Err(raised(format!("values are not alike by {way:?}"))),
    }
}

/// A value as text, without what does not matter.
fn prepared(value: &Value, way: &Value) -> Result<String, MetricError> {
    let mut text = python::to_text(value);
    let wrong = || MetricError::Rules("\"normalization\" takes pairs of texts".into());
    for pair in rule::list(way, "normalization")? {
        let (from, to) = pair.get(0).zip(pair.get(1)).ok_or_else(wrong)?;
        let (from, to) = from.as_str().zip(to.as_str()).ok_or_else(wrong)?;
        text = text.replace(from, to);
    }
    let set = |key: &str| -> Result<Option<Vec<char>>, MetricError> {
        let given = way.get(key).map(|_| rule::text(way, key));
        Ok(given.transpose()?.map(|text| text.chars().collect()))
    };
    if let Some(set) = set("trim_leadings")? {
        text = text.trim_start_matches(set.as_slice()).to_owned();
    }
    if let Some(set) = set("trim_trailings")? {
        text = text.trim_end_matches(set.as_slice()).to_owned();
    }
    if let Some(set) = set("ignore_chars")? {
        text.retain(|c| !set.contains(&c));
    }
    if way.get("ignore_case").is_some_and(python::is_true) {
        text = text.to_lowercase();
    }
    Ok(text)
}
