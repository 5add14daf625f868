//! Watching a live run, in process and over the socket: what a viewer sees is what the log says.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use arpo::bus::{
    BusError, CommandInbox, Controller, EventSink, LeaseRequest, LeaseState, Role, RunStatus,
    Server, Source, SourceItem, attach, attach_seated, clean_sockets, control, find_socket,
    list_runs, probe,
};
use arpo::event::{Command, CommandStatus, EventKind, RunState, TrainerState};
use arpo::store::RunDir;
use arpo::types::{ImageHash, MachineLog};
use rustix::process::Signal;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};

use crate::pty::Session;
use crate::synthetic::{image, iteration, run, run_started};

const PROFILE: &str = "[run]\nseed = 1\n";

/// An engine without an engine: a run folder, its sink, its socket, its commands.
pub(crate) struct Engine {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) run_dir: RunDir,
    pub(crate) sink: EventSink,
    controller: Controller,
    pub(crate) inbox: CommandInbox,
    server: Option<Server>,
    pub(crate) socket: PathBuf,
}

impl Engine {
    pub(crate) async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let run_dir = RunDir::create(&folder.path().join("runs/demo-1"), PROFILE).unwrap();
        let sink = EventSink::start(&run_dir, run_started()).unwrap();
        let (controller, inbox) = control(sink.clone(), 0);
        let socket = folder.path().join("sockets/demo-1.sock");
        let server = Server::bind(
            &socket,
            run_dir.root(),
            sink.clone(),
            Some(controller.clone()),
        )
        .await
        .unwrap();
        Self {
            folder,
            run_dir,
            sink,
            controller,
            inbox,
            server: Some(server),
            socket,
        }
    }

    pub(crate) fn emit(&self, kinds: impl IntoIterator<Item = EventKind>) {
        kinds.into_iter().for_each(|kind| self.sink.emit(kind));
    }

    async fn attach(&self, role: Role) -> Source {
        attach(&self.socket, role, "console").await.unwrap()
    }

    /// Ends the run; gives its folder, to be read.
    pub(crate) async fn end(self) -> (tempfile::TempDir, RunDir) {
        self.sink.close().unwrap();
        self.server.unwrap().close().await;
        (self.folder, self.run_dir)
    }
}

/// Everything a source has to say, folded; and the events missed.
async fn fold_all(source: Source) -> (RunState, u64) {
    let Source {
        mut state,
        mut items,
        ..
    } = source;
    let mut missed_in_all = 0;
    while let Some(item) = items.recv().await {
        match item {
            SourceItem::Event(event) => state.apply(&event),
            SourceItem::Resync {
                state: fresh,
                missed,
            } => {
                missed_in_all += missed;
                state = *fresh;
            }
            SourceItem::Heard | SourceItem::Lease(_) | SourceItem::Timeline(_) => {}
            SourceItem::Lost { reason } => panic!("lost: {reason}"),
        }
    }
    (state, missed_in_all)
}

/// How the lease stands, as the newest item says that satisfies `wanted`.
async fn lease_when(source: &mut Source, wanted: impl Fn(&LeaseState) -> bool) -> LeaseState {
    loop {
        match source.items.recv().await.unwrap() {
            SourceItem::Lease(state) if wanted(&state) => return state,
            SourceItem::Lost { reason } => panic!("lost: {reason}"),
            _ => {}
        }
    }
}

