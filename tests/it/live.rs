//! Whole runs of the shipped agent: killed and resumed; left by its console and found again.
//!
//! Small runs of the real thing: the demo's profile with fewer desktops and groups.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use arpo::bus::{Role, SourceItem, attach};
use arpo::event::{
    EvaluationStatus, EventKind, F, IterationReport, Purpose, ReplyId, RunState, TrainerState,
};
use arpo::store::RunDir;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::pty::{Plays, Session};

pub(crate) const SMALL: [&str; 10] = [
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
    let reports = history.into_iter();
    reports.map(IterationReport::without_times).collect()
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

#[test]
fn tokens_of_what_was_learned_from_can_be_read_and_have_the_events_figures() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let mut arguments = SMALL.to_vec();
    arguments.extend(["--iterations", "1", "--run", path.to_str().unwrap()]);
    // Two updates, so that ratios are not all 1.
    arguments.extend(["--set", "grpo.epochs=2"]);
    let engine = headless(&folder.path().join("sockets"), &arguments);
    assert_eq!(closing_figures(engine)["status"], "finished");
    let run = RunDir::open(&path).unwrap();
    let (mut replies, mut moved) = (0, 0);
    for event in run.read_events(0).unwrap() {
        let EventKind::EpisodeLearned { episode, steps, .. } = event.unwrap().kind else {
            continue;
        };
        let stored = run.episode(episode).unwrap();
        for (step, told) in steps.iter().enumerate() {
            let reply = ReplyId {
                episode,
                step: step as u32,
            };
            let tokens = run.reply_tokens(reply).unwrap();
            let learned = tokens.learned.unwrap();
            assert_eq!(learned.iteration.0, 0);
            assert_eq!(tokens.ids.len(), told.tokens as usize);
            let ratios = (0..tokens.ids.len()).map(|token| learned.signals.ratio(token));
            let mean = ratios.sum::<f64>() / f64::from(told.tokens);
            // The event has four digits.
            assert!((mean - told.ratio.0).abs() < 1e-3, "{mean} {told:?}");
            moved += u32::from((mean - 1.0).abs() > 1e-6);
            replies += 1;
            let text = String::from_utf8(tokens.pieces.concat()).unwrap();
            assert_eq!(text.replace("<|im_end|>", ""), stored.steps[step].reply);
        }
    }
    assert!(
        replies > 0 && moved > 0,
        "{moved} of {replies} replies moved"
    );
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
    console.wait_for("by attention");
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

/// `arpo` to its end, and the JSON object it ends with.
fn arpo(sockets: &Path, arguments: &[&str]) -> (Option<i32>, Value) {
    let output = Command::new(env!("CARGO_BIN_EXE_arpo"))
        .args(arguments)
        .arg("--json")
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("ARPO_RUNTIME_DIR", sockets)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().last().unwrap_or_default();
    let answer = serde_json::from_str(line).unwrap_or_else(|_| panic!("{output:?}"));
    (output.status.code(), answer)
}

/// Follows a run until its state is as wanted.
async fn until(socket: &Path, wanted: impl Fn(&RunState) -> bool) -> RunState {
    let mut source = attach(socket, Role::Watch, "test").await.unwrap();
    let mut state = std::mem::take(&mut source.state);
    while !wanted(&state) {
        match source.items.recv().await {
            Some(SourceItem::Event(event)) => state.apply(&event),
            Some(SourceItem::Resync { state: newer, .. }) => state = *newer,
            Some(SourceItem::Heard | SourceItem::Lease(_) | SourceItem::Timeline(_)) => {}
            Some(SourceItem::Lost { reason }) => panic!("{reason}"),
            None => panic!("the run ended before"),
        }
    }
    state
}

/// What an evaluation beside training must leave as it was: every figure of rewards, groups,
/// replay and updates, bit for bit. Times are its price; the gap between sampler and trainer is
/// rounding, which depends on who shares a batch.
fn learned(run: &Path, iterations: usize) -> Vec<IterationReport> {
    let mut reports = timeless(run);
    reports.truncate(iterations);
    for report in &mut reports {
        report.clock_ms = 0;
        (report.logprob_gap, report.logprob_gap_max) = (F(0.0), F(0.0));
    }
    reports
}

#[tokio::test(flavor = "multi_thread")]
async fn an_evaluation_beside_training_equals_arpo_eval_and_leaves_what_is_learned() {
    let folder = tempfile::tempdir().unwrap();
    let sockets = folder.path().join("sockets");
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let tasks = path("four.json");
    let names = ["ed_sub", "ed_char", "se_one", "di_press"];
    let ids = names.map(|family| format!("compact/{family}/1000000"));
    std::fs::write(&tasks, json!(ids).to_string()).unwrap();
    let train = |name: &str| {
        let run = path(name);
        let mut arguments = SMALL.to_vec();
        arguments.extend(["--iterations", "3", "--run", &run]);
        headless(&sockets, &arguments)
    };
    let conditions = [
        "--tasks",
        &tasks,
        "--trials",
        "2",
        "--temperature",
        "0.6",
        "--seed",
        "7",
    ];

    let engine = train("watched");
    let socket = sockets.join("watched.sock");
    while arpo::bus::probe(&socket).await.is_err() {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let ctl = |words: &[&str]| arpo(&sockets, &[&["ctl", "watched"], words].concat());
    let arguments = ["attach", socket.to_str().unwrap()];
    let mut console = Session::start_on(Plays::Xterm, (40, 120), &arguments, &[]);
    console.wait_for("rw:you");
    console.press("4");
    console.wait_for("e evaluate");
    console.press(&format!(":evaluate {tasks}\r"));
    console.wait_for("enter launches");
    // Weights; past protocol and tasks, trials, temperature and seed; past when, desktops.
    console.press("assets/agent\t\t\t\x152\t\x150.6\t\x157\t\t\x152");
    console.wait_for("takes 2 of 6 desktops");
    console.press("\r");
    console.wait_for("8 scored");

    // In the last iteration: one is cancelled, and one episode killed while all stand.
    let state = until(&socket, |state| state.history.len() == 2).await;
    assert_eq!(state.evaluations[0].status, EvaluationStatus::Finished);
    assert_eq!(ctl(&["pause"]).0, Some(0));
    console.press("e");
    console.wait_for("enter launches");
    console.press("\t\t\t\x15500\t\t\t\t\x151\r");
    console.wait_for("0/2000");
    console.press(":cancel-evaluation 2\r");
    console.wait_for("#2 with 0 of 2000 trials done");
    console.press("y");
    console.wait_for("cancelled");
    let held = |state: &RunState| {
        matches!(state.trainer, TrainerState::Paused(_)) && state.episodes_in_flight() > 0
    };
    let state = until(&socket, held).await;
    let mut running = state.episodes.values().filter(|one| one.is_running());
    let killed = running
        .find(|one| one.purpose == Purpose::Train)
        .unwrap()
        .id;
    assert_eq!(ctl(&["kill", &killed.to_string()]).0, Some(0));
    assert_eq!(ctl(&["resume"]).0, Some(0));
    assert_eq!(closing_figures(engine)["status"], "finished");
    console.wait_for("ended");
    console.press("q");
    assert_eq!(console.check_restored(), 0);

    let watched = RunDir::open(Path::new(&path("watched"))).unwrap();
    let state = watched.state().unwrap();
    assert!(matches!(
        state.evaluations[1].status,
        EvaluationStatus::Cancelled { .. }
    ));
    assert!(state.episodes[&killed].failure.is_some());
    assert_eq!(state.history[2].episodes, 11);

    let run = path("eval");
    let alone = [
        &["eval", "-p", "profiles/demo.toml", "--run", &run],
        &conditions[..],
    ];
    let (code, alone) = arpo(&sockets, &alone.concat());
    assert_eq!(code, Some(0), "{alone}");
    assert_eq!(ctl_scores(&state), alone["protocols"]);
    assert_eq!(
        serde_json::to_value(&state.evaluations[0].manifest).unwrap()["weights"],
        alone["manifest"]["weights"]
    );

    assert_eq!(closing_figures(train("undisturbed"))["status"], "finished");
    let undisturbed = learned(Path::new(&path("undisturbed")), 2);
    assert_eq!(learned(Path::new(&path("watched")), 2), undisturbed);
}

/// The first evaluation's scores as `arpo eval` prints them.
fn ctl_scores(state: &RunState) -> Value {
    let report = state.evaluations[0].report.as_ref().unwrap();
    json!({"standard": report.standard, "hard": report.hard, "plain": report.plain})
}
