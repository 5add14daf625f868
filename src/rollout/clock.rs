//! The run's clock: virtual for simulated desktops, the wall's for real ones.
//!
//! Virtual time moves only when the executor says so: by the cost of a policy batch, or to the
//! next timer. Nothing reads the wall clock in between.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

/// The clock of one executor; clones share it. Not `Send`: it lives with its executor.
#[derive(Clone, Debug)]
pub struct Clock(Rc<Inner>);

#[derive(Debug)]
enum Inner {
    Virtual(RefCell<VirtualTime>),
    Wall { started: Instant, offset: Duration },
}

#[derive(Debug, Default)]
struct VirtualTime {
    now: Duration,
    /// Timers by (time, order of registration).
    timers: BinaryHeap<Reverse<(Duration, u64)>>,
    wakers: Vec<(u64, Waker)>,
    next_timer: u64,
}

impl Clock {
    /// A virtual clock that stands at `now`.
    pub fn starting_at(now: Duration) -> Self {
        Self(Rc::new(Inner::Virtual(RefCell::new(VirtualTime {
            now,
            ..VirtualTime::default()
        }))))
    }

    /// The wall's clock; it shows `offset` at first.
    pub fn wall(offset: Duration) -> Self {
        Self(Rc::new(Inner::Wall {
            started: Instant::now(),
            offset,
        }))
    }

    /// Whether time is virtual.
    pub fn is_virtual(&self) -> bool {
        matches!(*self.0, Inner::Virtual(_))
    }

    /// Time since the run began.
    pub fn now(&self) -> Duration {
        match &*self.0 {
            Inner::Virtual(time) => time.borrow().now,
            Inner::Wall { started, offset } => *offset + started.elapsed(),
        }
    }

    /// `now` in milliseconds.
    pub fn now_ms(&self) -> u64 {
        self.now().as_millis() as u64
    }

    /// Lets the time pass that a desktop says its work took. On the wall's clock it has passed
    /// already.
    pub async fn pass(&self, took: Duration) {
        let Inner::Virtual(time) = &*self.0 else {
            return;
        };
        if took.is_zero() {
            return;
        }
        let (due, id) = time.borrow_mut().add_timer(took);
        poll_fn(|context| {
            let mut time = time.borrow_mut();
            if time.now >= due {
                return Poll::Ready(());
            }
            time.wakers.retain(|(other, _)| *other != id);
            time.wakers.push((id, context.waker().clone()));
            Poll::Pending
        })
        .await;
    }

    /// Moves virtual time on by `by` and wakes whoever is due. No effect on the wall's clock.
    pub(super) fn advance_by(&self, by: Duration) {
        if let Inner::Virtual(time) = &*self.0 {
            let to = time.borrow().now + by;
            time.borrow_mut().advance_to(to);
        }
    }

    /// Moves virtual time to the next timer; false if there is none.
    pub(super) fn advance_to_next_timer(&self) -> bool {
        let Inner::Virtual(time) = &*self.0 else {
            return false;
        };
        let next = time.borrow().timers.peek().map(|Reverse((due, _))| *due);
        match next {
            Some(due) => {
                time.borrow_mut().advance_to(due);
                true
            }
            None => false,
        }
    }
}

impl VirtualTime {
    fn add_timer(&mut self, after: Duration) -> (Duration, u64) {
        let due = self.now + after;
        let id = self.next_timer;
        self.next_timer += 1;
        self.timers.push(Reverse((due, id)));
        (due, id)
    }

    fn advance_to(&mut self, to: Duration) {
        self.now = self.now.max(to);
        while let Some(Reverse((due, id))) = self.timers.peek().copied() {
            if due > self.now {
                break;
            }
            self.timers.pop();
            if let Some(at) = self.wakers.iter().position(|(other, _)| *other == id) {
                self.wakers.swap_remove(at).1.wake();
            }
        }
    }
}