#[tokio::test]
async fn of_several_consoles_one_writes() {
    let mut engine = Engine::start().await;
    let mut first = attach_seated(&engine.socket, "a@one").await.unwrap();
    lease_when(&mut first, |lease| lease.yours).await;
    let mut second = attach_seated(&engine.socket, "b\x1b@two\n").await.unwrap();
    let state = lease_when(&mut second, |lease| !lease.yours).await;
    assert_eq!(state.holder.as_deref(), Some("a@one"));
    // Who only watches takes no part; a script is not locked out.
    let watcher = engine.attach(Role::Watch).await;
    assert!(watcher.commands.is_none());
    let script = engine.attach(Role::Operate).await;
    let (writes, waits) = (
        first.commands.clone().unwrap(),
        second.commands.clone().unwrap(),
    );
    let Some((_, CommandStatus::Refused { reason })) = waits.send(Command::Resume).finished().await
    else {
        panic!("two consoles write")
    };
    assert_eq!(reason, "a@one writes on this run; :take asks for it");
    for (commands, origin) in [
        (&writes, "console a@one"),
        (script.commands.as_ref().unwrap(), "console"),
    ] {
        let mut ticket = commands.send(Command::Resume);
        let request = engine.inbox.recv().await.unwrap();
        assert_eq!(request.origin, origin);
        request.done();
        assert!(matches!(
            ticket.finished().await,
            Some((_, CommandStatus::Done))
        ));
    }
    // Asked, refused; asked, granted.
    waits.lease(LeaseRequest::Take);
    let asked = lease_when(&mut first, |lease| lease.asked_by.is_some()).await;
    assert_eq!(asked.asked_by.as_deref(), Some("b@two"));
    writes.lease(LeaseRequest::Refuse);
    lease_when(&mut second, |lease| lease.refused == 1).await;
    waits.lease(LeaseRequest::Take);
    lease_when(&mut first, |lease| lease.asked_by.is_some()).await;
    writes.lease(LeaseRequest::Grant);
    lease_when(&mut second, |lease| lease.yours).await;
    lease_when(&mut first, |lease| !lease.yours).await;
    // A holder that is gone is replaced.
    drop((second, waits));
    lease_when(&mut first, |lease| lease.yours).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_consoles_hand_the_lease_over() {
    let mut engine = Engine::start().await;
    let socket = engine.socket.to_str().unwrap().to_owned();
    let consoles = tokio::task::spawn_blocking(move || {
        let console = |user: &str| Session::start(&["attach", &socket], &[("USER", user)]);
        let mut first = console("ann");
        first.wait_for("rw:you");
        let mut second = console("bo");
        second.wait_for("ro (rw: ann@");
        second.press("r");
        second.wait_for("another console writes");
        second.press(":take\r");
        first.wait_for("bo@");
        first.wait_for("asks to write");
        first.press("n");
        first.wait_until_gone("asks to write");
        second.wait_for("keeps the lease");
        second.press(":take\r");
        first.wait_for("asks to write");
        first.press("y");
        second.wait_for("rw:you");
        first.wait_for("ro (rw: bo@");
        second.press("r");
        // Killed, it leaves the lease to who is left.
        second.wait_for("received");
        second.signal(Signal::KILL);
        first.wait_for("rw:you");
        first.press("Q");
        assert_eq!(first.check_restored(), 0);
    });
    let request = engine.inbox.recv().await.unwrap();
    assert!(
        request.origin.starts_with("console bo@"),
        "{}",
        request.origin
    );
    consoles.await.unwrap();
    request.done();
}

#[tokio::test]
async fn an_older_client_reads_and_commands_as_before() {
    let mut engine = Engine::start().await;
    let mut first = attach_seated(&engine.socket, "a@one").await.unwrap();
    lease_when(&mut first, |lease| lease.yours).await;
    // Its hello knows no seat; it is told of no lease, and is not locked out.
    let mut old = engine.attach(Role::Operate).await;
    let mut ticket = old.commands.as_ref().unwrap().send(Command::Checkpoint);
    engine.inbox.recv().await.unwrap().done();
    assert!(matches!(
        ticket.finished().await,
        Some((_, CommandStatus::Done))
    ));
    engine.emit(iteration(0, 0));
    engine.sink.flush().await.unwrap();
    while old.state.history.is_empty() {
        match old.items.recv().await.unwrap() {
            SourceItem::Event(event) => old.state.apply(&event),
            SourceItem::Resync { state, .. } => old.state = *state,
            SourceItem::Heard => {}
            other => panic!("{other:?}"),
        }
    }
}

/// Copies bytes between two sockets both ways, as `ssh -L` does.
async fn forward(listener: UnixListener, socket: PathBuf) {
    while let Ok((mut near, _)) = listener.accept().await {
        let socket = socket.clone();
        tokio::spawn(async move {
            let mut far = UnixStream::connect(&socket).await.unwrap();
            // Either side may hang up.
            let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
        });
    }
}

#[tokio::test]
async fn a_forwarded_socket_is_as_good_as_the_engines_own() {
    let mut engine = Engine::start().await;
    engine.emit(iteration(0, 0));
    let png = b"\x89PNG\r\n\x1a\nrest";
    engine.run_dir.put_png(&image(1), png).unwrap();
    let laptop = tempfile::tempdir().unwrap();
    let near = laptop.path().join("demo-1.sock");
    let listener = UnixListener::bind(&near).unwrap();
    let relay = tokio::spawn(forward(listener, engine.socket.clone()));
    let mut source = attach_seated(&near, "li@laptop").await.unwrap();
    lease_when(&mut source, |lease| lease.yours).await;
    assert_eq!(source.profile, PROFILE);
    assert_eq!(source.pictures.png(&image(1)).await.unwrap(), png);
    let missing = source
        .pictures
        .png(&image(2))
        .await
        .unwrap_err()
        .to_string();
    assert!(missing.contains("pruned"), "{missing}");
    let commands = source.commands.clone().unwrap();
    let mut ticket = commands.send(Command::Resume);
    let request = engine.inbox.recv().await.unwrap();
    assert_eq!(request.origin, "console li@laptop");
    request.done();
    assert!(matches!(
        ticket.finished().await,
        Some((_, CommandStatus::Done))
    ));
    let viewer = tokio::spawn(fold_all(source));
    let (_folder, run_dir) = engine.end().await;
    assert_eq!(viewer.await.unwrap().0, run_dir.state().unwrap());
    relay.abort();
}

#[tokio::test]
async fn attached_in_the_middle_and_in_process_see_what_the_log_says() {
    let engine = Engine::start().await;
    engine.emit(iteration(0, 0));
    let attached = engine.attach(Role::Operate).await;
    assert_eq!(attached.run, "demo-1");
    assert_eq!(attached.state.history.len(), 1);
    let controller = engine.controller.clone();
    let local = Source::of_engine(engine.run_dir.root(), &engine.sink, Some(controller))
        .await
        .unwrap();
    engine.emit(iteration(1, 0));
    let late = engine.attach(Role::Watch).await;
    engine.emit(iteration(2, 0));
    let viewers = [attached, local, late].map(|source| tokio::spawn(fold_all(source)));
    let (_folder, run_dir) = engine.end().await;
    let folded = run_dir.state().unwrap();
    for viewer in viewers {
        let (state, missed) = viewer.await.unwrap();
        assert_eq!(state, folded);
        assert_eq!(missed, 0);
    }
    assert_eq!(folded.history.len(), 3);
}

#[tokio::test]
async fn a_viewer_that_does_not_read_slows_nobody_and_is_caught_up() {
    let engine = Engine::start().await;
    let sleeper = engine.attach(Role::Watch).await;
    let local = Source::of_engine(engine.run_dir.root(), &engine.sink, None)
        .await
        .unwrap();
    // One that does not even take bytes off the socket.
    let mut dead = UnixStream::connect(&engine.socket).await.unwrap();
    say_hello(&mut dead, "watch").await;

    for number in 0..300 {
        engine.emit(iteration(number, 0));
        engine.sink.flush().await.unwrap();
    }
    let (_folder, run_dir) = {
        // They wake up while the run ends.
        let viewers = [sleeper, local].map(|source| tokio::spawn(fold_all(source)));
        let ended = engine.end().await;
        let folded = ended.1.state().unwrap();
        for viewer in viewers {
            let (state, missed) = viewer.await.unwrap();
            assert!(missed > 0);
            assert_eq!(state, folded);
        }
        ended
    };
    // The log has every event, in order.
    let seqs = run_dir
        .read_events(0)
        .unwrap()
        .map(|event| event.unwrap().seq);
    assert!(seqs.eq(0..run_dir.state().unwrap().next_seq));
}

async fn say_hello(stream: &mut UnixStream, role: &str) {
    let hello = format!(
        "{{\"schema\":1,\"version\":\"0\",\"role\":\"{role}\",\"origin\":\"console\",\"new\":1}}"
    );
    let length = (hello.len() as u32 + 1).to_le_bytes();
    stream.write_all(&length).await.unwrap();
    stream.write_all(&[1]).await.unwrap();
    stream.write_all(hello.as_bytes()).await.unwrap();
}

#[tokio::test]
async fn commands_are_answered_where_they_came_from_and_in_the_log() {
    let mut engine = Engine::start().await;
    let source = engine.attach(Role::Operate).await;
    let commands = source.commands.clone().unwrap();
    let mut paused = commands.send(Command::StepIteration);
    let request = engine.inbox.recv().await.unwrap();
    assert_eq!(request.origin, "console");
    assert_eq!(request.command, Command::StepIteration);
    request.accept();
    assert_eq!(paused.next().await, Some((0, CommandStatus::Received)));
    assert_eq!(paused.next().await, Some((0, CommandStatus::Accepted)));
    request.done();
    assert_eq!(paused.next().await, Some((0, CommandStatus::Done)));
    assert_eq!(paused.next().await, None);

    let mut refused = commands.send(Command::SetDesktops { value: 5 });
    engine
        .inbox
        .recv()
        .await
        .unwrap()
        .refuse("the profile has 4");
    let answer = refused.finished().await.unwrap();
    let reason = "the profile has 4".to_owned();
    assert_eq!(answer, (1, CommandStatus::Refused { reason }));

    // The last breath of a run still reaches whoever asked for it.
    let mut stopped = commands.send(Command::Stop);
    let request = engine.inbox.recv().await.unwrap();
    let viewer = tokio::spawn(fold_all(source));
    request.done();
    let (_folder, run_dir) = engine.end().await;
    assert_eq!(stopped.finished().await, Some((2, CommandStatus::Done)));
    let (state, _) = viewer.await.unwrap();
    assert_eq!(state.commands.len(), 3);
    assert_eq!(state.commands, run_dir.state().unwrap().commands);
}

#[tokio::test]
async fn watchers_cannot_command() {
    let mut engine = Engine::start().await;
    let source = engine.attach(Role::Watch).await;
    assert!(source.commands.is_none());
    // Nor if their console is another one.
    let mut stream = UnixStream::connect(&engine.socket).await.unwrap();
    say_hello(&mut stream, "watch").await;
    let command = b"{\"id\":9,\"command\":{\"command\":\"stop\"}}";
    stream
        .write_all(&(command.len() as u32 + 1).to_le_bytes())
        .await
        .unwrap();
    stream.write_all(&[2]).await.unwrap();
    stream.write_all(command).await.unwrap();
    loop {
        let length = stream.read_u32_le().await.unwrap();
        let mut frame = vec![0; length as usize];
        stream.read_exact(&mut frame).await.unwrap();
        if frame[0] == 19 {
            let reply = String::from_utf8_lossy(&frame[1..]);
            assert!(
                reply.contains("refused") && reply.contains("--watch"),
                "{reply}"
            );
            break;
        }
    }
    assert!(engine.inbox.try_recv().is_none());
}

#[tokio::test]
async fn pictures_come_over_a_connection_of_their_own_up_to_a_size() {
    let engine = Engine::start().await;
    let source = engine.attach(Role::Watch).await;
    let png = [&b"\x89PNG\r\n\x1a\n"[..], &vec![7; 100_000]].concat();
    engine.run_dir.put_png(&image(1), &png).unwrap();
    let huge = [&b"\x89PNG\r\n\x1a\n"[..], &vec![0; 16 << 20]].concat();
    engine.run_dir.put_png(&image(2), &huge).unwrap();
    assert_eq!(source.pictures.png(&image(1)).await.unwrap(), png);
    for (hash, word) in [
        (image(2), "bytes"),
        (image(3), "pruned"),
        (
            ImageHash("../../../../../../../etc/passwd1".into()),
            "pruned",
        ),
        (ImageHash("short".into()), "pruned"),
    ] {
        let error = source.pictures.png(&hash).await.unwrap_err().to_string();
        assert!(error.contains(word), "{hash}: {error}");
    }
    // The connection is still good.
    assert_eq!(source.pictures.png(&image(1)).await.unwrap(), png);
}

#[tokio::test]
async fn a_picture_that_is_a_moment_behind_its_event_is_waited_for() {
    let engine = Engine::start().await;
    let source = engine.attach(Role::Watch).await;
    let png = [&b"\x89PNG\r\n\x1a\n"[..], &[7; 100]].concat();
    let asked = image(4);
    let asking = source.pictures.png(&asked);
    let writing = async {
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        engine.run_dir.put_png(&image(4), &png).unwrap();
    };
    let (got, ()) = futures::join!(asking, writing);
    assert_eq!(got.unwrap(), png);
}

/// Writes into the log of a desktop's machine, as the session does.
fn log(run_dir: &RunDir, desktop: u32, text: &[u8]) {
    use std::io::Write;
    let path = run_dir.logs_path().join(format!("desktop-{desktop}.log"));
    let file = fs::OpenOptions::new().create(true).append(true).open(path);
    file.unwrap().write_all(text).unwrap();
}

#[tokio::test]
async fn logs_of_machines_come_piece_by_piece_from_socket_and_folder() {
    let engine = Engine::start().await;
    let far = engine.attach(Role::Watch).await.pictures;
    let near = Source::of_engine(engine.run_dir.root(), &engine.sink, None).await;
    let near = near.unwrap().pictures;
    // Both ways say the same.
    let read = async |after| {
        let log = far.machine_log(3, after).await.unwrap();
        assert_eq!(near.machine_log(3, after).await.unwrap(), log);
        log
    };
    let nothing = read(None).await;
    assert_eq!(nothing, MachineLog::default());
    // What a terminal would obey, bytes that are no text, and a line that is still being written.
    let text = b"boot \x1b[31mred\x07\n\xff\xfe\tlatin\r\n\nhalf";
    log(&engine.run_dir, 3, text);
    let first = read(None).await;
    assert_eq!(first.lines, ["boot [31mred", "\u{fffd}\u{fffd} latin", ""]);
    assert!(!first.goes_on);
    assert!(read(first.end).await.lines.is_empty());
    log(&engine.run_dir, 3, b" a line\n");
    let next = read(first.end).await;
    assert_eq!(
        (next.lines, next.goes_on),
        (vec!["half a line".to_owned()], true)
    );
    // Too long a line is cut; so is what is too much for one answer.
    log(&engine.run_dir, 3, &[b'x'; 3000]);
    log(&engine.run_dir, 3, b"\n");
    let next = read(next.end).await;
    let cut = next.lines[0].strip_suffix('…').unwrap();
    assert_eq!((cut.len(), next.goes_on), (2000, true));
    for _ in 0..2_000 {
        log(
            &engine.run_dir,
            3,
            b"one line of some fifty bytes from a noisy kernel\n",
        );
    }
    let flood = read(next.end).await;
    assert!(!flood.goes_on, "a part of it was never read");
    let bytes: usize = flood.lines.iter().map(|line| line.len() + 1).sum();
    assert!((60_000..66_000).contains(&bytes), "{bytes}");
    assert!(flood.lines[0].starts_with('…'), "{}", flood.lines[0]);
    // It goes on in another file: what was before is still there.
    let path = engine.run_dir.logs_path().join("desktop-3.log");
    fs::rename(&path, path.with_extension("log.1")).unwrap();
    assert!(read(flood.end).await.lines.is_empty());
    log(&engine.run_dir, 3, b"in the next file\n");
    let next = read(flood.end).await;
    assert!(!next.goes_on);
    assert_eq!(next.lines.last().unwrap(), "in the next file");
    assert!(next.lines.len() > 1_000);
    // Another desktop's is another one.
    assert_eq!(far.machine_log(u32::MAX, None).await.unwrap(), nothing);
}

#[tokio::test]
async fn an_engine_that_knows_no_logs_is_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("old.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    tokio::spawn(async move {
        // Kept open: a hang-up would be an answer.
        let mut open = Vec::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            let welcome = r#"{"schema":1,"version":"0.0.9","run":"old","root":"/r","pid":1}"#;
            for (kind, payload) in [(16, welcome), (17, "{}")] {
                let length = (payload.len() as u32 + 1).to_le_bytes();
                stream.write_all(&length).await.unwrap();
                stream.write_all(&[kind]).await.unwrap();
                stream.write_all(payload.as_bytes()).await.unwrap();
            }
            open.push(stream);
        }
    });
    let source = attach(&socket, Role::Watch, "console").await.unwrap();
    let error = source.pictures.machine_log(0, None).await.unwrap_err();
    let error = error.to_string();
    assert!(
        error.contains("arpo 0.0.9") && error.contains("logs/desktop-N.log"),
        "{error}"
    );
}

