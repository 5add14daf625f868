//! Machines that somebody else runs: how they are found, what is refused, what happens to them
//! between two episodes.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arpo::config::Resolved;
use arpo::env::attached::{Attached, AttachedOptions, examine};
use arpo::env::guest::GuestOptions;
use arpo::env::{Machine, MachineState, Provider, Reporter};
use arpo::types::MachinePhase as P;

use crate::docker::doctor;
use crate::docker::engine::Guest;
use crate::loopback;
use crate::machines::{Heard, reason_of, tells_that_its_start_is_given_up};

/// A machine's server, and what it was asked.
struct Server {
    /// `HOST:PORT`.
    address: String,
    answers: Arc<AtomicBool>,
    /// `PATH TOKEN`, then the body.
    seen: Arc<Mutex<Vec<(String, String)>>>,
}

impl Server {
    /// `unit` is what it says of its unit of systemd.
    fn start(guest: Guest, unit: &'static str) -> Self {
        let (answers, seen) = (Arc::new(AtomicBool::new(true)), Arc::default());
        let (is_up, heard) = (answers.clone(), Arc::clone(&seen));
        let programs = AtomicU32::new(0);
        let heard: Arc<Mutex<Vec<(String, String)>>> = heard;
        let address = loopback::serve(move |request| {
            let body = String::from_utf8_lossy(&request.body).into_owned();
            let token = request.header("authorization");
            let line = format!("{} {token}", request.path());
            heard
                .lock()
                .unwrap()
                .push((line.trim_end().to_owned(), body.clone()));
            let whole = |mime: &str, body: &str| {
                let length = body.len();
                let head = format!("HTTP/1.0 200 X\r\nContent-Type: {mime}\r\n");
                Some(format!("{head}Content-Length: {length}\r\n\r\n{body}").into_bytes())
            };
            if !is_up.load(Ordering::SeqCst) {
                return Some(Vec::new());
            }
            match request.path() {
                "/setup/launch" => whole("text/html", "launched successfully"),
                "/execute" if body.contains("systemctl") => {
                    let said = serde_json::json!({"status": "success", "output": unit,
                        "error": "", "returncode": 0});
                    whole("application/json", &said.to_string())
                }
                _ => guest.answer(request, &programs),
            }
        });
        Self {
            address,
            answers,
            seen,
        }
    }

    fn well() -> Self {
        Self::start(Guest::Well, "")
    }

    fn launched(&self) -> Vec<String> {
        let seen = self.seen.lock().unwrap();
        let launches = seen.iter().filter(|(line, _)| line == "/setup/launch");
        launches.map(|(_, body)| body.clone()).collect()
    }
}

/// Those of a profile with these values, for one desktop; `folder` is the test's own.
fn options(folder: &Path, sets: &[&str]) -> AttachedOptions {
    let own = [
        "env.attached.screen_width=320",
        "env.attached.screen_height=320",
    ];
    let sets = [&own, sets].concat();
    let env = Resolved::load::<&str>(&[], &sets).unwrap().profile.env;
    let options = AttachedOptions::new(&env.attached, 1, folder.join("leases/attached"));
    AttachedOptions {
        guest: GuestOptions {
            tries: 1,
            ..GuestOptions::new(env.attached.screen())
        },
        poll: Duration::from_millis(5),
        ..options
    }
}

fn set(key: &str, value: &serde_json::Value) -> String {
    format!("env.attached.{key}={value}")
}

