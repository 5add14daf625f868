//! Real desktops in sandboxes: that they come up, are told apart, keep in what runs on them, and
//! leave nothing. Needs bubblewrap, Xvfb and openbox; `ARPO_NO_DESKTOPS=1` does without.

mod escape;
mod faults;
mod leaks;
mod umask;

use std::path::{Path, PathBuf};
use std::time::Duration;

use arpo::config::{Resolved, XvfbConfig};
use arpo::env::guest::GuestOptions;
use arpo::env::xvfb::{Xvfb, XvfbOptions, needs};
use arpo::env::{Machine, MachineState, Provider, Reporter};

use crate::machines::{
    Heard, reaches_a_port_and_no_other, shell, tells_that_its_start_is_given_up, told,
};

/// Whether desktops are to be tested here. Where they cannot run, the test fails by its name.
#[expect(clippy::print_stderr, reason = "a skipped test says so by name")]
pub(crate) fn wanted(test: &str) -> bool {
    if std::env::var_os("ARPO_NO_DESKTOPS").is_some_and(|value| value == "1") {
        eprintln!("skipped, ARPO_NO_DESKTOPS=1: {test}");
        return false;
    }
    if let Err(needs::Unmet { found, remedy }) = needs::check() {
        panic!("{test} needs desktops: {found}: {remedy}, or ARPO_NO_DESKTOPS=1 does without");
    }
    true
}

/// Where tests' desktops are kept: apart from those of real runs, one for all tests, since making
/// what they start from takes seconds.
pub(crate) fn state() -> PathBuf {
    let uid = rustix::process::geteuid().as_raw();
    PathBuf::from(format!("/tmp/arpo-{uid}-test-desktops"))
}

/// A desktop's configuration: that of the base, but for `sets`.
fn config(sets: &[&str]) -> XvfbConfig {
    let resolved = Resolved::load::<&str>(&[], sets).unwrap();
    resolved.profile.env.xvfb
}

fn provider_in(state: &Path, config: XvfbConfig) -> Xvfb {
    let mut guest = GuestOptions::new(config.screen());
    // Faults are waited out, and there is no other server to wait for.
    guest.deadline = Duration::from_secs(8);
    guest.tries = 2;
    let arpo = env!("CARGO_BIN_EXE_arpo").into();
    let options = XvfbOptions {
        config,
        state: state.to_owned(),
        arpo,
        guest,
    };
    Xvfb::new(options).unwrap()
}

fn provider(config: XvfbConfig) -> Xvfb {
    provider_in(&state(), config)
}

/// A desktop that is up, without a spare beside it.
async fn desktop(sets: &[&str]) -> Box<dyn Machine> {
    let sets = [sets, &["env.xvfb.spare=false"]].concat();
    let mut machine = provider(config(&sets))
        .machine(0, Reporter::silent())
        .unwrap();
    machine.revert().await.unwrap();
    machine
}

#[tokio::test]
async fn an_episode_finds_nothing_of_the_one_before() {
    if !wanted("an_episode_finds_nothing_of_the_one_before") {
        return;
    }
    let heard = Heard::default();
    let mut machine = provider(config(&[])).machine(7, heard.reporter()).unwrap();
    assert_eq!(machine.state(), MachineState::Off);
    assert_eq!(machine.name(), "xvfb desktop 7");
    tells_that_its_start_is_given_up(machine.as_mut(), &heard);
    for _ in 0..3 {
        machine.revert().await.unwrap();
        assert_eq!(machine.state(), MachineState::Running);
        let script = "ls -A /tmp Desktop; whoami; pwd; echo $HOME; id -u; pgrep -c sleep";
        let before = shell(machine.as_ref(), script).await.stdout;
        let expected =
            "/tmp:\n.X0-lock\n.X11-unix\n\nDesktop:\nuser\n/home/user\n/home/user\n1000\n0";
        assert_eq!(before.trim_end().replace(".ICE-unix\n", ""), expected);
        let leave = "touch /tmp/x Desktop/x /run/arpo/x; sleep 1000 >/dev/null 2>&1 & true";
        told(machine.as_ref(), leave).await;
    }
    machine.close().await.unwrap();
    assert_eq!(machine.state(), MachineState::Off);
}

#[tokio::test]
async fn the_screen_is_the_profiles_and_not_black() {
    if !wanted("the_screen_is_the_profiles_and_not_black") {
        return;
    }
    for (width, height) in [(1280, 720), (1920, 1080)] {
        let sets = [
            format!("env.xvfb.screen_width={width}"),
            format!("env.xvfb.screen_height={height}"),
        ];
        let mut machine = desktop(&sets.each_ref().map(String::as_str)).await;
        let screenshot = machine.guest().screenshot().await.unwrap();
        let size = screenshot.size();
        assert_eq!((size.width, size.height), (width, height));
        assert!(screenshot.rgb().iter().any(|value| *value > 64));
        machine.close().await.unwrap();
    }
}

#[tokio::test]
async fn files_open_with_their_applications() {
    if !wanted("files_open_with_their_applications") {
        return;
    }
    let mut machine = desktop(&[]).await;
    let kinds = [
        (
            "wordprocessingml.document",
            "libreoffice-writer",
            "lowriter",
        ),
        ("spreadsheetml.sheet", "libreoffice-calc", "localc"),
        (
            "presentationml.presentation",
            "libreoffice-impress",
            "loimpress",
        ),
    ];
    for (kind, application, program) in kinds {
        let need = needs::NEEDS.iter().find(|need| need.program == program);
        if need.unwrap().find().is_none() {
            continue;
        }
        let kind = format!("application/vnd.openxmlformats-officedocument.{kind}");
        let script = format!("xdg-mime query default {kind}");
        let opener = told(machine.as_ref(), &script).await;
        assert_eq!(opener, format!("{application}.desktop"), "{kind}");
    }
    machine.close().await.unwrap();
}

#[tokio::test]
async fn a_port_inside_is_reached_and_no_other() {
    if !wanted("a_port_inside_is_reached_and_no_other") {
        return;
    }
    let mut machine = desktop(&[]).await;
    reaches_a_port_and_no_other(machine.as_ref()).await;
    machine.close().await.unwrap();
}

#[tokio::test]
async fn four_desktops_run_at_once() {
    if !wanted("four_desktops_run_at_once") {
        return;
    }
    let provider = provider(config(&[]));
    let machines = (0..4).map(|number| provider.machine(number, Reporter::silent()).unwrap());
    let mut machines: Vec<_> = machines.collect();
    let reverts = machines.iter_mut().map(|machine| machine.revert());
    for outcome in futures::future::join_all(reverts).await {
        outcome.unwrap();
    }
    for (number, machine) in machines.iter().enumerate() {
        told(machine.as_ref(), &format!("touch Desktop/{number}")).await;
    }
    for (number, machine) in machines.iter_mut().enumerate() {
        let files = told(machine.as_ref(), "ls Desktop").await;
        assert_eq!(files, number.to_string());
        machine.close().await.unwrap();
    }
}
