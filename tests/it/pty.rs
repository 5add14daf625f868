//! The console on a real pseudo-terminal: the built executable on a recorded run.

use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use arpo::screen::encode_png;
use arpo::store::{Line, RunDir};
use arpo::tui::picture::PLACEHOLDER;
use arpo::types::{ScreenSize, Screenshot};
use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use rustix::process::{Pid, Signal, kill_process};

use crate::pictures::{Decoded, desktop, kitty_commands, mean_error, sixel_pictures};
use crate::tui::recorded_events;

/// A machine under load is slow, not wrong; the console answers within milliseconds.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// Colors of letters and ground, whether bold, whether reversed.
pub(crate) type Looks = (vt100::Color, vt100::Color, bool, bool);

/// Which terminal a test plays, by what it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plays {
    /// It answers nothing.
    Dumb,
    /// It has no pictures.
    Xterm,
    /// It has pictures at placeholders.
    Kitty,
    /// It has sixel.
    Foot,
}

impl Plays {
    /// What it says to a question, and the question.
    fn answers(self) -> Vec<(&'static str, &'static str)> {
        let (brand, attributes) = match self {
            Plays::Dumb => return Vec::new(),
            Plays::Xterm => ("\x1bP>|XTerm(379)\x1b\\", "\x1b[?64;1;2c"),
            Plays::Kitty => ("\x1bP>|kitty(0.42.2)\x1b\\", "\x1b[?62c"),
            Plays::Foot => ("\x1bP>|foot(1.16.2)\x1b\\", "\x1b[?62;4;22c"),
        };
        let mut answers = vec![
            ("\x1b[>q", brand),
            ("\x1b[16t", "\x1b[6;20;10t"),
            ("\x1b[?2026$p", "\x1b[?2026;2$y"),
            ("\x1b]11;?", "\x1b]11;rgb:0000/0000/0000\x1b\\"),
            ("\x1b[c", attributes),
            ("\x1b[5n", "\x1b[0n"),
        ];
        match self {
            Plays::Kitty => answers.push(("\x1b_Gi=31", "\x1b_Gi=31;OK\x1b\\")),
            Plays::Foot => answers.push(("\x1b[?1;1;0S", "\x1b[?1;0;64S")),
            Plays::Dumb | Plays::Xterm => {}
        }
        answers
    }
}

/// Longest question.
const QUESTION: usize = 16;

/// The executable on a pseudo-terminal, and what its screen shows.
pub(crate) struct Session {
    child: Box<dyn Child + Send + Sync>,
    master: Box<dyn MasterPty + Send>,
    keys: Box<dyn Write + Send>,
    output: Receiver<Vec<u8>>,
    screen: vt100::Parser,
    raw: Vec<u8>,
    plays: Plays,
    /// How much of the output was looked through for questions.
    heard: usize,
    /// While set, nobody reads.
    is_stalled: Arc<AtomicBool>,
}

fn size(rows: u16, cols: u16) -> PtySize {
    PtySize {
        rows,
        cols,
        pixel_width: 0,
        pixel_height: 0,
    }
}

impl Session {
    fn show(run: &Path, env: &[(&str, &str)]) -> Self {
        Self::start(&["show", run.to_str().unwrap()], env)
    }

    /// Starts `arpo` with `arguments`.
    pub(crate) fn start(arguments: &[&str], env: &[(&str, &str)]) -> Self {
        Self::start_on(Plays::Xterm, (24, 80), arguments, env)
    }

    /// The same on some terminal of some size, rows and columns.
    pub(crate) fn start_on(
        plays: Plays,
        room: (u16, u16),
        arguments: &[&str],
        env: &[(&str, &str)],
    ) -> Self {
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_arpo"));
        command.args(arguments);
        Self::spawn(plays, room, command, env)
    }

    /// An interactive shell on a terminal, at its prompt.
    pub(crate) fn shell(plays: Plays, room: (u16, u16), env: &[(&str, &str)]) -> Self {
        let mut command = CommandBuilder::new("bash");
        command.args(["--norc", "--noprofile", "-i"]);
        command.env("PS1", "prompt> ");
        let mut session = Self::spawn(plays, room, command, env);
        session.wait_for("prompt>");
        session
    }

