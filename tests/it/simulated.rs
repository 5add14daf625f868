//! Simulated desktops from outside: whatever an agent does, the desktop lives on; the task
//! lists we ship name tasks that exist.

use std::path::Path;

use proptest::prelude::*;
use serde_json::Value;

use arpo::env::simulated::suite::{self, HELD_OUT_FIRST, POOL_FIRST, Suite};
use arpo::env::simulated::{Desktop, Goal, expert};
use arpo::types::{Action, Point, ScrollDirection, Task, TaskId};

fn any_task() -> impl Strategy<Value = Task> {
    let suites = prop_oneof![Just(Suite::Compact), Just(Suite::Full)];
    (suites, any::<prop::sample::Index>(), 0_u64..2_000_000).prop_map(
        |(suite, family, instance)| family.get(suite::families(suite)).task(suite, instance),
    )
}

/// Places mostly on the screen, now and then far off it or no number at all.
fn any_point() -> impl Strategy<Value = Point> {
    let axis = prop_oneof![9 => -20.0_f32..1940.0, 1 => any::<f32>()];
    (axis.clone(), axis).prop_map(|(x, y)| Point { x, y })
}

fn any_key() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "ctrl",
        "shift",
        "alt",
        "a",
        "b",
        "c",
        "v",
        "x",
        "z",
        "y",
        "enter",
        "esc",
        "delete",
        "backspace",
        "f2",
        "f4",
        "tab",
        "up",
        "down",
        "left",
        "right",
        "home",
        "end",
        "pagedown",
        "space",
        "menu+upper",
        "menu+sort",
        "window+close",
    ]);
    prop_oneof![9 => known.prop_map(str::to_owned), 1 => any::<String>()]
}

fn any_action() -> impl Strategy<Value = Action> {
    let direction = prop::sample::select(vec![
        ScrollDirection::Up,
        ScrollDirection::Down,
        ScrollDirection::Left,
        ScrollDirection::Right,
    ]);
    prop_oneof![
        4 => any_point().prop_map(|at| Action::Click { at }),
        2 => any_point().prop_map(|at| Action::LeftDouble { at }),
        1 => any_point().prop_map(|at| Action::RightSingle { at }),
        1 => any_point().prop_map(|at| Action::Hover { at }),
        1 => (any_point(), any_point()).prop_map(|(from, to)| Action::Drag { from, to }),
        2 => prop::collection::vec(any_key(), 0..3).prop_map(|keys| Action::Hotkey { keys }),
        1 => any_key().prop_map(|key| Action::Press { key }),
        2 => any::<String>().prop_map(|content| Action::Type { content }),
        1 => (prop::option::of(any_point()), direction)
            .prop_map(|(at, direction)| Action::Scroll { at, direction }),
        1 => Just(Action::Wait),
    ]
}

