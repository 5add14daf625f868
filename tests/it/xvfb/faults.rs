//! Desktops that break: each fault is classed, told with its reason, and gone after a revert.

use arpo::env::guest::{Command, DesktopOptions, GuestDesktop};
use arpo::env::{Environment, Machine, MachineState, Provider, Reporter};
use arpo::tasks::FileCache;
use arpo::types::ErrorClass;

use super::{desktop, shell, told, wanted};

/// Looks until the look fails, at most so many times, and says how.
async fn fails(machine: &dyn Machine) -> ErrorClass {
    for _ in 0..50 {
        if let Err(error) = machine.guest().screenshot().await {
            return error.class();
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    panic!("the desktop goes on");
}

/// Why a machine ended, which is known a moment after its server is gone.
async fn end_of(machine: &dyn Machine) -> String {
    for _ in 0..50 {
        if let MachineState::Ended { reason } = machine.state() {
            return reason;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    panic!("the machine runs on")
}

async fn is_well_after_revert(machine: &mut Box<dyn Machine>) {
    machine.revert().await.unwrap();
    assert_eq!(machine.state(), MachineState::Running);
    machine.guest().screenshot().await.unwrap();
    assert_eq!(told(machine.as_ref(), "echo well").await, "well");
}

#[tokio::test]
async fn faults_are_classed_and_survived() {
    if !wanted("faults_are_classed_and_survived") {
        return;
    }
    let mut machine = desktop(&[]).await;
    let faults = [
        (
            "pkill -9 Xvfb",
            ErrorClass::Crash,
            Some("the X server ended"),
        ),
        (
            "kill -9 $(cat /run/arpo/server.pid)",
            ErrorClass::Crash,
            None,
        ),
        ("kill -STOP -1", ErrorClass::Timeout, None),
        ("kill -9 -1", ErrorClass::Crash, Some("its session ended")),
    ];
    for (fault, class, reason) in faults {
        // Some kill whoever would answer.
        let _ = machine
            .guest()
            .launch(&Command::program(["sh", "-c", fault]))
            .await;
        assert_eq!(fails(machine.as_ref()).await, class, "{fault}");
        match reason {
            Some(expected) => {
                let reason = end_of(machine.as_ref()).await;
                assert!(reason.contains(expected), "{fault}: {reason}");
            }
            None => assert_eq!(machine.state(), MachineState::Running, "{fault}"),
        }
        is_well_after_revert(&mut machine).await;
    }
    machine.close().await.unwrap();
}

#[tokio::test]
async fn a_server_is_restarted_alone() {
    if !wanted("a_server_is_restarted_alone") {
        return;
    }
    let mut machine = desktop(&[]).await;
    for stop in [
        "true",
        "kill -9 $(cat /run/arpo/server.pid)",
        "kill -STOP $(cat /run/arpo/server.pid)",
    ] {
        told(machine.as_ref(), "touch Desktop/kept").await;
        let _ = machine
            .guest()
            .launch(&Command::program(["sh", "-c", stop]))
            .await;
        machine.restart_server().await.unwrap();
        assert_eq!(told(machine.as_ref(), "ls Desktop").await, "kept", "{stop}");
        machine.guest().screenshot().await.unwrap();
    }
    machine.close().await.unwrap();
}

#[tokio::test]
async fn a_killed_application_leaves_a_desktop() {
    if !wanted("a_killed_application_leaves_a_desktop") {
        return;
    }
    let mut machine = desktop(&[]).await;
    for program in ["openbox", "dbus-daemon", "pcmanfm"] {
        shell(machine.as_ref(), &format!("pkill -9 {program}")).await;
        machine.guest().screenshot().await.unwrap();
        assert_eq!(machine.state(), MachineState::Running, "{program}");
    }
    is_well_after_revert(&mut machine).await;
    machine.close().await.unwrap();
}

#[tokio::test]
async fn a_black_screen_ends_an_episode_and_not_the_desktop() {
    if !wanted("a_black_screen_ends_an_episode_and_not_the_desktop") {
        return;
    }
    let files = tempfile::tempdir().unwrap();
    let files = FileCache::open(files.path()).unwrap();
    let machine = super::provider(super::config(&["env.xvfb.spare=false"]));
    let machine = machine.machine(0, Reporter::silent()).unwrap();
    let mut desktop = GuestDesktop::new(machine, files, DesktopOptions::local());
    let task = r#"{"id": "t", "instruction": "i", "evaluator": {"func": "infeasible"}}"#;
    let task = serde_json::from_str(task).unwrap();
    desktop.reset(&task, 0).await.unwrap();
    let dark = "xterm -fullscreen -b 0 -bw 0 +sb -bg black -fg black -cr black -ms black \
                -e sleep 600";
    let guest = desktop.real().unwrap().machine.guest();
    guest
        .launch(&Command::program(dark.split_whitespace()))
        .await
        .unwrap();
    let mut error = None;
    for _ in 0..50 {
        error = desktop.observe().await.err();
        if error.is_some() {
            break;
        }
    }
    let error = error.expect("the screen is black");
    assert_eq!(error.class(), ErrorClass::Screenshot, "{error}");
    assert!(error.to_string().contains("black"), "{error}");
    desktop.reset(&task, 0).await.unwrap();
    desktop.observe().await.unwrap();
    desktop.close().await.unwrap();
}

#[tokio::test]
async fn a_desktop_that_cannot_start_says_why() {
    if !wanted("a_desktop_that_cannot_start_says_why") {
        return;
    }
    let config = super::config(&["env.xvfb.start_deadline_s=0.01"]);
    let mut machine = super::provider(config)
        .machine(3, Reporter::silent())
        .unwrap();
    let error = machine.revert().await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Reset);
    let told = error.to_string();
    assert!(told.starts_with("xvfb desktop 3: "), "{told}");
    assert!(matches!(machine.state(), MachineState::Broken { .. }));
    machine.close().await.unwrap();
}
