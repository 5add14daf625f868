//! Work that reads or writes files, or looks at pixels: never on the thread that draws.
//!
//! One thread does one job after the other. Its inbox is bounded; when it is full a job is
//! refused, and the console says so.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use crate::bus::Pictures;
use crate::event::{ReplyId, ReplyTokens};
use crate::screen::decode_png;
use crate::store::RunDir;
use crate::tui::changes::{Changes, changes};
use crate::tui::run::{TuiError, spawn};
use crate::tui::train::Compared;
use crate::types::{ImageHash, Screenshot};

/// Jobs that wait at most; an operator asks slower.
const WAITING: usize = 16;

/// Something to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Job {
    /// Read another run's iterations: its folder, or its name in `runs`.
    Compare(PathBuf),
    /// Write a text into a new file.
    Write {
        /// Which.
        path: PathBuf,
        /// What.
        text: String,
    },
    /// Find what differs between two screenshots.
    Changes {
        /// The earlier one.
        before: ImageHash,
        /// The later one.
        after: ImageHash,
    },
    /// Read a reply's tokens.
    Tokens(ReplyId),
    /// Read the profile of a run, or what differs between those of two runs.
    Profile {
        /// The run's folder, or its name in `runs`.
        run: PathBuf,
        /// The other one.
        other: Option<PathBuf>,
    },
}

/// What came of a job.
#[derive(Clone, Debug, PartialEq)]
pub enum Worked {
    /// Another run was read.
    Compared(Compared),
    /// A file was written.
    Written(PathBuf),
    /// What differs between two screenshots.
    Changes {
        /// The earlier one.
        before: ImageHash,
        /// The later one.
        after: ImageHash,
        /// The differences, or why they are not known.
        changes: Result<Changes, String>,
    },
    /// A reply's tokens, or why they are not known.
    Tokens(ReplyId, Result<ReplyTokens, String>),
    /// A text to be shown: its title and its lines.
    Text(String, Vec<String>),
    /// A job failed; why, and what to do.
    Failed(String),
}

/// The thread's inbox.
#[derive(Debug)]
pub(super) struct Worker {
    jobs: SyncSender<Job>,
}

impl Worker {
    /// Starts the thread; it ends with this, or when `deliver` says that nobody listens.
    pub(super) fn spawn(
        pictures: Pictures,
        deliver: impl Fn(Worked) -> bool + Send + 'static,
    ) -> Result<Self, TuiError> {
        let (jobs, inbox) = sync_channel(WAITING);
        spawn("work", move || work(&inbox, &pictures, deliver))?;
        Ok(Self { jobs })
    }

    /// Asks for a job; says why it cannot be done now.
    pub(super) fn ask(&self, job: Job) -> Result<(), &'static str> {
        self.jobs.try_send(job).map_err(|error| match error {
            TrySendError::Full(_) => "too much is being read and written; try again",
            TrySendError::Disconnected(_) => "the console's file thread has ended",
        })
    }
}

fn work(inbox: &Receiver<Job>, pictures: &Pictures, deliver: impl Fn(Worked) -> bool) {
    for job in inbox {
        if !deliver(perform(job, pictures)) {
            return;
        }
    }
}

fn perform(job: Job, pictures: &Pictures) -> Worked {
    match job {
        Job::Compare(run) => compared(&run).map_or_else(Worked::Failed, Worked::Compared),
        Job::Write { path, text } => write_new(&path, &text),
        Job::Changes { before, after } => {
            let found = screenshot(pictures, &before)
                .and_then(|old| changes(&old, &screenshot(pictures, &after)?));
            Worked::Changes {
                before,
                after,
                changes: found,
            }
        }
        Job::Tokens(reply) => {
            let tokens = pictures.tokens_blocking(reply);
            Worked::Tokens(reply, tokens.map_err(|error| error.to_string()))
        }
        Job::Profile { run, other } => profile(&run, other.as_deref())
            .map_or_else(Worked::Failed, |(title, lines)| Worked::Text(title, lines)),
    }
}

fn screenshot(pictures: &Pictures, hash: &ImageHash) -> Result<Screenshot, String> {
    let png = pictures
        .png_blocking(hash)
        .map_err(|error| error.to_string())?;
    decode_png(&png).map_err(|error| error.to_string())
}

/// A file that is there already is never overwritten: it gets a number.
fn write_new(path: &Path, text: &str) -> Worked {
    use std::io::Write;
    for number in 0..100 {
        let name = if number == 0 {
            path.to_owned()
        } else {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            let ending = path.extension().unwrap_or_default().to_string_lossy();
            path.with_file_name(format!("{stem}-{number}.{ending}"))
        };
        match std::fs::File::create_new(&name) {
            Ok(mut file) => {
                return match file.write_all(text.as_bytes()) {
                    Ok(()) => Worked::Written(name),
                    Err(error) => {
                        Worked::Failed(format!("cannot write {}: {error}", name.display()))
                    }
                };
            }
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => {
                return Worked::Failed(format!("cannot write {}: {error}", name.display()));
            }
        }
    }
    Worked::Failed(format!(
        "{} and a hundred more are there already; name another file",
        path.display()
    ))
}

