//! Lock step: every live episode waits for the slowest before each step, as the reference does.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::task::{Poll, Waker};

/// Counts live episodes and those waiting. Not `Send`: it lives with its executor.
#[derive(Default)]
pub(super) struct Barrier {
    live: Cell<usize>,
    waiting: Cell<usize>,
    round: Cell<u64>,
    wakers: RefCell<Vec<Waker>>,
}

/// An episode that waits.
struct Arrival<'a> {
    barrier: &'a Barrier,
    round: u64,
}

impl Drop for Arrival<'_> {
    fn drop(&mut self) {
        if self.barrier.round.get() == self.round {
            self.barrier.waiting.set(self.barrier.waiting.get() - 1);
        }
    }
}

impl Barrier {
    /// One more episode to wait for.
    pub(super) fn join(&self) {
        self.live.set(self.live.get() + 1);
    }

    /// One fewer.
    pub(super) fn leave(&self) {
        self.live.set(self.live.get() - 1);
        self.release_if_complete();
    }

    /// Waits until every live episode has arrived. One that gives up waiting has not arrived.
    pub(super) async fn arrive(&self) {
        let round = self.round.get();
        self.waiting.set(self.waiting.get() + 1);
        self.release_if_complete();
        let _arrival = Arrival {
            barrier: self,
            round,
        };
        poll_fn(|context| {
            if self.round.get() != round {
                return Poll::Ready(());
            }
            self.wakers.borrow_mut().push(context.waker().clone());
            Poll::Pending
        })
        .await;
    }

    fn release_if_complete(&self) {
        if self.waiting.get() > 0 && self.waiting.get() >= self.live.get() {
            self.waiting.set(0);
            self.round.set(self.round.get() + 1);
            for waker in self.wakers.borrow_mut().drain(..) {
                waker.wake();
            }
        }
    }
}
