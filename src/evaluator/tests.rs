//! Protocol cells, joining of metrics, and evaluation of real simulated desktops.

use std::time::Duration;

use futures::executor::block_on;
use serde_json::json;

use super::protocol::{self, Protocol, outcome};
use super::{EvaluatorError, Scorer, evaluate, join};
use crate::config::simulated::{LatencyLaw, SimulatedConfig};
use crate::env::Environment;
use crate::env::simulated::suite::{self, Suite};
use crate::env::simulated::{Simulated, expert};
use crate::types::osworld::Join;
use crate::types::{EpisodeEnd, OneOrMany, Task};

/// What stands in a cell of the protocol table: a constant, or the state's score.
#[derive(Clone, Copy)]
enum Cell {
    Worth(f32),
    State,
}

const ZERO: Cell = Cell::Worth(0.0);
const ONE: Cell = Cell::Worth(1.0);
const STATE: Cell = Cell::State;

/// Rows: how it ended; cells: feasible and infeasible under standard, hard, plain.
const TABLE: [(EpisodeEnd, [Cell; 3], [Cell; 3]); 5] = [
    (EpisodeEnd::Finished, [STATE; 3], [ZERO; 3]),
    (EpisodeEnd::DeclaredInfeasible, [ZERO; 3], [ONE; 3]),
    (
        EpisodeEnd::StepLimit,
        [ZERO, ZERO, STATE],
        [ONE, ZERO, ZERO],
    ),
    (EpisodeEnd::Malformed, [STATE; 3], [ZERO; 3]),
    (EpisodeEnd::ContextFull, [STATE; 3], [ZERO; 3]),
];

#[test]
fn outcomes_are_those_of_the_table() {
    for (end, feasible, infeasible) in TABLE {
        for (cells, is_infeasible) in [(feasible, false), (infeasible, true)] {
            for (protocol, cell) in protocol::ALL.into_iter().zip(cells) {
                for state_score in [0.0, 0.25, 1.0] {
                    let expected = match cell {
                        Cell::Worth(worth) => worth,
                        Cell::State => state_score,
                    };
                    let got = outcome(protocol, end, is_infeasible, state_score);
                    assert_eq!(
                        got, expected,
                        "{protocol:?} {end:?} infeasible={is_infeasible}"
                    );
                }
            }
        }
    }
}

#[test]
fn hard_never_exceeds_standard() {
    for (end, _, _) in TABLE {
        for infeasible in [false, true] {
            let hard = outcome(Protocol::Hard, end, infeasible, 0.7);
            assert!(hard <= outcome(Protocol::Standard, end, infeasible, 0.7));
        }
    }
}

#[test]
fn metrics_are_joined_as_osworld_joins_them() {
    assert_eq!(join(&[1.0, 0.5], Join::And), 0.75);
    assert_eq!(join(&[1.0, 0.0], Join::And), 0.0);
    assert_eq!(join(&[0.25, 0.5], Join::Or), 0.5);
    assert_eq!(join(&[], Join::And), 0.0);
}

/// Score after the expert's first `steps` steps.
fn score_after(task: &Task, steps: usize) -> f32 {
    block_on(async {
        let mut env = Simulated::new(SimulatedConfig::INSTANT);
        env.reset(task, 1).await.unwrap();
        for _ in 0..steps {
            let step = expert::next(env.desktop().unwrap(), task);
            env.step(&step.action).await.unwrap();
        }
        evaluate(task, &mut env, &Scorer::NATIVE)
            .await
            .unwrap()
            .state_score
    })
}

#[test]
fn expert_scores_one_and_doing_nothing_zero_on_every_family() {
    for family in suite::families(Suite::Compact) {
        let task = family.task(Suite::Compact, suite::HELD_OUT_FIRST);
        assert_eq!(score_after(&task, 0), 0.0, "{}", task.id);
        let wanted = if family.infeasible { 0.0 } else { 1.0 };
        assert_eq!(score_after(&task, family.steps), wanted, "{}", task.id);
    }
}

