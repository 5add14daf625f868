//! One virtual machine: QEMU in its sandbox, asked by QMP, followed on its serial line.
//!
//! A machine that ends, or whose disk fails, ends at once with a reason: its sandbox is killed, so
//! that who waits for its server is told now and not at a deadline.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::fs::{Mode, OFlags};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::arguments::{self, Disk, Files, Hardware};
use super::picture::read_ppm;
use super::qmp::{Event, Qmp, QmpError};
use super::serial::{self, Progress};
use crate::env::machine::{MachineNews, Reporter};
use crate::env::sandbox::bubblewrap::command;
use crate::env::sandbox::{
    Lifeline, Limits, Ready, Sandbox, Slot, SlotFolder, Socket, on_one_line, slot_of,
};
use crate::types::{MachinePhase, Screenshot};

/// QEMU and what leads to its guest were started.
const READY: Ready<'static> = Ready {
    file: "up",
    late: "its sandbox did not come up in time: raise env.qemu.restore_deadline_s, or run fewer \
           desktops",
};

/// Between two looks at something that is coming up.
const POLL: Duration = Duration::from_millis(10);

/// How long QEMU may take to stop or go on, or to draw a picture.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long QEMU's process may outlive its socket, and its guest's last words the news of its end,
/// before the end is told without them.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// The picture of the screen, in the sandbox's `/run/arpo`.
const PICTURE: &str = "picture.ppm";

/// What a machine is started from.
pub(super) struct Launch<'a> {
    pub(super) hardware: &'a Hardware,
    pub(super) disk: Disk,
    pub(super) files: Files,
    pub(super) limits: Limits,
    /// The empty layer that its own begins as.
    pub(super) fresh: Option<&'a Path>,
}

/// A running machine; killed when dropped.
#[derive(Debug)]
pub(super) struct Vm {
    sandbox: Sandbox,
    hardware: Hardware,
    qmp: Qmp<UnixStream>,
    /// The socket of `qmp`: files go over it beside its words.
    socket: OwnedFd,
    control: tokio::sync::Mutex<UnixStream>,
    drawing: tokio::sync::Mutex<()>,
    progress: watch::Receiver<Progress>,
    fate: Arc<Fate>,
    /// Those that follow it; ended with it.
    tasks: JoinSet<()>,
    folder: SlotFolder,
}

/// What becomes of a machine, shared with those that follow it.
#[derive(Debug, Default)]
struct Fate {
    /// Why it ended by itself, once it has.
    reason: OnceLock<String>,
    /// Who is told, once somebody wants to be.
    voice: OnceLock<Reporter>,
    /// Stops of its time that we asked for and QEMU has not told of yet.
    stops: AtomicU32,
}

impl Fate {
    /// Takes a stop that QEMU tells of for one of those that were asked for, if there are any.
    fn is_asked_stop(&self) -> bool {
        let asked = &self.stops;
        let taken = asked.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |stops| {
            stops.checked_sub(1)
        });
        taken.is_ok()
    }
}

impl Vm {
    /// Starts QEMU; its guest waits for `go_on`.
    pub(super) async fn launch(
        launch: Launch<'_>,
        slot: &Mutex<Slot>,
        deadline: Instant,
    ) -> Result<Self, String> {
        let (folder, uid) = {
            let mut slot = slot_of(slot);
            let folder = slot.new_folder();
            let folder = folder.map_err(|error| format!("cannot make its folder: {error}"))?;
            (folder, slot.uid())
        };
        if let Some(fresh) = launch.fresh {
            let path = folder.path().join("overlay.qcow2");
            let made = fs::read(fresh).and_then(|bytes| fs::write(&path, bytes));
            made.and_then(|()| std::os::unix::fs::chown(&path, uid, uid))
                .map_err(|error| format!("cannot make its disk {}: {error}", path.display()))?;
        }
        let arguments = arguments::sandbox(launch.hardware, launch.disk, folder.path());
        let command = command(launch.limits, uid, arguments, launch.files.into_list());
        let command = command.map_err(|error| error.to_string())?;
        let sandbox = Sandbox::start(command, slot, READY, deadline).await?;
        let stream = connect(&sandbox, "qmp.sock", deadline).await?;
        let socket = stream.as_fd().try_clone_to_owned();
        let socket = socket.map_err(|error| format!("no second descriptor: {error}"))?;
        let opened = Qmp::open(stream, left(deadline)).await;
        let (qmp, events) = opened.map_err(|error| why(&sandbox, &error))?;
        let control = connect(&sandbox, "control.sock", deadline).await?;
        let serial = connect(&sandbox, "serial.sock", deadline).await?;
        let fate = Arc::new(Fate::default());
        let (sender, progress) = watch::channel(Progress::default());
        let mut tasks = JoinSet::new();
        let hears = fate.clone();
        tasks.spawn(serial::follow(serial, sender, move |line| {
            if let Some(voice) = hears.voice.get() {
                voice.tell(MachineNews::Said(line));
            }
        }));
        let (lifeline, words) = (sandbox.lifeline(), progress.clone());
        tasks.spawn(guard(events, lifeline, words, fate.clone()));
        Ok(Self {
            sandbox,
            hardware: launch.hardware.clone(),
            qmp,
            socket,
            control: tokio::sync::Mutex::new(control),
            drawing: tokio::sync::Mutex::default(),
            progress,
            fate,
            tasks,
            folder,
        })
    }

