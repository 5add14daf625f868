//! `EventSink`: where events are emitted; and the writer thread behind it.
//!
//! The thread stamps number and time, appends to the log, folds its own `RunState`, and only
//! then passes the line on. Queue of events: bounded, `emit` waits (the disk is the limit).
//! Queue to viewers: bounded, the oldest drop out and the viewer is told how many.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::{broadcast, oneshot};

use crate::bus::BusError;
use crate::event::{Event, EventKind, RunState};
use crate::store::{Line, LogWriter, RunDir, StoreError};
use crate::types::Iteration;

/// Events waiting for the writer. A disk that hiccups for a second at OSWorld's pace (some
/// hundred events a second) fills a small part of it.
const QUEUE_EVENTS: usize = 8192;
/// Lines a viewer may be behind before it is caught up by a snapshot; about 4 MB at most.
const VIEWER_LINES: usize = 4096;
/// Events appended by one write.
const BATCH_EVENTS: usize = 512;
/// A full disk is tried again this often, a second apart, before the log is given up: time for
/// an operator or a cleaner to free some.
const FULL_DISK_TRIES: u32 = 30;

/// The state of a run and the lines that follow it, without a gap between them.
#[derive(Debug)]
pub struct Watch {
    /// The fold of every event before the first of `lines`.
    pub state: RunState,
    /// What follows.
    pub lines: broadcast::Receiver<Arc<Line>>,
}

enum Message {
    Emit(Box<EventKind>),
    Flush(SyncSender<u64>),
    FlushAsync(oneshot::Sender<u64>),
    Watch(oneshot::Sender<Watch>),
    Close,
}

/// Where events are emitted. Clones share one log.
#[derive(Clone, Debug)]
pub struct EventSink {
    queue: SyncSender<Message>,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    failure: OnceLock<Arc<StoreError>>,
    /// Locked only to take the handle out when closing.
    writer: Mutex<Option<JoinHandle<()>>>,
}

/// A run gone on with.
#[derive(Debug)]
pub struct Resumed {
    /// Where its events are emitted; `RunResumed` is already.
    pub sink: EventSink,
    /// The state that the discarded events left out make, `RunResumed` not yet folded in.
    pub state: RunState,
    /// Number of this start of the engine, never used before in the run.
    pub incarnation: u32,
}

impl EventSink {
    /// Starts a new run's log with its first event, a `RunStarted`.
    pub fn start(run: &RunDir, started: EventKind) -> Result<Self, BusError> {
        let log = run.create_log().map_err(BusError::store)?;
        let unix_ms = match started {
            EventKind::RunStarted { unix_ms, .. } => unix_ms,
            _ => unix_now_ms(),
        };
        let sink = Self::spawn(log, RunState::default(), unix_ms);
        sink.emit(started);
        Ok(sink)
    }

    /// Goes on with a run's log: events from `discard_from_seq` on no longer count, and
    /// `from_iteration` is done next. See `RunDir::resume_seq`.
    pub fn resume(
        run: &RunDir,
        from_iteration: Iteration,
        discard_from_seq: u64,
    ) -> Result<Resumed, BusError> {
        let log = run.open_log().map_err(BusError::store)?;
        let state = run
            .state_before(discard_from_seq)
            .map_err(BusError::store)?;
        let Some(header) = &state.header else {
            let path = run.root().to_owned();
            return Err(BusError::NothingToResume { path });
        };
        let incarnation = run.next_incarnation().map_err(BusError::store)?;
        let sink = Self::spawn(log, state.clone(), header.unix_ms);
        sink.emit(EventKind::RunResumed {
            from_iteration,
            discard_from_seq,
            incarnation,
        });
        Ok(Resumed {
            sink,
            state,
            incarnation,
        })
    }

    fn spawn(log: LogWriter, state: RunState, unix_ms: u64) -> Self {
        let (queue, messages) = sync_channel(QUEUE_EVENTS);
        let (lines, _) = broadcast::channel(VIEWER_LINES);
        let shared = Arc::new(Shared {
            failure: OnceLock::new(),
            writer: Mutex::new(None),
        });
        let writer = Writer {
            log,
            state,
            unix_ms,
            lines,
            shared: Arc::clone(&shared),
            batch: Vec::new(),
        };
        let handle = thread::Builder::new()
            .name("event-log".to_owned())
            .spawn(move || writer.run(&messages))
            .expect("a process that starts can start a thread");
        *shared.writer.lock().unwrap_or_else(PoisonError::into_inner) = Some(handle);
        Self { queue, shared }
    }

    /// Puts an event on its way into the log. Waits while the writer is behind; after `close`,
    /// or once the log failed, does nothing.
    pub fn emit(&self, kind: EventKind) {
        // Fails once the writer has ended, when nothing can be logged any more.
        let _ = self.queue.send(Message::Emit(Box::new(kind)));
    }

    /// Waits until every event emitted before is on the disk, synced; gives the number of the
    /// next one. The barrier before a checkpoint.
    pub async fn flush(&self) -> Result<u64, BusError> {
        let (reply, answer) = oneshot::channel();
        let sent = self.queue.send(Message::FlushAsync(reply));
        sent.map_err(|_| self.closed())?;
        answer.await.map_err(|_| self.closed())
    }

