//! Measuring a policy: the same rollouts, three scores from each trajectory.

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
        let episodes: Vec<&Episode> = collection
            .outcomes
            .iter()
            .filter_map(Outcome::scored)
            .map(|c| &c.episode)
            .collect();
        EvalReport {
            name: self.name.clone(),
            tasks: self.task_set.clone(),
            policy,
            temperature: F::from(self.temperature),
            standard: score_episodes(&episodes, Protocol::Standard),
            hard: score_episodes(&episodes, Protocol::Hard),
            plain: score_episodes(&episodes, Protocol::Plain),
            errors: (collection.outcomes.len() - episodes.len()) as u64,
            wall_ms: started.elapsed().as_millis() as u64,
        }
    }
}

/// Scores under one protocol: all, feasible, infeasible.
pub fn score_episodes(episodes: &[&Episode], protocol: Protocol) -> ProtocolScore {
    let outcomes = |keep: &dyn Fn(&Episode) -> bool| -> Vec<f32> {
        let kept = episodes.iter().filter(|episode| keep(episode));
        kept.map(|e| outcome(protocol, e.end, e.infeasible, e.state_score))
            .collect()
    };
    ProtocolScore {
        all: score(&outcomes(&|_| true)),
        feasible: score(&outcomes(&|episode| !episode.infeasible)),
        infeasible: score(&outcomes(&|episode| episode.infeasible)),
    }
}

fn score(outcomes: &[f32]) -> Score {
    let n = outcomes.len() as u64;
    if n == 0 {
        return Score {
            score: 0.0,
            success: 0.0,
            n,
            interval: (0.0, 1.0),
        };
    }
    let successes = outcomes.iter().filter(|outcome| **outcome > 0.5).count() as u64;
    Score {
        score: outcomes
            .iter()
            .map(|outcome| f64::from(*outcome))
            .sum::<f64>()
            / n as f64,
        success: successes as f64 / n as f64,
        n,
        interval: wilson_interval(successes, n),
    }
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
