//! Tells the run's log and picture store what episodes do.

use std::collections::HashSet;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use tokio::sync::oneshot;

use crate::bus::{BusError, EventSink};
use crate::event::{EventKind, NoticeLevel};
use crate::screen::encode_png;
use crate::store::RunDir;
use crate::types::{ImageHash, Screenshot};

/// Pictures waiting to be compressed; beyond this the caller waits.
const PICTURE_QUEUE: usize = 256;

/// Work of the picture writer.
enum Item {
    Picture(Screenshot),
    Flush(oneshot::Sender<()>),
}

/// Where episodes report to. Pictures are compressed and written by a thread of their own.
pub struct Recorder(Option<Inner>);

struct Inner {
    sink: EventSink,
    run: Arc<RunDir>,
    pictures: Option<SyncSender<Item>>,
    writer: Option<JoinHandle<()>>,
    seen: Mutex<HashSet<ImageHash>>,
}

impl Recorder {
    /// Starts the picture writer of `run`.
    pub fn start(sink: EventSink, run: Arc<RunDir>) -> Self {
        let (pictures, items) = sync_channel::<Item>(PICTURE_QUEUE);
        let errors = sink.clone();
        let kept = Arc::clone(&run);
        let writer = std::thread::spawn(move || write_pictures(&items, &run, &errors));
        Self(Some(Inner {
            sink,
            run: kept,
            pictures: Some(pictures),
            writer: Some(writer),
            seen: Mutex::new(HashSet::new()),
        }))
    }

    /// One that keeps nothing, for rehearsals.
    pub fn silent() -> Self {
        Self(None)
    }

    /// The run that is told of, if it is kept.
    pub fn run(&self) -> Option<&Arc<RunDir>> {
        self.0.as_ref().map(|inner| &inner.run)
    }

    /// Appends to the log.
    pub fn emit(&self, kind: EventKind) {
        if let Some(inner) = &self.0 {
            inner.sink.emit(kind);
        }
    }

    /// Stores a picture, once.
    pub fn screenshot(&self, screenshot: &Screenshot) {
        let Some(inner) = &self.0 else { return };
        let mut seen = inner.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if !seen.insert(screenshot.hash().clone()) {
            return;
        }
        drop(seen);
        if let Some(pictures) = &inner.pictures {
            // Fails only when the writer is gone, which it has said.
            let _ = pictures.send(Item::Picture(screenshot.clone()));
        }
    }

    /// Returns once every picture and event so far is on disk; the number of the next event.
    pub async fn flush(&self) -> Result<u64, BusError> {
        let Some(inner) = &self.0 else { return Ok(0) };
        if let Some(pictures) = &inner.pictures {
            let (done, flushed) = oneshot::channel();
            if pictures.send(Item::Flush(done)).is_ok() {
                // An error means that the writer is gone, which it has said.
                let _ = flushed.await;
            }
        }
        inner.sink.flush().await
    }
}

fn write_pictures(items: &Receiver<Item>, run: &RunDir, errors: &EventSink) {
    let mut failed = false;
    for item in items {
        let screenshot = match item {
            Item::Picture(screenshot) => screenshot,
            Item::Flush(done) => {
                // Whoever asked may have given up waiting.
                let _ = done.send(());
                continue;
            }
        };
        if let (Err(error), false) = (write(run, &screenshot), failed) {
            failed = true;
            errors.emit(EventKind::Notice {
                level: NoticeLevel::Error,
                text: format!("screenshots are not being stored: {error}"),
            });
        }
    }
}

fn write(run: &RunDir, screenshot: &Screenshot) -> Result<(), String> {
    if run.has_png(screenshot.hash()) {
        return Ok(());
    }
    let png = encode_png(screenshot).map_err(|error| error.to_string())?;
    run.put_png(screenshot.hash(), &png)
        .map_err(|error| error.to_string())?;
    Ok(())
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.pictures = None;
        if let Some(writer) = self.writer.take() {
            // It ends once its queue is empty; a panic there has been printed.
            let _ = writer.join();
        }
    }
}
