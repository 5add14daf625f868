//! Frames, sockets in the file system, and the queue of commands.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use tokio::net::UnixStream;

use crate::bus::frame::{Frame, FrameKind, read_frame, write_frame};
use crate::bus::server::Bound;
use crate::bus::*;
use crate::event::{Command, CommandStatus, EventKind, RunState, SCHEMA_VERSION};
use crate::store::RunDir;

fn private_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o700)).unwrap();
    folder
}

fn started() -> EventKind {
    EventKind::RunStarted {
        schema: SCHEMA_VERSION,
        run: "r".to_owned(),
        version: String::new(),
        profile: "demo".to_owned(),
        unix_ms: 0,
        seed: 1,
        desktops: 1,
        group_size: 1,
        tasks_per_iteration: 1,
        iterations: 1,
        max_steps: 1,
        num_tasks: 1,
        context_tokens: 1,
        learning_rate: 1e-6,
        temperature: 1.0,
        clip_low: Some(0.2),
        clip_high: Some(0.3),
        replay: Some(true),
        virtual_clock: true,
    }
}

#[tokio::test]
async fn frames_of_unknown_types_are_skipped() {
    let mut bytes = Vec::new();
    // A type of the future between two of today.
    write_frame(&mut bytes, FrameKind::Event, &[b"a", b"b"])
        .await
        .unwrap();
    bytes.extend([3, 0, 0, 0, 200, 1, 2]);
    write_frame(&mut bytes, FrameKind::Heartbeat, &[])
        .await
        .unwrap();
    let mut reader = &bytes[..];
    let first = read_frame(&mut reader, 100).await.unwrap().unwrap();
    let expected = Frame {
        kind: FrameKind::Event,
        payload: b"ab".to_vec(),
    };
    assert_eq!(first, expected);
    let second = read_frame(&mut reader, 100).await.unwrap().unwrap();
    assert_eq!(second.kind, FrameKind::Heartbeat);
    assert_eq!(read_frame(&mut reader, 100).await.unwrap(), None);
}

#[tokio::test]
async fn broken_frames_are_errors() {
    let mut whole = Vec::new();
    write_frame(&mut whole, FrameKind::Event, &[b"abc"])
        .await
        .unwrap();
    for cut in 4..whole.len() {
        read_frame(&mut &whole[..cut], 100).await.unwrap_err();
    }
    read_frame(&mut &whole[..], 3).await.unwrap_err();
    read_frame(&mut &[0, 0, 0, 0][..], 100).await.unwrap_err();
    read_frame(&mut &[255, 255, 255, 255, 18][..], 100)
        .await
        .unwrap_err();
}

#[test]
fn only_a_private_folder_of_our_own_holds_sockets() {
    let folder = private_folder();
    let dir = folder.path().join("sockets");
    check_socket_dir(&dir).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&dir), 0o700);
    fs::set_permissions(&dir, Permissions::from_mode(0o755)).unwrap();
    let error = check_socket_dir(&dir).unwrap_err().to_string();
    assert!(error.contains("chmod 700"), "{error}");

    let link = folder.path().join("link");
    symlink(folder.path(), &link).unwrap();
    check_socket_dir(&link).unwrap_err();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    check_socket_dir(&file).unwrap_err();
}

#[test]
fn a_socket_path_that_is_too_long_is_refused_with_a_remedy() {
    let dir = Path::new("/tmp/arpo-1000");
    let path = socket_path(dir, "2026-11-29-demo-7f3a").unwrap();
    assert_eq!(path, Path::new("/tmp/arpo-1000/2026-11-29-demo-7f3a.sock"));
    let error = socket_path(dir, &"x".repeat(100)).unwrap_err().to_string();
    assert!(error.contains("--run"), "{error}");
}

#[tokio::test]
async fn a_socket_is_bound_over_a_dead_one_but_not_over_a_live_one() {
    let folder = private_folder();
    let path = folder.path().join("r.sock");
    // A listener that died leaves its socket behind.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    let bound = Bound::new(&path).await.unwrap();
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let error = Bound::new(&path).await.err().unwrap();
    assert!(matches!(error, BusError::SocketTaken { .. }), "{error}");
    drop(bound);
    assert!(!path.exists());
}

#[tokio::test]
async fn a_socket_that_was_swept_away_is_bound_anew() {
    let folder = private_folder();
    let path = folder.path().join("r.sock");
    let mut bound = Bound::new(&path).await.unwrap();
    fs::remove_file(&path).unwrap();
    assert!(!bound.is_in_place());
    bound.restore().await.unwrap();
    assert!(bound.is_in_place());
    UnixStream::connect(&path).await.unwrap();
    // The folder may go, too.
    let sockets = folder.path().join("sockets");
    let mut bound = Bound::new(&sockets.join("r.sock")).await.unwrap();
    fs::remove_dir_all(&sockets).unwrap();
    bound.restore().await.unwrap();
    assert!(bound.is_in_place());
}

