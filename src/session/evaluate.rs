//! Measuring a policy: the same rollouts, three scores from each trajectory.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use crate::config::Protocol;
use crate::evaluator::protocol::outcome;
use crate::event::{EvalReport, F, ProtocolScore, Purpose, Score};
use crate::rollout::{Collection, Job, Outcome};
use crate::types::{Episode, PolicyVersion, Task, derive_seed};

const SEED_EVALUATION: u64 = 0x6576_616c;

/// What is measured and how.
#[derive(Clone, Debug)]
pub struct EvaluationSpec {
    /// What for.
    pub name: String,
    /// Name of the task set.
    pub task_set: String,
    /// The tasks.
    pub tasks: Vec<Arc<Task>>,
    /// Episodes a task.
    pub trials: u32,
    /// Sampling temperature.
    pub temperature: f32,
    /// Decides sampling and the desktops' chances.
    pub seed: u64,
}

impl EvaluationSpec {
    /// Its episodes: all trials of the first task, then of the next.
    pub fn jobs(&self) -> Vec<Job> {
        let mut jobs = Vec::with_capacity(self.tasks.len() * self.trials as usize);
        for (index, task) in self.tasks.iter().enumerate() {
            for trial in 0..self.trials {
                let path = [SEED_EVALUATION, index as u64, u64::from(trial)];
                jobs.push(Job {
                    task: Arc::clone(task),
                    purpose: Purpose::Evaluate,
                    group: None,
                    sample: trial,
                    seed: derive_seed(self.seed, &path),
                    branch: None,
                });
            }
        }
        jobs
    }

    /// The report on what came of them.
    pub fn report(
        &self,
        collection: &Collection,
        policy: PolicyVersion,
        started: Instant,
    ) -> EvalReport {
        let measured: Vec<Measured<'_>> = self.measured(collection).map(|(_, one)| one).collect();
        EvalReport {
            name: self.name.clone(),
            tasks: self.task_set.clone(),
            policy,
            temperature: F::from(self.temperature),
            standard: score_trials(&measured, Protocol::Standard),
            hard: score_trials(&measured, Protocol::Hard),
            plain: score_trials(&measured, Protocol::Plain),
            errors: measured.iter().filter(|one| one.episode.is_none()).count() as u64,
            wall_ms: started.elapsed().as_millis() as u64,
        }
    }

    /// Scores of each family of tasks: of those whose ids agree up to the last `/`.
    pub fn families(&self, collection: &Collection, protocol: Protocol) -> BTreeMap<String, Score> {
        let mut families: BTreeMap<String, Vec<Measured<'_>>> = BTreeMap::new();
        for (task, measured) in self.measured(collection) {
            let id = &task.id.0;
            let family = id
                .rsplit_once('/')
                .map_or(id.as_str(), |(family, _)| family);
            families
                .entry(family.to_owned())
                .or_default()
                .push(measured);
        }
        families
            .into_iter()
            .map(|(family, trials)| (family, score_trials(&trials, protocol).all))
            .collect()
    }

    /// Every trial with its task, in the order of `jobs`.
    fn measured<'a>(
        &'a self,
        collection: &'a Collection,
    ) -> impl Iterator<Item = (&'a Task, Measured<'a>)> {
        let tasks = self
            .tasks
            .iter()
            .flat_map(|task| std::iter::repeat_n(task.as_ref(), self.trials as usize));
        let outcomes = collection.outcomes.iter();
        tasks
            .zip(outcomes)
            .map(|(task, outcome)| (task, Measured::from((outcome, task.is_infeasible()))))
    }
}

/// One trial of a task.
#[derive(Clone, Copy, Debug)]
pub struct Measured<'a> {
    /// Whether the task's right answer is to declare it infeasible.
    pub infeasible: bool,
    /// What came of it; `None` if an error ended it.
    pub episode: Option<&'a Episode>,
}

impl<'a> From<(&'a Outcome, bool)> for Measured<'a> {
    fn from((outcome, infeasible): (&'a Outcome, bool)) -> Self {
        Self {
            infeasible,
            episode: outcome.scored().map(|collected| &collected.episode),
        }
    }
}

/// Scores under one protocol: all, feasible, infeasible.
pub fn score_trials(trials: &[Measured<'_>], protocol: Protocol) -> ProtocolScore {
    let score_of = |keep: &dyn Fn(&Measured<'_>) -> bool| {
        let kept: Vec<Option<f32>> = trials
            .iter()
            .filter(|trial| keep(trial))
            .map(|trial| {
                let episode = trial.episode?;
                let state_score = episode.state_score;
                Some(outcome(
                    protocol,
                    episode.end,
                    trial.infeasible,
                    state_score,
                ))
            })
            .collect();
        score(&kept)
    };
    ProtocolScore {
        all: score_of(&|_| true),
        feasible: score_of(&|trial| !trial.infeasible),
        infeasible: score_of(&|trial| trial.infeasible),
    }
}

/// Figures of outcomes; `None` is a trial that an error ended.
fn score(outcomes: &[Option<f32>]) -> Score {
    let scored = || outcomes.iter().flatten();
    let (n, all) = (scored().count() as u64, outcomes.len() as u64);
    let errors = all - n;
    // From 0: the empty sum of floats is -0, which would be printed.
    let sum = scored().fold(0.0, |sum, outcome| sum + f64::from(*outcome));
    let successes = scored().filter(|outcome| **outcome > 0.5).count() as u64;
    Score {
        score: sum / n.max(1) as f64,
        success: successes as f64 / n.max(1) as f64,
        n,
        interval: wilson_interval(successes, n),
        errors,
        score_bounds: bounds(sum, errors, all),
        success_bounds: bounds(successes as f64, errors, all),
    }
}

/// The mean over `all` trials whose outcomes add up to `sum`, if each of the `errors` among them
/// had been worth 0, and if each had been worth 1.
fn bounds(sum: f64, errors: u64, all: u64) -> (f64, f64) {
    if all == 0 {
        return (0.0, 1.0);
    }
    (sum / all as f64, (sum + errors as f64) / all as f64)
}

/// 95 % interval of a share of `successes` among `n`.
///
/// Source: Wilson, "Probable inference", JASA 22 (1927), with z = 1.959964.
pub fn wilson_interval(successes: u64, n: u64) -> (f64, f64) {
    if n == 0 {
        return (0.0, 1.0);
    }
    let (z, n) = (1.959_964_f64, n as f64);
    let share = successes as f64 / n;
    let scale = 1.0 + z * z / n;
    let center = (share + z * z / (2.0 * n)) / scale;
    let half = z / scale * (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt();
    ((center - half).max(0.0), (center + half).min(1.0))
}
