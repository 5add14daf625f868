//! A lane on its own thread: requests in, answers out, and what a panic does.
//!
//! A panic (torch reports its errors so) fails everything that waits on the lane and every later
//! request, since half a batch may have been written. It never takes the process down.

use std::any::Any;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use arpo::policy::{
    Extension, Generation, PolicyError, PolicyStats, SamplingParams, SessionId, WeightsId,
};
use arpo::types::EpisodeId;
use tokio::sync::oneshot;

use super::lane::{Completion, Lane, LaneSpec, LaneWork};
use crate::model::Weights;

/// Where an answer goes.
pub(super) type Answer<T> = oneshot::Sender<Result<T, PolicyError>>;

/// What a lane is asked.
pub(super) enum Request {
    Open {
        id: SessionId,
        episode: EpisodeId,
        seed: u64,
        weights: Option<WeightsId>,
    },
    Fork {
        parent: SessionId,
        id: SessionId,
        episode: EpisodeId,
        seed: u64,
        answer: Answer<()>,
    },
    Generate {
        id: SessionId,
        extension: Extension,
        params: SamplingParams,
        answer: Answer<Generation>,
    },
    Score {
        id: SessionId,
        ids: Vec<u32>,
        answer: Answer<Vec<f32>>,
    },
    Cancel(SessionId),
    Close(SessionId),
    Publish(Weights),
    /// Keep these weights, or those in use now.
    Pin(WeightsId, Option<Weights>),
    Unpin(WeightsId),
    Tick(oneshot::Sender<Option<LaneWork>>),
}

/// A lane's thread, seen from outside.
#[derive(Debug)]
pub(super) struct LaneThread {
    requests: Option<Sender<Request>>,
    // Read by whoever shows figures, written by the lane after each request.
    stats: Arc<Mutex<PolicyStats>>,
    thread: Option<JoinHandle<()>>,
}

/// Who waits for a session.
enum Waiter {
    Generation(Answer<Generation>),
    Scores(Answer<Vec<f32>>),
}

impl LaneThread {
    /// Starts lane number `lane_idx`.
    pub(super) fn spawn(
        lane_idx: usize,
        weights: Weights,
        spec: LaneSpec,
    ) -> Result<Self, PolicyError> {
        let (requests, inbox) = channel();
        let stats = Arc::new(Mutex::new(PolicyStats::default()));
        let shown = Arc::clone(&stats);
        let thread = std::thread::Builder::new()
            .name(format!("lane-{lane_idx}"))
            .spawn(move || serve(weights, spec, &inbox, &shown))
            .map_err(|e| PolicyError::Failed(format!("lane {lane_idx} did not start: {e}")))?;
        Ok(Self {
            requests: Some(requests),
            stats,
            thread: Some(thread),
        })
    }

    /// Asks the lane.
    pub(super) fn send(&self, request: Request) -> Result<(), PolicyError> {
        let requests = self.requests.as_ref().ok_or_else(gone)?;
        requests.send(request).map_err(|_| gone())
    }

