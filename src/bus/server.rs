//! The engine's side of the socket.
//!
//! One task a client. A client that reads slowly costs the lines buffered for it and nothing
//! else: its task waits in a write, lines drop out of its queue, and it is caught up by a
//! snapshot, at most twice a second. The socket is bound anew if a cleaner of `/tmp` takes it.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncWriteExt, BufWriter};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinHandle, JoinSet, spawn_blocking};
use tokio::time::{Instant, MissedTickBehavior, interval, interval_at, sleep, timeout};

use crate::bus::frame::{
    CLIENT_FRAME_MAX, CommandFrame, Frame, FrameKind, HASH_BYTES, LaggedFrame, LogFrame,
    PICTURE_BYTES_MAX, ReplyFrame, TOKENS_BYTES_MAX, TokensFrame, WantLogFrame, read_frame,
    write_frame, write_json,
};
use crate::bus::lease::{Lease, LeaseSeat};
use crate::bus::place::{check_socket_dir, our_uid};
use crate::bus::{
    BusError, Controller, EventSink, Hello, LEASE_ANSWER, LeaseRequest, Role, Watch, Welcome,
};
use crate::event::{CommandStatus, ReplyId, SCHEMA_VERSION};
use crate::store::RunDir;
use crate::types::ImageHash;

/// A client has this long to say hello.
const HELLO_TIMEOUT: Duration = Duration::from_secs(5);
/// A silent engine is heard from this often.
pub(super) const HEARTBEAT: Duration = Duration::from_secs(5);
/// How often the socket is looked at.
const CHECK_SOCKET: Duration = Duration::from_secs(5);
/// A viewer that falls behind is caught up no more often than this.
const CATCH_UP: Duration = Duration::from_millis(500);
/// Clients that still read have this long to take what is left when the run is over.
const FAREWELL: Duration = Duration::from_secs(5);
/// Clients at a time; each may buffer a state.
const CLIENTS_MAX: usize = 32;
/// A thread of its own compresses pictures, a large one for tenths of a second: so long one may be
/// behind the event that tells of it.
const PICTURE_WAIT: Duration = Duration::from_secs(2);
/// Time between two looks whether it is there.
const PICTURE_LOOK: Duration = Duration::from_millis(20);
/// Longest name of a console, characters.
const SEAT_NAME_MAX: usize = 64;
/// Lines written before a flush.
const LINES_PER_FLUSH: usize = 256;
/// Answers waiting for one client.
const REPLIES: usize = 64;

/// The listening socket of a run.
#[derive(Debug)]
pub struct Server {
    path: PathBuf,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

/// What clients are served from.
struct Served {
    sink: EventSink,
    controller: Option<Controller>,
    run: Arc<RunDir>,
    lease: Arc<Lease>,
}

impl Server {
    /// Listens at `path` for the run in `run_root`, on the current runtime. Without a
    /// controller every client is a watcher.
    pub async fn bind(
        path: &Path,
        run_root: &Path,
        sink: EventSink,
        controller: Option<Controller>,
    ) -> Result<Self, BusError> {
        let run = RunDir::open(run_root).map_err(BusError::store)?;
        let bound = Bound::new(path).await?;
        let served = Arc::new(Served {
            sink,
            controller,
            run: Arc::new(run),
            lease: Lease::new(LEASE_ANSWER),
        });
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(accept(bound, served, stopped));
        Ok(Self {
            path: path.to_owned(),
            stop,
            task,
        })
    }

