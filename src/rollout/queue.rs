//! The jobs of a collection: who gets the next one, and what becomes of each.
//!
//! Every job has one outcome, also where no desktop is left to run it; only trials that never began
//! have none then, and are gone on with.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use crate::event::{EpisodeBranched, EventKind, Purpose};
use crate::rollout::barrier::Barrier;
use crate::rollout::collect::{CollectSpec, Settled, Steering};
use crate::rollout::episode::{Collected, EpisodeContext, Job, Outcome, RolloutError};
use crate::rollout::lease::LeasedJob;
use crate::types::{EpisodeId, ErrorClass, FailedEpisode};

/// A job that waits: how often it was tried, and how often an error ended it.
#[derive(Clone, Copy)]
pub(super) struct Waiting {
    index: usize,
    attempt: u32,
    errors: u32,
    /// The desktop that last failed at it, which takes it only if no other is free.
    avoid: Option<u32>,
}

/// What a desktop does next.
pub(super) enum Work {
    Own(Waiting),
    Leased(LeasedJob),
}

/// What there is for a free desktop.
pub(super) enum Next {
    Work(Work),
    /// Nothing yet; others may give something back.
    Wait,
    /// Nothing any more.
    Over,
}

pub(super) struct Queue<'a> {
    jobs: &'a [Job],
    desktops: u32,
    waiting: RefCell<VecDeque<Waiting>>,
    pub(super) outcomes: RefCell<Vec<Option<Outcome>>>,
    pub(super) next_episode: Cell<u64>,
    pub(super) errors: Cell<u32>,
    /// Why no desktop is left.
    pub(super) stranded: RefCell<Option<String>>,
    done: Cell<u32>,
    /// Desktops that wait for something to do.
    idle: Cell<u32>,
    spec: CollectSpec<'a>,
    pub(super) barrier: Option<Barrier>,
    told: &'a dyn Fn(Settled<'_>),
}