fn new_sink() -> (tempfile::TempDir, RunDir, EventSink) {
    let folder = tempfile::tempdir().unwrap();
    let run = RunDir::create(&folder.path().join("r"), "").unwrap();
    let sink = EventSink::start(&run, started()).unwrap();
    (folder, run, sink)
}

#[tokio::test]
async fn every_command_is_answered_once() {
    let (_folder, run, sink) = new_sink();
    let (controller, mut inbox) = control(sink.clone(), 7);
    let mut done = controller.submit(Command::Resume, "ctl");
    let mut refused = controller.submit(Command::Stop, "ctl");
    let mut dropped = controller.submit(Command::Checkpoint, "console");
    let mut senseless = controller.submit(Command::SetTemperature { value: f64::NAN }, "ctl");

    let request = inbox.recv().await.unwrap();
    assert_eq!((request.id, &request.command), (7, &Command::Resume));
    request.accept();
    request.done();
    inbox.recv().await.unwrap().refuse("not now");
    drop(inbox.try_recv().unwrap());
    assert!(inbox.try_recv().is_none());

    assert_eq!(done.next().await, Some((7, CommandStatus::Received)));
    assert_eq!(done.next().await, Some((7, CommandStatus::Accepted)));
    assert_eq!(done.next().await, Some((7, CommandStatus::Done)));
    assert_eq!(done.next().await, None);
    let is_refused = |answer| matches!(answer, Some((_, CommandStatus::Refused { .. })));
    assert!(is_refused(refused.finished().await));
    assert!(is_refused(dropped.finished().await));
    assert!(is_refused(senseless.finished().await));
    drop(inbox);
    assert!(is_refused(
        controller.submit(Command::Stop, "ctl").finished().await
    ));

    sink.close().unwrap();
    let state = run.state().unwrap();
    let statuses: Vec<_> = state.commands.iter().map(|c| (c.id, &c.status)).collect();
    assert_eq!(statuses.len(), 4);
    assert_eq!(statuses[0], (7, &CommandStatus::Done));
    for (_, status) in &statuses[1..] {
        assert!(matches!(status, CommandStatus::Refused { .. }));
    }
}

#[tokio::test]
async fn a_flood_of_commands_is_refused_not_queued() {
    let (_folder, _run, sink) = new_sink();
    let (controller, _inbox) = control(sink, 0);
    let mut tickets: Vec<_> = (0..100)
        .map(|_| controller.submit(Command::Checkpoint, "ctl"))
        .collect();
    let Some((_, CommandStatus::Refused { reason })) = tickets[99].finished().await else {
        panic!("the hundredth command was queued");
    };
    assert!(reason.contains("waiting"), "{reason}");
}

#[tokio::test]
async fn what_is_flushed_is_on_disk_and_nothing_follows_a_close() {
    let (_folder, run, sink) = new_sink();
    sink.emit(EventKind::Unknown);
    assert_eq!(sink.flush().await.unwrap(), 2);
    assert_eq!(run.read_events(0).unwrap().count(), 2);
    let other = sink.clone();
    sink.close().unwrap();
    other.emit(EventKind::Unknown);
    assert!(matches!(other.flush().await, Err(BusError::Closed)));
    assert!(other.watch().await.is_err());
    assert_eq!(run.read_events(0).unwrap().count(), 2);
}

#[tokio::test]
async fn the_end_of_the_log_is_reported_not_swallowed() {
    let (_folder, run, sink) = new_sink();
    sink.flush().await.unwrap();
    // The next segment cannot be made: a folder has its name.
    fs::create_dir(run.root().join("events/000000000001.ndjson")).unwrap();
    sink.emit(EventKind::IterationStarted {
        iteration: crate::types::Iteration(0),
        policy: crate::types::PolicyVersion(0),
    });
    let error = sink.flush().await.unwrap_err();
    assert!(matches!(error, BusError::Store(_)), "{error}");
    assert!(sink.failure().is_some());
    assert!(sink.close().is_err());
}

#[tokio::test]
async fn an_empty_log_cannot_be_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let run = RunDir::create(&folder.path().join("r"), "").unwrap();
    run.create_log().unwrap();
    let error = EventSink::resume(&run, crate::types::Iteration(0), 1).unwrap_err();
    assert!(matches!(error, BusError::NothingToResume { .. }), "{error}");
    assert_eq!(run.state().unwrap(), RunState::default());
}