    /// Where it listens.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Stops listening and removes the socket. Clients whose sink is closed have been told
    /// goodbye if they read; the others are cut off.
    pub async fn close(self) {
        let _ = self.stop.send(());
        // It ends by itself now; a panic in it has been reported where it happened.
        let _ = self.task.await;
    }
}

/// A socket in the file system with its listener.
pub(super) struct Bound {
    listener: UnixListener,
    path: PathBuf,
    inode: u64,
}

impl Bound {
    /// Binds the socket, over one that nobody listens at.
    pub(super) async fn new(path: &Path) -> Result<Self, BusError> {
        check_socket_dir(path.parent().unwrap_or(Path::new(".")))?;
        if fs::symlink_metadata(path).is_ok() {
            if UnixStream::connect(path).await.is_ok() {
                let path = path.to_owned();
                return Err(BusError::SocketTaken { path });
            }
            fs::remove_file(path).map_err(BusError::io("remove", path))?;
        }
        let listener = UnixListener::bind(path).map_err(BusError::io("listen at", path))?;
        // The folder already keeps others out in between.
        fs::set_permissions(path, Permissions::from_mode(0o600))
            .map_err(BusError::io("protect", path))?;
        let metadata = fs::symlink_metadata(path).map_err(BusError::io("look at", path))?;
        Ok(Self {
            listener,
            path: path.to_owned(),
            inode: metadata.ino(),
        })
    }

    /// Whether the path still leads here.
    pub(super) fn is_in_place(&self) -> bool {
        let metadata = fs::symlink_metadata(&self.path);
        metadata.is_ok_and(|metadata| metadata.ino() == self.inode)
    }

    /// Binds anew if a cleaner of temporary files took the socket. Connections stay.
    pub(super) async fn restore(&mut self) -> Result<(), BusError> {
        if !self.is_in_place() {
            *self = Self::new(&self.path).await?;
        }
        Ok(())
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        if self.is_in_place() {
            // One that stays is found stale.
            let _ = fs::remove_file(&self.path);
        }
    }
}

async fn accept(mut bound: Bound, served: Arc<Served>, mut stopped: oneshot::Receiver<()>) {
    let mut clients = JoinSet::new();
    let mut check = interval(CHECK_SOCKET);
    check.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = &mut stopped => break,
            accepted = bound.listener.accept() => match accepted {
                Ok((stream, _)) if clients.len() < CLIENTS_MAX => {
                    clients.spawn(serve(stream, Arc::clone(&served)));
                }
                Ok(_) => tracing::warn!(CLIENTS_MAX, "client turned away: too many"),
                // Out of file descriptors, most likely; they come back.
                Err(error) => {
                    tracing::warn!(%error, "client not accepted");
                    sleep(CATCH_UP).await;
                }
            },
            _ = check.tick() => {
                if let Err(error) = bound.restore().await {
                    tracing::warn!(%error, "socket lost and not bound anew");
                }
            }
            Some(_) = clients.join_next() => {}
        }
    }
    drop(bound);
    // Those who read get their goodbye, the rest is cut off with the set.
    let farewell = async { while clients.join_next().await.is_some() {} };
    let _ = timeout(FAREWELL, farewell).await;
}

async fn serve(stream: UnixStream, served: Arc<Served>) {
    if let Err(error) = serve_client(stream, &served).await {
        tracing::debug!(%error, "client left");
    }
}

async fn serve_client(stream: UnixStream, served: &Served) -> io::Result<()> {
    let uid = stream.peer_cred()?.uid();
    if uid != our_uid() && uid != 0 {
        let message = format!("user {uid} may not attach");
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
    }
    let (mut reader, writer) = stream.into_split();
    let first = timeout(HELLO_TIMEOUT, read_frame(&mut reader, CLIENT_FRAME_MAX)).await??;
    let mut hello: Hello = match &first {
        Some(frame) if frame.kind == FrameKind::Hello => frame.json()?,
        _ => return Err(io::Error::new(io::ErrorKind::InvalidData, "no hello")),
    };
    hello.seat = hello.seat.map(|name| seat_name(&name));
    let mut writer = BufWriter::with_capacity(1 << 16, writer);
    let welcome = Welcome {
        schema: SCHEMA_VERSION,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        run: served.run.name(),
        root: served.run.root().to_owned(),
        pid: std::process::id(),
        profile: served.run.profile().unwrap_or_default(),
        tokens: true,
        logs: true,
    };
    write_json(&mut writer, FrameKind::Welcome, &welcome).await?;
    match hello.role {
        Role::Pictures => serve_details(reader, writer, &served.run).await,
        Role::Operate | Role::Watch => Viewer::new(hello, reader, writer, served).run().await,
    }
}

