//! The debugger's engine: nothing reaches a desktop before a decision, what replaces a reply
//! replaces it in the session too, breakpoints, branches.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arpo::bus::EventSink;
use arpo::config::{Profile, Resolved};
use arpo::env::simulated::{Simulated, suite};
use arpo::env::{EnvError, Environment, Observation, Probe, ProbeReply};
use arpo::evaluator::Scorer;
use arpo::event::{
    BreakOn, Candidate, Decision, EpisodeHeld, EventKind, HoldReason, HoldTarget, Purpose,
};
use arpo::policy::{
    Extension, FinishReason, Generation, PinnedWeights, Policy, PolicyError, PolicyStats,
    SamplingParams, SessionId, SessionSpec, WeightsId, WeightsSource,
};
use arpo::prompt::PromptBuilder;
use arpo::rollout::{
    Branch, Clock, CollectSpec, Collection, Debugger, EpisodeContext, GateHandle, GateState, Job,
    Outcome, Recorder, Steering, collect,
};
use arpo::session::{debug_job, load_branch};
use arpo::store::RunDir;
use arpo::types::{
    Action, Episode, EpisodeEnd, EpisodeId, ErrorClass, PolicyVersion, ScreenSize, Task,
};
use async_trait::async_trait;
use tokio::sync::{broadcast, oneshot};

/// A desktop that writes down what reaches it.
struct Recording {
    inner: Simulated,
    actions: Arc<Mutex<Vec<Action>>>,
}

#[async_trait]
impl Environment for Recording {
    fn screen_size(&self) -> ScreenSize {
        self.inner.screen_size()
    }
    async fn reset(&mut self, task: &Task, seed: u64) -> Result<Observation, EnvError> {
        self.inner.reset(task, seed).await
    }
    async fn step(&mut self, action: &Action) -> Result<Observation, EnvError> {
        self.actions.lock().unwrap().push(action.clone());
        self.inner.step(action).await
    }
    async fn observe(&mut self) -> Result<Observation, EnvError> {
        self.inner.observe().await
    }
    async fn probe(&mut self, probe: &Probe) -> Result<ProbeReply, EnvError> {
        self.inner.probe(probe).await
    }
    async fn suspend(&mut self) -> Result<(), EnvError> {
        self.inner.suspend().await
    }
    async fn wake(&mut self) -> Result<(), EnvError> {
        self.inner.wake().await
    }
    async fn close(&mut self) -> Result<(), EnvError> {
        self.inner.close().await
    }
}

/// Replies that a session's seed decides, and what each session holds. The third one is the last.
struct Chance {
    prompt: Arc<PromptBuilder>,
    state: Mutex<ChanceState>,
}

#[derive(Default)]
struct ChanceState {
    next: u64,
    sessions: BTreeMap<SessionId, ChanceSession>,
    /// Content of the session that replied last.
    newest: Vec<u32>,
    replies: Vec<Vec<u32>>,
}

#[derive(Clone)]
struct ChanceSession {
    seed: u64,
    ids: Vec<u32>,
    images: usize,
    replies: usize,
}

impl Chance {
    fn insert(&self, session: ChanceSession) -> SessionId {
        let mut state = self.state.lock().unwrap();
        state.next += 1;
        let id = SessionId(state.next);
        state.sessions.insert(id, session);
        id
    }
}

fn reply_text(seed: u64, number: usize) -> String {
    match number {
        0 | 1 => {
            let (x, y) = (4 * (seed % 50), 4 * (seed / 50 % 40));
            format!("Thought: try\nAction: click(start_box='({x},{y})')")
        }
        2 => "Thought: odd\nAction: nonsense()".to_owned(),
        _ => "Action: finished()".to_owned(),
    }
}

