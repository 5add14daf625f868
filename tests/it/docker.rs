//! OSWorld's machines in containers, against a daemon that a test makes up; where a real one runs,
//! against that as well (`real`).

pub(crate) mod engine;
mod faults;
mod real;
mod sweep;

use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use arpo::config::Resolved;
use arpo::env::docker::{Docker, DockerOptions, Host};
use arpo::env::guest::GuestOptions;
use arpo::env::{Machine, MachineState, Provider, Reporter};
use arpo::types::MachinePhase as P;
use serde_json::{Value, json};

use crate::machines::Heard;
use engine::{Engine, Plan};

/// A folder with the daemon's socket and a disk image.
struct Place {
    folder: tempfile::TempDir,
    engine: Engine,
}

impl Place {
    fn new(plan: Plan) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let engine = Engine::serve(&folder.path().join("docker.sock"), plan);
        write_disk(&folder.path().join("Ubuntu.qcow2"));
        Self { folder, engine }
    }

    fn disk(&self) -> PathBuf {
        self.folder.path().join("Ubuntu.qcow2")
    }

    /// Those of a profile with these values.
    fn options(&self, sets: &[&str]) -> DockerOptions {
        let disk = format!("env.docker.disk={}", self.disk().display());
        let own = [
            disk.as_str(),
            "env.docker.screen_width=320",
            "env.docker.screen_height=320",
            "env.docker.kvm=off",
        ];
        let sets = [&own, sets].concat();
        let env = Resolved::load::<&str>(&[], &sets).unwrap().profile.env;
        let docker_host = format!("unix://{}/docker.sock", self.folder.path().display());
        let options = DockerOptions::new(&env, Some(&docker_host));
        DockerOptions {
            desktops: 2,
            run: "2026-01-01-test-0001".to_owned(),
            guest: GuestOptions {
                // What never comes is waited for once; a busy machine is not given up.
                tries: 1,
                ..GuestOptions::new(env.docker.screen())
            },
            poll: Duration::from_millis(5),
            ..options
        }
    }

    fn provider(&self, sets: &[&str]) -> Docker {
        Docker::new(self.options(sets)).unwrap()
    }
}

/// The beginning of an image, as long as one; it takes no room.
fn write_disk(path: &Path) {
    let mut header = b"QFI\xfb\0\0\0\x03".to_vec();
    header.extend([0; 16]);
    header.extend((32_u64 << 30).to_be_bytes());
    header.extend([0; 40]);
    let mut file = File::create(path).unwrap();
    file.write_all(&header).unwrap();
    file.set_len(1 << 30).unwrap();
}

