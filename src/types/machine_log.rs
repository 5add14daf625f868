//! A piece of a machine's own log, as it is read for whoever looks.

use serde::{Deserialize, Serialize};

/// A place in a log: what was read up to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LogPlace {
    /// Which of the log's files, by its number in the file system: a log that grew too long goes
    /// on in another one.
    pub file: u64,
    /// Bytes of it.
    pub bytes: u64,
}

/// Whole lines of a log, without control characters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MachineLog {
    /// The lines, oldest first.
    pub lines: Vec<String>,
    /// What to ask after for what comes later; absent while there is no log.
    pub end: Option<LogPlace>,
    /// Whether they follow right upon the place asked after; else they take the place of what
    /// was read before.
    pub goes_on: bool,
}
