//! Real desktops that this machine has no room for, or that never start, in a run.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::bus::{self, Controller, EventSink};
use crate::config::Resolved;
use crate::env::admission::Host;
use crate::env::guest::{DesktopOptions, Guest, GuestOptions};
use crate::env::{Connection, Machine, MachineNeed, Provider, Reporter};
use crate::evaluator::Scorer;
use crate::event::{
    Command, CommandStatus, EvalRequest, EventKind, Phase, Purpose, SCHEMA_VERSION,
};
use crate::policy::scripted::{Script, Scripted};
use crate::prompt::PromptBuilder;
use crate::rollout::{Job, Recorder};
use crate::store::RunDir;
use crate::tasks::FileCache;
use crate::types::osworld::PlaceholderValues;
use crate::types::{ScreenSize, Task};

/// Makes machines that never come up.
#[derive(Clone, Copy)]
struct Maker {
    memory_mb: u64,
    start: Start,
    /// The most that it says it can make.
    most: Option<u32>,
    /// From this number on it makes none.
    fails_from: u32,
    /// Whether they cannot be closed.
    sticks: bool,
}

/// What comes of a start.
#[derive(Clone, Copy, PartialEq)]
enum Start {
    Fails,
    Hangs,
}

const FAILING: Maker = Maker {
    memory_mb: 0,
    start: Start::Fails,
    most: None,
    fails_from: u32::MAX,
    sticks: false,
};

const HANGING: Maker = Maker {
    start: Start::Hangs,
    ..FAILING
};

struct Dead(Guest, Maker);

impl Dead {
    fn broken(&self, reason: &str) -> EnvError {
        EnvError::Machine {
            machine: self.name(),
            reason: reason.to_owned(),
        }
    }
}

impl Provider for Maker {
    fn machine(&self, desktop: u32, _: Reporter) -> Result<Box<dyn Machine>, EnvError> {
        let screen = ScreenSize {
            width: 16,
            height: 9,
        };
        let guest = Guest::new("127.0.0.1:1", GuestOptions::new(screen)).unwrap();
        let made = Dead(guest, *self);
        if desktop >= self.fails_from {
            return Err(made.broken("there is no such machine"));
        }
        Ok(Box::new(made))
    }
    fn need(&self) -> MachineNeed {
        MachineNeed {
            memory_mb: self.memory_mb,
            spare_mb: 0,
            cores: 0.0,
        }
    }
    fn most(&self) -> Option<u32> {
        self.most
    }
}

#[async_trait]
impl Machine for Dead {
    fn name(&self) -> String {
        "dead".to_owned()
    }
    async fn revert(&mut self) -> Result<(), EnvError> {
        if self.1.start == Start::Hangs {
            std::future::pending::<()>().await;
        }
        Err(self.broken("the image is damaged"))
    }
    fn guest(&self) -> &Guest {
        &self.0
    }
    async fn restart_server(&mut self) -> Result<(), EnvError> {
        Ok(())
    }
    async fn connect(&self, _: u16) -> Result<Box<dyn Connection>, EnvError> {
        unreachable!("it never comes up")
    }
    fn placeholders(&self) -> PlaceholderValues {
        PlaceholderValues {
            client_password: String::new(),
            screen: self.0.options().screen,
        }
    }
    async fn close(&mut self) -> Result<(), EnvError> {
        if self.1.sticks {
            return Err(self.broken("it does not end"));
        }
        Ok(())
    }
}

/// A run over two such desktops.
struct Rig {
    collector: Collector,
    sink: EventSink,
    run: Arc<RunDir>,
    /// Goes last.
    _folder: TempDir,
}

