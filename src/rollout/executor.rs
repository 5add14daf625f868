//! Drives the desktops' futures in a fixed order and the virtual clock with them.
//!
//! Order of business: first everything that can go on, lowest desktop first; then one policy
//! batch, whose cost moves the clock; then the next timer; only then wait for the world. So a
//! batch holds every generation that is due at its moment, and the same inputs give the same
//! batches. On the wall's clock nothing waits for a batch but who is in it: desktops go on
//! meanwhile, and what they then ask for is the next batch.

use std::collections::BTreeSet;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use crate::policy::Policy;
use crate::rollout::clock::Clock;

type Task<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// Which tasks were woken, shared with their wakers.
#[derive(Default)]
struct Ready {
    tasks: BTreeSet<usize>,
    outer: Option<Waker>,
}

struct TaskWaker {
    index: usize,
    ready: Arc<Mutex<Ready>>,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        ready.tasks.insert(self.index);
        if let Some(outer) = ready.outer.take() {
            outer.wake();
        }
    }
}

/// Runs all tasks to their end. The index of a task is its rank.
pub(super) async fn run(clock: &Clock, policy: &dyn Policy, tasks: Vec<Task<'_>>) {
    // Tokio's budget is one for this whole future. Once spent, its channels answer «pending»
    // and wake at once, so that the loop over ready tasks would never end.
    tokio::task::unconstrained(drive(clock, policy, tasks)).await;
}

async fn drive(clock: &Clock, policy: &dyn Policy, tasks: Vec<Task<'_>>) {
    let ready = Arc::new(Mutex::new(Ready::default()));
    ready
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .tasks
        .extend(0..tasks.len());
    let mut tasks: Vec<Option<Task<'_>>> = tasks.into_iter().map(Some).collect();
    let wakers: Vec<Waker> = (0..tasks.len())
        .map(|index| {
            Waker::from(Arc::new(TaskWaker {
                index,
                ready: Arc::clone(&ready),
            }))
        })
        .collect();
    loop {
        poll_ready(&mut tasks, &wakers, &ready);
        if tasks.iter().all(Option::is_none) {
            return;
        }
        if !clock.is_virtual() {
            let has_run = tick_meanwhile(policy, &mut tasks, &wakers, &ready).await;
            // The last task may have ended meanwhile; nobody is left who could be woken then.
            if !has_run && tasks.iter().any(Option::is_some) {
                wait_for_wake(&ready).await;
            }
        } else if let Some(cost) = policy.tick().await {
            clock.advance_by(cost);
        } else if !clock.advance_to_next_timer() {
            wait_for_wake(&ready).await;
        }
        // Commands and the log get their turn also where no policy ever waits.
        tokio::task::yield_now().await;
    }
}

/// Runs one policy batch while the tasks go on; false if nothing waited for one.
async fn tick_meanwhile(
    policy: &dyn Policy,
    tasks: &mut [Option<Task<'_>>],
    wakers: &[Waker],
    ready: &Mutex<Ready>,
) -> bool {
    let mut tick = pin!(policy.tick());
    loop {
        tokio::select! {
            biased;
            ran = &mut tick => return ran.is_some(),
            () = wait_for_wake(ready) => poll_ready(tasks, wakers, ready),
        }
    }
}

fn poll_ready(tasks: &mut [Option<Task<'_>>], wakers: &[Waker], ready: &Mutex<Ready>) {
    while let Some(index) = pop_first(ready) {
        let Some(task) = &mut tasks[index] else {
            continue;
        };
        if task
            .as_mut()
            .poll(&mut Context::from_waker(&wakers[index]))
            .is_ready()
        {
            tasks[index] = None;
        }
    }
}

fn pop_first(ready: &Mutex<Ready>) -> Option<usize> {
    ready
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .tasks
        .pop_first()
}

async fn wait_for_wake(ready: &Mutex<Ready>) {
    poll_fn(|context| {
        let mut ready = ready.lock().unwrap_or_else(PoisonError::into_inner);
        if ready.tasks.is_empty() {
            ready.outer = Some(context.waker().clone());
            Poll::Pending
        } else {
            Poll::Ready(())
        }
    })
    .await;
}
