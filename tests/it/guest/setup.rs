//! What set-up steps ask of a guest, held against what OSWorld's own controller asks.
//!
//! The cases and how they are made: `tests/it/fixtures/differential/README.md`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use arpo::env::Environment;
use arpo::evaluator::registry::{CARRIED, Carrier, PartKind};
use arpo::types::{SetupStep, Task};
use rusqlite::Connection;
use serde_json::{Map, Value, json};

use super::browser::FakeChrome;
use super::machine::{Scripted, cache};
use super::{Reply, Server, block_on, of_json, output, page, picture, text};
use crate::loopback::Request;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/fixtures/differential/setup")
}

/// `execute` and `execute_with_verification` are the same below `/setup`.
fn route(path: &str) -> &str {
    match path.strip_prefix("/setup") {
        Some(rest) if rest.starts_with("/execute") => rest,
        _ => path,
    }
}

/// An answer as a case has it.
fn reply(written: &Value, path: &str) -> Reply {
    let ran = |part: &Value| {
        let text = |name: &str, or: &str| part[name].as_str().unwrap_or(or).to_owned();
        let code = part["returncode"].as_i64().unwrap_or(0) as i32;
        output(code, &text("output", "out"), &text("error", "err"))
    };
    match written.as_str() {
        None => ran(written),
        Some("done") if path.starts_with("/execute") => ran(&json!({})),
        Some("done") => text("done"),
        Some("page") => page(),
        Some("error") => of_json(500, &json!({"status": "error", "message": "it failed"})),
        Some("missing") => Reply::Whole(404, "text/html", b"no such window".to_vec()),
        Some("hangup") => Reply::HangUp,
        Some(other) => panic!("no answer is called {other}"),
    }
}

/// A server that answers as a case says, each route in turn.
fn serve(case: &Value) -> Server {
    let answers = case.get("answers").and_then(Value::as_object);
    let answers = Mutex::new(answers.cloned().unwrap_or_default());
    Server::answering(move |request| {
        if request.path() == "/screenshot" {
            return picture();
        }
        let path = route(request.path());
        let mut answers = answers.lock().unwrap();
        let Some(Value::Array(left)) = answers.get_mut(path) else {
            return reply(&json!("done"), path);
        };
        let next = if left.len() > 1 {
            left.remove(0)
        } else {
            left[0].clone()
        };
        reply(&next, path)
    })
}

/// A request as the cases have it.
fn question(request: &Request) -> Value {
    let mut question = json!({"method": request.method(), "path": route(request.path())});
    let mime = request.header("content-type");
    if mime == "application/json" {
        question["json"] = serde_json::from_slice(&request.body).unwrap();
    }
    if let Some(boundary) = mime.strip_prefix("multipart/form-data; boundary=") {
        let parts = parts(&request.body, boundary);
        let data = &parts["file_data"];
        question["to"] = String::from_utf8(parts["file_path"].clone())
            .unwrap()
            .into();
        if data.starts_with(b"SQLite format 3") {
            question["history"] = pages_of(data);
        } else {
            question["content"] = String::from_utf8(data.clone()).unwrap().into();
        }
    }
    question
}

/// The parts of a form, by name.
fn parts(body: &[u8], boundary: &str) -> BTreeMap<String, Vec<u8>> {
    let mark = format!("--{boundary}");
    let find = |bytes: &[u8], what: &[u8]| {
        let mut places = bytes.windows(what.len());
        places.position(|window| window == what)
    };
    let mut parts = BTreeMap::new();
    let mut rest = &body[mark.len()..];
    while let Some(end) = find(rest, mark.as_bytes()) {
        let part = &rest[..end - 2];
        let head = find(part, b"\r\n\r\n").unwrap();
        let named = String::from_utf8_lossy(&part[..head]).into_owned();
        let name = named.split("name=\"").nth(1).unwrap();
        let name = name.split('"').next().unwrap();
        parts.insert(name.to_owned(), part[head + 4..].to_vec());
        rest = &rest[end + mark.len()..];
    }
    parts
}

/// What is in a history: pages, and how many minutes ago they were visited.
fn pages_of(history: &[u8]) -> Value {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), history).unwrap();
    let history = Connection::open(file.path()).unwrap();
    let query = "SELECT json_array(urls.url, title, visit_count, typed_count, hidden, \
        last_visit_time = visit_time, from_visit, transition, segment_id, visit_duration, \
        CAST(round((1e6 * (strftime('%s', 'now') + 11644473600.0) - visit_time) / 6e7) AS INTEGER)) \
        FROM urls JOIN visits ON visits.url = urls.id ORDER BY urls.id";
    let mut rows = history.prepare(query).unwrap();
    let rows = rows.query_map([], |row| row.get::<_, String>(0)).unwrap();
    rows.map(|row| serde_json::from_str::<Value>(&row.unwrap()).unwrap())
        .collect()
}

/// The same, with one way to write a number.
fn plain(value: &Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64()),
        Value::Array(all) => all.iter().map(plain).collect(),
        Value::Object(all) => {
            let entries = all.iter().map(|(key, value)| (key.clone(), plain(value)));
            Value::Object(entries.collect())
        }
        other => other.clone(),
    }
}

