//! Dots to characters. With colors, each cell takes the block character and the two colors that
//! come nearest to its dots. Without colors, a character as bright as the cell.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;
use ratatui::symbols::pixel::{OCTANTS, QUADRANTS, SEXTANTS};

use super::{Mark, Raster};
use crate::tui::theme::ColorDepth;

/// The eight ways to split four dots in two, the halves first so that they win ties: half blocks
/// are the safest in fonts.
const SPLITS: [u8; 8] = [
    0b1100, 0b1010, 0b0000, 0b0001, 0b0010, 0b0100, 0b1000, 0b0110,
];

/// By which dots have the foreground: bit 0 the upper one, bit 1 the lower one.
const HALVES: [char; 4] = [' ', '▀', '▄', '█'];

/// From dark to bright.
const RAMP: &[u8] = b" .:-=+*#%@";

/// A quadrant must be this much nearer than a half block, in squared distance a cell: less is
/// noise that would make flat areas flicker.
const QUADRANT_GAIN: u32 = 600;

/// A dot that moved by less stays: noise costs bytes and flickers.
const HYSTERESIS: u8 = 12;

/// Steps of a channel where colors are free: sixteen. Finer ones are not seen in cells of one
/// color and cost half again as many bytes.
const STEP: u16 = 17;

/// Most dots of a cell.
const MOST_DOTS: usize = 8;

/// A picture as it is drawn.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a> {
    /// The picture.
    pub raster: &'a Raster,
    /// What is marked on it.
    pub mark: Option<&'a Mark>,
    /// The picture that stood there before: where only noise differs, it stays.
    pub before: Option<&'a Raster>,
}

/// Where a picture of so many cells stands, centered in `area`.
pub fn centered(columns: u16, rows: u16, area: Rect) -> Rect {
    Rect {
        x: area.x + area.width.saturating_sub(columns) / 2,
        y: area.y + area.height.saturating_sub(rows) / 2,
        width: columns.min(area.width),
        height: rows.min(area.height),
    }
}

/// Draws a raster of block characters' dots, centered in `area`.
pub fn draw_raster(shown: Shown<'_>, area: Rect, depth: ColorDepth, buffer: &mut Buffer) {
    let marked;
    let raster = match shown.mark {
        Some(mark) => {
            marked = mark.drawn_on(shown.raster);
            &marked
        }
        None => shown.raster,
    };
    let (across, down) = raster.cell_dots();
    if across * down == 0 || across * down > MOST_DOTS {
        return;
    }
    let before = shown.before.filter(|before| {
        before.width() == raster.width() && before.dots.len() == raster.dots.len()
    });
    let place = centered(raster.columns, raster.rows, area);
    for row in 0..place.height {
        for column in 0..place.width {
            let at = Position::new(place.x + column, place.y + row);
            let Some(cell) = buffer.cell_mut(at) else {
                continue;
            };
            let mut dots = [[0; 3]; MOST_DOTS];
            let dots = &mut dots[..across * down];
            fill(dots, raster.block(column, row));
            if let Some(before) = before {
                keep_noise(dots, before.block(column, row));
            }
            let (symbol, style) = cell_of(dots, across, depth);
            cell.set_char(symbol).set_style(style);
        }
    }
}

fn fill(dots: &mut [[u8; 3]], from: impl Iterator<Item = [u8; 3]>) {
    for (dot, value) in dots.iter_mut().zip(from) {
        *dot = value;
    }
}

/// Puts the earlier dots back where all of a cell's moved by no more than noise.
fn keep_noise(dots: &mut [[u8; 3]], before: impl Iterator<Item = [u8; 3]> + Clone) {
    let is_noise = dots.iter().zip(before.clone()).all(|(dot, before)| {
        (0..3).all(|channel| dot[channel].abs_diff(before[channel]) <= HYSTERESIS)
    });
    if is_noise {
        fill(dots, before);
    }
}

