//! Cells to bytes, as few as possible: the cursor's place and the pen's colors are remembered,
//! moves are relative where that is shorter, one command changes all attributes at once, and a
//! frame without changes is no bytes at all.

use std::convert::Infallible;
use std::fmt::Write as _;

use ratatui::backend::{Backend, ClearType, WindowSize};
use ratatui::buffer::{Cell, CellWidth};
use ratatui::layout::{Position, Size};
use ratatui::style::{Color, Modifier};
use unicode_width::UnicodeWidthChar;

/// First and last code point that fonts draw as lines and blocks. Widths of others may be
/// ambiguous; where these are, no screen holds together anyway.
const LINES_AND_BLOCKS: std::ops::RangeInclusive<char> = '\u{2500}'..='\u{259f}';

/// Pairs of block characters that look the same with their colors exchanged.
const COMPLEMENTS: [(&str, &str); 7] = [
    ("▀", "▄"),
    ("▌", "▐"),
    ("▘", "▟"),
    ("▝", "▜"),
    ("▖", "▙"),
    ("▗", "▛"),
    ("▞", "▚"),
];

/// Attributes that show on a blank.
const ON_BLANKS: Modifier = Modifier::REVERSED
    .union(Modifier::UNDERLINED)
    .union(Modifier::CROSSED_OUT)
    .union(Modifier::SLOW_BLINK)
    .union(Modifier::RAPID_BLINK);

/// What the terminal writes with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pen {
    front: Color,
    back: Color,
    modifiers: Modifier,
}

impl Pen {
    const PLAIN: Pen = Pen {
        front: Color::Reset,
        back: Color::Reset,
        modifiers: Modifier::empty(),
    };
}

/// A backend that writes to memory; whoever owns it takes the bytes.
#[derive(Debug)]
pub struct LeanBackend {
    bytes: String,
    size: Size,
    /// Where the terminal's cursor is, as far as that is known. A column past the last one: the
    /// last one was written and the next character would wrap.
    at: Option<(u16, u16)>,
    pen: Option<Pen>,
    is_cursor_shown: bool,
}

impl LeanBackend {
    /// For a terminal of this size, in cells. Nothing is assumed of its cursor.
    pub fn new(size: Size) -> Self {
        Self {
            bytes: String::new(),
            size,
            at: None,
            pen: None,
            is_cursor_shown: false,
        }
    }

    /// The terminal has this size now.
    pub fn set_size(&mut self, size: Size) {
        if size != self.size {
            self.size = size;
            self.at = None;
        }
    }

    /// What was written since the last time.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes).into_bytes()
    }

    /// Others wrote to the terminal: where its cursor is and what it writes with is unknown.
    pub fn forget(&mut self) {
        self.at = None;
        self.pen = None;
    }

    fn go(&mut self, x: u16, y: u16) {
        let last = self.at.replace((x, y));
        match last {
            Some(at) if at == (x, y) => {}
            Some((from, row)) if row == y && from < x && from < self.size.width => match x - from {
                1 => self.bytes.push_str("\x1b[C"),
                by => {
                    let _ = write!(self.bytes, "\x1b[{by}C");
                }
            },
            Some((_, row)) if row + 1 == y && x == 0 => self.bytes.push_str("\r\n"),
            Some((from, row)) if row + 1 == y && from == x => self.bytes.push('\n'),
            _ if x == 0 => {
                let _ = write!(self.bytes, "\x1b[{}H", y + 1);
            }
            _ => {
                let _ = write!(self.bytes, "\x1b[{};{}H", y + 1, x + 1);
            }
        }
    }

    fn set_pen(&mut self, wanted: Pen) {
        if self.pen == Some(wanted) {
            return;
        }
        let fresh = codes_from_plain(wanted);
        let shorter = match self.pen {
            Some(pen) => {
                let changed = codes_between(pen, wanted);
                if changed.len() <= fresh.len() {
                    changed
                } else {
                    fresh
                }
            }
            None => fresh,
        };
        let _ = write!(self.bytes, "\x1b[{shorter}m");
        self.pen = Some(wanted);
    }

    fn put(&mut self, x: u16, y: u16, cell: &Cell) {
        self.go(x, y);
        let width = cell.cell_width();
        // What takes no room would leave the old character.
        let symbol = if width == 0 { " " } else { cell.symbol() };
        let wanted = Pen {
            front: cell.fg,
            back: cell.bg,
            modifiers: cell.modifier,
        };
        let pen = self.pen.unwrap_or(Pen::PLAIN);
        let (symbol, wanted) = cheaper(symbol, wanted, pen);
        self.set_pen(wanted);
        self.bytes.push_str(symbol);
        self.at = (!is_ambiguous(symbol)).then_some(((x + width.max(1)).min(self.size.width), y));
    }
}

