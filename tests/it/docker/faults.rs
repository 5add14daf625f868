//! What goes wrong with containers and their daemon, and what an operator is told.

use std::time::Duration;

use arpo::env::docker::needs::Grade;
use arpo::env::docker::{Deadlines, Docker, DockerOptions, examine, socket_of};
use arpo::env::{MachineState, Provider};
use arpo::types::MachinePhase;

use super::engine::{AfterStart, Guest, Plan};
use super::{Place, until};
use crate::machines::{Heard, reason_of};

/// A start that fails: its name, what the daemon is told to do, the profile's values, what the
/// error says, containers that were made for it.
struct Fault {
    name: &'static str,
    plan: Plan,
    sets: &'static [&'static str],
    says: &'static [&'static str],
    created: usize,
}

const CLASH: &str = "driver failed programming external connectivity: port is already allocated";

/// Of the daemon and of what ends containers.
fn faults_of_containers() -> Vec<Fault> {
    let plan = Plan::default;
    vec![
        Fault {
            name: "no port is free, twice",
            plan: Plan {
                starts: vec![(500, CLASH), (500, CLASH)],
                ..plan()
            },
            sets: &[],
            says: &[
                "cannot start the container",
                "(500)",
                "port is already allocated",
            ],
            created: 2,
        },
        Fault {
            name: "the image went away after the first look",
            plan: Plan {
                starts: vec![(404, "No such image: x")],
                ..plan()
            },
            sets: &[],
            says: &["No such image: x"],
            created: 1,
        },
        Fault {
            name: "it ends while it boots",
            plan: Plan {
                after_start: AfterStart::Exits(3),
                guest: Guest::NeverAnswers,
                log: "qemu: \x1b[31mcould not open disk\nbye\n",
                ..plan()
            },
            sets: &[],
            says: &[
                "exit code 3",
                "its log ends: qemu:  [31mcould not open disk | bye",
            ],
            created: 2,
        },
        Fault {
            name: "the kernel kills it",
            plan: Plan {
                after_start: AfterStart::Exits(137),
                guest: Guest::NeverAnswers,
                ..plan()
            },
            sets: &[],
            says: &["exit code 137, out of memory", "lower env.desktops"],
            created: 2,
        },
        Fault {
            name: "somebody removes it",
            plan: Plan {
                after_start: AfterStart::IsLost,
                guest: Guest::NeverAnswers,
                ..plan()
            },
            sets: &[],
            says: &["somebody removed its container"],
            created: 2,
        },
    ]
}

/// Of the machine within.
fn faults_of_machines() -> Vec<Fault> {
    let plan = Plan::default;
    let brief: &[&str] = &["env.docker.boot_deadline_s=1.5"];
    vec![
        Fault {
            name: "its server never answers",
            plan: Plan {
                guest: Guest::NeverAnswers,
                ..plan()
            },
            sets: brief,
            says: &[
                "does not answer within 1.5 s: http",
                "its log ends: Booting...",
            ],
            created: 2,
        },
        Fault {
            name: "its screen has another size",
            plan: Plan {
                guest: Guest::Size(640, 480),
                ..plan()
            },
            sets: &[],
            says: &[
                "640x480 pixels instead of 320x320",
                "env.docker.screen_width",
            ],
            created: 1,
        },
        Fault {
            name: "its programs never run",
            plan: Plan {
                guest: Guest::FailsPrograms(u32::MAX),
                ..plan()
            },
            sets: brief,
            says: &[
                "does not answer within 1.5 s: execute",
                "Connection reset by peer",
            ],
            created: 2,
        },
        Fault {
            name: "its ports are open to the world",
            plan: Plan {
                published_at: "0.0.0.0",
                ..plan()
            },
            sets: &[],
            says: &["port 5000 at \"0.0.0.0\"", "told 127.0.0.1"],
            created: 2,
        },
    ]
}

#[tokio::test]
async fn a_start_that_fails_says_why_and_leaves_nothing() {
    for fault in faults_of_containers()
        .into_iter()
        .chain(faults_of_machines())
    {
        let place = Place::new(fault.plan);
        let heard = Heard::default();
        let provider = place.provider(fault.sets);
        let mut machine = provider.machine(0, heard.reporter()).unwrap();
        let reason = reason_of(machine.revert().await.unwrap_err());
        for part in fault.says {
            assert!(reason.contains(part), "{}: {reason}", fault.name);
        }
        assert!(
            !reason.contains(char::is_control),
            "{}: {reason:?}",
            fault.name
        );
        let created = place.engine.asked("POST containers/create").len();
        assert_eq!(created, fault.created, "{}", fault.name);
        assert_eq!(place.engine.ids().len(), 0, "{}", fault.name);
        let broken = MachineState::Broken {
            reason: reason.clone(),
        };
        assert_eq!(machine.state(), broken, "{}", fault.name);
        let last = heard.statuses().pop().unwrap();
        assert_eq!((last.phase, last.detail), (MachinePhase::Off, reason));
        assert!(machine.guest().platform().await.is_err());
        // What passes lets the next one begin.
        place.engine.daemon().plan = Plan::default();
        machine.revert().await.unwrap();
        machine.close().await.unwrap();
    }
}

