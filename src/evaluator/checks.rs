//! Scores real desktops by the checks of OSWorld's task files.
//!
//! Follows `DesktopEnv.evaluate` of desktop-env 1.0.2: steps before judging, then for each metric
//! what its two getters bring, then the metric, until the score is certain. Departs: a getter that
//! several metrics name is asked once; where a result is a file that is missing, an `or` does not
//! judge the result before it again.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::found::Found;
use super::getters::{self, GetterError};
use super::metrics::{self, Call, MetricError};
use super::{Evaluation, EvaluatorError, Scorer, join};
use crate::config::Evaluators;
use crate::env::{Environment, RealDesktop};
use crate::types::osworld::{Check, Getter, Join, Judge, OsworldTask};
use crate::types::{OneOrMany, Task};

/// What was read of a desktop to score it: enough to score it again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndState {
    /// By metric, in the order of the task file, as far as its score needed them.
    pub checks: Vec<CheckState>,
}

/// What was read for one metric, and its score.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckState {
    /// The metric, as task files name it.
    pub metric: String,
    /// What the desktop shows.
    pub result: Found,
    /// What that is held against, where there is something.
    pub expected: Option<Found>,
    /// Named arguments of the metric.
    pub options: Map<String, Value>,
    /// In [0, 1].
    pub score: f64,
}

/// A metric of ours that scores otherwise than OSWorld's own code does on the same state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Difference {
    /// The metric.
    pub metric: String,
    /// Our score; the reason where there is none.
    pub ours: Result<f64, String>,
    /// Theirs; the reason where there is none.
    pub theirs: Result<f64, String>,
}

/// The score of the state that a real desktop is in.
pub(super) async fn evaluate(
    task: &Task,
    env: &mut dyn Environment,
    scorer: &Scorer,
) -> Result<Evaluation, EvaluatorError> {
    let started = Instant::now();
    let id = task.id.0.as_str();
    let spec = |reason: String| EvaluatorError::Spec {
        task: id.to_owned(),
        reason,
    };
    let typed = OsworldTask::read(task).map_err(|fault| spec(fault.to_string()))?;
    let Judge::Checks { join: how, checks } = &typed.judge else {
        return Ok(Evaluation::of(0.0));
    };
    let key = "evaluator.postconfig";
    let prepared = env.set_up(task, &task.evaluator.postconfig, key).await;
    prepared.map_err(|source| EvaluatorError::Environment {
        task: id.to_owned(),
        source,
    })?;
    let desktop = env
        .real()
        .ok_or_else(|| spec("the desktop is gone".into()))?;
    let mut judging = Judging {
        task,
        desktop,
        scorer,
        found: Vec::new(),
        differences: Vec::new(),
    };
    let mut end_state = EndState::default();
    let mut scores = Vec::new();
    for (index, check) in checks.iter().enumerate() {
        let score = match judging.check(index, check).await? {
            Some(state) => {
                let score = state.score as f32;
                end_state.checks.push(state);
                score
            }
            None => 0.0,
        };
        scores.push(score);
        if is_certain(score, *how) {
            break;
        }
    }
    Ok(Evaluation {
        state_score: join(&scores, *how),
        elapsed: started.elapsed(),
        end_state: Some(end_state),
        differences: judging.differences,
    })
}

/// Whether no further check can change the score.
fn is_certain(score: f32, how: Join) -> bool {
    match how {
        Join::And => score == 0.0,
        Join::Or => score == 1.0,
    }
}

/// A task whose state is being judged.
struct Judging<'a> {
    task: &'a Task,
    desktop: RealDesktop<'a>,
    scorer: &'a Scorer,
    /// What getters brought.
    found: Vec<(&'a Getter, Found)>,
    differences: Vec<Difference>,
}