/// A console's name as others are told it: short, and nothing that a terminal obeys.
fn seat_name(name: &str) -> String {
    let plain = name.chars().filter(|c| !c.is_control());
    plain.take(SEAT_NAME_MAX).collect()
}

/// Answers what is asked for one by one: pictures, replies' tokens, machines' logs.
async fn serve_details(
    mut reader: OwnedReadHalf,
    mut writer: BufWriter<OwnedWriteHalf>,
    run: &Arc<RunDir>,
) -> io::Result<()> {
    loop {
        writer.flush().await?;
        let Some(frame) = read_frame(&mut reader, CLIENT_FRAME_MAX).await? else {
            return Ok(());
        };
        match frame.kind {
            FrameKind::WantPicture => send_picture(&mut writer, run, &frame).await?,
            FrameKind::WantTokens => send_tokens(&mut writer, run, frame.json()?).await?,
            FrameKind::WantLog => send_log(&mut writer, run, frame.json()?).await?,
            _ => {}
        }
    }
}

async fn send_picture(
    writer: &mut BufWriter<OwnedWriteHalf>,
    run: &RunDir,
    frame: &Frame,
) -> io::Result<()> {
    let hash = String::from_utf8_lossy(&frame.payload).into_owned();
    let mut name = hash.clone().into_bytes();
    name.resize(HASH_BYTES, b' ');
    let hash = ImageHash(hash.into());
    let asked = Instant::now();
    while !run.has_png(&hash) && run.png_path(&hash).is_some() && asked.elapsed() < PICTURE_WAIT {
        sleep(PICTURE_LOOK).await;
    }
    match read_picture(run, &hash) {
        Ok(png) => write_frame(writer, FrameKind::Picture, &[&name, &png]).await,
        Err(reason) => {
            let parts = [&name[..], reason.as_bytes()];
            write_frame(writer, FrameKind::NoPicture, &parts).await
        }
    }
}

/// Reading a trajectory's files takes some milliseconds, so a thread for such work does it.
async fn send_tokens(
    writer: &mut BufWriter<OwnedWriteHalf>,
    run: &Arc<RunDir>,
    reply: ReplyId,
) -> io::Result<()> {
    let run = Arc::clone(run);
    let read = spawn_blocking(move || run.reply_tokens(reply)).await?;
    let tokens = read.map_err(|error| error.to_string());
    let mut payload = serde_json::to_vec(&TokensFrame { reply, tokens })?;
    if payload.len() > TOKENS_BYTES_MAX {
        let reason = format!(
            "the reply's tokens have {} bytes; up to {TOKENS_BYTES_MAX} are sent",
            payload.len()
        );
        let tokens = Err(reason);
        payload = serde_json::to_vec(&TokensFrame { reply, tokens })?;
    }
    write_frame(writer, FrameKind::Tokens, &[&payload]).await
}

/// A piece of a log is bounded where it is read.
async fn send_log(
    writer: &mut BufWriter<OwnedWriteHalf>,
    run: &Arc<RunDir>,
    asked: WantLogFrame,
) -> io::Result<()> {
    let run = Arc::clone(run);
    let read = spawn_blocking(move || run.machine_log(asked.desktop, asked.after)).await?;
    let answer = LogFrame {
        desktop: asked.desktop,
        log: read.map_err(|error| error.to_string()),
    };
    write_json(writer, FrameKind::Log, &answer).await
}

/// A picture no larger than the protocol allows. Reading one takes about a millisecond, so it
/// is done in place.
pub(super) fn read_picture(run: &RunDir, hash: &ImageHash) -> Result<Vec<u8>, String> {
    let length = run.png_path(hash).and_then(|path| fs::metadata(path).ok());
    if let Some(metadata) = length
        && metadata.len() > PICTURE_BYTES_MAX as u64
    {
        return Err(format!(
            "picture {hash} has {} bytes; up to {PICTURE_BYTES_MAX} are sent",
            metadata.len()
        ));
    }
    run.png(hash).map_err(|error| error.to_string())
}

