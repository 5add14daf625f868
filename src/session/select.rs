//! Task selection: which tasks a policy solves at least now and then.
//!
//! Source: the paper's filter, 16 rollouts a task, kept with at least one success. The
//! successes found on the way can fill a run's replay buffer before it starts.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::config::ReplayConfig;
use crate::event::{Phase, Purpose};
use crate::grpo::Replay;
use crate::rollout::{Job, Outcome};
use crate::session::SessionError;
use crate::session::collector::Collector;
use crate::store::{RunDir, StoreError};
use crate::types::{EpisodeId, Iteration, Task, TaskId, derive_seed};

const SEED_SELECT: u64 = 0x7365_6c65;
/// The file of a selection's run that lists its successes.
const SUCCESSES: &str = "successes.json";

/// What a selection tries.
#[derive(Clone, Debug)]
pub struct SelectSpec {
    /// The tasks.
    pub tasks: Vec<Arc<Task>>,
    /// Episodes a task.
    pub rollouts: u32,
    /// Successes a task needs to be kept.
    pub min_successes: u32,
    /// Successes it may have at most.
    pub max_successes: u32,
    /// Tasks kept at most.
    pub max_tasks: usize,
    /// Sampling temperature.
    pub temperature: f32,
    /// Decides sampling and the desktops' chances.
    pub seed: u64,
}

/// How often a task was solved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskRecord {
    /// The task.
    pub task: TaskId,
    /// Episodes with an outcome above 0.5.
    pub successes: u32,
    /// Episodes scored.
    pub scored: u32,
    /// Whether it is kept.
    pub kept: bool,
}

/// What came of a selection, in the tasks' order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Selection {
    /// Every task tried.
    pub tasks: Vec<TaskRecord>,
    /// Episodes that an error ended, those tried again included.
    pub errors: u32,
}

impl Selection {
    /// The tasks kept.
    pub fn kept(&self) -> Vec<TaskId> {
        self.tasks
            .iter()
            .filter(|record| record.kept)
            .map(|r| r.task.clone())
            .collect()
    }
}

/// Rolls every task out and counts; writes successes into `run`. `None` if stopped meanwhile.
pub async fn select(
    collector: &mut Collector,
    spec: &SelectSpec,
    run: &RunDir,
) -> Result<Option<Selection>, SessionError> {
    let jobs = jobs(spec);
    collector.begin_phase(Phase::Evaluate, jobs.len() as u32);
    let started = std::time::Instant::now();
    let collection = collector
        .collect(&jobs, spec.temperature, Phase::Evaluate)
        .await?;
    collector.end_phase(Phase::Evaluate, started);
    if collector.control.is_stopping() {
        return Ok(None);
    }
    let mut counts: BTreeMap<TaskId, (u32, u32)> = BTreeMap::new();
    let mut successes = Vec::new();
    for episode in collection
        .outcomes
        .iter()
        .filter_map(Outcome::scored)
        .map(|c| &c.episode)
    {
        let count = counts.entry(episode.task.clone()).or_default();
        count.1 += 1;
        if episode.reward.outcome > 0.5 {
            count.0 += 1;
            run.put_episode(episode)?;
            successes.push(episode.id);
        }
    }
    write_successes(run, &successes)?;
    let record = |task: &Arc<Task>| {
        let (successes, scored) = counts.get(&task.id).copied().unwrap_or_default();
        let kept = (spec.min_successes..=spec.max_successes).contains(&successes);
        TaskRecord {
            task: task.id.clone(),
            successes,
            scored,
            kept,
        }
    };
    let mut tasks: Vec<TaskRecord> = spec.tasks.iter().map(record).collect();
    thin(&mut tasks, spec.max_tasks);
    Ok(Some(Selection {
        tasks,
        errors: collection.errors,
    }))
}

/// Keeps at most `most` of the tasks kept so far, spread evenly over how often they were solved.
pub(super) fn thin(tasks: &mut [TaskRecord], most: usize) {
    let mut kept: Vec<usize> = (0..tasks.len()).filter(|i| tasks[*i].kept).collect();
    if kept.len() <= most {
        return;
    }
    kept.sort_by_key(|i| tasks[*i].successes);
    for place in 0..most {
        // The middle of each of `most` equal parts.
        let chosen = (2 * place + 1) * kept.len() / (2 * most);
        kept[chosen] = usize::MAX;
    }
    for dropped in kept.into_iter().filter(|i| *i != usize::MAX) {
        tasks[dropped].kept = false;
    }
}

fn jobs(spec: &SelectSpec) -> Vec<Job> {
    let job = |index: usize, task: &Arc<Task>, sample: u32| {
        let seed = derive_seed(spec.seed, &[SEED_SELECT, index as u64, u64::from(sample)]);
        Job {
            sample,
            ..Job::alone(Arc::clone(task), Purpose::Select, seed)
        }
    };
    let tasks = spec.tasks.iter().enumerate();
    tasks
        .flat_map(|(i, task)| (0..spec.rollouts).map(move |s| job(i, task, s)))
        .collect()
}

fn write_successes(run: &RunDir, successes: &[EpisodeId]) -> Result<(), SessionError> {
    let path = run.root().join(SUCCESSES);
    let text = serde_json::to_vec(successes).expect("plain data has a JSON form");
    Ok(std::fs::write(&path, text).map_err(StoreError::io("write", &path))?)
}

/// Fills a replay buffer with the successes of a selection's run, whose pictures are copied.
pub(super) fn prefill(
    replay: &mut Replay,
    from: &Path,
    into: &RunDir,
    config: &ReplayConfig,
) -> Result<usize, SessionError> {
    let source = RunDir::open(from)?;
    let path = from.join(SUCCESSES);
    let text = std::fs::read(&path).map_err(StoreError::io("read", &path))?;
    let ids: Vec<EpisodeId> = serde_json::from_slice(&text)
        .map_err(|error| StoreError::damaged(&path, error.to_string()))?;
    let mut stored = 0;
    for id in ids {
        let mut episode = source.episode(id)?;
        for step in &episode.steps {
            into.put_png(&step.screenshot, &source.png(&step.screenshot)?)?;
        }
        episode.group = None;
        stored += usize::from(replay.insert(&episode, Iteration(0), config));
    }
    Ok(stored)
}
