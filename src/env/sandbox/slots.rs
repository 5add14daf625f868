//! Slots: a folder for each desktop of this user on this machine, which says whose it is and what
//! has to go when its owner is dead.
//!
//! ```text
//! /tmp/arpo-UID-desktops/          others may pass through, since slots of root have users of
//!                                  their own, but neither list nor write
//!   lock                           held while slots are taken and swept
//!   slots/3/lock                   held for as long as the owner lives
//!   slots/3/owner.json             the owner and the programs it started
//!   slots/3/disk-2/                what a sandbox of it keeps on disk, its user's
//!   templates/KEY/                 what desktops start from (`template`)
//!   programs/KEY/arpo              where the running one cannot be read by a slot's user
//! ```
//!
//! What a sandbox's first processes have in their environment, `MARK`, names their slot and owner:
//! bubblewrap that is killed in its first moments leaves a child that nobody wrote down.
//!
//! Invariants: the kernel drops a dead owner's lock, so that no slot outlives its owner by more than
//! the time to the next sweep; a sweep touches no folder whose lock is held, and no process whose
//! number and start time are not both those written down, unless it bears the slot's mark.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, FlockOperation, Mode, OFlags, flock, openat};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};

use crate::store::{Durability, LockHolder, started_ticks, write_whole};

/// What slots of root run as: one user each, from here on. systemd keeps this part free for
/// nobody in particular (its UIDS-GIDS.md, «unused»).
const FIRST_SLOT_UID: u32 = 2_000_000_000;

/// For us alone: whoever can open a lock can hold it.
const LOCK_MODE: u32 = 0o600;

/// How long a killed process may take to be gone.
const KILL_PATIENCE: Timespec = Timespec {
    tv_sec: 2,
    tv_nsec: 0,
};

/// How often a mark is looked for before what still bears it is left to the next sweep.
const MAX_ROUNDS: u32 = 20;

/// Rounds in a row that have to find nothing, and the time between them: a process that turns from
/// one program into the next has no environment for a moment.
const QUIET_ROUNDS: u32 = 3;
const BETWEEN_ROUNDS: Duration = Duration::from_millis(5);

/// How deep a folder is looked into for parts that are closed to us.
const MAX_DEPTH: u32 = 64;

/// A process, told from a later one of the same number by its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Started {
    /// Its number.
    pub pid: u32,
    /// When it started, in the kernel's ticks since boot.
    pub started_ticks: u64,
}

impl Started {
    /// That process, if it lives.
    pub fn of(pid: u32) -> Option<Self> {
        started_ticks(pid).map(|started_ticks| Self { pid, started_ticks })
    }

    /// Kills it, unless the number is another's by now, and waits for its end. The handle is taken
    /// before the start is looked at, so that both mean the same process.
    fn kill(self) {
        let Some(pid) = Pid::from_raw(self.pid as i32) else {
            return;
        };
        let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else {
            return;
        };
        if started_ticks(self.pid) != Some(self.started_ticks) {
            return;
        }
        // Fails where it has just ended, which is as good.
        let _ = pidfd_send_signal(&handle, Signal::KILL);
        let mut ended = [PollFd::new(&handle, PollFlags::IN)];
        let _ = poll(&mut ended, Some(&KILL_PATIENCE));
    }
}

/// The variable that a sandbox's first processes bear. Those of the agent are not among them.
pub const MARK: &str = "ARPO_DESKTOP";

/// Kills every process whose mark begins so, and what they start while that goes on.
pub fn kill_marked(mark: &str) {
    let wanted = format!("{MARK}={mark}");
    let bears = |process: &Started| {
        let environment = fs::read(format!("/proc/{}/environ", process.pid)).unwrap_or_default();
        let mut variables = environment.split(|byte| *byte == 0);
        variables.any(|variable| variable.starts_with(wanted.as_bytes()))
    };
    let mut quiet = 0;
    // A process that does not die, since the kernel holds it, must not hold us.
    for _ in 0..MAX_ROUNDS {
        let names = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = names.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        // The start is looked at first, so that a number that changes hands in between is let go.
        let mut marked = pids.filter_map(Started::of).filter(bears).peekable();
        if marked.peek().is_some() {
            quiet = 0;
            marked.for_each(Started::kill);
            continue;
        }
        quiet += 1;
        if quiet == QUIET_ROUNDS {
            return;
        }
        std::thread::sleep(BETWEEN_ROUNDS);
    }
}

/// `owner.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Owner {
    engine: LockHolder,
    children: Vec<Started>,
    mark: String,
}

/// A folder of slots.
#[derive(Clone, Debug)]
pub struct State {
    root: PathBuf,
}

impl State {
    /// Opens the folder, which is made if need be, and removes what dead owners left.
    pub fn open(root: &Path) -> io::Result<Self> {
        make_folder(root, 0o711)?;
        let state = Self {
            root: root.to_owned(),
        };
        for name in ["slots", "templates", "programs"] {
            make_folder(&state.root.join(name), 0o711)?;
        }
        state.sweep()?;
        Ok(state)
    }