#[async_trait]
impl Policy for Chance {
    async fn open(&self, spec: SessionSpec) -> Result<SessionId, PolicyError> {
        Ok(self.insert(ChanceSession {
            seed: spec.seed,
            ids: Vec::new(),
            images: 0,
            replies: 0,
        }))
    }
    async fn generate(
        &self,
        session: SessionId,
        extension: Extension,
        _: SamplingParams,
    ) -> Result<Generation, PolicyError> {
        let mut state = self.state.lock().unwrap();
        let open = state.sessions.get_mut(&session);
        let open = open.ok_or(PolicyError::NoSession(session))?;
        open.ids.extend_from_slice(&extension.ids);
        open.images += extension.images.len();
        open.replies += extension.replies.len();
        let text = reply_text(open.seed, open.replies);
        open.replies += 1;
        let mut ids = self.prompt.encode(&text).unwrap();
        ids.push(self.prompt.special().turn_end);
        open.ids.extend_from_slice(&ids);
        let newest = open.ids.clone();
        let logprob = -1.0 - open.replies as f32;
        state.newest = newest;
        state.replies.push(ids.clone());
        Ok(Generation {
            logprobs: vec![logprob; ids.len()],
            ids,
            finish: FinishReason::Stop,
            version: PolicyVersion(0),
        })
    }
    async fn fork(&self, session: SessionId, spec: SessionSpec) -> Result<SessionId, PolicyError> {
        let from = self.state.lock().unwrap().sessions.get(&session).cloned();
        let from = from.ok_or(PolicyError::NoSession(session))?;
        let seed = spec.seed;
        Ok(self.insert(ChanceSession { seed, ..from }))
    }
    async fn score(&self, _: SessionId, ids: Vec<u32>) -> Result<Vec<f32>, PolicyError> {
        Ok(vec![0.0; ids.len()])
    }
    async fn close(&self, session: SessionId) {
        self.state.lock().unwrap().sessions.remove(&session);
    }
    async fn cancel(&self, _: SessionId) {}
    async fn pin(&self, _: WeightsSource) -> Result<PinnedWeights, PolicyError> {
        Err(PolicyError::Weights("chance has none".to_owned()))
    }

    fn unpin(&self, _: WeightsId) {}

    fn version(&self) -> PolicyVersion {
        PolicyVersion(0)
    }
    fn stats(&self) -> PolicyStats {
        PolicyStats::default()
    }
    async fn tick(&self) -> Option<Duration> {
        None
    }
}

/// A run with one recording desktop and a debugger.
struct Bench {
    _folder: tempfile::TempDir,
    run: Arc<RunDir>,
    sink: EventSink,
    recorder: Recorder,
    debugger: Debugger,
    gate: GateHandle,
    gate_side: arpo::rollout::Gate,
    profile: Profile,
    prompt: Arc<PromptBuilder>,
    policy: Chance,
    actions: Arc<Mutex<Vec<Action>>>,
}