#[tokio::test]
async fn faults_that_pass_are_waited_out() {
    let table = [
        Plan {
            starts: vec![(500, CLASH)],
            ..Plan::default()
        },
        Plan {
            guest: Guest::FailsPrograms(4),
            ..Plan::default()
        },
    ];
    for plan in table {
        let place = Place::new(plan);
        let mut machine = place
            .provider(&[])
            .machine(0, Heard::default().reporter())
            .unwrap();
        machine.revert().await.unwrap();
        assert_eq!(place.engine.ids().len(), 1);
        machine.close().await.unwrap();
    }
}

#[tokio::test]
async fn an_answer_that_is_lost_leaves_no_container() {
    let place = Place::new(Plan {
        hangs_at_create: true,
        ..Plan::default()
    });
    let options = DockerOptions {
        deadlines: Deadlines {
            slow: Duration::from_secs(1),
            ..Deadlines::default()
        },
        ..place.options(&[])
    };
    let provider = Docker::new(options).unwrap();
    let mut machine = provider.machine(0, Heard::default().reporter()).unwrap();
    let reason = reason_of(machine.revert().await.unwrap_err());
    let expected = "cannot create a container: the Docker daemon did not answer within 1 s";
    assert_eq!(reason, expected);
    assert_eq!(place.engine.asked("POST containers/create").len(), 2);
    assert_eq!(place.engine.ids().len(), 0);
}

/// What happens to a container that is up.
type Happens = fn(&Place);

#[tokio::test]
async fn the_end_of_one_that_is_up_is_told_at_once() {
    let table: [(&str, Happens, &str); 2] = [
        (
            "its program ends",
            |place| place.engine.exit(1),
            "ended with exit code 1",
        ),
        (
            "somebody removes it",
            |place| {
                let mut daemon = place.engine.daemon();
                drop(daemon.containers.pop());
            },
            "somebody removed its container",
        ),
    ];
    for (name, happens, says) in table {
        let place = Place::new(Plan::default());
        let heard = Heard::default();
        let mut machine = place.provider(&[]).machine(0, heard.reporter()).unwrap();
        machine.revert().await.unwrap();
        happens(&place);
        until(|| machine.state() != MachineState::Running).await;
        let MachineState::Ended { reason } = machine.state() else {
            panic!("{name}: {:?}", machine.state());
        };
        assert!(reason.contains(says), "{name}: {reason}");
        until(|| heard.phases().last() == Some(&MachinePhase::Off)).await;
        assert_eq!(heard.statuses().pop().unwrap().detail, reason, "{name}");
        machine.revert().await.unwrap();
        assert_eq!(machine.state(), MachineState::Running, "{name}");
        machine.close().await.unwrap();
        assert_eq!(place.engine.ids().len(), 0, "{name}");
    }
}

#[tokio::test]
async fn a_lease_that_is_over_ends_its_container() {
    let place = Place::new(Plan::default());
    let mut options = place.options(&[]);
    options.config.lease_h = 2.0 / 3600.0;
    let provider = Docker::new(options).unwrap();
    let mut machine = provider.machine(0, Heard::default().reporter()).unwrap();
    machine.revert().await.unwrap();
    until(|| matches!(machine.state(), MachineState::Ended { .. })).await;
    let MachineState::Ended { reason } = machine.state() else {
        unreachable!("it was just so");
    };
    assert!(reason.contains("raise env.docker.lease_h"), "{reason}");
    assert_eq!(place.engine.ids().len(), 0);
}

#[tokio::test]
async fn long_logs_are_cut() {
    let place = Place::new(Plan {
        log: Box::leak("line\n".repeat(5000).into_boxed_str()),
        ..Plan::default()
    });
    let heard = Heard::default();
    let mut machine = place.provider(&[]).machine(0, heard.reporter()).unwrap();
    machine.revert().await.unwrap();
    let cut = "(more than 2000 lines: the rest is left out)";
    until(|| heard.said().iter().any(|line| line == cut)).await;
    machine.close().await.unwrap();
    let lines = heard.said().iter().filter(|line| *line == "line").count();
    assert_eq!(lines, 2000);
}