    /// Work done so far.
    pub(super) fn stats(&self) -> PolicyStats {
        *self.stats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for LaneThread {
    fn drop(&mut self) {
        // The thread ends with its inbox.
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            // It reports its own panics to those who wait; there is nobody left to tell here.
            let _ = thread.join();
        }
    }
}

/// A lane that no longer answers.
pub(super) fn gone() -> PolicyError {
    PolicyError::Failed("the lane's thread has ended".to_owned())
}

/// The thread's life.
fn serve(weights: Weights, spec: LaneSpec, inbox: &Receiver<Request>, shown: &Mutex<PolicyStats>) {
    // One intra-op thread: parallelism comes from lanes. More would wait for each other at every
    // small product (trials: 100x slower on a busy machine).
    tch::set_num_threads(1);
    let _no_grad = tch::no_grad_guard();
    let mut waiters = HashMap::new();
    let mut lane = catch_unwind(AssertUnwindSafe(|| Lane::new(weights, spec)))
        .map_err(|panic| describe(panic.as_ref()));
    for request in inbox {
        let served = match &mut lane {
            Ok(lane) => catch_unwind(AssertUnwindSafe(|| handle(lane, &mut waiters, request)))
                .map_err(|panic| describe(panic.as_ref())),
            Err(reason) => {
                refuse(request, reason);
                continue;
            }
        };
        if let Err(reason) = served {
            for (_, waiter) in waiters.drain() {
                waiter.fail(PolicyError::Failed(reason.clone()));
            }
            tracing::error!("{reason}");
            lane = Err(reason);
        } else if let Ok(lane) = &lane {
            *shown.lock().unwrap_or_else(PoisonError::into_inner) = lane.stats();
        }
    }
}

/// Does what one request asks.
fn handle(lane: &mut Lane, waiters: &mut HashMap<SessionId, Waiter>, request: Request) {
    match request {
        Request::Open {
            id,
            episode,
            seed,
            weights,
        } => {
            lane.open(id, episode, seed);
            if let Some(weights) = weights {
                lane.bind(id, weights);
            }
        }
        Request::Fork {
            parent,
            id,
            episode,
            seed,
            answer,
        } => {
            // Nobody listens any more: the session is closed by whoever opened it.
            let _ = answer.send(lane.fork(parent, id, episode, seed));
        }
        Request::Generate {
            id,
            extension,
            params,
            answer,
        } => match lane.generate(id, extension, params) {
            Ok(()) => _ = waiters.insert(id, Waiter::Generation(answer)),
            Err(error) => _ = answer.send(Err(error)),
        },
        Request::Score { id, ids, answer } => match lane.score(id, ids) {
            Ok(()) => _ = waiters.insert(id, Waiter::Scores(answer)),
            Err(error) => _ = answer.send(Err(error)),
        },
        Request::Cancel(id) => {
            lane.cancel(id);
            fail_waiter(waiters, id);
        }
        Request::Close(id) => {
            lane.close(id);
            fail_waiter(waiters, id);
        }
        Request::Publish(weights) => lane.publish(weights),
        Request::Pin(id, weights) => lane.pin(id, weights),
        Request::Unpin(id) => lane.unpin(id),
        Request::Tick(answer) => {
            let report = lane.tick();
            let work = report.as_ref().map(|report| report.work);
            for (id, completion) in report.into_iter().flat_map(|report| report.completions) {
                if let Some(waiter) = waiters.remove(&id) {
                    waiter.complete(completion);
                }
            }
            // The executor may have stopped meanwhile.
            let _ = answer.send(work);
        }
    }
}

/// Tells who waits for a session that nothing comes.
fn fail_waiter(waiters: &mut HashMap<SessionId, Waiter>, id: SessionId) {
    if let Some(waiter) = waiters.remove(&id) {
        waiter.fail(PolicyError::Cancelled);
    }
}

/// Answers for a lane that failed before.
fn refuse(request: Request, reason: &str) {
    let error = PolicyError::Failed(reason.to_owned());
    match request {
        Request::Fork { answer, .. } => _ = answer.send(Err(error)),
        Request::Generate { answer, .. } => _ = answer.send(Err(error)),
        Request::Score { answer, .. } => _ = answer.send(Err(error)),
        Request::Tick(answer) => _ = answer.send(None),
        Request::Open { .. }
        | Request::Cancel(_)
        | Request::Close(_)
        | Request::Publish(_)
        | Request::Pin(..)
        | Request::Unpin(_) => {}
    }
}

impl Waiter {
    // Sending fails where the episode was given up meanwhile: then nobody needs the answer.
    fn fail(self, error: PolicyError) {
        match self {
            Self::Generation(answer) => _ = answer.send(Err(error)),
            Self::Scores(answer) => _ = answer.send(Err(error)),
        }
    }

    fn complete(self, completion: Completion) {
        match (self, completion) {
            (Self::Generation(answer), Completion::Generated(reply)) => _ = answer.send(Ok(reply)),
            (Self::Scores(answer), Completion::Scored(scores)) => _ = answer.send(Ok(scores)),
            (waiter, Completion::Failed(error)) => waiter.fail(error),
            (waiter, Completion::Generated(_) | Completion::Scored(_)) => {
                waiter.fail(PolicyError::Failed(
                    "the lane answered another question".to_owned(),
                ));
            }
        }
    }
}

/// First line of a panic's message; torch appends its C++ stack.
fn describe(panic: &(dyn Any + Send)) -> String {
    let message = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no message");
    let thread = std::thread::current();
    let lane = thread.name().unwrap_or("lane");
    format!(
        "{lane} panicked: {}",
        message.lines().next().unwrap_or_default()
    )
}