fn first() -> EpisodeId {
    EpisodeId {
        incarnation: 0,
        number: 0,
    }
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let run = Arc::new(RunDir::create(&folder.path().join("bench"), "").unwrap());
        let sink = EventSink::start(&run, crate::synthetic::run_started()).unwrap();
        let profile = Resolved::load::<&str>(&[], &[]).unwrap().profile;
        let agent = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/agent");
        let prompt = Arc::new(PromptBuilder::open(&agent).unwrap());
        let (gate, gate_side) = GateHandle::new();
        Self {
            _folder: folder,
            recorder: Recorder::start(sink.clone(), Arc::clone(&run)),
            run,
            sink,
            debugger: Debugger::default(),
            gate,
            gate_side,
            profile,
            policy: Chance {
                prompt: Arc::clone(&prompt),
                state: Mutex::default(),
            },
            prompt,
            actions: Arc::default(),
        }
    }

    fn job() -> Job {
        let task = Arc::new(suite::task("ed_sub", 1).unwrap());
        debug_job(task, None, 7)
    }

    async fn collect(&self, jobs: &[Job], first_episode: u64) -> Collection {
        let context = EpisodeContext {
            policy: &self.policy,
            prompt: &self.prompt,
            sampling: SamplingParams {
                temperature: 1.0,
                top_p: 1.0,
                max_tokens: 64,
            },
            max_steps: 15,
            speech: &self.profile.policy,
            protocol: self.profile.reward.protocol,
            deadline: Duration::MAX,
            clock: Clock::starting_at(Duration::ZERO),
            gate: self.gate_side.clone(),
            debugger: self.debugger.clone(),
            scorer: Scorer::NATIVE,
            recorder: &self.recorder,
        };
        let desktop = Recording {
            inner: Simulated::new(self.profile.env.simulated.clone()),
            actions: Arc::clone(&self.actions),
        };
        let mut desktops: Vec<Box<dyn Environment>> = vec![Box::new(desktop)];
        let spec = CollectSpec {
            schedule: self.profile.rollout.schedule,
            max_rerolls: 0,
            incarnation: 0,
            first_episode,
            steering: Steering::default(),
        };
        collect(&context, &mut desktops, jobs, spec, &|_| ()).await
    }

    async fn decide(&self, held: &EpisodeHeld, decision: Decision) -> Result<(), String> {
        let (answer, answered) = oneshot::channel();
        let answer = Box::new(|result| answer.send(result).unwrap());
        self.debugger
            .decide(held.episode, held.step, decision, answer);
        answered.await.unwrap()
    }

    /// Runs `job` while the decisions are taken in turn; what happened.
    async fn play(&self, job: Job, number: u64, decisions: Vec<Decision>) -> Played {
        let lines = self.sink.watch().await.unwrap().lines;
        let jobs = [job];
        let (mut collection, mut played) =
            tokio::join!(self.collect(&jobs, number), self.operate(lines, decisions));
        played.outcome = collection.outcomes.pop();
        played
    }

    async fn operate(
        &self,
        mut lines: broadcast::Receiver<Arc<arpo::store::Line>>,
        decisions: Vec<Decision>,
    ) -> Played {
        let mut decisions = decisions.into_iter();
        let mut played = Played::default();
        let mut held: Option<EpisodeHeld> = None;
        loop {
            let line = lines.recv().await.unwrap();
            match &line.event.kind {
                EventKind::EpisodeHeld(new) => {
                    played.holds.push((**new).clone());
                    held = Some((**new).clone());
                }
                EventKind::CandidatesProposed(proposed) => {
                    played.candidates.clone_from(&proposed.candidates);
                }
                EventKind::EpisodeFinished { .. } | EventKind::EpisodeFailed { .. } => break,
                _ => continue,
            }
            let before = self.actions.lock().unwrap().clone();
            // Whoever is not held acts at once; give it the time to.
            for _ in 0..20 {
                tokio::task::yield_now().await;
            }
            loop {
                assert_eq!(*self.actions.lock().unwrap(), before, "acted while held");
                let decision = decisions.next().expect("a decision for every hold");
                match self.decide(held.as_ref().unwrap(), decision).await {
                    Ok(()) => break,
                    Err(reason) => played.refusals.push(reason),
                }
            }
        }
        assert_eq!(decisions.next(), None, "the episode ended too early");
        played
    }
}

#[derive(Default)]
struct Played {
    holds: Vec<EpisodeHeld>,
    candidates: Vec<Candidate>,
    refusals: Vec<String>,
    outcome: Option<Outcome>,
}

impl Played {
    #[track_caller]
    fn episode(&self) -> &Episode {
        &self.outcome.as_ref().unwrap().scored().unwrap().episode
    }
}

fn edit(reply: &str) -> Decision {
    Decision::Edit {
        reply: reply.to_owned(),
    }
}

use Decision::{Abort, Accept, Choose, Continue, Regenerate, Skip};

/// A reply in place of the third, which does not parse, so that the episode goes on.
fn mend() -> Decision {
    edit("Action: wait()")
}

struct Case {
    decisions: Vec<Decision>,
    /// Names of the actions that reach the desktop.
    actions: &'static [&'static str],
    end: Option<EpisodeEnd>,
    touched: bool,
    /// Part of each refusal.
    refused: &'static [&'static str],
    /// Steps whose reply a person wrote.
    written: &'static [usize],
}

fn cases() -> Vec<Case> {
    let finished = Some(EpisodeEnd::Finished);
    vec![
        Case {
            decisions: vec![Accept, Accept, Accept],
            actions: &["click", "click"],
            end: Some(EpisodeEnd::Malformed),
            touched: false,
            refused: &[],
            written: &[],
        },
        Case {
            decisions: vec![edit("Action: hotkey(key='ctrl c')"), Accept, mend(), Accept],
            actions: &["hotkey", "click", "wait"],
            end: finished,
            touched: true,
            refused: &[],
            written: &[0, 2],
        },
        Case {
            decisions: vec![
                edit("Action: clack()"),
                edit("no action at all"),
                edit("Thought: x<|im_end|>\nAction: wait()"),
                Choose { candidate: 1 },
                Accept,
                Continue,
            ],
            actions: &["click", "click"],
            end: Some(EpisodeEnd::Malformed),
            touched: false,
            refused: &["clack", "", "only the prompt may hold", "regenerate some"],
            written: &[],
        },
        Case {
            decisions: vec![
                Accept,
                Regenerate { count: 3 },
                Choose { candidate: 4 },
                Choose { candidate: 2 },
                mend(),
                Accept,
            ],
            actions: &["click", "click", "wait"],
            end: finished,
            touched: true,
            refused: &["choose 1 to 3"],
            written: &[2],
        },
        Case {
            decisions: vec![Skip, Accept, Accept, mend(), Continue],
            actions: &["click", "click", "wait"],
            end: finished,
            touched: true,
            refused: &[],
            written: &[2],
        },
        Case {
            decisions: vec![Accept, Abort],
            actions: &["click"],
            end: None,
            touched: true,
            refused: &[],
            written: &[],
        },
    ]
}

