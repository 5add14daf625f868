//! One sandbox: an X server, a window manager, a guest server and what they start, which see
//! nothing of the host but its programs, and of which nothing is left when it ends.
//!
//! Invariants: no folder, socket or network of the host can be written to or reached from inside,
//! since none is there; we reach in, through the root folder of its first process. What is found
//! inside is hostile: a name is followed to a socket or a plain file, never to a link, which could
//! lead back out to a socket of ours.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::process::{Child, ChildStdin, Command};
use tokio::task::JoinHandle;

use super::slots::{MARK, Slot, Started, kill_marked};
use super::spawner;
use crate::config::XvfbConfig;

/// Run by bash before bubblewrap, as the slot's user: nothing but the three standard streams goes
/// in, the kernel kills the desktop before anything else when memory runs out, and its programs
/// have limits: KiB of a file, KiB of a program's own memory. Processes are limited within: out here
/// those of all the user's would count.
const LAUNCH: &str = r#"
for fd in /proc/self/fd/*; do
    fd=${fd##*/}
    if [ "$fd" -gt 2 ]; then exec {fd}>&-; fi
done
echo 1000 >/proc/self/oom_score_adj
ulimit -c 0 && ulimit -f "$1" && ulimit -d "$2" && shift 2 && exec "$@"
"#;

/// Where a sandbox's sockets and logs lie, from its root.
const RUN: &str = "run/arpo";

/// How often a starting sandbox is looked at.
const POLL: Duration = Duration::from_millis(10);

/// Most that is kept of what a sandbox says of itself, bytes.
const MAX_SAID: usize = 2048;

/// What a sandbox is made of.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// Sizes and limits.
    pub(super) config: XvfbConfig,
    /// The executable that serves inside, readable by the slot's user.
    pub(super) arpo: PathBuf,
    /// What its home, its /etc and its programs of ours are taken from.
    pub(super) template: PathBuf,
}

/// A running sandbox; killed when dropped.
#[derive(Debug)]
pub(super) struct Sandbox {
    processes: Processes,
    /// Its root folder as seen from outside.
    root: OwnedFd,
    control: ChildStdin,
}

/// The processes of a sandbox; killed when dropped.
#[derive(Debug)]
struct Processes {
    /// Number 1 within; with it all others end.
    init: OwnedFd,
    /// Why they ended, once they have.
    ended: Arc<OnceLock<String>>,
    watch: JoinHandle<()>,
}

impl Sandbox {
    /// Starts one and waits until its X server and its window manager are there.
    pub(super) async fn start(
        plan: &Plan,
        slot: &Mutex<Slot>,
        deadline: Instant,
    ) -> Result<Self, String> {
        let command = command(&plan.config, slot_of(slot).uid(), plan.arguments());
        let (mut child, init_pid) = launch(command, slot, deadline).await?;
        let control = child.stdin.take().ok_or("its standard input is missing")?;
        let processes = Processes::of(child, init_pid)?;
        let root = loop {
            if let Some(root) = root_of(init_pid, "wm") {
                break root;
            }
            if let Some(reason) = processes.ended.get() {
                return Err(reason.clone());
            }
            if Instant::now() >= deadline {
                return Err("its window manager did not come up in time: raise \
                            env.xvfb.start_deadline_s, or run fewer desktops"
                    .to_owned());
            }
            tokio::time::sleep(POLL).await;
        };
        Ok(Self {
            processes,
            root,
            control,
        })
    }

    /// Why it ended, if it has.
    pub(super) fn ended(&self) -> Option<&str> {
        self.processes.ended.get().map(String::as_str)
    }

    /// Its guest server's socket, once it is there and not `old`'s. As long as the handle is held,
    /// its `path` leads to that very socket.
    pub(super) async fn server_socket(
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
    pub(super) async fn connect(&self, port: u16) -> io::Result<UnixStream> {
        let socket = self.socket(&format!("{port}.sock"))?;
        UnixStream::connect(socket.path()).await
    }

    /// Has the guest server started anew.
    pub(super) async fn restart_server(&mut self) -> io::Result<()> {
        self.control.write_all(b"restart\n").await?;
        self.control.flush().await
    }

    /// The last line that a program within wrote to its log.
    pub(super) fn log(&self, program: &str) -> String {
        let name = format!("{program}.log");
        let text = open_within(&self.root, &name, OFlags::RDONLY | OFlags::NONBLOCK)
            .and_then(|file| read_end(file.into()))
            .unwrap_or_default();
        on_one_line(text.lines().next_back().unwrap_or("(nothing said)"))
    }

    /// Ends it, and comes back when nothing of it runs any more.
    pub(super) async fn kill(mut self) {
        self.processes.kill();
        // The kernel ends process 1 of a sandbox last, and bubblewrap outside after it.
        let _ = (&mut self.processes.watch).await;
    }

    fn socket(&self, name: &str) -> io::Result<Socket> {
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
        let watch = tokio::spawn(watch(child, ended.clone()));
        Ok(Self { init, ended, watch })
    }

    fn kill(&self) {
        // Fails where it has ended, which is as good.
        let _ = pidfd_send_signal(&self.init, Signal::KILL);
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A socket within, held by a handle that no renaming or linking there changes.
#[derive(Debug)]
pub(super) struct Socket {
    handle: OwnedFd,
    inode: u64,
}

impl Socket {
    /// A path of this process that leads to it.
    pub(super) fn path(&self) -> String {
        format!("/proc/self/fd/{}", self.handle.as_raw_fd())
    }
}

/// A program in bubblewrap with these arguments, with limits, as `uid` where there is one.
pub(super) fn command(config: &XvfbConfig, uid: Option<u32>, arguments: Vec<OsString>) -> Command {
    const KIB_A_MB: u64 = 1024;
    let mut command = Command::new("/bin/bash");
    command
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .current_dir("/")
        .args(["-c", LAUNCH, "desktop"])
        .arg((u64::from(config.max_file_mb) * KIB_A_MB).to_string())
        .arg((u64::from(config.memory_mb) * KIB_A_MB).to_string())
        .arg("bwrap")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    if let Some(uid) = uid {
        command.uid(uid).gid(uid);
    }
    command
}

/// A start by its mark: until bubblewrap has told of its child, that is killed with what it bears.
struct Unfinished(String);

impl Drop for Unfinished {
    fn drop(&mut self) {
        kill_marked(&self.0);
    }
}

/// Starts it, writes it down in the slot and reads the number of its process 1.
pub(super) async fn launch(
    mut command: Command,
    slot: &Mutex<Slot>,
    deadline: Instant,
) -> Result<(Child, u32), String> {
    let unfinished = Unfinished(slot_of(slot).next_mark());
    command.env(MARK, &unfinished.0);
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
        std::mem::forget(unfinished);
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
pub(super) fn slot_of(slot: &Mutex<Slot>) -> std::sync::MutexGuard<'_, Slot> {
    slot.lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
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
fn on_one_line(text: &str) -> String {
    const MAX_TOLD: usize = 300;
    let plain = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    plain.take(MAX_TOLD).collect()
}
