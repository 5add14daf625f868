//! QMP against a scripted peer, and what snapshots are told apart by.

use std::io::{IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as BlockingStream;
use std::time::Duration;

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

use super::qmp::{Qmp, QmpError};

const LIMIT: Duration = Duration::from_secs(20);
const GREETING: &str = r#"{"QMP": {"version": {}, "capabilities": []}}"#;

/// What the peer does with a question after the greeting and the capabilities.
enum Does {
    /// Says these lines, with the question's number for `ID`.
    Says(&'static [&'static str]),
    /// Hangs up.
    HangsUp,
    /// Nothing.
    Nothing,
}

/// Speaks QMP at one end and does as it is told with the one question that comes.
async fn peer(stream: UnixStream, greeting: &'static str, does: Does) {
    let (reader, mut writer) = stream.into_split();
    let mut questions = BufReader::new(reader).lines();
    let _ = writer.write_all(format!("{greeting}\r\n").as_bytes()).await;
    let Ok(Some(line)) = questions.next_line().await else {
        return;
    };
    let question: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(question["execute"], "qmp_capabilities");
    let answer = json!({"return": {}, "id": question["id"]});
    let _ = writer.write_all(format!("{answer}\n").as_bytes()).await;
    let Ok(Some(line)) = questions.next_line().await else {
        return;
    };
    let question: Value = serde_json::from_str(&line).unwrap();
    match does {
        Does::Says(lines) => {
            for line in lines {
                let line = line.replace("ID", &question["id"].to_string());
                let _ = writer.write_all(format!("{line}\n").as_bytes()).await;
            }
            // Until the other end hangs up.
            let _ = questions.next_line().await;
        }
        Does::HangsUp => {}
        Does::Nothing => while let Ok(Some(_)) = questions.next_line().await {},
    }
}

async fn opened(
    greeting: &'static str,
    does: Does,
) -> Result<
    (
        Qmp<UnixStream>,
        tokio::sync::mpsc::Receiver<super::qmp::Event>,
    ),
    QmpError,
> {
    let (ours, theirs) = UnixStream::pair().unwrap();
    tokio::spawn(peer(theirs, greeting, does));
    Qmp::open(ours, LIMIT).await
}

#[tokio::test]
async fn questions_are_answered_and_events_come_between() {
    let says: &[&str] = &[
        r#"{"event": "RESUME", "timestamp": {"seconds": 1}}"#,
        r#"{"event": "STOP"}"#,
        r#"{"return": {"status": "another's"}, "id": 999}"#,
        r#"{"return": {"status": "nobody's"}}"#,
        r#"{"event": "SHUTDOWN", "data": {"guest": true}}"#,
        r#"{"return": {"status": "running"}, "id": ID}"#,
    ];
    let (qmp, mut events) = opened(GREETING, Does::Says(says)).await.unwrap();
    let answer = qmp.ask("query-status", json!({}), LIMIT).await.unwrap();
    assert_eq!(answer, json!({"status": "running"}));
    let mut names = Vec::new();
    while names.len() < 2 {
        names.push(events.recv().await.unwrap().name);
    }
    assert_eq!(names, ["STOP", "SHUTDOWN"]);
}

