//! Every family: solvable by the expert, worth nothing untouched, mended after mistakes. And
//! the desktop itself: keys, clipboard, undo, hit areas, faults.

use std::path::Path;
use std::time::Duration;

use futures::executor::block_on;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde_json::{Value, json};

use super::law::Fortune;
use super::suite::{self, Family, Suite};
use super::{Desktop, Goal, Simulated, expert, renderer_hash};
use crate::config::simulated::{FaultLaw, LatencyLaw, SimulatedConfig};
use crate::env::{EnvError, Environment, Probe};
use crate::types::{Action, Point, Task, TaskId};

/// Instances looked at per family, from each of the three ranges.
const INSTANCES: [u64; 12] = [
    0, 1, 2, 3, 4, 5, 500_000, 500_001, 500_002, 1_000_000, 1_000_001, 1_000_002,
];

fn tasks_of(suite: Suite) -> impl Iterator<Item = (&'static Family, Task)> {
    let families = suite::families(suite).iter();
    families.flat_map(move |family| INSTANCES.map(|i| (family, family.task(suite, i))))
}

fn tasks() -> impl Iterator<Item = (&'static Family, Task)> {
    tasks_of(Suite::Compact)
}

fn all_tasks() -> impl Iterator<Item = (&'static Family, Task)> {
    tasks().chain(tasks_of(Suite::Full))
}

fn score(task: &Task, desktop: &Desktop) -> f32 {
    Goal::of(task).unwrap().score(&desktop.state())
}

/// Lets the expert act, with a wrong action in `mistakes` of the steps. Returns its steps, or
/// `None` if it did not end within `max_steps`.
fn run_expert(
    task: &Task,
    desktop: &mut Desktop,
    mistakes: f64,
    max_steps: usize,
    rng: &mut Pcg64Mcg,
) -> Option<Vec<expert::Expert>> {
    let mut steps = Vec::new();
    while steps.len() < max_steps {
        let mut step = expert::next(desktop, task);
        if !step.action.is_terminal() && rng.random_bool(mistakes) {
            step.action = expert::plausible_mistake(desktop, rng);
        }
        let end = step.action.is_terminal();
        desktop.apply(&step.action);
        steps.push(step);
        if end {
            return Some(steps);
        }
    }
    None
}

#[test]
fn the_expert_solves_every_task_within_its_steps() {
    let mut rng = Pcg64Mcg::seed_from_u64(0);
    for (family, task) in all_tasks() {
        let mut desktop = Desktop::from_task(&task).unwrap();
        let steps = run_expert(&task, &mut desktop, 0.0, family.steps, &mut rng);
        let steps = steps.unwrap_or_else(|| panic!("{} takes too long", task.id));
        let last = &steps.last().unwrap().action;
        if family.infeasible {
            assert_eq!(*last, Action::Fail, "{}", task.id);
            assert!(task.is_infeasible());
        } else {
            assert!(matches!(last, Action::Finished { .. }), "{}", task.id);
            assert_eq!(score(&task, &desktop), 1.0, "{}", task.id);
        }
    }
}

#[test]
fn an_untouched_desktop_scores_nothing() {
    for (family, task) in all_tasks() {
        let desktop = Desktop::from_task(&task).unwrap();
        if !family.infeasible {
            assert_eq!(score(&task, &desktop), 0.0, "{}", task.id);
        }
    }
}

/// Share of a family's instances that the expert solves with a wrong action in a quarter of
/// its steps.
fn share_mended(suite: Suite, family: &Family, instances: u64) -> f32 {
    let mut rng = Pcg64Mcg::seed_from_u64(7);
    let mut solved = 0;
    for instance in 0..instances {
        let task = family.task(suite, instance);
        let mut desktop = Desktop::from_task(&task).unwrap();
        let ended = run_expert(&task, &mut desktop, 0.25, 40, &mut rng).is_some();
        solved += u64::from(ended && score(&task, &desktop) == 1.0);
    }
    solved as f32 / instances as f32
}

