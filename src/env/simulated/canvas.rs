//! The picture being drawn: RGB pixels in logical units, enlarged by a whole number at the end.
//!
//! No anti-aliasing anywhere, so that a picture is the same bytes on every machine. Does not
//! know widgets. Glyphs are the 7x13 face of the X11 `misc-fixed` family: seven is half of the
//! model's 14-pixel patch, so text that starts on the grid keeps its phase.

use embedded_graphics::geometry::{OriginDimensions, Point as GlyphPoint};
use embedded_graphics::image::GetPixel;
use embedded_graphics::mono_font::MonoFont;
use embedded_graphics::mono_font::iso_8859_1::{FONT_7X13, FONT_7X13_BOLD};
use embedded_graphics::mono_font::mapping::ISO_8859_1;
use embedded_graphics::pixelcolor::BinaryColor;

use crate::types::{ScreenSize, Screenshot};

/// Width of a glyph in logical pixels.
pub const GLYPH_WIDTH_PX: i32 = 7;
/// Height of a glyph in logical pixels.
pub const GLYPH_HEIGHT_PX: i32 = 13;

/// Red, green, blue.
pub type Color = [u8; 3];

/// A rectangle in logical pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rect {
    /// Left edge.
    pub x: i32,
    /// Top edge.
    pub y: i32,
    /// Width.
    pub w: i32,
    /// Height.
    pub h: i32,
}

impl Rect {
    /// A rectangle from its left top corner and size.
    pub const fn new(x: i32, y: i32, w: i32, h: i32) -> Self {
        Self { x, y, w, h }
    }

    /// Whether a place lies inside.
    pub fn contains(&self, x: i32, y: i32) -> bool {
        self.x <= x && x < self.x + self.w && self.y <= y && y < self.y + self.h
    }

    /// The same rectangle, smaller by `by` on every side.
    pub fn inset(&self, by: i32) -> Self {
        Self::new(self.x + by, self.y + by, self.w - 2 * by, self.h - 2 * by)
    }

    /// Its middle.
    pub fn center(&self) -> (i32, i32) {
        (self.x + self.w / 2, self.y + self.h / 2)
    }
}

/// How a glyph is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ink {
    /// Its color.
    pub color: Color,
    /// Heavier strokes.
    pub bold: bool,
    /// Leaning to the right.
    pub italic: bool,
    /// Screen pixels of each font pixel, per axis.
    pub zoom: i32,
}

impl Ink {
    /// Plain ink of a color.
    pub const fn plain(color: Color) -> Self {
        Self {
            color,
            bold: false,
            italic: false,
            zoom: 1,
        }
    }

    /// Bold ink of a color.
    pub const fn bold(color: Color) -> Self {
        Self {
            bold: true,
            ..Self::plain(color)
        }
    }
}

/// A picture in the making, `[height, width, 3]` in logical pixels.
pub struct Canvas {
    width: i32,
    height: i32,
    pixels: Vec<Color>,
}

impl Canvas {
    /// A canvas of one color.
    pub fn new(width: i32, height: i32, color: Color) -> Self {
        Self {
            width,
            height,
            pixels: vec![color; width as usize * height as usize],
        }
    }

    /// Sets one pixel; nothing happens outside.
    pub fn set(&mut self, x: i32, y: i32, color: Color) {
        if 0 <= x && x < self.width && 0 <= y && y < self.height {
            self.pixels[(y * self.width + x) as usize] = color;
        }
    }

    /// Fills a rectangle.
    pub fn fill(&mut self, rect: Rect, color: Color) {
        let x0 = rect.x.clamp(0, self.width);
        let x1 = (rect.x + rect.w).clamp(x0, self.width);
        for y in rect.y.max(0)..(rect.y + rect.h).min(self.height) {
            let row = (y * self.width) as usize;
            self.pixels[row + x0 as usize..row + x1 as usize].fill(color);
        }
    }

    /// Draws a one-pixel frame.
    pub fn frame(&mut self, rect: Rect, color: Color) {
        self.fill(Rect::new(rect.x, rect.y, rect.w, 1), color);
        self.fill(Rect::new(rect.x, rect.y + rect.h - 1, rect.w, 1), color);
        self.fill(Rect::new(rect.x, rect.y, 1, rect.h), color);
        self.fill(Rect::new(rect.x + rect.w - 1, rect.y, 1, rect.h), color);
    }

    /// Fills a rectangle whose corners are cut by two pixels.
    pub fn fill_round(&mut self, rect: Rect, color: Color) {
        let Rect { x, y, w, h } = rect;
        self.fill(Rect::new(x + 2, y, w - 4, h), color);
        self.fill(Rect::new(x + 1, y + 1, w - 2, h - 2), color);
        self.fill(Rect::new(x, y + 2, w, h - 4), color);
    }

    /// Fills a rounded rectangle with a one-pixel border of another color.
    pub fn panel(&mut self, rect: Rect, color: Color, border: Color) {
        self.fill_round(rect, border);
        self.fill_round(rect.inset(1), color);
    }

