//! A real desktop as a run looks after it: what its failures are put down to, what is told of it,
//! how its machine starts, stands still and becomes slow.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arpo::config::{FleetConfig, Resolved};
use arpo::env::guest::{DesktopOptions, Guest, GuestDesktop, GuestOptions, Upkeep};
use arpo::env::{
    Connection, EnvError, Environment, Machine, MachineNews, MachineState, Probe, Reporter, Starts,
};
use arpo::types::osworld::PlaceholderValues;
use arpo::types::{
    Action, ErrorClass, MachineHealth, MachinePhase, MachineStatus, Screenshot, Task,
};
use async_trait::async_trait;
use serde_json::{Value, json};

use super::machine::{Scripted, cache, quick};
use super::{Reply, SCREEN, Server, block_on, options, output, page, picture, text};
use crate::loopback::Request;

/// A machine that says how it is, and counts.
struct Watched {
    inner: Scripted,
    seen: Seen,
}

/// What a watched machine does and is asked, shared with the test.
#[derive(Clone, Default)]
struct Seen(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// Why it ended.
    ended: Mutex<Option<String>>,
    picture: Mutex<Option<Screenshot>>,
    /// Those of the next looks, the newest first; then `picture`.
    pictures: Mutex<Vec<Screenshot>>,
    /// Whether it does not come up.
    is_broken: AtomicBool,
    /// Whether its time can neither be stopped nor go on.
    is_stiff: AtomicBool,
    /// Reverts at the same time, and the most of them.
    reverting: AtomicUsize,
    most: AtomicUsize,
    calls: Mutex<Vec<&'static str>>,
    told: Mutex<Vec<MachineNews>>,
}

impl Seen {
    fn did(&self, what: &'static str) {
        self.0.calls.lock().unwrap().push(what);
    }

    fn calls(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.0.calls.lock().unwrap())
    }

    /// Status by status, what was told since this was last asked, and how many pictures.
    fn told(&self) -> (Vec<MachineStatus>, usize) {
        let (mut statuses, mut pictures) = (Vec::new(), 0);
        for news in self.0.told.lock().unwrap().drain(..) {
            match news {
                MachineNews::Status(status) => statuses.push(status),
                MachineNews::Picture(_) => pictures += 1,
                MachineNews::Health(_) | MachineNews::Said(_) => {}
            }
        }
        (statuses, pictures)
    }

    /// The phases of `told`.
    fn phases(&self) -> Vec<MachinePhase> {
        let statuses = self.told().0.into_iter();
        statuses.map(|status| status.phase).collect()
    }

    fn health(&self) -> Option<MachineHealth> {
        let mut told = self.0.told.lock().unwrap();
        told.drain(..).find_map(|news| match news {
            MachineNews::Health(health) => Some(health),
            _ => None,
        })
    }

    /// A desktop over this server, kept by a run.
    fn desktop(
        &self,
        server: &Server,
        starts: &Starts,
        fleet: FleetConfig,
        freeze: bool,
    ) -> GuestDesktop {
        self.desktop_with(quick(), server, starts, fleet, freeze)
    }

    fn desktop_with(
        &self,
        waits: DesktopOptions,
        server: &Server,
        starts: &Starts,
        fleet: FleetConfig,
        freeze: bool,
    ) -> GuestDesktop {
        let options = GuestOptions {
            deadline: Duration::from_millis(500),
            ..options()
        };
        let machine = Watched {
            inner: Scripted::with(&server.address, options),
            seen: self.clone(),
        };
        let folder = tempfile::tempdir().unwrap();
        let files = cache(folder.path(), &[]);
        let ears = self.clone();
        let heard = move |_: u32, news: MachineNews| ears.0.told.lock().unwrap().push(news);
        GuestDesktop::new(Box::new(machine), files, waits).kept_by(Upkeep {
            reporter: Reporter::new(0, Arc::new(heard)),
            starts: starts.clone(),
            fleet,
            freeze_while_thinking: freeze,
        })
    }
}

impl Watched {
    fn bend(&self) -> Result<(), EnvError> {
        if self.seen.0.is_stiff.load(Ordering::SeqCst) {
            return Err(EnvError::Machine {
                machine: self.name(),
                reason: "the daemon says no".to_owned(),
            });
        }
        Ok(())
    }
}