#[tokio::test]
async fn strangers_are_kept_out_and_broken_clients_harm_nobody() {
    let engine = Engine::start().await;
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&engine.socket), 0o600);
    assert_eq!(mode(engine.socket.parent().unwrap()), 0o700);
    for garbage in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        &[1, 0, 0, 0, 1],
        &[0, 0, 0, 0],
    ] {
        let mut stream = UnixStream::connect(&engine.socket).await.unwrap();
        stream.write_all(garbage).await.unwrap();
        // It is hung up on, and told nothing.
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        assert!(answer.is_empty());
    }
    let (welcome, state) = probe(&engine.socket).await.unwrap();
    assert_eq!(welcome.run, "demo-1");
    assert_eq!(welcome.pid, std::process::id());
    assert!(state.header.is_some());
}

/// The next item that says something.
async fn next_item(source: &mut Source) -> SourceItem {
    loop {
        match source.items.recv().await.unwrap() {
            SourceItem::Heard | SourceItem::Lease(_) | SourceItem::Timeline(_) => {}
            item => return item,
        }
    }
}

#[tokio::test]
async fn a_lost_engine_is_said_to_be_lost_and_found_again() {
    let mut engine = Engine::start().await;
    let mut source = engine.attach(Role::Operate).await;
    engine.server.take().unwrap().close().await;
    let lost = next_item(&mut source).await;
    assert!(matches!(lost, SourceItem::Lost { .. }), "{lost:?}");
    engine.emit([EventKind::StateChanged {
        state: TrainerState::Running,
    }]);
    let server = Server::bind(
        &engine.socket,
        engine.run_dir.root(),
        engine.sink.clone(),
        Some(engine.controller.clone()),
    );
    engine.server = Some(server.await.unwrap());
    let SourceItem::Resync { state, .. } = next_item(&mut source).await else {
        panic!("the engine was not found again");
    };
    assert_eq!(state.trainer, TrainerState::Running);
    let mut ticket = source.commands.unwrap().send(Command::Resume);
    engine.inbox.recv().await.unwrap().done();
    assert!(matches!(
        ticket.finished().await,
        Some((_, CommandStatus::Done))
    ));
}

