//! Writing the log: appends lines, begins segments, repairs a torn tail, keeps snapshots.
//!
//! Nothing is lost by a failed write: the writer cuts its file back to the last whole line, and
//! the caller appends again from `next_seq`.

use std::fs::{self, File};
use std::io::{BufReader, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::event::{Event, EventKind, RunState};
use crate::store::StoreError;
use crate::store::atomic::{self, Durability};

use super::segment::{IndexEntry, parse_line, segment_files, segment_path};

/// A segment is ended once it is this long, for runs whose iterations are long, or that have
/// none: a reader that seeks reads less than this in vain.
const SEGMENT_BYTES_MAX: u64 = 16 << 20;
/// Events between snapshots of the state: opening a run folds no more than about this many,
/// which takes a fraction of a second.
const SNAPSHOT_EVERY_EVENTS: u64 = 100_000;
/// The newest snapshot of the state, beside the segments.
pub(super) const SNAPSHOT_FILE: &str = "state.json";

/// What `SNAPSHOT_FILE` holds.
#[derive(Serialize, Deserialize)]
pub(super) struct Snapshot<S> {
    pub(super) build: String,
    pub(super) state: S,
}

impl Snapshot<()> {
    /// The build whose fold made it.
    pub(super) const BUILD: &str = env!("CARGO_PKG_VERSION");
}

/// An event with its line in the log, without the newline.
#[derive(Clone, Debug)]
pub struct Line {
    /// The event.
    pub event: Event,
    /// Its JSON.
    pub json: String,
}

impl Line {
    /// Writes the event as JSON.
    ///
    /// # Panics
    /// Never: an event holds only what JSON can express.
    pub fn new(event: Event) -> Self {
        let json = serde_json::to_string(&event).expect("events have string keys only");
        Self { event, json }
    }
}

/// The one writer of a run's log.
#[derive(Debug)]
pub struct LogWriter {
    events: PathBuf,
    file: Option<File>,
    /// Whole lines in `file`, bytes.
    bytes: u64,
    /// The running segment's line of the index, until its first lines are written: the index
    /// must never speak of what is not there.
    entry: Option<IndexEntry>,
    next_seq: u64,
    snapshot_seq: u64,
}

impl LogWriter {
    /// Starts the log of a new run in the folder `events`, which it makes.
    pub(in crate::store) fn create(events: &Path) -> Result<Self, StoreError> {
        fs::create_dir_all(events).map_err(StoreError::io("make folder", events))?;
        Ok(Self::at(events, 0))
    }

    /// Opens the log of a run to go on with it, and cuts off what a crash left half written.
    /// Appends begin a new segment.
    pub(in crate::store) fn open(events: &Path) -> Result<Self, StoreError> {
        let next_seq = repair(events)?;
        Ok(Self::at(events, next_seq))
    }

    fn at(events: &Path, next_seq: u64) -> Self {
        Self {
            events: events.to_owned(),
            file: None,
            bytes: 0,
            entry: None,
            next_seq,
            snapshot_seq: next_seq,
        }
    }

    /// Number of the event to be appended next.
    pub fn next_seq(&self) -> u64 {
        self.next_seq
    }

    /// Appends lines whose events are numbered from `next_seq` on. On an error, those below
    /// `next_seq` are in the log, and the others are not.
    ///
    /// # Panics
    /// If the numbers are not in order.
    pub fn append(&mut self, lines: &[Line]) -> Result<(), StoreError> {
        let mut pending = Vec::new();
        let mut pending_events = 0;
        for line in lines {
            let seq = self.next_seq + pending_events;
            assert_eq!(line.event.seq, seq, "events are appended in order");
            if self.begins_segment(&line.event, pending.len() as u64) {
                self.write(&mut pending, &mut pending_events)?;
                self.begin_segment(&line.event)?;
            }
            pending.extend_from_slice(line.json.as_bytes());
            pending.push(b'\n');
            pending_events += 1;
        }
        self.write(&mut pending, &mut pending_events)
    }

    /// Waits until everything appended would survive a power cut.
    pub fn sync(&mut self) -> Result<(), StoreError> {
        let Some(file) = self.file.as_ref().filter(|_| self.bytes > 0) else {
            return Ok(());
        };
        let synced = file.sync_data();
        synced.map_err(StoreError::io("sync", &self.events))
    }

    /// Keeps the state at `next_seq` if the last one kept is old, so that opening is quick.
    pub fn keep_snapshot_if_due(&mut self, state: &RunState) -> Result<(), StoreError> {
        if state.next_seq < self.snapshot_seq + SNAPSHOT_EVERY_EVENTS {
            return Ok(());
        }
        self.keep_snapshot(state)
    }

    /// Keeps the state at `next_seq`.
    pub fn keep_snapshot(&mut self, state: &RunState) -> Result<(), StoreError> {
        self.snapshot_seq = state.next_seq;
        let snapshot = Snapshot {
            build: Snapshot::BUILD.to_owned(),
            state,
        };
        let path = self.events.join(SNAPSHOT_FILE);
        let bytes = serde_json::to_vec(&snapshot)
            .map_err(|error| StoreError::damaged(&path, error.to_string()))?;
        atomic::write(&path, &bytes, Durability::Process)
    }

    fn begins_segment(&self, event: &Event, pending_bytes: u64) -> bool {
        let is_start = matches!(
            event.kind,
            EventKind::IterationStarted { .. } | EventKind::RunResumed { .. }
        );
        let is_long = self.bytes + pending_bytes > SEGMENT_BYTES_MAX;
        let is_first = self.file.is_none() && pending_bytes == 0;
        is_start || is_long || is_first
    }

    fn begin_segment(&mut self, event: &Event) -> Result<(), StoreError> {
        self.sync()?;
        let path = segment_path(&self.events, event.seq);
        let mut options = File::options();
        options.create(true).append(true);
        let file = options
            .open(&path)
            .map_err(StoreError::io("create", &path))?;
        // A failed first write may have left a part of a line.
        if file.metadata().is_ok_and(|metadata| metadata.len() > 0) {
            file.set_len(0).map_err(StoreError::io("write", &path))?;
        }
        self.file = Some(file);
        self.bytes = 0;
        self.entry = Some(IndexEntry::of(event));
        Ok(())
    }

    /// Writes whole lines, or none.
    fn write(&mut self, lines: &mut Vec<u8>, num_events: &mut u64) -> Result<(), StoreError> {
        if lines.is_empty() {
            return Ok(());
        }
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        if let Err(error) = file.write_all(lines) {
            // If cutting back fails too, `repair` does it at the next start.
            let _ = file.set_len(self.bytes);
            return Err(StoreError::io("append to", &self.events)(error));
        }
        self.bytes += lines.len() as u64;
        self.next_seq += *num_events;
        lines.clear();
        *num_events = 0;
        if let Some(entry) = self.entry.take() {
            self.write_index(&entry);
        }
        Ok(())
    }

    /// The index is a cache: a line that cannot be written costs readers a little time.
    fn write_index(&self, entry: &IndexEntry) {
        let index = self.events.join("index.ndjson");
        let line = serde_json::to_string(entry).unwrap_or_default() + "\n";
        let mut options = File::options();
        options.create(true).append(true);
        let written = options
            .open(&index)
            .and_then(|mut file| file.write_all(line.as_bytes()));
        if let Err(error) = written {
            tracing::warn!(path = %index.display(), %error, "index of the event log not written");
        }
    }
}

/// Cuts a half-written line off the log's end; gives the number of the event to come.
fn repair(events: &Path) -> Result<u64, StoreError> {
    let mut files = segment_files(events)?;
    while let Some((_, path)) = files.pop_last() {
        let file = File::open(&path).map_err(StoreError::io("open", &path))?;
        let mut bytes = Vec::new();
        BufReader::new(file)
            .read_to_end(&mut bytes)
            .map_err(StoreError::io("read", &path))?;
        let (whole, last) = whole_lines(&bytes);
        if whole < bytes.len() as u64 {
            tracing::warn!(path = %path.display(), "half-written end of the event log cut off");
            File::options()
                .write(true)
                .open(&path)
                .and_then(|file| file.set_len(whole))
                .map_err(StoreError::io("repair", &path))?;
        }
        if let Some(event) = last {
            return Ok(event.seq + 1);
        }
        fs::remove_file(&path).map_err(StoreError::io("remove", &path))?;
    }
    Ok(0)
}

/// Length of the whole lines at the start of `bytes`, and the last one's event.
fn whole_lines(bytes: &[u8]) -> (u64, Option<Event>) {
    let mut end = bytes.len();
    while let Some(newline) = bytes[..end].iter().rposition(|&byte| byte == b'\n') {
        let line_start = bytes[..newline]
            .iter()
            .rposition(|&byte| byte == b'\n')
            .map_or(0, |before| before + 1);
        if let Some(event) = parse_line(&bytes[line_start..newline]) {
            return (newline as u64 + 1, Some(event));
        }
        end = newline;
    }
    (0, None)
}
