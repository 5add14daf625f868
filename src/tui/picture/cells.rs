//! Dots to characters. With colors, each cell takes the block character and the two colors that
//! come nearest to its four dots: a half block, or a quadrant where that fits better. Without
//! colors, a character as bright as the cell.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;

use super::{Mark, Raster};
use crate::tui::theme::ColorDepth;

/// Block characters by which dots have the foreground: bit 0 top left, 1 top right, 2 bottom
/// left, 3 bottom right.
const BLOCKS: [&str; 16] = [
    " ", "▘", "▝", "▀", "▖", "▌", "▞", "▛", "▗", "▚", "▐", "▜", "▄", "▙", "▟", "█",
];

/// The eight ways to split four dots in two, the halves first so that they win ties: half blocks
/// are the safest in fonts.
const SPLITS: [u8; 8] = [
    0b1100, 0b1010, 0b0000, 0b0001, 0b0010, 0b0100, 0b1000, 0b0110,
];

/// From dark to bright.
const RAMP: &[u8] = b" .:-=+*#%@";

/// A quadrant must be this much nearer than a half block, in squared distance a cell: less is
/// noise that would make flat areas flicker.
const QUADRANT_GAIN: u32 = 600;

/// Draws a raster, with the mark over it, centered in `area`.
pub fn draw_raster(
    raster: &Raster,
    mark: Option<&Mark>,
    area: Rect,
    depth: ColorDepth,
    buffer: &mut Buffer,
) {
    let marked;
    let shown = match mark {
        Some(mark) => {
            marked = mark.drawn_on(raster);
            &marked
        }
        None => raster,
    };
    let left = area.x + area.width.saturating_sub(shown.columns) / 2;
    let top = area.y + area.height.saturating_sub(shown.rows) / 2;
    for row in 0..shown.rows.min(area.height) {
        for column in 0..shown.columns.min(area.width) {
            let Some(cell) = buffer.cell_mut(Position::new(left + column, top + row)) else {
                continue;
            };
            let quad = shown.quad(column, row);
            if depth == ColorDepth::None {
                let mut symbol = [0; 4];
                cell.set_symbol(shade(quad).encode_utf8(&mut symbol))
                    .set_style(Style::reset());
            } else {
                let (symbol, front, back) = nearest_block(quad);
                cell.set_symbol(symbol)
                    .set_style(Style::reset().fg(depth.color(front)).bg(depth.color(back)));
            }
        }
    }
}

/// The block character and its two colors nearest to the four dots.
pub(super) fn nearest_block(quad: [[u8; 3]; 4]) -> (&'static str, [u8; 3], [u8; 3]) {
    let mut best = (u32::MAX, 0, [0; 3], [0; 3]);
    for (place, mask) in SPLITS.into_iter().enumerate() {
        let front = mean(quad, mask);
        let back = mean(quad, !mask & 0b1111);
        let error: u32 = (0..4)
            .map(|dot| squared(quad[dot], if mask >> dot & 1 == 1 { front } else { back }))
            .sum();
        let penalty = if place < 3 { 0 } else { QUADRANT_GAIN };
        if error + penalty < best.0 {
            best = (error + penalty, mask, front, back);
        }
    }
    let (_, mask, front, back) = best;
    if squared(front, back) == 0 {
        return (" ", back, back);
    }
    (BLOCKS[usize::from(mask)], front, back)
}

/// Mean of the dots whose bit is set; of all dots if none is.
fn mean(quad: [[u8; 3]; 4], mask: u8) -> [u8; 3] {
    let mask = if mask == 0 { 0b1111 } else { mask };
    let mut sum = [0_u32; 3];
    for dot in (0..4).filter(|dot| mask >> dot & 1 == 1) {
        for channel in 0..3 {
            sum[channel] += u32::from(quad[dot][channel]);
        }
    }
    let count = mask.count_ones();
    sum.map(|total| ((total + count / 2) / count) as u8)
}

fn squared(a: [u8; 3], b: [u8; 3]) -> u32 {
    (0..3)
        .map(|channel| u32::from(a[channel].abs_diff(b[channel])).pow(2))
        .sum()
}

fn shade(quad: [[u8; 3]; 4]) -> char {
    let luminance: u32 = quad
        .iter()
        .map(|[r, g, b]| 3 * u32::from(*r) + 6 * u32::from(*g) + u32::from(*b))
        .sum();
    let place = luminance as usize * RAMP.len() / (4 * 10 * 256);
    char::from(RAMP[place.min(RAMP.len() - 1)])
}
