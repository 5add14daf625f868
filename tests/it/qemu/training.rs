//! The shipped agent trained on OSWorld's own tasks in virtual machines. It cannot solve them; what
//! counts is that every episode ends with the evaluator's score and none with an error.

use std::process::Command;

use arpo::store::RunDir;
use serde_json::{Value, json};

use super::{settings, wait_for_turn, wanted};
use crate::desktops::run_in;
use crate::protocols::json_files;
use crate::xvfb::state;

/// «Change all the places in this document that say "text" to "test"» and «append "<br/>" to the end
/// of each line».
const TASKS: [(&str, &str); 2] = [
    ("vs_code", "0ed39f63-6049-43d4-ba4d-5fa2fe04a951"),
    ("os", "5ced85fc-fa1a-4217-95fd-0fb530545ce2"),
];

const ITERATIONS: usize = 2;

/// Episodes of an iteration: two tasks, twice each.
const EPISODES: usize = 4;

#[test]
fn two_iterations_are_scored_without_an_error() {
    if !wanted("two_iterations_are_scored_without_an_error") {
        return;
    }
    let _turn = wait_for_turn();
    let folder = tempfile::tempdir().unwrap();
    let run = run_in(folder.path());
    let list = folder.path().join("tasks.json");
    let pool: serde_json::Map<String, Value> = TASKS
        .iter()
        .map(|(domain, task)| ((*domain).to_owned(), json!([task])))
        .collect();
    std::fs::write(&list, Value::Object(pool).to_string()).unwrap();
    // Its machines then start from what those of other tests do.
    let state = state().display().to_string();
    let runtime = state.strip_suffix("-desktops").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_arpo"));
    command.args(["train", "--headless", "--json", "-p", "profiles/demo.toml"]);
    command.args(["--iterations", &ITERATIONS.to_string(), "--run"]);
    command.arg(&run);
    let sets = [
        "env.kind=\"qemu\"",
        "env.desktops=2",
        "tasks.files=\"assets/x11/files\"",
        "eval.heldout_instances=0",
        "grpo.tasks_per_iteration=2",
        "grpo.group_size=2",
        "rollout.max_steps=2",
    ];
    let pool = format!("tasks.pool={:?}", list.display().to_string());
    for set in sets
        .map(str::to_owned)
        .into_iter()
        .chain([pool])
        .chain(settings())
    {
        command.args(["--set", &set]);
    }
    let output = command
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("ARPO_RUNTIME_DIR", runtime)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let text = String::from_utf8(output.stdout).unwrap();
    let figures: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!(figures["status"], "finished", "{figures}");
    assert_eq!(figures["iterations"], ITERATIONS, "{figures}");
    assert_eq!(figures["env_errors"], 0, "{figures}\n{said}");
    assert_eq!(figures["episodes"], ITERATIONS * EPISODES, "{figures}");

    let history = RunDir::open(&run).unwrap().state().unwrap().history;
    assert_eq!(history.len(), ITERATIONS);
    for report in &history {
        assert_eq!((report.env_errors, report.groups), (0, 2), "{report:?}");
        assert_eq!(report.episodes as usize, EPISODES, "{report:?}");
    }
    let mut recorded = Vec::new();
    json_files(&run.join("episodes"), &mut recorded);
    assert_eq!(recorded.len(), ITERATIONS * EPISODES);
    for (_, task) in TASKS {
        let of_it = recorded.iter().filter(|episode| episode["task"] == task);
        assert_eq!(of_it.count(), ITERATIONS * EPISODES / TASKS.len(), "{task}");
    }
    for episode in &recorded {
        assert_eq!(episode["class"], Value::Null, "{episode}");
        let score = episode["state_score"].as_f64();
        assert!(
            score.is_some_and(|score| (0.0..=1.0).contains(&score)),
            "{episode}"
        );
        // No task is infeasible: it is the state that was scored.
        assert_eq!(episode["infeasible"], false, "{episode}");
    }
}
