//! How many colors a terminal shows, and the nearest of them.
//!
//! Found from `NO_COLOR`, `COLORTERM` and `TERM` alone; the terminal is not asked.

use ratatui::style::Color;

/// How many colors the terminal shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ColorDepth {
    /// None: modifiers only.
    None,
    /// The terminal's own 16.
    Ansi16,
    /// The 256 of xterm.
    Ansi256,
    /// 24 bit.
    True,
}

impl ColorDepth {
    /// What the environment says, through `lookup` (a variable's value, if set).
    pub fn detect(lookup: impl Fn(&str) -> Option<String>) -> Self {
        let term = lookup("TERM").unwrap_or_default();
        if lookup("NO_COLOR").is_some_and(|value| !value.is_empty()) || term == "dumb" {
            return ColorDepth::None;
        }
        let color_term = lookup("COLORTERM").unwrap_or_default();
        if matches!(color_term.as_str(), "truecolor" | "24bit") || term.ends_with("-direct") {
            ColorDepth::True
        } else if term.contains("256color") {
            ColorDepth::Ansi256
        } else {
            ColorDepth::Ansi16
        }
    }

    /// The nearest color this depth has.
    pub fn color(self, rgb: [u8; 3]) -> Color {
        match self {
            ColorDepth::None => Color::Reset,
            ColorDepth::Ansi16 => to_16(rgb),
            ColorDepth::Ansi256 => Color::Indexed(to_256(rgb)),
            ColorDepth::True => Color::Rgb(rgb[0], rgb[1], rgb[2]),
        }
    }
}

/// Levels of xterm's 6 x 6 x 6 cube.
const CUBE: [u8; 6] = [0, 95, 135, 175, 215, 255];

/// xterm's default values of the 16 colors; terminals differ, so this is only a guess.
const ANSI: [(Color, [u8; 3]); 16] = [
    (Color::Black, [0, 0, 0]),
    (Color::Red, [205, 0, 0]),
    (Color::Green, [0, 205, 0]),
    (Color::Yellow, [205, 205, 0]),
    (Color::Blue, [0, 0, 238]),
    (Color::Magenta, [205, 0, 205]),
    (Color::Cyan, [0, 205, 205]),
    (Color::Gray, [229, 229, 229]),
    (Color::DarkGray, [127, 127, 127]),
    (Color::LightRed, [255, 0, 0]),
    (Color::LightGreen, [0, 255, 0]),
    (Color::LightYellow, [255, 255, 0]),
    (Color::LightBlue, [92, 92, 255]),
    (Color::LightMagenta, [255, 0, 255]),
    (Color::LightCyan, [0, 255, 255]),
    (Color::White, [255, 255, 255]),
];

/// The nearest entry of xterm's cube and gray ramp; the first 16 are the user's own and unused.
pub fn to_256(rgb: [u8; 3]) -> u8 {
    let level = |value: u8| {
        (0..6)
            .min_by_key(|i| CUBE[*i].abs_diff(value))
            .expect("the cube has levels")
    };
    let [r, g, b] = rgb.map(level);
    let cube = [CUBE[r], CUBE[g], CUBE[b]];
    let mean = rgb.iter().map(|v| u32::from(*v)).sum::<u32>() / 3;
    let step = (mean.saturating_sub(3) / 10).min(23) as u8;
    let gray = [8 + 10 * step; 3];
    if distance(gray, rgb) < distance(cube, rgb) {
        232 + step
    } else {
        (16 + 36 * r + 6 * g + b) as u8
    }
}

fn to_16(rgb: [u8; 3]) -> Color {
    let (color, _) = ANSI
        .iter()
        .min_by_key(|(_, candidate)| distance(*candidate, rgb))
        .expect("there are 16 colors");
    *color
}

/// Squared distance, weighted by how well eyes tell the channels apart.
fn distance(a: [u8; 3], b: [u8; 3]) -> u32 {
    let square = |i: usize| u32::from(a[i].abs_diff(b[i])).pow(2);
    3 * square(0) + 6 * square(1) + square(2)
}