/// An empty history, as Chrome makes it.
fn empty_history() -> Vec<u8> {
    let file = tempfile::NamedTempFile::new().unwrap();
    let tables = std::fs::read_to_string(folder().join("history.sql")).unwrap();
    let history = Connection::open(file.path()).unwrap();
    history.execute_batch(&tables).unwrap();
    drop(history);
    std::fs::read(file.path()).unwrap()
}

/// What this program does of a case, in the words of the cases.
fn done(name: &str, case: &Value) -> (Value, Duration) {
    let server = serve(case);
    let place = tempfile::tempdir().unwrap();
    let entries = |key: &str| {
        case.get(key)
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default()
    };
    for (file, content) in entries("host") {
        std::fs::write(place.path().join(file), content.as_str().unwrap()).unwrap();
    }
    let contents: Vec<(String, Vec<u8>)> = entries("files")
        .into_iter()
        .map(|(url, content)| match content.as_str().unwrap() {
            "history" => (url, empty_history()),
            content => (url, content.as_bytes().to_vec()),
        })
        .collect();
    let contents: Vec<(&str, &[u8])> = contents
        .iter()
        .map(|(url, content)| (url.as_str(), content.as_slice()))
        .collect();
    let chrome = case.get("tabs").map(|tabs| {
        let tabs: Vec<String> = serde_json::from_value(tabs.clone()).unwrap();
        // It is not there at once, nor are its tabs.
        let late = if name == "chrome_open_tabs" { 2 } else { 0 };
        FakeChrome::start(&tabs, late, 2)
    });
    let mut machine = Scripted::new(&server.address);
    if let Some(chrome) = &chrome {
        machine = machine.ports(&chrome.address);
    }
    let mut desktop = machine.desktop(cache(place.path(), &contents));
    let host = place.path().to_str().unwrap();
    let parameters = case["parameters"].to_string().replace("HOST", host);
    let parameters: Map<String, Value> = serde_json::from_str(&parameters).unwrap();
    let step = SetupStep {
        kind: name.to_owned(),
        parameters,
    };
    let task = |config: &[SetupStep]| -> Task {
        let task = json!({"id": "t", "instruction": "x", "config": config,
            "evaluator": {"func": "infeasible"}});
        serde_json::from_value(task).unwrap()
    };
    let began = Instant::now();
    let result = if case.get("judging").is_some() {
        block_on(desktop.reset(&task(&[]), 0)).unwrap();
        let steps = std::slice::from_ref(&step);
        block_on(desktop.set_up(&task(&[]), steps, "evaluator.postconfig")).map(|_| ())
    } else {
        block_on(desktop.reset(&task(std::slice::from_ref(&step)), 0)).map(|_| ())
    };
    let took = began.elapsed();
    if let Err(error) = &result {
        let words = error.to_string();
        assert!(
            words.contains("task t: ") && words.contains("[0]"),
            "{words}"
        );
    }
    let seen = server.seen.lock().unwrap();
    let asked = seen
        .iter()
        .filter(|request| request.path() != "/screenshot");
    let mut told = json!({"asked": asked.map(question).collect::<Vec<_>>(),
        "fails": result.is_err()});
    let kept = desktop.real().unwrap().kept;
    if !kept.is_empty() {
        let kept = kept
            .iter()
            .map(|(name, text)| (name.clone(), Value::from(String::from_utf8_lossy(text))));
        told["kept"] = Value::Object(kept.collect());
    }
    if let Some(chrome) = chrome {
        told["left"] = json!(chrome.left());
    }
    (told, took)
}

/// A case says what OSWorld's controller did; where this program leaves it on purpose, `departs`
/// says why, and `ours` what it does instead.
#[test]
fn steps_ask_what_osworld_asks() {
    let mut wrong = Vec::new();
    let mut num_cases = 0;
    for (kind, name, carrier) in CARRIED {
        let (PartKind::Setup, Carrier::Native { .. }) = (kind, carrier) else {
            continue;
        };
        let text = std::fs::read_to_string(folder().join(format!("{name}.json"))).unwrap();
        let cases: Vec<Value> = serde_json::from_str(&text).unwrap();
        num_cases += cases.len();
        for case in &cases {
            let (got, took) = done(name, case);
            let told = if case.get("departs").is_some() {
                &case["ours"]
            } else {
                case
            };
            let mut expected = json!({"asked": told["asked"], "fails": told["fails"]});
            for key in ["kept", "left"] {
                if let Some(value) = told.get(key) {
                    expected[key] = value.clone();
                }
            }
            if plain(&got) != plain(&expected) {
                wrong.push(format!(
                    "{name}: {got}\n  for {}\n  not {expected}",
                    case["parameters"]
                ));
            }
            let slept = case.get("slept").and_then(Value::as_f64).unwrap_or(0.0);
            assert!(took.as_secs_f64() >= slept, "{name}: {took:?} for {case}");
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {num_cases}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(num_cases >= 40, "{num_cases}");
}
