//! The table of protocols, cell by cell: scripted trajectories whose scores are worked out here by
//! hand, against what `arpo eval -p profiles/protocols.toml --json` prints and records. The
//! command runs from a folder that holds `arpo` alone: a script needs no libtorch.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use arpo::types::EpisodeEnd::{
    self, ContextFull, DeclaredInfeasible, Finished, Malformed, StepLimit,
};
use serde_json::{Value, json};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Outcomes under standard, hard, plain.
type Cell = [f32; 3];

/// Trials of a task that has scores, in the script's order: finished, fail, call_user, step
/// limit, no action in the reply, reply cut at its token limit, context full.
struct Row {
    task: &'static str,
    state: f32,
    infeasible: bool,
    trials: [(EpisodeEnd, Cell); 7],
}

const TABLE: [Row; 4] = [
    Row {
        task: "protocols/feasible_done",
        state: 1.0,
        infeasible: false,
        trials: [
            (Finished, [1.0, 1.0, 1.0]),
            (DeclaredInfeasible, [0.0, 0.0, 0.0]),
            (DeclaredInfeasible, [0.0, 0.0, 0.0]),
            (StepLimit, [0.0, 0.0, 1.0]),
            (Malformed, [1.0, 1.0, 1.0]),
            (Malformed, [1.0, 1.0, 1.0]),
            (ContextFull, [1.0, 1.0, 1.0]),
        ],
    },
    Row {
        task: "protocols/feasible_part",
        state: 0.25,
        infeasible: false,
        trials: [
            (Finished, [0.25, 0.25, 0.25]),
            (DeclaredInfeasible, [0.0, 0.0, 0.0]),
            (DeclaredInfeasible, [0.0, 0.0, 0.0]),
            (StepLimit, [0.0, 0.0, 0.25]),
            (Malformed, [0.25, 0.25, 0.25]),
            (Malformed, [0.25, 0.25, 0.25]),
            (ContextFull, [0.25, 0.25, 0.25]),
        ],
    },
    Row {
        task: "protocols/feasible_undone",
        state: 0.0,
        infeasible: false,
        trials: [
            (Finished, [0.0, 0.0, 0.0]),
            (DeclaredInfeasible, [0.0, 0.0, 0.0]),
            (DeclaredInfeasible, [0.0, 0.0, 0.0]),
            (StepLimit, [0.0, 0.0, 0.0]),
            (Malformed, [0.0, 0.0, 0.0]),
            (Malformed, [0.0, 0.0, 0.0]),
            (ContextFull, [0.0, 0.0, 0.0]),
        ],
    },
    Row {
        task: "protocols/infeasible",
        state: 0.0,
        infeasible: true,
        trials: [
            (Finished, [0.0, 0.0, 0.0]),
            (DeclaredInfeasible, [1.0, 1.0, 1.0]),
            (DeclaredInfeasible, [1.0, 1.0, 1.0]),
            (StepLimit, [1.0, 0.0, 0.0]),
            (Malformed, [0.0, 0.0, 0.0]),
            (Malformed, [0.0, 0.0, 0.0]),
            (ContextFull, [0.0, 0.0, 0.0]),
        ],
    },
];

/// Tasks whose trials all end in an error, and its class.
const ERRORS: [(&str, &str); 4] = [
    ("protocols/error_crash", "crash"),
    ("protocols/error_evaluator_hangs", "evaluator"),
    ("protocols/error_evaluator_unknown", "evaluator"),
    ("protocols/error_infeasible_reset", "reset"),
];

const PROTOCOLS: [&str; 3] = ["standard", "hard", "plain"];

/// Sums of the table by hand: outcomes and outcomes above 0.5, of the 21 scored trials of feasible
/// tasks and the 7 of infeasible ones.
const SUMS: [[(f64, f64); 2]; 3] = [
    // 4 * 1 + 4 * 0.25; fail, call_user and the step limit.
    [(5.0, 4.0), (3.0, 3.0)],
    // Without the infeasible task's step limit.
    [(5.0, 4.0), (2.0, 2.0)],
    // With the feasible tasks' step limit: 5 * 1 + 5 * 0.25.
    [(6.25, 5.0), (2.0, 2.0)],
];