    /// Tells what the machine says, and its end, from now on.
    pub(super) fn announce(&self, reporter: &Reporter) {
        // Who was told so far stays.
        let _ = self.fate.voice.set(reporter.clone());
    }

    /// Why it ended by itself, if it has.
    pub(super) fn ended(&self) -> Option<&str> {
        let fate = self.fate.reason.get().map(String::as_str);
        fate.or_else(|| self.sandbox.ended())
    }

    /// How far its guest is.
    pub(super) fn progress(&self) -> watch::Receiver<Progress> {
        self.progress.clone()
    }

    /// What it keeps in memory on this host, bytes.
    pub(super) fn memory_bytes(&self) -> Option<u64> {
        self.sandbox.memory_bytes()
    }

    /// The processor time that it has taken on this host.
    pub(super) fn cpu_time(&self) -> Option<Duration> {
        self.sandbox.cpu_time()
    }

    /// The socket that leads to its guest's server.
    pub(super) async fn server_socket(&self, deadline: Instant) -> Result<Socket, String> {
        self.sandbox.server_socket(None, deadline).await
    }

    /// Reads the memory that it was handed, as far as its guest stood then.
    pub(super) async fn load(&self, deadline: Instant) -> Result<(), String> {
        let arguments = json!({"uri": arguments::memory_uri()});
        self.ask("migrate-incoming", arguments, left(deadline))
            .await?;
        self.migrated(deadline).await
    }

    /// Stops its guest and writes its memory to `memory` in its folder. The disk is at rest then.
    pub(super) async fn save(&self, deadline: Instant) -> Result<(), String> {
        self.stop().await?;
        let fast = json!({"max-bandwidth": 1_u64 << 40});
        self.ask("migrate-set-parameters", fast, PATIENCE).await?;
        let path = self.folder.path().join("memory");
        let memory = create(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let limit = left(deadline);
        let handed = self
            .qmp
            .hand_over(self.socket.as_fd(), memory.as_fd(), "memory", limit);
        handed.await.map_err(|error| self.why(&error.to_string()))?;
        self.ask("migrate", json!({"uri": "fd:memory"}), limit)
            .await?;
        self.migrated(deadline).await
    }

    async fn migrated(&self, deadline: Instant) -> Result<(), String> {
        loop {
            let told = self.ask("query-migrate", json!({}), left(deadline)).await?;
            match told["status"].as_str() {
                Some("completed") => return Ok(()),
                Some("failed") => {
                    let told = told["error-desc"].as_str().unwrap_or("no reason given");
                    return Err(format!("its memory did not pass: {}", on_one_line(told)));
                }
                _ if Instant::now() >= deadline => {
                    return Err("its memory did not pass in time".to_owned());
                }
                _ => tokio::time::sleep(POLL).await,
            }
        }
    }

    /// Lets the guest's time pass.
    pub(super) async fn go_on(&self) -> Result<(), String> {
        self.ask("cont", json!({}), PATIENCE).await.map(drop)
    }

    /// Stops the guest's time.
    pub(super) async fn stop(&self) -> Result<(), String> {
        self.fate.stops.fetch_add(1, Ordering::SeqCst);
        self.ask("stop", json!({}), PATIENCE).await.map(drop)
    }

    /// What a guest needs that has slept: the time, and something that wakes what it last did, since
    /// what QEMU had translated is gone.
    pub(super) async fn wake_guest(&self) -> Result<(), String> {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let line = format!("time {}.{:03}\n", now.as_secs(), now.subsec_millis());
        self.control(&line).await?;
        let axis = |axis: &str| json!({"type": "abs", "data": {"axis": axis, "value": 16000}});
        let motion = json!({"events": [axis("x"), axis("y")]});
        self.ask("input-send-event", motion, PATIENCE)
            .await
            .map(drop)
    }

    /// Has the guest's server started anew.
    pub(super) async fn restart_server(&self) -> Result<(), String> {
        self.control("restart\n").await
    }

    async fn control(&self, line: &str) -> Result<(), String> {
        let writing = async { self.control.lock().await.write_all(line.as_bytes()).await };
        match tokio::time::timeout(PATIENCE, writing).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(self.why(&format!("its control port failed: {error}"))),
            Err(_) => Err(self.why("its control port is stuck: the guest does not read it")),
        }
    }

