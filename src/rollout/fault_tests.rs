//! Real desktops that fail, as a collection sees them: who runs what then, what is told, and that
//! every job has its one outcome.

mod ends;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::json;

use super::*;
use crate::bus::EventSink;
use crate::config::{Resolved, Schedule};
use crate::env::{EnvError, Environment, Observation, Probe, ProbeReply};
use crate::evaluator::Scorer;
use crate::event::{EventKind, Purpose, RunState, SCHEMA_VERSION};
use crate::policy::SamplingParams;
use crate::policy::scripted::{Script, Scripted};
use crate::prompt::PromptBuilder;
use crate::store::RunDir;
use crate::types::{
    Action, EpisodeId, ErrorClass, MachinePhase, MachineStatus, ScreenSize, Screenshot, Task,
};

const FOR_EVER: u32 = u32::MAX;
const SCREEN: ScreenSize = ScreenSize {
    width: 56,
    height: 56,
};

/// What a desktop does wrong.
#[derive(Clone, Copy, Debug, Default)]
struct Faults {
    /// So many first starts fail.
    starts: u32,
    /// So many first actions end in a crash.
    crashes: u32,
    /// So many first resets fail at a step of the task.
    setups: u32,
    /// It wants to be opened anew after each episode from this one on, until it is.
    stale_after: Option<u32>,
    /// Its actions never come back; what its machine ended of, or nothing if it runs.
    hangs: Option<&'static str>,
    /// It cannot be suspended.
    suspend: bool,
    /// It cannot be woken.
    wake: bool,
    /// Every other start fails, the first too.
    flaky: bool,
    /// It takes its time to stand still, and its machine ends of this meanwhile.
    ends_frozen: Option<&'static str>,
}

/// A desktop with faults, which writes down what is asked of it.
struct Faulty {
    number: u32,
    faults: Faults,
    log: Log,
    starting: bool,
    came_up: bool,
    resets: u32,
    episodes: u32,
    in_episode: bool,
}