    /// The folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Takes the first free slot.
    pub fn take(&self) -> io::Result<Slot> {
        let _turn = self.turn()?;
        let folder = |number: &u32| self.root.join("slots").join(number.to_string());
        let number = (0..u32::MAX).find(|number| !folder(number).exists());
        let number = number.expect("a folder holds fewer names than there are numbers");
        let folder = folder(&number);
        DirBuilder::new().mode(0o711).create(&folder)?;
        // Whatever our umask: the slot's user passes through.
        fs::set_permissions(&folder, Permissions::from_mode(0o711))?;
        let lock = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(LOCK_MODE)
            .open(folder.join("lock"))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        let slot = Slot {
            number,
            folder,
            children: Vec::new(),
            launches: 0,
            folders: 0,
            _lock: lock,
        };
        slot.write()?;
        Ok(slot)
    }

    /// Removes what dead owners left: their processes, then their folders. Those of the living
    /// stay, and what cannot be removed.
    pub fn sweep(&self) -> io::Result<()> {
        let _turn = self.turn()?;
        for entry in fs::read_dir(self.root.join("slots"))? {
            let folder = entry?.path();
            if let Err(error) = sweep_slot(&folder)
                // Its owner was quicker.
                && error.kind() != io::ErrorKind::NotFound
            {
                tracing::warn!(slot = %folder.display(), %error, "not swept");
            }
        }
        Ok(())
    }

    /// Numbers of the slots that are taken.
    pub fn taken(&self) -> io::Result<Vec<u32>> {
        let entries = fs::read_dir(self.root.join("slots"))?;
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        Ok(names.filter_map(|name| name.parse().ok()).collect())
    }

    /// Waits for the lock of the whole folder.
    pub fn turn(&self) -> io::Result<File> {
        let path = self.root.join("lock");
        let mut options = OpenOptions::new();
        let lock = options
            .write(true)
            .create(true)
            .truncate(false)
            .mode(LOCK_MODE)
            .open(path)?;
        // An earlier version let everybody open it.
        lock.set_permissions(Permissions::from_mode(LOCK_MODE))?;
        flock(&lock, FlockOperation::LockExclusive)?;
        Ok(lock)
    }
}

/// Removes a slot whose owner is dead.
fn sweep_slot(folder: &Path) -> io::Result<()> {
    let lock = match File::open(folder.join("lock")) {
        Ok(lock) => lock,
        // Its owner died between the folder and the lock.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return remove(folder),
        Err(error) => return Err(error),
    };
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Err(rustix::io::Errno::WOULDBLOCK) => return Ok(()),
        outcome => outcome?,
    }
    let text = fs::read_to_string(folder.join("owner.json")).unwrap_or_default();
    if let Ok(owner) = serde_json::from_str::<Owner>(&text)
        // Numbers of an earlier boot are other processes'.
        && owner.engine.boot == LockHolder::this_process().boot
    {
        owner.children.iter().for_each(|child| child.kill());
        kill_marked(&owner.mark);
        tracing::info!(slot = %folder.display(), "swept what process {} left", owner.engine.pid);
    }
    remove(folder)
}

/// Removes a folder, also where a program closed parts of it to us.
fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            open_up(&handle_of(CWD, folder)?, MAX_DEPTH);
            fs::remove_dir_all(folder)
        }
        outcome => outcome,
    }
}

/// Gives us all rights to a folder and to those in it, as far as they are ours.
fn open_up(folder: &OwnedFd, depth: u32) {
    // By handles alone: a name may have become a link to somewhere else.
    let path = format!("/proc/self/fd/{}", folder.as_raw_fd());
    // Fails where it is not ours, which who removes it is told then.
    let _ = fs::set_permissions(&path, Permissions::from_mode(0o700));
    if depth == 0 {
        return;
    }
    for entry in fs::read_dir(&path).into_iter().flatten().flatten() {
        if let Ok(inner) = handle_of(folder, Path::new(&entry.file_name())) {
            open_up(&inner, depth - 1);
        }
    }
}

/// A folder's handle; a link is none.
fn handle_of(at: impl AsFd, name: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(at, name, flags, Mode::empty())?)
}

/// A slot that this process owns; given back, folder and all, when dropped.
#[derive(Debug)]
pub struct Slot {
    number: u32,
    folder: PathBuf,
    children: Vec<Started>,
    /// Sandboxes so far.
    launches: u32,
    /// Folders so far.
    folders: u32,
    _lock: File,
}

impl Slot {
    /// Its number, which no other slot of this user has.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The user and group its programs run as; none where they run as we do.
    pub fn uid(&self) -> Option<u32> {
        first_uid().map(|first| first + self.number)
    }

    /// The mark of the next sandbox.
    pub fn next_mark(&mut self) -> String {
        self.launches += 1;
        format!("{}{};", self.mark(), self.launches)
    }

    /// What the marks of its sandboxes begin with.
    fn mark(&self) -> String {
        let us = LockHolder::this_process();
        format!("{}.{}.{}.", us.pid, us.started_ticks, self.number)
    }