impl Rig {
    fn new(maker: Maker, admission: &str) -> (Self, Controller) {
        let folder = tempfile::tempdir().unwrap();
        let sets = [
            "env.desktops=2",
            "env.fleet.max_start_failures=1",
            "env.fleet.memory_reserve_mb=0",
            &format!("env.fleet.admission=\"{admission}\""),
        ];
        let profile = Resolved::load::<&str>(&[], &sets).unwrap().profile;
        let run = Arc::new(RunDir::create(&folder.path().join("run"), "").unwrap());
        let sink = EventSink::start(&run, started()).unwrap();
        let (controller, inbox) = bus::control(sink.clone(), 0);
        let agent = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/agent");
        let prompt = Arc::new(PromptBuilder::open(&agent).unwrap());
        // Nobody comes so far as to ask for a reply.
        let script = Script::Replies(BTreeMap::new());
        let (config, cost) = (profile.policy.clone(), profile.engine.cost);
        let policy = Scripted::new(script, Arc::clone(&prompt), config, cost);
        std::fs::write(folder.path().join("manifest.json"), r#"{"files": {}}"#).unwrap();
        let collector = Collector::new(CollectorParts {
            recorder: Arc::new(Recorder::start(sink.clone(), Arc::clone(&run))),
            run: Arc::clone(&run),
            control: Control::new(inbox, sink.clone(), Settings::of(&profile)),
            policy: Arc::new(policy),
            prompt,
            scorer: Scorer::NATIVE,
            desktops: Desktops::Real {
                provider: Box::new(maker),
                files: FileCache::open(folder.path()).unwrap(),
                options: DesktopOptions::local(),
                ears: Arc::new(|_, _| {}),
                care: FleetCare::of(&profile.env),
            },
            incarnation: 0,
            profile,
        });
        let rig = Self {
            collector,
            sink,
            run,
            _folder: folder,
        };
        (rig, controller)
    }

    /// Collects two jobs; why that failed.
    async fn collect(&mut self) -> Option<SessionError> {
        let jobs = [job(), job()];
        let collecting = self.collector.collect(&jobs, 0.0, Phase::Collect);
        Box::pin(collecting).await.err()
    }

    /// Ends the run; what was noticed in it.
    async fn close(mut self) -> Vec<String> {
        self.collector.close().await;
        self.sink.close().unwrap();
        let notices = self.run.state().unwrap().notices.into_iter();
        notices.map(|notice| notice.text).collect()
    }
}

/// Collects two jobs over two such desktops beside an operator; what came of it, unless the operator
/// was done before.
async fn collect<F: Future<Output = ()>>(
    maker: Maker,
    admission: &str,
    operator: impl FnOnce(Controller) -> F,
) -> Option<SessionError> {
    let (mut rig, controller) = Rig::new(maker, admission);
    let came = tokio::select! {
        came = rig.collect() => came,
        () = operator(controller) => None,
    };
    rig.close().await;
    came
}

fn task() -> Arc<Task> {
    let task = json!({"id": "t", "instruction": "x", "config": [],
        "evaluator": {"func": "infeasible"}});
    Arc::new(serde_json::from_value(task).unwrap())
}

fn job() -> Job {
    Job::alone(task(), Purpose::Train, 0)
}

fn started() -> EventKind {
    EventKind::RunStarted {
        schema: SCHEMA_VERSION,
        run: "run".to_owned(),
        version: String::new(),
        profile: "test".to_owned(),
        unix_ms: 0,
        seed: 1,
        desktops: 2,
        group_size: 2,
        tasks_per_iteration: 1,
        iterations: 1,
        max_steps: 4,
        num_tasks: 1,
        context_tokens: 2048,
        learning_rate: 1e-6,
        temperature: 1.0,
        clip_low: None,
        clip_high: None,
        replay: None,
        virtual_clock: false,
    }
}

/// More than any machine has.
const TOO_MUCH_MB: u64 = 1 << 40;

#[tokio::test]
async fn desktops_without_room_are_refused_before_any_starts_unless_asked_for() {
    let hanging = Maker {
        memory_mb: TOO_MUCH_MB,
        ..HANGING
    };
    let nobody = |_| std::future::pending();
    let refused = collect(hanging, "refuse", nobody)
        .await
        .unwrap()
        .to_string();
    assert!(refused.starts_with("env.desktops = 2 wants "), "{refused}");
    assert!(refused.contains("not even one fits"), "{refused}");
    for admission in ["warn", "off"] {
        let failing = Maker {
            start: Start::Fails,
            ..hanging
        };
        let error = collect(failing, admission, nobody).await.unwrap();
        assert!(matches!(error, SessionError::NoDesktop(_)), "{error}");
    }
}

#[tokio::test]
async fn a_run_whose_desktops_never_start_ends_with_the_reason() {
    let error = collect(FAILING, "refuse", |_| std::future::pending()).await;
    let error = error.unwrap().to_string();
    assert!(error.contains("no desktop is left") && error.contains("dead: the image is damaged"));
}

#[tokio::test]
async fn more_desktops_than_there_can_be_are_refused_while_the_run_goes_on() {
    let large = Maker {
        memory_mb: Host::read().unwrap().available_mb / 4,
        ..HANGING
    };
    let few = Maker {
        most: Some(2),
        ..HANGING
    };
    let too_few = "env.desktops = 3 is more than this run has: 2 machines";
    let table = [
        (large, "refuse", 4000, "env.desktops = 4000 wants "),
        (few, "refuse", 3, too_few),
        (few, "off", 3, too_few),
    ];
    for (maker, admission, too_many, says) in table {
        let came = collect(maker, admission, move |controller| async move {
            for (value, is_refused) in [(too_many, true), (1, false), (2, false)] {
                let mut asked = controller.submit(Command::SetDesktops { value }, "test");
                match asked.finished().await.unwrap().1 {
                    CommandStatus::Refused { reason } if is_refused => {
                        assert!(reason.starts_with(says), "{reason}");
                    }
                    status => assert_eq!((status, is_refused), (CommandStatus::Done, false)),
                }
            }
        });
        assert!(came.await.is_none(), "{says}");
    }
}

#[tokio::test]
async fn neither_a_desktop_that_does_not_open_nor_one_that_does_not_close_ends_a_run() {
    for (fails_from, notices) in [(0, 0), (1, 1), (2, 0)] {
        let maker = Maker {
            fails_from,
            ..FAILING
        };
        let (mut rig, _controller) = Rig::new(maker, "refuse");
        let error = rig.collect().await.unwrap();
        // With one at least it is the desktops' failure to start that ends it.
        let is_none_left = matches!(error, SessionError::NoDesktop(_));
        assert_eq!(is_none_left, fails_from > 0, "{error}");
        let noticed = rig.close().await;
        let goes_on = "the run goes on with 1 desktops: dead: there is no such machine";
        let told = noticed.iter().filter(|text| *text == goes_on).count();
        assert_eq!(told, notices, "{noticed:?}");
    }

    let sticking = Maker {
        sticks: true,
        ..FAILING
    };
    let (mut rig, _controller) = Rig::new(sticking, "refuse");
    for desktops in [2, 1] {
        let settings = rig.collector.control.settings();
        rig.collector.control.restore(Settings {
            desktops,
            ..settings
        });
        let error = rig.collect().await.unwrap();
        assert!(matches!(error, SessionError::NoDesktop(_)), "{error}");
        let all = format!("{desktops} of {desktops} did not start");
        assert!(error.to_string().contains(&all), "{error}");
    }
    rig.close().await;
}

#[tokio::test]
async fn an_evaluation_that_has_lost_its_desktops_is_not_complete() {
    let (mut rig, _controller) = Rig::new(FAILING, "refuse");
    let request = EvalRequest {
        trials: 3,
        ..EvalRequest::default()
    };
    let evaluating = rig.collector.evaluate("eval", request, vec![task()]);
    let error = Box::pin(evaluating).await.err().unwrap();
    assert!(matches!(error, SessionError::NoDesktop(_)), "{error}");
    rig.collector.close_evaluations("stopped");
    // No trial that never began counts as one that failed: they are left to whoever resumes it.
    let record = rig.run.evaluation(1).unwrap();
    assert_eq!((record.trials.len(), record.total), (0, 3));
    assert!(record.report.is_none());
    rig.close().await;
}