#[tokio::test]
async fn attaching_where_nobody_listens_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let error = attach(&folder.path().join("x.sock"), Role::Watch, "console")
        .await
        .unwrap_err();
    assert!(matches!(error, BusError::NotRunning { .. }), "{error}");
    assert!(error.to_string().contains("arpo runs list"), "{error}");
}

#[tokio::test]
async fn runs_are_listed_found_and_cleaned_up() {
    let engine = Engine::start().await;
    let sockets = engine.socket.parent().unwrap().to_owned();
    let runs = engine.folder.path().join("runs");
    let make = |name: &str, kinds: Vec<EventKind>| {
        let run_dir = RunDir::create(&runs.join(name), "").unwrap();
        let mut kinds = kinds.into_iter();
        let sink = EventSink::start(&run_dir, kinds.next().unwrap()).unwrap();
        kinds.for_each(|kind| sink.emit(kind));
        sink.close().unwrap();
        run_dir
    };
    drop(make("done", run(2)));
    let mut cut_short = run(2);
    cut_short.truncate(60);
    drop(make("interrupted", cut_short));
    // Its engine lives (this process holds the lock) but has no socket.
    let silent = make("silent", run(1));

    let listings = list_runs(&sockets, &[runs.clone(), runs.join("nowhere")]).await;
    let mut statuses: Vec<_> = listings
        .iter()
        .map(|l| (l.name.as_str(), l.status))
        .collect();
    statuses.sort_unstable_by_key(|(name, _)| *name);
    let expected = [
        ("demo-1", RunStatus::Live),
        ("done", RunStatus::Finished),
        ("interrupted", RunStatus::Interrupted),
        ("silent", RunStatus::Silent),
    ];
    assert_eq!(statuses, expected);
    drop(silent);

    let found = |run: Option<&'static str>| find_socket(&sockets, run);
    assert_eq!(found(None).await.unwrap(), engine.socket);
    assert_eq!(found(Some("demo")).await.unwrap(), engine.socket);
    assert_eq!(found(Some("demo-1")).await.unwrap(), engine.socket);
    let by_folder = find_socket(&sockets, engine.run_dir.root().to_str())
        .await
        .unwrap();
    assert_eq!(by_folder, engine.socket);
    let error = found(Some("other")).await.unwrap_err().to_string();
    assert!(error.contains("demo-1"), "{error}");

    drop(std::os::unix::net::UnixListener::bind(sockets.join("dead.sock")).unwrap());
    assert_eq!(clean_sockets(&sockets).await.unwrap(), ["dead"]);
    assert!(engine.socket.exists());
}