#[tokio::test]
async fn nothing_reaches_a_desktop_before_the_decision() {
    for (number, case) in cases().into_iter().enumerate() {
        let bench = Bench::new();
        bench.debugger.hold(HoldTarget::All).unwrap();
        let played = bench.play(Bench::job(), 0, case.decisions).await;
        let names: Vec<&str> = {
            let actions = bench.actions.lock().unwrap();
            actions.iter().map(Action::name).collect()
        };
        assert_eq!(names, case.actions, "case {number}");
        assert_eq!(played.refusals.len(), case.refused.len(), "case {number}");
        for (found, part) in played.refusals.iter().zip(case.refused) {
            assert!(found.contains(part), "case {number}: {found}");
        }
        let Some(end) = case.end else {
            let Some(Outcome::Failed(failed)) = &played.outcome else {
                panic!("case {number}: an aborted episode was scored");
            };
            assert_eq!(failed.class, ErrorClass::Cancelled);
            continue;
        };
        let episode = played.episode();
        assert_eq!((episode.end, episode.human_touched), (end, case.touched));
        check_tokens(&bench, episode, case.written);
        assert!(bench.policy.state.lock().unwrap().sessions.is_empty());
    }
}

/// The session held exactly the episode's tokens; a person's are prompt, all others as sampled.
#[track_caller]
fn check_tokens(bench: &Bench, episode: &Episode, written: &[usize]) {
    let state = bench.policy.state.lock().unwrap();
    assert_eq!(state.newest, episode.tokens.ids());
    for (number, step) in episode.steps.iter().enumerate() {
        let range = step.reply_tokens.0..step.reply_tokens.1;
        let ids = &episode.tokens.ids()[range.clone()];
        let is_written = written.contains(&number);
        let mask = &episode.tokens.mask()[range.clone()];
        assert!(mask.iter().all(|sampled| *sampled != is_written));
        let logprobs = &episode.tokens.sampler_logprobs()[range];
        if is_written {
            let mut expected = bench.prompt.encode(&step.reply).unwrap();
            expected.push(bench.prompt.special().turn_end);
            assert_eq!(ids, expected);
            assert!(logprobs.iter().all(|logprob| *logprob == 0.0));
        } else {
            assert!(state.replies.iter().any(|reply| reply == ids));
            assert!(logprobs.iter().all(|one| *one == -2.0 - number as f32));
        }
    }
}

#[tokio::test]
async fn a_chosen_candidate_is_the_one_that_is_done() {
    let bench = Bench::new();
    bench.debugger.hold(HoldTarget::All).unwrap();
    let decisions = vec![Regenerate { count: 3 }, Choose { candidate: 3 }, Abort];
    let played = bench.play(Bench::job(), 0, decisions).await;
    assert_eq!(played.candidates.len(), 3);
    let done = bench.actions.lock().unwrap().clone();
    assert_eq!(done, played.candidates[2].actions);
    // Other seeds, other places: the sampled one is none of them.
    let all = played.candidates.iter().map(|one| &one.actions);
    let mut all: Vec<_> = all.chain([&played.holds[0].candidate.actions]).collect();
    all.dedup();
    assert_eq!(all.len(), 4);
}