/// What has to be there before the first start: what is wrong, the profile's values, what the error
/// says. Each names a remedy.
#[tokio::test]
async fn what_is_missing_is_told_before_the_first_start() {
    let no_image = Plan {
        image: false,
        ..Plan::default()
    };
    let little = Plan {
        memory_gb: 7,
        ..Plan::default()
    };
    let table: [(Plan, &[&str], &[&str]); 5] = [
        (
            no_image,
            &[],
            &[
                "no image happysixd/osworld-docker",
                "docker pull happysixd/osworld",
            ],
        ),
        (
            little,
            &[],
            &[
                "2 desktops of 4 GB on a host of 7.0 GB",
                "set env.desktops to 1 or less",
            ],
        ),
        (
            Plan::default(),
            &["env.docker.disk=/nowhere/x.qcow2"],
            &["/nowhere/x.qcow2 cannot be read", "env.docker.disk"],
        ),
        (
            Plan::default(),
            &["env.docker.disk=Cargo.toml"],
            &["Cargo.toml is no qcow2 image", "env.docker.disk"],
        ),
        (
            Plan::default(),
            &["env.docker.kvm=require"],
            &["no device /nowhere/kvm", "env.docker.kvm"],
        ),
    ];
    for (plan, sets, says) in table {
        let place = Place::new(plan);
        let mut options = place.options(sets);
        options.host.kvm = "/nowhere/kvm".into();
        let reason = reason_of(Docker::new(options).unwrap_err());
        for part in says {
            assert!(reason.contains(part), "{reason}");
        }
        assert!(place.engine.asked("POST ").is_empty(), "{sets:?}");
    }
}

#[tokio::test]
async fn too_little_memory_is_a_warning_where_the_profile_wants_to_try() {
    let table = [
        ("refuse", Grade::Unmet),
        ("warn", Grade::Limited),
        ("off", Grade::Limited),
    ];
    for (admission, grade) in table {
        let place = Place::new(Plan {
            memory_gb: 7,
            ..Plan::default()
        });
        let set = format!("env.fleet.admission={admission}");
        let options = place.options(&[&set]);
        let needs = examine(&options);
        let memory = needs.iter().find(|need| need.name == "vm memory").unwrap();
        assert_eq!(memory.grade, grade, "{admission}");
        assert!(memory.found.contains("2 desktops of 4 GB"), "{memory:?}");
        assert!(
            memory.remedy.contains("set env.desktops to 1"),
            "{memory:?}"
        );
        let is_opened = Docker::new(options).is_ok();
        assert_eq!(is_opened, grade != Grade::Unmet, "{admission}");
    }
}

#[tokio::test]
async fn a_daemon_that_is_not_there_is_told() {
    let place = Place::new(Plan::default());
    let gone = place.folder.path().join("gone.sock");
    drop(std::os::unix::net::UnixListener::bind(&gone).unwrap());
    let host = |path: &str| Some(format!("unix://{path}"));
    let table = [
        (host("/nowhere/docker.sock"), "apt-get install docker.io"),
        (host(gone.to_str().unwrap()), "systemctl start docker"),
        (
            Some("tcp://10.0.0.1:2375".to_owned()),
            "has to be a Unix socket",
        ),
        (
            Some("ssh://host".to_owned()),
            "run arpo on the daemon's host",
        ),
        (
            Some("unix://relative".to_owned()),
            "has to be a Unix socket",
        ),
    ];
    for (docker_host, says) in table {
        let options = DockerOptions {
            socket: socket_of(docker_host.as_deref()),
            ..place.options(&[])
        };
        let reason = reason_of(Docker::new(options).unwrap_err());
        assert!(reason.contains(says), "{docker_host:?}: {reason}");
    }
    let usual = socket_of(None).unwrap();
    assert_eq!(usual.to_str(), Some("/var/run/docker.sock"));
    assert_eq!(socket_of(Some("")).unwrap(), usual);
}

#[tokio::test]
async fn a_silent_daemon_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::new(Plan::default());
    let path = folder.path().join("silent.sock");
    let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let options = DockerOptions {
        socket: Ok(path),
        deadlines: Deadlines {
            quick: Duration::from_millis(200),
            ..Deadlines::default()
        },
        ..place.options(&[])
    };
    let reason = reason_of(Docker::new(options).unwrap_err());
    assert!(reason.contains("did not answer within 0.2 s"), "{reason}");
}