impl<'a> Queue<'a> {
    pub(super) fn new(
        jobs: &'a [Job],
        desktops: u32,
        spec: CollectSpec<'a>,
        barrier: Option<Barrier>,
        told: &'a dyn Fn(Settled<'_>),
    ) -> Self {
        let waiting = (0..jobs.len()).map(|index| Waiting {
            index,
            attempt: 0,
            errors: 0,
            avoid: None,
        });
        Self {
            jobs,
            desktops,
            waiting: RefCell::new(waiting.collect()),
            outcomes: RefCell::new(vec![None; jobs.len()]),
            next_episode: Cell::new(spec.first_episode),
            errors: Cell::new(0),
            stranded: RefCell::new(None),
            done: Cell::new(0),
            idle: Cell::new(0),
            spec,
            barrier,
            told,
        }
    }

    pub(super) fn steering(&self) -> &Steering<'a> {
        &self.spec.steering
    }

    /// The job of a piece of work; one that is tried again draws other chances.
    pub(super) fn job(&self, work: &Work) -> Job {
        match work {
            Work::Own(own) => reseeded(&self.jobs[own.index], own.attempt),
            Work::Leased(leased) => reseeded(&leased.job, leased.errors),
        }
    }

    /// What there is for a free desktop. On the virtual clock desktops leave as soon as no job
    /// waits; real ones stay while one may come back.
    pub(super) fn next(&self, context: &EpisodeContext<'_>, desktop: u32) -> Next {
        if context.clock.is_virtual() {
            return self.take(context, desktop).map_or(Next::Over, Next::Work);
        }
        let fleet = &self.steering().fleet;
        if context.gate.is_shut() {
            self.give_up(ErrorClass::Cancelled, "cancelled");
            return Next::Over;
        }
        if fleet.is_left_alone(desktop) {
            let all = fleet.all_left_alone(self.desktops);
            if let Some(reason) = all.filter(|_| !self.is_over()) {
                let reason = format!("no desktop is left to go on with: {reason}");
                self.give_up(ErrorClass::Reset, &reason);
                // Its trials that never began have no outcome: whoever goes on with it runs them.
                self.steering().lease.revoke();
                *self.stranded.borrow_mut() = Some(reason);
            }
        } else if let Some(work) = self.take(context, desktop) {
            return Next::Work(work);
        }
        if self.is_over() {
            Next::Over
        } else {
            Next::Wait
        }
    }

    /// Whether no desktop will find anything to do any more. Where the lease's jobs are what it is
    /// for, operators may have put jobs of their own beside them.
    pub(super) fn is_over(&self) -> bool {
        let steering = self.steering();
        let is_done = self.done.get() as usize == self.jobs.len();
        is_done && (!steering.leased_only || steering.lease.is_done())
    }

    /// Waits until there may be something to do.
    pub(super) async fn wait(
        &self,
        context: &EpisodeContext<'_>,
        desktop: u32,
        mut changes: crate::rollout::fleet::Changes,
    ) {
        let counts = u32::from(!self.steering().fleet.is_left_alone(desktop));
        self.idle.set(self.idle.get() + counts);
        let mut gate = context.gate.clone();
        tokio::select! {
            biased;
            () = gate.shut() => {}
            () = changes.any() => {}
        }
        self.idle.set(self.idle.get() - counts);
    }

    /// The next job of a free desktop: a leased one if it may have one, and only while the
    /// collection itself goes on. What it failed at itself comes last, and only if nobody else is
    /// free to try.
    fn take(&self, context: &EpisodeContext<'_>, desktop: u32) -> Option<Work> {
        let steering = self.steering();
        let goes_on = steering.leased_only || (self.done.get() as usize) < self.jobs.len();
        let may_lease = goes_on && !context.gate.is_shut();
        let take = |may: &dyn Fn(Option<u32>) -> bool| {
            let leased = may_lease.then(|| steering.lease.take(may)).flatten();
            let own = || {
                let mut waiting = self.waiting.borrow_mut();
                let at = waiting.iter().position(|one| may(one.avoid))?;
                waiting.remove(at)
            };
            leased.map(Work::Leased).or_else(|| own().map(Work::Own))
        };
        let others = |avoid| avoid != Some(desktop);
        take(&others).or_else(|| {
            if self.idle.get() == 0 {
                take(&|_| true)
            } else {
                None
            }
        })
    }

    pub(super) fn begin(&self, context: &EpisodeContext<'_>, job: &Job, desktop: u32) -> EpisodeId {
        let id = self.new_id();
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

    fn new_id(&self) -> EpisodeId {
        let id = EpisodeId {
            incarnation: self.spec.incarnation,
            number: self.next_episode.get(),
        };
        self.next_episode.set(id.number + 1);
        id
    }

    pub(super) fn settle(&self, work: &Work, outcome: Outcome) {
        match work {
            Work::Own(own) => {
                self.done.set(self.done.get() + 1);
                (self.told)(Settled {
                    index: own.index,
                    outcome: &outcome,
                    done: self.done.get(),
                });
                self.outcomes.borrow_mut()[own.index] = Some(outcome);
            }
            Work::Leased(leased) => self.steering().lease.settle(leased.index, outcome),
        }
        self.steering().fleet.nudge();
    }

    /// An error ended an episode: its job is tried again, or has its outcome. What kept a machine
    /// from starting costs none of the tries where the desktop answers for it.
    pub(super) fn fail(
        &self,
        context: &EpisodeContext<'_>,
        work: Work,
        on: On<'_>,
        error: &RolloutError,
    ) {
        let On {
            job, id, desktop, ..
        } = on;
        let errors = match &work {
            Work::Own(own) => own.errors,
            Work::Leased(leased) => leased.errors,
        };
        // What operators end on purpose is nobody's error, and costs none of the tries.
        let asked = matches!(error, RolloutError::Ended(_));
        let of_desktop = on.did_not_start && self.steering().care.max_start_failures > 0;
        let is_free = asked || of_desktop;
        let tries_left = is_free || errors < self.spec.max_rerolls;
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
        let errors = errors + u32::from(!is_free);
        let avoid = (!asked && !context.clock.is_virtual()).then_some(desktop);
        let work = match work {
            work if !rerolled => work,
            Work::Own(own) => {
                self.put_back(Waiting {
                    attempt: own.attempt + 1,
                    errors,
                    avoid,
                    ..own
                });
                return;
            }
            // A trial keeps its chances unless an error spoilt them.
            Work::Leased(leased) => {
                let again = LeasedJob {
                    errors,
                    avoid,
                    ..leased
                };
                let Some(revoked) = self.steering().lease.put_back(again) else {
                    return self.steering().fleet.nudge();
                };
                Work::Leased(revoked)
            }
        };
        self.settle(&work, failed(job, id, error.class(), error.to_string()));
    }

    /// What another desktop is to try goes behind what none has tried.
    fn put_back(&self, waiting: Waiting) {
        let mut queue = self.waiting.borrow_mut();
        match waiting.avoid {
            Some(_) => queue.push_back(waiting),
            None => queue.push_front(waiting),
        }
        self.steering().fleet.nudge();
    }

    /// Gives every job of its own that waits its outcome: nobody will run it.
    fn give_up(&self, class: ErrorClass, message: &str) {
        loop {
            let waiting = self.waiting.borrow_mut().pop_front();
            let Some(own) = waiting else { break };
            let work = Work::Own(own);
            let job = self.job(&work);
            let outcome = failed(&job, self.new_id(), class, message.to_owned());
            self.settle(&work, outcome);
        }
    }
}

/// What failed, and where.
#[derive(Clone, Copy)]
pub(super) struct On<'a> {
    pub(super) job: &'a Job,
    pub(super) id: EpisodeId,
    pub(super) desktop: u32,
    /// Whether the desktop's machine did not even start.
    pub(super) did_not_start: bool,
}

fn failed(job: &Job, id: EpisodeId, class: ErrorClass, message: String) -> Outcome {
    Outcome::Failed(FailedEpisode {
        id,
        task: job.task.id.clone(),
        group: job.group,
        sample: job.sample,
        class,
        message,
        steps: 0,
    })
}

fn reseeded(job: &Job, attempt: u32) -> Job {
    let mut job = job.clone();
    if attempt > 0 {
        job.seed = crate::types::derive_seed(job.seed, &[u64::from(attempt)]);
    }
    job
}

pub(super) fn finished_event(collected: &Collected, purpose: Purpose, clock_ms: u64) -> EventKind {
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