#[async_trait]
impl Machine for Watched {
    fn name(&self) -> String {
        "scripted 0".to_owned()
    }
    async fn revert(&mut self) -> Result<(), EnvError> {
        let shared = &self.seen.0;
        let now = shared.reverting.fetch_add(1, Ordering::SeqCst) + 1;
        shared.most.fetch_max(now, Ordering::SeqCst);
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        shared.reverting.fetch_sub(1, Ordering::SeqCst);
        if shared.is_broken.load(Ordering::SeqCst) {
            return Err(EnvError::Machine {
                machine: self.name(),
                reason: "no window manager".to_owned(),
            });
        }
        self.seen.did("revert");
        Ok(())
    }
    fn state(&self) -> MachineState {
        match self.seen.0.ended.lock().unwrap().clone() {
            Some(reason) => MachineState::Ended { reason },
            None => MachineState::Running,
        }
    }
    fn guest(&self) -> &Guest {
        self.inner.guest()
    }
    async fn restart_server(&mut self) -> Result<(), EnvError> {
        self.inner.restart_server().await
    }
    async fn connect(&self, port: u16) -> Result<Box<dyn Connection>, EnvError> {
        self.inner.connect(port).await
    }
    fn placeholders(&self) -> PlaceholderValues {
        self.inner.placeholders()
    }
    async fn picture(&self) -> Option<Screenshot> {
        self.seen.did("picture");
        let next = self.seen.0.pictures.lock().unwrap().pop();
        next.or_else(|| self.seen.0.picture.lock().unwrap().clone())
    }
    fn kind(&self) -> String {
        "tc\u{1b}g".to_owned()
    }
    fn memory_bytes(&self) -> Option<u64> {
        Some(300 << 20)
    }
    async fn suspend(&mut self) -> Result<(), EnvError> {
        self.seen.did("suspend");
        self.bend()
    }
    async fn wake(&mut self) -> Result<(), EnvError> {
        self.seen.did("wake");
        self.bend()
    }
    async fn close(&mut self) -> Result<(), EnvError> {
        Ok(())
    }
}

fn fleet() -> FleetConfig {
    Resolved::load::<&str>(&[], &[]).unwrap().profile.env.fleet
}

fn task(config: &Value) -> Task {
    let task = json!({"id": "t", "instruction": "Do it.", "config": config,
        "evaluator": {"func": "infeasible"}});
    serde_json::from_value(task).unwrap()
}

/// All that is asked for is done, but what `answer` has another reply for.
fn server(answer: impl Fn(&Request) -> Option<Reply> + Send + Sync + 'static) -> Server {
    Server::answering(move |request| {
        answer(request).unwrap_or_else(|| match request.path() {
            "/screenshot" => picture(),
            "/platform" => text("Linux"),
            _ => output(0, "ready", ""),
        })
    })
}

fn file() -> Probe {
    Probe::File { path: "/x".into() }
}

/// The server's reply to a question for a file; why the machine ended; its picture; the class and the
/// beginning of the error; the phases told, with their details; pictures told.
type Failure<'a> = (
    Reply,
    Option<&'a str>,
    Option<Screenshot>,
    (ErrorClass, &'a str),
    &'a [(MachinePhase, &'a str)],
    usize,
);

