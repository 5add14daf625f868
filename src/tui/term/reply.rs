//! What the terminal answers, told apart from what the operator types.
//!
//! Both come on the same line. Parsers of keys take an answer that they do not know for alt and
//! letters, so the splitter comes first.

use std::time::Duration;

/// After an escape alone: it was the key.
const LONE: Duration = Duration::from_millis(25);
/// In the middle of something longer: the rest is late, on a slow link, or never comes.
const CUT_SHORT: Duration = Duration::from_millis(500);
/// No answer is longer.
const MAX_BYTES: usize = 4096;

/// An answer of the terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// It is there (DSR 5).
    Alive,
    /// Where its cursor is, from 1.
    Cursor {
        /// Row.
        row: u16,
        /// Column.
        column: u16,
    },
    /// What it can do by its own account (DA1); 4 is sixel.
    Attributes(Vec<u16>),
    /// Its name and version (XTVERSION).
    Brand(String),
    /// How it stands with a mode (DECRPM): 0 unknown, 1 set, 2 reset, 3 and 4 for ever so.
    Mode {
        /// Which.
        mode: u16,
        /// How.
        setting: u8,
    },
    /// What it says to a picture command of the kitty protocol.
    Picture {
        /// Id of the picture.
        id: u32,
        /// `OK`, or what is wrong.
        message: String,
    },
    /// Its background, red, green, blue.
    Background([u8; 3]),
    /// Pixels of a cell, width and height.
    CellPixels(u16, u16),
    /// Pixels of the text area, width and height.
    TextPixels(u16, u16),
    /// How many colors sixel pictures may have.
    SixelColors(u32),
    /// Something that nobody asked for.
    Unasked,
}

/// A part of what came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Keys, mouse, pastes: for the parser of those.
    Input(Vec<u8>),
    /// The escape key, and nothing else.
    Escape,
    /// An answer, and its bytes for people.
    Reply(Reply, String),
}

/// Splits bytes as they come.
#[derive(Debug, Default)]
pub struct Splitter {
    pending: Vec<u8>,
    is_in_paste: bool,
}

const PASTE_BEGINS: &[u8] = b"\x1b[200~";
const PASTE_ENDS: &[u8] = b"\x1b[201~";

/// What stands at the beginning of some bytes.
enum Front {
    /// So many bytes of input.
    Input(usize),
    /// The escape key.
    Escape,
    /// An answer of so many bytes.
    Reply(usize, Reply),
    /// It cannot be told yet.
    Open,
}

impl Splitter {
    /// Takes bytes in; returns the parts that are whole.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<Piece> {
        self.pending.extend_from_slice(bytes);
        let mut pieces = Pieces::default();
        let mut at = 0;
        while at < self.pending.len() {
            let rest = &self.pending[at..];
            if self.is_in_paste {
                let (length, ends) = paste_part(rest);
                if length == 0 {
                    break;
                }
                self.is_in_paste = !ends;
                pieces.input(&rest[..length]);
                at += length;
                continue;
            }
            match front(rest) {
                Front::Input(length) => {
                    self.is_in_paste = &rest[..length] == PASTE_BEGINS;
                    pieces.input(&rest[..length]);
                    at += length;
                }
                Front::Escape => {
                    pieces.0.push(Piece::Escape);
                    at += 1;
                }
                Front::Reply(length, reply) => {
                    let bytes = rest[..length].escape_ascii().to_string();
                    pieces.0.push(Piece::Reply(reply, bytes));
                    at += length;
                }
                Front::Open => break,
            }
        }
        self.pending.drain(..at);
        if self.pending.len() > MAX_BYTES {
            self.pending.clear();
        }
        pieces.0
    }

    /// How long to wait for the rest of what came, if anything is open.
    pub fn patience(&self) -> Option<Duration> {
        match self.pending.len() {
            0 => None,
            _ if self.is_in_paste => Some(CUT_SHORT),
            1 | 2 => Some(LONE),
            _ => Some(CUT_SHORT),
        }
    }

    /// The rest did not come: an escape was a key, with a letter it was alt; half an answer is
    /// dropped.
    pub fn give_up(&mut self) -> Option<Piece> {
        let pending = std::mem::take(&mut self.pending);
        match pending.as_slice() {
            [] => None,
            [0x1b] => Some(Piece::Escape),
            _ if self.is_in_paste || pending.len() == 2 => Some(Piece::Input(pending)),
            _ => None,
        }
    }
}

#[derive(Default)]
struct Pieces(Vec<Piece>);

impl Pieces {
    fn input(&mut self, bytes: &[u8]) {
        match self.0.last_mut() {
            Some(Piece::Input(before)) => before.extend_from_slice(bytes),
            _ => self.0.push(Piece::Input(bytes.to_vec())),
        }
    }
}

/// How much of a paste can be handed on, and whether it ends there.
fn paste_part(bytes: &[u8]) -> (usize, bool) {
    let ends = bytes
        .windows(PASTE_ENDS.len())
        .position(|window| window == PASTE_ENDS);
    if let Some(place) = ends {
        return (place + PASTE_ENDS.len(), true);
    }
    // The end may be cut in two.
    let open = (1..PASTE_ENDS.len())
        .rev()
        .find(|length| bytes.ends_with(&PASTE_ENDS[..*length]));
    (bytes.len() - open.unwrap_or(0), false)
}

