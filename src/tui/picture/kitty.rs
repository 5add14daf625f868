//! Pictures by the kitty protocol: sent once under an id, shown wherever cells name that id.
//!
//! The cells are text like any other: popups, scrolling and redrawing need no care. Sending a
//! picture again under its id replaces what those cells show.

use std::num::NonZeroU16;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ratatui::buffer::{Buffer, CellDiffOption};
use ratatui::layout::{Position, Rect};
use ratatui::style::{Color, Style};

use super::quantize::Indexed;
use crate::tui::theme::ColorDepth;

/// Stands for a part of a picture.
pub const PLACEHOLDER: char = '\u{10eeee}';
/// Characters of base64 in one command.
const CHUNK: usize = 4096;
/// First id where ids are 24-bit colors; far from those that others choose.
const FIRST_ID: u32 = 0x00a7_0000;
/// Highest id where ids are colors of the 256.
const MAX_PALETTE_ID: u32 = 255;

/// The marks that say which row or column of a picture a placeholder shows, in order: ranges of
/// combining characters above letters, as the protocol lists them.
const MARKS: [(u32, u32); 71] = [
    (0x0305, 0x0305),
    (0x030d, 0x030e),
    (0x0310, 0x0310),
    (0x0312, 0x0312),
    (0x033d, 0x033f),
    (0x0346, 0x0346),
    (0x034a, 0x034c),
    (0x0350, 0x0352),
    (0x0357, 0x0357),
    (0x035b, 0x035b),
    (0x0363, 0x036f),
    (0x0483, 0x0487),
    (0x0592, 0x0595),
    (0x0597, 0x0599),
    (0x059c, 0x05a1),
    (0x05a8, 0x05a9),
    (0x05ab, 0x05ac),
    (0x05af, 0x05af),
    (0x05c4, 0x05c4),
    (0x0610, 0x0617),
    (0x0657, 0x065b),
    (0x065d, 0x065e),
    (0x06d6, 0x06dc),
    (0x06df, 0x06e2),
    (0x06e4, 0x06e4),
    (0x06e7, 0x06e8),
    (0x06eb, 0x06ec),
    (0x0730, 0x0730),
    (0x0732, 0x0733),
    (0x0735, 0x0736),
    (0x073a, 0x073a),
    (0x073d, 0x073d),
    (0x073f, 0x0741),
    (0x0743, 0x0743),
    (0x0745, 0x0745),
    (0x0747, 0x0747),
    (0x0749, 0x074a),
    (0x07eb, 0x07f1),
    (0x07f3, 0x07f3),
    (0x0816, 0x0819),
    (0x081b, 0x0823),
    (0x0825, 0x0827),
    (0x0829, 0x082d),
    (0x0951, 0x0951),
    (0x0953, 0x0954),
    (0x0f82, 0x0f83),
    (0x0f86, 0x0f87),
    (0x135d, 0x135f),
    (0x17dd, 0x17dd),
    (0x193a, 0x193a),
    (0x1a17, 0x1a17),
    (0x1a75, 0x1a7c),
    (0x1b6b, 0x1b6b),
    (0x1b6d, 0x1b73),
    (0x1cd0, 0x1cd2),
    (0x1cda, 0x1cdb),
    (0x1ce0, 0x1ce0),
    (0x1dc0, 0x1dc1),
    (0x1dc3, 0x1dc9),
    (0x1dcb, 0x1dcc),
    (0x1dd1, 0x1de6),
    (0x1dfe, 0x1dfe),
    (0x20d0, 0x20d1),
    (0x20d4, 0x20d7),
    (0x20db, 0x20dc),
    (0x20e1, 0x20e1),
    (0x20e7, 0x20e7),
    (0x20e9, 0x20e9),
    (0x20f0, 0x20f0),
    (0x2cef, 0x2cf1),
    (0x2de0, 0x2dff),
];

/// The id of the picture in slot `slot`, representable as a foreground color of this depth.
pub fn image_id(slot: usize, depth: ColorDepth) -> u32 {
    let slot = slot as u32;
    if depth == ColorDepth::True {
        FIRST_ID + 1 + slot
    } else {
        1 + slot.min(MAX_PALETTE_ID - 1)
    }
}

/// The color that names an id to the terminal.
fn color_of_id(id: u32) -> Color {
    if id <= MAX_PALETTE_ID {
        Color::Indexed(id as u8)
    } else {
        let [_, red, green, blue] = id.to_be_bytes();
        Color::Rgb(red, green, blue)
    }
}

/// The mark of row or column `place`; `None` beyond what the list reaches, far above any tile.
pub(super) fn place_mark(place: u16) -> Option<char> {
    let mut left = u32::from(place);
    for (first, last) in MARKS {
        let count = last - first + 1;
        if left < count {
            return char::from_u32(first + left);
        }
        left -= count;
    }
    None
}

/// Makes the cells of `area` show the picture of this id. Each cell names its row and column, so
/// that one under the edge of a popup is right too.
pub fn draw_placeholders(id: u32, area: Rect, buffer: &mut Buffer) {
    let style = Style::reset().fg(color_of_id(id));
    for row in 0..area.height {
        for column in 0..area.width {
            let place = Position::new(area.x + column, area.y + row);
            let marks = (place_mark(row), place_mark(column));
            let ((Some(row), Some(column)), Some(cell)) = (marks, buffer.cell_mut(place)) else {
                continue;
            };
            let symbol: String = [PLACEHOLDER, row, column].iter().collect();
            cell.set_symbol(&symbol).set_style(style);
            cell.set_diff_option(CellDiffOption::ForcedWidth(NonZeroU16::MIN));
        }
    }
}

/// Sends a picture under an id, to be shown in `columns` x `rows` cells by placeholders.
pub fn send_image(id: u32, picture: &Indexed, columns: u16, rows: u16) -> Result<Vec<u8>, String> {
    let data = STANDARD.encode(picture.to_png()?);
    let mut bytes = Vec::with_capacity(data.len() + 256);
    let chunks = data.len().div_ceil(CHUNK).max(1);
    for (number, chunk) in data.as_bytes().chunks(CHUNK).enumerate() {
        let more = u8::from(number + 1 < chunks);
        let keys = if number == 0 {
            format!("a=T,U=1,q=2,f=100,i={id},c={columns},r={rows},m={more}")
        } else {
            format!("q=2,m={more}")
        };
        bytes.extend_from_slice(b"\x1b_G");
        bytes.extend_from_slice(keys.as_bytes());
        bytes.push(b';');
        bytes.extend_from_slice(chunk);
        bytes.extend_from_slice(b"\x1b\\");
    }
    Ok(bytes)
}

/// Deletes the picture of an id, its data too.
pub fn delete_image(id: u32) -> Vec<u8> {
    format!("\x1b_Ga=d,d=I,i={id},q=2\x1b\\").into_bytes()
}
