//! What can go wrong between engine and viewers.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::store::StoreError;

/// A failed exchange.
#[derive(Debug, Clone, thiserror::Error)]
pub enum BusError {
    /// The event log cannot be written or read, or a picture is not there.
    #[error("{0}")]
    Store(Arc<StoreError>),
    /// The run's log has no first event.
    #[error("the event log of {} is empty: start the run anew", .path.display())]
    NothingToResume {
        /// The run's folder.
        path: PathBuf,
    },
    /// The event sink is closed.
    #[error("the event log is closed: the run is over")]
    Closed,
    /// No engine answers.
    #[error("no engine answers at {}: `arpo runs list` shows those that do", .path.display())]
    NotRunning {
        /// The socket.
        path: PathBuf,
    },
    /// Nothing or several fit a name.
    #[error("{what}; {candidates}")]
    NoSuchRun {
        /// What was asked for, and what is wrong with it.
        what: String,
        /// What there is instead.
        candidates: String,
    },
    /// Another engine listens there.
    #[error(
        "another engine serves a run of this name at {}: stop it with `arpo runs stop`, or choose \
         another name with --run",
        .path.display()
    )]
    SocketTaken {
        /// The socket.
        path: PathBuf,
    },
    /// The folder of sockets could be read or written by others.
    #[error("{} cannot hold sockets: {reason}", .path.display())]
    UnsafeFolder {
        /// The folder.
        path: PathBuf,
        /// What is wrong and what to do.
        reason: String,
    },
    /// The system refused.
    #[error("cannot {what} {}: {source}", .path.display())]
    Io {
        /// What was attempted.
        what: &'static str,
        /// On which socket or folder.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: Arc<io::Error>,
    },
    /// The other side speaks a newer language.
    #[error(
        "the engine of {run} is arpo {version}, whose events this arpo does not know: use that one"
    )]
    Newer {
        /// The run.
        run: String,
        /// The engine's version.
        version: String,
    },
    /// The other side said something that is not of the protocol, or nothing in time.
    #[error("{} is no arpo engine, or a broken one: {reason}", .path.display())]
    Protocol {
        /// The socket.
        path: PathBuf,
        /// What was wrong.
        reason: String,
    },
    /// The engine does not give the picture.
    #[error("{0}")]
    NoPicture(String),
    /// The engine does not give the tokens.
    #[error("{0}")]
    NoTokens(String),
    /// The engine does not give the log.
    #[error("{0}")]
    NoLog(String),
    /// The connection ended before the answer.
    #[error("the connection to the engine was lost")]
    Lost,
}

impl BusError {
    pub(super) fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> BusError {
        let path = path.to_owned();
        move |source| BusError::Io {
            what,
            path,
            source: Arc::new(source),
        }
    }

    pub(super) fn protocol(path: &Path, reason: impl Into<String>) -> BusError {
        BusError::Protocol {
            path: path.to_owned(),
            reason: reason.into(),
        }
    }

    pub(super) fn store(error: StoreError) -> BusError {
        BusError::Store(Arc::new(error))
    }
}
