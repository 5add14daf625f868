//! Measuring a policy: the same rollouts, three scores from each trajectory.

use std::sync::Arc;

use crate::event::score::score_trials;
use crate::event::{EvalManifest, EvalReport, F, Purpose, TrialRow};
use crate::rollout::{Job, Outcome, TrialOf};
use crate::types::{Protocol, Task, derive_seed};

const SEED_EVALUATION: u64 = 0x6576_616c;

/// What is measured and how.
#[derive(Clone, Debug)]
pub struct EvaluationSpec {
    /// What for: `heldout_first`, `heldout_last`, `eval`, or `operator`.
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
    /// Its episodes: all trials of the first task, then of the next. `trial_of` is what each
    /// takes from the evaluation.
    pub fn jobs(&self, trial_of: TrialOf) -> Vec<Job> {
        let mut jobs = Vec::with_capacity(self.total() as usize);
        for (index, task) in self.tasks.iter().enumerate() {
            for trial in 0..self.trials {
                let path = [SEED_EVALUATION, index as u64, u64::from(trial)];
                jobs.push(Job {
                    task: Arc::clone(task),
                    purpose: Purpose::Evaluate,
                    group: None,
                    sample: trial,
                    seed: derive_seed(self.seed, &path),
                    trial_of: Some(trial_of),
                    branch: None,
                });
            }
        }
        jobs
    }

    /// Number of its episodes.
    pub fn total(&self) -> u32 {
        self.tasks.len() as u32 * self.trials
    }

    /// Index among its episodes of a trial, if it has such a one.
    pub fn index_of(&self, row: &TrialRow) -> Option<usize> {
        let task = self.tasks.iter().position(|task| task.id == row.task)?;
        (row.trial < self.trials).then(|| task * self.trials as usize + row.trial as usize)
    }

    /// What came of one of its episodes.
    pub fn row(&self, index: usize, outcome: &Outcome) -> TrialRow {
        let task = &self.tasks[index / self.trials as usize];
        let row = TrialRow {
            task: task.id.clone(),
            domain: task.domain().to_owned(),
            trial: (index % self.trials as usize) as u32,
            infeasible: task.is_infeasible(),
            episode: match outcome {
                Outcome::Scored(collected) => collected.episode.id,
                Outcome::Failed(failed) => failed.id,
            },
            end: None,
            state_score: 0.0,
            steps: 0,
            error: None,
        };
        match outcome {
            Outcome::Scored(collected) => TrialRow {
                end: Some(collected.episode.end),
                state_score: collected.episode.state_score,
                steps: collected.episode.steps.len() as u32,
                ..row
            },
            Outcome::Failed(failed) => TrialRow {
                error: Some(failed.message.clone()),
                ..row
            },
        }
    }

    /// The report on its trials, in order.
    pub fn report(
        &self,
        number: u32,
        rows: &[TrialRow],
        manifest: &EvalManifest,
        wall_ms: u64,
    ) -> EvalReport {
        EvalReport {
            name: self.name.clone(),
            tasks: self.task_set.clone(),
            policy: manifest.policy,
            temperature: F(shortest(self.temperature)),
            standard: score_trials(rows, Protocol::Standard),
            hard: score_trials(rows, Protocol::Hard),
            plain: score_trials(rows, Protocol::Plain),
            errors: rows.iter().filter(|row| row.end.is_none()).count() as u64,
            wall_ms,
            evaluation: Some(number),
            manifest: Some(Box::new(manifest.clone())),
        }
    }
}

/// A setting as it was written: 0.6 and not the 0.6000000238 that its 32 bits stand for.
fn shortest(value: f32) -> f64 {
    value
        .to_string()
        .parse()
        .unwrap_or_else(|_| f64::from(value))
}
