//! What counts as native, held against what OSWorld's own code says of the same cases.
//!
//! The cases and how they are made: `tests/it/fixtures/differential/README.md`.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::found::{Found, FoundFile};
use super::getters::scripted::{self, Scripted};
use super::getters::{self, GetterError};
use super::metrics::{self, Call};
use super::protocol::{Protocol, outcome};
use super::registry::{CARRIED, Carrier, PartKind};
use crate::types::EpisodeEnd;
use crate::types::osworld::Getter;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/fixtures/differential")
}

/// What the getters bring in a case: `NAME` is a value, `NAME_file` a file or several.
pub(super) fn found(case: &Value, name: &str) -> Found {
    match case.get(format!("{name}_file")) {
        None => Found::Value(case.get(name).cloned().unwrap_or(Value::Null)),
        Some(Value::Array(files)) => Found::Many(files.iter().map(file).collect()),
        Some(one) => file(one),
    }
}

/// A file of a case, see `scripted::content`; `beside` are files that lie beside it; null is none.
fn file(written: &Value) -> Found {
    let text = |key: &str| written.get(key).and_then(Value::as_str);
    let name = text("name").or(text("document")).unwrap_or("file.txt");
    let beside = written.get("beside").and_then(Value::as_array);
    let beside = beside.into_iter().flatten().map(|one| match file(one) {
        Found::File(file) => file,
        other => panic!("{other:?} lies beside {name}"),
    });
    scripted::content(written).map_or(Found::NOTHING, |bytes| {
        Found::File(FoundFile {
            beside: beside.collect(),
            ..FoundFile::new(name, bytes)
        })
    })
}

/// What this program makes of a case of a native part, if it differs from what it should.
fn difference(kind: PartKind, name: &str, case: &Value) -> Option<String> {
    match kind {
        // Held against it in `tests/it/guest/setup.rs`, which has a server to ask.
        PartKind::Setup => None,
        PartKind::Getter => getter_difference(name, case),
        PartKind::Metric => metric_difference(name, case),
    }
}

/// A case of a metric has a `score`, or the `error` that OSWorld's function raised; where ours
/// leaves it on purpose, `departs` says why, and `ours` what it says instead (none is no score).
fn metric_difference(name: &str, case: &Value) -> Option<String> {
    let got = native_score(name, case);
    let departs = case.get("departs").is_some();
    let told = &case[if departs { "ours" } else { "score" }];
    let has_told = departs || told.is_number() != case["error"].is_string();
    (!has_told || !is_same(got, told.as_f64())).then(|| format!("{got:?}"))
}

/// A case of a getter has what OSWorld's function found, `found` or `found_file`, or the `error`
/// that it raised; where ours leaves it on purpose, `departs` says why, and `ours` or `ours_file`
/// what it finds instead (neither is an error).
fn getter_difference(name: &str, case: &Value) -> Option<String> {
    let mut written = case["parameters"].clone();
    written["type"] = json!(name);
    let role = if case.get("departs").is_some() {
        "ours"
    } else {
        "found"
    };
    let has_told = case
        .get(role)
        .or(case.get(format!("{role}_file")))
        .is_some();
    let told = has_told.then(|| found(case, role));
    if role == "found" && has_told == case["error"].is_string() {
        return Some("the case says neither what was found nor an error".to_owned());
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let got = runtime.block_on(async {
        let getter = Getter::read(&written, name).unwrap();
        let scripted = Scripted::start(case).await;
        getters::get(&getter, scripted.real()).await
    });
    // A broken desktop would pass for an exception.
    let is_ours = !matches!(
        got,
        Err(GetterError::Environment(_) | GetterError::Elsewhere)
    );
    let is_same = is_ours && got.as_ref().ok().map(bare) == told;
    (!is_same).then(|| format!("{got:?}"))
}

/// Without the files beside, which OSWorld's getters do not tell of.
fn bare(found: &Found) -> Found {
    match found {
        Found::File(file) => Found::File(FoundFile::new(&file.name, file.bytes.clone())),
        Found::Many(all) => Found::Many(all.iter().map(bare).collect()),
        Found::Value(_) => found.clone(),
    }
}

/// What this program says of a case of a metric: none where it has no score.
fn native_score(name: &str, case: &Value) -> Option<f64> {
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

/// The same score, or none both times. Means over pixels differ in their last bits by the order
/// of their sums.
fn is_same(got: Option<f64>, told: Option<f64>) -> bool {
    match (got, told) {
        (Some(got), Some(told)) => (got - told).abs() <= 1e-6,
        _ => got == told,
    }
}

#[test]
fn what_counts_as_native_does_as_osworld_does() {
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
            if let Some(got) = difference(*kind, name, case) {
                wrong.push(format!("{name}: {got}, but {case}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(names.is_sorted(), "the registry is sorted: {names:?}");
}