/// Waits until the lease changed; for ever without a part in it.
async fn changed(seat: &mut Option<LeaseSeat>) {
    match seat {
        Some(seat) => seat.changed().await,
        None => std::future::pending().await,
    }
}

/// A client that watches, and may command.
struct Viewer<'a> {
    hello: Hello,
    frames: mpsc::Receiver<Frame>,
    /// The task that reads frames; aborted with the viewer.
    _reading: JoinSet<()>,
    /// Tasks that hand answers on.
    answering: JoinSet<()>,
    writer: BufWriter<OwnedWriteHalf>,
    served: &'a Served,
    replies: (mpsc::Sender<ReplyFrame>, mpsc::Receiver<ReplyFrame>),
    /// Its part in the lease, if it takes any.
    seat: Option<LeaseSeat>,
}

impl<'a> Viewer<'a> {
    fn new(
        hello: Hello,
        mut reader: OwnedReadHalf,
        writer: BufWriter<OwnedWriteHalf>,
        served: &'a Served,
    ) -> Self {
        // Reading a frame must not be given up halfway, so a task of its own does it. It waits
        // while commands are not taken.
        let (sender, frames) = mpsc::channel(1);
        let mut reading = JoinSet::new();
        reading.spawn(async move {
            while let Ok(Some(frame)) = read_frame(&mut reader, CLIENT_FRAME_MAX).await {
                if sender.send(frame).await.is_err() {
                    return;
                }
            }
        });
        let may_command = hello.role == Role::Operate && served.controller.is_some();
        let name = hello.seat.as_ref().filter(|_| may_command);
        let seat = name.map(|name| served.lease.join(name));
        Self {
            seat,
            hello,
            frames,
            _reading: reading,
            answering: JoinSet::new(),
            writer,
            served,
            replies: mpsc::channel(REPLIES),
        }
    }

    async fn run(&mut self) -> io::Result<()> {
        let Some(mut watch) = self.send_snapshot().await? else {
            return self.say_goodbye().await;
        };
        let mut heartbeat = interval_at(Instant::now() + HEARTBEAT, HEARTBEAT);
        heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        self.send_lease().await?;
        loop {
            self.writer.flush().await?;
            tokio::select! {
                line = watch.lines.recv() => match line {
                    Ok(line) => {
                        self.send_line(line.json.as_bytes()).await?;
                        self.send_waiting(&mut watch).await?;
                    }
                    Err(RecvError::Lagged(missed)) => {
                        match self.catch_up(missed).await? {
                            Some(fresh) => watch = fresh,
                            None => return self.say_goodbye().await,
                        }
                    }
                    Err(RecvError::Closed) => return self.say_goodbye().await,
                },
                frame = self.frames.recv() => match frame {
                    Some(frame) if frame.kind == FrameKind::LeaseRequest => {
                        self.take_lease_request(&frame);
                    }
                    Some(frame) => self.take_command(&frame),
                    None => return Ok(()),
                },
                Some(reply) = self.replies.1.recv() => {
                    write_json(&mut self.writer, FrameKind::Reply, &reply).await?;
                }
                () = changed(&mut self.seat) => self.send_lease().await?,
                _ = heartbeat.tick() => {
                    write_frame(&mut self.writer, FrameKind::Heartbeat, &[]).await?;
                }
            }
        }
    }

    async fn send_lease(&mut self) -> io::Result<()> {
        match &self.seat {
            Some(seat) => write_json(&mut self.writer, FrameKind::Lease, &seat.state()).await,
            None => Ok(()),
        }
    }

    fn take_lease_request(&mut self, frame: &Frame) {
        match (frame.json::<LeaseRequest>(), &self.seat) {
            (Ok(request), Some(seat)) => seat.request(request),
            (Ok(_), None) => {}
            (Err(error), _) => tracing::warn!(%error, "lease request not understood"),
        }
    }

