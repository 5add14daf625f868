//! A console on a pseudo-terminal at the far end of a line: what it writes arrives late and
//! slowly, what is typed too; what it asks is answered as kitty would.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// What the line is like.
#[derive(Clone, Copy, Debug)]
pub(super) struct LineSpec {
    /// Bytes a second; `None` for all at once.
    pub(super) rate: Option<f64>,
    /// One way.
    pub(super) latency: Duration,
}

impl LineSpec {
    /// One that costs nothing.
    pub(super) const LOCAL: Self = Self {
        rate: None,
        latency: Duration::ZERO,
    };
}

/// Cells of a terminal.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    pub(super) columns: u16,
    pub(super) rows: u16,
}

/// Bytes that the line holds before it stops taking more.
const BUFFER: usize = 2_000_000;
/// Bytes read at once.
const PIECE: usize = 4096;
/// A character that nothing else shows.
pub(super) const MARK: &str = "ʘ";
/// The console's key to leave at once.
const DETACH: &str = "Q";

/// What arrived so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Arrived {
    /// Bytes of text.
    pub(super) text: u64,
    /// Bytes of pictures.
    pub(super) pictures: u64,
    /// Frames: each ends with a question.
    pub(super) frames: u64,
}

/// A console at the end of a line. Dropping it ends the console.
pub(super) struct Attached {
    child: Child,
    keys: File,
    spec: LineSpec,
    arrived: Arc<Mutex<Arrived>>,
    events: Receiver<Noticed>,
    started: Instant,
    is_stalled: Arc<AtomicBool>,
}

/// Something that was seen at the far end.
enum Noticed {
    /// The mark arrived.
    Mark(Instant),
    /// A frame arrived whole.
    Frame(Instant),
}

impl Attached {
    /// Starts `arpo` with `arguments` on a terminal.
    pub(super) fn start(arguments: &[&Path], room: Room, spec: LineSpec) -> anyhow::Result<Self> {
        let (master, slave) = open_pty(room).context("cannot open a pseudo-terminal")?;
        let program = std::env::current_exe().context("cannot tell where arpo is")?;
        let started = Instant::now();
        let child = Command::new(program)
            .args(arguments)
            .env("TERM", "xterm-kitty")
            .env("COLORTERM", "truecolor")
            .env_remove("NO_COLOR")
            .env_remove("TMUX")
            .env_remove("STY")
            .stdin(Stdio::from(slave.try_clone()?))
            .stdout(Stdio::from(slave.try_clone()?))
            .stderr(Stdio::from(slave))
            .spawn()
            .context("cannot start the console")?;
        let master = File::from(master);
        let arrived = Arc::new(Mutex::new(Arrived::default()));
        let (noticed, events) = channel();
        // The buffer of the line: what does not fit is not read.
        let (pieces, sent) = sync_channel(BUFFER / PIECE);
        let mut reading = master.try_clone()?;
        let is_stalled = Arc::new(AtomicBool::new(false));
        let stalls = Arc::clone(&is_stalled);
        thread::spawn(move || read_all(&mut reading, &stalls, &pieces));
        let far_end = FarEnd {
            spec,
            answers: master.try_clone()?,
            arrived: Arc::clone(&arrived),
            noticed,
            parser: Parser::default(),
        };
        thread::spawn(move || far_end.run(&sent));
        Ok(Self {
            child,
            keys: master,
            spec,
            arrived,
            events,
            started,
            is_stalled,
        })
    }

    /// From now on nobody reads what the console writes, and nothing it asks is answered.
    pub(super) fn stall(&self) {
        self.is_stalled.store(true, Ordering::Relaxed);
    }

    /// Leaves the console as an operator does, and waits until it is gone; one that stays is ended.
    pub(super) fn leave(mut self, patience: Duration) {
        let due = Instant::now() + patience;
        if self.press(DETACH).is_ok() {
            // Its end of the terminal closes with it, and with that this channel.
            self.wait(due, |_| None::<()>);
        }
    }

