//! Going back to a step of a recorded episode: its actions are replayed on a fresh desktop, its
//! tokens and pictures are taken over as they are.

use std::sync::Arc;

use crate::env::Observation;
use crate::event::{BranchReplayed, EventKind, NoticeLevel};
use crate::policy::Extension;
use crate::rollout::episode::{RolloutError, Running};
use crate::types::{BranchOrigin, Episode, Screenshot, Step, StepTiming};

/// A recorded episode up to a step.
#[derive(Clone, Debug)]
pub struct Branch {
    run: String,
    episode: Episode,
    screenshots: Vec<Screenshot>,
    steps: usize,
}

impl Branch {
    /// The first `steps` steps of `episode`, of the run of that name, with the screenshot of each.
    /// Fails if it has not so many, or if one of them ended it.
    pub fn new(
        run: &str,
        episode: Episode,
        steps: usize,
        screenshots: Vec<Screenshot>,
    ) -> Result<Self, String> {
        let recorded = episode.steps.len();
        if steps > recorded {
            let id = episode.id;
            return Err(format!(
                "{id} has {recorded} steps: branch at 1 to {recorded}"
            ));
        }
        let ends = |step: &Step| {
            step.actions.is_empty() || step.actions.iter().any(crate::types::Action::is_terminal)
        };
        if let Some(end) = episode.steps[..steps].iter().position(ends) {
            let (id, last) = (episode.id, end + 1);
            return Err(format!(
                "{id} ended with step {last}: branch at 1 to {last}"
            ));
        }
        Ok(Self {
            run: run.to_owned(),
            episode,
            screenshots,
            steps,
        })
    }

    /// What the new episode is labelled with.
    pub fn origin(&self) -> BranchOrigin {
        BranchOrigin {
            run: self.run.clone(),
            episode: self.episode.id,
            steps: self.steps as u32,
        }
    }

    /// The recorded episode.
    pub fn episode(&self) -> &Episode {
        &self.episode
    }
}

impl Running<'_, '_> {
    /// Whether the step to come is the first one after those of a branch.
    pub(super) fn is_branch_end(&self) -> bool {
        let branch = self.job.branch.as_ref();
        branch.is_some_and(|branch| branch.steps == self.steps.len())
    }

    /// Replays the steps of the job's branch, if it has one; what the desktop shows then.
    pub(super) async fn replay(
        &mut self,
        mut observation: Observation,
    ) -> Result<Observation, RolloutError> {
        let Some(branch) = self.job.branch.as_ref().map(Arc::clone) else {
            return Ok(observation);
        };
        let recorded = &branch.episode;
        // What a person did may lie in the steps taken over.
        self.human_touched |= recorded.human_touched && branch.steps > 0;
        let mut differs_at = None;
        for (index, step) in recorded.steps[..branch.steps].iter().enumerate() {
            if !self.pass_gate().await {
                return Err(RolloutError::Cancelled);
            }
            if observation.screenshot.hash() != &step.screenshot {
                differs_at.get_or_insert(index as u32);
            }
            observation = self.replay_step(&branch, index, observation).await?;
        }
        let next = recorded.steps.get(branch.steps);
        if next.is_some_and(|step| observation.screenshot.hash() != &step.screenshot) {
            differs_at.get_or_insert(branch.steps as u32);
        }
        self.pending = Extension {
            ids: self.tokens.ids().to_vec(),
            images: self.screenshots.clone(),
            replies: self.steps.iter().map(|step| step.reply.clone()).collect(),
        };
        self.tell_replayed(&branch, differs_at);
        Ok(observation)
    }

    async fn replay_step(
        &mut self,
        branch: &Branch,
        index: usize,
        mut observation: Observation,
    ) -> Result<Observation, RolloutError> {
        let step = &branch.episode.steps[index];
        self.show(&observation.screenshot);
        self.context.recorder.screenshot(&branch.screenshots[index]);
        let range = self.tokens.len()..step.reply_tokens.1;
        self.tokens.push_part(&branch.episode.tokens, range);
        self.screenshots.push(branch.screenshots[index].clone());
        let before = self.context.clock.now();
        let mut failed = None;
        for action in &step.actions {
            self.actions_done += 1;
            match self.perform(action).await {
                Ok(seen) => observation = seen,
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            }
        }
        let timing = StepTiming {
            observed_at_ms: before.as_millis() as u64,
            ..StepTiming::default()
        };
        let step = Step {
            timing,
            ..step.clone()
        };
        self.finish_step(step, before);
        match failed {
            Some(error) => Err(error),
            None => Ok(observation),
        }
    }

    fn tell_replayed(&self, branch: &Branch, differs_at: Option<u32>) {
        self.emit(EventKind::BranchReplayed(BranchReplayed {
            episode: self.id,
            steps: branch.steps as u32,
            differs_at,
        }));
        if let Some(step) = differs_at {
            let text = format!(
                "the branch {} of {} does not see what was recorded: its screen differs at step {}",
                self.id,
                branch.episode.id,
                step + 1
            );
            let level = NoticeLevel::Warning;
            self.emit(EventKind::Notice { level, text });
        }
    }
}
