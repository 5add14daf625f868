//! Files that are either whole or absent: written under a temporary name, then renamed.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::store::StoreError;

/// Whether a finished write must survive a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Durability {
    /// Survives the death of the process, not of the machine: pictures, episodes.
    Process,
    /// Synced to the disk: manifests.
    Machine,
}

/// Writes `bytes` to `path`, whole or not at all. Missing folders are made.
pub(crate) fn write(path: &Path, bytes: &[u8], durability: Durability) -> Result<(), StoreError> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(StoreError::io("make folder", parent))?;
    }
    let temporary = temporary_beside(path);
    let written = write_temporary(&temporary, bytes, durability)
        .and_then(|()| fs::rename(&temporary, path).map_err(StoreError::io("write", path)));
    if written.is_err() {
        // Best effort: what matters is the first error, and the name is never read.
        let _ = fs::remove_file(&temporary);
    }
    written?;
    match durability {
        Durability::Process => Ok(()),
        Durability::Machine => sync_folder_of(path),
    }
}

fn write_temporary(path: &Path, bytes: &[u8], durability: Durability) -> Result<(), StoreError> {
    let mut file = File::create(path).map_err(StoreError::io("create", path))?;
    file.write_all(bytes)
        .map_err(StoreError::io("write", path))?;
    if durability == Durability::Machine {
        file.sync_all().map_err(StoreError::io("sync", path))?;
    }
    Ok(())
}

/// Syncs the folder that holds `path`, so that its name survives a power cut.
pub(super) fn sync_folder_of(path: &Path) -> Result<(), StoreError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    File::open(folder)
        .and_then(|file| file.sync_all())
        .map_err(StoreError::io("sync folder", folder))
}

/// A name beside `path` that no other write of this machine uses: hidden, with the process id,
/// so that leftovers of dead processes can be told and removed.
pub(super) fn temporary_beside(path: &Path) -> PathBuf {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}-{count}.tmp", std::process::id()))
}

/// Whether a file name is that of an unfinished write.
pub(super) fn is_temporary(name: &str) -> bool {
    let extension = Path::new(name).extension();
    name.starts_with('.') && extension.is_some_and(|extension| extension == "tmp")
}