/// The same look for fewer bytes: a blank has no foreground, blocks may exchange their colors.
fn cheaper(symbol: &str, wanted: Pen, pen: Pen) -> (&str, Pen) {
    if symbol == " " && !wanted.modifiers.intersects(ON_BLANKS) {
        let blank = Pen {
            front: pen.front,
            back: wanted.back,
            modifiers: pen.modifiers.difference(ON_BLANKS),
        };
        return (symbol, blank);
    }
    let is_plain = wanted.modifiers.is_empty();
    if !is_plain || wanted.front == Color::Reset || wanted.back == Color::Reset {
        return (symbol, wanted);
    }
    let other = COMPLEMENTS.iter().find_map(|(one, two)| match symbol {
        _ if symbol == *one => Some(*two),
        _ if symbol == *two => Some(*one),
        _ => None,
    });
    let exchanged = Pen {
        front: wanted.back,
        back: wanted.front,
        ..wanted
    };
    match other {
        Some(other) if changes(pen, exchanged) < changes(pen, wanted) => (other, exchanged),
        _ => (symbol, wanted),
    }
}

fn changes(from: Pen, to: Pen) -> u8 {
    u8::from(from.front != to.front) + u8::from(from.back != to.back)
}

/// Whether terminals disagree how many cells it takes.
fn is_ambiguous(symbol: &str) -> bool {
    let mut chars = symbol.chars();
    let Some(first) = chars.next() else {
        return false;
    };
    if first.is_ascii() && chars.clone().next().is_none() {
        return false;
    }
    if first == crate::tui::picture::PLACEHOLDER || LINES_AND_BLOCKS.contains(&first) {
        return false;
    }
    chars.next().is_some() || first.width() != first.width_cjk()
}

/// Parameters that turn a plain pen into this one; none for a plain one.
fn codes_from_plain(pen: Pen) -> String {
    if pen == Pen::PLAIN {
        return String::new();
    }
    let mut codes = Codes(String::from("0"));
    codes.add_modifiers(pen.modifiers);
    codes.add_colors(Pen::PLAIN, pen);
    codes.0
}

/// Parameters that turn a pen into another one.
fn codes_between(from: Pen, to: Pen) -> String {
    let mut codes = Codes(String::new());
    let gone = from.modifiers.difference(to.modifiers);
    let mut added = to.modifiers.difference(from.modifiers);
    let weights = Modifier::BOLD.union(Modifier::DIM);
    if gone.intersects(weights) {
        codes.add(22);
        added |= to.modifiers.intersection(weights);
    }
    let ends = [
        (Modifier::ITALIC, 23),
        (Modifier::UNDERLINED, 24),
        (Modifier::SLOW_BLINK.union(Modifier::RAPID_BLINK), 25),
        (Modifier::REVERSED, 27),
        (Modifier::HIDDEN, 28),
        (Modifier::CROSSED_OUT, 29),
    ];
    for (modifier, code) in ends {
        if gone.intersects(modifier) {
            codes.add(code);
        }
    }
    codes.add_modifiers(added);
    codes.add_colors(from, to);
    codes.0
}

/// Parameters, one after the other.
struct Codes(String);

impl Codes {
    fn add(&mut self, code: u8) {
        let mark = if self.0.is_empty() { "" } else { ";" };
        let _ = write!(self.0, "{mark}{code}");
    }

