//! Names that a task gives to files of its own.

use std::fmt;

use serde::Deserialize;

/// Name of a file among those of a task, on the host. It has no folders, so that none leads out of
/// the task's own.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct FileName(String);

impl FileName {
    /// As a text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for FileName {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        if name.is_empty() || name == "." || name == ".." || name.contains(['/', '\\', '\0']) {
            return Err(format!("{name:?} is no file's name without a folder"));
        }
        Ok(Self(name))
    }
}