/// Waits for what has to come about, however long that takes.
pub(crate) async fn until(what: impl Fn() -> bool) {
    while !what() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn an_episode_gets_a_container_of_its_own() {
    let place = Place::new(Plan::default());
    let heard = Heard::default();
    let provider = place.provider(&["env.docker.ram_gb=3"]);
    let mut machine = provider.machine(1, heard.reporter()).unwrap();
    assert_eq!(machine.state(), MachineState::Off);
    assert_eq!(place.engine.ids().len(), 0, "the first revert starts it");
    machine.revert().await.unwrap();
    assert_eq!(machine.state(), MachineState::Running);
    let first = place.engine.ids();
    machine.revert().await.unwrap();
    let second = place.engine.ids();
    assert_eq!((first.len(), second.len()), (1, 1));
    assert_ne!(first, second);
    let removed = place.engine.asked("DELETE ");
    assert_eq!(removed.len(), 1);
    assert!(
        removed[0].contains("v=true") && removed[0].contains("force=true"),
        "{removed:?}"
    );
    check_asked_for(&place);

    assert_eq!(machine.placeholders().client_password, "password");
    assert_eq!(machine.guest().platform().await.unwrap(), "Linux");
    for port in [9222, 8080, 8006, 5000] {
        machine.connect(port).await.unwrap();
    }
    let error = machine.connect(22).await.err().unwrap().to_string();
    assert!(
        error.contains("port 22 inside cannot be reached"),
        "{error}"
    );
    let error = machine.restart_server().await.unwrap_err().to_string();
    assert!(error.contains("lower rollout.max_steps"), "{error}");

    machine.suspend().await.unwrap();
    assert_eq!(place.engine.daemon().containers[0].state, "paused");
    machine.wake().await.unwrap();
    assert_eq!(place.engine.daemon().containers[0].state, "running");
    until(|| machine.memory_bytes() == Some(5 << 30)).await;

    machine.close().await.unwrap();
    assert_eq!(place.engine.ids().len(), 0);
    assert_eq!(machine.state(), MachineState::Off);
    machine.close().await.unwrap();
    let (first, again) = (
        [P::Starting, P::Ready],
        [P::Stopping, P::Starting, P::Ready],
    );
    let rest = [P::Frozen, P::Ready, P::Stopping, P::Off];
    assert_eq!(heard.phases(), [&first[..], &again, &rest].concat());
    let bounded = heard
        .statuses()
        .into_iter()
        .filter(|it| !it.phase.is_settled());
    for status in bounded {
        assert!(
            status.limit_ms.is_some() && !status.then.is_empty(),
            "{status:?}"
        );
    }
    assert!(heard.said().contains(&"Booting...".to_owned()));
}

/// What the newest container was made of.
fn check_asked_for(place: &Place) {
    let daemon = place.engine.daemon();
    let container = &daemon.containers[0];
    let body = &container.body;
    assert_eq!(body["Image"], "happysixd/osworld-docker");
    let env = json!(["DISK_SIZE=32G", "RAM_SIZE=3G", "CPU_CORES=4", "KVM=N"]);
    assert_eq!(body["Env"], env);
    let host = &body["HostConfig"];
    assert_eq!(host["CapAdd"], json!(["NET_ADMIN"]));
    let disk = place.disk().canonicalize().unwrap();
    let disk = json!([{"Type": "bind", "Source": disk, "Target": "/System.qcow2",
        "ReadOnly": true}]);
    assert_eq!(host["Mounts"], disk);
    let absent = [
        "Devices",
        "Privileged",
        "AutoRemove",
        "RestartPolicy",
        "Binds",
        "NetworkMode",
    ];
    for key in absent {
        assert_eq!(host[key], Value::Null, "{key}");
    }
    for port in ["5000/tcp", "9222/tcp", "8006/tcp", "8080/tcp"] {
        let chosen = json!([{"HostIp": "127.0.0.1", "HostPort": ""}]);
        assert_eq!(
            host["PortBindings"][port], chosen,
            "{port}: the daemon chooses it"
        );
        assert_eq!(body["ExposedPorts"][port], json!({}), "{port}");
    }
    assert_eq!(host["PortBindings"].as_object().unwrap().len(), 4);
    let us = arpo::store::LockHolder::this_process();
    let created: u64 = container.label("arpo.created").parse().unwrap();
    let lease: u64 = container.label("arpo.lease").parse().unwrap();
    assert_eq!(lease - created, 6 * 3600);
    for (key, value) in [
        ("arpo.run", "2026-01-01-test-0001"),
        ("arpo.host", &us.host),
        ("arpo.boot", &us.boot),
        ("arpo.pid", &us.pid.to_string()),
        ("arpo.started", &us.started_ticks.to_string()),
        ("arpo.desktop", "1"),
    ] {
        assert_eq!(container.label(key), value, "{key}");
    }
}

#[tokio::test]
async fn kvm_is_passed_on_where_there_is_virtualisation() {
    let place = Place::new(Plan::default());
    let cpuinfo = place.folder.path().join("cpuinfo");
    std::fs::write(&cpuinfo, "flags\t: fpu vmx\n").unwrap();
    let options = DockerOptions {
        // Any character device stands for it.
        host: Host {
            kvm: "/dev/null".into(),
            cpuinfo,
        },
        ..place.options(&["env.docker.kvm=require"])
    };
    let provider = Docker::new(options).unwrap();
    let mut machine = provider.machine(0, Reporter::silent()).unwrap();
    machine.revert().await.unwrap();
    let body = place.engine.daemon().containers[0].body.clone();
    assert_eq!(
        body["Env"],
        json!(["DISK_SIZE=32G", "RAM_SIZE=4G", "CPU_CORES=4"])
    );
    let device = json!([{"PathOnHost": "/dev/null", "PathInContainer": "/dev/kvm",
        "CgroupPermissions": "rwm"}]);
    assert_eq!(body["HostConfig"]["Devices"], device);
    machine.close().await.unwrap();
}

/// What `arpo doctor` finds, by the names of its checks.
pub(crate) fn doctor(sets: &[String], docker_host: &str) -> HashMap<String, Value> {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_arpo"));
    command
        .args(["doctor", "--json"])
        .env("DOCKER_HOST", docker_host);
    for set in sets {
        command.args(["--set", set]);
    }
    let output = command.output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let checks = report["checks"].as_array().unwrap().iter();
    let named = checks.map(|check| (check["name"].as_str().unwrap().to_owned(), check.clone()));
    named.collect()
}

#[test]
fn the_doctor_looks_at_all_that_machines_need() {
    let place = Place::new(Plan {
        memory_gb: 5,
        ..Plan::default()
    });
    let sets = [
        "env.kind=docker".to_owned(),
        "env.desktops=2".to_owned(),
        "env.docker.kvm=off".to_owned(),
        format!("env.docker.disk={}", place.disk().display()),
    ];
    let socket = format!("unix://{}/docker.sock", place.folder.path().display());
    let checks = doctor(&sets, &socket);
    for (name, status) in [
        ("docker", "ok"),
        ("disk image", "ok"),
        ("kvm", "limited"),
        ("image", "ok"),
        ("vm memory", "missing"),
        ("vm space", "ok"),
    ] {
        let check = &checks[name];
        assert_eq!(check["status"], status, "{check}");
        assert_eq!(check["remedy"] == "", status == "ok", "{check}");
        let found = check["found"].as_str().unwrap();
        assert!(
            !found.is_empty() && !found.contains(char::is_control),
            "{check}"
        );
    }
    let checks = doctor(&sets, "unix:///nowhere/docker.sock");
    assert_eq!(checks["docker"]["status"], "missing");
    assert_eq!(checks["disk image"]["status"], "ok", "said all the same");
}

#[tokio::test]
async fn a_machine_that_is_dropped_leaves_nothing() {
    let place = Place::new(Plan::default());
    let provider = place.provider(&[]);
    let mut machine = provider.machine(0, Reporter::silent()).unwrap();
    let mut other = provider.machine(0, Reporter::silent()).unwrap();
    machine.revert().await.unwrap();
    other.revert().await.unwrap();
    let ids = place.engine.ids();
    drop(machine);
    until(|| place.engine.ids().len() == 1).await;
    assert_eq!(
        place.engine.ids(),
        ids[1..],
        "of two with one number, its own"
    );
    other.close().await.unwrap();
}

/// Starts a machine until the daemon has something of it, and then does not wait any more.
async fn give_up_starting(place: &Place, machine: &mut dyn Machine) {
    tokio::select! {
        started = machine.revert() => panic!("{started:?}"),
        () = until(|| !place.engine.ids().is_empty()) => {}
    }
}

/// Machines whose start takes for ever: they never answer, or the daemon does not.
fn endless() -> [Plan; 2] {
    let boots = Plan {
        guest: engine::Guest::NeverAnswers,
        ..Plan::default()
    };
    let is_created = Plan {
        hangs_at_create: true,
        ..Plan::default()
    };
    [boots, is_created]
}

#[tokio::test]
async fn a_start_that_is_given_up_leaves_nothing_and_takes_nothing_of_the_next() {
    for plan in endless() {
        let place = Place::new(plan);
        let heard = Heard::default();
        let mut machine = place.provider(&[]).machine(0, heard.reporter()).unwrap();
        give_up_starting(&place, machine.as_mut()).await;
        assert_eq!(heard.last_status().phase, P::Off);
        until(|| place.engine.ids().is_empty()).await;
        // And again, while what was given up is still being removed.
        for _ in 0..3 {
            give_up_starting(&place, machine.as_mut()).await;
        }
        place.engine.daemon().plan = Plan::default();
        machine.revert().await.unwrap();
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert_eq!(place.engine.ids().len(), 1);
        assert_eq!(machine.state(), MachineState::Running);
        assert_eq!(machine.guest().platform().await.unwrap(), "Linux");
        machine.close().await.unwrap();
        assert_eq!(place.engine.ids().len(), 0);
    }
}

#[test]
fn a_start_that_is_given_up_after_its_runtime_is_left_to_the_next_engine() {
    let [plan, _] = endless();
    let place = Place::new(plan);
    let provider = place.provider(&[]);
    let mut machine = provider.machine(0, Reporter::silent()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let mut starting = machine.revert();
    runtime.block_on(async {
        tokio::select! {
            started = &mut starting => panic!("{started:?}"),
            () = until(|| !place.engine.ids().is_empty()) => {}
        }
    });
    drop(starting);
    drop(machine);
    assert_eq!(place.engine.ids().len(), 1);
}
