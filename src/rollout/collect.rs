//! Many episodes over many desktops.
//!
//! Desktops take the next waiting job when they are free; whoever is ready generates. In lock
//! step, kept for comparison, every live episode waits for the slowest before each step. An
//! evaluation may have some of the desktops meanwhile, an operator end single episodes. What a real
//! desktop fails at is tried on another if one is free.

use crate::config::Schedule;
use crate::env::{EnvError, Environment};
use crate::rollout::barrier::Barrier;
use crate::rollout::care::{Care, Start, reboot_if_asked, tend};
use crate::rollout::episode::{Collected, EpisodeContext, Job, Outcome, RolloutError, run_episode};
use crate::rollout::executor;
use crate::rollout::fleet::Fleet;
use crate::rollout::lease::Lease;
use crate::rollout::queue::{Next, On, Queue, Work, finished_event};

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
    /// What becomes of real desktops that do not start.
    pub care: Care,
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
    /// Why no desktop was left, if that ended it: the jobs that waited failed with this.
    pub stranded: Option<String>,
}

/// Runs all jobs over the desktops and returns when each has its outcome. `told` hears of each.
pub async fn collect(
    context: &EpisodeContext<'_>,
    envs: &mut [Box<dyn Environment>],
    jobs: &[Job],
    spec: CollectSpec<'_>,
    told: &dyn Fn(Settled<'_>),
) -> Collection {
    let barrier = (spec.schedule == Schedule::LockStep).then(Barrier::default);
    let queue = Queue::new(jobs, envs.len() as u32, spec, barrier, told);
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
        stranded: queue.stranded.into_inner(),
    }
}

/// One desktop's life during a collection.
async fn serve(
    context: &EpisodeContext<'_>,
    queue: &Queue<'_>,
    desktop: u32,
    env: &mut Box<dyn Environment>,
) {
    let steering = queue.steering();
    loop {
        // Before anything is looked at, so that no change of it is missed.
        let changes = steering.fleet.changes();
        reboot_if_asked(steering, desktop, env).await;
        match queue.next(context, desktop) {
            Next::Over => {
                // Who waits finds that out by looking, too.
                steering.fleet.nudge();
                return;
            }
            Next::Wait => queue.wait(context, desktop, changes).await,
            Next::Work(work) => {
                let start = run(context, queue, desktop, env.as_mut(), work).await;
                if !context.clock.is_virtual() {
                    tend(context, queue, desktop, env, start).await;
                }
            }
        }
    }
}

/// Runs one job on a desktop; what that has shown of the desktop.
async fn run(
    context: &EpisodeContext<'_>,
    queue: &Queue<'_>,
    desktop: u32,
    env: &mut dyn Environment,
    work: Work,
) -> Start {
    let job = queue.job(&work);
    let id = queue.begin(context, &job, desktop);
    let evaluation = job.trial_of.map(|trial| trial.evaluation);
    // Whoever ended the episode is answered when the seat is left, after the last event.
    let fleet = &queue.steering().fleet;
    let mut seat = fleet.enter(id, desktop, evaluation);
    let _debugged = context.debugger.seat(id, desktop);
    let began = context.clock.now();
    let barrier = queue.barrier.as_ref();
    let ran = run_episode(context, env, &job, id, barrier, &mut seat).await;
    let start = shown(&ran, env);
    match ran {
        Ok(collected) => {
            let clock_ms = context.clock.now().saturating_sub(began).as_millis() as u64;
            let finished = finished_event(&collected, job.purpose, clock_ms);
            context.recorder.emit(finished);
            queue.settle(&work, Outcome::Scored(Box::new(collected)));
        }
        Err(error) => {
            let on = On {
                job: &job,
                id,
                desktop,
                did_not_start: matches!(start, Start::Failed(_)),
            };
            queue.fail(context, work, on, &error);
        }
    }
    start
}

/// What an episode has shown of its desktop's start, whatever ended it.
pub(super) fn shown(ran: &Result<Collected, RolloutError>, env: &dyn Environment) -> Start {
    let error = match ran {
        Err(error) if !env.came_up() => error,
        Ok(_) | Err(_) => return Start::Worked,
    };
    // Others ended it, or it was refused before the machine was touched.
    let is_others = matches!(
        error,
        RolloutError::Cancelled
            | RolloutError::Ended(_)
            | RolloutError::Policy(_)
            | RolloutError::Reset(EnvError::Task { .. })
    );
    match error {
        // It may not have come to its turn.
        _ if is_others || !env.failed_to_start() => Start::Unknown,
        RolloutError::Reset(error) => Start::Failed(error.to_string()),
        error => Start::Failed(error.to_string()),
    }
}
