//! What machines tell of themselves, in the run: events, pictures and a log for each.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use crate::env::{MachineEars, MachineNews};
use crate::event::EventKind;
use crate::rollout::Recorder;
use crate::store::RunDir;

/// Most bytes of one desktop's log; a second file keeps as many of what was before.
const MAX_LOG: u64 = 1 << 20;

/// Writes into the run what its machines tell.
pub fn machine_ears(run: &RunDir, recorder: &Arc<Recorder>) -> MachineEars {
    let logs = Mutex::new(Logs {
        folder: run.logs_path(),
        open: HashMap::new(),
    });
    let recorder = Arc::clone(recorder);
    Arc::new(move |desktop, news| match news {
        MachineNews::Status(status) => {
            recorder.emit(EventKind::MachineChanged { desktop, status });
        }
        MachineNews::Health(health) => {
            recorder.emit(EventKind::MachineMeasured { desktop, health });
        }
        MachineNews::Picture(picture) => {
            recorder.screenshot(&picture);
            let image = picture.hash().clone();
            recorder.emit(EventKind::MachineSeen { desktop, image });
        }
        MachineNews::Said(line) => {
            let mut logs = logs.lock().unwrap_or_else(PoisonError::into_inner);
            if let Err(error) = logs.write(desktop, &line) {
                tracing::warn!(%error, desktop, "a machine's log cannot be written");
            }
        }
    })
}

/// One file a desktop.
struct Logs {
    folder: PathBuf,
    open: HashMap<u32, (File, u64)>,
}

impl Logs {
    fn write(&mut self, desktop: u32, line: &str) -> io::Result<()> {
        let path = self.folder.join(format!("desktop-{desktop}.log"));
        let (file, size) = match self.open.entry(desktop) {
            std::collections::hash_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::hash_map::Entry::Vacant(entry) => {
                let file = OpenOptions::new().create(true).append(true).open(&path)?;
                let size = file.metadata()?.len();
                entry.insert((file, size))
            }
        };
        // What a guest writes must not command the terminal that shows it.
        let plain: String = line.chars().filter(|c| !c.is_control()).collect();
        writeln!(file, "{plain}")?;
        *size += plain.len() as u64 + 1;
        if *size > MAX_LOG {
            std::fs::rename(&path, path.with_extension("log.1"))?;
            self.open.remove(&desktop);
        }
        Ok(())
    }
}
