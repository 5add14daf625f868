//! How events of the replay buffer fold.

use std::collections::VecDeque;

use crate::event::{
    EpisodeState, Injection, MemberPlace, RunState, StepSignal, StoredFrame, StoredSuccess,
};
use crate::types::{EpisodeId, GroupId, TaskId};

use super::USES_KEPT;
use super::fold::push_bounded;

impl RunState {
    pub(super) fn replay_injected(&mut self, id: GroupId, injection: Injection) {
        self.counters.replaced += 1;
        let Some(group) = self.groups.get_mut(&id) else {
            return;
        };
        let place = group.members.get(injection.sample as usize);
        let member = place.copied().flatten();
        if let Some(episode) = member.and_then(|member| self.episodes.get_mut(&member)) {
            episode.replaced_by = Some(injection.source);
        }
        let replay = self.replay.entry(group.task.clone()).or_default();
        replay.injected += 1;
        replay.last_injected = Some(id.iteration);
        let mut successes = replay.successes.iter_mut();
        if let Some(success) = successes.find(|s| s.episode == injection.source) {
            success.used += 1;
            let place = MemberPlace {
                group: id,
                sample: injection.sample,
            };
            push_bounded(&mut success.uses, place, USES_KEPT);
        }
        group.injected.push(injection);
    }

    pub(super) fn replay_stored(&mut self, task: &TaskId, id: EpisodeId, stored: u32, at_ms: u64) {
        self.counters.stored += 1;
        let episode = self.episodes.get(&id);
        let source = episode.and_then(|episode| {
            let sample = episode.sample;
            episode.group.map(|group| MemberPlace { group, sample })
        });
        let success = StoredSuccess {
            episode: id,
            iteration: self.iteration.unwrap_or_default(),
            at_ms,
            used: 0,
            pinned: false,
            policy: self.policy,
            source,
            uses: VecDeque::new(),
            learned: Vec::new(),
            frames: episode.map_or(Vec::new(), stored_frames),
        };
        let replay = self.replay.entry(task.clone()).or_default();
        replay.successes.push_back(success);
        // As the buffer does it: the oldest that is not pinned leaves.
        while replay.successes.len() > stored as usize {
            let oldest = replay.successes.iter().position(|one| !one.pinned);
            replay.successes.remove(oldest.unwrap_or(0));
        }
        if let Some(episode) = self.episodes.get_mut(&id) {
            episode.stored = true;
        }
    }

    pub(super) fn stored_pinned(&mut self, task: &TaskId, id: EpisodeId, pinned: bool) {
        let successes = self
            .replay
            .get_mut(task)
            .map(|of_task| &mut of_task.successes);
        let mut found = successes.into_iter().flatten();
        if let Some(success) = found.find(|one| one.episode == id) {
            success.pinned = pinned;
        }
    }

    pub(super) fn stored_dropped(&mut self, task: &TaskId, id: EpisodeId) {
        if let Some(of_task) = self.replay.get_mut(task) {
            of_task.successes.retain(|one| one.episode != id);
        }
        if let Some(episode) = self.episodes.get_mut(&id) {
            episode.stored = false;
        }
    }

    pub(super) fn episode_learned(&mut self, id: EpisodeId, replayed: bool, steps: &[StepSignal]) {
        if replayed {
            let mut stored = self
                .replay
                .values_mut()
                .flat_map(|task| &mut task.successes);
            if let Some(success) = stored.find(|success| success.episode == id) {
                success.learned = steps.to_vec();
            }
        } else if let Some(episode) = self.episodes.get_mut(&id) {
            episode.learned = steps.to_vec();
        }
    }
}

/// What an episode saw and did, and its last screen.
fn stored_frames(episode: &EpisodeState) -> Vec<StoredFrame> {
    let steps = episode.steps.iter().map(|step| StoredFrame {
        image: step.image.clone(),
        actions: step.actions.clone(),
    });
    let last = episode.final_image.iter().map(|image| StoredFrame {
        image: Some(image.clone()),
        actions: Vec::new(),
    });
    steps.chain(last).collect()
}