#[test]
fn the_expert_mends_most_mistakes() {
    for (suite, instances) in [(Suite::Compact, 40), (Suite::Full, 20)] {
        let feasible = suite::families(suite).iter().filter(|f| !f.infeasible);
        for family in feasible {
            let share = share_mended(suite, family, instances);
            assert!(share >= 0.7, "{}/{}: {share}", suite.name(), family.name);
        }
    }
}

#[test]
fn one_task_in_twelve_is_infeasible() {
    let counts = |suite| {
        let families = suite::families(suite);
        let infeasible = families.iter().filter(|family| family.infeasible);
        (infeasible.count(), families.len())
    };
    assert_eq!(counts(Suite::Compact), (3, 36));
    assert_eq!(counts(Suite::Full), (6, 80));
}

#[test]
fn nothing_is_trained_on_the_full_suite() {
    let families = suite::families(Suite::Full);
    let mut domains: Vec<&str> = families.iter().map(|family| family.app).collect();
    domains.sort_unstable();
    domains.dedup();
    assert!(8 <= domains.len(), "{domains:?}");
    assert!(families.iter().all(|family| !family.trained));
    let task = families[0].task(Suite::Full, 0);
    let size = Desktop::from_task(&task).unwrap().screen_size();
    assert_eq!((size.width, size.height), (1920, 1080));
}

#[test]
fn tasks_are_functions_of_their_ids() {
    for (_, task) in all_tasks() {
        assert_eq!(suite::task_by_id(&task.id).unwrap(), task);
        let text = serde_json::to_string(&task).unwrap();
        let read: Task = serde_json::from_str(&text).unwrap();
        let (a, b) = (Desktop::from_task(&task), Desktop::from_task(&read));
        assert_eq!(a.unwrap(), b.unwrap());
    }
}

#[test]
fn wrong_ids_say_what_would_be_right() {
    let message = |id: &str| {
        suite::task_by_id(&TaskId(id.into()))
            .unwrap_err()
            .to_string()
    };
    assert!(message("compact/ed_sub").contains("compact/FAMILY/NUMBER"));
    assert!(message("compact/ed_sup/-1").contains("compact/FAMILY/NUMBER"));
    assert!(message("compact/ed_subb/1").contains("\"ed_sub\""));
}

/// The renderer's hash changes with every pixel, word or task that the shipped agent was trained
/// on. Whoever changes them remakes the agent and its card.
#[test]
fn the_shipped_agent_was_trained_on_this_renderer() {
    let agent = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/agent");
    let card = std::fs::read_to_string(agent.join("README.md")).unwrap();
    let named = |key: &str| {
        let line = card.lines().find_map(|line| line.strip_prefix(key));
        line.unwrap().trim().to_owned()
    };
    assert_eq!(named("renderer_hash:"), renderer_hash());
    let weights = std::fs::read(agent.join("model.safetensors")).unwrap();
    assert_eq!(
        named("weights_hash:"),
        blake3::hash(&weights).to_hex()[..32]
    );
}

#[test]
fn targets_and_facts_are_in_words_that_tell_them_apart() {
    for (_, task) in tasks() {
        let desktop = Desktop::from_task(&task).unwrap();
        let targets = desktop.targets();
        assert!(!targets.is_empty(), "{}", task.id);
        for (i, target) in targets.iter().enumerate() {
            // Coordinates are multiples of 4 in the 224x168 picture that the model sees.
            assert_eq!(target.center.x % 8.0, 0.0, "{} {target:?}", task.id);
            assert_eq!(target.center.y % 8.0, 0.0, "{} {target:?}", task.id);
            let twin = targets[..i].iter().any(|t| t.phrase == target.phrase);
            assert!(!twin, "{} {target:?}", task.id);
        }
        for fact in desktop.facts() {
            assert_eq!(fact.to_string().matches(" is ").count(), 1, "{fact}");
        }
    }
}

/// A desktop of a family's first instance, and what its state says at a pointer.
fn desktop(family: &str) -> Desktop {
    Desktop::from_task(&suite::task(family, 0).unwrap()).unwrap()
}

fn at(desktop: &Desktop, pointer: &str) -> Value {
    desktop.state().pointer(pointer).cloned().unwrap()
}

fn keys(names: &[&str]) -> Action {
    Action::Hotkey {
        keys: names.iter().map(|name| (*name).to_owned()).collect(),
    }
}

