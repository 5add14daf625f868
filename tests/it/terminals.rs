//! Terminals of several sizes and colors, and what is left of them when a console is killed.

use std::fs;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};
use vt100::Color;

use crate::pty::{Looks, Plays, Session, record_run};

/// Each screen's key and words of it.
const SCREENS: [(&str, &str); 6] = [
    ("3", "Group std"),
    ("4", "evaluations"),
    ("5", "stored"),
    ("6", "source all"),
    ("2", "Thought at step"),
    ("1", "by attention"),
];

/// A way to show colors.
struct Mode {
    env: &'static [(&'static str, &'static str)],
    arguments: &'static [&'static str],
    /// Whether a color may be on the screen.
    allows: fn(Color) -> bool,
    /// Whether something on the screen shows that the mode is on.
    shows: fn(&[Looks]) -> bool,
}

fn has_color(cells: &[Looks], is_so: fn(Color) -> bool) -> bool {
    cells
        .iter()
        .any(|(letters, ground, ..)| is_so(*letters) || is_so(*ground))
}

const MODES: [Mode; 5] = [
    Mode {
        env: &[("COLORTERM", "truecolor")],
        arguments: &[],
        allows: |_| true,
        shows: |cells| has_color(cells, |color| matches!(color, Color::Rgb(..))),
    },
    Mode {
        env: &[],
        arguments: &[],
        allows: |color| !matches!(color, Color::Rgb(..)),
        shows: |cells| has_color(cells, |color| matches!(color, Color::Idx(16..))),
    },
    Mode {
        env: &[("TERM", "xterm")],
        arguments: &[],
        allows: |color| matches!(color, Color::Default | Color::Idx(..16)),
        shows: |cells| has_color(cells, |color| matches!(color, Color::Idx(_))),
    },
    Mode {
        env: &[("NO_COLOR", "1")],
        arguments: &[],
        allows: |color| color == Color::Default,
        // What is selected is reversed.
        shows: |cells| cells.iter().any(|(.., is_reversed)| *is_reversed),
    },
    Mode {
        env: &[],
        arguments: &["--ascii"],
        allows: |color| !matches!(color, Color::Rgb(..)),
        shows: |_| true,
    },
];

/// Frames, charts and pictures: what ASCII does without.
fn is_drawn(glyph: char) -> bool {
    ('\u{2500}'..='\u{28ff}').contains(&glyph)
}

#[test]
fn every_screen_keeps_to_the_colors_and_glyphs_of_its_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("demo-1129-1631");
    record_run(&run);
    for mode in &MODES {
        for room in [(24, 80), (40, 120)] {
            let mut arguments = vec!["show", run.to_str().unwrap()];
            arguments.extend(mode.arguments);
            let mut session = Session::start_on(Plays::Xterm, room, &arguments, mode.env);
            session.wait_for("by attention");
            for (key, words) in SCREENS {
                session.press(key);
                session.wait_for(words);
                session.settle();
                let what = format!("{words} {room:?} {:?} {:?}", mode.env, mode.arguments);
                let cells = session.looks(0);
                assert!((mode.shows)(&cells), "{what}:\n{}", session.text());
                for (letters, ground, ..) in cells {
                    let is_allowed = (mode.allows)(letters) && (mode.allows)(ground);
                    assert!(is_allowed, "{what}: {letters:?} on {ground:?}");
                }
                let is_ascii = mode.arguments.contains(&"--ascii");
                let drawn = session.text().chars().any(is_drawn);
                assert_eq!(drawn, !is_ascii, "{what}:\n{}", session.text());
            }
            session.press("q");
            assert_eq!(session.check_restored(), 0);
        }
    }
}

#[test]
fn a_terminal_made_tiny_and_large_again_shows_what_it_showed() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    record_run(&run);
    let mut session = Session::start(&["show", run.to_str().unwrap()], &[]);
    session.wait_for("by attention");
    for (key, words) in SCREENS {
        session.press(key);
        session.wait_for(words);
        session.settle();
        let before = session.rows();
        session.resize(5, 20);
        session.settle();
        session.resize(24, 80);
        session.read_until("not what it was", |session| session.rows() == before);
    }
    session.press("q");
    assert_eq!(session.check_restored(), 0);
}

/// The only process that `parent` started and that runs `program`.
fn child_of(parent: u32) -> Pid {
    let children = format!("/proc/{parent}/task/{parent}/children");
    let children = fs::read_to_string(children).unwrap();
    let [child] = children.split_whitespace().collect::<Vec<_>>()[..] else {
        panic!("children {children:?}");
    };
    Pid::from_raw(child.parse().unwrap()).unwrap()
}

fn kill_console(session: &mut Session, run: &Path) {
    let line = format!("{} show {}\r", env!("CARGO_BIN_EXE_arpo"), run.display());
    session.press(&line);
    session.wait_for("by attention");
    session.press(":mouse\r");
    session.wait_for("mouse on");
    let before = session.written();
    kill_process(child_of(session.pid()), Signal::KILL).unwrap();
    for mode in [
        "\x1b[?2026l",
        "\x1b[?1000l",
        "\x1b[?2004l",
        "\x1b[?1049l",
        "\x1b[?25h",
    ] {
        session.wait_for_bytes(before, mode.as_bytes());
    }
}

#[test]
fn a_killed_console_leaves_a_terminal_that_works() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    record_run(&run);
    let mut session = Session::shell(Plays::Xterm, (24, 80), &[]);
    for _ in 0..2 {
        kill_console(&mut session, &run);
        session.press("\r");
        session.wait_for("prompt>");
        session.press("clear; stty -a\r");
        session.wait_for(" icanon");
        for mode in ["isig icanon ", " echo ", " icrnl ", "opost "] {
            session.wait_for(mode);
        }
    }
    session.press("exit\r");
    session.check_given_back();
}
