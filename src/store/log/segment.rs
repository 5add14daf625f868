//! Segments of the log: which there are, what each begins with, and what resumes discard.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::event::{Event, EventKind};
use crate::store::StoreError;
use crate::types::Iteration;

/// One line of `index.ndjson`: what a segment begins with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct IndexEntry {
    /// Number of its first event.
    pub(super) first_seq: u64,
    /// `at_ms` of it.
    pub(super) at_ms: u64,
    /// The iteration that begins with it.
    #[serde(default)]
    pub(super) iteration: Option<Iteration>,
    /// The first event that its `RunResumed` discards.
    #[serde(default)]
    pub(super) discard_from_seq: Option<u64>,
}

impl IndexEntry {
    pub(super) fn of(event: &Event) -> Self {
        let (iteration, discard_from_seq) = match event.kind {
            EventKind::IterationStarted { iteration, .. } => (Some(iteration), None),
            EventKind::RunResumed {
                discard_from_seq, ..
            } => (None, Some(discard_from_seq)),
            _ => (None, None),
        };
        Self {
            first_seq: event.seq,
            at_ms: event.at_ms,
            iteration,
            discard_from_seq,
        }
    }
}

/// One file of the log.
#[derive(Clone, Debug)]
pub(super) struct Segment {
    pub(super) path: PathBuf,
    pub(super) entry: IndexEntry,
}

/// The segments there are, in order, and the ranges of events that no longer count.
#[derive(Clone, Debug, Default)]
pub(super) struct Segments {
    pub(super) list: Vec<Segment>,
    pub(super) discarded: Vec<Range<u64>>,
}

impl Segments {
    /// Lists the segments in the folder `events`.
    pub(super) fn list(events: &Path) -> Result<Self, StoreError> {
        let index = read_index(events);
        let mut list = Vec::new();
        for (first_seq, path) in segment_files(events)? {
            let entry = match index.get(&first_seq) {
                Some(entry) => Some(entry.clone()),
                None => first_event(&path)?.map(|event| IndexEntry::of(&event)),
            };
            // A segment whose first line is not written yet holds nothing.
            if let Some(entry) = entry {
                list.push(Segment { path, entry });
            }
        }
        let discarded = list
            .iter()
            .filter_map(|segment| Some(segment.entry.discard_from_seq?..segment.entry.first_seq))
            .collect();
        Ok(Self { list, discarded })
    }

    pub(super) fn is_discarded(&self, seq: u64) -> bool {
        self.discarded.iter().any(|range| range.contains(&seq))
    }

    /// Whether a state whose next event was `next_seq` counted nothing that was discarded later.
    /// One made after a resume left out what that resume discards.
    pub(super) fn hold(&self, next_seq: u64) -> bool {
        let mut ranges = self.discarded.iter();
        ranges.all(|range| next_seq <= range.start || range.end < next_seq)
    }

    /// Index of the segment that holds `seq`, or the first one.
    pub(super) fn holding(&self, seq: u64) -> usize {
        let after = self
            .list
            .partition_point(|segment| segment.entry.first_seq <= seq);
        after.saturating_sub(1)
    }
}

/// Path of the segment that begins with `first_seq`.
pub(super) fn segment_path(events: &Path, first_seq: u64) -> PathBuf {
    events.join(format!("{first_seq:012}.ndjson"))
}

/// Files of the log by first event, in order.
pub(super) fn segment_files(events: &Path) -> Result<BTreeMap<u64, PathBuf>, StoreError> {
    let mut files = BTreeMap::new();
    let entries = fs::read_dir(events).map_err(StoreError::io("list", events))?;
    for entry in entries {
        let path = entry.map_err(StoreError::io("list", events))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let number = name.strip_suffix(".ndjson").map(str::parse);
        if let Some(Ok(first_seq)) = number {
            files.insert(first_seq, path);
        }
    }
    Ok(files)
}

fn read_index(events: &Path) -> BTreeMap<u64, IndexEntry> {
    // A missing or damaged index costs one read a segment, nothing else.
    let text = fs::read_to_string(events.join("index.ndjson")).unwrap_or_default();
    text.lines()
        .filter_map(|line| serde_json::from_str::<IndexEntry>(line).ok())
        .map(|entry| (entry.first_seq, entry))
        .collect()
}

fn first_event(path: &Path) -> Result<Option<Event>, StoreError> {
    let file = match File::open(path) {
        // Removed since the folder was listed: a writer repairs a torn start.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other.map_err(StoreError::io("open", path))?,
    };
    let mut line = Vec::new();
    BufReader::new(file)
        .read_until(b'\n', &mut line)
        .map_err(StoreError::io("read", path))?;
    Ok(line.strip_suffix(b"\n").and_then(parse_line))
}

/// An event from its line. One whose kind is known but not understood (a field of it is missing
/// or of another shape) becomes `Unknown`, like one whose kind is not known; `None` is no event.
pub(super) fn parse_line(line: &[u8]) -> Option<Event> {
    #[derive(Deserialize)]
    struct Stamp {
        seq: u64,
        at_ms: u64,
    }
    if let Ok(event) = serde_json::from_slice(line) {
        return Some(event);
    }
    let stamp: Stamp = serde_json::from_slice(line).ok()?;
    Some(Event {
        seq: stamp.seq,
        at_ms: stamp.at_ms,
        kind: EventKind::Unknown,
    })
}