fn type_text(text: &str) -> Action {
    Action::Type {
        content: text.to_owned(),
    }
}

fn click(desktop: &mut Desktop, phrase: &str) {
    let targets = desktop.targets();
    let target = targets.iter().find(|target| target.phrase == phrase);
    let at = target.unwrap_or_else(|| panic!("no {phrase}")).center;
    desktop.apply(&Action::Click { at });
}

#[test]
fn the_wrong_script_has_to_be_undone() {
    let task = suite::task("ed_sub", 0).unwrap();
    let mut desktop = Desktop::from_task(&task).unwrap();
    assert_eq!(task.instruction, "Make the 2 in CO2 a subscript");
    click(&mut desktop, "select 2");
    click(&mut desktop, "press superscript");
    click(&mut desktop, "press subscript");
    let styles = at(&desktop, "/editor/styles");
    assert_eq!(styles, json!(["", "", "superscript"]));
    assert_eq!(score(&task, &desktop), 0.0);
    desktop.apply(&keys(&["ctrl", "z"]));
    click(&mut desktop, "press subscript");
    assert_eq!(score(&task, &desktop), 1.0);
    desktop.apply(&keys(&["ctrl", "z"]));
    desktop.apply(&keys(&["ctrl", "y"]));
    assert_eq!(score(&task, &desktop), 1.0);
}

#[test]
fn collateral_changes_score_nothing() {
    let task = suite::task("se_one", 0).unwrap();
    let mut desktop = Desktop::from_task(&task).unwrap();
    let right = expert::next(&desktop, &task).thought;
    let targets = desktop.targets();
    let wrong = targets.iter().find(|t| t.phrase != right).unwrap();
    click(&mut desktop, &right);
    assert_eq!(score(&task, &desktop), 1.0);
    click(&mut desktop, &wrong.phrase);
    assert_eq!(score(&task, &desktop), 0.0);
}

#[test]
fn text_is_cut_copied_and_pasted() {
    let mut desktop = desktop("ed_all");
    let text = at(&desktop, "/editor/text");
    desktop.apply(&keys(&["ctrl", "a"]));
    desktop.apply(&keys(&["ctrl", "x"]));
    assert_eq!(at(&desktop, "/editor/text"), json!(""));
    desktop.apply(&keys(&["ctrl", "v"]));
    assert_eq!(at(&desktop, "/editor/text"), text);
    desktop.apply(&Action::Press { key: "home".into() });
    desktop.apply(&type_text("n\u{e9}\u{4f60}\u{1f600}\n\u{7}"));
    let longer = format!("n\u{e9}\u{4f60}\u{1f600}{}", text.as_str().unwrap());
    assert_eq!(at(&desktop, "/editor/text"), json!(longer));
    desktop.render();
}

#[test]
fn a_typed_newline_submits_a_name() {
    let mut desktop = desktop("fi_ren");
    click(&mut desktop, "select song");
    desktop.apply(&keys(&["f2"]));
    desktop.apply(&type_text("plan\n"));
    assert_eq!(at(&desktop, "/files/entries/plan"), json!("here"));
}

#[test]
fn every_action_at_every_place_leaves_a_desktop_that_renders() {
    let mut rng = Pcg64Mcg::seed_from_u64(3);
    for (_, task) in tasks() {
        let mut desktop = Desktop::from_task(&task).unwrap();
        for _ in 0..30 {
            let at = |rng: &mut Pcg64Mcg| Point {
                x: rng.random_range(-50.0..500.0),
                y: rng.random_range(-50.0..400.0),
            };
            let action = match rng.random_range(0..6) {
                0 => Action::Click { at: at(&mut rng) },
                1 => Action::LeftDouble { at: at(&mut rng) },
                2 => Action::Drag {
                    from: at(&mut rng),
                    to: at(&mut rng),
                },
                3 => Action::RightSingle { at: at(&mut rng) },
                4 => type_text("x\u{fffd}\n"),
                _ => expert::plausible_mistake(&desktop, &mut rng),
            };
            desktop.apply(&action);
        }
        let (state, shot) = (desktop.state(), desktop.render());
        assert_eq!((desktop.state(), desktop.render()), (state, shot));
        expert::next(&desktop, &task);
    }
}

