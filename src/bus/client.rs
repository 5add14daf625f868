//! The viewer's side of the socket.
//!
//! A lost connection is tried again for as long as somebody looks: an engine that was resumed
//! under the same name, or whose socket was bound anew, is found again and sends a snapshot.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::bus::frame::{
    CommandFrame, Frame, FrameKind, HASH_BYTES, LOG_BYTES_MAX, LaggedFrame, LogFrame,
    PICTURE_BYTES_MAX, ReplyFrame, SERVER_FRAME_MAX, TOKENS_BYTES_MAX, TokensFrame, WantLogFrame,
    read_frame, write_frame, write_json,
};
use crate::bus::server::HEARTBEAT;
use crate::bus::source::{
    COMMANDS, Commands, DETAIL_REQUESTS, DetailRequest, ITEMS, PicturePlace, Wish,
};
use crate::bus::{BusError, CommandSender, Hello, Pictures, Role, Source, SourceItem, Welcome};
use crate::event::{CommandStatus, ReplyId, ReplyTokens, RunState, SCHEMA_VERSION};
use crate::types::{ImageHash, MachineLog};

/// An engine on the same machine answers within milliseconds; one over a slow line within this.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// An engine that has been silent this long is taken for lost.
const SILENCE: Duration = HEARTBEAT.saturating_mul(4);
/// Pause between tries to connect.
const RECONNECT: Duration = Duration::from_secs(1);
/// Frames read ahead of their handling.
const FRAMES: usize = 64;

/// Attaches to the engine that listens at `socket`. `origin` signs commands: `console`, `ctl`.
/// Its tasks run on the current runtime until the source's items are dropped.
pub async fn attach(socket: &Path, role: Role, origin: &str) -> Result<Source, BusError> {
    attach_with(socket, Hello::new(role, origin)).await
}

/// Attaches as one of several consoles that may operate; the others are told this name. Which of
/// them writes is told by `SourceItem::Lease`.
pub async fn attach_seated(socket: &Path, name: &str) -> Result<Source, BusError> {
    let hello = Hello::new(Role::Operate, "console").seated(name.to_owned());
    attach_with(socket, hello).await
}

async fn attach_with(socket: &Path, hello: Hello) -> Result<Source, BusError> {
    let role = hello.role;
    let (mut connection, welcome) = Connection::open(socket, &hello).await?;
    let state = connection.snapshot().await?;
    let (items_sender, items) = mpsc::channel(ITEMS);
    let (commands_sender, commands) = mpsc::channel(COMMANDS);
    let client = Client {
        socket: socket.to_owned(),
        hello,
        items: items_sender,
        commands,
        asked: BTreeMap::new(),
        next_id: 0,
        missed: 0,
    };
    tokio::spawn(client.run(connection));
    let (pictures_sender, requests) = mpsc::channel(DETAIL_REQUESTS);
    tokio::spawn(fetch_details(socket.to_owned(), requests));
    let may_command = role == Role::Operate;
    Ok(Source {
        run: welcome.run,
        root: welcome.root,
        profile: welcome.profile,
        state,
        items,
        pictures: Pictures(PicturePlace::Socket(pictures_sender)),
        commands: may_command.then_some(CommandSender(Commands::Socket(commands_sender))),
        player: None,
    })
}

/// Asks the engine that listens at `socket` who it is, and how its run stands.
pub async fn probe(socket: &Path) -> Result<(Welcome, RunState), BusError> {
    let hello = Hello::new(Role::Watch, "probe");
    let (mut connection, welcome) = Connection::open(socket, &hello).await?;
    Ok((welcome, connection.snapshot().await?))
}

/// A connection past its welcome. A task reads, since reading a frame must not be given up
/// halfway.
struct Connection {
    socket: PathBuf,
    frames: mpsc::Receiver<io::Result<Frame>>,
    writer: OwnedWriteHalf,
    reading: JoinHandle<()>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.reading.abort();
    }
}

impl Connection {
    async fn open(socket: &Path, hello: &Hello) -> Result<(Self, Welcome), BusError> {
        let stream = UnixStream::connect(socket)
            .await
            .map_err(|error| not_running(socket, error))?;
        let (reader, mut writer) = stream.into_split();
        write_json(&mut writer, FrameKind::Hello, hello)
            .await
            .map_err(BusError::io("write to", socket))?;
        let (sender, frames) = mpsc::channel(FRAMES);
        let mut connection = Self {
            socket: socket.to_owned(),
            frames,
            writer,
            reading: tokio::spawn(read_frames(reader, sender)),
        };
        let welcome = connection.expect(FrameKind::Welcome).await?;
        let welcome: Welcome = welcome
            .json()
            .map_err(|error| BusError::protocol(socket, error.to_string()))?;
        if welcome.schema > SCHEMA_VERSION {
            return Err(BusError::Newer {
                run: welcome.run,
                version: welcome.version,
            });
        }
        Ok((connection, welcome))
    }

