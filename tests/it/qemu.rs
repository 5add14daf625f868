//! Virtual machines: that they come up from the snapshot, are told apart, are seen past their server,
//! and leave nothing of an episode to the next. Needs QEMU, bubblewrap, socat and the image of
//! `just vm-image`, which `ARPO_VM_IMAGE` names elsewhere; `ARPO_NO_VMS=1` does without.

mod escape;
mod faults;
mod leaks;
mod tasks;
#[cfg(feature = "torch")]
mod training;

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use arpo::config::{QemuConfig, Resolved};
use arpo::env::guest::{Command, GuestOptions};
use arpo::env::qemu::{Qemu, QemuOptions, needs};
use arpo::env::{Machine, MachineState, Provider};
use arpo::types::{Action, MachinePhase, Point};
use rustix::process::{Pid, Signal, kill_process};

use crate::machines::{
    Heard, reaches_a_port_and_no_other, shell, tells_that_its_start_is_given_up, told,
};
use crate::processes;

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

/// Held by whoever has machines: each takes most of a core, and tests wait for what they do.
static TURN: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// Waits for the turn to have machines.
async fn turn() -> tokio::sync::MutexGuard<'static, ()> {
    TURN.lock().await
}

/// The same outside of a runtime.
fn wait_for_turn() -> tokio::sync::MutexGuard<'static, ()> {
    TURN.blocking_lock()
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

/// What `config` changes, as a command is told.
fn settings() -> Vec<String> {
    let config = config(&[]);
    let image = config.image_folder().canonicalize().unwrap();
    vec![
        format!("env.qemu.image={:?}", image.display().to_string()),
        format!("env.qemu.boot_deadline_s={:?}", config.boot_deadline_s),
        format!(
            "env.qemu.restore_deadline_s={:?}",
            config.restore_deadline_s
        ),
    ]
}

fn provider(config: QemuConfig) -> Qemu {
    provider_waiting(config, |_| {})
}

/// For machines whose servers are waited for in vain.
fn impatient(config: QemuConfig) -> Qemu {
    provider_waiting(config, |guest| guest.deadline = Duration::from_secs(3))
}

fn provider_waiting(config: QemuConfig, change: impl FnOnce(&mut GuestOptions)) -> Qemu {
    let mut guest = GuestOptions::new(config.screen());
    guest.tries = 2;
    change(&mut guest);
    let options = QemuOptions {
        config,
        state: state(),
        arpo: env!("CARGO_BIN_EXE_arpo").into(),
        guest,
        translated: 4,
    };
    Qemu::new(options).unwrap()
}

/// Why a machine ended, which is known a moment after it has.
async fn end_of(machine: &dyn Machine) -> String {
    for _ in 0..600 {
        if let MachineState::Ended { reason } = machine.state() {
            return reason;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the machine runs on")
}

/// The process that is a running machine: of all QEMUs, the one in whose sandbox its socket lies.
fn qemu_of(machine: &dyn Machine) -> u32 {
    let socket = machine.guest().address().strip_prefix("unix:").unwrap();
    let of_file = |path: &Path| std::fs::metadata(path).map(|data| data.dev()).ok();
    let wanted = of_file(Path::new(socket)).unwrap();
    let is_its = |pid: &u32| {
        let process = Path::new("/proc").join(pid.to_string());
        let name = std::fs::read_to_string(process.join("comm")).unwrap_or_default();
        let run = process.join("root").join("run").join("arpo");
        name.starts_with("qemu-system") && of_file(&run) == Some(wanted)
    };
    processes::all().into_iter().find(is_its).unwrap()
}

/// Sends a signal to a process that is known to live.
fn signal(process: u32, signal: Signal) {
    let pid = Pid::from_raw(process as i32).unwrap();
    kill_process(pid, signal).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_episode_acts_is_seen_and_leaves_nothing() {
    if !wanted("an_episode_acts_is_seen_and_leaves_nothing") {
        return;
    }
    let _turn = turn().await;
    let heard = Heard::default();
    let provider = provider(config(&["env.qemu.spare=false"]));
    let mut machine = provider.machine(7, heard.reporter()).unwrap();
    assert_eq!(machine.state(), MachineState::Off);
    assert_eq!(machine.name(), "qemu desktop 7");
    tells_that_its_start_is_given_up(machine.as_mut(), &heard);
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
        MachinePhase::Restoring,
        MachinePhase::Checking,
        MachinePhase::Ready,
        MachinePhase::Stopping,
        MachinePhase::Off,
    ];
    assert!(phases.ends_with(&last), "{phases:?}");
}

/// How long a guest has run by its own clock.
async fn uptime(machine: &dyn Machine) -> Duration {
    let seconds = told(machine, "cut -d' ' -f1 /proc/uptime").await;
    Duration::from_secs_f64(seconds.parse().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_is_reached_and_frozen() {
    if !wanted("a_machine_is_reached_and_frozen") {
        return;
    }
    let _turn = turn().await;
    let heard = Heard::default();
    let provider = provider(config(&["env.qemu.spare=false"]));
    let mut machine = provider.machine(0, heard.reporter()).unwrap();
    machine.revert().await.unwrap();

    reaches_a_port_and_no_other(machine.as_ref()).await;

    // A server that hangs, and what is seen past it.
    told(machine.as_ref(), "touch /tmp/kept").await;
    let hang = Command::shell("sleep 1; kill -STOP $(cat /run/server.pid)");
    machine.guest().launch(&hang).await.unwrap();
    let short = Duration::from_secs(5);
    while tokio::time::timeout(short, machine.guest().platform())
        .await
        .is_ok()
    {}
    assert!(machine.picture().await.is_some());
    machine.restart_server().await.unwrap();
    assert_eq!(told(machine.as_ref(), "ls /tmp/kept").await, "/tmp/kept");

    // Time that stands still.
    let frozen = Duration::from_secs(5);
    let began = Instant::now();
    let before = uptime(machine.as_ref()).await;
    machine.suspend().await.unwrap();
    assert_eq!(machine.state(), MachineState::Running);
    assert_eq!(heard.phases().last(), Some(&MachinePhase::Frozen));
    tokio::time::sleep(frozen).await;
    machine.wake().await.unwrap();
    assert_eq!(heard.phases().last(), Some(&MachinePhase::Ready));
    let passed = uptime(machine.as_ref()).await.saturating_sub(before);
    let wall = began.elapsed();
    assert!(passed + frozen / 2 < wall, "{passed:?} of {wall:?}");
    machine.close().await.unwrap();
}

#[test]
fn the_profiles_tasks_have_scripts_and_fit_the_image() {
    let resolved = Resolved::load(&["profiles/qemu.toml"], &[]).unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap();
    let domains: BTreeMap<String, Vec<String>> =
        serde_json::from_str(&read(&resolved.profile.eval.tasks)).unwrap();
    let script: toml::Table = read(&resolved.profile.policy.script).parse().unwrap();
    for (domain, tasks) in domains {
        assert!(
            ["libreoffice_writer", "os", "vs_code"].contains(&&*domain),
            "{domain}"
        );
        for task in tasks {
            let trials = script["tasks"][&task].as_array().unwrap();
            assert_eq!(trials.len(), resolved.profile.eval.trials, "{task}");
        }
    }
}
