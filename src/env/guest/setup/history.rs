//! The step that writes pages into Chrome's history.
//!
//! Departs: times are those of the world, where OSWorld takes the host's local time for it; the
//! file is not given to its owner by `sudo`, since the server that writes it is the owner's.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, params};
use tempfile::NamedTempFile;

use super::{Stage, StepError};
use crate::types::osworld::setup::{HISTORY_FILE, Visit};

/// Where Chrome keeps it.
const PLACE: &str = "~/.config/google-chrome/Default/History";

/// From 1601, where Chrome's time begins, to 1970.
const CHROME_EPOCH: Duration = Duration::from_secs(11_644_473_600);

/// How a page was come to: by a link, first and last of a chain (`ui::PageTransition`).
const TRANSITION: i64 = 0x3000_0000;

impl Stage<'_> {
    pub(super) async fn update_history(&self, visits: &[Visit]) -> Result<(), StepError> {
        let Some(empty) = self.files.path(HISTORY_FILE) else {
            return Err(StepError::Failed(format!(
                "{HISTORY_FILE} has left the file cache"
            )));
        };
        let (visits, now) = (visits.to_vec(), SystemTime::now());
        let written = tokio::task::spawn_blocking(move || write(&empty, &visits, now));
        let written = written.await.expect("writing a file does not panic");
        let file = written.map_err(|error| {
            StepError::Failed(format!("Chrome's history cannot be written: {error}"))
        })?;
        Ok(self.guest().upload(file.path(), PLACE).await?)
    }
}

/// A copy of an empty history with pages in it.
fn write(
    empty: &Path,
    visits: &[Visit],
    now: SystemTime,
) -> Result<NamedTempFile, Box<dyn std::error::Error + Send + Sync>> {
    let file = NamedTempFile::new()?;
    std::fs::copy(empty, file.path())?;
    let mut history = Connection::open(file.path())?;
    let since_1970 = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = (since_1970 + CHROME_EPOCH).as_micros() as i64;
    let all = history.transaction()?;
    for visit in visits {
        let time = now - (visit.visit_time_from_now_in_seconds * 1e6) as i64;
        all.execute(
            "INSERT INTO urls (url, title, visit_count, typed_count, last_visit_time, hidden) \
             VALUES (?, ?, 1, 0, ?, 0)",
            params![visit.url, visit.title, time],
        )?;
        all.execute(
            "INSERT INTO visits (url, visit_time, from_visit, transition, segment_id, \
             visit_duration) VALUES (?, ?, 0, ?, 0, 0)",
            params![all.last_insert_rowid(), time, TRANSITION],
        )?;
    }
    all.commit()?;
    Ok(file)
}