/// Every action with a place, at places that no screen has and on both kinds of desktop.
#[test]
fn places_far_off_the_screen_do_no_harm() {
    let far = [f32::MAX, f32::MIN, 1.3e19, -1.3e19, 2.2e9, -2.2e9];
    let axis = || far.into_iter().chain([f32::INFINITY, f32::NAN, 0.0, 60.0]);
    let places: Vec<_> = axis()
        .flat_map(|x| axis().map(move |y| Point { x, y }))
        .collect();
    for suite in [Suite::Compact, Suite::Full] {
        let task = suite::families(suite)[0].task(suite, 0);
        for at in &places {
            let from = Point { x: 60.0, y: 60.0 };
            for action in [
                Action::Click { at: *at },
                Action::LeftDouble { at: *at },
                Action::RightSingle { at: *at },
                Action::Hover { at: *at },
                Action::Drag { from, to: *at },
                Action::Drag {
                    from: *at,
                    to: from,
                },
                Action::Scroll {
                    at: Some(*at),
                    direction: ScrollDirection::Down,
                },
            ] {
                let mut desktop = Desktop::from_task(&task).unwrap();
                desktop.apply(&action);
                desktop.apply(&action);
                assert_eq!(desktop.render().size(), desktop.screen_size(), "{action:?}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// No panic, and a picture and a state that depend on nothing but the actions.
    #[test]
    fn desktops_survive_any_actions(
        task in any_task(),
        actions in prop::collection::vec(any_action(), 0..40),
    ) {
        let mut desktop = Desktop::from_task(&task).unwrap();
        let mut again = desktop.clone();
        for action in &actions {
            desktop.apply(action);
            again.apply(action);
            expert::next(&desktop, &task);
        }
        prop_assert_eq!(desktop.state(), again.state());
        let (shot, same) = (desktop.render(), again.render());
        prop_assert_eq!(shot.hash(), same.hash());
        prop_assert_eq!(shot.size(), desktop.screen_size());
        if let Some(goal) = Goal::of(&task) {
            let score = goal.score(&desktop.state());
            prop_assert!((0.0..=1.0).contains(&score));
        }
        desktop.facts();
        for target in desktop.targets() {
            desktop.clone().apply(&Action::Click { at: target.center });
        }
    }

    /// Whatever state an agent leaves, the expert neither panics nor acts for ever.
    #[test]
    fn the_expert_ends_from_any_state(
        task in any_task(),
        actions in prop::collection::vec(any_action(), 0..12),
    ) {
        let mut desktop = Desktop::from_task(&task).unwrap();
        for action in &actions {
            desktop.apply(action);
        }
        let mut ended = false;
        for _ in 0..120 {
            let step = expert::next(&desktop, &task);
            ended = step.action.is_terminal();
            if ended {
                break;
            }
            desktop.apply(&step.action);
        }
        prop_assert!(ended, "{}", task.id);
    }
}

fn shipped(list: &str) -> Vec<TaskId> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/tasks");
    let text = std::fs::read_to_string(folder.join(format!("{list}.json"))).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn instance(id: &TaskId) -> u64 {
    id.0.rsplit('/').next().unwrap().parse().unwrap()
}

#[test]
fn shipped_lists_keep_to_their_ranges() {
    for (list, range) in [
        ("compact-demo", POOL_FIRST..HELD_OUT_FIRST),
        ("compact-heldout", HELD_OUT_FIRST..u64::MAX),
        ("full", HELD_OUT_FIRST..u64::MAX),
    ] {
        for id in shipped(list) {
            assert!(range.contains(&instance(&id)), "{list}: {id}");
            suite::task_by_id(&id).unwrap();
        }
    }
}

#[test]
fn the_full_list_has_a_hundred_tasks_over_many_domains() {
    let ids = shipped("full");
    let tasks: Vec<Task> = ids
        .iter()
        .map(|id| suite::task_by_id(id).unwrap())
        .collect();
    let mut domains: Vec<&str> = tasks
        .iter()
        .map(|task| task.related_apps[0].as_str())
        .collect();
    domains.sort_unstable();
    domains.dedup();
    assert!(
        100 <= tasks.len() && 8 <= domains.len(),
        "{} {domains:?}",
        tasks.len()
    );
    let infeasible = tasks.iter().filter(|task| task.is_infeasible()).count();
    let share = infeasible as f32 / tasks.len() as f32;
    assert!((0.05..0.11).contains(&share), "{share}");
}

#[test]
fn task_files_are_osworlds() {
    let task = suite::task("ed_sub", 17).unwrap();
    let json = serde_json::to_value(&task).unwrap();
    for field in [
        "id",
        "snapshot",
        "instruction",
        "source",
        "config",
        "related_apps",
        "evaluator",
    ] {
        assert!(json.get(field).is_some(), "{field}");
    }
    assert_eq!(json["evaluator"]["expected"]["type"], Value::from("rule"));
    assert_eq!(json["config"][0]["type"], Value::from("simulated"));
}