impl<'a> Judging<'a> {
    /// One metric over what its getters bring; none where the file that it looks at is missing and
    /// OSWorld asks no metric.
    async fn check(
        &mut self,
        index: usize,
        check: &'a Check,
    ) -> Result<Option<CheckState>, EvaluatorError> {
        let evaluator = &self.task.evaluator;
        let written = nth(evaluator.result.as_ref(), index);
        let result = match self.get(&check.result, written).await {
            Err(GetterError::NoFile(_)) => return Ok(None),
            result => result.map_err(|error| self.getting(&check.result, error))?,
        };
        let expected = match &check.expected {
            None => None,
            Some(getter) => {
                let written = nth(evaluator.expected.as_ref(), index);
                let found = self.get(getter, written).await;
                Some(found.map_err(|error| self.getting(getter, error))?)
            }
        };
        let mut state = CheckState {
            metric: check.metric.name.to_owned(),
            result,
            expected,
            options: check.options.clone(),
            score: 0.0,
        };
        let score = self.score(&state).await;
        let scoring = |error| EvaluatorError::scoring(&self.task.id.0, &state.metric, error);
        state.score = score.map_err(scoring)?;
        Ok(Some(state))
    }

    fn getting(&self, getter: &Getter, error: GetterError) -> EvaluatorError {
        EvaluatorError::getting(&self.task.id.0, getter.name(), error)
    }

    /// What a getter brings, once however many checks name it.
    async fn get(&mut self, getter: &'a Getter, written: &Value) -> Result<Found, GetterError> {
        if let Some((_, found)) = self.found.iter().find(|(known, _)| *known == getter) {
            return Ok(found.clone());
        }
        let found = match getters::get(getter, self.desktop).await {
            Err(GetterError::Elsewhere) => {
                let original = self.scorer.original();
                let original = original.map_err(GetterError::Unavailable)?;
                original.get(written, self.desktop).await?
            }
            found => found?,
        };
        self.found.push((getter, found.clone()));
        Ok(found)
    }

    /// The score that counts; of both, ours, and theirs where we have none of our own.
    async fn score(&mut self, state: &CheckState) -> Result<f64, MetricError> {
        let native = metrics::find(&state.metric).ok();
        let (ours, theirs) = match (native, self.scorer.evaluators) {
            (Some(metric), Evaluators::Native) => (Some(score_natively(metric, state)), None),
            (Some(metric), Evaluators::Both) => {
                let ours = score_natively(metric, state);
                (Some(ours), Some(self.score_by_original(state).await))
            }
            (None, _) | (Some(_), Evaluators::Sidecar) => {
                (None, Some(self.score_by_original(state).await))
            }
        };
        match (ours, theirs) {
            (Some(ours), Some(theirs)) => {
                self.compare(&state.metric, &ours, &theirs);
                ours
            }
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => unreachable!("one of them is asked"),
        }
    }

    async fn score_by_original(&self, state: &CheckState) -> Result<f64, MetricError> {
        let original = self.scorer.original().map_err(MetricError::Unavailable)?;
        let expected = state.expected.as_ref();
        original
            .score(&state.metric, &state.result, expected, &state.options)
            .await
    }

    fn compare(
        &mut self,
        metric: &str,
        ours: &Result<f64, MetricError>,
        theirs: &Result<f64, MetricError>,
    ) {
        let is_same = match (ours, theirs) {
            (Ok(ours), Ok(theirs)) => (ours - theirs).abs() < SAME_SCORE,
            (Err(MetricError::Raised(_)), Err(MetricError::Raised(_))) => true,
            (Ok(_) | Err(_), Ok(_) | Err(_)) => false,
        };
        if is_same {
            return;
        }
        let told = |score: &Result<f64, MetricError>| score.clone().map_err(|e| e.to_string());
        let difference = Difference {
            metric: metric.to_owned(),
            ours: told(ours),
            theirs: told(theirs),
        };
        let task = &self.task.id.0;
        tracing::warn!(task, ?difference, "OSWorld's own code scores otherwise");
        self.differences.push(difference);
    }
}

/// Scores that differ by less are the same: sums of floats in another order.
const SAME_SCORE: f64 = 1e-6;

fn score_natively(metric: metrics::Metric, state: &CheckState) -> Result<f64, MetricError> {
    metric(&Call {
        result: &state.result,
        expected: state.expected.as_ref().unwrap_or(&Found::NOTHING),
        options: &state.options,
    })
}

/// A getter as the task file has it.
fn nth(written: Option<&OneOrMany<Value>>, index: usize) -> &Value {
    let written = written.and_then(|all| all.iter().nth(index));
    written.unwrap_or(&Value::Null)
}