/// A run by its folder, or by its name in `runs`.
fn open(run: &Path) -> Result<RunDir, String> {
    let named = Path::new("runs").join(run);
    let folder = if run.exists() { run } else { &named };
    RunDir::open(folder).map_err(|error| {
        format!(
            "{error}; write the folder of a run, or its name in {}",
            named.parent().unwrap_or(Path::new("runs")).display()
        )
    })
}

fn compared(run: &Path) -> Result<Compared, String> {
    let run = open(run)?;
    let state = run.state().map_err(|error| error.to_string())?;
    if state.history.is_empty() && state.evaluations.is_empty() {
        return Err(format!(
            "{} has no finished iteration and no evaluation",
            run.name()
        ));
    }
    Ok(Compared {
        name: run.name(),
        history: state.history,
        evaluations: state.evaluations.into(),
    })
}

fn profile_of(run: &RunDir) -> Result<String, String> {
    let path = run.profile_path();
    std::fs::read_to_string(&path)
        .map_err(|error| format!("cannot read {}: {error}", path.display()))
}

fn profile(run: &Path, other: Option<&Path>) -> Result<(String, Vec<String>), String> {
    let run = open(run)?;
    let own = profile_of(&run)?;
    let Some(other) = other else {
        let lines = own.lines().map(str::to_owned).collect();
        return Ok((format!("Profile of {}", run.name()), lines));
    };
    let other = open(other)?;
    let lines = profile_differences(&own, &profile_of(&other)?)?;
    let title = format!("Profile: {} (-) and {} (+)", other.name(), run.name());
    Ok((title, lines))
}

/// Keys whose values differ: the other run's value, then this run's.
fn profile_differences(own: &str, other: &str) -> Result<Vec<String>, String> {
    let flat = |text: &str| -> Result<Vec<(String, String)>, String> {
        let table: toml::Table = text
            .parse()
            .map_err(|error: toml::de::Error| error.to_string())?;
        let mut flat = Vec::new();
        flatten("", &toml::Value::Table(table), &mut flat);
        Ok(flat)
    };
    let (own, other) = (flat(own)?, flat(other)?);
    let value = |all: &[(String, String)], key: &str| {
        let found = all.iter().find(|(known, _)| known == key);
        found.map(|(_, value)| value.clone())
    };
    let mut keys: Vec<&String> = own.iter().chain(&other).map(|(key, _)| key).collect();
    keys.sort();
    keys.dedup();
    let mut lines = Vec::new();
    for key in keys {
        let (mine, theirs) = (value(&own, key), value(&other, key));
        if mine == theirs {
            continue;
        }
        lines.push(key.clone());
        lines.push(format!("  - {}", theirs.as_deref().unwrap_or("not set")));
        lines.push(format!("  + {}", mine.as_deref().unwrap_or("not set")));
    }
    if lines.is_empty() {
        lines.push("Both profiles are the same.".to_owned());
    }
    Ok(lines)
}

fn flatten(prefix: &str, value: &toml::Value, flat: &mut Vec<(String, String)>) {
    match value {
        toml::Value::Table(table) => {
            for (key, value) in table {
                let dot = if prefix.is_empty() { "" } else { "." };
                flatten(&format!("{prefix}{dot}{key}"), value, flat);
            }
        }
        value => flat.push((prefix.to_owned(), value.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::{Worked, profile_differences, write_new};

    #[test]
    fn profiles_differ_by_key() {
        let own = "[grpo]\nclip_low = 0.2\nepochs = 1\n[replay]\nenabled = true\n";
        let other = "[grpo]\nclip_low = 0.3\nepochs = 1\n[eval]\nevery = 5\n";
        let lines = profile_differences(own, other).unwrap();
        let expected = [
            "eval.every",
            "  - 5",
            "  + not set",
            "grpo.clip_low",
            "  - 0.3",
            "  + 0.2",
            "replay.enabled",
            "  - not set",
            "  + true",
        ];
        assert_eq!(lines, expected);
        assert_eq!(
            profile_differences(own, own).unwrap(),
            ["Both profiles are the same."]
        );
        assert!(profile_differences(own, "[").is_err());
    }

    #[test]
    fn a_file_that_exists_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.csv");
        assert_eq!(write_new(&path, "a"), Worked::Written(path.clone()));
        let second = folder.path().join("run-1.csv");
        assert_eq!(write_new(&path, "b"), Worked::Written(second));
        assert_eq!(std::fs::read_to_string(path).unwrap(), "a");
        let missing = folder.path().join("no/run.csv");
        assert!(matches!(write_new(&missing, "c"), Worked::Failed(_)));
    }
}