    /// Draws text from its left top corner. Characters the font lacks become boxes; control
    /// characters become spaces.
    pub fn text(&mut self, x: i32, y: i32, text: &str, ink: Ink) {
        for (i, ch) in text.chars().enumerate() {
            let left = x + i as i32 * GLYPH_WIDTH_PX * ink.zoom;
            if self.width <= left {
                return;
            }
            self.glyph(left, y, ch, ink);
        }
    }

    /// Draws at most as much text as fits into `width_px`, the last glyph two dots if cut.
    pub fn text_within(&mut self, x: i32, y: i32, width_px: i32, text: &str, ink: Ink) {
        let room = (width_px / (GLYPH_WIDTH_PX * ink.zoom)).max(0) as usize;
        if text.chars().count() <= room {
            self.text(x, y, text, ink);
            return;
        }
        let mut cut: String = text.chars().take(room.saturating_sub(1)).collect();
        cut.push('\u{2026}');
        self.text(x, y, &cut, ink);
    }

    /// Draws one glyph from its left top corner.
    pub fn glyph(&mut self, x: i32, y: i32, ch: char, ink: Ink) {
        if ch.is_control() || ch.is_whitespace() {
            return;
        }
        // The bold face closes the gaps of these four at seven pixels.
        let face: &MonoFont<'_> = if ink.bold && !matches!(ch, 'm' | 'w' | 'M' | 'W') {
            &FONT_7X13_BOLD
        } else {
            &FONT_7X13
        };
        let cell = GlyphCell::of(face, ch);
        for row in 0..GLYPH_HEIGHT_PX {
            let lean = if ink.italic { (8 - row) / 3 } else { 0 };
            for column in 0..GLYPH_WIDTH_PX {
                if cell.has_ink(column, row) {
                    let left = x + (column + lean) * ink.zoom;
                    self.fill(
                        Rect::new(left, y + row * ink.zoom, ink.zoom, ink.zoom),
                        ink.color,
                    );
                }
            }
        }
    }

    /// Draws a picture given as rows of text: each character that `palette` knows becomes a
    /// pixel, all others stay as they are.
    pub fn bitmap(&mut self, x: i32, y: i32, rows: &[&str], palette: &[(char, Color)]) {
        for (row, line) in (0_i32..).zip(rows) {
            for (column, ch) in (0_i32..).zip(line.chars()) {
                if let Some((_, color)) = palette.iter().find(|(name, _)| *name == ch) {
                    self.set(x + column, y + row, *color);
                }
            }
        }
    }

    /// The finished picture, each logical pixel `scale` screen pixels wide and high.
    pub fn into_screenshot(self, scale: u32) -> Screenshot {
        let size = ScreenSize {
            width: self.width as u32 * scale,
            height: self.height as u32 * scale,
        };
        let scale = scale as usize;
        let mut pixels = Vec::with_capacity(self.pixels.len() * scale * scale);
        let mut wide = Vec::with_capacity(size.width as usize);
        for line in self.pixels.chunks_exact(self.width as usize) {
            wide.clear();
            for pixel in line {
                wide.resize(wide.len() + scale, *pixel);
            }
            for _ in 0..scale {
                pixels.extend_from_slice(&wide);
            }
        }
        Screenshot::new(size, pixels.into_flattened())
    }
}

/// Where a glyph's picture comes from. Found once a glyph: the search goes through the whole
/// character set.
enum GlyphCell<'a> {
    /// The font has it, at this place of its image.
    Known(&'a MonoFont<'a>, GlyphPoint),
    /// Two dots on the baseline: more text than fits.
    Ellipsis,
    /// The font lacks it.
    Unknown,
}

impl<'a> GlyphCell<'a> {
    fn of(face: &'a MonoFont<'a>, ch: char) -> Self {
        if ch == '\u{2026}' {
            return GlyphCell::Ellipsis;
        }
        if !ISO_8859_1.contains(ch) {
            return GlyphCell::Unknown;
        }
        let index = face.glyph_mapping.index(ch) as i32;
        let per_row = face.image.size().width as i32 / GLYPH_WIDTH_PX;
        let (column, row) = (index % per_row, index / per_row);
        let corner = GlyphPoint::new(column * GLYPH_WIDTH_PX, row * GLYPH_HEIGHT_PX);
        GlyphCell::Known(face, corner)
    }

    /// Whether it has ink at a place of its cell.
    fn has_ink(&self, column: i32, row: i32) -> bool {
        match self {
            GlyphCell::Known(face, corner) => {
                let at = GlyphPoint::new(corner.x + column, corner.y + row);
                face.image.pixel(at) == Some(BinaryColor::On)
            }
            GlyphCell::Ellipsis => (9..11).contains(&row) && column % 3 != 2,
            GlyphCell::Unknown => {
                // An empty box, so that unknown text is visible and takes its room.
                let side = column == 0 || column == 5;
                let edge = row == 2 || row == 10;
                (side && (2..=10).contains(&row)) || (edge && column < 6)
            }
        }
    }
}
