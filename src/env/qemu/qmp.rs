//! QMP, by which QEMU is asked and tells: a JSON object a line, over a Unix socket.
//!
//! What a guest has broken out into may be at the other end: lines are capped, events that nobody
//! waits for are dropped, and every question has a deadline. Ours rather than a crate's, since the
//! crates bring QEMU's whole schema for the ten commands that are asked here.
//!
//! Source: QEMU's docs/interop/qmp-spec.rst.

use std::collections::HashMap;
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use serde_json::{Value, json};
use tokio::io::{AsyncBufRead, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader, WriteHalf, split};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::lines::next_line;
use crate::env::sandbox::on_one_line;

/// Most bytes of a line. QEMU's own answers to what is asked here have a few hundred.
const MAX_LINE: u64 = 1 << 20;

/// Events that wait to be read.
const MAX_EVENTS: usize = 64;

/// Events that somebody waits for.
const WANTED: [&str; 5] = [
    "SHUTDOWN",
    "RESET",
    "STOP",
    "BLOCK_IO_ERROR",
    "GUEST_PANICKED",
];

/// Why QEMU did not do what was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum QmpError {
    /// It hung up, or never spoke QMP.
    #[error("QEMU hung up during {command}: {reason}")]
    Closed {
        /// What was asked.
        command: &'static str,
        /// How.
        reason: String,
    },
    /// It did not answer in time.
    #[error("QEMU did not answer {command} within {} s", .after.as_secs_f64())]
    Timeout {
        /// What was asked.
        command: &'static str,
        /// How long.
        after: Duration,
    },
    /// It said no.
    #[error("QEMU refused {command}: {told}")]
    Refused {
        /// What was asked.
        command: &'static str,
        /// Its words.
        told: String,
    },
}

/// Something that happened in QEMU.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Event {
    /// QEMU's name of it.
    pub(super) name: String,
    /// What belongs to it; null where nothing does.
    pub(super) data: Value,
}

type Answer = Result<Value, String>;

/// Who waits for which answer; none once there will be no more.
type Waiting = Arc<Mutex<Option<HashMap<u64, oneshot::Sender<Answer>>>>>;

/// A conversation with QEMU; hung up when dropped.
#[derive(Debug)]
pub(super) struct Qmp<S> {
    writer: tokio::sync::Mutex<Writer<S>>,
    waiting: Waiting,
    reading: JoinHandle<()>,
}

#[derive(Debug)]
struct Writer<S> {
    stream: WriteHalf<S>,
    /// Number of the last question.
    asked: u64,
}

impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> Qmp<S> {
    /// Begins it. Events end when QEMU hangs up.
    pub(super) async fn open(
        stream: S,
        limit: Duration,
    ) -> Result<(Self, mpsc::Receiver<Event>), QmpError> {
        const COMMAND: &str = "the greeting";
        let (reader, stream) = split(stream);
        let mut reader = BufReader::new(reader);
        let greeting = in_time(COMMAND, limit, next_line(&mut reader, MAX_LINE)).await?;
        let closed = |reason: String| closed(COMMAND, reason);
        let line = greeting.map_err(|error| closed(error.to_string()))?;
        let line = line.ok_or_else(|| closed("it said nothing".to_owned()))?;
        if object(&line).is_none_or(|greeting| greeting.get("QMP").is_none()) {
            let told = on_one_line(&String::from_utf8_lossy(&line));
            return Err(closed(format!("it said {told:?}")));
        }
        let (events, receiver) = mpsc::channel(MAX_EVENTS);
        let waiting = Waiting::new(Mutex::new(Some(HashMap::new())));
        let qmp = Self {
            writer: tokio::sync::Mutex::new(Writer { stream, asked: 0 }),
            waiting: waiting.clone(),
            reading: tokio::spawn(read(reader, waiting, events)),
        };
        qmp.ask("qmp_capabilities", json!({}), limit).await?;
        Ok((qmp, receiver))
    }

    /// Asks and waits for the answer, at most so long.
    pub(super) async fn ask(
        &self,
        command: &'static str,
        arguments: Value,
        limit: Duration,
    ) -> Result<Value, QmpError> {
        let asking = async {
            let mut writer = self.writer.lock().await;
            let (line, answer) = self.question(&mut writer, command, &arguments)?;
            let written = writer.stream.write_all(line.as_bytes()).await;
            written.map_err(|error| closed(command, error.to_string()))?;
            drop(writer);
            answered(command, answer).await
        };
        in_time(command, limit, asking).await?
    }

    /// Hands over an opened file, which QEMU then knows by `name`. `socket` is the stream's own.
    pub(super) async fn hand_over(
        &self,
        socket: BorrowedFd<'_>,
        file: BorrowedFd<'_>,
        name: &str,
        limit: Duration,
    ) -> Result<(), QmpError> {
        const COMMAND: &str = "getfd";
        let asking = async {
            let mut writer = self.writer.lock().await;
            let (line, answer) = self.question(&mut writer, COMMAND, &json!({"fdname": name}))?;
            let sent = send_with(socket, line.as_bytes(), file);
            sent.map_err(|reason| closed(COMMAND, reason))?;
            drop(writer);
            answered(COMMAND, answer).await.map(drop)
        };
        in_time(COMMAND, limit, asking).await?
    }

    /// A question as it is written, and where its answer comes.
    fn question(
        &self,
        writer: &mut Writer<S>,
        command: &'static str,
        arguments: &Value,
    ) -> Result<(String, oneshot::Receiver<Answer>), QmpError> {
        writer.asked += 1;
        let id = writer.asked;
        let (sender, receiver) = oneshot::channel();
        match &mut *lock(&self.waiting) {
            Some(waiting) => waiting.insert(id, sender),
            None => return Err(closed(command, "its socket has ended".to_owned())),
        };
        let question = json!({"execute": command, "arguments": arguments, "id": id});
        Ok((format!("{question}\n"), receiver))
    }
}