#[test]
fn broken_task_files_are_errors() {
    let reason = |change: &dyn Fn(&mut Task)| {
        let mut task = suite::task("se_one", 0).unwrap();
        change(&mut task);
        Desktop::from_task(&task).unwrap_err().to_string()
    };
    assert!(reason(&|task| task.config.clear()).contains("\"simulated\""));
    let unknown = |task: &mut Task| {
        let parameters = &mut task.config[0].parameters;
        parameters.insert("walpaper".into(), json!("blue"));
    };
    assert!(reason(&unknown).contains("walpaper"));
    let huge = |task: &mut Task| {
        let parameters = &mut task.config[0].parameters;
        parameters.insert("width_px".into(), json!(100_000));
    };
    assert!(reason(&huge).contains("100000"));
}

/// A slow virtual machine.
const SLOW: LatencyLaw = LatencyLaw {
    median_s: 2.5,
    sigma: 0.4,
    tail_probability: 0.01,
    tail_factor: 12.0,
};

fn faulty(faults: FaultLaw) -> Simulated {
    Simulated::new(SimulatedConfig {
        deadline_s: 600.0,
        step_latency: SLOW,
        faults,
        ..SimulatedConfig::INSTANT
    })
}

/// Durations of 20 steps on a desktop with that seed.
fn step_seconds(seed: u64) -> Vec<f64> {
    let task = suite::task("se_one", 0).unwrap();
    let mut env = faulty(FaultLaw::NONE);
    block_on(async {
        env.reset(&task, seed).await.unwrap();
        let mut seconds = Vec::new();
        for _ in 0..20 {
            let action = keys(&["esc"]);
            seconds.push(env.step(&action).await.unwrap().elapsed.as_secs_f64());
        }
        seconds
    })
}

#[test]
fn latencies_follow_their_law_and_seed() {
    assert_eq!(step_seconds(3), step_seconds(3));
    assert_ne!(step_seconds(3), step_seconds(4));
    let mut fortune = Fortune::new(11);
    let draw = |_| fortune.draw(&SLOW, &FaultLaw::NONE).elapsed.as_secs_f64();
    let mut seconds: Vec<f64> = (0..4000).map(draw).collect();
    seconds.sort_by(f64::total_cmp);
    let median = seconds[seconds.len() / 2];
    assert!((median - 2.5).abs() < 0.1, "median {median}");
    let tail = seconds.iter().filter(|s| **s > 2.5 * 6.0).count() as f64 / 4000.0;
    assert!((tail - 0.01).abs() < 0.005, "tail {tail}");
}

#[test]
fn hangs_and_crashes_last_until_the_next_reset() {
    let task = suite::task("se_one", 0).unwrap();
    let hang = FaultLaw {
        hang: 1.0,
        ..FaultLaw::NONE
    };
    let crash = FaultLaw {
        crash: 1.0,
        ..FaultLaw::NONE
    };
    block_on(async {
        let mut env = faulty(hang);
        let error = env.reset(&task, 0).await.unwrap_err();
        let deadline = Duration::from_secs(600);
        assert!(matches!(error, EnvError::Timeout { after, .. } if after == deadline));
        let mut env = faulty(FaultLaw::NONE);
        env.reset(&task, 0).await.unwrap();
        env.set_faults(crash);
        let crashed = env.step(&Action::Wait).await.unwrap_err();
        assert!(matches!(crashed, EnvError::Crashed { .. }));
        env.set_faults(FaultLaw::NONE);
        let again = env.probe(&Probe::State).await.unwrap_err();
        assert!(matches!(again, EnvError::Crashed { .. }));
        env.reset(&task, 0).await.unwrap();
        env.step(&Action::Wait).await.unwrap();
    });
}

