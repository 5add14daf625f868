//! What goes over the socket: frames of a length, a type byte and a payload.
//!
//! ```text
//! u32 length of what follows, little endian | u8 type | payload
//! ```
//!
//! Payloads are JSON, but for pictures: 32 bytes of hash, then the PNG. Frames of an unknown
//! type are skipped, so that either side may be newer; what would wait for an answer to one is
//! asked only of an engine whose welcome says that it knows it.

use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::event::{Command, CommandStatus, ReplyId, ReplyTokens, SCHEMA_VERSION};
use crate::types::{LogPlace, MachineLog};

/// The longest frame a client may send.
pub(super) const CLIENT_FRAME_MAX: usize = 64 << 10;
/// The longest frame a server may send: a state of thousands of episodes in JSON.
pub(super) const SERVER_FRAME_MAX: usize = 256 << 20;
/// The largest picture sent. A 4K screenshot in PNG has 1 to 10 MB.
pub(super) const PICTURE_BYTES_MAX: usize = 16 << 20;
/// The largest answer of tokens sent, in JSON. A reply of a thousand tokens has about 80 kB.
pub(super) const TOKENS_BYTES_MAX: usize = 4 << 20;
/// The largest piece of a machine's log sent, in JSON: its 64 KiB, with every byte escaped.
pub(super) const LOG_BYTES_MAX: usize = 1 << 20;
/// Hex digits of a picture's hash.
pub(super) const HASH_BYTES: usize = 32;

/// What a client is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Watches and may command.
    Operate,
    /// Only watches.
    Watch,
    /// Fetches pictures, replies' tokens and machines' logs.
    Pictures,
}

/// A client's first frame.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// `SCHEMA_VERSION` of the client.
    pub schema: u32,
    /// Its version.
    pub version: String,
    /// What it is.
    pub role: Role,
    /// How its commands are signed: `console`, `ctl`.
    pub origin: String,
    /// Who looks, as other consoles are told: `li@laptop`. Only a console that takes part in the
    /// lease says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seat: Option<String>,
}

impl Hello {
    /// This build's hello.
    pub fn new(role: Role, origin: &str) -> Self {
        Self {
            schema: SCHEMA_VERSION,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            role,
            origin: origin.to_owned(),
            seat: None,
        }
    }

    /// One that takes part in the lease under a name.
    #[must_use]
    pub fn seated(mut self, name: String) -> Self {
        self.seat = Some(name);
        self
    }
}

/// The server's first frame.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// `SCHEMA_VERSION` of the engine.
    pub schema: u32,
    /// Its version.
    pub version: String,
    /// The run's name.
    pub run: String,
    /// The run's folder on the engine's machine.
    pub root: PathBuf,
    /// The engine's process.
    pub pid: u32,
    /// The run's profile with everything it stands on, TOML; older engines do not say it.
    #[serde(default)]
    pub profile: String,
    /// Whether it answers `WantTokens`; older engines skip it in silence.
    #[serde(default)]
    pub tokens: bool,
    /// Whether it answers `WantLog`.
    #[serde(default)]
    pub logs: bool,
}

/// A reply's tokens, or why there are none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct TokensFrame {
    pub(super) reply: ReplyId,
    pub(super) tokens: Result<ReplyTokens, String>,
}

/// A piece of a machine's log that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct WantLogFrame {
    pub(super) desktop: u32,
    /// What follows this place, or the newest part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) after: Option<LogPlace>,
}

/// A piece of a machine's log, or why there is none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct LogFrame {
    pub(super) desktop: u32,
    pub(super) log: Result<MachineLog, String>,
}

/// A command and the number the client knows it by.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct CommandFrame {
    pub(super) id: u64,
    pub(super) command: Command,
}

/// An answer to a command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct ReplyFrame {
    /// The client's number.
    pub(super) id: u64,
    /// The run's number.
    pub(super) run_id: u64,
    pub(super) status: CommandStatus,
}

/// Events that a viewer missed; a snapshot follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LaggedFrame {
    pub(super) missed: u64,
}