type Log = Arc<Mutex<Vec<(u32, &'static str)>>>;

impl Faulty {
    fn new(number: u32, faults: Faults, log: &Log) -> Self {
        Self {
            number,
            faults,
            log: Arc::clone(log),
            starting: false,
            came_up: false,
            resets: 0,
            episodes: 0,
            in_episode: false,
        }
    }

    fn did(&self, what: &'static str) {
        self.log.lock().unwrap().push((self.number, what));
    }

    fn seen(&self) -> Observation {
        let pixels = (SCREEN.width * SCREEN.height * 3) as usize;
        Observation {
            screenshot: Screenshot::new(SCREEN, vec![self.number as u8; pixels]),
            elapsed: Duration::ZERO,
        }
    }

    fn broken(&self) -> EnvError {
        EnvError::Machine {
            machine: format!("faulty {}", self.number),
            reason: "its disk is full".to_owned(),
        }
    }

    fn ended(&self, reason: &str, symptom: &str) -> EnvError {
        EnvError::Ended {
            machine: format!("faulty {}", self.number),
            reason: reason.to_owned(),
            symptom: symptom.to_owned(),
        }
    }
}

/// Whether one of so many faults is left; takes it.
fn strikes(left: &mut u32) -> bool {
    let strikes = *left > 0;
    *left = left.saturating_sub(1);
    strikes
}

#[async_trait]
impl Environment for Faulty {
    fn screen_size(&self) -> ScreenSize {
        SCREEN
    }
    async fn reset(&mut self, _: &Task, _: u64) -> Result<Observation, EnvError> {
        self.did("reset");
        self.in_episode = true;
        (self.starting, self.came_up) = (true, false);
        self.resets += 1;
        let is_turn = self.faults.flaky && !self.resets.is_multiple_of(2);
        if is_turn || strikes(&mut self.faults.starts) {
            self.in_episode = false;
            return Err(self.broken());
        }
        (self.starting, self.came_up) = (false, true);
        if strikes(&mut self.faults.setups) {
            return Err(EnvError::Crashed { what: "config[0]" });
        }
        Ok(self.seen())
    }
    async fn step(&mut self, _: &Action) -> Result<Observation, EnvError> {
        self.did("step");
        if self.faults.hangs.is_some() {
            std::future::pending::<()>().await;
        }
        // Others get their turn, as they would.
        tokio::time::sleep(Duration::from_millis(2)).await;
        if strikes(&mut self.faults.crashes) {
            return Err(EnvError::Crashed { what: "action" });
        }
        Ok(self.seen())
    }
    async fn observe(&mut self) -> Result<Observation, EnvError> {
        self.did("observe");
        Ok(self.seen())
    }
    async fn probe(&mut self, _: &Probe) -> Result<ProbeReply, EnvError> {
        unreachable!("an infeasible task has no state to look at")
    }
    async fn suspend(&mut self) -> Result<(), EnvError> {
        self.did("suspend");
        if self.faults.ends_frozen.is_some() {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        if self.faults.suspend {
            return Err(self.broken());
        }
        Ok(())
    }
    async fn wake(&mut self) -> Result<(), EnvError> {
        self.did("wake");
        if self.faults.wake {
            return Err(self.broken());
        }
        match self.faults.ends_frozen {
            Some(reason) => Err(self.ended(reason, "it does not go on")),
            None => Ok(()),
        }
    }
    fn failed_to_start(&self) -> bool {
        self.starting
    }
    fn came_up(&self) -> bool {
        self.came_up
    }
    async fn diagnose(&mut self, symptom: &str) -> Option<EnvError> {
        self.did("diagnose");
        let ended = self.faults.hangs.filter(|reason| !reason.is_empty())?;
        Some(self.ended(ended, symptom))
    }
    async fn inspect(&mut self) -> Option<String> {
        self.did("inspect");
        self.in_episode = false;
        self.episodes += 1;
        let is_stale = self.faults.stale_after.is_some_and(|n| self.episodes >= n);
        is_stale.then(|| "its actions take 900 ms".to_owned())
    }
    async fn close(&mut self) -> Result<(), EnvError> {
        assert!(!self.in_episode, "closed during an episode");
        self.did("close");
        Ok(())
    }
}

/// What a collection over faulty desktops came to.
struct Ran {
    collection: Collection,
    log: Vec<(u32, &'static str)>,
    state: RunState,
    /// Events, without those of steps.
    events: Vec<EventKind>,
}

impl Ran {
    fn count(&self, number: u32, what: &str) -> usize {
        let hits = self.log.iter().filter(|one| **one == (number, what));
        hits.count()
    }

    fn scored(&self) -> usize {
        let outcomes = self.collection.outcomes.iter();
        outcomes.filter_map(Outcome::scored).count()
    }

    /// What the machine of a desktop went through.
    fn statuses(&self, number: u32) -> Vec<&MachineStatus> {
        let events = self.events.iter();
        let of = events.filter_map(|event| match event {
            EventKind::MachineChanged { desktop, status } if *desktop == number => Some(status),
            _ => None,
        });
        of.collect()
    }

    fn notices(&self) -> Vec<&str> {
        let notices = self.state.notices.iter();
        notices.map(|notice| notice.text.as_str()).collect()
    }

    /// What was begun has ended once, and the ends are those that are counted.
    #[track_caller]
    fn check_conservation(&self, jobs: usize) {
        let (mut begun, mut ended) = (BTreeSet::new(), BTreeSet::new());
        let mut rerolled = 0;
        for event in &self.events {
            match event {
                EventKind::EpisodeStarted { episode, .. } => assert!(begun.insert(*episode)),
                EventKind::EpisodeFinished { episode, .. } => assert!(ended.insert(*episode)),
                EventKind::EpisodeFailed {
                    episode,
                    rerolled: again,
                    ..
                } => {
                    rerolled += usize::from(*again);
                    assert!(ended.insert(*episode));
                }
                _ => {}
            }
        }
        assert_eq!(begun, ended);
        let outcomes = &self.collection.outcomes;
        assert_eq!(outcomes.len(), jobs);
        let ids: BTreeSet<EpisodeId> = outcomes.iter().map(id_of).collect();
        assert_eq!(ids.len(), jobs, "no two jobs share an outcome");
        // Those given up without an episode are the only ones that were never begun.
        let never_begun = ids.difference(&begun).count();
        assert_eq!(begun.len(), jobs - never_begun + rerolled);
    }
}

fn id_of(outcome: &Outcome) -> EpisodeId {
    match outcome {
        Outcome::Scored(collected) => collected.episode.id,
        Outcome::Failed(failed) => failed.id,
    }
}

/// A collection to run.
struct Case {
    jobs: usize,
    desktops: Vec<Faults>,
    /// Of the desktops that take the places of closed ones.
    reopened: Faults,
    max_rerolls: u32,
    replies: &'static [&'static str],
    max_start_failures: u32,
    backoff: [Duration; 3],
    deadline: Duration,
    fleet: Fleet,
    lease: Lease,
    /// Whether it is there for the lease's jobs.
    leased_only: bool,
}

impl Case {
    fn new(jobs: usize, desktops: &[Faults]) -> Self {
        Self {
            jobs,
            desktops: desktops.to_vec(),
            reopened: Faults::default(),
            max_rerolls: 1,
            replies: &["wait()", "fail()"],
            max_start_failures: 3,
            backoff: [Duration::from_millis(1); 3],
            deadline: Duration::MAX,
            fleet: Fleet::default(),
            lease: Lease::default(),
            leased_only: false,
        }
    }

    async fn run(&self) -> Ran {
        self.run_beside(|_, _| std::future::pending::<()>()).await
    }

    /// Runs it beside an operator, who may steer and is told what was asked of desktops.
    async fn run_beside<F: Future<Output = ()>>(
        &self,
        operator: impl FnOnce(Fleet, Log) -> F,
    ) -> Ran {
        let folder = tempfile::tempdir().unwrap();
        let run = Arc::new(RunDir::create(&folder.path().join("run"), "").unwrap());
        let sink = EventSink::start(&run, started()).unwrap();
        let recorder = Recorder::start(sink.clone(), Arc::clone(&run));
        let profile = Resolved::load::<&str>(&[], &["policy.context_tokens=4096"])
            .unwrap()
            .profile;
        let agent = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/agent");
        let prompt = Arc::new(PromptBuilder::open(&agent).unwrap());
        let policy = self.policy(&prompt, &profile);
        let (_handle, gate) = GateHandle::new();
        let context = EpisodeContext {
            policy: &policy,
            prompt: &prompt,
            sampling: SamplingParams {
                temperature: 0.0,
                top_p: 1.0,
                max_tokens: 64,
            },
            max_steps: 4,
            speech: &profile.policy,
            protocol: profile.reward.protocol,
            deadline: self.deadline,
            clock: Clock::wall(Duration::ZERO),
            gate,
            debugger: Debugger::default(),
            scorer: Scorer::NATIVE,
            recorder: &recorder,
        };
        let log = Log::default();
        let open = |number: u32, faults: Faults| -> Box<dyn Environment> {
            Box::new(Faulty::new(number, faults, &log))
        };
        let mut envs: Vec<Box<dyn Environment>> = Vec::new();
        for (number, faults) in self.desktops.iter().enumerate() {
            envs.push(open(number as u32, *faults));
        }
        let reopen = |number| Ok(open(number, self.reopened));
        let fleet = self.fleet.clone();
        let spec = CollectSpec {
            schedule: Schedule::Async,
            max_rerolls: self.max_rerolls,
            incarnation: 0,
            first_episode: 0,
            steering: Steering {
                fleet: fleet.clone(),
                lease: self.lease.clone(),
                leased_only: self.leased_only,
                reopen: Some(&reopen),
                care: Care {
                    max_start_failures: self.max_start_failures,
                    backoff: self.backoff,
                },
            },
        };
        let jobs: Vec<Job> = (0..self.jobs).map(job).collect();
        let collecting = collect(&context, &mut envs, &jobs, spec, &|_| ());
        let operator = async {
            operator(fleet, Arc::clone(&log)).await;
            std::future::pending::<()>().await;
        };
        let collection = tokio::select! {
            collection = Box::pin(collecting) => collection,
            () = operator => unreachable!("it never ends"),
        };
        recorder.flush().await.unwrap();
        drop(recorder);
        sink.close().unwrap();
        let events = run.read_events(0).unwrap();
        let log = log.lock().unwrap().clone();
        Ran {
            collection,
            log,
            state: run.state().unwrap(),
            events: events.map(|event| event.unwrap().kind).collect(),
        }
    }

    fn policy(&self, prompt: &Arc<PromptBuilder>, profile: &crate::config::Profile) -> Scripted {
        let reply = |action: &&str| match *action {
            "nonsense" => "nonsense".to_owned(),
            action => format!("Thought: 先等一等\nAction: {action}"),
        };
        let replies: Vec<String> = self.replies.iter().map(reply).collect();
        let script = BTreeMap::from([("t".to_owned(), vec![replies])]);
        let script = Script::Replies(script);
        let cost = profile.engine.cost;
        Scripted::new(script, Arc::clone(prompt), profile.policy.clone(), cost)
    }
}

fn job(_: usize) -> Job {
    let task = json!({"id": "t", "instruction": "x", "evaluator": {"func": "infeasible"}});
    let task: Task = serde_json::from_value(task).unwrap();
    Job::alone(Arc::new(task), Purpose::Evaluate, 0)
}

fn started() -> EventKind {
    EventKind::RunStarted {
        schema: SCHEMA_VERSION,
        run: "run".to_owned(),
        version: String::new(),
        profile: "test".to_owned(),
        unix_ms: 0,
        seed: 1,
        desktops: 3,
        group_size: 4,
        tasks_per_iteration: 3,
        iterations: 1,
        max_steps: 4,
        num_tasks: 1,
        context_tokens: 4096,
        learning_rate: 1e-6,
        temperature: 1.0,
        clip_low: None,
        clip_high: None,
        replay: None,
        virtual_clock: false,
    }
}

const SOUND: Faults = Faults {
    starts: 0,
    crashes: 0,
    setups: 0,
    stale_after: None,
    hangs: None,
    suspend: false,
    wake: false,
    flaky: false,
    ends_frozen: None,
};

/// Faults of desktops; jobs; how many are scored; how often each desktop is reset; which of them are
/// left alone at the end.
type Left<'a> = (&'a [Faults], usize, usize, &'a [Option<usize>], &'a [u32]);

#[tokio::test]
async fn what_one_desktop_fails_at_others_do_and_every_job_has_one_outcome() {
    let starts = |starts| Faults { starts, ..SOUND };
    let crash = Faults {
        crashes: 1,
        ..SOUND
    };
    let setup = Faults { setups: 1, ..SOUND };
    let table: [Left<'_>; 8] = [
        (&[SOUND; 3], 9, 9, &[None, None, None], &[]),
        // It is tried three times, and the others do its work; no job pays for it.
        (
            &[starts(FOR_EVER), SOUND, SOUND],
            60,
            60,
            &[Some(3), None, None],
            &[0],
        ),
        (&[starts(FOR_EVER), SOUND], 1, 1, &[None, None], &[]),
        (&[starts(2), SOUND], 60, 60, &[None, None], &[]),
        (&[starts(2)], 2, 2, &[Some(4)], &[]),
        // A crash costs a try, and the next is on another desktop if one is free.
        (&[crash, SOUND], 2, 2, &[None, None], &[]),
        (&[crash], 2, 2, &[Some(3)], &[]),
        // A task that cannot be set up says nothing against the desktop.
        (&[setup, SOUND], 60, 60, &[None, None], &[]),
    ];
    for (desktops, jobs, scored, resets, alone) in table {
        let case = format!("{jobs} jobs on {desktops:?}");
        let ran = Case::new(jobs, desktops).run().await;
        ran.check_conservation(jobs);
        assert_eq!(ran.scored(), scored, "{case}");
        assert_eq!(ran.collection.stranded, None, "{case}");
        for (number, resets) in resets.iter().enumerate() {
            let came = ran.count(number as u32, "reset");
            assert!(resets.is_none_or(|resets| resets == came), "{case}: {came}");
        }
        let quarantined = (0..desktops.len() as u32).filter(|number| {
            let last = ran.statuses(*number).last().copied().cloned();
            last.is_some_and(|last| last.limit_ms.is_none())
        });
        assert_eq!(quarantined.collect::<Vec<_>>(), alone, "{case}");
    }
}

#[tokio::test]
async fn a_failing_desktop_says_why_it_waits_and_when_it_is_left_alone() {
    let sick = Faults {
        starts: FOR_EVER,
        ..SOUND
    };
    let ran = Case::new(60, &[SOUND, sick]).run().await;
    let told: Vec<_> = ran.statuses(1).into_iter().cloned().collect();
    let status = |limit_ms, then: &str| MachineStatus {
        phase: MachinePhase::Quarantined,
        limit_ms,
        then: then.to_owned(),
        detail: "faulty 1: its disk is full".to_owned(),
    };
    let expected = [
        status(Some(1), "started again, try 2 of 3"),
        status(Some(1), "started again, try 3 of 3"),
        status(None, "left alone until it is rebooted"),
    ];
    assert_eq!(told, expected);
    let notices = ran.notices();
    let says = "desktop 1 is left alone: it did not start 3 times in a row, at last since faulty \
                1: its disk is full; reboot it once that is mended";
    assert!(notices.contains(&says), "{notices:?}");
}

#[tokio::test]
async fn without_a_desktop_left_the_collection_ends_and_says_why() {
    let sick = Faults {
        starts: FOR_EVER,
        ..SOUND
    };
    for (desktops, jobs) in [(vec![sick], 3), (vec![sick; 3], 2), (vec![sick; 2], 7)] {
        let ran = Case::new(jobs, &desktops).run().await;
        ran.check_conservation(jobs);
        assert_eq!(ran.scored(), 0);
        let reason = ran.collection.stranded.clone().unwrap();
        let said = "no desktop is left to go on with";
        assert!(
            reason.starts_with(said) && reason.contains("its disk is full"),
            "{reason}"
        );
        for (number, _) in desktops.iter().enumerate() {
            assert_eq!(ran.count(number as u32, "reset"), 3, "{number}");
        }
        for outcome in &ran.collection.outcomes {
            let Outcome::Failed(failed) = outcome else {
                unreachable!("none is scored")
            };
            assert_eq!(failed.class, ErrorClass::Reset);
            assert_eq!(failed.message, reason);
        }
    }
}

#[tokio::test]
async fn where_nobody_cares_tries_are_bounded_by_the_job_alone() {
    let sick = Faults {
        starts: FOR_EVER,
        ..SOUND
    };
    let mut case = Case::new(2, &[sick]);
    case.max_start_failures = 0;
    let ran = case.run().await;
    ran.check_conservation(2);
    assert_eq!((ran.scored(), ran.count(0, "reset")), (0, 4));
    assert_eq!(ran.collection.stranded, None);
}

#[tokio::test]
async fn a_desktop_left_alone_goes_on_once_it_is_rebooted() {
    // The other one is busy until the first has had another episode.
    let sick = Faults {
        starts: FOR_EVER,
        ..SOUND
    };
    let case = Case::new(400, &[sick, SOUND]);
    let ran = case
        .run_beside(|fleet, log| async move {
            let resets = || {
                let log = log.lock().unwrap();
                log.iter().filter(|one| **one == (0, "reset")).count()
            };
            while !(resets() == 3 && fleet.is_left_alone(0)) {
                tokio::task::yield_now().await;
            }
            fleet.reboot(0, Box::new(|done| done.unwrap()));
        })
        .await;
    ran.check_conservation(400);
    assert_eq!(ran.scored(), 400);
    assert_eq!(ran.count(0, "close"), 1);
    assert!(ran.count(0, "reset") > 3);
}

#[tokio::test]
async fn a_slow_desktop_is_opened_anew_once_and_between_episodes() {
    let slow = Faults {
        stale_after: Some(2),
        ..SOUND
    };
    let ran = Case::new(20, &[slow]).run().await;
    ran.check_conservation(20);
    assert_eq!(ran.scored(), 20);
    assert_eq!((ran.count(0, "close"), ran.count(0, "reset")), (1, 20));
    let closed = ran.log.iter().position(|one| one.1 == "close").unwrap();
    assert_eq!(ran.log[closed - 1].1, "inspect");
    let anew = "desktop 0 was closed and opened anew: its actions take 900 ms";
    assert_eq!(ran.notices(), [anew]);
}

/// Replies, faults, the class of the error, all that is asked of the desktop.
type Still<'a> = (
    &'static [&'static str],
    Faults,
    Option<ErrorClass>,
    &'a [&'a str],
);

