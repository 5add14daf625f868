//! Many episodes over many desktops.
//!
//! Desktops take the next waiting job when they are free; whoever is ready generates. In lock
//! step, kept for comparison, every live episode waits for the slowest before each step.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use crate::config::Schedule;
use crate::env::Environment;
use crate::event::{EpisodeBranched, EventKind, Purpose};
use crate::rollout::barrier::Barrier;
use crate::rollout::episode::{Collected, EpisodeContext, Job, Outcome, RolloutError, run_episode};
use crate::rollout::executor;
use crate::types::{EpisodeId, FailedEpisode};

/// How a collection is run.
pub struct CollectSpec {
    /// Who waits for whom.
    pub schedule: Schedule,
    /// How often a job is tried again after an error of its desktop or evaluator.
    pub max_rerolls: u32,
    /// Which start of the engine this is.
    pub incarnation: u32,
    /// Number of the first episode.
    pub first_episode: u64,
}

/// What came of a collection.
pub struct Collection {
    /// One outcome a job, in the jobs' order.
    pub outcomes: Vec<Outcome>,
    /// Number of the next episode.
    pub next_episode: u64,
    /// Episodes that an error ended, those tried again included.
    pub errors: u32,
}

struct Queue<'a> {
    jobs: &'a [Job],
    waiting: RefCell<VecDeque<(usize, u32)>>,
    outcomes: RefCell<Vec<Option<Outcome>>>,
    next_episode: Cell<u64>,
    errors: Cell<u32>,
    done: Cell<u32>,
    spec: CollectSpec,
    barrier: Option<Barrier>,
}

/// Runs all jobs over the desktops and returns when each has its outcome.
pub async fn collect(
    context: &EpisodeContext<'_>,
    envs: &mut [Box<dyn Environment>],
    jobs: &[Job],
    spec: CollectSpec,
    progress: &dyn Fn(u32),
) -> Collection {
    let queue = Queue {
        jobs,
        waiting: RefCell::new((0..jobs.len()).map(|index| (index, 0)).collect()),
        outcomes: RefCell::new(vec![None; jobs.len()]),
        next_episode: Cell::new(spec.first_episode),
        errors: Cell::new(0),
        done: Cell::new(0),
        barrier: (spec.schedule == Schedule::LockStep).then(Barrier::default),
        spec,
    };
    let tasks = envs
        .iter_mut()
        .enumerate()
        .map(|(desktop, env)| {
            let queue = &queue;
            Box::pin(serve(
                context,
                queue,
                desktop as u32,
                env.as_mut(),
                progress,
            )) as _
        })
        .collect();
    executor::run(&context.clock, context.policy, tasks).await;
    let outcomes = queue.outcomes.into_inner().into_iter();
    Collection {
        outcomes: outcomes
            .map(|one| one.expect("each desktop serves until no job waits"))
            .collect(),
        next_episode: queue.next_episode.get(),
        errors: queue.errors.get(),
    }
}

/// One desktop's life during a collection.
async fn serve(
    context: &EpisodeContext<'_>,
    queue: &Queue<'_>,
    desktop: u32,
    env: &mut dyn Environment,
    progress: &dyn Fn(u32),
) {
    loop {
        let next = queue.waiting.borrow_mut().pop_front();
        let Some((index, attempt)) = next else { return };
        let job = &queue.jobs[index];
        let id = EpisodeId {
            incarnation: queue.spec.incarnation,
            number: queue.next_episode.get(),
        };
        queue.next_episode.set(id.number + 1);
        context.recorder.emit(EventKind::EpisodeStarted {
            episode: id,
            purpose: job.purpose,
            group: job.group,
            sample: job.sample,
            task: job.task.id.clone(),
            desktop,
        });
        if let Some(branch) = &job.branch {
            let from = branch.origin();
            context
                .recorder
                .emit(EventKind::EpisodeBranched(EpisodeBranched {
                    episode: id,
                    from,
                }));
        }
        let _seat = context.debugger.seat(id, desktop);
        let began = context.clock.now();
        let barrier = queue.barrier.as_ref();
        match run_episode(context, env, &reseeded(job, attempt), id, barrier).await {
            Ok(collected) => {
                let clock_ms = context.clock.now().saturating_sub(began).as_millis() as u64;
                context
                    .recorder
                    .emit(finished_event(&collected, job.purpose, clock_ms));
                queue.settle(index, Outcome::Scored(Box::new(collected)));
            }
            Err(error) => queue.fail(context, (index, attempt), id, &error),
        }
        progress(queue.done.get());
    }
}

impl Queue<'_> {
    fn settle(&self, index: usize, outcome: Outcome) {
        self.outcomes.borrow_mut()[index] = Some(outcome);
        self.done.set(self.done.get() + 1);
    }

    fn fail(
        &self,
        context: &EpisodeContext<'_>,
        (index, attempt): (usize, u32),
        id: EpisodeId,
        error: &RolloutError,
    ) {
        let job = &self.jobs[index];
        let rerolled = error.is_worth_rerolling() && attempt < self.spec.max_rerolls;
        self.errors.set(self.errors.get() + 1);
        context.recorder.emit(EventKind::EpisodeFailed {
            episode: id,
            purpose: job.purpose,
            task: job.task.id.clone(),
            class: error.class(),
            message: error.to_string(),
            rerolled,
        });
        if rerolled {
            self.waiting.borrow_mut().push_front((index, attempt + 1));
            return;
        }
        self.settle(
            index,
            Outcome::Failed(FailedEpisode {
                id,
                task: job.task.id.clone(),
                group: job.group,
                sample: job.sample,
                class: error.class(),
                message: error.to_string(),
                steps: 0,
            }),
        );
    }
}

/// A job tried again draws other chances.
fn reseeded(job: &Job, attempt: u32) -> Job {
    let mut job = job.clone();
    if attempt > 0 {
        job.seed = crate::types::derive_seed(job.seed, &[u64::from(attempt)]);
    }
    job
}

fn finished_event(collected: &Collected, purpose: Purpose, clock_ms: u64) -> EventKind {
    let episode = &collected.episode;
    EventKind::EpisodeFinished {
        episode: episode.id,
        purpose,
        task: episode.task.clone(),
        end: episode.end,
        outcome: episode.reward.outcome,
        format: episode.reward.format,
        state_score: episode.state_score,
        steps: episode.steps.len() as u32,
        tokens: episode.tokens.len() as u32,
        sampled_tokens: episode.tokens.num_sampled() as u32,
        clock_ms,
        human_touched: episode.human_touched,
    }
}
