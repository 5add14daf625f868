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
use crate::tui::app::App;
use crate::tui::changes::{Changes, changes};
use crate::tui::profile::differences;
use crate::tui::run::{TuiError, spawn};
use crate::tui::train::Compared;
use crate::types::{ImageHash, LogPlace, MachineLog, Screenshot};

/// Jobs that wait at most; an operator asks slower.
const WAITING: usize = 16;

/// Something to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Job {
    /// Read another run's iterations.
    Compare(OtherRun),
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
    /// Read what a desktop's machine logged after a place, or its newest part.
    MachineLog {
        /// Which desktop.
        desktop: u32,
        /// What was read before.
        after: Option<LogPlace>,
    },
    /// Find what differs between a run's profile and another run's.
    ProfileDiff {
        /// The run's name.
        name: String,
        /// Its profile, TOML.
        profile: String,
        /// The other one.
        other: OtherRun,
    },
}

/// A run that an operator names beside the one shown: by its folder, by its name beside the run
/// shown, or by its name in `runs`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherRun {
    /// As it was typed.
    pub typed: PathBuf,
    /// Where the run shown lies.
    pub beside: PathBuf,
}

impl OtherRun {
    /// As it was typed on this console.
    pub fn named(app: &App, typed: &str) -> Self {
        let beside = app.ui.root.parent().unwrap_or(Path::new(""));
        Self {
            typed: typed.into(),
            beside: beside.to_owned(),
        }
    }

    fn open(&self) -> Result<RunDir, String> {
        let places = [PathBuf::new(), self.beside.clone(), PathBuf::from("runs")];
        let mut folders = places.iter().map(|place| place.join(&self.typed));
        let folder = folders.find(|folder| folder.exists());
        let folder = folder.unwrap_or_else(|| self.typed.clone());
        RunDir::open(&folder).map_err(|error| {
            format!("{error}; write the folder of a run, or its name beside this one or in runs")
        })
    }
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
    /// What the log of a desktop's machine has after a place, or why it cannot be read.
    MachineLog(u32, Option<LogPlace>, Result<MachineLog, String>),
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
        Job::MachineLog { desktop, after } => {
            let piece = pictures.machine_log_blocking(desktop, after);
            Worked::MachineLog(desktop, after, piece.map_err(|error| error.to_string()))
        }
        Job::ProfileDiff {
            name,
            profile,
            other,
        } => profile_diff(&name, &profile, &other)
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

fn compared(run: &OtherRun) -> Result<Compared, String> {
    let run = run.open()?;
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

fn profile_diff(name: &str, own: &str, other: &OtherRun) -> Result<(String, Vec<String>), String> {
    let other = other.open()?;
    let theirs = other.profile().map_err(|error| error.to_string())?;
    let lines = differences(own, &theirs)?;
    Ok((
        format!("Profile: {} (-) and {name} (+)", other.name()),
        lines,
    ))
}

#[cfg(test)]
mod tests {
    use super::{Worked, write_new};

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
