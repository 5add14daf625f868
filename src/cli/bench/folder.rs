//! A folder for what a measurement writes: runs and sockets, gone when it is over.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

/// A folder that goes with the measurement.
pub(super) struct Folder(PathBuf);

impl Folder {
    /// An empty one below the folder for temporary files, closed to others.
    pub(super) fn new() -> anyhow::Result<Self> {
        let path = std::env::temp_dir().join(format!("arpo-bench-{}", std::process::id()));
        fs::create_dir(&path).with_context(|| format!("cannot make {}", path.display()))?;
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
        Ok(Self(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed is in a folder for temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}
