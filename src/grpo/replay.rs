//! The per-task replay buffer of successes.
//!
//! Invariants: a draw happens before this iteration's successes enter; raw outcomes of this
//! iteration's members decide, never replayed ones; with `enabled = false` nothing is stored
//! and nothing drawn.

use std::collections::{BTreeMap, VecDeque};

use rand::Rng;
use serde::{Deserialize, Serialize};

use crate::config::{ReplacedMember, ReplayConfig};
use crate::grpo::advantage::{mean, population_std};
use crate::types::{Episode, EpisodeId, Iteration, TaskId};

/// A stored success.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stored {
    /// The episode; its screenshots lie in the run directory under their hashes.
    pub episode: Episode,
    /// The iteration that stored it.
    pub stored_at: Iteration,
    /// Whether an operator keeps it whatever newer ones come.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pinned: bool,
}

/// A stored success takes a member's place.
#[derive(Clone, Debug, PartialEq)]
pub struct Injection {
    /// Index of the member among the group's, failed ones counted.
    pub member: usize,
    /// The success.
    pub stored: Stored,
}

/// Successes by task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Replay {
    tasks: BTreeMap<TaskId, VecDeque<Stored>>,
}

impl Replay {
    /// Whether a group calls for a stored success, which one, and in whose place.
    ///
    /// `outcomes` are the group's raw outcomes, `None` for members that an error ended. The
    /// trigger is a population standard deviation below `std_below` together with a mean below
    /// `mean_below` over the valid ones; fewer than two valid members train nothing and draw
    /// nothing.
    ///
    /// Source: ARPO@7489ae3 `ray_trainer.py` `apply_replay`. Departs: the member replaced is
    /// drawn at random, as the paper has it (`replaced = "first"` is the code's way); format
    /// failures and errors are told apart; stored successes may age.
    pub fn draw(
        &self,
        task: &TaskId,
        outcomes: &[Option<f32>],
        now: Iteration,
        config: &ReplayConfig,
        rng: &mut impl Rng,
    ) -> Option<Injection> {
        if !config.enabled || !is_all_failed(outcomes, config) {
            return None;
        }
        let fresh: Vec<&Stored> = self
            .tasks
            .get(task)?
            .iter()
            .filter(|stored| is_fresh(stored, now, config.max_age_iterations))
            .collect();
        if fresh.is_empty() {
            return None;
        }
        let valid: Vec<usize> = (0..outcomes.len())
            .filter(|&member| outcomes[member].is_some())
            .collect();
        let member = match config.replaced {
            ReplacedMember::First => valid[0],
            ReplacedMember::Random => valid[rng.random_range(0..valid.len())],
        };
        let stored = fresh[rng.random_range(0..fresh.len())].clone();
        Some(Injection { member, stored })
    }

    /// Stores an episode if it is a well-formed success that no person touched; true if it
    /// was. The oldest of a full task that is not pinned leaves; where all are, none enters.
    pub fn insert(&mut self, episode: &Episode, now: Iteration, config: &ReplayConfig) -> bool {
        let worthy = config.enabled
            && config.capacity > 0
            && episode.reward.outcome > config.insert_above as f32
            && episode.is_well_formed()
            && !episode.human_touched;
        if !worthy {
            return false;
        }
        let stored = self.tasks.entry(episode.task.clone()).or_default();
        while stored.len() >= config.capacity {
            let Some(oldest) = stored.iter().position(|one| !one.pinned) else {
                return false;
            };
            stored.remove(oldest);
        }
        stored.push_back(Stored {
            episode: episode.clone(),
            stored_at: now,
            pinned: false,
        });
        true
    }

    /// Pins a stored success or lets it go; false if there is none such.
    pub fn pin(&mut self, task: &TaskId, episode: EpisodeId, pinned: bool) -> bool {
        let mut stored = self.tasks.get_mut(task).into_iter().flatten();
        let found = stored.find(|one| one.episode.id == episode);
        if let Some(one) = found {
            one.pinned = pinned;
            return true;
        }
        false
    }

    /// Removes a stored success; false if there is none such.
    pub fn remove(&mut self, task: &TaskId, episode: EpisodeId) -> bool {
        let Some(stored) = self.tasks.get_mut(task) else {
            return false;
        };
        let before = stored.len();
        stored.retain(|one| one.episode.id != episode);
        let removed = stored.len() < before;
        if stored.is_empty() {
            self.tasks.remove(task);
        }
        removed
    }

    /// Stored successes of a task, oldest first.
    pub fn of_task(&self, task: &TaskId) -> impl Iterator<Item = &Stored> {
        self.tasks.get(task).into_iter().flatten()
    }

    /// All stored successes.
    pub fn iter(&self) -> impl Iterator<Item = &Stored> {
        self.tasks.values().flatten()
    }

    /// How many are stored.
    pub fn len(&self) -> usize {
        self.tasks.values().map(VecDeque::len).sum()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

fn is_all_failed(outcomes: &[Option<f32>], config: &ReplayConfig) -> bool {
    let valid: Vec<f32> = outcomes.iter().copied().flatten().collect();
    valid.len() >= 2
        && f64::from(population_std(&valid)) < config.std_below
        && f64::from(mean(&valid)) < config.mean_below
}

fn is_fresh(stored: &Stored, now: Iteration, max_age: u64) -> bool {
    max_age == 0 || now.0.saturating_sub(stored.stored_at.0) <= max_age
}