/// Trials that an error ended: three feasible tasks, one infeasible.
const FAILED: [f64; 2] = [21.0, 7.0];
const SCORED: [f64; 2] = [21.0, 7.0];

/// Episodes of a run by task and trial.
pub(crate) type Recorded = BTreeMap<(String, u64), Value>;

/// All that lies in JSON files of a folder and those below.
pub(crate) fn json_files(folder: &Path, found: &mut Vec<Value>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            json_files(&path, found);
        } else if path.extension().is_some_and(|ext| ext == "json") {
            found.push(serde_json::from_slice(&fs::read(&path).unwrap()).unwrap());
        }
    }
}

/// What the command prints, and the episodes it recorded with their outcomes under `protocol`.
fn eval(folder: &Path, protocol: &str, seed: usize) -> (Value, Recorded) {
    let arpo = folder.join("arpo");
    if !arpo.exists() {
        fs::copy(env!("CARGO_BIN_EXE_arpo"), &arpo).unwrap();
    }
    let run = folder.join(protocol);
    let output = Command::new(&arpo)
        .args(["eval", "-p", "profiles/protocols.toml", "--json"])
        .args(["--seed", &seed.to_string(), "--protocol", protocol])
        .args(["--set", &format!("reward.protocol=\"{protocol}\"")])
        .arg("--run")
        .arg(&run)
        .env("ARPO_RUNTIME_DIR", folder.join("sockets"))
        .env_remove("LIBTORCH")
        .env_remove("LD_LIBRARY_PATH")
        .current_dir(ROOT)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let report = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    (report, recorded(&run))
}

/// The episodes that a run recorded.
pub(crate) fn recorded(run: &Path) -> Recorded {
    let mut files = Vec::new();
    json_files(&run.join("episodes"), &mut files);
    let key = |episode: &Value| {
        let task = episode["task"].as_str().unwrap().to_owned();
        (task, episode["sample"].as_u64().unwrap())
    };
    let total = files.len();
    let recorded: Recorded = files.into_iter().map(|one| (key(&one), one)).collect();
    assert_eq!(recorded.len(), total, "a trial was recorded twice");
    recorded
}

#[track_caller]
fn assert_cells(recorded: &Recorded, column: usize) {
    for row in &TABLE {
        for (trial, (end, cell)) in row.trials.iter().enumerate() {
            let episode = &recorded[&(row.task.to_owned(), trial as u64)];
            let found = json!({
                "end": episode["end"],
                "state": episode["state_score"],
                "infeasible": episode["infeasible"],
                "outcome": episode["reward"]["outcome"],
            });
            let expected = json!({
                "end": end,
                "state": row.state,
                "infeasible": row.infeasible,
                "outcome": cell[column],
            });
            let protocol = PROTOCOLS[column];
            assert_eq!(found, expected, "{protocol}, {} trial {trial}", row.task);
        }
    }
    for (task, class) in ERRORS {
        for trial in 0..7 {
            let episode = &recorded[&(task.to_owned(), trial)];
            assert_eq!(episode["class"], class, "{task} trial {trial}");
        }
    }
    assert_eq!(recorded.len(), (TABLE.len() + ERRORS.len()) * 7);
}

#[track_caller]
fn assert_close(found: &Value, expected: f64, what: &str) {
    let number = found.as_f64().unwrap_or(f64::NAN);
    assert!(
        (number - expected).abs() < 1e-12,
        "{what}: {found}, by hand {expected}"
    );
}

/// `sums` are outcomes and successes; `n` trials have a score, `errors` none.
#[track_caller]
fn assert_score(found: &Value, sums: (f64, f64), n: f64, errors: f64, what: &str) {
    let (score, success) = sums;
    assert_close(&found["score"], score / n, &format!("{what} score"));
    assert_close(&found["success"], success / n, &format!("{what} success"));
    assert_close(&found["n"], n, &format!("{what} n"));
    assert_close(&found["errors"], errors, &format!("{what} errors"));
    for (name, sum) in [("score_bounds", score), ("success_bounds", success)] {
        let all = n + errors;
        assert_close(&found[name][0], sum / all, &format!("{what} {name}"));
        assert_close(
            &found[name][1],
            (sum + errors) / all,
            &format!("{what} {name}"),
        );
    }
}