    fn spawn(
        plays: Plays,
        (rows, columns): (u16, u16),
        mut command: CommandBuilder,
        env: &[(&str, &str)],
    ) -> Self {
        let pty = native_pty_system().openpty(size(rows, columns)).unwrap();
        command.cwd(env!("CARGO_MANIFEST_DIR"));
        command.env("TERM", "xterm-256color");
        for name in ["NO_COLOR", "COLORTERM", "TMUX", "STY"] {
            command.env_remove(name);
        }
        // Nobody's own keys.
        command.env("XDG_CONFIG_HOME", "/nonexistent");
        for (name, value) in env {
            command.env(name, value);
        }
        let child = pty.slave.spawn_command(command).unwrap();
        drop(pty.slave);
        let mut reader = pty.master.try_clone_reader().unwrap();
        let (sender, output) = channel();
        let is_stalled = Arc::new(AtomicBool::new(false));
        let stalls = Arc::clone(&is_stalled);
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut buffer) {
                if sender.send(buffer[..count].to_vec()).is_err() {
                    return;
                }
                while stalls.load(Ordering::Relaxed) {
                    thread::sleep(Duration::from_millis(5));
                }
            }
        });
        let keys = pty.master.take_writer().unwrap();
        let screen = vt100::Parser::new(rows, columns, 0);
        Self {
            child,
            master: pty.master,
            keys,
            output,
            screen,
            raw: Vec::new(),
            plays,
            heard: 0,
            is_stalled,
        }
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// Reads until `is_there`; else panics with `what` and the screen.
    #[track_caller]
    pub(crate) fn read_until(&mut self, what: &str, is_there: impl Fn(&Self) -> bool) {
        let end = Instant::now() + PATIENCE;
        while !is_there(self) {
            let left = end.saturating_duration_since(Instant::now());
            let Ok(bytes) = self.output.recv_timeout(left) else {
                panic!("{what}:\n{}", self.text());
            };
            self.take(&bytes);
        }
    }

    /// Reads until the screen contains `text`.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, text: &str) {
        self.read_until(&format!("no {text:?} on"), |session| {
            session.text().contains(text)
        });
    }

    /// Reads until `text` has left the screen.
    #[track_caller]
    pub(crate) fn wait_until_gone(&mut self, text: &str) {
        self.read_until(&format!("{text:?} stays on"), |session| {
            !session.text().contains(text)
        });
    }

    fn take(&mut self, bytes: &[u8]) {
        self.screen.process(bytes);
        self.raw.extend_from_slice(bytes);
        while let Some((length, answer)) = self.next_question() {
            self.heard += length;
            // The executable may be gone by now.
            let _ = self.keys.write_all(answer.as_bytes());
            let _ = self.keys.flush();
        }
        self.heard = self.heard.max(self.raw.len().saturating_sub(QUESTION));
    }

    /// Up to the end of the next question, and the answer to it.
    fn next_question(&self) -> Option<(usize, &'static str)> {
        let unheard = &self.raw[self.heard..];
        let found = self
            .plays
            .answers()
            .into_iter()
            .filter_map(|(question, answer)| {
                let question = question.as_bytes();
                let at = unheard
                    .windows(question.len())
                    .position(|window| window == question)?;
                Some((at + question.len(), answer))
            });
        found.min_by_key(|(end, _)| *end)
    }

    /// Reads until the output contains `text`, from `from` on.
    #[track_caller]
    pub(crate) fn wait_for_bytes(&mut self, from: usize, text: &[u8]) {
        let what = format!("no {:?} before", text.escape_ascii().to_string());
        self.read_until(&what, |session| {
            let mut windows = session.raw[from..].windows(text.len());
            windows.any(|window| window == text)
        });
    }

    /// Reads until it has been silent for a moment, or for so long that it won't be.
    pub(crate) fn settle(&mut self) {
        const MOMENT: Duration = Duration::from_millis(150);
        let begun = Instant::now();
        while let Ok(bytes) = self.output.recv_timeout(MOMENT) {
            self.take(&bytes);
            if begun.elapsed() > 10 * MOMENT {
                return;
            }
        }
    }

    /// How each cell from row `first` on is shown, whatever is in it.
    pub(crate) fn looks(&self, first: u16) -> Vec<Looks> {
        let screen = self.screen.screen();
        let (rows, columns) = screen.size();
        let places = (first..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
        let cells = places.filter_map(|(row, column)| screen.cell(row, column));
        cells
            .map(|cell| {
                let (bold, inverse) = (cell.bold(), cell.inverse());
                (cell.fgcolor(), cell.bgcolor(), bold, inverse)
            })
            .collect()
    }

    /// What the screen shows.
    pub(crate) fn text(&self) -> String {
        self.screen.screen().contents()
    }

    /// What each row shows, without the blanks at its end.
    pub(crate) fn rows(&self) -> Vec<String> {
        let screen = self.screen.screen();
        let rows = screen.rows(0, screen.size().1);
        rows.map(|row| row.trim_end().to_owned()).collect()
    }

    /// Bytes read so far.
    pub(crate) fn written(&self) -> usize {
        self.raw.len()
    }

    /// Whether lines are edited and echoed by the terminal, as a shell leaves it.
    fn is_cooked(&self) -> bool {
        const CANONICAL_AND_ECHO: u64 = 0o12;
        let termios = self.master.get_termios().unwrap();
        u64::from(termios.local_flags.bits()) & CANONICAL_AND_ECHO == CANONICAL_AND_ECHO
    }

    pub(crate) fn resize(&mut self, rows: u16, cols: u16) {
        self.master.resize(size(rows, cols)).unwrap();
        self.screen.screen_mut().set_size(rows, cols);
    }

    pub(crate) fn signal(&mut self, signal: Signal) {
        kill_process(Pid::from_raw(self.pid() as i32).unwrap(), signal).unwrap();
    }

    /// Waits for its end and checks that the terminal is as it was.
    #[track_caller]
    pub(crate) fn check_restored(self) -> u32 {
        self.end().0
    }

    /// The process on the terminal.
    pub(crate) fn pid(&self) -> u32 {
        self.child.process_id().unwrap()
    }

    /// Waits for its end and checks that nothing of the console is left on the terminal.
    #[track_caller]
    pub(crate) fn check_given_back(&mut self) -> u32 {
        let status = self.child.wait().unwrap();
        while let Ok(bytes) = self.output.recv_timeout(PATIENCE) {
            self.take(&bytes);
        }
        let screen = self.screen.screen();
        assert!(!screen.alternate_screen(), "still on the alternate screen");
        assert!(!screen.hide_cursor(), "the cursor is hidden");
        assert!(!screen.bracketed_paste(), "pastes are still bracketed");
        status.exit_code()
    }

    /// Waits for its end, checks that the terminal is as it was, and returns all output.
    #[track_caller]
    fn end(mut self) -> (u32, Vec<u8>) {
        let status = self.check_given_back();
        let screen = self.screen.screen();
        assert!(self.raw.windows(8).any(|bytes| bytes == b"\x1b[?1049l"));
        assert!(
            !screen.contents().contains("panicked"),
            "{}",
            screen.contents()
        );
        assert!(self.is_cooked(), "the terminal is left raw");
        for mode in ["\x1b[?2026l", "\x1b[?1000l", "\x1b[?2004l", "\x1b[?25h"] {
            let mode = mode.as_bytes();
            let last = self.raw.len().saturating_sub(400);
            assert!(
                self.raw[last..]
                    .windows(mode.len())
                    .any(|bytes| bytes == mode),
                "{} is not among the last bytes",
                mode.escape_ascii()
            );
        }
        (status, self.raw)
    }
}