#[test]
fn a_part_of_several_items_earns_half_its_fraction() {
    assert_eq!(score_after(&suite::task("se_two", 5).unwrap(), 1), 0.25);
    let third = score_after(&suite::task("se_three", 5).unwrap(), 2);
    assert!((third - 1.0 / 3.0).abs() < 1e-6);
    assert_eq!(score_after(&suite::task("fo_two", 5).unwrap(), 3), 0.0);
}

#[test]
fn evaluation_takes_the_time_its_law_gives() {
    let config = SimulatedConfig {
        evaluate_latency: LatencyLaw {
            median_s: 3.0,
            ..LatencyLaw::NONE
        },
        ..SimulatedConfig::INSTANT
    };
    let task = suite::task("ed_save", 0).unwrap();
    let mut env = Simulated::new(config);
    let evaluation = block_on(async {
        env.reset(&task, 0).await.unwrap();
        evaluate(&task, &mut env, &Scorer::NATIVE).await.unwrap()
    });
    assert_eq!(evaluation.elapsed, Duration::from_secs(3));
}

#[track_caller]
fn check_spec_error(change: impl FnOnce(&mut Task), phrase: &str) {
    let mut task = suite::task("ed_save", 0).unwrap();
    change(&mut task);
    let error = block_on(async {
        let mut env = Simulated::new(SimulatedConfig::INSTANT);
        env.reset(&task, 0).await.unwrap();
        evaluate(&task, &mut env, &Scorer::NATIVE)
            .await
            .unwrap_err()
    });
    assert!(
        matches!(error, EvaluatorError::Spec { .. }),
        "not a spec error: {error}"
    );
    let message = error.to_string();
    assert!(
        message.contains(phrase) && message.contains("compact/ed_save/0"),
        "{message}"
    );
}

#[test]
fn errors_in_task_files_name_the_task_and_the_remedy() {
    check_spec_error(
        |task| task.evaluator.func = OneOrMany::One("no_such_metric".into()),
        "no metric is called \"no_such_metric\"",
    );
    check_spec_error(|task| task.evaluator.result = None, "no \"result\"");
    check_spec_error(
        |task| task.evaluator.result = Some(OneOrMany::One(json!({"type": "vm_file"}))),
        "vm_file",
    );
    check_spec_error(
        |task| task.evaluator.expected = Some(OneOrMany::One(json!({"type": "cloud_file"}))),
        "cloud_file",
    );
    check_spec_error(
        |task| {
            let rules = json!({"type": "rule", "rules": {"goals": {}}});
            task.evaluator.expected = Some(OneOrMany::One(rules));
        },
        "unknown field",
    );
}

#[test]
fn other_metrics_read_a_part_of_the_state() {
    let mut task = suite::task("ed_write", 3).unwrap();
    let typed = task.instruction.split('\'').nth(1).unwrap().to_owned();
    task.evaluator.func =
        OneOrMany::Many(vec!["check_include_exclude".into(), "exact_match".into()]);
    let text = json!({"type": "simulated_state", "path": "/editor/text"});
    let styles = json!({"type": "simulated_state", "path": "/editor/saved"});
    task.evaluator.result = Some(OneOrMany::Many(vec![text, styles]));
    task.evaluator.expected = Some(OneOrMany::Many(vec![
        json!({"type": "rule", "rules": {"include": [typed], "exclude": ["zzz"]}}),
        json!({"type": "rule", "rules": {"expected": false}}),
    ]));
    let mut env = Simulated::new(SimulatedConfig::INSTANT);
    let original = suite::task("ed_write", 3).unwrap();
    let score = block_on(async {
        env.reset(&task, 0).await.unwrap();
        for _ in 0..2 {
            let step = expert::next(env.desktop().unwrap(), &original);
            env.step(&step.action).await.unwrap();
        }
        evaluate(&task, &mut env, &Scorer::NATIVE)
            .await
            .unwrap()
            .state_score
    });
    assert_eq!(score, 1.0);
}
