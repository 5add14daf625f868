//! Colors of the desktop: four themes, drawn at random per task.

use serde::{Deserialize, Serialize};

use super::canvas::Color;

/// A color scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Theme {
    /// White windows on blue grey.
    Light,
    /// Dark windows.
    Dark,
    /// Warm paper.
    Cream,
    /// Pale violet.
    Lilac,
}

/// The colors of one theme.
#[derive(Clone, Copy, Debug)]
pub struct Palette {
    /// Behind all windows.
    pub wallpaper: Color,
    /// The strip at the left edge of the screen, a landmark.
    pub strip: Color,
    /// The bar at the bottom of the screen, a landmark.
    pub bar: Color,
    /// Inside windows.
    pub surface: Color,
    /// Buttons, fields and rows on it.
    pub control: Color,
    /// Thin lines.
    pub border: Color,
    /// Text.
    pub text: Color,
    /// Less important text.
    pub dim: Color,
    /// Title bars.
    pub title: Color,
    /// Text on title bars and on the accent.
    pub title_text: Color,
    /// What is on, selected or default.
    pub accent: Color,
    /// Behind selected text.
    pub highlight: Color,
}

impl Theme {
    /// All of them.
    pub const ALL: [Theme; 4] = [Theme::Light, Theme::Dark, Theme::Cream, Theme::Lilac];

    /// Its colors.
    pub const fn palette(self) -> Palette {
        match self {
            Theme::Light => LIGHT,
            Theme::Dark => DARK,
            Theme::Cream => CREAM,
            Theme::Lilac => LILAC,
        }
    }
}

const LIGHT: Palette = Palette {
    wallpaper: [150, 176, 200],
    strip: [214, 226, 236],
    bar: [38, 50, 64],
    surface: [250, 250, 250],
    control: [230, 234, 238],
    border: [150, 158, 168],
    text: [16, 16, 20],
    dim: [96, 102, 112],
    title: [44, 82, 130],
    title_text: [255, 255, 255],
    accent: [30, 110, 220],
    highlight: [176, 208, 255],
};

const DARK: Palette = Palette {
    wallpaper: [52, 58, 70],
    strip: [110, 118, 132],
    bar: [14, 16, 20],
    surface: [32, 34, 40],
    control: [56, 60, 70],
    border: [96, 102, 116],
    text: [240, 240, 244],
    dim: [160, 166, 178],
    title: [18, 20, 26],
    title_text: [236, 238, 244],
    accent: [240, 150, 40],
    highlight: [110, 72, 20],
};

const CREAM: Palette = Palette {
    wallpaper: [206, 190, 160],
    strip: [240, 230, 210],
    bar: [70, 54, 36],
    surface: [255, 250, 238],
    control: [240, 228, 204],
    border: [176, 156, 120],
    text: [40, 28, 16],
    dim: [120, 100, 76],
    title: [130, 86, 44],
    title_text: [255, 250, 238],
    accent: [190, 60, 30],
    highlight: [255, 206, 160],
};

const LILAC: Palette = Palette {
    wallpaper: [186, 176, 214],
    strip: [228, 222, 244],
    bar: [52, 40, 76],
    surface: [252, 250, 255],
    control: [232, 226, 244],
    border: [160, 148, 190],
    text: [28, 20, 44],
    dim: [104, 94, 130],
    title: [96, 70, 150],
    title_text: [255, 255, 255],
    accent: [20, 140, 110],
    highlight: [180, 232, 214],
};
