//! Many episodes over many desktops.
//!
//! Desktops take the next waiting job when they are free; whoever is ready generates. In lock
//! step, kept for comparison, every live episode waits for the slowest before each step. An
//! evaluation may have some of the desktops meanwhile, an operator end single episodes.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use crate::config::Schedule;
use crate::env::Environment;
use crate::event::{EpisodeBranched, EventKind, Purpose};
use crate::rollout::barrier::Barrier;
use crate::rollout::episode::{Collected, EpisodeContext, Job, Outcome, RolloutError, run_episode};
use crate::rollout::executor;
use crate::rollout::fleet::Fleet;
use crate::rollout::lease::{Lease, LeasedJob};
use crate::types::{EpisodeId, FailedEpisode};

/// How a collection is run.
pub struct CollectSpec<'a> {
    /// Who waits for whom.
    pub schedule: Schedule,
    /// How often a job is tried again after an error of its desktop or evaluator.
    pub max_rerolls: u32,
    /// Which start of the engine this is.
    pub incarnation: u32,
    /// Number of the first episode.
    pub first_episode: u64,
    /// What operators do to it meanwhile.
    pub steering: Steering<'a>,
}

/// A desktop in the place of another, or why there is none.
pub type Reopened = Result<Box<dyn Environment>, String>;

/// What operators do to a collection while it runs; nothing by default.
#[derive(Clone, Default)]
pub struct Steering<'a> {
    /// Single episodes and desktops.
    pub fleet: Fleet,
    /// Trials of an evaluation on some of the desktops.
    pub lease: Lease,
    /// Whether the collection is there for the lease's jobs alone, and ends with them.
    pub leased_only: bool,
    /// Opens a desktop in the place of a closed one of that number; without it none is rebooted.
    pub reopen: Option<&'a (dyn Fn(u32) -> Reopened + 'a)>,
}

/// A job has come to its end.
#[derive(Clone, Copy, Debug)]
pub struct Settled<'a> {
    /// Its index.
    pub index: usize,
    /// What came of it.
    pub outcome: &'a Outcome,
    /// Jobs at their end, this one included.
    pub done: u32,
}

/// What came of a collection.
pub struct Collection {
    /// One outcome a job, in the jobs' order.
    pub outcomes: Vec<Outcome>,
    /// Number of the next episode.
    pub next_episode: u64,
    /// Episodes that an error ended, those tried again included; what operators ended is none.
    pub errors: u32,
}

/// A job that waits: how often it was tried, and how often an error ended it.
#[derive(Clone, Copy)]
struct Waiting {
    index: usize,
    attempt: u32,
    errors: u32,
}

/// What a desktop does next.
enum Work {
    Own(Waiting),
    Leased(LeasedJob),
}

struct Queue<'a> {
    jobs: &'a [Job],
    waiting: RefCell<VecDeque<Waiting>>,
    outcomes: RefCell<Vec<Option<Outcome>>>,
    next_episode: Cell<u64>,
    errors: Cell<u32>,
    done: Cell<u32>,
    spec: CollectSpec<'a>,
    barrier: Option<Barrier>,
    told: &'a dyn Fn(Settled<'_>),
}

