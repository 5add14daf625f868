//! Scores of real desktops: joins, who scores, what is kept, whose fault it is.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Map, Value, json};

use super::found::Found;
use super::getters::GetterError;
use super::getters::scripted::Scripted;
use super::metrics::MetricError;
use super::{EndState, Evaluation, EvaluatorError, Original, Scorer, evaluate};
use crate::config::Evaluators;
use crate::env::{EnvError, Environment, Observation, Probe, ProbeReply, RealDesktop};
use crate::types::{Action, ErrorClass, ScreenSize, SetupStep, Task};

/// A scripted desktop that can do nothing but be judged.
struct Judged {
    scripted: Scripted,
    /// Steps before judging.
    steps: Vec<String>,
}

#[async_trait]
impl Environment for Judged {
    fn screen_size(&self) -> ScreenSize {
        self.scripted.real().machine.guest().options().screen
    }
    async fn reset(&mut self, _: &Task, _: u64) -> Result<Observation, EnvError> {
        Err(EnvError::Crashed { what: "a reset" })
    }
    async fn step(&mut self, _: &Action) -> Result<Observation, EnvError> {
        Err(EnvError::Crashed { what: "a step" })
    }
    async fn observe(&mut self) -> Result<Observation, EnvError> {
        Err(EnvError::Crashed { what: "a look" })
    }
    async fn probe(&mut self, _: &Probe) -> Result<ProbeReply, EnvError> {
        Err(EnvError::Crashed { what: "a probe" })
    }
    fn real(&self) -> Option<RealDesktop<'_>> {
        Some(self.scripted.real())
    }
    async fn set_up(
        &mut self,
        _: &Task,
        steps: &[SetupStep],
        key: &str,
    ) -> Result<Duration, EnvError> {
        assert_eq!(key, "evaluator.postconfig");
        self.steps
            .extend(steps.iter().map(|step| step.kind.clone()));
        Ok(Duration::ZERO)
    }
    async fn close(&mut self) -> Result<(), EnvError> {
        Ok(())
    }
}

/// Stands for OSWorld's own code: gives everything the same score.
#[derive(Default)]
struct Theirs {
    gets: AtomicUsize,
    scored: Mutex<Vec<String>>,
}

const THEIR_SCORE: f64 = 0.25;

#[async_trait]
impl Original for Theirs {
    async fn score(
        &self,
        metric: &str,
        _: &Found,
        _: Option<&Found>,
        _: &Map<String, Value>,
    ) -> Result<f64, MetricError> {
        self.scored.lock().unwrap().push(metric.to_owned());
        Ok(THEIR_SCORE)
    }
    async fn get(&self, getter: &Value, _: RealDesktop<'_>) -> Result<Found, GetterError> {
        assert_eq!(getter["type"], "page_info");
        self.gets.fetch_add(1, Ordering::Relaxed);
        Ok(Found::Value(json!("x")))
    }
}

fn task(evaluator: &Value) -> Task {
    let task = json!({"id": "a-task", "instruction": "", "evaluator": evaluator});
    serde_json::from_value(task).unwrap()
}

async fn judge(
    evaluator: &Value,
    desktop: &Value,
    scorer: &Scorer,
) -> Result<Evaluation, EvaluatorError> {
    let mut env = Judged {
        scripted: Scripted::start(&json!({ "desktop": desktop })).await,
        steps: Vec::new(),
    };
    evaluate(&task(evaluator), &mut env, scorer).await
}

/// Checks that score 1 for `true`.
fn checks(conj: &str, are_met: &[bool]) -> Value {
    let all = |of: &dyn Fn(bool) -> Value| are_met.iter().map(|is| of(*is)).collect::<Value>();
    json!({
        "func": all(&|_| json!("exact_match")),
        "conj": conj,
        "result": all(&|is| json!({"type": "rule", "rules": is})),
        "expected": all(&|_| json!({"type": "rule", "rules": {"expected": true}})),
    })
}

#[tokio::test]
async fn checks_are_joined_and_end_as_soon_as_the_score_is_certain() {
    let table: [(&str, &[bool], f32, usize); 6] = [
        ("and", &[true, true], 1.0, 2),
        ("and", &[false, true], 0.0, 1),
        ("and", &[true, false, true], 0.0, 2),
        ("or", &[false, true, false], 1.0, 2),
        ("or", &[true, false], 1.0, 1),
        ("or", &[false, false], 0.0, 2),
    ];
    for (conj, are_met, score, judged) in table {
        let evaluation = judge(&checks(conj, are_met), &json!({}), &Scorer::NATIVE).await;
        let evaluation = evaluation.unwrap();
        assert_eq!(evaluation.state_score, score, "{conj} {are_met:?}");
        let end_state = evaluation.end_state.unwrap();
        assert_eq!(end_state.checks.len(), judged, "{conj} {are_met:?}");
    }
}

#[tokio::test]
async fn steps_come_before_judging_and_infeasible_tasks_are_not_judged() {
    let mut evaluator = checks("and", &[true]);
    evaluator["postconfig"] = json!([{"type": "sleep", "parameters": {"seconds": 1}}]);
    for (func, steps) in [
        (json!(["exact_match"]), vec!["sleep"]),
        (json!("infeasible"), vec![]),
    ] {
        evaluator["func"] = func;
        let mut env = Judged {
            scripted: Scripted::start(&json!({})).await,
            steps: Vec::new(),
        };
        evaluate(&task(&evaluator), &mut env, &Scorer::NATIVE)
            .await
            .unwrap();
        assert_eq!(env.steps, steps);
    }
}

