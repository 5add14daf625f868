//! `arpo step`: decisions as lines, the closing object, branches, a person alone; and the console
//! on a pseudo-terminal.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::pty::{Plays, Session};
use crate::xvfb::{state, wanted};

const TASK: &str = "compact/ed_sub/1";

fn command(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_arpo"));
    command
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("ARPO_RUNTIME_DIR", folder.join("sockets"));
    command
}

/// Runs `arpo step --headless --json` into `folder/run` with these lines on stdin.
fn step(folder: &Path, run: &str, arguments: &[&str], lines: &str) -> Output {
    let mut child = command(folder)
        .args(["step", "--headless", "--json", "--run"])
        .arg(folder.join(run))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(lines.as_bytes()).unwrap();
    drop(stdin);
    child.wait_with_output().unwrap()
}

#[track_caller]
fn closing(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().last().unwrap_or_default();
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The stored record of the run's one episode.
fn record(run: &Path) -> Value {
    let path = run.join("episodes/0000/0-000000.json");
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

const SCRIPTED: [&str; 4] = ["--policy", "scripted", "--task", TASK];

#[test]
fn decisions_are_lines_and_the_end_is_an_object() {
    let folder = tempfile::tempdir().unwrap();
    let lines = "dance\nedit Action: clack()\nregenerate 2\nchoose 2\nskip\ncontinue\n";
    let output = step(folder.path(), "a", &SCRIPTED, lines);
    let text = stdout(&output);
    assert!(output.status.success(), "{output:?}");
    for part in [
        "step 1 (asked): ",
        "refused: no decision is called \"dance\"",
        "refused: ",
        "\n  1: ",
        "\n  2: ",
        "step 2 (asked): ",
        "outcome 1 after ",
    ] {
        assert!(text.contains(part), "no {part:?} in:\n{text}");
    }
    let figures = closing(&output);
    assert_eq!(figures["status"], "finished");
    assert_eq!(figures["outcome"], 1.0);
    assert_eq!(figures["human_touched"], true);
    let record = record(&folder.path().join("a"));
    assert_eq!(record["human_touched"], true);
}

#[test]
fn without_a_decision_nothing_is_done() {
    let folder = tempfile::tempdir().unwrap();
    let output = step(folder.path(), "a", &SCRIPTED, "");
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert_eq!(closing(&output)["status"], "cancelled");
}

#[test]
fn a_person_writes_every_reply() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--policy", "human", "--task", TASK];
    let lines = "accept\nregenerate 2\nwrite Action: wait()\n\
                 write \"Thought: done\\nAction: finished()\"\n";
    let output = step(folder.path(), "a", &arguments, lines);
    let text = stdout(&output);
    assert!(output.status.success(), "{output:?}");
    assert!(
        text.contains("refused: there is no reply to accept"),
        "{text}"
    );
    assert!(
        text.contains("refused: a person writes the replies"),
        "{text}"
    );
    let figures = closing(&output);
    assert_eq!(figures["sampled_tokens"], 0);
    assert_eq!(figures["steps"], 2);
    assert_eq!(
        record(&folder.path().join("a"))["steps"][1]["thought"],
        "done"
    );
}

#[test]
fn a_branch_begins_with_the_recorded_steps() {
    let folder = tempfile::tempdir().unwrap();
    let first = step(folder.path(), "a", &SCRIPTED, "accept\ncontinue\n");
    assert_eq!(closing(&first)["human_touched"], false, "{first:?}");
    let run = folder.path().join("a");
    let branch = ["--branch", run.to_str().unwrap(), "0-000000", "--at", "2"];
    let output = step(folder.path(), "b", &branch, "accept\ncontinue\n");
    let text = stdout(&output);
    assert!(output.status.success(), "{output:?}");
    assert!(
        text.contains("replayed 1 steps; every screen is the recorded one"),
        "{text}"
    );
    assert!(text.contains("step 2 (branched here): "), "{text}");
    let figures = closing(&output);
    assert_eq!(figures["outcome"], 1.0);
    let from = json!({"run": "a", "episode": {"incarnation": 0, "number": 0}, "steps": 1});
    assert_eq!(figures["branched_from"], from);
    let (old, new) = (record(&run), record(&folder.path().join("b")));
    assert_eq!(old["steps"][0]["reply"], new["steps"][0]["reply"]);
    assert_eq!(
        old["steps"][0]["reply_tokens"],
        new["steps"][0]["reply_tokens"]
    );
    assert_eq!(new["branched_from"], from);
    let too_far = ["--branch", run.to_str().unwrap(), "0-000000", "--at", "99"];
    let output = step(folder.path(), "c", &too_far, "");
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("branch at 1 to "), "{said}");
}

/// Waits until the run's log says `text`.
fn wait_for_event(run: &Path, text: &str) {
    let says = || {
        let files = fs::read_dir(run.join("events")).into_iter().flatten();
        let mut logs = files.filter_map(|file| fs::read_to_string(file.ok()?.path()).ok());
        logs.any(|log| log.contains(text))
    };
    while !says() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn a_running_engine_branches_when_asked() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("a");
    let mut child = command(folder.path())
        .args(["step", "--headless", "--json", "--run"])
        .arg(&run)
        .args(SCRIPTED)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for_event(&run, "episode_held");
    let branch = ["ctl", "a", "branch", "0-000000", "--at", "2", "--json"];
    let asked = command(folder.path())
        .args(branch)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for_event(&run, "command_accepted");
    let mut stdin = child.stdin.take().unwrap();
    // The episode to its end, then the branch.
    stdin
        .write_all(b"accept\ncontinue\naccept\ncontinue\n")
        .unwrap();
    drop(stdin);
    let answer = closing(&asked.wait_with_output().unwrap());
    assert_eq!(answer["status"], "done", "{answer}");
    let output = child.wait_with_output().unwrap();
    let text = stdout(&output);
    assert!(output.status.success(), "{output:?}");
    assert!(text.contains("step 2 (branched here): "), "{text}");
    let path = run.join("episodes/0000/0-000001.json");
    let new: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    assert_eq!(new["branched_from"]["steps"], 1);
    assert_eq!(new["group"], Value::Null);
}

