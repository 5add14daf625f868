//! Jobs that take some of a collection's desktops without being of the collection: the trials of
//! an evaluation that runs beside training.
//!
//! A desktop that becomes free takes one of these while fewer than the lease allows are at it,
//! and only as long as the collection itself is not done: it never waits for more of them than
//! those under way.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::rollout::episode::{Job, Outcome};

/// Takes what came of a leased job.
pub type Settle = Arc<dyn Fn(usize, Outcome) + Send + Sync>;

/// The one lease of a run, or none. Clones share it.
#[derive(Clone, Default)]
pub struct Lease(Arc<Mutex<Option<Leased>>>);

struct Leased {
    desktops: u32,
    under_way: u32,
    waiting: VecDeque<LeasedJob>,
    settle: Settle,
}

/// A job with its index, and how often errors ended it.
pub(super) struct LeasedJob {
    pub(super) index: usize,
    pub(super) job: Job,
    pub(super) errors: u32,
    /// The desktop that last failed at it.
    pub(super) avoid: Option<u32>,
}

impl Lease {
    fn lock(&self) -> MutexGuard<'_, Option<Leased>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives `jobs` up to `desktops` desktops, in the place of what was leased before.
    pub fn grant(&self, desktops: u32, jobs: Vec<(usize, Job)>, settle: Settle) {
        let waiting = jobs.into_iter().map(|(index, job)| LeasedJob {
            index,
            job,
            errors: 0,
            avoid: None,
        });
        *self.lock() = Some(Leased {
            desktops,
            under_way: 0,
            waiting: waiting.collect(),
            settle,
        });
    }

    /// Takes back what no desktop has begun, and lets nothing of it begin any more.
    pub fn revoke(&self) -> Vec<usize> {
        let mut leased = self.lock();
        let waiting = leased.as_mut().map(|leased| {
            leased.desktops = 0;
            std::mem::take(&mut leased.waiting)
        });
        let waiting = waiting.into_iter().flatten();
        waiting.map(|job| job.index).collect()
    }

    /// The next job that avoids none but desktops that it `may`, if the lease has room for another.
    pub(super) fn take(&self, may: &dyn Fn(Option<u32>) -> bool) -> Option<LeasedJob> {
        let mut leased = self.lock();
        let leased = leased.as_mut()?;
        if leased.under_way >= leased.desktops {
            return None;
        }
        let at = leased.waiting.iter().position(|job| may(job.avoid))?;
        let job = leased.waiting.remove(at)?;
        leased.under_way += 1;
        Some(job)
    }

    /// Whether no desktop is at a leased job.
    pub fn is_idle(&self) -> bool {
        self.lock().as_ref().is_none_or(|one| one.under_way == 0)
    }

    /// Whether no job waits or is under way.
    pub(super) fn is_done(&self) -> bool {
        let leased = self.lock();
        leased
            .as_ref()
            .is_none_or(|one| one.under_way == 0 && one.waiting.is_empty())
    }

    /// A job is to be tried again; it comes back if the lease was revoked, to be settled instead.
    pub(super) fn put_back(&self, job: LeasedJob) -> Option<LeasedJob> {
        let mut leased = self.lock();
        let Some(leased) = leased.as_mut().filter(|leased| leased.desktops > 0) else {
            return Some(job);
        };
        leased.under_way -= 1;
        match job.avoid {
            Some(_) => leased.waiting.push_back(job),
            None => leased.waiting.push_front(job),
        }
        None
    }

    /// A job has come to its end.
    pub(super) fn settle(&self, index: usize, outcome: Outcome) {
        let settle = self.lock().as_mut().map(|leased| {
            leased.under_way -= 1;
            Arc::clone(&leased.settle)
        });
        // Outside the lock: whoever takes the outcome may grant the next lease.
        if let Some(settle) = settle {
            settle(index, outcome);
        }
    }
}