/// A run's folder with the script's events and a picture for each of them.
pub(crate) fn record_run(root: &Path) {
    let shot = Screenshot::new(
        ScreenSize {
            width: 8,
            height: 6,
        },
        vec![200; 8 * 6 * 3],
    );
    record_run_of(root, &shot);
}

fn record_run_of(root: &Path, shot: &Screenshot) {
    let run = RunDir::create(root, "").unwrap();
    let png = encode_png(shot).unwrap();
    let mut log = run.create_log().unwrap();
    for event in recorded_events() {
        if let arpo::event::EventKind::ObservationTaken { image, .. } = &event.kind {
            run.put_png(image, &png).unwrap();
        }
        log.append(&[Line::new(event)]).unwrap();
    }
    log.sync().unwrap();
}

#[test]
fn keys_move_through_the_screens_and_q_restores_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("demo-1129-1631");
    record_run(&root);
    let mut session = Session::show(&root, &[]);
    session.wait_for("by attention");
    session.wait_for("recorded");
    session.press("3");
    session.wait_for("Group std");
    session.press("6");
    session.wait_for("source all");
    session.press("?");
    session.wait_for("asks the engine");
    session.press("\x1b");
    session.wait_until_gone("asks the engine");
    session.resize(40, 120);
    session.press("1");
    session.wait_for("thought");
    session.resize(1, 1);
    session.resize(24, 80);
    session.press("2");
    session.wait_for("Thought at step");
    session.press("q");
    assert_eq!(session.check_restored(), 0);
}

