//! One sandbox: programs that see nothing of the host but its programs, and of which nothing is
//! left when it ends.
//!
//! Invariants: no folder, socket or network of the host can be written to or reached from inside,
//! since none is there; we reach in, through the root folder of its first process. What is found
//! inside is hostile: a name is followed to a socket or a plain file, never to a link, which could
//! lead back out to a socket of ours.

use std::fmt::Write as _;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use scopeguard::{ScopeGuard, guard};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::process::{Child, ChildStdin, Command};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::memory;
use super::slots::{MARK, Slot, Started, kill_marked};
use super::spawner;

/// Where a sandbox's sockets and logs lie, from its root.
const RUN: &str = "run/arpo";

/// How often a starting sandbox is looked at.
const POLL: Duration = Duration::from_millis(10);

/// How long what was killed may take to be gone before it is left to the kernel.
pub const ENDING: Duration = Duration::from_secs(10);

/// Most that is kept of what a sandbox says of itself, bytes.
const MAX_SAID: usize = 2048;

/// When a sandbox is up.
#[derive(Clone, Copy, Debug)]
pub struct Ready<'a> {
    /// What lies in its `/run/arpo` then.
    pub file: &'a str,
    /// What is said where that does not come about in time.
    pub late: &'a str,
}

/// A running sandbox; killed when dropped.
#[derive(Debug)]
pub struct Sandbox {
    processes: Processes,
    init_pid: u32,
    /// Its root folder as seen from outside.
    root: OwnedFd,
    control: ChildStdin,
}

/// The processes of a sandbox; killed when dropped.
#[derive(Debug)]
struct Processes {
    /// Number 1 within; with it all others end.
    init: Arc<OwnedFd>,
    /// Why they ended, once they have.
    ended: Arc<OnceLock<String>>,
    /// Cancelled when they have.
    gone: CancellationToken,
    watch: JoinHandle<()>,
}

impl Sandbox {
    /// Starts one and waits until it is up.
    pub async fn start(
        command: Command,
        slot: &Mutex<Slot>,
        ready: Ready<'_>,
        deadline: Instant,
    ) -> Result<Self, String> {
        let (mut child, init_pid) = launch(command, slot, deadline).await?;
        let control = child.stdin.take().ok_or("its standard input is missing")?;
        let processes = Processes::of(child, init_pid)?;
        let root = loop {
            if let Some(root) = root_of(init_pid, ready.file) {
                break root;
            }
            if let Some(reason) = processes.ended.get() {
                return Err(reason.clone());
            }
            if Instant::now() >= deadline {
                return Err(ready.late.to_owned());
            }
            tokio::time::sleep(POLL).await;
        };
        Ok(Self {
            processes,
            init_pid,
            root,
            control,
        })
    }

    /// Why it ended, if it has.
    pub fn ended(&self) -> Option<&str> {
        self.processes.ended.get().map(String::as_str)
    }

    /// Its processes.
    pub fn lifeline(&self) -> Lifeline {
        Lifeline {
            init: self.processes.init.clone(),
            ended: self.processes.ended.clone(),
            gone: self.processes.gone.clone(),
        }
    }

    /// What its processes keep in memory, bytes, as far as that can be told.
    pub fn memory_bytes(&self) -> Option<u64> {
        memory::used_by(self.init_pid)
    }

    /// The processor time that its processes have taken, as far as that can be told.
    pub fn cpu_time(&self) -> Option<Duration> {
        memory::cpu_of(self.init_pid)
    }