#[tokio::test]
async fn breakpoints_hold_with_their_reason() {
    let table = [
        (BreakOn::Step { step: 1 }, vec![1]),
        (
            BreakOn::Kind {
                action: "click".to_owned(),
            },
            vec![0, 1],
        ),
        (BreakOn::ParseError, vec![2]),
        (BreakOn::LowLogprob { below: -2.5 }, vec![1, 2]),
        (BreakOn::LowLogprob { below: -9.0 }, vec![]),
    ];
    for (on, steps) in table {
        let bench = Bench::new();
        let set = bench.debugger.set_breakpoint(on.clone(), None);
        assert_eq!(set.len(), 1);
        // One of another episode does not hold this one.
        let other = EpisodeId {
            number: 99,
            ..first()
        };
        let of_other = BreakOn::Step { step: 0 };
        bench.debugger.set_breakpoint(of_other, Some(other));
        let accepts = vec![Accept; steps.len()];
        let played = bench.play(Bench::job(), 0, accepts).await;
        let found: Vec<u32> = played.holds.iter().map(|held| held.step).collect();
        assert_eq!(found, steps, "{on:?}");
        let reasons = played.holds.iter().map(|held| &held.reason);
        for reason in reasons {
            assert_eq!(*reason, HoldReason::Breakpoint(set[0].clone()));
        }
        assert!(!played.episode().human_touched);
        assert_eq!(bench.debugger.clear_breakpoint(Some(1)).unwrap().len(), 1);
        assert!(bench.debugger.clear_breakpoint(Some(1)).is_err());
        assert!(bench.debugger.clear_breakpoint(None).unwrap().is_empty());
    }
}

#[tokio::test]
async fn an_unchanged_screen_is_noticed() {
    let bench = Bench::new();
    bench.debugger.hold(HoldTarget::All).unwrap();
    bench
        .debugger
        .set_breakpoint(BreakOn::UnchangedScreen, None);
    let played = bench
        .play(Bench::job(), 0, vec![mend(), Accept, Abort])
        .await;
    let reasons: Vec<bool> = played
        .holds
        .iter()
        .map(|held| matches!(held.reason, HoldReason::Breakpoint(_)))
        .collect();
    assert_eq!(reasons[..2], [false, true]);
}

#[tokio::test]
async fn one_is_stepped_through_while_all_others_stand_still() {
    let bench = Bench::new();
    bench.gate.set(GateState::Held);
    let lines = bench.sink.watch().await.unwrap().lines;
    let jobs = [Bench::job()];
    let episode = first();
    let operator = async {
        // It stands at the gate, without a reply, until it is meant.
        while bench
            .debugger
            .hold(HoldTarget::Desktop { desktop: 0 })
            .is_err()
        {
            tokio::task::yield_now().await;
        }
        let played = bench
            .operate(lines, vec![Accept, mend(), mend(), Continue])
            .await;
        assert!(
            bench
                .debugger
                .hold(HoldTarget::Episode { episode })
                .is_err()
        );
        played
    };
    let going_on = async {
        while bench.actions.lock().unwrap().len() < 3 {
            tokio::task::yield_now().await;
        }
    };
    let (collection, played, ()) = tokio::join!(bench.collect(&jobs, 0), operator, going_on);
    assert_eq!(played.holds.len(), 4);
    assert_eq!(
        collection.outcomes[0].scored().unwrap().episode.steps.len(),
        4
    );
}

#[tokio::test]
async fn a_stopped_run_ends_who_is_held() {
    let bench = Bench::new();
    bench.debugger.hold(HoldTarget::All).unwrap();
    let mut lines = bench.sink.watch().await.unwrap().lines;
    let jobs = [Bench::job()];
    let stop = async {
        loop {
            let line = lines.recv().await.unwrap();
            if matches!(line.event.kind, EventKind::EpisodeHeld(_)) {
                bench.gate.set(GateState::Shut);
                return;
            }
        }
    };
    let (collection, ()) = tokio::join!(bench.collect(&jobs, 0), stop);
    assert!(collection.outcomes[0].scored().is_none());
    assert!(bench.actions.lock().unwrap().is_empty());
}

/// Records an episode of three steps and stores it.
async fn recorded(bench: &Bench) -> Episode {
    bench.debugger.hold(HoldTarget::All).unwrap();
    let decisions = vec![edit("Action: hotkey(key='ctrl c')"), Accept, mend(), Accept];
    let played = bench.play(Bench::job(), 0, decisions).await;
    let episode = played.episode().clone();
    bench.run.put_episode(&episode).unwrap();
    bench.recorder.flush().await.unwrap();
    bench.actions.lock().unwrap().clear();
    bench.debugger.release(HoldTarget::All).unwrap();
    episode
}

