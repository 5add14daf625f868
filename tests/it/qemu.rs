//! Virtual machines: that they come up from the snapshot, are told apart, are seen past their server,
//! and leave nothing of an episode to the next. Needs QEMU, bubblewrap, socat and the image of
//! `just vm-image`, which `ARPO_VM_IMAGE` names elsewhere; `ARPO_NO_VMS=1` does without.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use arpo::config::{QemuConfig, Resolved};
use arpo::env::guest::{Command, GuestOptions, Output};
use arpo::env::qemu::{Qemu, QemuOptions, needs};
use arpo::env::{Machine, MachineNews, MachineState, Provider, Reporter};
use arpo::types::{Action, MachinePhase, Point};

/// Whether machines are to be tested here. Where they cannot run, the test fails by its name.
#[expect(clippy::print_stderr, reason = "a skipped test says so by name")]
pub(crate) fn wanted(test: &str) -> bool {
    if std::env::var_os("ARPO_NO_VMS").is_some_and(|value| value == "1") {
        eprintln!("skipped, ARPO_NO_VMS=1: {test}");
        return false;
    }
    if let Err(needs::Unmet { found, remedy }) = needs::check() {
        panic!("{test} needs virtual machines: {found}: {remedy}, or ARPO_NO_VMS=1 does without");
    }
    if let Err(reason) = needs::check_image(&config(&[])) {
        panic!("{test}: {reason}, or ARPO_NO_VMS=1 does without");
    }
    true
}

/// Where tests' machines are kept: apart from those of real runs, beside other tests' desktops, so
/// that all have users of their own.
fn state() -> PathBuf {
    crate::xvfb::state()
}

/// A machine's configuration: that of the base, but for `sets`.
fn config(sets: &[&str]) -> QemuConfig {
    let resolved = Resolved::load::<&str>(&[], sets).unwrap();
    let mut config = resolved.profile.env.qemu;
    if let Ok(image) = std::env::var("ARPO_VM_IMAGE") {
        config.image = image;
    } else if !Path::new(&config.image).is_absolute() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        config.image = root.join(&config.image).display().to_string();
    }
    // A machine that others test on, too.
    config.boot_deadline_s = 300.0;
    config.restore_deadline_s = 120.0;
    config
}

fn provider(config: QemuConfig) -> Qemu {
    let mut guest = GuestOptions::new(config.screen());
    guest.tries = 2;
    let options = QemuOptions {
        config,
        state: state(),
        arpo: env!("CARGO_BIN_EXE_arpo").into(),
        guest,
        translated: 4,
    };
    Qemu::new(options).unwrap()
}

/// What a machine told, in order.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<MachineNews>>>);

impl Heard {
    fn reporter(&self) -> Reporter {
        let heard = self.0.clone();
        Reporter::new(0, Arc::new(move |_, news| heard.lock().unwrap().push(news)))
    }

    /// The phases it went through, each once a stay.
    fn phases(&self) -> Vec<MachinePhase> {
        let news = self.0.lock().unwrap();
        let phases = news.iter().filter_map(|news| match news {
            MachineNews::Status(status) => Some(status.phase),
            _ => None,
        });
        let mut phases: Vec<MachinePhase> = phases.collect();
        phases.dedup();
        phases
    }
}

/// Runs a script on a machine.
async fn shell(machine: &dyn Machine, script: &str) -> Output {
    let command = Command::shell(script);
    machine.guest().execute(&command).await.unwrap()
}

/// What a script on a machine prints.
async fn told(machine: &dyn Machine, script: &str) -> String {
    let output = shell(machine, script).await;
    assert_eq!(output.returncode, 0, "{script}: {output:?}");
    output.stdout.trim_end().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_episode_acts_is_seen_and_leaves_nothing() {
    if !wanted("an_episode_acts_is_seen_and_leaves_nothing") {
        return;
    }
    let heard = Heard::default();
    let provider = provider(config(&["env.qemu.spare=false"]));
    let mut machine = provider.machine(7, heard.reporter()).unwrap();
    assert_eq!(machine.state(), MachineState::Off);
    assert_eq!(machine.name(), "qemu desktop 7");
    for round in 0..2 {
        machine.revert().await.unwrap();
        assert_eq!(machine.state(), MachineState::Running);
        let script = "ls -A Desktop; whoami; pwd; id -u; ls /etc/left 2>&1";
        let before = shell(machine.as_ref(), script).await.stdout;
        let expected = "user\n/home/user\n1000\n\
                        ls: cannot access '/etc/left': No such file or directory\n";
        assert_eq!(before, expected, "round {round}");
        let leave = "touch Desktop/x; echo password | sudo -S touch /etc/left; sync";
        told(machine.as_ref(), leave).await;

        let point = Point { x: 123.0, y: 456.0 };
        let click = Action::Click { at: point };
        machine.guest().act(&click).await.unwrap();
        assert_eq!(machine.guest().cursor_position().await.unwrap(), point);
        let inside = machine.guest().screenshot().await.unwrap();
        let outside = machine.picture().await.unwrap();
        assert_eq!(inside.size(), outside.size());
        let differing = inside.rgb().iter().zip(outside.rgb());
        let differing = differing.filter(|(one, other)| one != other).count();
        // The pointer is in one of them.
        assert!(differing < inside.rgb().len() / 100, "{differing}");
        assert!(machine.memory_bytes().unwrap() > 64 << 20);
    }
    machine.close().await.unwrap();
    assert_eq!(machine.state(), MachineState::Off);
    let phases = heard.phases();
    let last = [
        MachinePhase::Ready,
        MachinePhase::Stopping,
        MachinePhase::Preparing,
        MachinePhase::Restoring,
        MachinePhase::Checking,
        MachinePhase::Ready,
        MachinePhase::Stopping,
        MachinePhase::Off,
    ];
    assert!(phases.ends_with(&last), "{phases:?}");
}