    async fn snapshot(&mut self) -> Result<RunState, BusError> {
        let frame = self.expect(FrameKind::Snapshot).await?;
        let state = frame.json();
        state.map_err(|error| BusError::protocol(&self.socket, error.to_string()))
    }

    async fn expect(&mut self, kind: FrameKind) -> Result<Frame, BusError> {
        let next = timeout(ANSWER_TIMEOUT, self.frames.recv()).await;
        match next {
            Ok(Some(Ok(frame))) if frame.kind == kind => Ok(frame),
            Ok(Some(Ok(frame))) if frame.kind == FrameKind::Bye => Err(BusError::Closed),
            Ok(Some(Ok(frame))) => {
                let reason = format!("a frame {:?} where {kind:?} was due", frame.kind);
                Err(BusError::protocol(&self.socket, reason))
            }
            Ok(Some(Err(error))) => Err(BusError::protocol(&self.socket, error.to_string())),
            Ok(None) => Err(BusError::protocol(&self.socket, "it hung up")),
            Err(_) => Err(BusError::protocol(&self.socket, "it does not answer")),
        }
    }
}

async fn read_frames(reader: OwnedReadHalf, frames: mpsc::Sender<io::Result<Frame>>) {
    let mut reader = BufReader::with_capacity(1 << 16, reader);
    while let Some(frame) = read_frame(&mut reader, SERVER_FRAME_MAX).await.transpose() {
        let is_over = frame.is_err();
        if frames.send(frame).await.is_err() || is_over {
            return;
        }
    }
}

fn not_running(socket: &Path, error: io::Error) -> BusError {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => BusError::NotRunning {
            path: socket.to_owned(),
        },
        _ => BusError::io("connect to", socket)(error),
    }
}

/// Why a connection ended.
enum End {
    /// The run is over, or nobody looks any more.
    Over,
    /// It broke.
    Lost(String),
}

struct Client {
    socket: PathBuf,
    hello: Hello,
    items: mpsc::Sender<SourceItem>,
    commands: mpsc::Receiver<Wish>,
    /// Commands without a final answer, by the number sent.
    asked: BTreeMap<u64, mpsc::Sender<(u64, CommandStatus)>>,
    next_id: u64,
    /// Events that the next snapshot stands for.
    missed: u64,
}

impl Client {
    async fn run(mut self, mut connection: Connection) {
        loop {
            let reason = match self.follow(&mut connection).await {
                End::Over => return,
                End::Lost(reason) => reason,
            };
            // Their tickets end: the engine may or may not have heard them.
            self.asked.clear();
            if self.items.send(SourceItem::Lost { reason }).await.is_err() {
                return;
            }
            match self.reconnect().await {
                Some(fresh) => connection = fresh,
                None => return,
            }
        }
    }

    async fn follow(&mut self, connection: &mut Connection) -> End {
        let mut has_commands = true;
        loop {
            tokio::select! {
                () = self.items.closed() => return End::Over,
                frame = timeout(SILENCE, connection.frames.recv()) => match frame {
                    Ok(Some(Ok(frame))) => {
                        if let Err(end) = self.take(&frame).await {
                            return end;
                        }
                    }
                    Ok(Some(Err(error))) => return End::Lost(error.to_string()),
                    Ok(None) => return End::Lost("the engine hung up".to_owned()),
                    Err(_) => return End::Lost("the engine is silent".to_owned()),
                },
                asked = self.commands.recv(), if has_commands => match asked {
                    Some(wish) => {
                        if let Err(error) = self.ask(wish, &mut connection.writer).await {
                            return End::Lost(error.to_string());
                        }
                    }
                    None => has_commands = false,
                },
            }
        }
    }

