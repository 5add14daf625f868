//! Whole runs of the shipped agent: killed and resumed; left by its console and found again.
//!
//! Small runs of the real thing: the demo's profile with fewer desktops and groups.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use arpo::bus::{Role, SourceItem, attach};
use arpo::event::{F, IterationReport, RunState};
use arpo::store::RunDir;
use rustix::process::Signal;
use serde_json::Value;

use crate::pty::Session;

const SMALL: [&str; 10] = [
    "-p",
    "profiles/demo.toml",
    "--set",
    "grpo.tasks_per_iteration=3",
    "--set",
    "grpo.group_size=4",
    "--set",
    "env.desktops=6",
    "--set",
    "eval.heldout_instances=0",
];

/// `arpo train --headless` with its log on a pipe.
fn headless(sockets: &Path, arguments: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_arpo"))
        .args(["train", "--headless", "--json"])
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("ARPO_RUNTIME_DIR", sockets)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// The JSON object a run ends with.
#[track_caller]
fn closing_figures(child: Child) -> Value {
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let text = String::from_utf8(output.stdout).unwrap();
    serde_json::from_str(text.lines().last().unwrap()).unwrap()
}

/// What must not depend on interruptions: everything but times.
fn timeless(run: &Path) -> Vec<IterationReport> {
    let history = RunDir::open(run).unwrap().state().unwrap().history;
    let reports = history.into_iter().map(|mut report| {
        report.tokens_per_s = F(0.0);
        (report.collect_ms, report.train_ms, report.wall_ms) = (0, 0, 0);
        report
    });
    reports.collect()
}

/// Kills a run as soon as it says that `iteration` has ended, which is in the midst of the next.
fn kill_after(mut child: Child, iteration: u64) {
    let wanted = format!("{iteration}/4 ");
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut lines = lines.map_while(Result::ok);
    let said = lines.find(|line| line.starts_with("iteration") && line.contains(&wanted));
    assert!(said.is_some(), "the run ended before iteration {iteration}");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_run_killed_and_resumed_ends_with_the_same_bits() {
    let folder = tempfile::tempdir().unwrap();
    let sockets = folder.path().join("sockets");
    let whole = folder.path().join("whole");
    let arguments = |run: &Path| {
        let mut arguments = SMALL.to_vec();
        arguments.extend([
            "--iterations",
            "4",
            "--set",
            "run.checkpoint_every_iterations=1",
        ]);
        let run = run.to_str().unwrap().to_owned();
        (arguments, run)
    };
    let (words, run) = arguments(&whole);
    let uninterrupted =
        closing_figures(headless(&sockets, &[&words[..], &["--run", &run]].concat()));
    assert_eq!(uninterrupted["status"], "finished");
    let reports = timeless(&whole);
    assert_eq!(reports.len(), 4);
    for kills in [&[1, 2][..], &[3]] {
        let path = folder.path().join(format!("killed-{}", kills.len()));
        let (words, run) = arguments(&path);
        kill_after(
            headless(&sockets, &[&words[..], &["--run", &run]].concat()),
            kills[0],
        );
        for kill in &kills[1..] {
            kill_after(headless(&sockets, &["--resume", &run]), *kill);
        }
        let resumed = closing_figures(headless(&sockets, &["--resume", &run]));
        for figure in [
            "weights",
            "episodes",
            "replaced",
            "reward_first",
            "reward_last",
        ] {
            assert_eq!(
                resumed[figure], uninterrupted[figure],
                "{figure}, {kills:?}"
            );
        }
        assert_eq!(timeless(&path), reports, "{kills:?}");
    }
}

#[tokio::test]
async fn a_run_goes_on_without_its_terminal_and_is_found_again() {
    let folder = tempfile::tempdir().unwrap();
    let sockets = folder.path().join("sockets");
    let path = folder.path().join("left-1");
    let mut arguments = vec!["train"];
    arguments.extend(SMALL);
    arguments.extend(["--iterations", "6", "--run", path.to_str().unwrap()]);
    let env = [("ARPO_RUNTIME_DIR", sockets.to_str().unwrap())];
    let mut console = Session::start(&arguments, &env);
    console.wait_for("left-1");
    // The terminal dies; the engine has a session of its own.
    console.signal(Signal::HUP);
    console.check_restored();
    let socket = sockets.join("left-1.sock");
    let mut source = attach(&socket, Role::Watch, "test").await.unwrap();
    let mut state = std::mem::take(&mut source.state);
    assert!(!state.is_over());
    loop {
        match source.items.recv().await {
            Some(SourceItem::Event(event)) => state.apply(&event),
            Some(SourceItem::Resync { state: newer, .. }) => state = *newer,
            Some(SourceItem::Heard | SourceItem::Lease(_) | SourceItem::Timeline(_)) => {}
            Some(SourceItem::Lost { .. }) | None => break,
        }
    }
    assert!(state.is_over());
    assert_eq!(state.history.len(), 6);
    let run = RunDir::open(&path).unwrap();
    let events: Vec<_> = run.read_events(0).unwrap().map(Result::unwrap).collect();
    assert_eq!(RunState::from_events(&events), state);
}
