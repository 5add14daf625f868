//! What guests are asked to do and what they answer, typed.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, json};

use crate::types::OneOrMany;

/// A program to run on a guest. The server reads a leading `~/` of any part as the home folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// A program and its arguments, as they are.
    Program(Vec<String>),
    /// A script for `sh`, and the arguments it has as `$1` and on. What comes from elsewhere is an
    /// argument, not a part of the script.
    Shell {
        /// The script.
        script: String,
        /// Its arguments.
        arguments: Vec<String>,
    },
    /// As a task has it. The server splits a text that no shell reads as a shell would.
    Written {
        /// A line or its parts.
        command: OneOrMany<String>,
        /// Whether a shell reads it.
        shell: bool,
    },
}

impl Command {
    /// A program and its arguments.
    pub fn program<T: Into<String>>(argv: impl IntoIterator<Item = T>) -> Self {
        Self::Program(argv.into_iter().map(Into::into).collect())
    }

    /// A script without arguments.
    pub fn shell(script: impl Into<String>) -> Self {
        Self::Shell {
            script: script.into(),
            arguments: Vec::new(),
        }
    }

    /// What the server takes. Of a list that a shell runs the first is the script, the second the
    /// name it has for itself.
    pub(super) fn to_json(&self) -> Value {
        match self {
            Self::Program(argv) => json!({"command": argv, "shell": false}),
            Self::Shell { script, arguments } => {
                let mut list = vec![script.as_str()];
                if !arguments.is_empty() {
                    list.push("sh");
                    list.extend(arguments.iter().map(String::as_str));
                }
                json!({"command": list, "shell": true})
            }
            Self::Written { command, shell } => json!({"command": command, "shell": shell}),
        }
    }

    /// In words, for errors.
    pub(super) fn detail(&self) -> String {
        match self {
            Self::Program(argv) => argv.join(" "),
            Self::Shell { script, .. } => script.clone(),
            Self::Written { command, .. } => {
                let parts: Vec<&str> = command.iter().map(String::as_str).collect();
                parts.join(" ")
            }
        }
    }
}

/// What a program left. Whether its return code is a failure is for whoever asked.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Output {
    /// Its return code; negative is a signal.
    #[serde(alias = "return_code")]
    pub returncode: i32,
    /// What it wrote to its standard output.
    #[serde(rename = "output", default, deserialize_with = "text")]
    pub stdout: String,
    /// What it wrote to its standard error.
    #[serde(rename = "error", default, deserialize_with = "text")]
    pub stderr: String,
}

/// Some versions have `null` for no text.
fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// What has to hold after a command, for `Guest::execute_until`; all of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Verification {
    /// Some window's title holds this, whatever its case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_exists: Option<String>,
    /// This, read by a shell, ends with 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command_success: Option<String>,
}

/// How long `Guest::execute_until` waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// Longest wait after the command has ended.
    pub longest: Duration,
    /// Time between two looks.
    pub interval: Duration,
}

impl Verification {
    /// As a task has it.
    pub(super) fn read(written: &Map<String, Value>) -> Result<Self, String> {
        serde_json::from_value(Value::Object(written.clone())).map_err(|error| error.to_string())
    }
}

impl Patience {
    /// From a task's seconds; what it leaves out is OSWorld's. Says what is wrong with which.
    pub(super) fn read(
        longest: Option<f64>,
        interval: Option<f64>,
    ) -> Result<Self, (&'static str, String)> {
        let read = |name: &'static str, seconds: f64| {
            let duration = Duration::try_from_secs_f64(seconds).ok();
            let duration = duration.filter(|duration| *duration <= MAX_PATIENCE);
            duration.ok_or_else(|| (name, format!("{seconds} is not within an hour")))
        };
        Ok(Self {
            longest: read("max_wait_time", longest.unwrap_or(10.0))?,
            interval: read("check_interval", interval.unwrap_or(1.0))?,
        })
    }
}

/// The longest that a task may have anybody wait.
const MAX_PATIENCE: Duration = Duration::from_secs(3600);

/// A folder's content.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Entry {
    /// A folder.
    Directory {
        /// Without its path; empty where the path asked for ends with a slash.
        name: String,
        /// In no order.
        children: Vec<Child>,
    },
    /// Anything else.
    File {
        /// Without its path.
        name: String,
    },
}

/// What is in a folder.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Child {
    /// By name.
    Entry(Entry),
    /// A folder that the server may not read; it does not say which.
    Unreadable {
        /// Why not.
        error: String,
    },
}