#[tokio::test]
async fn failures_are_told_apart() {
    let refusal: &[&str] =
        &[r#"{"error": {"class": "GenericError", "desc": "no\u001b[2J disk"}, "id": ID}"#];
    let cases = [
        (
            Does::Says(refusal),
            "QEMU refused query-status: no [2J disk",
        ),
        (
            Does::Says(&["hello"]),
            "QEMU hung up during query-status: its socket ended",
        ),
        (
            Does::Says(&["[1]"]),
            "QEMU hung up during query-status: its socket ended",
        ),
        (
            Does::HangsUp,
            "QEMU hung up during query-status: its socket ended",
        ),
    ];
    for (does, told) in cases {
        let (qmp, mut events) = opened(GREETING, does).await.unwrap();
        let error = qmp.ask("query-status", json!({}), LIMIT).await.unwrap_err();
        assert_eq!(error.to_string(), told);
        if matches!(error, QmpError::Closed { .. }) {
            assert_eq!(events.recv().await, None);
            let again = qmp.ask("stop", json!({}), LIMIT).await.unwrap_err();
            assert!(matches!(again, QmpError::Closed { .. }), "{again}");
        }
    }
}

/// A question, and the file that came beside it.
fn question_with_file(stream: &BlockingStream) -> (Value, OwnedFd) {
    let mut line = [0; 4096];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let mut slices = [IoSliceMut::new(&mut line)];
    let came = recvmsg(stream, &mut slices, &mut beside, RecvFlags::CMSG_CLOEXEC).unwrap();
    let file = beside.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut files) => files.next(),
        _ => None,
    });
    let question = serde_json::from_slice(&line[..came.bytes]).unwrap();
    (question, file.unwrap())
}

/// Takes one file and writes into it what it is called.
fn peer_with_file(mut stream: BlockingStream) {
    writeln!(stream, "{GREETING}").unwrap();
    let mut line = Vec::new();
    while !line.ends_with(b"\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        line.extend(byte);
    }
    let question: Value = serde_json::from_slice(&line).unwrap();
    writeln!(stream, "{}", json!({"return": {}, "id": question["id"]})).unwrap();
    let (question, file) = question_with_file(&stream);
    let called = question["arguments"]["fdname"].as_str().unwrap();
    std::fs::File::from(file)
        .write_all(called.as_bytes())
        .unwrap();
    writeln!(stream, "{}", json!({"return": {}, "id": question["id"]})).unwrap();
}

#[tokio::test]
async fn a_file_is_handed_over_beside_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let file = std::fs::File::create(&path).unwrap();
    let (ours, theirs) = BlockingStream::pair().unwrap();
    let peer = std::thread::spawn(move || peer_with_file(theirs));
    ours.set_nonblocking(true).unwrap();
    let socket = ours.try_clone().unwrap();
    let stream = UnixStream::from_std(ours).unwrap();
    let (qmp, _events) = Qmp::open(stream, LIMIT).await.unwrap();
    let handing = qmp.hand_over(socket.as_fd(), file.as_fd(), "memory", LIMIT);
    handing.await.unwrap();
    peer.join().unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "memory");
}

#[tokio::test]
async fn a_question_has_a_deadline_and_so_has_the_greeting() {
    let short = Duration::from_millis(50);
    let (qmp, _events) = opened(GREETING, Does::Nothing).await.unwrap();
    let error = qmp.ask("screendump", json!({}), short).await.unwrap_err();
    let told = "QEMU did not answer screendump within 0.05 s";
    assert_eq!(error.to_string(), told);
    let (ours, _theirs) = UnixStream::pair().unwrap();
    let error = Qmp::open(ours, short).await.err().unwrap();
    let told = "QEMU did not answer the greeting within 0.05 s";
    assert_eq!(error.to_string(), told);
}

#[tokio::test]
async fn who_is_not_qemu_is_told() {
    for greeting in ["220 mail", "{}", "null", "{\"QMP\": "] {
        let error = opened(greeting, Does::HangsUp).await.err().unwrap();
        assert!(error.to_string().contains("it said"), "{error}");
    }
}

#[tokio::test]
async fn a_line_without_end_is_the_end() {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let flooding = tokio::spawn(async move {
        let _ = theirs.write_all(format!("{GREETING}\n").as_bytes()).await;
        while theirs.write_all(&[b'x'; 4096]).await.is_ok() {}
    });
    let error = Qmp::open(ours, LIMIT).await.err().unwrap();
    assert!(matches!(error, QmpError::Closed { .. }), "{error}");
    flooding.await.unwrap();
}
