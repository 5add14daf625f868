//! What a sweep removes: containers of engines that are dead for sure, and no others.

use arpo::env::Provider;
use arpo::env::docker;
use arpo::store::LockHolder;
use serde_json::{Value, json};

use super::Place;
use super::engine::Plan;
use crate::machines::Heard;

/// Labels of an engine: this test's process, but for what `changed` says.
fn labels(changed: &[(&str, &str)]) -> Value {
    let us = LockHolder::this_process();
    let namespace = std::fs::read_link("/proc/self/ns/pid").unwrap();
    let mut labels = json!({"arpo.run": "r", "arpo.host": us.host, "arpo.boot": us.boot,
        "arpo.pid": us.pid.to_string(), "arpo.started": us.started_ticks.to_string(),
        "arpo.pidns": namespace, "arpo.created": "1", "arpo.lease": "4102444800",
        "arpo.desktop": "0", "arpo.machine": "9999"});
    for (key, value) in changed {
        labels[*key] = json!(value);
    }
    labels
}

/// Name, labels, state, whether it is removed.
fn cases() -> Vec<(&'static str, Value, &'static str, bool)> {
    // Above the most that the kernel gives.
    let dead = ("arpo.pid", "8388608");
    let mut lacking = labels(&[dead]);
    lacking.as_object_mut().unwrap().remove("arpo.boot");
    let other_host = ("arpo.host", "elsewhere");
    let other_boot = ("arpo.boot", "0b5e1ab2-0000-4000-8000-000000000000");
    vec![
        ("live", labels(&[]), "running", false),
        ("live-ended", labels(&[]), "exited", false),
        ("dead", labels(&[dead]), "running", true),
        ("dead-paused", labels(&[dead]), "paused", true),
        ("dead-never-started", labels(&[dead]), "created", true),
        ("dead-ended", labels(&[dead]), "exited", true),
        (
            "reused-number",
            labels(&[("arpo.started", "1")]),
            "running",
            true,
        ),
        ("other-host", labels(&[dead, other_host]), "running", false),
        (
            "other-host-ended",
            labels(&[dead, other_host]),
            "exited",
            false,
        ),
        (
            "other-host-lease-over",
            labels(&[other_host, ("arpo.lease", "1")]),
            "running",
            true,
        ),
        ("other-boot", labels(&[other_boot]), "exited", true),
        (
            "other-boot-running",
            labels(&[other_boot]),
            "running",
            false,
        ),
        (
            "other-namespace",
            labels(&[dead, ("arpo.pidns", "pid:[1]")]),
            "running",
            false,
        ),
        ("unlabelled", json!({}), "running", false),
        (
            "others-label",
            json!({"osworld.token": "x"}),
            "exited",
            false,
        ),
        ("lacks-a-label", lacking, "running", false),
        (
            "no-number",
            labels(&[("arpo.pid", "8388608x")]),
            "running",
            false,
        ),
    ]
}

#[tokio::test]
async fn a_sweep_takes_what_is_surely_dead_and_nothing_else() {
    for by_hand in [false, true] {
        let place = Place::new(Plan::default());
        for (name, labels, state, _) in cases() {
            place.engine.add(name, &labels, state);
        }
        if by_hand {
            let socket = place.folder.path().join("docker.sock");
            let swept = docker::sweep(&socket).await.unwrap();
            assert_eq!(swept.failed, Vec::<String>::new());
            let doomed = cases().iter().filter(|case| case.3).count();
            assert_eq!(swept.removed.len(), doomed, "{swept:?}");
            let left = swept.left.join("\n");
            assert_eq!(swept.left.len(), 4, "{left}");
            assert!(left.contains("engine 8388608 on elsewhere"), "{left}");
            assert!(left.contains("docker rm -fv other-host"), "{left}");
        } else {
            drop(place.provider(&[]));
        }
        let kept: Vec<&str> = cases()
            .iter()
            .filter(|case| !case.3)
            .map(|case| case.0)
            .collect();
        assert_eq!(place.engine.ids(), kept);
        for removal in place.engine.asked("DELETE ") {
            let is_whole = removal.contains("v=true") && removal.contains("force=true");
            assert!(is_whole, "{removal}");
        }
        let listed = place.engine.asked("GET containers/json");
        assert!(listed[0].contains("all=true"), "{listed:?}");
    }
}

#[test]
fn cleaning_runs_sweeps_containers() {
    let place = Place::new(Plan::default());
    for (name, labels, state, _) in cases() {
        place.engine.add(name, &labels, state);
    }
    let socket = place.folder.path().join("docker.sock");
    let clean = |docker_host: String| {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_arpo"))
            .args(["runs", "clean", "--json"])
            .env("DOCKER_HOST", docker_host)
            .env("ARPO_RUNTIME_DIR", place.folder.path().join("sockets"))
            .output()
            .unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        report["containers"].clone()
    };
    let swept = clean(format!("unix://{}", socket.display()));
    // This process lives, and so do its containers.
    let doomed = cases().iter().filter(|case| case.3).count();
    assert_eq!(
        swept["removed"].as_array().unwrap().len(),
        doomed,
        "{swept}"
    );
    assert_eq!(swept["failed"], json!([]));
    assert_eq!(place.engine.ids().len(), cases().len() - doomed);
    let refused = clean("tcp://10.0.0.1:2375".to_owned());
    let reason = refused["error"].as_str().unwrap();
    assert!(reason.contains("has to be a Unix socket"), "{reason}");
}

#[tokio::test]
async fn another_run_of_this_process_is_left_alone() {
    let place = Place::new(Plan::default());
    let mut first = place
        .provider(&[])
        .machine(0, Heard::default().reporter())
        .unwrap();
    first.revert().await.unwrap();
    let mut second = place
        .provider(&[])
        .machine(0, Heard::default().reporter())
        .unwrap();
    second.revert().await.unwrap();
    assert_eq!(place.engine.ids().len(), 2);
    second.revert().await.unwrap();
    second.close().await.unwrap();
    assert_eq!(place.engine.ids().len(), 1);
    assert_eq!(first.guest().platform().await.unwrap(), "Linux");
    first.close().await.unwrap();
}