async fn in_time<T>(
    command: &'static str,
    limit: Duration,
    asking: impl Future<Output = T>,
) -> Result<T, QmpError> {
    let late = |_| QmpError::Timeout {
        command,
        after: limit,
    };
    timeout(limit, asking).await.map_err(late)
}

fn closed(command: &'static str, reason: String) -> QmpError {
    QmpError::Closed { command, reason }
}

async fn answered(
    command: &'static str,
    answer: oneshot::Receiver<Answer>,
) -> Result<Value, QmpError> {
    match answer.await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(told)) => Err(QmpError::Refused { command, told }),
        Err(_) => Err(closed(command, "its socket ended".to_owned())),
    }
}

/// Writes a line with a file beside it, which only whole messages carry.
fn send_with(socket: BorrowedFd<'_>, line: &[u8], file: BorrowedFd<'_>) -> Result<(), String> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    let files = [file];
    if !beside.push(SendAncillaryMessage::ScmRights(&files)) {
        return Err("no room for a file beside a message".to_owned());
    }
    let sent = sendmsg(
        socket,
        &[IoSlice::new(line)],
        &mut beside,
        SendFlags::NOSIGNAL,
    );
    match sent.map_err(|error| error.to_string())? {
        sent if sent == line.len() => Ok(()),
        _ => Err("its socket is full".to_owned()),
    }
}

impl<S> Drop for Qmp<S> {
    fn drop(&mut self) {
        self.reading.abort();
    }
}

/// Takes lines to their end and hands each to whom it is for.
async fn read(
    mut reader: impl AsyncBufRead + Unpin,
    waiting: Waiting,
    events: mpsc::Sender<Event>,
) {
    while let Ok(Some(line)) = next_line(&mut reader, MAX_LINE).await {
        let Some(told) = object(&line) else {
            tracing::warn!("QEMU said what is no JSON object");
            break;
        };
        if let Some(name) = told.get("event").and_then(Value::as_str) {
            if WANTED.contains(&name) {
                // Full: what came before ends the machine anyway.
                let _ = events.try_send(Event {
                    name: name.to_owned(),
                    data: told.get("data").cloned().unwrap_or_default(),
                });
            }
            continue;
        }
        let id = told.get("id").and_then(Value::as_u64);
        let asked = id.and_then(|id| lock(&waiting).as_mut()?.remove(&id));
        if let Some(asked) = asked {
            // Nobody waits any more: its deadline has passed.
            let _ = asked.send(answer(&told));
        }
    }
    // Whoever waits is told by the end of its channel.
    lock(&waiting).take();
}

fn answer(told: &Value) -> Answer {
    match told.get("error") {
        None => Ok(told.get("return").cloned().unwrap_or_default()),
        Some(error) => Err(on_one_line(
            error
                .get("desc")
                .and_then(Value::as_str)
                .unwrap_or("no reason given"),
        )),
    }
}

fn object(line: &[u8]) -> Option<Value> {
    let value: Value = serde_json::from_slice(line).ok()?;
    value.is_object().then_some(value)
}

/// A thread that panicked left nothing half done in it.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
