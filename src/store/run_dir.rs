//! `RunDir`: the folder of one run, opened to write or to read.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::event::RunState;
use crate::store::atomic::{self, Durability};
use crate::store::lock::RunLock;
use crate::store::log::{iteration_state, num_resumes, read_state};
use crate::store::{LockHolder, LogReader, LogWriter, StoreError, lock_holder};
use crate::types::Iteration;

/// The folder of one run. Whoever may write holds its lock until this is dropped.
#[derive(Debug)]
pub struct RunDir {
    root: PathBuf,
    lock: Option<RunLock>,
}

impl RunDir {
    /// Makes the folder of a new run, takes its lock and writes the resolved profile.
    pub fn create(root: &Path, profile_toml: &str) -> Result<Self, StoreError> {
        fs::create_dir_all(root).map_err(StoreError::io("make folder", root))?;
        let lock = RunLock::take(root)?;
        if root.join("events").exists() {
            let path = root.to_owned();
            return Err(StoreError::Exists { path });
        }
        let run = Self {
            root: fs::canonicalize(root).map_err(StoreError::io("find", root))?,
            lock: Some(lock),
        };
        for folder in ["episodes", "blobs", "checkpoints", "logs"] {
            let path = run.root.join(folder);
            fs::create_dir_all(&path).map_err(StoreError::io("make folder", &path))?;
        }
        let profile = run.profile_path();
        atomic::write(&profile, profile_toml.as_bytes(), Durability::Machine)?;
        Ok(run)
    }

    /// Opens a run to go on with it; takes its lock.
    pub fn open_to_write(root: &Path) -> Result<Self, StoreError> {
        let mut run = Self::open(root)?;
        run.lock = Some(RunLock::take(&run.root)?);
        run.remove_leftovers()?;
        Ok(run)
    }

    /// Opens a run to look at it.
    pub fn open(root: &Path) -> Result<Self, StoreError> {
        let not_a_run = || StoreError::NotARun {
            path: root.to_owned(),
        };
        let root = match fs::canonicalize(root) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(not_a_run()),
            other => other.map_err(StoreError::io("open", root))?,
        };
        if !root.join("events").is_dir() {
            return Err(not_a_run());
        }
        Ok(Self { root, lock: None })
    }

    /// The folder, absolute.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The run's name: that of its folder.
    pub fn name(&self) -> String {
        let name = self.root.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// Whether this process may write to it.
    pub fn is_writable(&self) -> bool {
        self.lock.is_some()
    }

    /// The process that writes to the run, if one does.
    pub fn writer(&self) -> Option<LockHolder> {
        lock_holder(&self.root)
    }

    fn profile_path(&self) -> PathBuf {
        self.root.join("profile.toml")
    }

    /// The text of the resolved profile.
    pub fn profile(&self) -> Result<String, StoreError> {
        let path = self.profile_path();
        fs::read_to_string(&path).map_err(StoreError::io("read", &path))
    }

    /// Folder of the developer's log.
    pub fn logs_path(&self) -> PathBuf {
        self.root.join("logs")
    }

    pub(super) fn events_path(&self) -> PathBuf {
        self.root.join("events")
    }

    /// Starts the log of a new run.
    pub fn create_log(&self) -> Result<LogWriter, StoreError> {
        LogWriter::create(&self.events_path())
    }

    /// Opens the log to go on with it, cutting off a half-written end.
    pub fn open_log(&self) -> Result<LogWriter, StoreError> {
        LogWriter::open(&self.events_path())
    }

    /// Events that count, numbered from `from_seq` on, in order; what resumes discarded is left
    /// out. The log's end as it stands now is the end.
    pub fn read_events(&self, from_seq: u64) -> Result<LogReader, StoreError> {
        LogReader::open(&self.events_path(), from_seq)
    }

    /// What the run's events make of it.
    pub fn state(&self) -> Result<RunState, StoreError> {
        self.state_before(u64::MAX)
    }

    /// What the events below `end_seq` make of it.
    pub fn state_before(&self, end_seq: u64) -> Result<RunState, StoreError> {
        read_state(&self.events_path(), end_seq)
    }

    /// What one iteration's events make of the run: its groups, episodes and steps, however long
    /// ago. `None` if the log has no such iteration.
    pub fn iteration_state(&self, iteration: Iteration) -> Result<Option<RunState>, StoreError> {
        iteration_state(&self.events_path(), iteration)
    }

    /// Number of the next start of the engine: the starts so far, discarded ones included, so
    /// that no two starts ever share one.
    pub fn next_incarnation(&self) -> Result<u32, StoreError> {
        Ok(1 + num_resumes(&self.events_path())?)
    }

    /// Room left on the run's file system, bytes.
    pub fn free_bytes(&self) -> Result<u64, StoreError> {
        let stat = rustix::fs::statvfs(&self.root)
            .map_err(|error| StoreError::io("measure", &self.root)(error.into()))?;
        Ok(stat.f_bavail * stat.f_frsize)
    }

    /// Fails unless `needed` bytes are free.
    pub fn require_space(&self, needed: u64) -> Result<(), StoreError> {
        let free = self.free_bytes()?;
        if free >= needed {
            return Ok(());
        }
        Err(StoreError::NoSpace {
            path: self.root.clone(),
            free_mb: free / 1_000_000,
            needed_mb: needed.div_ceil(1_000_000),
        })
    }

    /// Removes what dead processes left half written.
    fn remove_leftovers(&self) -> Result<(), StoreError> {
        for folder in [
            self.root.clone(),
            self.events_path(),
            self.root.join("checkpoints"),
        ] {
            let Ok(entries) = fs::read_dir(&folder) else {
                continue;
            };
            for entry in entries {
                let entry = entry.map_err(StoreError::io("list", &folder))?;
                if !atomic::is_temporary(&entry.file_name().to_string_lossy()) {
                    continue;
                }
                let path = entry.path();
                let removed = if path.is_dir() {
                    fs::remove_dir_all(&path)
                } else {
                    fs::remove_file(&path)
                };
                removed.map_err(StoreError::io("remove", &path))?;
            }
        }
        Ok(())
    }
}

/// Name of a new run: date of `unix_ms` in UTC, profile, and four digits that tell runs of the
/// same day apart.
pub fn run_name(profile: &str, unix_ms: u64) -> String {
    let (year, month, day) = civil_date(unix_ms / 86_400_000);
    let salt = crate::types::derive_seed(unix_ms, &[u64::from(std::process::id())]);
    let profile: String = profile
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .take(32)
        .collect();
    format!(
        "{year:04}-{month:02}-{day:02}-{profile}-{:04x}",
        salt & 0xffff
    )
}

/// Year, month and day of a count of days since 1970-01-01, proleptic Gregorian.
///
/// Source: Howard Hinnant, "chrono-compatible low-level date algorithms", `civil_from_days`, for
/// days after 1970: eras of 400 years from 0000-03-01.
fn civil_date(days: u64) -> (u64, u64, u64) {
    let z = days + 719_468;
    let era = z / 146_097;
    let day_of_era = z % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day)
}