    async fn send_line(&mut self, json: &[u8]) -> io::Result<()> {
        write_frame(&mut self.writer, FrameKind::Event, &[json]).await
    }

    /// Lines that wait already, so that a burst is one write.
    async fn send_waiting(&mut self, watch: &mut Watch) -> io::Result<()> {
        for _ in 0..LINES_PER_FLUSH {
            match watch.lines.try_recv() {
                Ok(line) => self.send_line(line.json.as_bytes()).await?,
                // What else it is will be met again.
                Err(_) => break,
            }
        }
        Ok(())
    }

    /// Tells a viewer that fell behind, and sends a fresh snapshot; `None` if the run is over.
    async fn catch_up(&mut self, missed: u64) -> io::Result<Option<Watch>> {
        write_json(&mut self.writer, FrameKind::Lagged, &LaggedFrame { missed }).await?;
        self.writer.flush().await?;
        sleep(CATCH_UP).await;
        self.send_snapshot().await
    }

    /// Sends the state as it is now, or, if the run is over, as the log ends.
    async fn send_snapshot(&mut self) -> io::Result<Option<Watch>> {
        let watch = self.served.sink.watch().await.ok();
        let state = match &watch {
            Some(watch) => &watch.state,
            None => &self.served.run.state().map_err(io::Error::other)?,
        };
        write_json(&mut self.writer, FrameKind::Snapshot, state).await?;
        Ok(watch)
    }

    async fn say_goodbye(&mut self) -> io::Result<()> {
        // Answers given with the run's last breath are still on their way here.
        let answered = async { while self.answering.join_next().await.is_some() {} };
        let _ = timeout(CATCH_UP, answered).await;
        while let Ok(reply) = self.replies.1.try_recv() {
            write_json(&mut self.writer, FrameKind::Reply, &reply).await?;
        }
        write_frame(&mut self.writer, FrameKind::Bye, &[]).await?;
        self.writer.flush().await
    }

    /// How its commands are signed.
    fn origin(&self) -> String {
        let Hello { origin, seat, .. } = &self.hello;
        let name = seat.as_ref().filter(|name| !name.is_empty());
        name.map_or(origin.clone(), |name| format!("{origin} {name}"))
    }

    fn take_command(&mut self, frame: &Frame) {
        if frame.kind != FrameKind::Command {
            return;
        }
        let asked = match frame.json::<CommandFrame>() {
            Ok(asked) => asked,
            Err(error) => {
                tracing::warn!(%error, "command not understood");
                return;
            }
        };
        let controller = self.served.controller.as_ref();
        let controller = controller.filter(|_| self.hello.role == Role::Operate);
        let replies = self.replies.0.clone();
        let Some(controller) = controller else {
            let reason = match self.hello.role {
                Role::Watch => "attached to watch only: attach without --watch",
                Role::Operate | Role::Pictures => "this run takes no commands",
            };
            let reply = ReplyFrame {
                id: asked.id,
                run_id: 0,
                status: CommandStatus::Refused {
                    reason: reason.to_owned(),
                },
            };
            // No room: the client floods, and its own time-out tells it.
            let _ = replies.try_send(reply);
            return;
        };
        if let Some(Err(reason)) = self.seat.as_ref().map(LeaseSeat::may_write) {
            let reply = ReplyFrame {
                id: asked.id,
                run_id: 0,
                status: CommandStatus::Refused { reason },
            };
            // As above.
            let _ = replies.try_send(reply);
            return;
        }
        let mut ticket = controller.submit(asked.command, &self.origin());
        // Those that are done give their memory back.
        while self.answering.try_join_next().is_some() {}
        self.answering.spawn(async move {
            while let Some((run_id, status)) = ticket.next().await {
                let id = asked.id;
                let reply = ReplyFrame { id, run_id, status };
                if replies.send(reply).await.is_err() {
                    return;
                }
            }
        });
    }
}
