//! What the console writes, read back by a terminal emulator and compared with what was drawn;
//! and how many bytes it takes.

use std::sync::Arc;

use arpo::tui::app::{App, Screen};
use arpo::tui::term::Painter;
use arpo::tui::theme::ColorDepth;
use arpo::tui::update::{Input, update};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Cell;
use ratatui::style::{Color, Modifier};

use crate::tui::{app, draw_once, press, window};

/// A terminal that the console draws on.
struct Replay {
    painter: Painter,
    screen: vt100::Parser,
}

impl Replay {
    fn new(columns: u16, rows: u16) -> Self {
        Self {
            painter: Painter::new(columns, rows),
            screen: vt100::Parser::new(rows, columns, 0),
        }
    }

    /// Draws; returns the number of bytes.
    fn draw(&mut self, app: &App) -> usize {
        self.painter.paint(app);
        let bytes = self.painter.frame(&[]);
        self.screen.process(&bytes);
        bytes.len()
    }

    fn resize(&mut self, columns: u16, rows: u16) {
        self.painter.set_size(columns, rows);
        self.screen.screen_mut().set_size(rows, columns);
    }

    /// Compares all cells with a drawing that never was bytes.
    #[track_caller]
    fn check(&self, app: &App, what: &str) {
        let (rows, columns) = self.screen.screen().size();
        let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
        draw_once(app, &mut terminal);
        let buffer = terminal.backend().buffer();
        for y in 0..rows {
            let mut x = 0;
            while x < columns {
                let cell = &buffer[(x, y)];
                let shown = self.screen.screen().cell(y, x).unwrap();
                assert!(
                    looks_alike(cell, shown),
                    "{what}: cell {x},{y} is {cell:?}, shown is {shown:?}"
                );
                x += (arpo::tui::text::width(cell.symbol()) as u16).max(1);
            }
        }
    }
}

fn emulated(color: Color) -> vt100::Color {
    let named = [
        Color::Black,
        Color::Red,
        Color::Green,
        Color::Yellow,
        Color::Blue,
        Color::Magenta,
        Color::Cyan,
        Color::Gray,
        Color::DarkGray,
        Color::LightRed,
        Color::LightGreen,
        Color::LightYellow,
        Color::LightBlue,
        Color::LightMagenta,
        Color::LightCyan,
        Color::White,
    ];
    match color {
        Color::Reset => vt100::Color::Default,
        Color::Rgb(red, green, blue) => vt100::Color::Rgb(red, green, blue),
        Color::Indexed(place) => vt100::Color::Idx(place),
        named_color => {
            let place = named.iter().position(|known| *known == named_color);
            vt100::Color::Idx(place.unwrap() as u8)
        }
    }
}

/// The block that looks the same with its colors exchanged.
fn complement(symbol: &str) -> Option<&'static str> {
    let pairs = ["▀▄", "▌▐", "▘▟", "▝▜", "▖▙", "▗▛", "▞▚"];
    pairs.iter().find_map(|pair| {
        let (one, two) = pair.split_at(3);
        match symbol {
            _ if symbol == one => Some(two),
            _ if symbol == two => Some(one),
            _ => None,
        }
    })
}

/// Whether an emulated cell looks as the drawn one: what a blank does not show may differ.
fn looks_alike(drawn: &Cell, shown: &vt100::Cell) -> bool {
    let symbol = if shown.has_contents() {
        shown.contents()
    } else {
        " "
    };
    let (front, back) = (emulated(drawn.fg), emulated(drawn.bg));
    let exchanged = complement(drawn.symbol()) == Some(symbol)
        && (shown.fgcolor(), shown.bgcolor()) == (back, front);
    let is_reversed = drawn.modifier.contains(Modifier::REVERSED);
    let is_blank = drawn.symbol() == " " && !is_reversed;
    let same_front =
        shown.fgcolor() == front && shown.bold() == drawn.modifier.contains(Modifier::BOLD);
    let same = drawn.symbol() == symbol && shown.bgcolor() == back && (is_blank || same_front);
    (same || exchanged)
        && shown.inverse() == is_reversed
        && shown.underline() == drawn.modifier.contains(Modifier::UNDERLINED)
}

/// Lets the pictures that a drawing wants be there.
fn give_pictures(app: &mut App, columns: u16, rows: u16) {
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
    let drawn = draw_once(app, &mut terminal);
    app.ui.pictures.want(&drawn.pictures);
    for key in drawn.pictures {
        let raster = Arc::new(window(&key));
        update(app, Input::Picture(key, Ok(raster)));
    }
}

/// Screens and popups, one after the other, popups over wide glyphs included.
const SCRIPT: [&str; 17] = [
    "", "j", "z", "z", "enter", "h", "l", ":", "t", "esc", "3", "tab", "4", "?", "esc", "1", "q",
];

#[test]
fn what_is_written_is_what_was_drawn() {
    for depth in [
        ColorDepth::None,
        ColorDepth::Ansi16,
        ColorDepth::Ansi256,
        ColorDepth::True,
    ] {
        for (columns, rows) in [(80, 24), (120, 40), (83, 25)] {
            let mut app = app(depth);
            let mut replay = Replay::new(columns, rows);
            update(&mut app, Input::Resize(columns, rows));
            for keys in SCRIPT {
                press(&mut app, keys);
                give_pictures(&mut app, columns, rows);
                replay.draw(&app);
                replay.check(&app, &format!("{depth:?} {columns}x{rows} after {keys:?}"));
            }
        }
    }
}

#[test]
fn another_size_is_drawn_anew() {
    let mut app = app(ColorDepth::Ansi256);
    let mut replay = Replay::new(120, 40);
    for (columns, rows) in [(120, 40), (20, 5), (1, 1), (80, 24), (120, 40)] {
        update(&mut app, Input::Resize(columns, rows));
        replay.resize(columns, rows);
        replay.draw(&app);
        replay.check(&app, &format!("{columns}x{rows}"));
    }
}

#[test]
fn nothing_new_is_no_bytes_and_a_clock_is_few() {
    let mut app = app(ColorDepth::Ansi256);
    for (screen, keys) in [
        ("fleet", "1"),
        ("rollout", "2"),
        ("train", "3"),
        ("evals", "4"),
        ("replay", "5"),
        ("logs", "6"),
    ] {
        press(&mut app, keys);
        update(&mut app, Input::Resize(120, 40));
        give_pictures(&mut app, 120, 40);
        let mut replay = Replay::new(120, 40);
        let whole = replay.draw(&app);
        assert!(whole < 30_000, "{screen}: {whole} bytes for a whole screen");
        assert_eq!(replay.draw(&app), 0, "{screen}");
    }
    // A second later, on a screen with one clock in its header and one in its status.
    press(&mut app, "6");
    update(&mut app, Input::Clock(1_000));
    let mut replay = Replay::new(120, 40);
    replay.draw(&app);
    update(&mut app, Input::Clock(2_000));
    let counters = replay.draw(&app);
    assert!(
        (1..=40).contains(&counters),
        "{counters} bytes for two counters"
    );
    assert_eq!(app.ui.screen, Screen::Logs);
}