    /// A plain file in its `/run/arpo` of at most so many bytes.
    pub fn read(&self, name: &str, most: u64) -> io::Result<Vec<u8>> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW;
        let file = std::fs::File::from(open_within(&self.root, name, flags)?);
        read_plain(file, most)
    }

    /// Its guest server's socket, once it is there and not `old`'s. As long as the handle is held,
    /// its `path` leads to that very socket.
    pub async fn server_socket(
        &self,
        old: Option<&Socket>,
        deadline: Instant,
    ) -> Result<Socket, String> {
        loop {
            match self.socket("guest.sock") {
                Ok(socket) if old.is_none_or(|old| old.inode != socket.inode) => return Ok(socket),
                _ => {}
            }
            if let Some(reason) = self.ended() {
                return Err(reason.to_owned());
            }
            if Instant::now() >= deadline {
                let said = self.log("server");
                return Err(format!("its guest server did not come up in time: {said}"));
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// A connection to a port within, of those that the guest server relays.
    pub async fn connect(&self, port: u16) -> io::Result<UnixStream> {
        let socket = self.socket(&format!("{port}.sock"))?;
        UnixStream::connect(socket.path()).await
    }

    /// Has the guest server started anew.
    pub async fn restart_server(&mut self) -> io::Result<()> {
        self.control.write_all(b"restart\n").await?;
        self.control.flush().await
    }

    /// The last line that a program within wrote to its log.
    pub fn log(&self, program: &str) -> String {
        let name = format!("{program}.log");
        let text = open_within(&self.root, &name, OFlags::RDONLY | OFlags::NONBLOCK)
            .and_then(|file| read_end(file.into()))
            .unwrap_or_default();
        on_one_line(text.lines().next_back().unwrap_or("(nothing said)"))
    }

    /// Ends it, and comes back when nothing of it runs any more.
    pub async fn kill(mut self) {
        self.processes.kill();
        // The kernel ends process 1 of a sandbox last, and bubblewrap outside after it.
        let _ = (&mut self.processes.watch).await;
    }

    /// A socket in its `/run/arpo`, whose handle is its for as long as it is held.
    pub fn socket(&self, name: &str) -> io::Result<Socket> {
        let handle = open_within(&self.root, name, OFlags::PATH | OFlags::NOFOLLOW)?;
        let stat = rustix::fs::fstat(&handle)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::Socket {
            return Err(io::Error::other(format!("{name} is no socket")));
        }
        Ok(Socket {
            handle,
            inode: stat.st_ino,
        })
    }
}

impl Processes {
    fn of(child: Child, init_pid: u32) -> Result<Self, String> {
        let pid = Pid::from_raw(init_pid as i32).ok_or("bubblewrap names no process")?;
        let init = pidfd_open(pid, PidfdFlags::empty())
            .map_err(|error| format!("process {init_pid} has ended: {error}"))?;
        let ended = Arc::new(OnceLock::new());
        let gone = CancellationToken::new();
        let (reason, end) = (ended.clone(), gone.clone().drop_guard());
        let watch = tokio::spawn(async move {
            let _end = end;
            watch(child, reason).await;
        });
        Ok(Self {
            init: Arc::new(init),
            ended,
            gone,
            watch,
        })
    }

    fn kill(&self) {
        kill(&self.init);
    }
}

/// Kills all of a sandbox by the handle of its first process.
fn kill(init: &OwnedFd) {
    // Fails where it has ended, which is as good.
    let _ = pidfd_send_signal(init, Signal::KILL);
}

/// What is known of a sandbox's processes apart from it: whether they run, and how to end them.
#[derive(Clone, Debug)]
pub struct Lifeline {
    init: Arc<OwnedFd>,
    ended: Arc<OnceLock<String>>,
    gone: CancellationToken,
}

impl Lifeline {
    /// Comes back when all have ended.
    pub async fn end(&self) {
        self.gone.cancelled().await;
    }

    /// Why they ended, once they have.
    pub fn reason(&self) -> Option<&str> {
        self.ended.get().map(String::as_str)
    }

    /// Kills them.
    pub fn kill(&self) {
        kill(&self.init);
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A socket within, held by a handle that no renaming or linking there changes.
#[derive(Debug)]
pub struct Socket {
    handle: OwnedFd,
    inode: u64,
}

impl Socket {
    /// A path of this process that leads to it.
    pub fn path(&self) -> String {
        format!("/proc/self/fd/{}", self.handle.as_raw_fd())
    }
}

/// Starts it, writes it down in the slot and reads the number of its process 1.
pub async fn launch(
    mut command: Command,
    slot: &Mutex<Slot>,
    deadline: Instant,
) -> Result<(Child, u32), String> {
    // Until bubblewrap has told of its child, that is killed with what it bears.
    let unfinished = guard(slot_of(slot).next_mark(), |mark: String| kill_marked(&mark));
    command.env(MARK, &*unfinished);
    let mut child = spawner::spawn(command)
        .await
        .map_err(|error| format!("/bin/bash does not start: {error}"))?;
    note(slot, child.id())?;
    let mut stdout = child
        .stdout
        .take()
        .ok_or("its standard output is missing")?;
    let deadline = tokio::time::Instant::from_std(deadline);
    let told = tokio::time::timeout_at(deadline, init_pid(&mut stdout)).await;
    if let Ok(Some(pid)) = told {
        note(slot, Some(pid))?;
        ScopeGuard::into_inner(unfinished);
        return Ok((child, pid));
    }
    let _ = child.start_kill();
    drop(unfinished);
    let said = match child.stderr.take() {
        Some(stderr) => {
            let said = tokio::time::timeout(Duration::from_secs(1), last_words(stderr));
            said.await.unwrap_or_default()
        }
        None => String::new(),
    };
    Err(format!(
        "bubblewrap made no sandbox: {}",
        on_one_line(said.trim())
    ))
}

fn note(slot: &Mutex<Slot>, pid: Option<u32>) -> Result<(), String> {
    let Some(process) = pid.and_then(Started::of) else {
        // It has ended already, which whoever waits for it is told.
        return Ok(());
    };
    slot_of(slot)
        .add(process)
        .map_err(|error| format!("its slot's owner.json cannot be written: {error}"))
}

/// The slot; a thread that panicked left nothing half done in it.
pub fn slot_of(slot: &Mutex<Slot>) -> std::sync::MutexGuard<'_, Slot> {
    slot.lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Waits for the end of what was killed, but not for ever: the kernel may hold a process.
pub async fn await_end<T>(ending: impl Future<Output = T>, machine: &str) {
    if tokio::time::timeout(ENDING, ending).await.is_err() {
        tracing::warn!(machine, limit = ?ENDING, "what was killed is not gone in time");
    }
}

/// Waits for the end of what ran in a slot before, and strikes it out there.
pub async fn retired(ending: Option<JoinHandle<()>>, slot: &Mutex<Slot>, machine: &str) {
    if let Some(ending) = ending {
        // Fails where its task panicked, which has dropped and thus killed it.
        await_end(ending, machine).await;
    }
    if let Err(error) = slot_of(slot).forget_ended() {
        tracing::warn!(machine, %error, "owner.json is not up to date");
    }
}

/// What bubblewrap says first: a JSON object with its child's number.
async fn init_pid(stdout: &mut (impl AsyncRead + Unpin)) -> Option<u32> {
    let mut told = Vec::new();
    while !told.contains(&b'}') && told.len() < MAX_SAID {
        let byte = stdout.read_u8().await.ok()?;
        told.push(byte);
    }
    let told: serde_json::Value = serde_json::from_slice(&told).ok()?;
    u32::try_from(told.get("child-pid")?.as_u64()?).ok()
}

/// Waits for a sandbox's end and says why it came.
async fn watch(mut child: Child, ended: Arc<OnceLock<String>>) {
    let said = async {
        match child.stderr.take() {
            Some(stderr) => last_words(stderr).await,
            None => String::new(),
        }
    };
    let said = said.await;
    let status = match child.wait().await {
        Ok(status) => status.to_string(),
        Err(error) => error.to_string(),
    };
    let mut reason = on_one_line(said.lines().next_back().unwrap_or_default());
    if reason.is_empty() {
        let _ = write!(reason, "its session ended: {status}");
    }
    let _ = ended.set(reason);
}

/// Reads to the end and keeps the last of it.
async fn last_words(mut stream: impl AsyncRead + Unpin) -> String {
    let mut said = Vec::new();
    let mut piece = [0; MAX_SAID];
    while let Ok(count @ 1..) = stream.read(&mut piece).await {
        said.extend_from_slice(&piece[..count]);
        let excess = said.len().saturating_sub(MAX_SAID);
        said.drain(..excess);
    }
    String::from_utf8_lossy(&said).into_owned()
}

/// The root folder of a sandbox's first process, once it is the sandbox's and `name` lies in its
/// `/run/arpo`: until bubblewrap has built it, that process still has ours.
fn root_of(pid: u32, name: &str) -> Option<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = rustix::fs::open(format!("/proc/{pid}/root"), flags, Mode::empty()).ok()?;
    let (its, ours) = (rustix::fs::fstat(&root).ok()?, rustix::fs::stat("/").ok()?);
    if (its.st_dev, its.st_ino) == (ours.st_dev, ours.st_ino) {
        return None;
    }
    open_within(&root, name, OFlags::PATH | OFlags::NOFOLLOW).ok()?;
    Some(root)
}

/// Opens what lies in a sandbox's `/run/arpo`, following no link anywhere.
fn open_within(root: &OwnedFd, name: &str, flags: OFlags) -> io::Result<OwnedFd> {
    let path = Path::new(RUN).join(name);
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let flags = flags | OFlags::CLOEXEC;
    Ok(rustix::fs::openat2(
        root,
        path,
        flags,
        Mode::empty(),
        resolve,
    )?)
}

/// All of a plain file that is not larger than `most` bytes.
fn read_plain(file: std::fs::File, most: u64) -> io::Result<Vec<u8>> {
    use std::io::Read;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("no plain file"));
    }
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::other(format!("more than {most} bytes")));
    }
    Ok(bytes)
}

/// The end of a plain file.
fn read_end(mut file: std::fs::File) -> io::Result<String> {
    use std::io::{Read, Seek, SeekFrom};
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("no plain file"));
    }
    file.seek(SeekFrom::Start(
        metadata.len().saturating_sub(MAX_SAID as u64),
    ))?;
    let mut bytes = Vec::new();
    file.take(MAX_SAID as u64).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A text of a sandbox, fit for one line of an error.
pub fn on_one_line(text: &str) -> String {
    const MAX_TOLD: usize = 300;
    let plain = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    plain.take(MAX_TOLD).collect()
}
