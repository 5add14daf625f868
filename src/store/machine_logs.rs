//! Reading what machines log: the newest part of a desktop's file, or what came after a place in
//! it. Who writes is the session.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::store::{RunDir, StoreError};
use crate::types::{LogPlace, MachineLog};

/// Most bytes of a log in one answer.
const BYTES_MAX: u64 = 64 << 10;
/// Most characters of a line; the rest is left out.
const LINE_MAX: usize = 2000;

impl RunDir {
    /// The file that a desktop's machine logs into; what was before it is in its `log.1`.
    fn machine_log_path(&self, desktop: u32) -> PathBuf {
        self.logs_path().join(format!("desktop-{desktop}.log"))
    }

    /// What a desktop's machine logged after a place, or its newest part: 64 KiB at most. Without
    /// a log there are no lines.
    pub fn machine_log(
        &self,
        desktop: u32,
        after: Option<LogPlace>,
    ) -> Result<MachineLog, StoreError> {
        let path = self.machine_log_path(desktop);
        read(&path, after).map_err(StoreError::io("read", &path))
    }
}

fn read(path: &Path, after: Option<LogPlace>) -> io::Result<MachineLog> {
    let Some(mut file) = open(path)? else {
        return Ok(MachineLog {
            // It was just renamed, if there was one: nothing new yet.
            goes_on: after.is_some(),
            end: after,
            ..MachineLog::default()
        });
    };
    let metadata = file.metadata()?;
    let (number, length) = (metadata.ino(), metadata.len());
    let goes_on = |place: &LogPlace| {
        let missed = length.checked_sub(place.bytes);
        place.file == number && missed.is_some_and(|missed| missed <= BYTES_MAX)
    };
    let after = after.filter(goes_on);
    let from = after.map_or(length.saturating_sub(BYTES_MAX), |place| place.bytes);
    let bytes = read_from(&mut file, from)?;
    // A line without its end is still being written.
    let whole = bytes.iter().rposition(|byte| *byte == b'\n');
    let whole = whole.map_or(0, |last| last + 1);
    let mut lines = Vec::new();
    if after.is_none() && from == 0 {
        let room = BYTES_MAX.saturating_sub(length);
        if let Some(mut before) = open(&path.with_extension("log.1"))? {
            let from = before.metadata()?.len().saturating_sub(room);
            let older = read_from(&mut before, from)?;
            push_lines(&mut lines, &older, from > 0);
        }
    }
    push_lines(&mut lines, &bytes[..whole], after.is_none() && from > 0);
    let bytes = from + whole as u64;
    Ok(MachineLog {
        lines,
        end: Some(LogPlace {
            file: number,
            bytes,
        }),
        goes_on: after.is_some(),
    })
}

fn open(path: &Path) -> io::Result<Option<File>> {
    match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        opened => opened.map(Some),
    }
}

fn read_from(file: &mut File, from: u64) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Adds lines; the first of them may be the end of one that began before.
fn push_lines(lines: &mut Vec<String>, bytes: &[u8], begins_within: bool) {
    let text = String::from_utf8_lossy(bytes);
    for (number, line) in text.lines().enumerate() {
        let mut plain = String::new();
        if begins_within && number == 0 {
            plain.push('…');
        }
        let shown = line.chars().map(|c| if c == '\t' { ' ' } else { c });
        let mut shown = shown.filter(|c| !c.is_control());
        plain.extend(shown.by_ref().take(LINE_MAX));
        if shown.next().is_some() {
            plain.push('…');
        }
        lines.push(plain);
    }
}