#[test]
fn signals_restore_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("run");
    record_run(&root);
    for signal in [Signal::TERM, Signal::HUP, Signal::INT] {
        let mut session = Session::show(&root, &[]);
        session.wait_for("by attention");
        session.signal(signal);
        session.check_restored();
    }
}

#[test]
fn without_color_no_color_is_sent_and_the_selection_is_reversed() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("run");
    record_run(&root);
    let mut session = Session::show(&root, &[("NO_COLOR", "1")]);
    session.wait_for("by attention");
    let screen = session.screen.screen();
    let cells = (0..24).flat_map(|row| (0..80).filter_map(move |col| screen.cell(row, col)));
    let cells: Vec<_> = cells.collect();
    assert!(
        cells
            .iter()
            .all(|cell| cell.fgcolor() == vt100::Color::Default)
    );
    assert!(
        cells
            .iter()
            .all(|cell| cell.bgcolor() == vt100::Color::Default)
    );
    assert!(cells.iter().any(|cell| cell.inverse()));
    session.press("q");
    session.check_restored();
}

/// A recorded run in a folder, to be looked at with files of its own.
fn session_of(folder: &Path, env: &[(&str, &str)]) -> Session {
    let root = folder.join("demo-1129-1631");
    record_run(&root);
    let state = folder.join("state");
    let mut all = vec![("XDG_STATE_HOME", state.to_str().unwrap())];
    all.extend(env);
    let mut session = Session::show(&root, &all);
    session.wait_for("iteration 13/13");
    session
}

#[test]
fn a_recorded_run_is_gone_through_on_its_time_line() {
    let folder = tempfile::tempdir().unwrap();
    let mut session = session_of(folder.path(), &[]);
    session.press(":seek 3\r");
    session.wait_for("iteration 3/13");
    session.press("]");
    session.wait_for("iteration 4/13");
    session.press("[");
    session.wait_for("iteration 3/13");
    session.press("\x10");
    session.wait_for("play x10");
    session.press("\x10");
    session.wait_for("still");
    session.press(":seek end\r");
    session.wait_for("iteration 13/13");
    session.press("q");
    assert_eq!(session.check_restored(), 0);
}

#[test]
fn text_goes_to_the_clipboard_a_file_and_the_pager() {
    let folder = tempfile::tempdir().unwrap();
    let pager = folder.path().join("pager");
    let script =
        "#!/bin/sh\nhead -n 2 \"$1\"\necho ready\nread answer\necho \"got $answer\"\nread end\n";
    std::fs::write(&pager, script).unwrap();
    let line = format!("sh {}", pager.display());
    let mut session = session_of(folder.path(), &[("PAGER", &line)]);
    session.press("2yi");
    session.wait_for("episode copied");
    let sequence = b"\x1b]52;c;";
    assert!(
        session
            .raw
            .windows(sequence.len())
            .any(|bytes| bytes == sequence)
    );
    let copied = std::fs::read_to_string(folder.path().join("state/arpo/copied.txt")).unwrap();
    assert!(copied.starts_with("0-002"), "{copied}");
    session.press("V");
    session.wait_for("ready");
    // The pager has the keys, all of them.
    session.press("quit 123\r");
    session.wait_for("got quit 123");
    session.press("\r");
    session.wait_for("Thought at step");
    session.press("6");
    session.wait_for("source all");
    session.press("q");
    assert_eq!(session.check_restored(), 0);
}