#[test]
fn a_failure_is_put_down_to_the_machine_that_ended_and_a_silent_one_is_looked_at() {
    let shown = || Some(Screenshot::new(SCREEN, vec![9; 16 * 9 * 3]));
    let table: [Failure<'_>; 7] = [
        // The server is gone with its machine.
        (
            Reply::HangUp,
            Some("QEMU was killed"),
            shown(),
            (
                ErrorClass::Crash,
                "scripted 0: QEMU was killed (then: probe: ",
            ),
            &[(MachinePhase::Off, "QEMU was killed")],
            0,
        ),
        (
            page(),
            Some("its disk is full"),
            None,
            (
                ErrorClass::Crash,
                "scripted 0: its disk is full (then: probe: ",
            ),
            &[(MachinePhase::Off, "its disk is full")],
            0,
        ),
        // What a guest wrote commands no terminal.
        (
            Reply::HangUp,
            Some("panic\u{1b}[2J\nat 0"),
            None,
            (ErrorClass::Crash, "scripted 0: panic [2J at 0 (then: "),
            &[(MachinePhase::Off, "panic [2J at 0")],
            0,
        ),
        // The guest is frozen, and is seen.
        (
            Reply::Silent,
            None,
            shown(),
            (ErrorClass::Timeout, "probe: the guest did not answer"),
            &[(MachinePhase::Suspect, "probe: the guest did not answer")],
            1,
        ),
        (
            Reply::HangUp,
            None,
            None,
            (ErrorClass::Crash, "probe: "),
            &[(MachinePhase::Suspect, "probe: ")],
            0,
        ),
        (
            Reply::Silent,
            Some("QEMU was killed"),
            shown(),
            (
                ErrorClass::Crash,
                "scripted 0: QEMU was killed (then: probe: ",
            ),
            &[(MachinePhase::Off, "QEMU was killed")],
            0,
        ),
        // One that answers is neither.
        (
            page(),
            None,
            shown(),
            (ErrorClass::Crash, "probe: "),
            &[],
            0,
        ),
    ];
    for failure in table {
        check_failure(failure);
    }
}

#[test]
fn a_screen_is_shown_while_a_reset_goes_on_and_no_longer() {
    let shown = |shade| Screenshot::new(SCREEN, vec![shade; 16 * 9 * 3]);
    let same = vec![shown(9); 7];
    let changing: Vec<Screenshot> = (0..7).map(shown).collect();
    let slow = json!([{"type": "sleep", "parameters": {"seconds": 0.5}}]);
    let waits = DesktopOptions {
        show_every: Duration::from_millis(10),
        ..quick()
    };
    let server = server(|_| None);
    // One that does not change is shown at once and at every third look.
    for (pictures, shown) in [(same, 3), (changing, 7), (vec![], 0)] {
        let seen = Seen::default();
        *seen.0.pictures.lock().unwrap() = pictures;
        let starts = Starts::new(1);
        let mut desktop = seen.desktop_with(waits.clone(), &server, &starts, fleet(), false);
        block_on(desktop.reset(&task(&slow), 0)).unwrap();
        assert_eq!(seen.told().1, shown);
        let calls = seen.calls();
        let looks = calls.iter().filter(|call| **call == "picture").count();
        assert!(looks > 7, "{calls:?}");
        block_on(async {
            desktop.observe().await.unwrap();
            tokio::time::sleep(Duration::from_millis(100)).await;
        });
        assert_eq!(seen.calls(), [""; 0], "nobody waits for a reset any more");
    }
}

fn check_failure((reply, ended, picture, (class, words), phases, pictures): Failure<'_>) {
    let case = format!("{reply:?} {ended:?}");
    let server = server(move |request| (request.path() == "/file").then(|| reply.clone()));
    let seen = Seen::default();
    *seen.0.picture.lock().unwrap() = picture;
    let mut desktop = seen.desktop(&server, &Starts::new(1), fleet(), false);
    block_on(desktop.reset(&task(&json!([])), 0)).unwrap();
    assert_eq!(seen.told().0, [], "{case}");
    *seen.0.ended.lock().unwrap() = ended.map(str::to_owned);
    let error = block_on(desktop.probe(&file())).unwrap_err();
    assert_eq!(error.class(), class, "{case}: {error}");
    assert!(error.to_string().starts_with(words), "{case}: {error}");
    let (statuses, seen_pictures) = seen.told();
    assert_eq!(seen_pictures, pictures, "{case}");
    assert_eq!(statuses.len(), phases.len(), "{case}: {statuses:?}");
    for (status, (phase, detail)) in statuses.iter().zip(phases) {
        assert_eq!(status.phase, *phase, "{case}");
        assert!(status.detail.starts_with(detail), "{case}: {status:?}");
        assert!(!status.then.is_empty(), "{case}");
        // Nothing ends it before the next episode.
        assert_eq!(status.limit_ms, None, "{case}");
    }
    // Every further call says the same, and looks at nothing again.
    let again = block_on(desktop.observe()).unwrap_err();
    assert_eq!(again.class(), class, "{case}");
    assert_eq!(
        ended.is_some(),
        matches!(again, EnvError::Ended { .. }),
        "{case}"
    );
    assert!(block_on(desktop.diagnose("late")).is_none(), "{case}");
    assert!(
        desktop.came_up() && !desktop.failed_to_start(),
        "{case}: whatever came of it"
    );
    // All but one question is answered: whoever was silent is well. What was late is looked at, too,
    // unless that is done.
    block_on(desktop.inspect());
    let expected: &[MachinePhase] = match phases.first() {
        Some((MachinePhase::Suspect, _)) => &[MachinePhase::Ready],
        Some(_) => &[],
        None => &[MachinePhase::Suspect, MachinePhase::Ready],
    };
    assert_eq!(seen.phases(), expected, "{case}");
}

