//! `arpo ctl` and `arpo runs` as a script sees them: exit codes and the one JSON object.

use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use arpo::event::{
    BreakOn, Breakpoint, BreakpointsChanged, Candidate, Command, DebugCommand, Decision,
    EpisodeHeld, EventKind, HoldReason, HoldTarget,
};
use arpo::types::EpisodeId;
use serde_json::{Value, json};

use crate::attach::Engine;
use crate::synthetic::iteration;

async fn arpo(engine: &Path, arguments: &[&str]) -> Output {
    let child = tokio::process::Command::new(env!("CARGO_BIN_EXE_arpo"))
        .args(arguments)
        .env("ARPO_RUNTIME_DIR", engine.join("sockets"))
        .current_dir(engine)
        .stdin(Stdio::null())
        .output();
    child.await.unwrap()
}

#[track_caller]
fn last_json(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().last().unwrap_or_default();
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

#[tokio::test]
async fn a_command_from_a_script_waits_for_its_answer() {
    let mut engine = Engine::start().await;
    let folder = engine.folder.path().to_owned();
    let asked = tokio::spawn({
        let folder = folder.clone();
        async move { arpo(&folder, &["ctl", "demo", "set-lr", "3e-4", "--json"]).await }
    });
    let request = engine.inbox.recv().await.unwrap();
    assert_eq!(request.command, Command::SetLearningRate { value: 3e-4 });
    assert_eq!(request.origin, "ctl");
    request.accept();
    request.done();
    let output = asked.await.unwrap();
    assert!(output.status.success(), "{output:?}");
    let expected = json!({"run": "demo-1", "id": 0, "status": "done", "reason": null,
        "request": {"command": "set_learning_rate", "value": 3e-4}});
    assert_eq!(last_json(&output), expected);

    let asked = tokio::spawn({
        let folder = folder.clone();
        async move { arpo(&folder, &["ctl", "demo-1", "resume", "--json"]).await }
    });
    engine
        .inbox
        .recv()
        .await
        .unwrap()
        .refuse("it is not paused");
    let output = asked.await.unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(last_json(&output)["reason"], "it is not paused");
}

#[tokio::test]
async fn answers_come_however_much_else_a_run_tells() {
    let commands: [&[&str]; 2] = [&["ctl", "demo-1", "pause"], &["runs", "stop", "demo-1"]];
    for arguments in commands {
        let mut engine = Engine::start().await;
        let folder = engine.folder.path().to_owned();
        let asked = tokio::spawn(async move { arpo(&folder, arguments).await });
        let request = engine.inbox.recv().await.unwrap();
        request.accept();
        // In parts, so that nobody falls behind and is spared them.
        for number in 0..80 {
            engine.emit(iteration(number, 0));
            engine.sink.flush().await.unwrap();
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        request.done();
        let output = tokio::time::timeout(Duration::from_secs(60), asked).await;
        let output = output.expect("it hangs").unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
    }
}

#[tokio::test]
async fn what_makes_no_sense_is_said_without_asking_the_engine() {
    let mut engine = Engine::start().await;
    let folder = engine.folder.path().to_owned();
    for arguments in [
        &["ctl", "demo-1", "set-temperature", "0"][..],
        &["ctl", "demo-1", "set-desktops", "0"],
        &["ctl", "other", "resume"],
        &["runs", "stop", "other"],
    ] {
        let output = arpo(&folder, arguments).await;
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(!output.stderr.is_empty());
    }
    let output = arpo(&folder, &["ctl", "demo-1", "dance"]).await;
    assert_eq!(output.status.code(), Some(2));
    assert!(engine.inbox.try_recv().is_none());
}

#[tokio::test]
async fn the_debugger_is_steered_from_a_script() {
    let mut engine = Engine::start().await;
    let folder = engine.folder.path().to_owned();
    let episode = EpisodeId {
        incarnation: 0,
        number: 7,
    };
    let held = EpisodeHeld {
        episode,
        step: 2,
        reason: HoldReason::Asked,
        instruction: "say it".to_owned(),
        candidate: Candidate::default(),
    };
    engine.emit([
        EventKind::EpisodeHeld(Box::new(held)),
        EventKind::BreakpointsChanged(BreakpointsChanged {
            breakpoints: vec![Breakpoint {
                id: 4,
                on: BreakOn::ParseError,
                episode: None,
            }],
        }),
    ]);
    engine.sink.flush().await.unwrap();
    let listed = arpo(&folder, &["ctl", "demo-1", "breakpoint", "list"]).await;
    let text = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert_eq!(text, "4  reply does not parse  of all\n");

    let decide = |decision| DebugCommand::Decide {
        episode,
        step: 2,
        decision,
    };
    let reply = "Action: wait()".to_owned();
    let on = BreakOn::LowLogprob { below: -1.5 };
    for (words, expected) in [
        (
            &["hold", "desktop:3", "--others"][..],
            DebugCommand::Hold {
                target: HoldTarget::Desktop { desktop: 3 },
                others: true,
            },
        ),
        (
            &["release", "all"],
            DebugCommand::Release {
                target: HoldTarget::All,
            },
        ),
        (&["decide", "held", "accept"], decide(Decision::Accept)),
        (
            &["decide", "0-000007", "edit", "Action:", "wait()"],
            decide(Decision::Edit { reply }),
        ),
        (
            &["breakpoint", "low-logprob", "-1.5", "--episode", "0-000007"],
            DebugCommand::SetBreakpoint {
                on,
                episode: Some(episode),
            },
        ),
        (
            &["breakpoint", "clear", "4"],
            DebugCommand::ClearBreakpoint { id: Some(4) },
        ),
        (
            &["branch", "0-000007", "--at", "3"],
            DebugCommand::Branch { episode, step: 2 },
        ),
    ] {
        let asked = tokio::spawn({
            let folder = folder.clone();
            let words = words.to_vec();
            async move {
                let all = [&["ctl", "demo-1"], &words[..], &["--json"]].concat();
                arpo(&folder, &all).await
            }
        });
        let request = engine.inbox.recv().await.unwrap();
        assert_eq!(request.command, Command::Debug(expected), "{words:?}");
        request.done();
        let output = asked.await.unwrap();
        assert_eq!(last_json(&output)["status"], "done", "{output:?}");
    }
    for words in [
        &["decide", "0-000008", "accept"][..],
        &["decide", "held", "dance"],
        &["breakpoint", "kind", "clack"],
        &["hold", "somebody"],
    ] {
        let output = arpo(&folder, &[&["ctl", "demo-1"], words].concat()).await;
        assert!(!output.status.success(), "{output:?}");
        assert!(!output.stderr.is_empty());
    }
    assert!(engine.inbox.try_recv().is_none());
}

#[tokio::test]
async fn runs_are_listed_stopped_and_pruned_from_the_command_line() {
    let mut engine = Engine::start().await;
    let folder = engine.folder.path().to_owned();
    engine.emit(iteration(0, 0));
    engine.sink.flush().await.unwrap();
    let listed = last_json(&arpo(&folder, &["runs", "--json"]).await);
    let run = &listed["runs"][0];
    assert_eq!(
        (&run["name"], &run["status"]),
        (&json!("demo-1"), &json!("live"))
    );
    assert_eq!(run["iterations_done"], 1);
    let table = arpo(&folder, &["runs", "list"]).await;
    let table = String::from_utf8_lossy(&table.stdout);
    assert!(
        table.contains("demo-1") && table.contains("1/10"),
        "{table}"
    );

    // A live run keeps its episodes.
    let refused = arpo(&folder, &["runs", "clean", "demo-1"]).await;
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");

    let asked = tokio::spawn({
        let folder = folder.clone();
        async move { arpo(&folder, &["runs", "stop", "demo-1"]).await }
    });
    let request = engine.inbox.recv().await.unwrap();
    assert_eq!(request.command, Command::Stop);
    request.done();
    assert!(asked.await.unwrap().status.success());
    engine
        .run_dir
        .put_png(&crate::synthetic::image(1), b"\x89PNG\r\n\x1a\n")
        .unwrap();
    let (_folder, run_dir) = engine.end().await;
    drop(run_dir);
    let cleaned = last_json(&arpo(&folder, &["runs", "clean", "demo-1", "--json"]).await);
    assert_eq!(cleaned["pruned"][0]["pictures"], 1);
}

#[tokio::test]
async fn a_machines_log_is_printed_from_the_folder_or_the_socket() {
    let engine = Engine::start().await;
    let folder = engine.folder.path().to_owned();
    let path = engine.run_dir.logs_path().join("desktop-2.log");
    std::fs::write(path, "one\n\u{202e}two\u{1b}[2J\nthree\n").unwrap();
    let socket = folder.join("sockets/demo-1.sock");
    let socket = socket.to_str().unwrap();
    for run in ["demo-1", socket] {
        let printed = arpo(&folder, &["runs", "log", run, "2"]).await;
        assert!(printed.status.success(), "{printed:?}");
        assert_eq!(
            String::from_utf8_lossy(&printed.stdout),
            "one\ntwo[2J\nthree\n"
        );
        let arguments = ["runs", "log", run, "2", "--lines", "1", "--json"];
        let object = last_json(&arpo(&folder, &arguments).await);
        let expected = json!({"run": "demo-1", "desktop": 2, "lines": ["three"]});
        assert_eq!(object, expected);
        let missing = arpo(&folder, &["runs", "log", run, "3"]).await;
        assert_eq!(missing.status.code(), Some(1));
        let said = String::from_utf8_lossy(&missing.stderr);
        assert!(
            said.contains("desktop 3 of demo-1 logged nothing"),
            "{said}"
        );
    }
}

#[tokio::test]
async fn every_command_has_its_words() {
    let mut engine = Engine::start().await;
    let folder = engine.folder.path().to_owned();
    let episode = json!({"incarnation": 0, "number": 12});
    let table = [
        (
            &["set-clip", "0.1", "0.4"][..],
            json!({"command": "set_clip", "low": 0.1, "high": 0.4}),
        ),
        (
            &["set-replay", "off"],
            json!({"command": "set_replay", "enabled": false}),
        ),
        (
            &["kill", "0-000012"],
            json!({"command": "kill_episode", "episode": episode}),
        ),
        (
            &["reroll", "0-12"],
            json!({"command": "reroll_episode", "episode": episode}),
        ),
        (
            &["reboot", "3"],
            json!({"command": "reboot_desktop", "desktop": 3}),
        ),
        (
            &["pin", "h2o", "0-12"],
            json!({"command": "pin_stored", "task": "h2o", "episode": episode, "pinned": true}),
        ),
        (
            &["unpin", "h2o", "0-12"],
            json!({"command": "pin_stored", "task": "h2o", "episode": episode, "pinned": false}),
        ),
        (
            &["drop", "h2o", "0-12"],
            json!({"command": "drop_stored", "task": "h2o", "episode": episode}),
        ),
        (
            &["cancel-evaluation", "2"],
            json!({"command": "cancel_evaluation", "evaluation": 2}),
        ),
        (
            &[
                "evaluate",
                "--tasks",
                "heldout",
                "--trials",
                "2",
                "--temperature",
                "0",
                "--protocol",
                "hard",
                "--seed",
                "5",
                "--checkpoint",
                "iter-000003",
                "--desktops",
                "2",
            ],
            json!({"command": "evaluate", "tasks": "heldout", "trials": 2, "temperature": 0.0,
                "seed": 5, "protocol": "hard", "resume": null,
                "weights": {"kind": "checkpoint", "path": "iter-000003"},
                "when": {"kind": "now", "desktops": 2}}),
        ),
        (
            &["evaluate", "--resume", "3", "--at-safe-point"],
            json!({"command": "evaluate", "tasks": "", "trials": 1, "temperature": 0.6,
                "seed": 3, "protocol": "standard", "resume": 3,
                "weights": {"kind": "current"}, "when": {"kind": "safe_point"}}),
        ),
    ];
    for (words, expected) in table {
        let arguments: Vec<&str> = ["ctl", "demo-1"].iter().chain(words).copied().collect();
        let command = [&arguments[..], &["--json"]].concat();
        let command: Vec<String> = command.iter().map(|&word| word.to_owned()).collect();
        let asked = tokio::spawn({
            let folder = folder.clone();
            async move {
                let words: Vec<&str> = command.iter().map(String::as_str).collect();
                arpo(&folder, &words).await
            }
        });
        let request = engine.inbox.recv().await.unwrap();
        assert_eq!(serde_json::to_value(&request.command).unwrap(), expected);
        request.accept();
        request.done();
        let output = asked.await.unwrap();
        assert!(output.status.success(), "{output:?}");
        let said = last_json(&output);
        assert_eq!(
            (&said["status"], &said["request"]),
            (&json!("done"), &expected)
        );
    }
}

#[tokio::test]
async fn an_evaluation_is_not_waited_for_if_asked_so() {
    let mut engine = Engine::start().await;
    let folder = engine.folder.path().to_owned();
    let asked = tokio::spawn(async move {
        let words = [
            "ctl",
            "demo-1",
            "evaluate",
            "--tasks",
            "heldout",
            "--no-wait",
            "--json",
        ];
        arpo(&folder, &words).await
    });
    let request = engine.inbox.recv().await.unwrap();
    request.accept();
    let output = asked.await.unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(last_json(&output)["status"], "accepted");
    request.done();

    let folder = engine.folder.path().to_owned();
    for words in [
        &["ctl", "demo-1", "evaluate"][..],
        &[
            "ctl",
            "demo-1",
            "evaluate",
            "--tasks",
            "x",
            "--protocol",
            "soft",
        ],
        &[
            "ctl",
            "demo-1",
            "evaluate",
            "--tasks",
            "x",
            "--desktops",
            "2",
            "--at-safe-point",
        ],
        &["ctl", "demo-1", "kill", "12"],
        &["ctl", "demo-1", "set-replay", "perhaps"],
    ] {
        let output = arpo(&folder, words).await;
        assert_eq!(output.status.code(), Some(2), "{output:?}");
    }
    for words in [
        &[
            "ctl",
            "demo-1",
            "evaluate",
            "--tasks",
            "x",
            "--desktops",
            "0",
        ][..],
        &["ctl", "demo-1", "set-clip", "1.5", "0.3"],
        &["ctl", "demo-1", "cancel-evaluation", "0"],
    ] {
        let output = arpo(&folder, words).await;
        assert_eq!(output.status.code(), Some(1), "{output:?}");
    }
    assert!(engine.inbox.try_recv().is_none());
}
