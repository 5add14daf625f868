//! Where sockets lie: `/tmp/arpo-UID/RUN.sock`, or `$ARPO_RUNTIME_DIR/RUN.sock`.
//!
//! Not `$XDG_RUNTIME_DIR`: it is removed when the user's last login ends, and a run goes on.
//! `/tmp` is open to all, so the folder is only used if it is ours and closed to others.

use std::fs::{self, DirBuilder, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::bus::BusError;

/// Longest path of a Unix socket (`sun_path` less its closing zero, unix(7)).
const SOCKET_PATH_BYTES_MAX: usize = 107;

/// The folder of this user's sockets; it need not exist.
pub fn socket_dir() -> PathBuf {
    match std::env::var_os("ARPO_RUNTIME_DIR") {
        Some(dir) if !dir.is_empty() => PathBuf::from(dir),
        _ => PathBuf::from(format!("/tmp/arpo-{}", our_uid())),
    }
}

/// The socket of a run.
pub fn socket_path(dir: &Path, run: &str) -> Result<PathBuf, BusError> {
    let path = dir.join(format!("{run}.sock"));
    if path.as_os_str().len() > SOCKET_PATH_BYTES_MAX {
        let reason = format!(
            "{} is longer than {SOCKET_PATH_BYTES_MAX} bytes: choose a shorter name with --run, or \
             a shorter ARPO_RUNTIME_DIR",
            path.display()
        );
        return Err(unsafe_folder(dir, reason));
    }
    Ok(path)
}

/// Makes the folder of sockets if need be, and makes sure that it is ours alone.
pub fn check_socket_dir(dir: &Path) -> Result<(), BusError> {
    match DirBuilder::new().mode(0o700).create(dir) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(BusError::io("make folder", dir)(error));
        }
        _ => {}
    }
    // Not followed: a link may point anywhere.
    let metadata = fs::symlink_metadata(dir).map_err(BusError::io("look at", dir))?;
    check_private(dir, &metadata)
}

fn check_private(dir: &Path, metadata: &Metadata) -> Result<(), BusError> {
    if !metadata.is_dir() {
        return Err(unsafe_folder(dir, "it is no folder: remove it".to_owned()));
    }
    if metadata.uid() != our_uid() {
        let reason = format!(
            "it belongs to user {}: set ARPO_RUNTIME_DIR to a folder of your own",
            metadata.uid()
        );
        return Err(unsafe_folder(dir, reason));
    }
    if metadata.mode() & 0o077 != 0 {
        let reason = format!(
            "others may enter it (mode {:03o}): `chmod 700 {}`",
            metadata.mode() & 0o777,
            dir.display()
        );
        return Err(unsafe_folder(dir, reason));
    }
    Ok(())
}

fn unsafe_folder(dir: &Path, reason: String) -> BusError {
    BusError::UnsafeFolder {
        path: dir.to_owned(),
        reason,
    }
}

/// The user this process acts as.
pub(super) fn our_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}