#[test]
fn a_silent_machine_is_told_to_be_off_where_a_layer_does_not_work_after_the_episode() {
    // The path that fails by then; why the machine has ended by then; what is told.
    let table = [
        ("/platform", None, "http: "),
        ("/screenshot", None, "display: "),
        ("", Some("it was killed"), "machine: it was killed"),
    ];
    for (broken, ended, says) in table {
        let fails = Arc::new(AtomicBool::new(false));
        let now = Arc::clone(&fails);
        let server = server(move |request| match request.path() {
            "/file" => Some(Reply::HangUp),
            path if path == broken && now.load(Ordering::SeqCst) => Some(page()),
            _ => None,
        });
        let seen = Seen::default();
        let mut desktop = seen.desktop(&server, &Starts::new(1), fleet(), false);
        block_on(desktop.reset(&task(&json!([])), 0)).unwrap();
        block_on(desktop.probe(&file())).unwrap_err();
        assert_eq!(seen.phases(), [MachinePhase::Suspect]);
        fails.store(true, Ordering::SeqCst);
        *seen.0.ended.lock().unwrap() = ended.map(str::to_owned);
        block_on(desktop.inspect());
        let status = seen.told().0.pop().unwrap();
        assert_eq!((status.phase, status.limit_ms), (MachinePhase::Off, None));
        assert!(status.detail.starts_with(says), "{status:?}");
        assert!(!status.then.is_empty());
    }
}

#[test]
fn a_call_that_never_came_back_is_looked_into_from_outside() {
    let server = server(|_| None);
    for (ended, phase) in [
        (None, MachinePhase::Suspect),
        (Some("killed"), MachinePhase::Off),
    ] {
        let seen = Seen::default();
        let mut desktop = seen.desktop(&server, &Starts::new(1), fleet(), false);
        block_on(desktop.reset(&task(&json!([])), 0)).unwrap();
        *seen.0.ended.lock().unwrap() = ended.map(str::to_owned);
        let cause = block_on(desktop.diagnose("action: late"));
        assert_eq!(cause.is_some(), ended.is_some());
        assert_eq!(seen.phases(), [phase]);
    }
}

#[test]
fn what_a_task_asks_for_in_vain_is_not_the_machines_failure_to_start() {
    let steps = json!([{"type": "execute", "parameters": {"command": "x"}}]);
    let failing = server(|request| (request.path() == "/execute").then(page));
    let seen = Seen::default();
    let mut desktop = seen.desktop(&failing, &Starts::new(1), fleet(), false);
    let error = block_on(desktop.reset(&task(&steps), 0)).unwrap_err();
    assert!(error.to_string().contains("config[0]"), "{error}");
    assert!(desktop.came_up() && !desktop.failed_to_start());
    // The machine ended under a step: that is the error's cause, and no failure to start either.
    *seen.0.ended.lock().unwrap() = Some("its disk is full".to_owned());
    let error = block_on(desktop.reset(&task(&steps), 0)).unwrap_err();
    let words = error.to_string();
    assert!(
        words.starts_with("scripted 0: its disk is full (then: task t: config[0]"),
        "{words}"
    );
    assert!(desktop.came_up() && !desktop.failed_to_start());
    // This is one, until it comes up.
    *seen.0.ended.lock().unwrap() = None;
    seen.0.is_broken.store(true, Ordering::SeqCst);
    let error = block_on(desktop.reset(&task(&json!([])), 0)).unwrap_err();
    assert_eq!(error.to_string(), "scripted 0: no window manager");
    assert!(desktop.failed_to_start() && !desktop.came_up());
    // What is refused does not touch it, and says nothing of it.
    let unknown = json!([{"type": "no such step", "parameters": {}}]);
    block_on(desktop.reset(&task(&unknown), 0)).unwrap_err();
    assert!(!desktop.failed_to_start() && !desktop.came_up());
    seen.0.is_broken.store(false, Ordering::SeqCst);
    block_on(desktop.reset(&task(&json!([])), 0)).unwrap();
    assert!(desktop.came_up() && !desktop.failed_to_start());
}