    /// `flush` for threads outside the async runtime.
    pub fn flush_blocking(&self) -> Result<u64, BusError> {
        let (reply, answer) = sync_channel(1);
        let sent = self.queue.send(Message::Flush(reply));
        sent.map_err(|_| self.closed())?;
        answer.recv().map_err(|_| self.closed())
    }

    /// The run's state now and the lines that follow it.
    pub async fn watch(&self) -> Result<Watch, BusError> {
        let (reply, answer) = oneshot::channel();
        let sent = self.queue.send(Message::Watch(reply));
        sent.map_err(|_| self.closed())?;
        answer.await.map_err(|_| self.closed())
    }

    /// Why the log cannot be written any more, if so: the run must end.
    pub fn failure(&self) -> Option<BusError> {
        let failure = self.shared.failure.get()?;
        Some(BusError::Store(Arc::clone(failure)))
    }

    /// Writes what was emitted, keeps a snapshot, and ends the log; viewers learn that the run
    /// is over. Clones do nothing from then on.
    pub fn close(&self) -> Result<(), BusError> {
        let _ = self.queue.send(Message::Close);
        let writer = self.shared.writer.lock();
        let handle = writer.unwrap_or_else(PoisonError::into_inner).take();
        if let Some(handle) = handle {
            handle.join().map_err(|_| BusError::Closed)?;
        }
        self.failure().map_or(Ok(()), Err)
    }

    fn closed(&self) -> BusError {
        self.failure().unwrap_or(BusError::Closed)
    }
}

struct Writer {
    log: LogWriter,
    state: RunState,
    unix_ms: u64,
    lines: broadcast::Sender<Arc<Line>>,
    shared: Arc<Shared>,
    batch: Vec<Line>,
}

impl Writer {
    fn run(mut self, messages: &Receiver<Message>) {
        while let Ok(first) = messages.recv() {
            let mut next = Some(first);
            while let Some(message) = next {
                if self.take(message).is_err() {
                    self.end();
                    return;
                }
                next = match self.batch.len() {
                    BATCH_EVENTS.. => None,
                    _ => messages.try_recv().ok(),
                };
            }
            if self.commit().is_err() {
                return;
            }
        }
        self.end();
    }

    /// Handles one message; an error ends the thread.
    fn take(&mut self, message: Message) -> Result<(), Ended> {
        match message {
            Message::Emit(kind) => {
                let seq = self.log.next_seq() + self.batch.len() as u64;
                let event = Event {
                    seq,
                    at_ms: self.now_ms(),
                    kind: *kind,
                };
                self.batch.push(Line::new(event));
                Ok(())
            }
            Message::Flush(reply) => {
                let seq = self.sync()?;
                // Whoever asked may have gone.
                let _ = reply.send(seq);
                Ok(())
            }
            Message::FlushAsync(reply) => {
                let seq = self.sync()?;
                let _ = reply.send(seq);
                Ok(())
            }
            Message::Watch(reply) => {
                self.commit()?;
                let watch = Watch {
                    state: self.state.clone(),
                    lines: self.lines.subscribe(),
                };
                let _ = reply.send(watch);
                Ok(())
            }
            Message::Close => {
                self.commit()?;
                Err(Ended)
            }
        }
    }

    /// Writes the batch, then folds and shows it.
    fn commit(&mut self) -> Result<(), Ended> {
        let batch = std::mem::take(&mut self.batch);
        if batch.is_empty() {
            return Ok(());
        }
        self.append(&batch)?;
        for line in batch {
            self.state.apply(&line.event);
            // Nobody watches: no matter.
            let _ = self.lines.send(Arc::new(line));
        }
        if let Err(error) = self.log.keep_snapshot_if_due(&self.state) {
            tracing::warn!(%error, "snapshot of the run's state not kept");
        }
        Ok(())
    }

    fn append(&mut self, batch: &[Line]) -> Result<(), Ended> {
        let first_seq = self.log.next_seq();
        let mut tries = 0;
        loop {
            let written = (self.log.next_seq() - first_seq) as usize;
            let Err(error) = self.log.append(&batch[written..]) else {
                return Ok(());
            };
            tries += 1;
            if !error.is_disk_full() || tries >= FULL_DISK_TRIES {
                tracing::error!(%error, "event log given up");
                // Only this thread sets it.
                let _ = self.shared.failure.set(Arc::new(error));
                return Err(Ended);
            }
            tracing::warn!(%error, tries, "disk full; the run waits");
            thread::sleep(Duration::from_secs(1));
        }
    }

    fn sync(&mut self) -> Result<u64, Ended> {
        self.commit()?;
        match self.log.sync() {
            Ok(()) => Ok(self.log.next_seq()),
            Err(error) => {
                let _ = self.shared.failure.set(Arc::new(error));
                Err(Ended)
            }
        }
    }

    fn end(mut self) {
        if self.shared.failure.get().is_some() || self.commit().is_err() {
            return;
        }
        let kept = self
            .log
            .sync()
            .and_then(|()| self.log.keep_snapshot(&self.state));
        if let Err(error) = kept {
            tracing::warn!(%error, "snapshot of the run's state not kept");
        }
    }

    /// Milliseconds since the run's first start, never going back.
    fn now_ms(&self) -> u64 {
        let before = self
            .batch
            .last()
            .map_or(self.state.at_ms, |line| line.event.at_ms);
        unix_now_ms().saturating_sub(self.unix_ms).max(before)
    }
}

/// The writer thread has to end.
struct Ended;

fn unix_now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}