#[test]
fn what_is_wrong_with_own_keys_is_told_before_the_console_starts() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("run");
    record_run(&root);
    let keys = folder.path().join("arpo/keys.toml");
    std::fs::create_dir_all(keys.parent().unwrap()).unwrap();
    std::fs::write(&keys, "\"ctrl-r\" = \"resum\"\n").unwrap();
    let config = [("XDG_CONFIG_HOME", folder.path().to_str().unwrap())];
    let mut session = Session::show(&root, &config);
    session.wait_for("did you mean resume?");
    assert_eq!(session.child.wait().unwrap().exit_code(), 2);
    std::fs::write(&keys, "\"ctrl-r\" = \"train\"\n").unwrap();
    let mut session = Session::show(&root, &config);
    session.wait_for("by attention");
    session.press("\x12");
    session.wait_for("Group std");
    session.press("q");
    session.check_restored();
}

#[test]
fn plain_output_is_one_line_an_event() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("run");
    record_run(&root);
    for arguments in [&["show"][..], &["show", "--plain"]] {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_arpo"))
            .args(arguments)
            .arg(&root)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(!text.contains('\x1b'));
        // How it stands before the first event, then each of them.
        assert_eq!(text.lines().count(), recorded_events().len() + 1);
        assert!(text.contains(" step finished episode="), "{text}");
    }
}

/// What is recorded, scaled as a terminal was sent it.
fn scaled_desktop(decoded: &Decoded) -> Vec<[u8; 3]> {
    let width = decoded.width as u32;
    let height = (decoded.pixels.len() / decoded.width) as u32;
    let scaled = arpo::screen::thumbnail(&desktop(), width, height).unwrap();
    let pixels = scaled.rgb().chunks_exact(3);
    pixels.map(|pixel| [pixel[0], pixel[1], pixel[2]]).collect()
}

#[test]
fn kitty_gets_pictures_by_id_and_keeps_none() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("run");
    record_run_of(&root, &desktop());
    let arguments = ["show", root.to_str().unwrap()];
    let mut session = Session::start_on(Plays::Kitty, (40, 120), &arguments, &[]);
    session.wait_for("by attention");
    session.wait_for(&PLACEHOLDER.to_string());
    // Many at a time, then one, then none; a popup over them.
    session.press("z");
    session.wait_for_bytes(0, b"i=10944515,");
    session.press("z?");
    session.wait_for("asks the engine");
    session.press("\x1b");
    session.wait_until_gone("asks the engine");
    let before = session.raw.len();
    session.press("3");
    session.wait_for("Group std");
    session.wait_until_gone(&PLACEHOLDER.to_string());
    session.wait_for_bytes(before, b"a=d,d=I");
    session.press("1");
    session.wait_for(&PLACEHOLDER.to_string());
    session.press("q");
    let (status, raw) = session.end();
    assert_eq!(status, 0);
    let mut kept = std::collections::BTreeSet::new();
    let mut sent = 0;
    for command in kitty_commands(&raw) {
        let id = command.key('i').unwrap().to_owned();
        match command.key('a') {
            Some("T") => {
                let decoded = command.picture();
                let error = mean_error(&decoded.pixels, &scaled_desktop(&decoded));
                // Marks of clicks are not in the expected picture.
                assert!(error < 12.0, "picture {id} is off by {error:.2}");
                kept.insert(id);
                sent += 1;
            }
            Some("d") => {
                kept.remove(&id);
            }
            action => assert_eq!(action, Some("q")),
        }
    }
    assert!(sent >= 4, "{sent} pictures");
    assert!(kept.is_empty(), "left behind: {kept:?}");
}

