//! The `LOCK` file: one writer a run.
//!
//! The kernel's advisory lock on the file decides, so a dead process never blocks anyone; its
//! content says who holds it, for messages and for file systems without such locks. There the
//! content decides: a process is told from a later one of the same number by its start time and
//! the machine's boot. The file is emptied, never deleted, since another process may already
//! wait on it.

use std::fs::{self, File};
use std::io::{Read, Seek, Write};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::store::StoreError;

/// Who writes to a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockHolder {
    /// The process.
    pub pid: u32,
    /// When it started, in the kernel's ticks since boot; 0 where the system does not say.
    pub started_ticks: u64,
    /// The machine's boot, as the kernel names it; empty where it does not.
    pub boot: String,
    /// The machine.
    pub host: String,
}

impl LockHolder {
    /// This process.
    pub fn this_process() -> Self {
        let pid = std::process::id();
        Self {
            pid,
            started_ticks: started_ticks(pid).unwrap_or(0),
            boot: boot_id(),
            host: host_name(),
        }
    }

    /// Whether that very process still runs. One on another machine is believed to.
    pub fn is_alive(&self) -> bool {
        if self.host != host_name() {
            return true;
        }
        self.boot == boot_id() && started_ticks(self.pid) == Some(self.started_ticks)
    }

    /// Whether it runs on this machine, so that it can be signalled.
    pub fn is_here(&self) -> bool {
        self.host == host_name()
    }
}

/// A held lock; given back when dropped.
#[derive(Debug)]
pub(super) struct RunLock {
    file: File,
}

impl RunLock {
    /// Takes the lock of the run in `root`, over a dead holder's if need be.
    pub(super) fn take(root: &Path) -> Result<Self, StoreError> {
        let path = root.join("LOCK");
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(&path).map_err(StoreError::io("open", &path))?;
        let kernel_lock = flock(&file, FlockOperation::NonBlockingLockExclusive);
        let holder = read_holder(&mut file);
        match kernel_lock {
            // Held by a process that has not written its name yet, or whose name is unreadable.
            Err(Errno::WOULDBLOCK) => {
                let (pid, host) = holder.map_or((0, host_name()), |h| (h.pid, h.host));
                let path = root.to_owned();
                return Err(StoreError::Locked { path, pid, host });
            }
            // Some network file systems have no such lock: then the content alone decides.
            Err(Errno::NOLCK | Errno::NOTSUP | Errno::NOSYS) | Ok(()) => {}
            Err(error) => return Err(StoreError::io("lock", &path)(error.into())),
        }
        if let Some(holder) = holder.filter(LockHolder::is_alive) {
            return Err(StoreError::Locked {
                path: root.to_owned(),
                pid: holder.pid,
                host: holder.host,
            });
        }
        let text = serde_json::to_string(&LockHolder::this_process())
            .expect("numbers and strings are always JSON");
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| writeln!(file, "{text}"))
            .map_err(StoreError::io("write", &path))?;
        Ok(Self { file })
    }
}

impl Drop for RunLock {
    fn drop(&mut self) {
        // If this fails, the holder's death says the same.
        let _ = self.file.set_len(0);
    }
}

/// Who holds the lock of the run in `root`, if that process lives.
pub fn lock_holder(root: &Path) -> Option<LockHolder> {
    let mut file = File::open(root.join("LOCK")).ok()?;
    read_holder(&mut file).filter(LockHolder::is_alive)
}

fn read_holder(file: &mut File) -> Option<LockHolder> {
    let mut text = String::new();
    file.rewind().ok()?;
    file.read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

/// When a process started, in the kernel's ticks since boot; none where it has ended, if only as a
/// zombie. Field 22 of `/proc/PID/stat` (proc(5)), counted after the name, which may hold spaces.
pub fn started_ticks(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_whitespace();
    // A zombie has no more files open.
    let state = fields.next()?;
    let ticks = fields.nth(18)?.parse().ok()?;
    (state != "Z").then_some(ticks)
}

fn boot_id() -> String {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    text.trim().to_owned()
}

fn host_name() -> String {
    let name = rustix::system::uname();
    name.nodename().to_string_lossy().into_owned()
}
