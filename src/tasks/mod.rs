//! OSWorld's task data: the files that come with arpo or lie in a checkout, sets of tasks, and the
//! cache of files that tasks bring onto a desktop.
//!
//! What a task's parts mean is in `types::osworld`; how desktops are set up and judged is elsewhere.

pub mod cache;
pub mod fetch;
mod library;
mod set;

use std::path::PathBuf;

pub use cache::{FileCache, FileState, Manifest};
pub use library::{FaultyFile, Library, TaskFile};
pub use set::TaskSet;

use crate::store::StoreError;
use crate::types::osworld::TaskFault;

/// Why task data cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TasksError {
    /// The file system said no.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// A task file says something that cannot be.
    #[error("{}: {fault}", .path.display())]
    Faulty {
        /// The file.
        path: PathBuf,
        /// What and where.
        fault: TaskFault,
    },
    /// A folder holds no tasks.
    #[error(
        "{}: no task file in it; expected examples/DOMAIN/ID.json, as in OSWorld's \
         evaluation_examples",
        .root.display()
    )]
    NoTasks {
        /// The folder.
        root: PathBuf,
    },
    /// A set names something that does not exist.
    #[error("task set {set:?}: {reason}")]
    Set {
        /// The set as written.
        set: String,
        /// What is wrong, and what there is.
        reason: String,
    },
    /// A list of tasks or a manifest is not what it has to be.
    #[error("{}: {reason}", .path.display())]
    List {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// Another process fills the cache.
    #[error("{}: another fetch fills this cache; wait for it or take another --cache", .root.display())]
    CacheInUse {
        /// The cache.
        root: PathBuf,
    },
    /// The HTTP client cannot be made.
    #[error("cannot set up HTTP")]
    Client(#[source] reqwest::Error),
}
