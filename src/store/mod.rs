//! A run's folder on disk.
//!
//! ```text
//! runs/2026-11-29-demo-7f3a/
//!   profile.toml                    resolved, with the origin of each value
//!   events/000000000000.ndjson      the truth, in segments; index.ndjson and state.json are caches
//!   episodes/0000/0-000123.json     steps and reward for people; .tokens beside it for training,
//!                                   .learned once an update has used them
//!   vocabulary                      the texts of the policy's tokens
//!   blobs/ab/abcd….png              screenshots by the hash of their pixels
//!   checkpoints/iter-000008/        weights and whatever else resuming needs; manifest.toml last
//!   logs/                           the developer's log, and desktop-N.log of each machine
//!   LOCK                            who writes
//! ```
//!
//! Everything but `events/`, `profile.toml` and the newest checkpoint with what it pins can be
//! deleted without losing the story. Every file but the log appears whole, by renaming.
//! Pictures come and go encoded: what pixels mean is not known here.

mod atomic;
mod blobs;
mod checkpoints;
mod episodes;
mod error;
mod evaluations;
mod learned;
mod lock;
mod log;
mod machine_logs;
mod prune;
mod run_dir;
mod sealed;
mod timeline;
mod vocabulary;

pub(crate) use atomic::{Durability, write as write_whole};
pub use checkpoints::{Checkpoint, CheckpointDraft, CheckpointFile, Manifest};
pub use error::StoreError;
pub use evaluations::EvaluationRecord;
pub use lock::{LockHolder, lock_holder, started_ticks};
pub use log::{Line, LogReader, LogWriter};
pub use prune::PruneReport;
pub use run_dir::{RunDir, run_name};
pub use timeline::{IterationMark, Moment, Timeline};

#[cfg(test)]
mod tests;