/// Runs all jobs over the desktops and returns when each has its outcome. `told` hears of each.
pub async fn collect(
    context: &EpisodeContext<'_>,
    envs: &mut [Box<dyn Environment>],
    jobs: &[Job],
    spec: CollectSpec<'_>,
    told: &dyn Fn(Settled<'_>),
) -> Collection {
    let waiting = (0..jobs.len()).map(|index| Waiting {
        index,
        attempt: 0,
        errors: 0,
    });
    let queue = Queue {
        jobs,
        waiting: RefCell::new(waiting.collect()),
        outcomes: RefCell::new(vec![None; jobs.len()]),
        next_episode: Cell::new(spec.first_episode),
        errors: Cell::new(0),
        done: Cell::new(0),
        barrier: (spec.schedule == Schedule::LockStep).then(Barrier::default),
        spec,
        told,
    };
    let tasks = envs
        .iter_mut()
        .enumerate()
        .map(|(desktop, env)| {
            let queue = &queue;
            Box::pin(serve(context, queue, desktop as u32, env)) as _
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
    env: &mut Box<dyn Environment>,
) {
    loop {
        reboot_if_asked(&queue.spec.steering, desktop, env).await;
        let Some(work) = queue.next(context) else {
            return;
        };
        let job = match &work {
            Work::Own(own) => reseeded(&queue.jobs[own.index], own.attempt),
            Work::Leased(leased) => reseeded(&leased.job, leased.errors),
        };
        let id = queue.begin(context, &job, desktop);
        let evaluation = job.trial_of.map(|trial| trial.evaluation);
        // Whoever ended the episode is answered when the seat is left, after the last event.
        let fleet = &queue.spec.steering.fleet;
        let mut seat = fleet.enter(id, desktop, evaluation);
        let _debugged = context.debugger.seat(id, desktop);
        let began = context.clock.now();
        let barrier = queue.barrier.as_ref();
        let ran = run_episode(context, env.as_mut(), &job, id, barrier, &mut seat).await;
        match ran {
            Ok(collected) => {
                let clock_ms = context.clock.now().saturating_sub(began).as_millis() as u64;
                context
                    .recorder
                    .emit(finished_event(&collected, job.purpose, clock_ms));
                queue.settle(&work, Outcome::Scored(Box::new(collected)));
            }
            Err(error) => queue.fail(context, work, &job, id, &error),
        }
    }
}

/// Closes the desktop and opens it anew if an operator wants it.
async fn reboot_if_asked(steering: &Steering<'_>, desktop: u32, env: &mut Box<dyn Environment>) {
    let Some(answers) = steering.fleet.take_reboot(desktop) else {
        return;
    };
    let reopened = match steering.reopen {
        Some(reopen) => {
            if let Err(error) = env.close().await {
                // It is being replaced because something is wrong with it.
                tracing::warn!(%error, desktop, "closing a desktop to reboot it");
            }
            reopen(desktop).map(|opened| *env = opened)
        }
        None => Err("these desktops cannot be rebooted".to_owned()),
    };
    for answer in answers {
        answer(reopened.clone());
    }
}

impl Queue<'_> {
    /// The next job of a free desktop: a leased one if it may have one, and only while the
    /// collection itself goes on.
    fn next(&self, context: &EpisodeContext<'_>) -> Option<Work> {
        let steering = &self.spec.steering;
        let goes_on = steering.leased_only || (self.done.get() as usize) < self.jobs.len();
        if goes_on
            && !context.gate.is_shut()
            && let Some(leased) = steering.lease.take()
        {
            return Some(Work::Leased(leased));
        }
        self.waiting.borrow_mut().pop_front().map(Work::Own)
    }

    fn begin(&self, context: &EpisodeContext<'_>, job: &Job, desktop: u32) -> EpisodeId {
        let id = EpisodeId {
            incarnation: self.spec.incarnation,
            number: self.next_episode.get(),
        };
        self.next_episode.set(id.number + 1);
        context.recorder.emit(EventKind::EpisodeStarted {
            episode: id,
            purpose: job.purpose,
            group: job.group,
            sample: job.sample,
            task: job.task.id.clone(),
            desktop,
            evaluation: job.trial_of.map(|trial| trial.evaluation),
            infeasible: job.task.is_infeasible(),
        });
        if let Some(branch) = &job.branch {
            let from = branch.origin();
            let branched = EpisodeBranched { episode: id, from };
            context.recorder.emit(EventKind::EpisodeBranched(branched));
        }
        id
    }

    fn settle(&self, work: &Work, outcome: Outcome) {
        let index = match work {
            Work::Own(own) => own.index,
            Work::Leased(leased) => {
                self.spec.steering.lease.settle(leased.index, outcome);
                return;
            }
        };
        self.done.set(self.done.get() + 1);
        (self.told)(Settled {
            index,
            outcome: &outcome,
            done: self.done.get(),
        });
        self.outcomes.borrow_mut()[index] = Some(outcome);
    }

    fn fail(
        &self,
        context: &EpisodeContext<'_>,
        work: Work,
        job: &Job,
        id: EpisodeId,
        error: &RolloutError,
    ) {
        let errors = match &work {
            Work::Own(own) => own.errors,
            Work::Leased(leased) => leased.errors,
        };
        // What operators end on purpose is nobody's error, and costs none of the tries.
        let asked = matches!(error, RolloutError::Ended(_));
        let tries_left = asked || errors < self.spec.max_rerolls;
        let rerolled = error.is_worth_rerolling() && tries_left;
        if let (Work::Own(_), false) = (&work, asked) {
            self.errors.set(self.errors.get() + 1);
        }
        context.recorder.emit(EventKind::EpisodeFailed {
            episode: id,
            purpose: job.purpose,
            task: job.task.id.clone(),
            class: error.class(),
            message: error.to_string(),
            rerolled,
        });
        let errors = errors + u32::from(!asked);
        let work = match work {
            work if !rerolled => work,
            Work::Own(own) => {
                self.waiting.borrow_mut().push_front(Waiting {
                    attempt: own.attempt + 1,
                    errors,
                    ..own
                });
                return;
            }
            // A trial keeps its chances unless an error spoilt them.
            Work::Leased(leased) => {
                let again = LeasedJob { errors, ..leased };
                let Some(revoked) = self.spec.steering.lease.put_back(again) else {
                    return;
                };
                Work::Leased(revoked)
            }
        };
        let failed = Outcome::Failed(FailedEpisode {
            id,
            task: job.task.id.clone(),
            group: job.group,
            sample: job.sample,
            class: error.class(),
            message: error.to_string(),
            steps: 0,
        });
        self.settle(&work, failed);
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
