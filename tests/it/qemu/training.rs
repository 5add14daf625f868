//! The shipped agent trained in virtual machines: on one of OSWorld's own tasks, which it cannot
//! solve, and on one that a click solves, wherever it is, so that there is something to learn from.

use std::path::Path;
use std::process::Command;

use arpo::event::IterationReport;
use arpo::store::RunDir;
use arpo::types::PolicyVersion;
use serde_json::{Value, json};

use super::{config, settings, wait_for_turn, wanted};
use crate::desktops::run_in;
use crate::protocols::json_files;
use crate::xvfb::state;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// «Change all the places in this document that say "text" to "test"».
const OF_OSWORLD: &str = "vs_code/0ed39f63-6049-43d4-ba4d-5fa2fe04a951";

const OF_CHANCE: &str = "os/7a4d5c1e-58f5-4f0e-9f0b-3c6b0f5d2a11";

const ITERATIONS: usize = 2;

const GROUPS: usize = 2;

const GROUP_SIZE: usize = 6;

const EPISODES: usize = ITERATIONS * GROUPS * GROUP_SIZE;

/// Prints whether the pointer is still where a machine begins with it, on a screen of the size that
/// it is told. Asks the X server: the guest's own wants its token.
const POINTER: &str = "
import ctypes, sys
from ctypes import POINTER, byref, c_char_p, c_int, c_uint, c_ulong, c_void_p

x11 = ctypes.CDLL('libX11.so.6')
x11.XOpenDisplay.restype = c_void_p
x11.XOpenDisplay.argtypes = [c_char_p]
x11.XDefaultRootWindow.restype = c_ulong
x11.XDefaultRootWindow.argtypes = [c_void_p]
x11.XQueryPointer.restype = c_int
x11.XQueryPointer.argtypes = (
    [c_void_p, c_ulong] + [POINTER(c_ulong)] * 2 + [POINTER(c_int)] * 4 + [POINTER(c_uint)]
)
display = x11.XOpenDisplay(None) or sys.exit('no display')
root, child, mask = c_ulong(), c_ulong(), c_uint()
x, y, own_x, own_y = c_int(), c_int(), c_int(), c_int()
places = [byref(place) for place in (root, child, x, y, own_x, own_y, mask)]
x11.XQueryPointer(display, x11.XDefaultRootWindow(display), *places) or sys.exit('no pointer')
begins = [int(size) * 16000 / 32767 for size in sys.argv[1:]]
is_there = all(abs(one - at.value) < 5 for one, at in zip(begins, (x, y)))
print('still' if is_there else 'moved')
";

fn of_chance() -> Value {
    let (_, id) = OF_CHANCE.split_once('/').unwrap();
    let screen = config(&[]).screen();
    let [width, height] = [screen.width, screen.height].map(|size| size.to_string());
    let command = ["python3", "-c", POINTER, &width, &height];
    json!({
        "id": id,
        "snapshot": "os",
        "instruction": "Press Cancel",
        "config": [],
        "related_apps": ["os"],
        "evaluator": {
            "func": "exact_match",
            "result": {"type": "vm_command_line", "command": command},
            "expected": {"type": "rule", "rules": {"expected": "moved\n"}}
        },
    })
}

/// A folder of both tasks, as OSWorld's are laid out.
fn pool(folder: &Path) {
    let shipped = Path::new(ROOT).join("assets/osworld/examples");
    let text = std::fs::read_to_string(shipped.join(OF_OSWORLD).with_extension("json")).unwrap();
    for (task, text) in [(OF_OSWORLD, text), (OF_CHANCE, of_chance().to_string())] {
        let path = folder.join("examples").join(task).with_extension("json");
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

#[test]
fn two_iterations_are_scored_without_an_error() {
    if !wanted("two_iterations_are_scored_without_an_error") {
        return;
    }
    let _turn = wait_for_turn();
    let folder = tempfile::tempdir().unwrap();
    let run = run_in(folder.path());
    let tasks = folder.path().join("tasks");
    pool(&tasks);
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
        "rollout.max_steps=2",
    ];
    let shape = [
        format!("grpo.tasks_per_iteration={GROUPS}"),
        format!("grpo.group_size={GROUP_SIZE}"),
        format!("tasks.pool={:?}", tasks.display().to_string()),
    ];
    for set in sets
        .map(str::to_owned)
        .into_iter()
        .chain(shape)
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
    assert_eq!(figures["episodes"], EPISODES, "{figures}");

    let history = RunDir::open(&run).unwrap().state().unwrap().history;
    assert_eq!(history.len(), ITERATIONS);
    for report in &history {
        assert_eq!(report.env_errors, 0, "{report:?}");
        assert_eq!(report.groups as usize, GROUPS, "{report:?}");
        assert_eq!(report.episodes as usize, GROUPS * GROUP_SIZE, "{report:?}");
    }
    let learned = |report: &&IterationReport| report.policy != PolicyVersion(0);
    let learned = history.iter().find(learned).unwrap();
    assert!(learned.grad_norm.0 > 0.0, "{learned:?}");

    let mut recorded = Vec::new();
    json_files(&run.join("episodes"), &mut recorded);
    assert_eq!(recorded.len(), EPISODES);
    for (task, can_succeed) in [(OF_OSWORLD, false), (OF_CHANCE, true)] {
        let (_, task) = task.split_once('/').unwrap();
        let of_it = recorded.iter().filter(|episode| episode["task"] == task);
        let scores: Vec<f64> = of_it.map(state_score).collect();
        assert_eq!(scores.len(), EPISODES / GROUPS, "{task}");
        assert_eq!(scores.contains(&1.0), can_succeed, "{task}: {scores:?}");
        assert!(scores.contains(&0.0), "{task}: {scores:?}");
    }
}

/// What the evaluator gave for the state that an episode left.
fn state_score(episode: &Value) -> f64 {
    assert_eq!(episode["class"], Value::Null, "{episode}");
    // No task is infeasible: it is the state that was scored.
    assert_eq!(episode["infeasible"], false, "{episode}");
    episode["state_score"].as_f64().unwrap()
}