#[tokio::test]
async fn a_desktop_stands_still_only_while_its_policy_thinks() {
    let crash = Faults {
        crashes: 1,
        ..SOUND
    };
    let stiff = Faults {
        suspend: true,
        ..SOUND
    };
    let sleepy = Faults {
        wake: true,
        ..SOUND
    };
    let table: [Still<'_>; 7] = [
        (&["fail()"], SOUND, None, &["reset", "suspend", "wake"]),
        (
            &["wait()", "fail()"],
            SOUND,
            None,
            &["reset", "suspend", "wake", "step", "suspend", "wake"],
        ),
        // To the limit of steps.
        (
            &["wait()"; 4],
            SOUND,
            None,
            &[
                "reset", "suspend", "wake", "step", "suspend", "wake", "step", "suspend", "wake",
                "step", "suspend", "wake", "step",
            ],
        ),
        (
            &["nonsense"],
            SOUND,
            None,
            &["reset", "suspend", "wake", "observe"],
        ),
        (
            &["wait()", "fail()"],
            crash,
            Some(ErrorClass::Crash),
            &["reset", "suspend", "wake", "step"],
        ),
        // Nobody knows what came of it.
        (
            &["fail()"],
            stiff,
            Some(ErrorClass::Reset),
            &["reset", "suspend", "wake"],
        ),
        (
            &["fail()"],
            sleepy,
            Some(ErrorClass::Reset),
            &["reset", "suspend", "wake", "wake"],
        ),
    ];
    for (replies, faults, class, expected) in table {
        let mut case = Case::new(1, &[faults]);
        (case.replies, case.max_rerolls) = (replies, 0);
        let ran = case.run().await;
        ran.check_conservation(1);
        let came = match &ran.collection.outcomes[0] {
            Outcome::Failed(failed) => Some(failed.class),
            Outcome::Scored(_) => None,
        };
        let calls: Vec<&str> = ran.log.iter().map(|one| one.1).collect();
        assert_eq!(
            calls.strip_suffix(&["inspect"]).unwrap(),
            expected,
            "{replies:?}"
        );
        assert_eq!(came, class, "{replies:?} {faults:?}");
    }
}