fn front(bytes: &[u8]) -> Front {
    if bytes[0] != 0x1b {
        let length = bytes.iter().position(|byte| *byte == 0x1b);
        return Front::Input(length.unwrap_or(bytes.len()));
    }
    match bytes.get(1) {
        None => Front::Open,
        Some(0x1b) => Front::Escape,
        Some(b'[') => front_csi(bytes),
        Some(b'_' | b'P' | b']' | b'^' | b'X') => front_string(bytes),
        Some(b'O') if bytes.len() == 2 => Front::Open,
        Some(b'O') => Front::Input(3),
        Some(_) => Front::Input(2),
    }
}

fn front_csi(bytes: &[u8]) -> Front {
    let inside = bytes[2..]
        .iter()
        .position(|byte| !(0x20..=0x3f).contains(byte));
    let Some(inside) = inside else {
        return Front::Open;
    };
    let length = inside + 3;
    let last = bytes[length - 1];
    if last == 0x1b {
        // Cut short by the next one.
        return Front::Input(length - 1);
    }
    let parameters = String::from_utf8_lossy(&bytes[2..length - 1]);
    match csi_reply(&parameters, last) {
        Some(reply) => Front::Reply(length, reply),
        None => Front::Input(length),
    }
}

/// The answer that a CSI sequence is, unless it is input.
fn csi_reply(parameters: &str, last: u8) -> Option<Reply> {
    let (private, digits) = match parameters.chars().next() {
        Some(mark @ ('?' | '>' | '=' | '<')) => (Some(mark), &parameters[1..]),
        _ => (None, parameters),
    };
    let numbers: Vec<u32> = digits
        .trim_end_matches('$')
        .split([';', ':'])
        .map(|number| number.parse().unwrap_or(0))
        .collect();
    let number = |place: usize| numbers.get(place).copied().unwrap_or(0);
    let cells = |place: usize| number(place).min(u32::from(u16::MAX)) as u16;
    match (private, last) {
        (None, b'n') if number(0) == 0 || number(0) == 3 => Some(Reply::Alive),
        (_, b'n') => Some(Reply::Unasked),
        (Some('?'), b'y') => Some(Reply::Mode {
            mode: cells(0),
            setting: number(1).min(255) as u8,
        }),
        (None, b't') if number(0) == 6 => Some(Reply::CellPixels(cells(2), cells(1))),
        (None, b't') if number(0) == 4 => Some(Reply::TextPixels(cells(2), cells(1))),
        (Some('?'), b'c') => Some(Reply::Attributes(
            numbers.iter().map(|number| *number as u16).collect(),
        )),
        (Some('?'), b'S') if number(0) == 1 && number(1) == 0 => {
            Some(Reply::SixelColors(number(2)))
        }
        // Row 1 with a modifier is F3.
        (None, b'R') if numbers.len() == 2 && !(number(0) == 1 && number(1) <= 8) => {
            Some(Reply::Cursor {
                row: cells(0),
                column: cells(1),
            })
        }
        (_, b'y' | b't') | (Some('?' | '>' | '='), b'c' | b'u' | b'S' | b'R') => {
            Some(Reply::Unasked)
        }
        _ => None,
    }
}

fn front_string(bytes: &[u8]) -> Front {
    let mut place = 2;
    while place < bytes.len() {
        match bytes[place] {
            0x07 => return string_reply(bytes, place, place + 1),
            0x1b if bytes.get(place + 1) == Some(&b'\\') => {
                return string_reply(bytes, place, place + 2);
            }
            // Alt and a letter, then another key.
            0x1b if place + 1 < bytes.len() => return Front::Input(place),
            _ => place += 1,
        }
    }
    Front::Open
}

fn string_reply(bytes: &[u8], end: usize, length: usize) -> Front {
    let text = String::from_utf8_lossy(&bytes[2..end]);
    let reply = match bytes[1] {
        b'P' => text
            .strip_prefix(">|")
            .map(|brand| Reply::Brand(brand.to_owned())),
        b'_' => text.strip_prefix('G').and_then(picture_reply),
        b']' => text
            .strip_prefix("11;")
            .and_then(color)
            .map(Reply::Background),
        _ => None,
    };
    Front::Reply(length, reply.unwrap_or(Reply::Unasked))
}

fn picture_reply(text: &str) -> Option<Reply> {
    let (keys, message) = text.split_once(';')?;
    let id = keys.split(',').find_map(|key| key.strip_prefix("i="))?;
    Some(Reply::Picture {
        id: id.parse().ok()?,
        message: message.to_owned(),
    })
}

/// `rgb:RRRR/GGGG/BBBB`, one to four digits a channel.
fn color(text: &str) -> Option<[u8; 3]> {
    let channels = text
        .strip_prefix("rgb:")
        .or_else(|| text.strip_prefix("rgba:"))?;
    let mut values = channels.split('/').map(|digits| {
        let value = u32::from_str_radix(digits, 16).ok()?;
        let most = 16_u32.checked_pow(digits.len() as u32)?.checked_sub(1)?;
        Some((value * 255 / most.max(1)) as u8)
    });
    Some([values.next()??, values.next()??, values.next()??])
}
