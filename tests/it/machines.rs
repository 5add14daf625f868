//! What tests do with machines of any provider.

use arpo::env::Machine;
use arpo::env::guest::{Command, Output};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

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