#[test]
fn between_episodes_all_layers_and_figures_are_told() {
    let act = Action::Press { key: "a".into() };
    let layers = |health: &MachineHealth| {
        let layers = health.layers.iter();
        layers
            .map(|one| format!("{}{}", one.layer, if one.is_up() { "" } else { "!" }))
            .collect::<Vec<_>>()
            .join(" ")
    };
    // The path that fails; why the machine ended; the layers that are found.
    let table = [
        ("", None, "machine tcp http display execute"),
        ("/platform", None, "machine tcp http!"),
        ("/screenshot", None, "machine tcp http display!"),
        ("", Some("it was killed"), "machine!"),
    ];
    for (broken, ended, expected) in table {
        let fails = Arc::new(AtomicBool::new(false));
        let now = Arc::clone(&fails);
        let server = server(move |request| {
            let hit = now.load(Ordering::SeqCst) && request.path() == broken;
            hit.then(page)
        });
        let seen = Seen::default();
        let config = FleetConfig {
            recycle_baseline_episodes: 1,
            ..fleet()
        };
        let mut desktop = seen.desktop(&server, &Starts::new(1), config, false);
        for episode in 1..=2 {
            block_on(desktop.reset(&task(&json!([])), 0)).unwrap();
            block_on(desktop.step(&act)).unwrap();
            if episode == 2 {
                fails.store(true, Ordering::SeqCst);
                *seen.0.ended.lock().unwrap() = ended.map(str::to_owned);
            }
            assert_eq!(block_on(desktop.inspect()), None);
            let health = seen.health().unwrap();
            assert_eq!(health.reverts, episode);
            assert_eq!(
                (health.memory_mb, health.kind.as_str()),
                (Some(300), "tc g")
            );
            assert!(health.act_ms.is_some() && health.baseline_ms.is_some());
            assert!(health.revert_ms.is_some());
            if episode == 2 {
                assert_eq!(layers(&health), expected);
            }
        }
    }
}

#[test]
fn a_desktop_wants_to_be_opened_anew_after_so_many_episodes() {
    let act = Action::Press { key: "a".into() };
    let server = server(|_| None);
    let seen = Seen::default();
    let config = FleetConfig {
        recycle_after_episodes: 2,
        ..fleet()
    };
    let mut desktop = seen.desktop(&server, &Starts::new(1), config, false);
    let told = (0..3).map(|_| {
        block_on(desktop.reset(&task(&json!([])), 0)).unwrap();
        block_on(desktop.step(&act)).unwrap();
        block_on(desktop.inspect()).is_some()
    });
    assert_eq!(told.collect::<Vec<_>>(), [false, true, true]);
}

#[test]
fn a_machine_stands_still_only_where_that_is_wanted_and_a_reset_ends_it() {
    let server = server(|_| None);
    let table: [(bool, &[&str]); 2] = [
        (
            true,
            &["revert", "suspend", "wake", "suspend", "wake", "revert"],
        ),
        (false, &["revert", "revert"]),
    ];
    for (freeze, expected) in table {
        let seen = Seen::default();
        let mut desktop = seen.desktop(&server, &Starts::new(1), fleet(), freeze);
        block_on(async {
            let task = task(&json!([]));
            desktop.reset(&task, 0).await.unwrap();
            desktop.suspend().await.unwrap();
            desktop.wake().await.unwrap();
            desktop.wake().await.unwrap();
            desktop.suspend().await.unwrap();
            // The episode was dropped here.
            desktop.reset(&task, 0).await.unwrap();
        });
        assert_eq!(seen.calls(), expected, "{freeze}");
    }
}