    async fn take(&mut self, frame: &Frame) -> Result<(), End> {
        let broken = |error: io::Error| End::Lost(error.to_string());
        let item = match frame.kind {
            FrameKind::Event => SourceItem::Event(Arc::new(frame.json().map_err(broken)?)),
            FrameKind::Snapshot => SourceItem::Resync {
                state: Box::new(frame.json().map_err(broken)?),
                missed: std::mem::take(&mut self.missed),
            },
            FrameKind::Heartbeat => SourceItem::Heard,
            FrameKind::Lease => SourceItem::Lease(frame.json().map_err(broken)?),
            FrameKind::Lagged => {
                let lagged: LaggedFrame = frame.json().map_err(broken)?;
                self.missed += lagged.missed;
                return Ok(());
            }
            FrameKind::Reply => {
                self.answer(frame.json().map_err(broken)?);
                return Ok(());
            }
            FrameKind::Bye => return Err(End::Over),
            FrameKind::Hello
            | FrameKind::Command
            | FrameKind::WantPicture
            | FrameKind::LeaseRequest
            | FrameKind::Welcome
            | FrameKind::Picture
            | FrameKind::NoPicture
            | FrameKind::WantTokens
            | FrameKind::Tokens
            | FrameKind::WantLog
            | FrameKind::Log => return Ok(()),
        };
        self.items.send(item).await.map_err(|_| End::Over)
    }

    fn answer(&mut self, reply: ReplyFrame) {
        let is_final = matches!(
            reply.status,
            CommandStatus::Refused { .. } | CommandStatus::Done
        );
        if let Some(answers) = self.asked.get(&reply.id) {
            // Whoever asked may have gone; there is room for every answer.
            let _ = answers.try_send((reply.run_id, reply.status));
        }
        if is_final {
            self.asked.remove(&reply.id);
        }
    }

    async fn ask(&mut self, wish: Wish, writer: &mut OwnedWriteHalf) -> io::Result<()> {
        let asked = match wish {
            Wish::Command(asked) => asked,
            Wish::Lease(request) => {
                return write_json(writer, FrameKind::LeaseRequest, &request).await;
            }
        };
        let id = self.next_id;
        self.next_id += 1;
        self.asked.insert(id, asked.answers);
        let frame = CommandFrame {
            id,
            command: asked.command,
        };
        let payload = serde_json::to_vec(&frame)?;
        let mut bytes = Vec::with_capacity(payload.len() + 5);
        write_frame(&mut bytes, FrameKind::Command, &[&payload]).await?;
        writer.write_all(&bytes).await
    }

    /// Tries until the engine is back, the run is over, or nobody looks any more.
    async fn reconnect(&mut self) -> Option<Connection> {
        loop {
            tokio::select! {
                () = self.items.closed() => return None,
                () = sleep(RECONNECT) => {}
            }
            // What was asked meanwhile was asked of nobody.
            while self.commands.try_recv().is_ok() {}
            let Ok((mut connection, _)) = Connection::open(&self.socket, &self.hello).await else {
                continue;
            };
            let Ok(state) = connection.snapshot().await else {
                continue;
            };
            let state = Box::new(state);
            let item = SourceItem::Resync { state, missed: 0 };
            return match self.items.send(item).await {
                Ok(()) => Some(connection),
                Err(_) => None,
            };
        }
    }
}

/// Fetches pictures, tokens and logs one after the other over a connection of their own.
async fn fetch_details(socket: PathBuf, mut requests: mpsc::Receiver<DetailRequest>) {
    let mut line = DetailLine { socket, open: None };
    while let Some(request) = requests.recv().await {
        // Whoever asked may have gone, before or meanwhile.
        match request {
            DetailRequest::Picture { hash, answer } if !answer.is_closed() => {
                let _ = answer.send(line.picture(&hash).await);
            }
            DetailRequest::Tokens { reply, answer } if !answer.is_closed() => {
                let _ = answer.send(line.tokens(reply).await);
            }
            DetailRequest::Log {
                desktop,
                after,
                answer,
            } if !answer.is_closed() => {
                let _ = answer.send(line.log(WantLogFrame { desktop, after }).await);
            }
            DetailRequest::Picture { .. }
            | DetailRequest::Tokens { .. }
            | DetailRequest::Log { .. } => {}
        }
    }
}

/// The connection for details: opened when the first is asked for, and again after it broke.
struct DetailLine {
    socket: PathBuf,
    open: Option<(Connection, Welcome)>,
}

impl DetailLine {
    async fn connection(&mut self) -> Result<(Connection, Welcome), BusError> {
        match self.open.take() {
            Some(open) => Ok(open),
            None => Connection::open(&self.socket, &Hello::new(Role::Pictures, "pictures")).await,
        }
    }

    /// Keeps a connection for the next, unless what went wrong may have left half an answer.
    fn keep<T>(&mut self, open: (Connection, Welcome), fetched: &Result<T, BusError>) {
        if !matches!(fetched, Err(BusError::Lost | BusError::Protocol { .. })) {
            self.open = Some(open);
        }
    }

