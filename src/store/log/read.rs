//! Reading the log: events that count, in order, and the state they fold into.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::event::{Event, EventKind, RunState, SCHEMA_VERSION};
use crate::store::StoreError;
use crate::types::Iteration;

use super::segment::{Segments, parse_line};
use super::write::{SNAPSHOT_FILE, Snapshot};

/// Events of a run's log that count, from a number on; an iterator.
#[derive(Debug)]
pub struct LogReader {
    segments: Segments,
    /// Index of the segment to open next.
    next_segment: usize,
    open: Option<(PathBuf, BufReader<File>)>,
    from_seq: u64,
    line: Vec<u8>,
}

impl LogReader {
    /// Opens the log in the folder `events`, at event `from_seq`. Segments that are added later
    /// are not seen.
    pub(in crate::store) fn open(events: &Path, from_seq: u64) -> Result<Self, StoreError> {
        let segments = Segments::list(events)?;
        Ok(Self {
            next_segment: segments.holding(from_seq),
            segments,
            open: None,
            from_seq,
            line: Vec::new(),
        })
    }

    fn next_event(&mut self) -> Result<Option<Event>, StoreError> {
        loop {
            let Some((path, file)) = &mut self.open else {
                let Some(segment) = self.segments.list.get(self.next_segment) else {
                    return Ok(None);
                };
                self.next_segment += 1;
                let path = segment.path.clone();
                let file = File::open(&path).map_err(StoreError::io("open", &path))?;
                self.open = Some((path, BufReader::with_capacity(1 << 16, file)));
                continue;
            };
            self.line.clear();
            file.read_until(b'\n', &mut self.line)
                .map_err(StoreError::io("read", path))?;
            let Some(line) = self.line.strip_suffix(b"\n") else {
                self.open = None;
                continue;
            };
            let Some(event) = parse_line(line) else {
                tracing::warn!(path = %path.display(), "damaged line in the event log left out");
                continue;
            };
            if event.seq >= self.from_seq && !self.segments.is_discarded(event.seq) {
                return Ok(Some(event));
            }
        }
    }
}

impl Iterator for LogReader {
    type Item = Result<Event, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_event().transpose()
    }
}

/// The fold of the events that count and are numbered below `end_seq`, from the newest snapshot
/// that still holds.
pub(in crate::store) fn read_state(events: &Path, end_seq: u64) -> Result<RunState, StoreError> {
    let segments = Segments::list(events)?;
    let mut state = read_snapshot(events)
        .filter(|state| state.next_seq <= end_seq && segments.hold(state.next_seq))
        .unwrap_or_default();
    for event in LogReader::open(events, state.next_seq)? {
        let event = event?;
        if event.seq >= end_seq {
            break;
        }
        check_schema(events, &event)?;
        state.apply(&event);
    }
    Ok(state)
}

/// The state that the events of one iteration alone make: its groups, episodes and steps, which
/// the state of the whole run no longer holds. `None` if the log has no such iteration.
pub(in crate::store) fn iteration_state(
    events: &Path,
    iteration: Iteration,
) -> Result<Option<RunState>, StoreError> {
    let segments = Segments::list(events)?;
    let counts = |seq: u64| !segments.is_discarded(seq);
    let start = segments.list.iter().rev().find(|segment| {
        segment.entry.iteration == Some(iteration) && counts(segment.entry.first_seq)
    });
    let Some(start) = start.map(|segment| segment.entry.first_seq) else {
        return Ok(None);
    };
    let mut state = RunState::default();
    if let Some(first) = LogReader::open(events, 0)?.next() {
        state.apply(&first?);
    }
    state.next_seq = start;
    for event in LogReader::open(events, start)? {
        let event = event?;
        let next = matches!(event.kind, EventKind::IterationStarted { iteration: other, .. }
            if other != iteration);
        if next {
            break;
        }
        state.apply(&event);
    }
    Ok(Some(state))
}

/// How often the run was resumed, discarded times included.
pub(in crate::store) fn num_resumes(events: &Path) -> Result<u32, StoreError> {
    Ok(Segments::list(events)?.discarded.len() as u32)
}

/// A snapshot counts only if the same build made it: the fold may have changed since.
fn read_snapshot(events: &Path) -> Option<RunState> {
    #[derive(Deserialize)]
    struct Build {
        build: String,
    }
    let bytes = fs::read(events.join(SNAPSHOT_FILE)).ok()?;
    let Build { build } = serde_json::from_slice(&bytes).ok()?;
    if build != Snapshot::BUILD {
        return None;
    }
    let snapshot: Snapshot<RunState> = serde_json::from_slice(&bytes).ok()?;
    Some(snapshot.state)
}

fn check_schema(events: &Path, event: &Event) -> Result<(), StoreError> {
    match event.kind {
        EventKind::RunStarted { schema, .. } if schema > SCHEMA_VERSION => Err(StoreError::Newer {
            path: events.to_owned(),
            found: schema,
            known: SCHEMA_VERSION,
        }),
        _ => Ok(()),
    }
}