#[test]
fn a_machine_that_ends_while_its_time_is_stopped_is_named() {
    let server = server(|_| None);
    // Whether it is to stop, or to go on; why it ended, if it did.
    for (stops, ended) in [
        (true, None),
        (true, Some("QEMU was killed")),
        (false, None),
        (false, Some("QEMU was killed")),
    ] {
        let case = format!("{stops} {ended:?}");
        let seen = Seen::default();
        let mut desktop = seen.desktop(&server, &Starts::new(1), fleet(), true);
        block_on(desktop.reset(&task(&json!([])), 0)).unwrap();
        if !stops {
            block_on(desktop.suspend()).unwrap();
        }
        assert_eq!(seen.phases(), [], "{case}");
        seen.0.is_stiff.store(true, Ordering::SeqCst);
        *seen.0.ended.lock().unwrap() = ended.map(str::to_owned);
        let done = block_on(async {
            if stops {
                desktop.suspend().await
            } else {
                desktop.wake().await
            }
        });
        let error = done.unwrap_err();
        let again = block_on(desktop.wake()).unwrap_err();
        let no = "scripted 0: the daemon says no";
        let (class, words) = match ended {
            None => (ErrorClass::Reset, no.to_owned()),
            Some(reason) => {
                let words = format!("scripted 0: {reason} (then: {no})");
                (ErrorClass::Crash, words)
            }
        };
        assert_eq!((error.class(), again.class()), (class, class), "{case}");
        assert_eq!(error.to_string(), words, "{case}");
        // Once, however often it is to go on.
        let told = seen.phases();
        assert_eq!(told.len(), usize::from(ended.is_some()), "{case}");
        assert!(told.iter().all(|phase| *phase == MachinePhase::Off));
    }
}

#[test]
fn who_gives_up_waiting_for_a_turn_is_not_queued_any_more() {
    let server = server(|_| None);
    let (seen, starts) = (Seen::default(), Starts::new(1));
    let mut desktop = seen.desktop(&server, &starts, fleet(), false);
    let task = task(&json!([]));
    block_on(async {
        let _turn = starts.turn(|| ()).await;
        let resetting = desktop.reset(&task, 0);
        let late = tokio::time::timeout(Duration::from_millis(50), resetting).await;
        assert!(late.is_err());
    });
    // Its machine was not touched, and is of whoever was there before.
    assert!(!desktop.failed_to_start() && !desktop.came_up());
    assert!(block_on(desktop.diagnose("reset: late")).is_none());
    assert_eq!(seen.phases(), [MachinePhase::Queued, MachinePhase::Off]);
    block_on(desktop.reset(&task, 0)).unwrap();
    assert!(desktop.came_up());
    assert_eq!(seen.phases(), []);
}

#[test]
fn machines_take_turns_to_start_and_say_that_they_wait() {
    let server = server(|_| None);
    let task = task(&json!([]));
    for (turns, desktops) in [(1, 4), (2, 6), (8, 3)] {
        let seen = Seen::default();
        let starts = Starts::new(turns);
        let open = |_| seen.desktop(&server, &starts, fleet(), false);
        let mut all: Vec<GuestDesktop> = (0..desktops).map(open).collect();
        let resets = all.iter_mut().map(|desktop| desktop.reset(&task, 0));
        for reset in block_on(futures::future::join_all(resets)) {
            reset.unwrap();
        }
        let most = seen.0.most.load(Ordering::SeqCst);
        assert_eq!(most, turns.min(desktops));
        let queued = seen.told().0;
        assert_eq!(queued.len(), desktops.saturating_sub(turns));
        for status in queued {
            assert_eq!(status.phase, MachinePhase::Queued);
            assert!(status.limit_ms.is_some() && !status.then.is_empty());
        }
    }
}
