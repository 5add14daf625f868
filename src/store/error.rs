//! What can go wrong with a run's folder, said so that the reader knows what to do.

use std::io;
use std::path::{Path, PathBuf};

use crate::types::{EpisodeId, ImageHash};

/// A failed access to a run's folder.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The folder has no event log.
    #[error("{} is not the folder of a run: it has no events/", .path.display())]
    NotARun {
        /// The folder.
        path: PathBuf,
    },
    /// A new run was to be made where one is.
    #[error(
        "{} already holds a run: choose another folder, or go on with it by --resume",
        .path.display()
    )]
    Exists {
        /// The folder.
        path: PathBuf,
    },
    /// Another process writes to the run.
    #[error(
        "{} is in use by process {pid} on {host}: attach to it with `arpo attach`, or stop it \
         with `arpo runs stop`",
        .path.display()
    )]
    Locked {
        /// The folder.
        path: PathBuf,
        /// The process that holds the lock.
        pid: u32,
        /// The machine it runs on.
        host: String,
    },
    /// A newer arpo wrote it.
    #[error(
        "{} was written in format {found}, this arpo knows up to {known}: use a newer arpo",
        .path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The newest format known here.
        known: u32,
    },
    /// The system refused.
    #[error("cannot {what} {}: {source}{}", .path.display(), advice(.source))]
    Io {
        /// What was attempted.
        what: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// A file is not what it should be.
    #[error("{} is damaged: {reason}", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// There is less room than a write needs.
    #[error(
        "{} has {free_mb} MB free and {needed_mb} MB are needed: free some, or prune old runs with \
         `arpo runs clean RUN`",
        .path.display()
    )]
    NoSpace {
        /// A folder on the file system.
        path: PathBuf,
        /// Room left, in units of 10^6 bytes.
        free_mb: u64,
        /// Room needed, in units of 10^6 bytes.
        needed_mb: u64,
    },
    /// The run has no such episode, or it was pruned.
    #[error("episode {id} is not in {}: it never ended there, or was pruned", .path.display())]
    NoEpisode {
        /// Which.
        id: EpisodeId,
        /// The run's folder.
        path: PathBuf,
    },
    /// The episode has fewer steps.
    #[error("episode {id} has no step {step}: it has {steps}")]
    NoStep {
        /// Which.
        id: EpisodeId,
        /// The step, from 1.
        step: u32,
        /// Its steps.
        steps: usize,
    },
    /// The run has no such picture, or it was pruned.
    #[error("picture {hash} is not in {}: it was never stored there, or was pruned", .path.display())]
    NoPicture {
        /// Which.
        hash: ImageHash,
        /// The run's folder.
        path: PathBuf,
    },
    /// No checkpoint of the run can be used.
    #[error("{} has no whole checkpoint{reasons}", .path.display())]
    NoCheckpoint {
        /// The run's folder.
        path: PathBuf,
        /// What is wrong with those that are there, each after "; "; empty if there is none.
        reasons: String,
    },
}

impl StoreError {
    /// For `map_err`: what was attempted on which file.
    pub(crate) fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
        let path = path.to_owned();
        move |source| StoreError::Io { what, path, source }
    }

    pub(crate) fn damaged(path: &Path, reason: impl Into<String>) -> StoreError {
        StoreError::Damaged {
            path: path.to_owned(),
            reason: reason.into(),
        }
    }

    /// Whether waiting or freeing room may help.
    pub fn is_disk_full(&self) -> bool {
        match self {
            StoreError::NoSpace { .. } => true,
            StoreError::Io { source, .. } => is_full(source),
            _ => false,
        }
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

/// What to do about it, where that is known.
fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull => ": free some room, then go on with --resume",
        io::ErrorKind::QuotaExceeded => ": your quota is used up; free some, then use --resume",
        io::ErrorKind::PermissionDenied => ": check who owns it, or choose a folder of your own",
        io::ErrorKind::ReadOnlyFilesystem => ": choose a folder on a writable file system",
        _ => "",
    }
}