fn cell_of(dots: &[[u8; 3]], across: usize, depth: ColorDepth) -> (char, Style) {
    if depth == ColorDepth::None {
        return (shade(dots), Style::reset());
    }
    let (symbol, front, back) = nearest_block(dots, across);
    let color = |rgb: [u8; 3]| {
        depth.color(if depth == ColorDepth::True {
            rgb.map(coarse)
        } else {
            rgb
        })
    };
    (symbol, Style::reset().fg(color(front)).bg(color(back)))
}

fn coarse(value: u8) -> u8 {
    ((u16::from(value) + STEP / 2) / STEP * STEP) as u8
}

/// The block character and its two colors nearest to the dots of a cell, row by row.
pub(super) fn nearest_block(dots: &[[u8; 3]], across: usize) -> (char, [u8; 3], [u8; 3]) {
    let mask = if dots.len() == 4 {
        split_quadrants(dots)
    } else {
        split_by_luminance(dots)
    };
    let all = (1_u8 << (dots.len() - 1) << 1).wrapping_sub(1);
    let (front, back) = (mean(dots, mask), mean(dots, !mask & all));
    if squared(front, back) == 0 {
        return (' ', back, back);
    }
    let table: &[char] = match (dots.len(), across) {
        (2, _) => &HALVES,
        (4, _) => &QUADRANTS,
        (6, _) => &SEXTANTS,
        _ => &OCTANTS,
    };
    let symbol = table.get(usize::from(mask)).copied().unwrap_or(' ');
    (symbol, front, back)
}

/// The split whose two means come nearest to four dots.
fn split_quadrants(dots: &[[u8; 3]]) -> u8 {
    let mut best = (u32::MAX, 0);
    for (place, mask) in SPLITS.into_iter().enumerate() {
        let front = mean(dots, mask);
        let back = mean(dots, !mask & 0b1111);
        let error: u32 = (0..4)
            .map(|dot| squared(dots[dot], if mask >> dot & 1 == 1 { front } else { back }))
            .sum();
        let penalty = if place < 3 { 0 } else { QUADRANT_GAIN };
        if error + penalty < best.0 {
            best = (error + penalty, mask);
        }
    }
    best.1
}

/// The dots brighter than the middle between the darkest and the brightest.
fn split_by_luminance(dots: &[[u8; 3]]) -> u8 {
    let values = dots.iter().copied().map(luminance);
    let (least, most) = values.fold((u32::MAX, 0), |(least, most), value| {
        (least.min(value), most.max(value))
    });
    let middle = u32::midpoint(least, most);
    let bright = dots.iter().enumerate();
    let bright = bright.filter(|(_, dot)| luminance(**dot) > middle);
    bright.fold(0, |mask, (place, _)| mask | 1 << place)
}

/// Of ten times 255 at most.
fn luminance([red, green, blue]: [u8; 3]) -> u32 {
    3 * u32::from(red) + 6 * u32::from(green) + u32::from(blue)
}

/// Mean of the dots whose bit is set; of all dots if none is.
fn mean(dots: &[[u8; 3]], mask: u8) -> [u8; 3] {
    let mask = if mask == 0 { u8::MAX } else { mask };
    let mut sum = [0_u32; 3];
    let mut count = 0;
    for (_, dot) in dots
        .iter()
        .enumerate()
        .filter(|(place, _)| mask >> place & 1 == 1)
    {
        for channel in 0..3 {
            sum[channel] += u32::from(dot[channel]);
        }
        count += 1;
    }
    sum.map(|total| ((total + count / 2) / count.max(1)) as u8)
}

fn squared(a: [u8; 3], b: [u8; 3]) -> u32 {
    (0..3)
        .map(|channel| u32::from(a[channel].abs_diff(b[channel])).pow(2))
        .sum()
}

fn shade(dots: &[[u8; 3]]) -> char {
    let total: u32 = dots.iter().copied().map(luminance).sum();
    let place = total as usize * RAMP.len() / (dots.len() * 10 * 256);
    char::from(RAMP[place.min(RAMP.len() - 1)])
}
