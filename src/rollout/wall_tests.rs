//! Desktops on the wall's clock: side by side, beside the policy, and never for ever.

use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use serde_json::json;

use super::*;
use crate::config::{Resolved, Schedule};
use crate::env::{EnvError, Environment, Observation, Probe, ProbeReply};
use crate::evaluator::Scorer;
use crate::event::Purpose;
use crate::policy::human::Human;
use crate::policy::{
    Extension, Generation, PinnedWeights, Policy, PolicyError, PolicyStats, SamplingParams,
    SessionId, SessionSpec, WeightsId, WeightsSource,
};
use crate::prompt::PromptBuilder;
use crate::types::{Action, ErrorClass, PolicyVersion, ScreenSize, Task};

const LONG: Duration = Duration::from_millis(600);

/// A policy whose one batch takes long, and which may find that there was nothing to do.
#[derive(Default)]
struct Slow {
    rest: Human,
    has_run: AtomicBool,
    finds_nothing: bool,
}

#[async_trait]
impl Policy for Slow {
    async fn open(&self, spec: SessionSpec) -> Result<SessionId, PolicyError> {
        self.rest.open(spec).await
    }
    async fn generate(
        &self,
        session: SessionId,
        extension: Extension,
        params: SamplingParams,
    ) -> Result<Generation, PolicyError> {
        self.rest.generate(session, extension, params).await
    }
    async fn fork(&self, session: SessionId, spec: SessionSpec) -> Result<SessionId, PolicyError> {
        self.rest.fork(session, spec).await
    }
    async fn score(&self, session: SessionId, ids: Vec<u32>) -> Result<Vec<f32>, PolicyError> {
        self.rest.score(session, ids).await
    }
    async fn close(&self, session: SessionId) {
        self.rest.close(session).await;
    }
    async fn cancel(&self, session: SessionId) {
        self.rest.cancel(session).await;
    }
    async fn pin(&self, source: WeightsSource) -> Result<PinnedWeights, PolicyError> {
        self.rest.pin(source).await
    }
    fn unpin(&self, weights: WeightsId) {
        self.rest.unpin(weights);
    }
    fn version(&self) -> PolicyVersion {
        self.rest.version()
    }
    fn stats(&self) -> PolicyStats {
        self.rest.stats()
    }
    async fn tick(&self) -> Option<Duration> {
        if self.has_run.swap(true, Ordering::Relaxed) {
            return None;
        }
        tokio::time::sleep(LONG).await;
        (!self.finds_nothing).then_some(Duration::ZERO)
    }
}

#[tokio::test]
async fn desktops_go_on_while_the_policy_computes() {
    let (began, done) = (Instant::now(), RefCell::new(Vec::new()));
    let tasks = (0..3)
        .map(|_| {
            let done = &done;
            Box::pin(async move {
                for _ in 0..5 {
                    tokio::time::sleep(LONG / 30).await;
                }
                done.borrow_mut().push(began.elapsed());
            }) as _
        })
        .collect();
    executor::run(&Clock::wall(Duration::ZERO), &Slow::default(), tasks).await;
    let done = done.into_inner();
    assert_eq!(done.len(), 3);
    assert!(done.iter().all(|took| *took < LONG), "{done:?}");
}

#[tokio::test]
async fn desktops_that_end_while_the_policy_looks_for_work_end_it_all() {
    let policy = Slow {
        finds_nothing: true,
        ..Slow::default()
    };
    let tasks = (0..3)
        .map(|_| Box::pin(tokio::time::sleep(LONG / 30)) as _)
        .collect();
    let clock = Clock::wall(Duration::ZERO);
    let running = executor::run(&clock, &policy, tasks);
    tokio::time::timeout(LONG * 20, running).await.unwrap();
}

/// A desktop whose reset never comes back, or takes so long and fails.
struct Stuck(Option<Duration>);

#[async_trait]
impl Environment for Stuck {
    fn screen_size(&self) -> ScreenSize {
        ScreenSize {
            width: 1,
            height: 1,
        }
    }
    async fn reset(&mut self, task: &Task, _: u64) -> Result<Observation, EnvError> {
        match self.0 {
            None => std::future::pending().await,
            Some(after) => tokio::time::sleep(after).await,
        }
        Err(EnvError::Task {
            task: task.id.0.clone(),
            reason: "it asks for what there is not".to_owned(),
        })
    }
    async fn step(&mut self, _: &Action) -> Result<Observation, EnvError> {
        unreachable!("it was never reset")
    }
    async fn observe(&mut self) -> Result<Observation, EnvError> {
        unreachable!("it was never reset")
    }
    async fn probe(&mut self, _: &Probe) -> Result<ProbeReply, EnvError> {
        unreachable!("it was never reset")
    }
    async fn close(&mut self) -> Result<(), EnvError> {
        Ok(())
    }
}

/// One job for each of four desktops, each tried again twice at most.
async fn collect_over(reset: Option<Duration>, deadline: Duration) -> Collection {
    let profile = Resolved::load::<&str>(&[], &[]).unwrap().profile;
    let agent = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/agent");
    let (_handle, gate) = GateHandle::new();
    let context = EpisodeContext {
        policy: &Human::default(),
        prompt: &PromptBuilder::open(&agent).unwrap(),
        sampling: SamplingParams {
            temperature: 0.0,
            top_p: 1.0,
            max_tokens: 8,
        },
        max_steps: 1,
        speech: &profile.policy,
        protocol: profile.reward.protocol,
        deadline,
        clock: Clock::wall(Duration::ZERO),
        gate,
        debugger: Debugger::default(),
        scorer: Scorer::NATIVE,
        recorder: &Recorder::silent(),
    };
    let task: Task = serde_json::from_value(json!({"id": "t", "instruction": "x",
        "evaluator": {"func": "infeasible"}}))
    .unwrap();
    let job = |_| Job::alone(Arc::new(task.clone()), Purpose::Evaluate, 0);
    let jobs: Vec<Job> = (0..4).map(job).collect();
    let mut envs: Vec<Box<dyn Environment>> = Vec::new();
    envs.resize_with(4, || Box::new(Stuck(reset)));
    let spec = CollectSpec {
        schedule: Schedule::Async,
        max_rerolls: 2,
        incarnation: 0,
        first_episode: 0,
        steering: Steering::default(),
    };
    Box::pin(collect(&context, &mut envs, &jobs, spec, &|_| ())).await
}

fn classes(collection: &Collection) -> Vec<Option<ErrorClass>> {
    let outcomes = collection.outcomes.iter();
    outcomes
        .map(|outcome| match outcome {
            Outcome::Failed(failed) => Some(failed.class),
            Outcome::Scored(_) => None,
        })
        .collect()
}

#[tokio::test]
async fn desktops_work_side_by_side_and_no_desktop_mends_a_task() {
    let began = Instant::now();
    let collection = collect_over(Some(LONG), Duration::MAX).await;
    assert_eq!(classes(&collection), [Some(ErrorClass::Reset); 4]);
    // Not tried again, and not one after the other.
    assert_eq!(collection.errors, 4);
    assert!(began.elapsed() < LONG * 4, "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_desktop_that_hangs_is_given_up_at_the_deadline() {
    let began = Instant::now();
    let collection = collect_over(None, Duration::from_millis(100)).await;
    assert_eq!(classes(&collection), [Some(ErrorClass::Timeout); 4]);
    assert_eq!(collection.errors, 12);
    assert!(began.elapsed() >= Duration::from_millis(300));
}
