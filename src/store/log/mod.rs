//! The run's log: `events/FIRSTSEQ.ndjson`, one event a line, append-only.
//!
//! A segment begins with every iteration, with every start of the engine, and where the last one
//! grew long. Segments are named by their first event's number, so the folder's listing is the
//! index by number; `index.ndjson` adds what each segment is of, and is only a cache: what it
//! lacks is read from the segment's first line.
//!
//! **Resume.** A resumed run does part of its work anew. Its first event, `RunResumed`, names the
//! first event that no longer counts; it opens a segment, so the segments' first lines tell every
//! discarded range `[discard_from_seq, seq of RunResumed)`. The discarded lines stay on disk, the
//! reader leaves them out, and so the fold of what it yields never counts anything twice.
//!
//! **Torn tail.** A line is valid once its newline is written. A reader stops before a line
//! without one; a writer that opens the log cuts it off. A damaged line in the middle (after a
//! power cut) is left out, which the fold counts as missed.

mod read;
mod segment;
mod write;

pub use read::LogReader;
pub use write::{Line, LogWriter};

pub(super) use read::{iteration_state, num_resumes, read_state};
