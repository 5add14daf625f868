//! Virtual machines that break: each fault is classed, told with the machine's own reason while it
//! can still be seen from outside, and gone after a reset.

use std::future::Future;
use std::path::Path;
use std::time::{Duration, Instant};

use arpo::config::Resolved;
use arpo::env::guest::{Command, DesktopOptions, GuestDesktop, Upkeep};
use arpo::env::{EnvError, Environment, Machine, MachineState, Provider, Reporter, Starts};
use arpo::tasks::FileCache;
use arpo::types::{Action, ErrorClass, MachinePhase, Point, Task};
use rustix::process::Signal;

use super::{Heard, config, end_of, impatient, provider, qemu_of, signal, told, turn, wanted};

/// Longer than any deadline of the machines of these tests.
const GENEROUS: Duration = Duration::from_secs(180);

/// How long QEMU is held up where it is only slow.
const HELD_UP: Duration = Duration::from_secs(2);

/// What brings a fault about.
enum Cause {
    /// A script inside.
    Script(&'static str),
    /// A signal to QEMU.
    Signal(Signal),
}

use Cause::{Script, Signal as Sent};

/// What becomes of a machine.
enum Fate {
    /// It ends, with a reason that has these words.
    Ends(&'static str),
    /// It runs on, but nobody answers; whether its screen can still be seen from outside.
    Hangs { is_seen: bool },
    /// It runs on and answers, but shows nothing.
    Dark,
    /// Its server is gone for a moment.
    Recovers,
    /// It answers, but later.
    Slow,
}

use Fate::{Dark, Ends, Hangs, Recovers, Slow};

/// With a full disk last, where the machine has no more to lose.
const FAULTS: [(Cause, Fate); 12] = [
    // By a pattern that the script's own command line does not match.
    (
        Script("kill -9 $(pgrep -f '[a]rpo guest'); touch /tmp/killed"),
        Recovers,
    ),
    (Sent(Signal::STOP), Slow),
    (
        Script("for i in 1 2 3; do (while :; do :; done) & done; sleep 600"),
        Slow,
    ),
    (
        Script(
            "xterm -fullscreen -b 0 -bw 0 +sb -bg black -fg black -cr black -ms black \
             -e sleep 600",
        ),
        Dark,
    ),
    (
        Script("echo password | sudo -S kill -STOP -1"),
        Hangs { is_seen: true },
    ),
    (Sent(Signal::STOP), Hangs { is_seen: false }),
    (Sent(Signal::KILL), Ends("QEMU ended (137)")),
    (
        Script("echo password | sudo -S pkill -9 Xorg"),
        Ends("its guest gave up: the X server ended"),
    ),
    (
        Script("echo password | sudo -S busybox poweroff -f"),
        Ends("it was shut down from inside"),
    ),
    (
        Script("echo password | sudo -S busybox reboot -f"),
        Ends("it was restarted from inside"),
    ),
    (
        Script("echo password | sudo -S sh -c 'echo c >/proc/sysrq-trigger'"),
        Ends("its kernel panicked: sysrq triggered crash"),
    ),
    (
        Script("dd if=/dev/zero of=big bs=1M count=200; sync"),
        Ends("its disk is full: an episode may write env.qemu.disk_mb"),
    ),
];

fn task() -> Task {
    let task = r#"{"id": "t", "instruction": "i", "evaluator": {"func": "infeasible"}}"#;
    serde_json::from_str(task).unwrap()
}

/// A desktop on such a machine as a run has it, but not waited for longer than it must be.
fn desktop_on(machine: Box<dyn Machine>, files: &Path, reporter: Reporter) -> GuestDesktop {
    let files = FileCache::open(files).unwrap();
    let mut options = DesktopOptions::emulated();
    options.settle_reset = options.settle;
    let resolved = Resolved::load::<&str>(&[], &[]).unwrap();
    GuestDesktop::new(machine, files, options).kept_by(Upkeep {
        reporter,
        starts: Starts::new(1),
        fleet: resolved.profile.env.fleet,
        freeze_while_thinking: false,
    })
}

/// The machine of a desktop.
fn machine_of(desktop: &GuestDesktop) -> &dyn Machine {
    desktop.real().unwrap().machine
}

/// Waits for what comes long before, if it comes at all.
async fn in_time<T>(what: &str, future: impl Future<Output = T>) -> T {
    let waited = tokio::time::timeout(GENEROUS, future).await;
    waited.unwrap_or_else(|_| panic!("{what}: not within {GENEROUS:?}"))
}

/// Looks until a look fails, and says how.
async fn fails(desktop: &mut GuestDesktop) -> EnvError {
    loop {
        if let Err(error) = desktop.observe().await {
            return error;
        }
    }
}

async fn provoke(machine: &dyn Machine, cause: &Cause) {
    match cause {
        Script(script) => {
            // Some kill whoever would answer.
            let _ = machine.guest().launch(&Command::shell(*script)).await;
        }
        Sent(sent) => signal(qemu_of(machine), *sent),
    }
}

/// Makes sure that a fault became what it should.
async fn check(desktop: &mut GuestDesktop, fate: &Fate, heard: &Heard, what: &str) {
    match fate {
        Ends(words) => {
            let error = in_time(what, fails(desktop)).await;
            assert_eq!(error.class(), ErrorClass::Crash, "{what}: {error}");
            let reason = end_of(machine_of(desktop)).await;
            assert!(reason.contains(words), "{what}: {reason}");
            // A server may tell of what it lacks before the machine has ended of it.
            let cause = match error {
                EnvError::Ended { .. } => error,
                _ => desktop.diagnose(&error.to_string()).await.unwrap(),
            };
            assert_eq!(cause.class(), ErrorClass::Crash, "{what}: {cause}");
            assert!(cause.to_string().contains(&reason), "{what}: {cause}");
            let status = heard.last_status();
            assert_eq!(status.phase, MachinePhase::Off, "{what}: {status:?}");
            assert_eq!(status.detail, reason, "{what}");
        }
        Hangs { is_seen } => {
            let error = in_time(what, fails(desktop)).await;
            assert_eq!(error.class(), ErrorClass::Timeout, "{what}: {error}");
            assert_eq!(machine_of(desktop).state(), MachineState::Running, "{what}");
            let status = heard.last_status();
            assert_eq!(status.phase, MachinePhase::Suspect, "{what}: {status:?}");
            let picture = in_time(what, machine_of(desktop).picture()).await;
            assert_eq!(picture.is_some(), *is_seen, "{what}");
        }
        Dark => {
            let error = in_time(what, fails(desktop)).await;
            assert_eq!(error.class(), ErrorClass::Screenshot, "{what}: {error}");
            assert!(error.to_string().contains("black"), "{what}: {error}");
        }
        Recovers => {
            let guest = machine_of(desktop).guest();
            // Who finds the file is answered by the server after.
            let was_killed = Command::shell("test -e /tmp/killed");
            let again = async {
                loop {
                    if let Err(error) = guest.screenshot().await {
                        assert_eq!(error.class(), ErrorClass::Crash, "{what}: {error}");
                    } else if guest
                        .execute(&was_killed)
                        .await
                        .is_ok_and(|it| it.returncode == 0)
                    {
                        return;
                    }
                }
            };
            in_time(what, again).await;
            desktop.observe().await.unwrap();
            assert_eq!(machine_of(desktop).state(), MachineState::Running, "{what}");
        }
        Slow => {
            let point = Point { x: 500.0, y: 300.0 };
            in_time(what, desktop.observe()).await.unwrap();
            let click = Action::Click { at: point };
            in_time(what, desktop.step(&click)).await.unwrap();
            let cursor = machine_of(desktop).guest().cursor_position().await.unwrap();
            assert_eq!(cursor, point, "{what}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn faults_are_classed_told_and_survived() {
    if !wanted("faults_are_classed_told_and_survived") {
        return;
    }
    let _turn = turn().await;
    let heard = Heard::default();
    let provider = impatient(config(&["env.qemu.spare=false", "env.qemu.disk_mb=64"]));
    let machine = provider.machine(0, heard.reporter()).unwrap();
    let files = tempfile::tempdir().unwrap();
    let mut desktop = desktop_on(machine, files.path(), heard.reporter());
    for (number, (cause, fate)) in FAULTS.iter().enumerate() {
        let what = match cause {
            Script(script) => (*script).to_owned(),
            Sent(signal) => format!("signal {} to QEMU", signal.as_raw()),
        };
        desktop.reset(&task(), 0).await.unwrap();
        let machine = machine_of(&desktop);
        assert_eq!(machine.state(), MachineState::Running, "before {what}");
        assert_eq!(heard.last_status().phase, MachinePhase::Ready);
        let script = format!("ls Desktop; pgrep -c xterm; touch Desktop/{number}");
        assert_eq!(
            told(machine, &format!("{script}; true")).await,
            "0",
            "before {what}"
        );
        let began = Instant::now();
        provoke(machine, cause).await;
        let goes_on = matches!((cause, fate), (Sent(_), Slow)).then(|| {
            let qemu = qemu_of(machine);
            std::thread::spawn(move || {
                std::thread::sleep(HELD_UP);
                signal(qemu, Signal::CONT);
            })
        });
        check(&mut desktop, fate, &heard, &what).await;
        if let Some(goes_on) = goes_on {
            goes_on.join().unwrap();
            assert!(began.elapsed() >= HELD_UP, "it was not held up");
        }
    }
    desktop.reset(&task(), 0).await.unwrap();
    desktop.observe().await.unwrap();
    assert_eq!(told(machine_of(&desktop), "ls Desktop").await, "");
    desktop.close().await.unwrap();
    // Whatever is waited for has an end, and something that comes after.
    for status in heard.statuses() {
        let is_waited_for = matches!(
            status.phase,
            MachinePhase::Booting
                | MachinePhase::Restoring
                | MachinePhase::Checking
                | MachinePhase::Stopping
        );
        let is_bounded = status.limit_ms.is_some() && !status.then.is_empty();
        assert!(is_bounded || !is_waited_for, "{status:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_that_does_not_come_up_says_why() {
    if !wanted("a_machine_that_does_not_come_up_says_why") {
        return;
    }
    let _turn = turn().await;
    // It is made with more patience, if it has to be.
    let mut machine = provider(config(&["env.qemu.spare=false"]))
        .machine(2, Reporter::silent())
        .unwrap();
    machine.revert().await.unwrap();
    machine.close().await.unwrap();
    let mut config = config(&["env.qemu.spare=false"]);
    config.restore_deadline_s = 0.05;
    let heard = Heard::default();
    let mut machine = provider(config).machine(3, heard.reporter()).unwrap();
    let error = in_time("a revert", machine.revert()).await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Reset);
    let told = error.to_string();
    assert!(told.starts_with("qemu desktop 3: "), "{told}");
    let MachineState::Broken { reason } = machine.state() else {
        panic!("{:?}", machine.state());
    };
    assert!(told.ends_with(&reason), "{told}: {reason}");
    // What to remove should the snapshot be what is wrong.
    assert!(told.contains("/snapshots/"), "{told}");
    let status = heard.last_status();
    assert_eq!((status.phase, &status.detail), (MachinePhase::Off, &reason));
    assert!(heard.phases().contains(&MachinePhase::Restoring));
    assert!(machine.guest().screenshot().await.is_err());
    machine.close().await.unwrap();
    assert_eq!(machine.state(), MachineState::Off);
}