#[test]
fn every_cell_of_the_table_of_protocols_is_worth_what_it_says() {
    let folder = tempfile::tempdir().unwrap();
    for (column, protocol) in PROTOCOLS.into_iter().enumerate() {
        let (report, recorded) = eval(folder.path(), protocol, column + 1);
        assert_cells(&recorded, column);
        assert_eq!(report["errors"], 28);
        // One set of trajectories, three scores: each run prints all of them.
        for (name, [feasible, infeasible]) in PROTOCOLS.into_iter().zip(SUMS) {
            let found = &report["protocols"][name];
            let both = (feasible.0 + infeasible.0, feasible.1 + infeasible.1);
            let (n, failed) = (SCORED[0] + SCORED[1], FAILED[0] + FAILED[1]);
            assert_score(found, both, n, failed, name);
            let what = format!("{name} feasible");
            assert_score(&found["feasible"], feasible, SCORED[0], FAILED[0], &what);
            let what = format!("{name} infeasible");
            assert_score(
                &found["infeasible"],
                infeasible,
                SCORED[1],
                FAILED[1],
                &what,
            );
        }
        assert_eq!(report["protocol"], protocol);
        assert_eq!(report["score"], report["protocols"][protocol]["score"]);
    }
}

#[test]
fn the_sums_by_hand_are_those_of_the_table() {
    for (column, by_hand) in SUMS.iter().enumerate() {
        for (part, infeasible) in by_hand.iter().zip([false, true]) {
            let rows = TABLE.iter().filter(|row| row.infeasible == infeasible);
            let cells = rows.flat_map(|row| row.trials.iter().map(|(_, cell)| cell[column]));
            let cells: Vec<f64> = cells.map(f64::from).collect();
            let successes = cells.iter().filter(|outcome| **outcome > 0.5).count() as f64;
            assert_eq!((cells.iter().sum::<f64>(), successes), *part);
        }
    }
    // Hard is never worth more than standard.
    let mut cells = TABLE.iter().flat_map(|row| &row.trials);
    assert!(cells.all(|(_, [standard, hard, _])| hard <= standard));
}

/// `arpo eval --resume`, and whether it succeeded.
fn resume(folder: &Path, run: &Path) -> (bool, String) {
    let output = Command::new(folder.join("arpo"))
        .args(["eval", "--json", "--resume"])
        .arg(run)
        .env("ARPO_RUNTIME_DIR", folder.join("sockets"))
        .current_dir(ROOT)
        .output()
        .unwrap();
    let said = if output.status.success() {
        output.stdout
    } else {
        output.stderr
    };
    (output.status.success(), String::from_utf8(said).unwrap())
}

#[test]
fn an_evaluation_that_lacks_trials_goes_on_and_adds_up_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, _) = eval(folder.path(), "hard", 3);
    let run = folder.path().join("hard");
    let path = run.join("evals/001.json");
    let record: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let trials = record["trials"].as_array().unwrap();
    assert_eq!(Value::from(trials.len()), record["total"]);
    let every_third = trials.iter().step_by(3).cloned();
    let kept: Vec<Value> = every_third.collect();
    let mut stopped = record.clone();
    stopped["trials"] = json!(kept);
    stopped["report"] = Value::Null;
    fs::write(&path, stopped.to_string()).unwrap();

    let (went_on, said) = resume(folder.path(), &run);
    assert!(went_on, "{said}");
    let resumed: Value = serde_json::from_str(said.lines().last().unwrap()).unwrap();
    for figure in ["protocols", "families", "errors", "manifest", "tasks"] {
        assert_eq!(resumed[figure], whole[figure], "{figure}");
    }
    let record: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let again = record["trials"].as_array().unwrap();
    assert_eq!(again.len(), trials.len());
    // What was kept is the very episode it was; the rest was done by the second start.
    for (index, trial) in again.iter().enumerate() {
        let incarnation = u64::from(index % 3 != 0);
        assert_eq!(trial["episode"]["incarnation"], incarnation, "{trial}");
    }
    let state = arpo::store::RunDir::open(&run).unwrap().state().unwrap();
    let evaluation = state.evaluation(1).unwrap();
    assert!(evaluation.has_all_trials() && evaluation.report.is_some());

    let (went_on, said) = resume(folder.path(), &run);
    assert!(!went_on && said.contains("is complete"), "{said}");
}
