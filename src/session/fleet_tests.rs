//! Real desktops that this machine has no room for, or that never start, in a run.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::json;

use super::*;
use crate::bus::{self, Controller, EventSink};
use crate::config::Resolved;
use crate::env::admission::Host;
use crate::env::guest::{DesktopOptions, Guest, GuestOptions};
use crate::env::{Connection, Machine, MachineNeed, Provider, Reporter};
use crate::evaluator::Scorer;
use crate::event::{Command, CommandStatus, EventKind, Phase, Purpose, SCHEMA_VERSION};
use crate::policy::human::Human;
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
}

/// What comes of a start.
#[derive(Clone, Copy, PartialEq)]
enum Start {
    Fails,
    Hangs,
}

struct Dead(Guest, Start);

impl Provider for Maker {
    fn machine(&self, _: u32, _: Reporter) -> Result<Box<dyn Machine>, EnvError> {
        let screen = ScreenSize {
            width: 16,
            height: 9,
        };
        let guest = Guest::new("127.0.0.1:1", GuestOptions::new(screen)).unwrap();
        Ok(Box::new(Dead(guest, self.start)))
    }
    fn need(&self) -> MachineNeed {
        MachineNeed {
            memory_mb: self.memory_mb,
            spare_mb: 0,
            cores: 0.0,
        }
    }
}

#[async_trait]
impl Machine for Dead {
    fn name(&self) -> String {
        "dead".to_owned()
    }
    async fn revert(&mut self) -> Result<(), EnvError> {
        if self.1 == Start::Hangs {
            std::future::pending::<()>().await;
        }
        Err(EnvError::Machine {
            machine: self.name(),
            reason: "the image is damaged".to_owned(),
        })
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
        Ok(())
    }
}

/// Collects two jobs over two such desktops beside an operator; what came of it, unless the operator
/// was done before.
async fn collect<F: Future<Output = ()>>(
    maker: Maker,
    admission: &str,
    operator: impl FnOnce(Controller) -> F,
) -> Option<SessionError> {
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
    std::fs::write(folder.path().join("manifest.json"), r#"{"files": {}}"#).unwrap();
    let mut collector = Collector::new(CollectorParts {
        recorder: Arc::new(Recorder::start(sink.clone(), Arc::clone(&run))),
        run: Arc::clone(&run),
        control: Control::new(inbox, sink.clone(), Settings::of(&profile)),
        policy: Arc::new(Human::default()),
        prompt: Arc::new(PromptBuilder::open(&agent).unwrap()),
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
    let jobs = [job(), job()];
    let came = tokio::select! {
        came = Box::pin(collector.collect(&jobs, 0.0, Phase::Collect)) => came.err(),
        () = operator(controller) => None,
    };
    collector.close().await;
    came
}

fn job() -> Job {
    let task = json!({"id": "t", "instruction": "x", "config": [],
        "evaluator": {"func": "infeasible"}});
    let task: Task = serde_json::from_value(task).unwrap();
    Job::alone(Arc::new(task), Purpose::Train, 0)
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
        start: Start::Hangs,
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
    let failing = Maker {
        memory_mb: 0,
        start: Start::Fails,
    };
    let error = collect(failing, "refuse", |_| std::future::pending()).await;
    let error = error.unwrap().to_string();
    assert!(error.contains("no desktop is left") && error.contains("dead: the image is damaged"));
}

#[tokio::test]
async fn more_desktops_than_there_is_room_for_are_refused_while_the_run_goes_on() {
    let hanging = Maker {
        memory_mb: Host::read().unwrap().available_mb / 4,
        start: Start::Hangs,
    };
    let came = collect(hanging, "refuse", |controller| async move {
        for (value, refused) in [(4000, true), (1, false)] {
            let mut asked = controller.submit(Command::SetDesktops { value }, "test");
            match asked.finished().await.unwrap().1 {
                CommandStatus::Refused { reason } if refused => {
                    assert!(reason.starts_with("env.desktops = 4000 wants "), "{reason}");
                }
                status => assert_eq!((status, refused), (CommandStatus::Done, false)),
            }
        }
    });
    assert!(came.await.is_none());
}
