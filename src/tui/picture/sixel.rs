//! Pictures by sixel: bands of six rows, one pass a color.

use std::fmt::Write as _;

use super::quantize::Indexed;

/// Rows of a band.
const BAND: usize = 6;
/// The character for six rows without a dot.
const BASE: u8 = b'?';
/// Runs from this length on are cheaper with a count.
const RUN: usize = 4;

/// The picture as one sequence, drawn from the cursor on; pixels are square.
pub fn encode_sixel(picture: &Indexed) -> Vec<u8> {
    let mut text = format!("\x1bP0;1q\"1;1;{};{}", picture.width, picture.height);
    for (place, color) in picture.palette.iter().enumerate() {
        let [red, green, blue] = color.map(|value| (u32::from(value) * 100 + 127) / 255);
        let _ = write!(text, "#{place};2;{red};{green};{blue}");
    }
    let rows: Vec<&[u8]> = picture.pixels.chunks(picture.width.max(1)).collect();
    for band in rows.chunks(BAND) {
        encode_band(band, picture.palette.len(), &mut text);
        text.push('-');
    }
    text.push_str("\x1b\\");
    text.into_bytes()
}

fn encode_band(band: &[&[u8]], colors: usize, text: &mut String) {
    let width = band.first().map_or(0, |row| row.len());
    let mut used = vec![false; colors.max(1)];
    for pixel in band.iter().flat_map(|row| row.iter()) {
        if let Some(used) = used.get_mut(usize::from(*pixel)) {
            *used = true;
        }
    }
    let mut is_first = true;
    for color in (0..colors).filter(|color| used[*color]) {
        if !std::mem::take(&mut is_first) {
            text.push('$');
        }
        let _ = write!(text, "#{color}");
        let column = |x: usize| {
            let bits = band.iter().enumerate().map(|(y, row)| {
                let is_set = row.get(x).is_some_and(|pixel| usize::from(*pixel) == color);
                u8::from(is_set) << y
            });
            bits.fold(0, |sixel, bit| sixel | bit)
        };
        push_runs((0..width).map(column), text);
    }
}

fn push_runs(sixels: impl Iterator<Item = u8>, text: &mut String) {
    let mut run: Option<(u8, usize)> = None;
    for sixel in sixels {
        run = match run {
            Some((last, count)) if last == sixel => Some((last, count + 1)),
            Some((last, count)) => {
                push_run(last, count, text);
                Some((sixel, 1))
            }
            None => Some((sixel, 1)),
        };
    }
    // Nothing needs to be said of an empty end.
    if let Some((last, count)) = run.filter(|(last, _)| *last != 0) {
        push_run(last, count, text);
    }
}

fn push_run(sixel: u8, count: usize, text: &mut String) {
    let character = char::from(BASE + sixel);
    if count >= RUN {
        let _ = write!(text, "!{count}{character}");
    } else {
        text.extend(std::iter::repeat_n(character, count));
    }
}
