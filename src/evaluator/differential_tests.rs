//! What counts as native, held against what OSWorld's own code says of the same cases.
//!
//! The cases and how they are made: `tests/it/fixtures/differential/README.md`.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::found::{Found, FoundFile};
use super::metrics::{self, Call};
use super::protocol::{Protocol, outcome};
use super::registry::{CARRIED, Carrier, PartKind};
use crate::types::EpisodeEnd;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/fixtures/differential")
}

/// What the getters bring in a case: `NAME` is a value, `NAME_file` a file or several.
fn found(case: &Value, name: &str) -> Found {
    match case.get(format!("{name}_file")) {
        None => Found::Value(case.get(name).cloned().unwrap_or(Value::Null)),
        Some(Value::Array(files)) => Found::Many(files.iter().map(file).collect()),
        Some(one) => file(one),
    }
}

/// A file of a case: `{"text": …}`, `{"hex": …}` or `{"document": …}`, which lies beside the
/// cases; null is none.
fn file(written: &Value) -> Found {
    let text = |key: &str| written.get(key).and_then(Value::as_str);
    let name = text("name").or(text("document")).unwrap_or("file.txt");
    let bytes = if let Some(text) = text("text") {
        text.as_bytes().to_vec()
    } else if let Some(hex) = text("hex") {
        let pairs = hex
            .as_bytes()
            .chunks(2)
            .map(|pair| std::str::from_utf8(pair).unwrap());
        pairs
            .map(|pair| u8::from_str_radix(pair, 16).unwrap())
            .collect()
    } else if let Some(document) = text("document") {
        std::fs::read(folder().join("documents").join(document)).unwrap()
    } else {
        assert!(written.is_null(), "{written}");
        return Found::NOTHING;
    };
    Found::File(FoundFile {
        name: name.to_owned(),
        bytes,
    })
}

/// What this program says of a case of a native part: none where it has no score.
fn native_score(kind: PartKind, name: &str, case: &Value) -> Option<f64> {
    assert_eq!(kind, PartKind::Metric, "{name}: say here how it is run");
    if name != "infeasible" {
        let empty = Map::new();
        let call = Call {
            result: &found(case, "result"),
            expected: &found(case, "expected"),
            options: case
                .get("options")
                .and_then(Value::as_object)
                .unwrap_or(&empty),
        };
        return metrics::find(name).unwrap()(&call).ok();
    }
    // OSWorld's `evaluate` looks at the last action alone, which is what plain scores do.
    let end = match case["actions"].as_array().unwrap().last() {
        Some(action) if action == "FAIL" || action["action_type"] == "FAIL" => {
            EpisodeEnd::DeclaredInfeasible
        }
        Some(action) if action == "DONE" => EpisodeEnd::Finished,
        _ => EpisodeEnd::StepLimit,
    };
    Some(f64::from(outcome(Protocol::Plain, end, true, 0.0)))
}

/// A case has a `score`, or the `error` that OSWorld's function raised; where ours leaves it on
/// purpose, `departs` says why, and `ours` what it says instead (none is no score).
#[test]
fn what_counts_as_native_scores_as_osworld_does() {
    let mut names = Vec::new();
    let mut wrong = Vec::new();
    for (kind, name, carrier) in CARRIED {
        names.push((*kind, *name));
        let Carrier::Native { cases } = carrier else {
            continue;
        };
        let kind_name = format!("{kind:?}").to_lowercase();
        let path = folder().join(kind_name).join(format!("{name}.json"));
        let text = std::fs::read_to_string(&path);
        let text = text.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let all: Vec<Value> = serde_json::from_str(&text).unwrap();
        if all.len() != *cases {
            wrong.push(format!(
                "{name}: {cases} in the registry, {} cases",
                all.len()
            ));
        }
        for case in &all {
            let got = native_score(*kind, name, case);
            let departs = case.get("departs").is_some();
            let told = &case[if departs { "ours" } else { "score" }];
            let has_told = departs || told.is_number() != case["error"].is_string();
            if !has_told || got != told.as_f64() {
                wrong.push(format!("{name}: {got:?}, but {case}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(names.is_sorted(), "the registry is sorted: {names:?}");
}