#[tokio::test]
async fn a_desktop_that_never_answers_is_looked_into_at_the_deadline() {
    for (ended, class, says) in [
        ("", ErrorClass::Timeout, "episode exceeded its deadline"),
        (
            "QEMU was killed",
            ErrorClass::Crash,
            "faulty 0: QEMU was killed (then: action: episode exceeded",
        ),
    ] {
        let hanging = Faults {
            hangs: Some(ended),
            ..SOUND
        };
        let mut case = Case::new(1, &[hanging]);
        (case.max_rerolls, case.deadline) = (0, Duration::from_secs(2));
        let ran = case.run().await;
        ran.check_conservation(1);
        let Outcome::Failed(failed) = &ran.collection.outcomes[0] else {
            unreachable!("its action never came back")
        };
        assert_eq!(failed.class, class, "{}", failed.message);
        assert!(failed.message.starts_with(says), "{}", failed.message);
        assert_eq!(ran.count(0, "diagnose"), 1);
    }
}

#[tokio::test]
async fn who_is_ended_while_its_desktop_stands_still_leaves_it_awake() {
    for how in [Ending::Kill, Ending::Reroll] {
        let mut case = Case::new(1, &[SOUND]);
        case.replies = &["wait()", "wait()", "fail()"];
        let ran = case
            .run_beside(|fleet, log| async move {
                while log.lock().unwrap().last().map(|one| one.1) != Some("suspend") {
                    tokio::task::yield_now().await;
                }
                let id = EpisodeId {
                    incarnation: 0,
                    number: 0,
                };
                fleet.end(id, how, Box::new(|_| ()));
            })
            .await;
        ran.check_conservation(1);
        assert_eq!(ran.scored(), usize::from(how == Ending::Reroll));
        let mut frozen = false;
        for (_, call) in &ran.log {
            match *call {
                "suspend" => assert!(!std::mem::replace(&mut frozen, true)),
                "wake" => assert!(std::mem::replace(&mut frozen, false)),
                call => assert!(!frozen, "{call} of a desktop that stands still"),
            }
        }
        assert!(!frozen);
    }
}