    /// What its screen shows, whatever its guest does. The pointer is not in it.
    pub(super) async fn picture(&self) -> Result<Screenshot, String> {
        let _turn = self.drawing.lock().await;
        let file = json!({"filename": format!("/run/arpo/{PICTURE}")});
        self.ask("screendump", file, PATIENCE).await?;
        let most = arguments::picture_bytes(self.hardware.screen);
        let bytes = self.sandbox.read(PICTURE, most);
        let bytes = bytes.map_err(|error| format!("{PICTURE}: {error}"))?;
        read_ppm(&bytes).map_err(|error| format!("{PICTURE}: {error}"))
    }

    /// Has QEMU end by itself, so that its files are whole, and comes back when it has.
    pub(super) async fn quit(mut self, deadline: Instant) -> Result<SlotFolder, String> {
        // Nobody is told of an end that is wanted.
        self.tasks.shutdown().await;
        self.ask("quit", json!({}), left(deadline)).await?;
        let (sandbox, folder) = (self.sandbox, self.folder);
        let end = tokio::time::timeout(left(deadline), async { sandbox.lifeline().end().await });
        end.await
            .map_err(|_| "QEMU did not quit in time".to_owned())?;
        Ok(folder)
    }

    /// Ends it, and comes back when nothing of it runs any more.
    pub(super) async fn kill(self) {
        let Self {
            sandbox,
            mut tasks,
            folder,
            ..
        } = self;
        // Nobody is told of an end that is wanted.
        tasks.shutdown().await;
        sandbox.kill().await;
        drop(folder);
    }

    async fn ask(
        &self,
        command: &'static str,
        arguments: Value,
        limit: Duration,
    ) -> Result<Value, String> {
        let answer = self.qmp.ask(command, arguments, limit).await;
        answer.map_err(|error| self.why(&error.to_string()))
    }

    /// A reason to fail, after the machine's own where it has ended.
    fn why(&self, reason: &str) -> String {
        match self.ended() {
            Some(ended) => format!("{ended} ({reason})"),
            None => reason.to_owned(),
        }
    }
}

/// Time until a deadline.
pub(super) fn left(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now())
}

/// A file of ours as it is handed over.
pub(super) fn open(path: &Path) -> Result<OwnedFd, String> {
    let file = File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(file.into())
}

/// A new file in a folder that a machine writes in, too: not where a link there leads.
fn create(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?)
}

/// A plain file that a machine wrote in its folder.
pub(super) fn open_written(folder: &Path, name: &str) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = File::from(rustix::fs::open(folder.join(name), flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(io::Error::other(format!("{name} is no plain file")));
    }
    Ok(file)
}

/// A connection to a socket that QEMU makes.
async fn connect(sandbox: &Sandbox, name: &str, deadline: Instant) -> Result<UnixStream, String> {
    loop {
        if let Ok(socket) = sandbox.socket(name)
            && let Ok(stream) = UnixStream::connect(socket.path()).await
        {
            return Ok(stream);
        }
        if let Some(reason) = sandbox.ended() {
            return Err(reason.to_owned());
        }
        if Instant::now() >= deadline {
            return Err(format!(
                "QEMU did not make {name} in time: {}",
                sandbox.log("qemu")
            ));
        }
        tokio::time::sleep(POLL).await;
    }
}

fn why(sandbox: &Sandbox, error: &QmpError) -> String {
    match sandbox.ended() {
        Some(reason) => reason.to_owned(),
        None => format!("{error}: {}", sandbox.log("qemu")),
    }
}

/// Waits for a machine's end or for what makes it useless, tells it, and ends it.
async fn guard(
    mut events: mpsc::Receiver<Event>,
    lifeline: Lifeline,
    mut progress: watch::Receiver<Progress>,
    fate: Arc<Fate>,
) {
    let reason = loop {
        let event = tokio::select! {
            event = events.recv() => event,
            () = lifeline.end() => break end_of(&lifeline),
        };
        let Some(event) = event else {
            // QEMU is about to be gone, and its session says why.
            let _ = tokio::time::timeout(LAST_WORDS, lifeline.end()).await;
            break end_of(&lifeline);
        };
        if event.name == "STOP" && fate.is_asked_stop() {
            continue;
        }
        if event.name == "SHUTDOWN" {
            // What it said before may still be on its way; QEMU ends, and with it the serial line.
            let to_its_end = async { while progress.changed().await.is_ok() {} };
            let _ = tokio::time::timeout(LAST_WORDS, to_its_end).await;
        }
        let last = progress.borrow().clone();
        if let Some(reason) = fatal(&event, &last) {
            break reason;
        }
    };
    let _ = fate.reason.set(reason.clone());
    lifeline.kill();
    if let Some(voice) = fate.voice.get() {
        voice.status(
            MachinePhase::Off,
            None,
            "restored at the next reset",
            &reason,
        );
    }
}

