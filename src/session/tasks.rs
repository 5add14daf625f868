//! Which tasks an iteration takes.

use std::path::Path;
use std::sync::Arc;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;

use crate::env::simulated::suite;
use crate::session::SessionError;
use crate::types::{Task, TaskId, derive_seed};

const SEED_ORDER: u64 = 0x7461_736b;

/// Tasks in shuffled epochs. A pure function of seed and iteration: nothing to save.
#[derive(Clone, Debug)]
pub struct TaskPool {
    tasks: Vec<Arc<Task>>,
    seed: u64,
    shuffle: bool,
}

impl TaskPool {
    /// A pool of at least one task.
    pub fn new(tasks: Vec<Arc<Task>>, seed: u64, shuffle: bool) -> Result<Self, SessionError> {
        if tasks.is_empty() {
            return Err(SessionError::Tasks(
                "the task pool is empty; set tasks.pool".to_owned(),
            ));
        }
        Ok(Self {
            tasks,
            seed,
            shuffle,
        })
    }

    /// Number of tasks.
    pub fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Whether it has no task; never true.
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// The `count` tasks of an iteration, epoch after epoch, each epoch in an order of its own.
    pub fn batch(&self, iteration: u64, count: usize) -> Vec<Arc<Task>> {
        let start = iteration * count as u64;
        (start..start + count as u64)
            .map(|position| self.at(position))
            .collect()
    }

    fn at(&self, position: u64) -> Arc<Task> {
        let epoch = position / self.tasks.len() as u64;
        let mut order: Vec<usize> = (0..self.tasks.len()).collect();
        if self.shuffle {
            let seed = derive_seed(self.seed, &[SEED_ORDER, epoch]);
            order.shuffle(&mut Pcg64Mcg::seed_from_u64(seed));
        }
        Arc::clone(&self.tasks[order[(position % self.tasks.len() as u64) as usize]])
    }
}

/// The tasks of a list file: a JSON array of task ids, or of OSWorld's `{domain: [ids]}`.
pub fn load_tasks(path: &Path) -> Result<Vec<Arc<Task>>, SessionError> {
    let at = |reason: String| SessionError::Tasks(format!("{}: {reason}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| at(error.to_string()))?;
    let ids: Vec<TaskId> = serde_json::from_str(&text)
        .map_err(|error| at(format!("not a JSON array of task ids: {error}")))?;
    ids.iter()
        .map(|id| {
            suite::task_by_id(id)
                .map(Arc::new)
                .map_err(|error| at(error.to_string()))
        })
        .collect()
}