    /// Process id of the console.
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What arrived so far.
    pub(super) fn arrived(&self) -> Arrived {
        *self.arrived.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Types at the far end.
    pub(super) fn press(&mut self, keys: &str) -> anyhow::Result<()> {
        thread::sleep(self.spec.latency);
        self.keys
            .write_all(keys.as_bytes())
            .context("the console is gone")
    }

    /// From the start to the first frame that arrived whole.
    pub(super) fn first_frame(&self, patience: Duration) -> anyhow::Result<Duration> {
        let due = Instant::now() + patience;
        self.wait(due, |noticed| match noticed {
            Noticed::Frame(at) => Some(at - self.started),
            Noticed::Mark(_) => None,
        })
        .context("the console drew nothing")
    }

    /// Types the mark and takes it back; the time until it was seen at the far end, `patience`
    /// if it was not.
    pub(super) fn echo(&mut self, patience: Duration) -> anyhow::Result<Duration> {
        while self.events.try_recv().is_ok() {}
        let typed = Instant::now();
        self.press(MARK)?;
        let seen = self.wait(typed + patience, |noticed| match noticed {
            Noticed::Mark(at) => Some(at - typed),
            Noticed::Frame(_) => None,
        });
        self.press("\x7f")?;
        Ok(seen.unwrap_or(patience))
    }

    fn wait<T>(&self, due: Instant, pick: impl Fn(Noticed) -> Option<T>) -> Option<T> {
        loop {
            let left = due.saturating_duration_since(Instant::now());
            match self.events.recv_timeout(left) {
                Ok(noticed) => {
                    if let Some(found) = pick(noticed) {
                        return Some(found);
                    }
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return None,
            }
        }
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn open_pty(room: Room) -> anyhow::Result<(OwnedFd, OwnedFd)> {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let size = Winsize {
        ws_row: room.rows,
        ws_col: room.columns,
        // Cells of 10 x 20, as it answers.
        ws_xpixel: room.columns * 10,
        ws_ypixel: room.rows * 20,
    };
    let name = ptsname(&master, Vec::new())?;
    let slave = rustix::fs::open(
        name,
        rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY | rustix::fs::OFlags::CLOEXEC,
        rustix::fs::Mode::empty(),
    )?;
    tcsetwinsize(slave.as_fd(), size)?;
    Ok((master, slave))
}

fn read_all(terminal: &mut File, is_stalled: &AtomicBool, pieces: &SyncSender<(Instant, Vec<u8>)>) {
    let mut buffer = [0; PIECE];
    while let Ok(count @ 1..) = terminal.read(&mut buffer) {
        // What was read meanwhile does not arrive either: it might be a question.
        if is_stalled.load(Ordering::Relaxed) {
            return;
        }
        if pieces
            .send((Instant::now(), buffer[..count].to_vec()))
            .is_err()
        {
            return;
        }
    }
}

/// The terminal at the end of the line.
struct FarEnd {
    spec: LineSpec,
    answers: File,
    arrived: Arc<Mutex<Arrived>>,
    noticed: std::sync::mpsc::Sender<Noticed>,
    parser: Parser,
}

impl FarEnd {
    fn run(mut self, sent: &Receiver<(Instant, Vec<u8>)>) {
        let mut free = Instant::now();
        while let Ok((written, bytes)) = sent.recv() {
            // The line carries one byte after the other.
            free = free.max(written);
            if let Some(rate) = self.spec.rate {
                free += Duration::from_secs_f64(bytes.len() as f64 / rate);
            }
            let arrival = free + self.spec.latency;
            thread::sleep(arrival.saturating_duration_since(Instant::now()));
            self.take(&bytes);
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        let mut answers = Vec::new();
        let mut came = Arrived::default();
        for byte in bytes {
            match self.parser.next(*byte) {
                Some(Seen::Question(answer)) => {
                    if answer == ALIVE {
                        came.frames += 1;
                        let _ = self.noticed.send(Noticed::Frame(Instant::now()));
                    }
                    answers.extend_from_slice(answer);
                }
                Some(Seen::Mark) => {
                    let _ = self.noticed.send(Noticed::Mark(Instant::now()));
                }
                None => {}
            }
            if self.parser.is_in_picture() {
                came.pictures += 1;
            } else {
                came.text += 1;
            }
        }
        self.count(came);
        if answers.is_empty() {
            return;
        }
        let latency = self.spec.latency;
        let Ok(mut terminal) = self.answers.try_clone() else {
            return;
        };
        let mut answer = move || {
            thread::sleep(latency);
            // The console may be gone by then.
            let _ = terminal.write_all(&answers);
        };
        if latency.is_zero() {
            answer();
        } else {
            thread::spawn(answer);
        }
    }

    fn count(&self, came: Arrived) {
        let mut arrived = self.arrived.lock().unwrap_or_else(PoisonError::into_inner);
        arrived.text += came.text;
        arrived.pictures += came.pictures;
        arrived.frames += came.frames;
    }
}

const ALIVE: &[u8] = b"\x1b[0n";

/// Questions by what follows the escape, and answers.
const QUESTIONS: [(&str, &[u8]); 6] = [
    ("[5n", ALIVE),
    ("[>q", b"\x1bP>|kitty(0.42.2)\x1b\\"),
    ("[16t", b"\x1b[6;20;10t"),
    ("[?2026$p", b"\x1b[?2026;2$y"),
    ("[c", b"\x1b[?62c"),
    ("_Gi=31", b"\x1b_Gi=31;OK\x1b\\"),
];

enum Seen {
    Question(&'static [u8]),
    Mark,
}

/// As much of a terminal as the figures need.
#[derive(Default)]
struct Parser {
    /// What came since the last escape, as far as it may be a question.
    sequence: Vec<u8>,
    is_in_picture: bool,
    last: u8,
}

impl Parser {
    fn is_in_picture(&self) -> bool {
        self.is_in_picture
    }

    fn next(&mut self, byte: u8) -> Option<Seen> {
        let last = std::mem::replace(&mut self.last, byte);
        if [last, byte] == *MARK.as_bytes() {
            return Some(Seen::Mark);
        }
        if self.is_in_picture {
            self.is_in_picture = !(last == 0x1b && byte == b'\\');
        }
        if byte == 0x1b {
            self.sequence.clear();
            return None;
        }
        if self.sequence.len() >= 8 {
            return None;
        }
        self.sequence.push(byte);
        if self.sequence == b"_G" {
            self.is_in_picture = true;
        }
        let found = QUESTIONS
            .iter()
            .find(|(question, _)| question.as_bytes() == self.sequence);
        found.map(|(_, answer)| Seen::Question(answer))
    }
}