#[tokio::test]
async fn machines_are_found_in_three_ways() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (Server::well(), Server::well());
    let list = folder.path().join("hosts");
    let text = format!("# two\n{}\n\n  {} # the second\n", one.address, two.address);
    std::fs::write(&list, &text).unwrap();
    let print = serde_json::json!(["cat", list]);
    let ways = [
        set("hosts", &serde_json::json!([one.address, two.address])),
        set("file", &serde_json::json!(list)),
        set("command", &print),
    ];
    for way in ways {
        let options = AttachedOptions {
            desktops: 2,
            ..options(folder.path(), &[&way, "env.attached.shared_state=true"])
        };
        let provider = Attached::new(options).unwrap();
        for (number, server) in [&one, &two].into_iter().enumerate() {
            let machine = provider.machine(number as u32, Reporter::silent()).unwrap();
            assert_eq!(machine.guest().address(), server.address, "{way}");
            let name = format!("attached desktop {number} ({})", server.address);
            assert_eq!(machine.name(), name);
        }
        let error = provider.machine(2, Reporter::silent()).err().unwrap();
        assert!(
            error.to_string().contains("this run has 2 machines"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn what_cannot_be_is_refused_with_its_key() {
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty");
    std::fs::write(&empty, "# nobody\n").unwrap();
    let file = format!("env.attached.file={}", empty.display());
    let token = format!("env.attached.token_file={}", empty.display());
    let host = r#"env.attached.hosts=["127.0.0.1:9"]"#;
    let table: [(&[&str], &str); 13] = [
        (
            &[r#"env.attached.hosts=["8.8.8.8"]"#],
            "set env.attached.allow_public = true",
        ),
        (
            &[r#"env.attached.hosts=["[::ffff:8.8.8.8]"]"#],
            "anybody may reach",
        ),
        (
            &[r#"env.attached.hosts=["127.0.0.1:5000", "127.0.0.1:5000:9223"]"#],
            "are the same machine (127.0.0.1:5000)",
        ),
        (
            &[r#"env.attached.hosts=["127.0.0.1", "[::ffff:127.0.0.1]"]"#],
            "are the same machine (127.0.0.1:5000)",
        ),
        (
            &[r#"env.attached.hosts=["a:b"]"#],
            "\"a:b\" has a port that is no number",
        ),
        (
            &[r#"env.attached.hosts=["no.such.host.invalid"]"#],
            "cannot be found",
        ),
        (
            &[&file],
            "asks for 1 machines, and there are 0: name more by env.attached.file",
        ),
        (
            &["env.attached.file=/nowhere/hosts"],
            "env.attached.file: /nowhere/hosts: No such",
        ),
        (
            &[r#"env.attached.command=["false"]"#],
            "env.attached.command: false ended with",
        ),
        (
            &[r#"env.attached.command=["/nowhere/x"]"#],
            "/nowhere/x cannot be started",
        ),
        (
            &[
                r#"env.attached.command=["sleep", "600"]"#,
                "env.attached.command_deadline_s=0.2",
            ],
            "sleep did not end within 0.2 s",
        ),
        (&[host, &token], "holds no token"),
        (
            &[host, "env.attached.token_file=/nowhere/t"],
            "/nowhere/t: No such file",
        ),
    ];
    for (sets, says) in table {
        let reason = reason_of(Attached::new(options(folder.path(), sets)).unwrap_err());
        assert!(reason.contains(says), "{sets:?}: {reason}");
        assert!(reason.contains("env."), "names its key: {reason}");
    }
    let public = [
        r#"env.attached.hosts=["8.8.8.8"]"#,
        "env.attached.allow_public=true",
    ];
    let provider = Attached::new(options(folder.path(), &public)).unwrap();
    assert!(
        provider.machine(0, Reporter::silent()).is_ok(),
        "nobody is asked yet"
    );
}

#[tokio::test]
async fn a_machine_is_one_runs_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::well();
    let hosts = set("hosts", &serde_json::json!([server.address]));
    let first = Attached::new(options(folder.path(), &[&hosts])).unwrap();
    let machine = first.machine(0, Reporter::silent()).unwrap();
    let refused = Attached::new(options(folder.path(), &[&hosts])).unwrap_err();
    assert!(reason_of(refused).contains("is in use by another run"));
    drop((first, machine));
    Attached::new(options(folder.path(), &[&hosts])).unwrap();
}

#[tokio::test]
async fn a_program_reverts_the_machine() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::well();
    let log = folder.path().join("reverts");
    let script = "echo \"$0 $1\" >> \"$2\"; echo reverted; test ! -e \"$2.fails\"";
    let program = serde_json::json!(["sh", "-c", script, "{host}", "desktop={desktop}", log]);
    let sets = [
        set("hosts", &serde_json::json!([server.address])),
        set("revert_command", &program),
    ];
    let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
    let provider = Attached::new(options(folder.path(), &sets)).unwrap();
    let heard = Heard::default();
    let mut machine = provider.machine(0, heard.reporter()).unwrap();
    assert_eq!(machine.state(), MachineState::Off);
    machine.revert().await.unwrap();
    machine.revert().await.unwrap();
    assert_eq!(machine.state(), MachineState::Running);
    let line = format!("{} desktop=0\n", server.address);
    assert_eq!(std::fs::read_to_string(&log).unwrap(), line.repeat(2));
    assert_eq!(heard.said(), ["reverted", "reverted"]);
    assert_eq!(
        heard.phases(),
        [P::Restoring, P::Ready, P::Restoring, P::Ready]
    );

    std::fs::write(folder.path().join("reverts.fails"), "").unwrap();
    let reason = reason_of(machine.revert().await.unwrap_err());
    let expected = "env.attached.revert_command: sh ended with exit status: 1: reverted";
    assert_eq!(reason, expected);
    assert_eq!(machine.state(), MachineState::Broken { reason });
    machine.close().await.unwrap();
    assert_eq!(server.launched(), [""; 0], "its server is left alone");
}

#[tokio::test]
async fn a_machine_that_does_not_answer_is_told_by_its_layer() {
    let table = [
        (Guest::NeverAnswers, "does not answer within 1.5 s: http"),
        (
            Guest::Size(640, 480),
            "640x480 pixels instead of 320x320: set its resolution, or env.att",
        ),
        (
            Guest::FailsPrograms(u32::MAX),
            "does not answer within 1.5 s: execute",
        ),
    ];
    for (guest, says) in table {
        let folder = tempfile::tempdir().unwrap();
        let server = Server::start(guest, "");
        let hosts = set("hosts", &serde_json::json!([server.address]));
        let mut wanted = options(folder.path(), &[&hosts]);
        if says.contains("1.5 s") {
            wanted.config.revert_deadline_s = 1.5;
        }
        let answers = examine(&wanted).unwrap();
        assert_eq!(answers.len(), 1);
        assert!(answers[0].broken.is_some(), "{says}");
        let provider = Attached::new(wanted).unwrap();
        let heard = Heard::default();
        let mut machine = provider.machine(0, heard.reporter()).unwrap();
        tells_that_its_start_is_given_up(machine.as_mut(), &heard);
        let reason = reason_of(machine.revert().await.unwrap_err());
        assert!(reason.contains(says), "{reason}");
    }
}

#[tokio::test]
async fn ports_and_tokens_are_the_hosts_own() {
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    std::fs::write(&token, "secret\n").unwrap();
    let (server, chrome) = (Server::well(), Server::well());
    let port = chrome.address.rsplit(':').next().unwrap();
    let host = format!("{}:{port}", server.address);
    let hosts = set("hosts", &serde_json::json!([host]));
    let token = set("token_file", &serde_json::json!(token));
    let wanted = options(folder.path(), &[&hosts, &token]);
    assert_eq!(examine(&wanted).unwrap()[0].broken, None);
    let provider = Attached::new(wanted).unwrap();
    let mut machine = provider.machine(0, Reporter::silent()).unwrap();
    machine.revert().await.unwrap();
    for (line, _) in server.seen.lock().unwrap().iter() {
        assert!(line.ends_with("Bearer secret"), "{line}");
    }
    machine.connect(9222).await.unwrap();
    let error = machine.connect(22).await.err().unwrap().to_string();
    assert!(
        error.contains("port 22 cannot be reached: nothing is said of it"),
        "{error}"
    );
    machine.suspend().await.unwrap();
    machine.wake().await.unwrap();
    machine.close().await.unwrap();
    assert!(server.answers.load(Ordering::SeqCst));
    assert!(
        machine.guest().platform().await.is_ok(),
        "it goes on without us"
    );
}

#[test]
fn the_doctor_asks_every_machine() {
    let server = Server::well();
    let table = [
        (serde_json::json!([server.address]), 1, "ok", "all 1 answer"),
        (
            serde_json::json!([server.address, "127.0.0.1:1"]),
            2,
            "missing",
            "127.0.0.1:1: tcp: ",
        ),
        (
            serde_json::json!([server.address]),
            2,
            "missing",
            "1 answer, env.desktops asks for 2",
        ),
        (
            serde_json::json!(["8.8.8.8"]),
            1,
            "missing",
            "anybody may reach",
        ),
    ];
    for (hosts, desktops, status, says) in table {
        let sets = [
            "env.kind=attached".to_owned(),
            "env.attached.shared_state=true".to_owned(),
            "env.attached.screen_width=320".to_owned(),
            "env.attached.screen_height=320".to_owned(),
            format!("env.desktops={desktops}"),
            set("hosts", &hosts),
        ];
        let check = &doctor(&sets, "")["machines"];
        assert_eq!(check["status"], status, "{check}");
        assert!(check["found"].as_str().unwrap().contains(says), "{check}");
        assert_eq!(check["remedy"] == "", status == "ok", "{check}");
    }
}

/// Looks so often, as an episode does.
async fn look(machine: &dyn Machine, times: u32) {
    machine.guest().restarted();
    for _ in 0..times {
        machine.guest().screenshot().await.unwrap();
    }
}

#[tokio::test]
async fn a_server_that_nothing_reverts_is_started_anew_in_time() {
    for (unit, ends) in [("osworld.service\n", 1), ("", 0)] {
        let folder = tempfile::tempdir().unwrap();
        let server = Server::start(Guest::Well, unit);
        let hosts = set("hosts", &serde_json::json!([server.address]));
        let sets = [hosts.as_str(), "env.attached.shared_state=true"];
        let provider = Attached::new(options(folder.path(), &sets)).unwrap();
        let heard = Heard::default();
        let mut machine = provider.machine(0, heard.reporter()).unwrap();
        machine.revert().await.unwrap();
        let warning = heard.said().remove(0);
        assert!(warning.contains("env.attached.shared_state"), "{warning}");
        look(machine.as_ref(), 60).await;
        machine.revert().await.unwrap();
        assert_eq!(server.launched().len(), 0);
        look(machine.as_ref(), 60).await;
        machine.revert().await.unwrap();
        look(machine.as_ref(), 0).await;
        let launched = server.launched();
        assert_eq!(launched.len(), ends, "{unit:?}");
        assert!(
            launched
                .iter()
                .all(|body| body.contains("kill -KILL $PPID"))
        );
        if ends == 1 {
            machine.revert().await.unwrap();
            assert_eq!(server.launched().len(), 1, "counted anew");
        }
        let warnings = heard.said().iter().filter(|line| **line == warning).count();
        assert_eq!(warnings, 1, "told once");
        let dying = heard
            .said()
            .iter()
            .any(|line| line.contains("no unit of systemd"));
        assert_eq!(dying, ends == 0);
        let error = machine.restart_server().await.unwrap_err().to_string();
        assert!(error.contains("lower rollout.max_steps"), "{error}");
    }
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_waited_for_and_loses_no_count() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(Guest::Well, "osworld.service\n");
    let hosts = set("hosts", &serde_json::json!([server.address]));
    let sets = [hosts.as_str(), "env.attached.shared_state=true"];
    let mut wanted = options(folder.path(), &sets);
    wanted.config.revert_deadline_s = 1.5;
    let provider = Attached::new(wanted).unwrap();
    let mut machine = provider.machine(0, Reporter::silent()).unwrap();
    machine.revert().await.unwrap();
    look(machine.as_ref(), 60).await;
    // Tried in vain, its pictures are no more than they were.
    server.answers.store(false, Ordering::SeqCst);
    for _ in 0..2 {
        let reason = reason_of(machine.revert().await.unwrap_err());
        assert!(reason.contains("does not answer within 1.5 s"), "{reason}");
    }
    server.answers.store(true, Ordering::SeqCst);
    machine.revert().await.unwrap();
    assert_eq!(server.launched().len(), 0);
    // It is due, and cannot be asked: it is waited for, and its turn comes with the next one.
    look(machine.as_ref(), 60).await;
    server.answers.store(false, Ordering::SeqCst);
    let comes_back = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        server.answers.store(true, Ordering::SeqCst);
    };
    let (reverted, ()) = tokio::join!(machine.revert(), comes_back);
    reverted.unwrap();
    assert_eq!(server.launched().len(), 0);
    machine.revert().await.unwrap();
    assert_eq!(server.launched().len(), 1);
    look(machine.as_ref(), 60).await;
    machine.revert().await.unwrap();
    assert_eq!(server.launched().len(), 1, "counted anew");
}

#[test]
fn no_more_machines_can_be_made_than_were_taken() {
    let folder = tempfile::tempdir().unwrap();
    let hosts = set(
        "hosts",
        &serde_json::json!(["127.0.0.1:9", "127.0.0.1:10", "127.0.0.1:11"]),
    );
    let options = AttachedOptions {
        desktops: 2,
        ..options(folder.path(), &[&hosts])
    };
    // The third may be another run's by the time it is asked for.
    assert_eq!(Attached::new(options).unwrap().most(), Some(2));
}