#[test]
fn sixel_is_drawn_once_and_erased() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("run");
    record_run_of(&root, &desktop());
    let arguments = ["show", root.to_str().unwrap()];
    let mut session = Session::start_on(Plays::Foot, (40, 120), &arguments, &[]);
    session.wait_for("by attention");
    session.wait_for_bytes(0, b"\x1bP0;1q");
    let before = session.raw.len();
    session.press("3");
    session.wait_for("Group std");
    session.wait_for_bytes(before, b"\x1b8");
    session.press("q");
    let (_, raw) = session.end();
    let pictures = sixel_pictures(&raw);
    assert!(!pictures.is_empty());
    for decoded in &pictures {
        let error = mean_error(&decoded.pixels, &scaled_desktop(decoded));
        assert!(error < 12.0, "off by {error:.2}");
    }
}

#[test]
fn a_terminal_without_pictures_or_answers_gets_characters() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("run");
    record_run_of(&root, &desktop());
    let path = root.to_str().unwrap();
    let in_tmux = [("TERM", "tmux-256color")];
    for (plays, arguments, env) in [
        (Plays::Dumb, vec!["show", path], &[][..]),
        (Plays::Xterm, vec!["show", path], &[]),
        (Plays::Kitty, vec!["show", path, "--images", "cells"], &[]),
        (Plays::Kitty, vec!["show", path, "--images", "half"], &[]),
        (Plays::Kitty, vec!["show", path], &in_tmux),
    ] {
        let mut session = Session::start_on(plays, (40, 120), &arguments, env);
        session.wait_for("by attention");
        session.wait_for("▄");
        session.press(":about\r");
        session.wait_for("any key closes");
        session.press("q");
        session.wait_until_gone("any key closes");
        session.press("q");
        let (_, raw) = session.end();
        let commands = kitty_commands(&raw);
        let sent = commands.iter().filter(|one| one.key('a') == Some("T"));
        assert_eq!(sent.count(), 0, "{plays:?} {arguments:?}");
        assert_eq!(sixel_pictures(&raw).len(), 0, "{plays:?} {arguments:?}");
    }
}

#[test]
fn an_idle_console_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("run");
    record_run(&root);
    let mut session = Session::show(&root, &[]);
    session.wait_for("by attention");
    // A recorded run has no clock: after pictures and answers have come, there is silence.
    while let Ok(bytes) = session.output.recv_timeout(Duration::from_secs(3)) {
        session.take(&bytes);
        assert!(session.raw.len() < 100_000, "it never rests");
    }
    session.press("q");
    session.check_restored();
}

#[test]
fn a_terminal_that_stands_still_can_be_left() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("run");
    record_run(&root);
    let mut session = Session::show(&root, &[]);
    session.wait_for("by attention");
    session.is_stalled.store(true, Ordering::Relaxed);
    for _ in 0..200 {
        session.press("3412");
    }
    session.signal(Signal::TERM);
    // It ends although nobody reads; what it wrote last is still there to be read.
    session.child.wait().unwrap();
    session.is_stalled.store(false, Ordering::Relaxed);
    session.check_restored();
}

#[test]
fn a_shell_gets_its_terminal_back_while_the_console_sleeps() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("run");
    record_run_of(&root, &desktop());
    let mut session = Session::shell(Plays::Kitty, (40, 120), &[]);
    let line = format!("{} show {}\r", env!("CARGO_BIN_EXE_arpo"), root.display());
    session.press(&line);
    session.wait_for("by attention");
    session.wait_for(&PLACEHOLDER.to_string());
    for _ in 0..2 {
        let before = session.raw.len();
        session.press("\x1a");
        session.wait_for_bytes(before, b"a=d,d=I");
        session.wait_for_bytes(before, b"\x1b[?1049l");
        session.wait_for("Stopped");
        assert!(!session.screen.screen().alternate_screen());
        assert!(!session.screen.screen().hide_cursor());
        session.press("stty -a\r");
        session.wait_for(" icanon");
        let before = session.raw.len();
        session.press("clear; fg\r");
        session.wait_for("by attention");
        session.wait_for_bytes(before, b"a=T,U=1");
    }
    session.press("q");
    session.wait_until_gone("by attention");
    // Until the shell has its terminal again, the console would take the keys.
    session.wait_for("prompt>");
    session.press("exit\r");
    session.check_restored();
}