fn end_of(lifeline: &Lifeline) -> String {
    let reason = lifeline.reason();
    reason.unwrap_or("QEMU hung up without a reason").to_owned()
}

/// Why a machine is of no use any more after an event, if it is not. `last` is the last that its
/// guest told.
fn fatal(event: &Event, last: &Progress) -> Option<String> {
    let text = |key: &str| event.data[key].as_str().unwrap_or_default();
    let panicked = || {
        let words = last.panic.as_deref();
        words.map(|words| format!("its kernel panicked: {words}"))
    };
    let gave_up = || {
        let reason = last.failed.as_deref();
        reason.map(|reason| format!("its guest gave up: {reason}"))
    };
    let or = |told: &str| {
        panicked()
            .or_else(gave_up)
            .or_else(|| Some(told.to_owned()))
    };
    match event.name.as_str() {
        "SHUTDOWN" => match text("reason") {
            "guest-reset" => or("it was restarted from inside"),
            "guest-panic" => panicked().or_else(|| Some("its kernel panicked".to_owned())),
            reason if reason.starts_with("guest") => or("it was shut down from inside"),
            // We asked, or a signal came, of which the process's end tells.
            _ => None,
        },
        "RESET" => Some("it was restarted from inside".to_owned()),
        "GUEST_PANICKED" => panicked().or_else(|| Some("its kernel panicked".to_owned())),
        "BLOCK_IO_ERROR" => Some(match (event.data["nospace"].as_bool(), text("reason")) {
            (Some(true), _) => "its disk is full: there is no room on this machine's".to_owned(),
            (_, "File too large") => {
                "its disk is full: an episode may write env.qemu.disk_mb".to_owned()
            }
            (_, reason) => format!("its disk failed: {}", on_one_line(reason)),
        }),
        "STOP" => Some("QEMU stopped it without being asked to".to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn events_that_end_a_machine_say_why() {
        let shutdown = |reason: &str| ("SHUTDOWN", json!({"guest": true, "reason": reason}));
        let write = |nospace: bool, reason: &str| {
            let data = json!({"action": "stop", "nospace": nospace, "reason": reason});
            ("BLOCK_IO_ERROR", data)
        };
        let inside = Some("from inside");
        let quiet = Progress::default;
        let panicked = || Progress {
            panic: Some("no init".to_owned()),
            ..quiet()
        };
        let gave_up = || Progress {
            failed: Some("the X server ended".to_owned()),
            ..quiet()
        };
        let cases = [
            (shutdown("guest-shutdown"), quiet(), inside),
            (shutdown("guest-reset"), quiet(), inside),
            (
                shutdown("guest-reset"),
                panicked(),
                Some("panicked: no init"),
            ),
            (
                shutdown("guest-shutdown"),
                gave_up(),
                Some("its guest gave up: the X server ended"),
            ),
            (
                shutdown("guest-panic"),
                quiet(),
                Some("its kernel panicked"),
            ),
            (shutdown("host-qmp-quit"), quiet(), None),
            (shutdown("host-signal"), quiet(), None),
            (("SHUTDOWN", json!(null)), quiet(), None),
            (
                ("GUEST_PANICKED", json!({})),
                quiet(),
                Some("its kernel panicked"),
            ),
            (("RESET", json!({"guest": true})), quiet(), inside),
            (
                write(true, "No space left on device"),
                quiet(),
                Some("no room on this machine"),
            ),
            (
                write(false, "File too large"),
                quiet(),
                Some("env.qemu.disk_mb"),
            ),
            (
                write(false, "bad\nsector"),
                quiet(),
                Some("its disk failed: bad sector"),
            ),
            (("STOP", json!(null)), quiet(), Some("without being asked")),
            (("NIC_RX_FILTER_CHANGED", json!({})), quiet(), None),
        ];
        for ((name, data), last, part) in cases {
            let name = name.to_owned();
            let event = Event { name, data };
            let reason = fatal(&event, &last);
            match (&reason, part) {
                (Some(reason), Some(part)) => assert!(reason.contains(part), "{reason}"),
                (None, None) => {}
                _ => panic!("{event:?}: {reason:?}"),
            }
        }
    }

    #[test]
    fn a_stop_is_asked_for_as_often_as_it_was() {
        let fate = Fate::default();
        assert!(!fate.is_asked_stop());
        fate.stops.fetch_add(2, Ordering::SeqCst);
        assert_eq!([(); 3].map(|()| fate.is_asked_stop()), [true, true, false]);
    }
}