/// A frame's type byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum FrameKind {
    /// Client: `Hello`.
    Hello = 1,
    /// Client: `CommandFrame`.
    Command = 2,
    /// Client: a picture's hash.
    WantPicture = 3,
    /// Client: `LeaseRequest`.
    LeaseRequest = 4,
    /// Client: `ReplyId`.
    WantTokens = 5,
    /// Client: `WantLogFrame`.
    WantLog = 6,
    /// Server: `Welcome`.
    Welcome = 16,
    /// Server: `RunState`.
    Snapshot = 17,
    /// Server: a line of the log.
    Event = 18,
    /// Server: `ReplyFrame`.
    Reply = 19,
    /// Server: hash and PNG.
    Picture = 20,
    /// Server: hash and why there is no picture.
    NoPicture = 21,
    /// Server: nothing happened, but it lives.
    Heartbeat = 22,
    /// Server: `LaggedFrame`.
    Lagged = 23,
    /// Server: the run is over and nothing follows.
    Bye = 24,
    /// Server: `LeaseState`.
    Lease = 25,
    /// Server: `TokensFrame`.
    Tokens = 26,
    /// Server: `LogFrame`.
    Log = 27,
}

impl FrameKind {
    const ALL: [FrameKind; 18] = [
        FrameKind::Hello,
        FrameKind::Command,
        FrameKind::WantPicture,
        FrameKind::Welcome,
        FrameKind::Snapshot,
        FrameKind::Event,
        FrameKind::Reply,
        FrameKind::Picture,
        FrameKind::NoPicture,
        FrameKind::Heartbeat,
        FrameKind::Lagged,
        FrameKind::Bye,
        FrameKind::LeaseRequest,
        FrameKind::Lease,
        FrameKind::WantTokens,
        FrameKind::Tokens,
        FrameKind::WantLog,
        FrameKind::Log,
    ];

    fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == byte)
    }
}

/// One frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) kind: FrameKind,
    pub(super) payload: Vec<u8>,
}

impl Frame {
    /// Reads the payload as JSON.
    pub(super) fn json<'a, T: Deserialize<'a>>(&'a self) -> io::Result<T> {
        serde_json::from_slice(&self.payload).map_err(io::Error::from)
    }
}

/// Reads the next frame of a known type; `None` at the end between frames.
pub(super) async fn read_frame(
    reader: &mut (impl AsyncRead + Unpin),
    max_bytes: usize,
) -> io::Result<Option<Frame>> {
    loop {
        let mut length = [0_u8; 4];
        match reader.read_exact(&mut length).await {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            other => other?,
        };
        let length = u32::from_le_bytes(length) as usize;
        if length == 0 || length > max_bytes {
            let message = format!("a frame of {length} bytes, more than {max_bytes} or none");
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        let kind = reader.read_u8().await?;
        // Grown as bytes arrive, so that a length alone costs no memory.
        let mut payload = Vec::new();
        let expected = length as u64 - 1;
        let read = (&mut *reader)
            .take(expected)
            .read_to_end(&mut payload)
            .await?;
        if read as u64 != expected {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if let Some(kind) = FrameKind::from_byte(kind) {
            return Ok(Some(Frame { kind, payload }));
        }
    }
}

/// Writes one frame whose payload is `parts` in a row; does not flush.
pub(super) async fn write_frame(
    writer: &mut (impl AsyncWrite + Unpin),
    kind: FrameKind,
    parts: &[&[u8]],
) -> io::Result<()> {
    let length = 1 + parts.iter().map(|part| part.len()).sum::<usize>();
    let length = u32::try_from(length)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "a frame above 4 GiB"))?;
    writer.write_all(&length.to_le_bytes()).await?;
    writer.write_all(&[kind as u8]).await?;
    for part in parts {
        writer.write_all(part).await?;
    }
    Ok(())
}

/// Writes one frame with a JSON payload; does not flush.
pub(super) async fn write_json(
    writer: &mut (impl AsyncWrite + Unpin),
    kind: FrameKind,
    value: &impl Serialize,
) -> io::Result<()> {
    let payload = serde_json::to_vec(value)?;
    write_frame(writer, kind, &[&payload]).await
}