#[tokio::test]
async fn what_was_read_is_kept_and_can_be_written_down() {
    let evaluator = json!({
        "func": "compare_text_file",
        "result": {"type": "vm_file", "path": ["/a", "/b"], "dest": ["a", "b"], "multi": true},
        "expected": {"type": "vm_file", "path": "/a", "dest": "gold"},
        "options": {"ignore_blanks": true},
    });
    let desktop = json!({"files": {"/a": {"hex": "41"}, "/b": {"hex": "ff00"}}});
    let evaluation = judge(&evaluator, &desktop, &Scorer::NATIVE).await.unwrap();
    assert_eq!(evaluation.state_score, 1.0);
    let end_state = evaluation.end_state.unwrap();
    let Found::File(file) = &end_state.checks[0].result else {
        panic!("{end_state:?}");
    };
    assert_eq!(
        (file.name.as_str(), file.bytes.as_slice()),
        ("a", &b"A"[..])
    );
    assert_eq!(file.beside[0].bytes, [0xff, 0]);
    let written = serde_json::to_string(&end_state).unwrap();
    assert_eq!(
        serde_json::from_str::<EndState>(&written).unwrap(),
        end_state
    );
}

#[tokio::test]
async fn who_scores_is_the_profiles_choice() {
    let ours = checks("and", &[true]);
    let page = json!({"type": "page_info", "url": "http://x/"});
    let theirs = json!({
        "func": ["compare_image_text", "exact_match"],
        "result": [page, page],
        "expected": [
            {"type": "rule", "rules": {"type": "text", "text": "x"}},
            {"type": "rule", "rules": {"expected": "x"}},
        ],
    });
    let table: [(Evaluators, &Value, f32, &[&str], usize); 6] = [
        (Evaluators::Native, &ours, 1.0, &[], 0),
        (Evaluators::Sidecar, &ours, 0.25, &["exact_match"], 0),
        (Evaluators::Both, &ours, 1.0, &["exact_match"], 1),
        (
            Evaluators::Native,
            &theirs,
            0.625,
            &["compare_image_text"],
            0,
        ),
        (
            Evaluators::Sidecar,
            &theirs,
            0.25,
            &["compare_image_text", "exact_match"],
            0,
        ),
        (
            Evaluators::Both,
            &theirs,
            0.625,
            &["compare_image_text", "exact_match"],
            1,
        ),
    ];
    for (evaluators, evaluator, score, scored, differences) in table {
        let original = Arc::new(Theirs::default());
        let scorer = Scorer {
            evaluators,
            original: Some(Arc::<Theirs>::clone(&original)),
        };
        let evaluation = judge(evaluator, &json!({}), &scorer).await.unwrap();
        assert_eq!(evaluation.state_score, score, "{evaluators:?} {evaluator}");
        assert_eq!(*original.scored.lock().unwrap(), scored, "{evaluators:?}");
        assert_eq!(evaluation.differences.len(), differences, "{evaluators:?}");
        for difference in evaluation.differences {
            assert_eq!(difference.metric, "exact_match");
            assert_eq!(
                (difference.ours, difference.theirs),
                (Ok(1.0), Ok(THEIR_SCORE))
            );
        }
        // One question for both checks.
        let asked = original.gets.load(Ordering::Relaxed);
        assert_eq!(asked, usize::from(evaluator == &theirs));
    }
}

#[tokio::test]
async fn without_a_score_it_is_told_why_and_whose_fault_it_is() {
    let rule = json!({"type": "rule", "rules": {"expected": ""}});
    let with = |result: Value| json!({"func": "exact_match", "result": result, "expected": rule});
    let cloud = json!({"type": "cloud_file", "path": "https://x/a", "dest": "a"});
    let page = json!({"type": "page_info", "url": "http://x/"});
    let mut ocr = with(json!({"type": "vm_file", "path": "/a", "dest": "a"}));
    ocr["func"] = json!("compare_image_text");
    ocr["expected"] = json!({"type": "rule", "rules": {"type": "text", "text": "x"}});
    let drive =
        json!({"type": "googledrive_file", "settings_file": "s", "path": ["a"], "dest": "a"});
    for (evaluator, phrase) in [
        (with(cloud), "arpo tasks fetch"),
        (with(page), "arpo tasks sidecar"),
        (with(drive), "arpo tasks sidecar"),
        (ocr, "arpo tasks sidecar"),
        (
            with(json!({"type": "cache_file", "path": "x"})),
            "no set-up step has kept \"x\"",
        ),
        (
            with(json!({"type": "vlc_config", "dest": "x"})),
            "VLC has no settings",
        ),
    ] {
        let error = judge(&evaluator, &json!({}), &Scorer::NATIVE)
            .await
            .unwrap_err();
        assert_eq!(error.class(), ErrorClass::Evaluator, "{error}");
        let message = error.to_string();
        assert!(
            message.contains(phrase) && message.contains("a-task"),
            "{message}"
        );
    }
}

#[tokio::test]
async fn a_desktop_that_does_not_answer_is_no_fault_of_the_evaluator() {
    let mut env = Judged {
        scripted: Scripted::start(&json!({})).await,
        steps: Vec::new(),
    };
    env.scripted.stop().await;
    let evaluator = json!({
        "func": "exact_match",
        "result": {"type": "vm_command_line", "command": ["ls"]},
        "expected": {"type": "rule", "rules": {"expected": ""}},
    });
    let error = evaluate(&task(&evaluator), &mut env, &Scorer::NATIVE).await;
    let error = error.unwrap_err();
    assert!(
        matches!(error, EvaluatorError::Environment { .. }),
        "{error}"
    );
    assert_eq!(error.class(), ErrorClass::Crash);
}
