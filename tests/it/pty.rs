//! The console on a real pseudo-terminal: the built executable on a recorded run.

use std::io::{Read, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use arpo::screen::encode_png;
use arpo::store::{Line, RunDir};
use arpo::types::{ScreenSize, Screenshot};
use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use rustix::process::{Pid, Signal, kill_process};

use crate::tui::recorded_events;

/// A machine under load is slow, not wrong; the console answers within milliseconds.
const PATIENCE: Duration = Duration::from_secs(120);

/// The executable on a pseudo-terminal, and what its screen shows.
pub(crate) struct Session {
    child: Box<dyn Child + Send + Sync>,
    master: Box<dyn MasterPty + Send>,
    keys: Box<dyn Write + Send>,
    output: Receiver<Vec<u8>>,
    screen: vt100::Parser,
    raw: Vec<u8>,
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
        let pty = native_pty_system().openpty(size(24, 80)).unwrap();
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_arpo"));
        command.args(arguments);
        command.cwd(env!("CARGO_MANIFEST_DIR"));
        command.env("TERM", "xterm-256color");
        for name in ["NO_COLOR", "COLORTERM"] {
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
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut buffer) {
                if sender.send(buffer[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        let keys = pty.master.take_writer().unwrap();
        let screen = vt100::Parser::new(24, 80, 0);
        Self {
            child,
            master: pty.master,
            keys,
            output,
            screen,
            raw: Vec::new(),
        }
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// Reads until the screen contains `text`.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, text: &str) {
        while !self.screen.screen().contents().contains(text) {
            let Ok(bytes) = self.output.recv_timeout(PATIENCE) else {
                panic!("no {text:?} on:\n{}", self.screen.screen().contents());
            };
            self.take(&bytes);
        }
    }

    /// Reads until `text` has left the screen.
    #[track_caller]
    pub(crate) fn wait_until_gone(&mut self, text: &str) {
        while self.screen.screen().contents().contains(text) {
            let Ok(bytes) = self.output.recv_timeout(PATIENCE) else {
                panic!("{text:?} stays on:\n{}", self.screen.screen().contents());
            };
            self.take(&bytes);
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        self.screen.process(bytes);
        self.raw.extend_from_slice(bytes);
    }

    fn resize(&mut self, rows: u16, cols: u16) {
        self.master.resize(size(rows, cols)).unwrap();
        self.screen.screen_mut().set_size(rows, cols);
    }

    pub(crate) fn signal(&mut self, signal: Signal) {
        let pid = self.child.process_id().unwrap();
        kill_process(Pid::from_raw(pid as i32).unwrap(), signal).unwrap();
    }

    /// Waits for its end and checks that the terminal is as it was.
    #[track_caller]
    pub(crate) fn check_restored(mut self) -> u32 {
        let status = self.child.wait().unwrap();
        while let Ok(bytes) = self.output.recv_timeout(PATIENCE) {
            self.take(&bytes);
        }
        let screen = self.screen.screen();
        assert!(!screen.alternate_screen(), "still on the alternate screen");
        assert!(!screen.hide_cursor(), "the cursor is hidden");
        assert!(!screen.bracketed_paste(), "pastes are still bracketed");
        assert!(self.raw.windows(8).any(|bytes| bytes == b"\x1b[?1049l"));
        assert!(
            !screen.contents().contains("panicked"),
            "{}",
            screen.contents()
        );
        status.exit_code()
    }
}

/// A run's folder with the script's events and a picture for each of them.
fn record_run(root: &Path) {
    let run = RunDir::create(root, "").unwrap();
    let shot = Screenshot::new(
        ScreenSize {
            width: 8,
            height: 6,
        },
        vec![200; 8 * 6 * 3],
    );
    let png = encode_png(&shot).unwrap();
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
    session.press("4");
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
