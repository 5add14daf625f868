//! Turns to start: so many machines of a run start at a time, first come, first served.
//!
//! A start costs more than a running machine does, and many at once miss their deadlines together.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Turns of one run; clones share them.
#[derive(Clone, Debug)]
pub struct Starts(Arc<Semaphore>);

/// The right to start a machine, for as long as this lives.
#[derive(Debug)]
pub struct Turn {
    _permit: OwnedSemaphorePermit,
}

impl Starts {
    /// So many at a time, at least one.
    pub fn new(at_a_time: usize) -> Self {
        let turns = at_a_time.clamp(1, Semaphore::MAX_PERMITS);
        Self(Arc::new(Semaphore::new(turns)))
    }

    /// As `new`; 0 is one a core.
    pub fn per_core_if_0(at_a_time: usize) -> Self {
        match at_a_time {
            0 => Self::new(super::admission::cores()),
            some => Self::new(some),
        }
    }

    /// Waits for a turn; `queued` is called if there is none at once. Waits as long as those before
    /// it take: whoever calls sets a deadline.
    pub async fn turn(&self, queued: impl FnOnce()) -> Turn {
        // Nobody is overtaken: what is released goes to who waits before it is free.
        if let Ok(permit) = Arc::clone(&self.0).try_acquire_owned() {
            return Turn { _permit: permit };
        }
        queued();
        let permit = Arc::clone(&self.0).acquire_owned().await;
        Turn {
            _permit: permit.expect("turns are never closed"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Starts this many with these turns; the most at a time, who queued, and the order of starts.
    async fn start(turns: usize, machines: usize) -> (usize, usize, Vec<usize>) {
        let starts = Starts::new(turns);
        let (now, most, queued) = (
            AtomicUsize::new(0),
            AtomicUsize::new(0),
            AtomicUsize::new(0),
        );
        let order = std::sync::Mutex::new(Vec::new());
        let all = (0..machines).map(|machine| {
            let (starts, now, most, queued, order) = (&starts, &now, &most, &queued, &order);
            async move {
                let waits = || _ = queued.fetch_add(1, Ordering::Relaxed);
                let _turn = starts.turn(waits).await;
                order.lock().unwrap().push(machine);
                let at_a_time = now.fetch_add(1, Ordering::Relaxed) + 1;
                most.fetch_max(at_a_time, Ordering::Relaxed);
                for _ in 0..10 {
                    tokio::task::yield_now().await;
                }
                now.fetch_sub(1, Ordering::Relaxed);
            }
        });
        futures::future::join_all(all).await;
        let order = order.into_inner().unwrap();
        (most.into_inner(), queued.into_inner(), order)
    }

    #[tokio::test]
    async fn no_more_start_at_a_time_than_may_and_none_is_overtaken() {
        for (turns, machines) in [(1, 5), (2, 7), (3, 3), (8, 4), (0, 3)] {
            let bound = turns.clamp(1, machines);
            let (most, queued, order) = start(turns, machines).await;
            assert_eq!(most, bound, "{turns} turns");
            assert_eq!(queued, machines - bound, "{turns} turns");
            assert_eq!(order, (0..machines).collect::<Vec<_>>());
        }
    }

    #[tokio::test]
    async fn who_gives_up_waiting_takes_no_turn() {
        let starts = Starts::new(1);
        let first = starts.turn(|| ()).await;
        {
            let mut second = Box::pin(starts.turn(|| ()));
            assert!(futures::poll!(&mut second).is_pending());
        }
        drop(first);
        let mut third = Box::pin(starts.turn(|| panic!("there is a turn")));
        assert!(futures::poll!(&mut third).is_ready());
    }
}