    fn add_modifiers(&mut self, modifiers: Modifier) {
        let begins = [
            (Modifier::BOLD, 1),
            (Modifier::DIM, 2),
            (Modifier::ITALIC, 3),
            (Modifier::UNDERLINED, 4),
            (Modifier::SLOW_BLINK, 5),
            (Modifier::RAPID_BLINK, 6),
            (Modifier::REVERSED, 7),
            (Modifier::HIDDEN, 8),
            (Modifier::CROSSED_OUT, 9),
        ];
        for (modifier, code) in begins {
            if modifiers.contains(modifier) {
                self.add(code);
            }
        }
    }

    fn add_colors(&mut self, from: Pen, to: Pen) {
        if from.front != to.front {
            self.add_color(to.front, 30);
        }
        if from.back != to.back {
            self.add_color(to.back, 40);
        }
    }

    /// A color, counted from 30 for the foreground, from 40 for the background.
    fn add_color(&mut self, color: Color, base: u8) {
        let of_16 = |place: u8| {
            if place < 8 {
                base + place
            } else {
                base + 60 + place - 8
            }
        };
        match color {
            Color::Reset => self.add(base + 9),
            Color::Black => self.add(of_16(0)),
            Color::Red => self.add(of_16(1)),
            Color::Green => self.add(of_16(2)),
            Color::Yellow => self.add(of_16(3)),
            Color::Blue => self.add(of_16(4)),
            Color::Magenta => self.add(of_16(5)),
            Color::Cyan => self.add(of_16(6)),
            Color::Gray => self.add(of_16(7)),
            Color::DarkGray => self.add(of_16(8)),
            Color::LightRed => self.add(of_16(9)),
            Color::LightGreen => self.add(of_16(10)),
            Color::LightYellow => self.add(of_16(11)),
            Color::LightBlue => self.add(of_16(12)),
            Color::LightMagenta => self.add(of_16(13)),
            Color::LightCyan => self.add(of_16(14)),
            Color::White => self.add(of_16(15)),
            Color::Indexed(place) => {
                for code in [base + 8, 5, place] {
                    self.add(code);
                }
            }
            Color::Rgb(red, green, blue) => {
                for code in [base + 8, 2, red, green, blue] {
                    self.add(code);
                }
            }
        }
    }
}

impl Backend for LeanBackend {
    type Error = Infallible;

    fn draw<'a, I>(&mut self, content: I) -> Result<(), Infallible>
    where
        I: Iterator<Item = (u16, u16, &'a Cell)>,
    {
        for (x, y, cell) in content {
            self.put(x, y, cell);
        }
        Ok(())
    }

    fn hide_cursor(&mut self) -> Result<(), Infallible> {
        if std::mem::take(&mut self.is_cursor_shown) {
            self.bytes.push_str("\x1b[?25l");
        }
        Ok(())
    }

    fn show_cursor(&mut self) -> Result<(), Infallible> {
        if !std::mem::replace(&mut self.is_cursor_shown, true) {
            self.bytes.push_str("\x1b[?25h");
        }
        Ok(())
    }

    fn get_cursor_position(&mut self) -> Result<Position, Infallible> {
        Ok(self.at.unwrap_or_default().into())
    }

    fn set_cursor_position<P: Into<Position>>(&mut self, position: P) -> Result<(), Infallible> {
        let Position { x, y } = position.into();
        if x < self.size.width {
            self.go(x, y);
        }
        Ok(())
    }

    fn clear(&mut self) -> Result<(), Infallible> {
        self.clear_region(ClearType::All)
    }

    fn clear_region(&mut self, clear_type: ClearType) -> Result<(), Infallible> {
        self.set_pen(Pen::PLAIN);
        self.bytes.push_str(match clear_type {
            ClearType::All => "\x1b[2J",
            ClearType::AfterCursor => "\x1b[J",
            ClearType::BeforeCursor => "\x1b[1J",
            ClearType::CurrentLine => "\x1b[2K",
            ClearType::UntilNewLine => "\x1b[K",
        });
        Ok(())
    }

    fn size(&self) -> Result<Size, Infallible> {
        Ok(self.size)
    }

    fn window_size(&mut self) -> Result<WindowSize, Infallible> {
        Ok(WindowSize {
            columns_rows: self.size,
            pixels: Size::default(),
        })
    }

    fn flush(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}