#[tokio::test]
async fn a_branch_takes_over_the_recorded_tokens_and_holds() {
    let bench = Bench::new();
    let old = recorded(&bench).await;
    for steps in 0..=2 {
        bench.actions.lock().unwrap().clear();
        let branch = load_branch(&bench.run, old.id, steps).unwrap();
        let origin = branch.origin();
        let job = debug_job(Bench::job().task, Some(branch), 0);
        assert_eq!(job.purpose, Purpose::Debug);
        let number = 1 + steps as u64;
        let played = bench.play(job, number, vec![mend(), Abort]).await;
        let held = &played.holds[0];
        assert_eq!(held.step as usize, steps);
        assert_eq!(held.reason, HoldReason::Branched);
        assert_eq!(played.holds[1].reason, HoldReason::Asked);
        let replayed: Vec<Action> = old.steps[..steps]
            .iter()
            .flat_map(|step| step.actions.clone())
            .collect();
        assert_eq!(bench.actions.lock().unwrap()[..steps], replayed);
        let state = bench.sink.watch().await.unwrap().state;
        let debug = &state.episodes[&held.episode].debug;
        assert_eq!(debug.branched_from.as_ref(), Some(&origin));
        assert_eq!(debug.differs_at, None);
    }
}

#[tokio::test]
async fn a_branchs_prefix_equals_the_recorded_one_bit_for_bit() {
    let bench = Bench::new();
    let old = recorded(&bench).await;
    let branch = load_branch(&bench.run, old.id, 2).unwrap();
    let origin = branch.origin();
    let job = debug_job(Bench::job().task, Some(branch), 0);
    let played = bench.play(job, 1, vec![mend(), Continue]).await;
    let new = played.episode();
    let end = old.steps[1].reply_tokens.1;
    assert_eq!(new.tokens.ids()[..end], old.tokens.ids()[..end]);
    assert_eq!(new.tokens.mask()[..end], old.tokens.mask()[..end]);
    let bits = |episode: &Episode| -> Vec<u32> {
        let logprobs = &episode.tokens.sampler_logprobs()[..end];
        logprobs.iter().map(|one| one.to_bits()).collect()
    };
    assert_eq!(bits(new), bits(&old));
    assert_eq!(new.branched_from, Some(origin));
    // What the policy was given is what the episode says.
    let state = bench.policy.state.lock().unwrap();
    assert_eq!(state.newest, new.tokens.ids());
    drop(state);
    bench.run.put_episode(new).unwrap();
    assert_eq!(bench.run.episode(new.id).unwrap(), *new);
}

#[tokio::test]
async fn a_branch_says_where_its_screen_differs_and_where_it_cannot_begin() {
    let bench = Bench::new();
    let old = recorded(&bench).await;
    let screenshots = |branch: &Branch| branch.episode().steps.len();
    assert_eq!(screenshots(&load_branch(&bench.run, old.id, 2).unwrap()), 4);
    for (steps, part) in [(9, "has 4 steps"), (4, "ended with step 4")] {
        let error = load_branch(&bench.run, old.id, steps).unwrap_err();
        assert!(error.contains(part), "{error}");
    }
    // A recorded screen that the desktop does not show.
    let mut changed = old.clone();
    changed.id.number = 50;
    changed.steps[1].screenshot = old.final_screenshot.clone().unwrap();
    let other = arpo::types::Screenshot::new(
        ScreenSize {
            width: 2,
            height: 1,
        },
        vec![0; 6],
    );
    let png = arpo::screen::encode_png(&other).unwrap();
    bench.run.put_png(other.hash(), &png).unwrap();
    changed.steps[1].screenshot = other.hash().clone();
    bench.run.put_episode(&changed).unwrap();
    let branch = load_branch(&bench.run, changed.id, 1).unwrap();
    let job = debug_job(Bench::job().task, Some(branch), 0);
    let played = bench.play(job, 1, vec![Abort]).await;
    let state = bench.sink.watch().await.unwrap().state;
    let debug = &state.episodes[&played.holds[0].episode].debug;
    assert_eq!(debug.differs_at, Some(1));
    let told = state
        .notices
        .iter()
        .any(|one| one.text.contains("at step 2"));
    assert!(told, "{:?}", state.notices);
}
