//! `arpo doctor` in surroundings that lack one thing after another.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// Runs `doctor` from an empty folder, so that nothing of the checkout helps but what its path
/// leads to.
fn doctor(dir: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_arpo"))
        .arg("doctor")
        .args(args)
        .current_dir(dir)
        .env_remove("LC_ALL")
        .env_remove("LC_CTYPE")
        .env("LANG", "C")
        .output()
        .unwrap()
}

fn check<'a>(report: &'a Value, name: &str) -> &'a Value {
    let checks = report["checks"].as_array().unwrap();
    checks
        .iter()
        .find(|check| check["name"] == name)
        .expect("every check reports")
}

#[test]
fn a_missing_checkpoint_stops_embedded_policies_only() {
    let dir = tempfile::tempdir().unwrap();
    let absent = ["--json", "--set", "policy.checkpoint=/nowhere"];
    let output = doctor(dir.path(), &absent);
    assert_eq!(output.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["ready"], false);
    let checkpoint = check(&report, "checkpoint");
    assert_eq!(checkpoint["status"], "missing");
    assert_eq!(checkpoint["found"], "no config.json in /nowhere");
    assert_ne!(checkpoint["remedy"], "");

    let scripted = [&absent[..], &["--set", "policy.kind=scripted"]].concat();
    let output = doctor(dir.path(), &scripted);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        report["ready"], true,
        "a scripted policy needs neither engine nor checkpoint"
    );
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn every_complaint_comes_with_a_remedy() {
    let dir = tempfile::tempdir().unwrap();
    let output = doctor(dir.path(), &["--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    for check in report["checks"].as_array().unwrap() {
        let is_ok = check["status"] == "ok";
        assert_eq!(is_ok, check["remedy"] == "", "{check}");
    }
    assert_eq!(check(&report, "locale")["found"], "C is not UTF-8");
    assert_eq!(
        check(&report, "terminal")["found"],
        "stdout is not a terminal"
    );
}

#[test]
fn people_get_lines_and_a_conclusion() {
    let dir = tempfile::tempdir().unwrap();
    let output = doctor(dir.path(), &["--set", "policy.kind=scripted"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().last(), Some("this profile can be run here"));
    assert!(
        text.lines()
            .any(|line| line.starts_with("ok       checkpoint")),
        "{text}"
    );
}