#[test]
fn a_black_screen_passes_and_a_slow_evaluator_runs_into_the_deadline() {
    let task = suite::task("se_one", 0).unwrap();
    block_on(async {
        let mut env = faulty(FaultLaw::NONE);
        env.reset(&task, 0).await.unwrap();
        env.set_faults(FaultLaw {
            black_screen: 1.0,
            ..FaultLaw::NONE
        });
        let black = env.observe().await.unwrap_err();
        assert!(matches!(black, EnvError::Screenshot { .. }));
        env.set_faults(FaultLaw::NONE);
        env.observe().await.unwrap();
    });
    let mut env = Simulated::new(SimulatedConfig {
        evaluate_latency: LatencyLaw {
            median_s: 10.0,
            ..LatencyLaw::NONE
        },
        faults: FaultLaw {
            slow_evaluator: 1.0,
            slow_factor: 3.0,
            ..FaultLaw::NONE
        },
        ..SimulatedConfig::INSTANT
    });
    block_on(async {
        env.reset(&task, 0).await.unwrap();
        let slow = env.probe(&Probe::State).await.unwrap();
        assert_eq!(slow.elapsed, Duration::from_secs(30));
        env.set_faults(FaultLaw {
            slow_evaluator: 1.0,
            slow_factor: 30.0,
            ..FaultLaw::NONE
        });
        let late = env.probe(&Probe::State).await.unwrap_err();
        assert!(matches!(late, EnvError::Timeout { .. }));
    });
}

#[test]
fn a_task_for_another_machine_is_an_error_of_the_task() {
    let mut task = suite::task("se_one", 0).unwrap();
    task.config.clear();
    let mut env = faulty(FaultLaw::NONE);
    let error = block_on(env.reset(&task, 0)).unwrap_err();
    assert!(error.to_string().starts_with("task compact/se_one/0: "));
    let early = block_on(env.step(&Action::Wait)).unwrap_err();
    assert!(matches!(early, EnvError::Crashed { .. }));
}

#[test]
fn a_larger_interface_shows_the_same_desktop() {
    let task = suite::task("se_one", 0).unwrap();
    let config = SimulatedConfig {
        ui_scale: 4,
        ..SimulatedConfig::INSTANT
    };
    let mut env = Simulated::new(config);
    let large = block_on(env.reset(&task, 0)).unwrap().screenshot;
    assert_eq!((large.size().width, large.size().height), (896, 672));
    assert_eq!(env.screen_size(), large.size());
    let small = Desktop::from_task(&task).unwrap().render();
    let pixel = |shot: &crate::types::Screenshot, x: usize, y: usize| {
        let at = (y * shot.size().width as usize + x) * 3;
        shot.rgb()[at..at + 3].to_vec()
    };
    for (x, y) in [(0, 0), (100, 50), (447, 335), (230, 120)] {
        assert_eq!(pixel(&large, 2 * x, 2 * y), pixel(&small, x, y));
    }
}

/// The task with faults planned: what call, which one, what.
fn with_plan(faults: &[(&str, u32, &str)]) -> Task {
    let mut task = suite::task("se_one", 0).unwrap();
    for (call, number, fault) in faults {
        let step = json!({
            "type": "simulated_fault",
            "parameters": { "call": call, "number": number, "fault": fault },
        });
        task.config.push(serde_json::from_value(step).unwrap());
    }
    task
}

#[test]
fn a_planned_fault_hits_its_call_in_every_episode() {
    let task = with_plan(&[("action", 2, "black_screen"), ("evaluator", 1, "crash")]);
    let mut env = faulty(FaultLaw::NONE);
    for seed in 0..3 {
        block_on(async {
            env.reset(&task, seed).await.unwrap();
            env.observe().await.unwrap();
            env.step(&Action::Wait).await.unwrap();
            let black = env.step(&Action::Wait).await.unwrap_err();
            assert!(matches!(black, EnvError::Screenshot { .. }));
            env.step(&Action::Wait).await.unwrap();
            let crashed = env.probe(&Probe::State).await.unwrap_err();
            assert!(matches!(crashed, EnvError::Crashed { .. }));
        });
    }
    let late = block_on(env.reset(&with_plan(&[("reset", 1, "hang")]), 0));
    assert!(matches!(late, Err(EnvError::Timeout { .. })));
    let odd = block_on(env.reset(&with_plan(&[("click", 1, "hang")]), 0));
    let message = odd.unwrap_err().to_string();
    assert!(
        message.contains("simulated_fault") && message.contains("click"),
        "{message}"
    );
}