    async fn picture(&mut self, hash: &ImageHash) -> Result<Vec<u8>, BusError> {
        let mut open = self.connection().await?;
        let fetched = fetch_picture(&mut open.0, hash).await;
        self.keep(open, &fetched);
        fetched
    }

    async fn tokens(&mut self, reply: ReplyId) -> Result<ReplyTokens, BusError> {
        let mut open = self.connection().await?;
        let fetched = match &open.1 {
            Welcome { tokens: true, .. } => fetch_tokens(&mut open.0, reply).await,
            Welcome { run, version, .. } => Err(BusError::NoTokens(format!(
                "the engine of {run} is arpo {version}, which sends no tokens: \
                 `arpo show` reads them where the run's folder is"
            ))),
        };
        self.keep(open, &fetched);
        fetched
    }

    async fn log(&mut self, asked: WantLogFrame) -> Result<MachineLog, BusError> {
        let mut open = self.connection().await?;
        let fetched = match &open.1 {
            Welcome { logs: true, .. } => fetch_log(&mut open.0, asked).await,
            Welcome { run, version, .. } => Err(BusError::NoLog(format!(
                "the engine of {run} is arpo {version}, which sends no logs of machines: they \
                 are the files logs/desktop-N.log in the run's folder"
            ))),
        };
        self.keep(open, &fetched);
        fetched
    }
}

async fn fetch_log(
    connection: &mut Connection,
    asked: WantLogFrame,
) -> Result<MachineLog, BusError> {
    write_json(&mut connection.writer, FrameKind::WantLog, &asked)
        .await
        .map_err(|_| BusError::Lost)?;
    let next = timeout(ANSWER_TIMEOUT, connection.frames.recv()).await;
    let Ok(Some(Ok(frame))) = next else {
        return Err(BusError::Lost);
    };
    if frame.kind != FrameKind::Log || frame.payload.len() > LOG_BYTES_MAX {
        return Err(BusError::protocol(&connection.socket, "no log"));
    }
    let answer: LogFrame = frame
        .json()
        .map_err(|error| BusError::protocol(&connection.socket, error.to_string()))?;
    if answer.desktop != asked.desktop {
        let reason = "another desktop's log";
        return Err(BusError::protocol(&connection.socket, reason));
    }
    answer.log.map_err(BusError::NoLog)
}

async fn fetch_tokens(
    connection: &mut Connection,
    reply: ReplyId,
) -> Result<ReplyTokens, BusError> {
    write_json(&mut connection.writer, FrameKind::WantTokens, &reply)
        .await
        .map_err(|_| BusError::Lost)?;
    let next = timeout(ANSWER_TIMEOUT, connection.frames.recv()).await;
    let Ok(Some(Ok(frame))) = next else {
        return Err(BusError::Lost);
    };
    if frame.kind != FrameKind::Tokens || frame.payload.len() > TOKENS_BYTES_MAX {
        return Err(BusError::protocol(&connection.socket, "no tokens"));
    }
    let answer: TokensFrame = frame
        .json()
        .map_err(|error| BusError::protocol(&connection.socket, error.to_string()))?;
    if answer.reply != reply {
        return Err(BusError::protocol(
            &connection.socket,
            "another reply's tokens",
        ));
    }
    answer.tokens.map_err(BusError::NoTokens)
}

async fn fetch_picture(connection: &mut Connection, hash: &ImageHash) -> Result<Vec<u8>, BusError> {
    let parts = [hash.0.as_bytes()];
    write_frame(&mut connection.writer, FrameKind::WantPicture, &parts)
        .await
        .map_err(|_| BusError::Lost)?;
    let next = timeout(ANSWER_TIMEOUT, connection.frames.recv()).await;
    let Ok(Some(Ok(mut frame))) = next else {
        return Err(BusError::Lost);
    };
    if frame.payload.len() < HASH_BYTES || !frame.payload.starts_with(hash.0.as_bytes()) {
        return Err(BusError::protocol(&connection.socket, "another picture"));
    }
    let body = frame.payload.split_off(HASH_BYTES);
    match frame.kind {
        FrameKind::Picture if body.len() <= PICTURE_BYTES_MAX => Ok(body),
        FrameKind::NoPicture => Err(BusError::NoPicture(
            String::from_utf8_lossy(&body).into_owned(),
        )),
        _ => Err(BusError::protocol(&connection.socket, "no picture")),
    }
}