#[test]
fn what_is_missing_is_said() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, part) in [
        (&["--policy", "scripted"][..], "--task"),
        (
            &["--policy", "scripted", "--task", "no/such/9"],
            "no/such/9",
        ),
        (
            &["--branch", "/nowhere", "0-000000", "--at", "1"],
            "/nowhere",
        ),
    ] {
        let output = step(folder.path(), "a", arguments, "");
        assert!(!output.status.success());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains(part), "{arguments:?}: {said}");
    }
}

/// The console of `arpo step`, on a terminal of 24 by 80.
fn console(folder: &Path, run: &str, arguments: &[&str]) -> Session {
    let run = folder.join(run);
    let sockets = folder.join("sockets");
    let mut all = vec!["step", "--run", run.to_str().unwrap()];
    all.extend_from_slice(arguments);
    Session::start(&all, &[("ARPO_RUNTIME_DIR", sockets.to_str().unwrap())])
}

/// The seed's example on real LibreOffice: superscript by mistake, undone, subscript, saved.
#[test]
fn the_console_steps_through_a_real_desktops_episode_and_shows_each_screen() {
    if !wanted("the_console_steps_through_a_real_desktops_episode_and_shows_each_screen") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("a");
    let state = state().display().to_string();
    let runtime = state.strip_suffix("-desktops").unwrap();
    let arguments = [
        "step",
        "-p",
        "profiles/x11.toml",
        "--task",
        "0b17a146",
        "--run",
    ];
    let arguments = [&arguments[..], &[run.to_str().unwrap()]].concat();
    let env = [("ARPO_RUNTIME_DIR", runtime)];
    let mut session = Session::start_on(Plays::Xterm, (48, 160), &arguments, &env);
    for step in 1..=7 {
        session.wait_for(&format!("Held before its action at step {step}"));
        // A picture in characters.
        session.read_until("a picture", |session| {
            session.text().matches(['▀', '▄']).count() > 100
        });
        assert!(!session.text().contains("no picture"), "step {step}");
        session.press("\r");
    }
    session.wait_for("outcome 1.0");
    // Before that, leaving asks what is to become of the run.
    session.wait_for("ended");
    session.press("q");
    assert_eq!(session.check_restored(), 0);
    let steps = record(&run)["steps"].clone();
    let screens: Vec<&Value> = steps
        .as_array()
        .unwrap()
        .iter()
        .map(|step| &step["screenshot"])
        .collect();
    // Where the 2 is selected, raised, back, lowered: four screens that differ.
    assert_eq!(screens.len(), 7);
    assert!(
        screens[2..6].windows(2).all(|two| two[0] != two[1]),
        "{screens:?}"
    );
}

#[test]
fn the_console_steps_through_an_episode_to_its_score() {
    let folder = tempfile::tempdir().unwrap();
    let mut session = console(folder.path(), "a", &SCRIPTED);
    session.wait_for("Held before its action at step 1");
    // Other replies, one of which is chosen.
    session.press("R");
    session.wait_for("sampled");
    session.press("\t\r");
    session.wait_for("Held before its action at step 2");
    // A reply that does not parse is refused, and stays to be mended.
    session.press("e");
    session.wait_for("Edit the reply at step 2");
    session.press("\rnonsense()\x13");
    session.wait_for("refused: ");
    session.wait_for("nonsense()");
    session.press(&"\x7f".repeat("nonsense()".len()));
    session.press("wait()\x13");
    session.wait_for("Held before its action at step 3");
    session.press("c");
    session.wait_for("outcome 1.0");
    session.wait_for("touched");
    session.press("q");
    assert_eq!(session.check_restored(), 0);
    let run = folder.path().join("a");
    let old = record(&run);
    assert_eq!(old["human_touched"], true);
    let actions = old["steps"][1]["actions"].as_array().unwrap();
    assert_eq!(actions.last().unwrap()["kind"], "wait");

    // Back to the second step, on a fresh desktop.
    let branch = ["--branch", run.to_str().unwrap(), "0-000000", "--at", "3"];
    let mut session = console(folder.path(), "b", &branch);
    session.wait_for("Held before its action at step 3");
    session.wait_for("branched here");
    session.wait_for("counterfactual");
    session.press("w");
    session.wait_for("Write the reply at step 3");
    session.press("Action: finished()\x13");
    session.wait_for("outcome 1.0");
    session.press("q");
    assert_eq!(session.check_restored(), 0);
    let new = record(&folder.path().join("b"));
    for step in 0..2 {
        assert_eq!(new["steps"][step]["reply"], old["steps"][step]["reply"]);
        assert_eq!(
            new["steps"][step]["reply_tokens"],
            old["steps"][step]["reply_tokens"]
        );
    }
    let tokens = |run: &str| {
        fs::read(
            folder
                .path()
                .join(run)
                .join("episodes/0000/0-000000.tokens"),
        )
    };
    let (old_tokens, new_tokens) = (tokens("a").unwrap(), tokens("b").unwrap());
    // Ids follow a header of 16 bytes, 4 bytes each.
    let end = 16 + 4 * old["steps"][1]["reply_tokens"][1].as_u64().unwrap() as usize;
    assert_eq!(new_tokens[16..end], old_tokens[16..end]);
    assert_eq!(new["branched_from"]["steps"], 2);
}