#[tokio::test]
async fn a_resumed_engine_goes_on_under_a_new_number() {
    let engine = Engine::start().await;
    engine.emit(iteration(0, 0));
    let checkpoint_seq = engine.sink.flush().await.unwrap();
    engine.emit(iteration(1, 0)[..20].to_vec());
    let (_folder, run_dir) = engine.end().await;
    for incarnation in 1..=2 {
        let from = arpo::types::Iteration(1);
        let resumed = EventSink::resume(&run_dir, from, checkpoint_seq).unwrap();
        assert_eq!(resumed.incarnation, incarnation);
        assert_eq!(resumed.state.next_seq, checkpoint_seq);
        assert_eq!(resumed.state.history.len(), 1);
        resumed.sink.close().unwrap();
    }
    let sink = EventSink::resume(&run_dir, arpo::types::Iteration(1), checkpoint_seq)
        .unwrap()
        .sink;
    // Live and from disk, the discarded events are left out alike.
    let live = sink.watch().await.unwrap().state;
    for kind in iteration(1, 3) {
        sink.emit(kind);
    }
    let after = sink.watch().await.unwrap().state;
    sink.close().unwrap();
    assert_eq!(run_dir.state().unwrap(), after);
    assert_eq!(live.history.len(), 1);
    assert_eq!(after.history.len(), 2);
    assert_eq!(after.counters.groups, 4);
    assert_eq!((after.missed, after.superseded), (0, 0));
    assert!(after.at_ms >= live.at_ms && live.at_ms > 0);
}
