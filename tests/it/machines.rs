//! What tests do with machines of any provider.

use std::sync::{Arc, Mutex};

use arpo::env::guest::{Command, Output};
use arpo::env::{EnvError, Machine, MachineNews, Reporter};
use arpo::types::{MachinePhase, MachineStatus};
use futures::FutureExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// What a machine told of itself.
#[derive(Clone, Default)]
pub(crate) struct Heard(Arc<Mutex<Vec<MachineNews>>>);

impl Heard {
    pub(crate) fn reporter(&self) -> Reporter {
        let heard = self.0.clone();
        Reporter::new(0, Arc::new(move |_, news| heard.lock().unwrap().push(news)))
    }

    fn pick<T: Clone>(&self, of: impl Fn(&MachineNews) -> Option<&T>) -> Vec<T> {
        let heard = self.0.lock().unwrap();
        heard.iter().filter_map(of).cloned().collect()
    }

    pub(crate) fn statuses(&self) -> Vec<MachineStatus> {
        self.pick(|news| match news {
            MachineNews::Status(status) => Some(status),
            _ => None,
        })
    }

    /// Its newest status.
    pub(crate) fn last_status(&self) -> MachineStatus {
        self.statuses().pop().unwrap()
    }

    /// Each phase once, as they followed one another.
    pub(crate) fn phases(&self) -> Vec<MachinePhase> {
        let mut phases: Vec<_> = self.statuses().iter().map(|it| it.phase).collect();
        phases.dedup();
        phases
    }

    pub(crate) fn said(&self) -> Vec<String> {
        self.pick(|news| match news {
            MachineNews::Said(line) => Some(line),
            _ => None,
        })
    }
}

/// What a machine itself says of its failure.
pub(crate) fn reason_of(error: EnvError) -> String {
    match error {
        EnvError::Machine { reason, .. } => reason,
        other => panic!("{other}"),
    }
}

/// Begins to bring it back and thinks better of it: nobody is left to tell what became of that.
pub(crate) fn tells_that_its_start_is_given_up(machine: &mut dyn Machine, heard: &Heard) {
    assert!(machine.revert().now_or_never().is_none());
    assert_eq!(heard.last_status().phase, MachinePhase::Off);
}

/// Runs a script on a machine.
pub(crate) async fn shell(machine: &dyn Machine, script: &str) -> Output {
    let command = Command::shell(script);
    machine.guest().execute(&command).await.unwrap()
}

/// What a script on a machine prints.
pub(crate) async fn told(machine: &dyn Machine, script: &str) -> String {
    let output = shell(machine, script).await;
    assert_eq!(output.returncode, 0, "{script}: {output:?}");
    output.stdout.trim_end().to_owned()
}

/// A program on it that listens is reached; a port that nobody listens on is an error that names it.
pub(crate) async fn reaches_a_port_and_no_other(machine: &dyn Machine) {
    let serve = "import socket; s = socket.create_server(('127.0.0.1', 9222)); \
                 c = s.accept()[0]; c.sendall(c.recv(9)[::-1])";
    let command = Command::program(["python3", "-c", serve]);
    machine.guest().launch(&command).await.unwrap();
    let listens = "until grep -q ':2406 .* 0A ' /proc/net/tcp; do sleep 0.05; done";
    told(machine, listens).await;
    let mut connection = machine.connect(9222).await.unwrap();
    connection.write_all(b"abc").await.unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).await.unwrap();
    assert_eq!(answer, "cba");
    let error = machine.connect(22).await.err().unwrap().to_string();
    assert!(
        error.contains("port 22 inside cannot be reached"),
        "{error}"
    );
}