    /// A new folder that only its programs write to.
    pub fn new_folder(&mut self) -> io::Result<SlotFolder> {
        self.folders += 1;
        let path = self.folder.join(format!("disk-{}", self.folders));
        DirBuilder::new().mode(0o700).create(&path)?;
        chown(&path, self.uid(), self.uid())?;
        Ok(SlotFolder(path))
    }

    /// Writes down a program, so that a sweep ends it if we die.
    pub fn add(&mut self, child: Started) -> io::Result<()> {
        self.children.push(child);
        self.write()
    }

    /// Strikes out programs that have ended.
    pub fn forget_ended(&mut self) -> io::Result<()> {
        let is_alive = |child: &Started| Started::of(child.pid) == Some(*child);
        self.children.retain(is_alive);
        self.write()
    }

    fn write(&self) -> io::Result<()> {
        let owner = Owner {
            engine: LockHolder::this_process(),
            children: self.children.clone(),
            mark: self.mark(),
        };
        let text = serde_json::to_vec(&owner).expect("numbers and strings are always JSON");
        let path = self.folder.join("owner.json");
        write_whole(&path, &text, Durability::Process).map_err(io::Error::other)
    }
}

/// A folder of a slot's programs; removed when dropped.
#[derive(Debug)]
pub struct SlotFolder(PathBuf);

impl SlotFolder {
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for SlotFolder {
    fn drop(&mut self) {
        // What is left of it then goes with its slot.
        let _ = remove(&self.0);
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        // What is left of it then, the next sweep removes.
        let _ = remove(&self.folder);
    }
}

/// The user of slot 0; none where slots' programs run as we do.
pub fn first_uid() -> Option<u32> {
    (our_uid() == 0).then_some(FIRST_SLOT_UID)
}

fn our_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Makes a folder if need be, and makes sure that it is ours and that nobody else writes to it.
fn make_folder(path: &Path, mode: u32) -> io::Result<()> {
    match DirBuilder::new().mode(mode).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    // Not followed: a link may point anywhere.
    let metadata = fs::symlink_metadata(path)?;
    let is_ours = metadata.is_dir() && metadata.uid() == our_uid() && metadata.mode() & 0o022 == 0;
    if is_ours && metadata.mode() & 0o777 == mode {
        return Ok(());
    }
    if is_ours {
        return fs::set_permissions(path, Permissions::from_mode(mode));
    }
    Err(io::Error::other(format!(
        "{} is no folder of this user alone: remove it, or set ARPO_RUNTIME_DIR to a folder of \
         your own",
        path.display()
    )))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn mode_of(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn a_slots_user_passes_through_its_folder_and_nobody_else_lists_it() {
        let root = tempfile::tempdir().unwrap();
        let state = State::open(root.path()).unwrap();
        let mut slot = state.take().unwrap();
        assert_eq!(mode_of(&slot.folder), 0o711);
        let folder = slot.new_folder().unwrap();
        assert_eq!(mode_of(folder.path()), 0o700);
    }

    #[test]
    fn locks_are_for_us_alone_also_where_an_earlier_version_made_them() {
        let root = tempfile::tempdir().unwrap();
        let state = State::open(root.path()).unwrap();
        let lock = root.path().join("lock");
        for left in [0o600, 0o644, 0o666] {
            fs::set_permissions(&lock, Permissions::from_mode(left)).unwrap();
            let slot = state.take().unwrap();
            assert_eq!(mode_of(&lock), 0o600);
            assert_eq!(mode_of(&slot.folder.join("lock")), 0o600);
        }
    }

    #[test]
    fn what_cannot_be_swept_keeps_no_engine_from_starting() {
        let root = tempfile::tempdir().unwrap();
        let state = State::open(root.path()).unwrap();
        let slot = |number: &str| root.path().join("slots").join(number);
        // No folder, so that even root finds no lock in it.
        fs::write(slot("0"), "").unwrap();
        fs::create_dir(slot("1")).unwrap();
        fs::write(slot("1").join("lock"), "").unwrap();
        fs::create_dir(slot("2")).unwrap();
        let ours = state.take().unwrap();
        State::open(root.path()).unwrap();
        let mut left = state.taken().unwrap();
        left.sort_unstable();
        assert_eq!(left, [0, ours.number()]);
    }

    #[test]
    fn closed_folders_are_opened_up_and_no_link_is_followed() {
        let root = tempfile::tempdir().unwrap();
        let (slot, other) = (root.path().join("slot"), root.path().join("other"));
        let closed = slot.join("a").join("b");
        fs::create_dir_all(&closed).unwrap();
        fs::write(closed.join("file"), "").unwrap();
        fs::create_dir(&other).unwrap();
        symlink(&other, closed.join("link")).unwrap();
        let change = |path: &Path, mode: u32| {
            fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        };
        change(&other, 0o500);
        change(&closed, 0);
        change(&slot.join("a"), 0);
        open_up(&handle_of(CWD, &slot).unwrap(), MAX_DEPTH);
        assert_eq!(mode_of(&slot.join("a")), 0o700);
        assert_eq!(mode_of(&closed), 0o700);
        assert_eq!(mode_of(&other), 0o500);
        change(&closed, 0);
        remove(&slot).unwrap();
        assert!(!slot.exists() && other.exists());
    }
}
