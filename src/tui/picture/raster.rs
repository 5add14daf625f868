//! A screenshot scaled down to dots: those of terminal cells, or pixels.

use crate::screen::thumbnail;
use crate::tui::term::Blocks;
use crate::types::{ScreenSize, Screenshot};

/// Width of a cell relative to its height; terminals differ, most are near this.
const CELL_ASPECT: f64 = 0.5;

/// How fine a picture is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Grain {
    /// Dots of block characters.
    Cells(Blocks),
    /// Pixels.
    Pixels {
        /// Pixels of a cell, width and height.
        cell: (u16, u16),
        /// Pixels across at most; the terminal enlarges the rest of the way.
        most: u16,
    },
}

/// A scaled picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Raster {
    /// Cells across.
    pub columns: u16,
    /// Cells down.
    pub rows: u16,
    /// Size of the screenshot it was made from.
    pub source: ScreenSize,
    /// `[height, width]`, red, green, blue.
    pub dots: Vec<[u8; 3]>,
    width: usize,
}

/// The largest picture of a screen of this size within `columns` x `rows` cells that keeps its
/// shape, in cells. At least 1 x 1 unless there is no room at all.
pub fn cells_for(source: ScreenSize, columns: u16, rows: u16) -> (u16, u16) {
    if columns == 0 || rows == 0 || source.width == 0 || source.height == 0 {
        return (0, 0);
    }
    let cells_wide_per_row = f64::from(source.width) / f64::from(source.height) / CELL_ASPECT;
    let wide = (f64::from(rows) * cells_wide_per_row).round() as u16;
    if wide <= columns {
        (wide.max(1), rows)
    } else {
        let high = (f64::from(columns) / cells_wide_per_row).round() as u16;
        (columns, high.clamp(1, rows))
    }
}

impl Blocks {
    /// Dots of a cell, across and down.
    pub fn dots(self) -> (u16, u16) {
        match self {
            Blocks::Half => (1, 2),
            Blocks::Quadrants => (2, 2),
            Blocks::Sextants => (2, 3),
            Blocks::Octants => (2, 4),
        }
    }
}

impl Grain {
    /// Dots of a picture of so many cells, across and down.
    fn size(self, columns: u16, rows: u16) -> (u32, u32) {
        let (columns, rows) = (u32::from(columns), u32::from(rows));
        match self {
            Grain::Cells(glyphs) => {
                let (across, down) = glyphs.dots();
                (columns * u32::from(across), rows * u32::from(down))
            }
            Grain::Pixels { cell, most } => {
                let whole = (columns * u32::from(cell.0), rows * u32::from(cell.1));
                let width = whole.0.min(u32::from(most)).max(1);
                let height = (whole.1 * width).div_ceil(whole.0.max(1)).max(1);
                (width, height)
            }
        }
    }
}

impl Raster {
    /// Scales a screenshot to the dots of quadrants in `columns` x `rows` cells of room; `None`
    /// without room.
    pub fn from_screenshot(shot: &Screenshot, columns: u16, rows: u16) -> Option<Self> {
        Self::with_grain(shot, columns, rows, Grain::Cells(Blocks::Quadrants))
    }

    /// The same to other dots.
    pub fn with_grain(shot: &Screenshot, columns: u16, rows: u16, grain: Grain) -> Option<Self> {
        let source = shot.size();
        let (columns, rows) = cells_for(source, columns, rows);
        if columns == 0 {
            return None;
        }
        let (width, height) = grain.size(columns, rows);
        let scaled = thumbnail(shot, width, height).ok()?;
        let dots = scaled
            .rgb()
            .chunks_exact(3)
            .map(|dot| [dot[0], dot[1], dot[2]])
            .collect();
        Some(Self {
            columns,
            rows,
            source,
            dots,
            width: width as usize,
        })
    }

    /// Dots across.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Dots down.
    pub fn height(&self) -> usize {
        self.dots.len() / self.width.max(1)
    }

    /// Dots of one cell, across and down; of pixels as many as fit wholly.
    pub fn cell_dots(&self) -> (usize, usize) {
        (
            self.width() / usize::from(self.columns.max(1)),
            self.height() / usize::from(self.rows.max(1)),
        )
    }

    /// The dots of a cell, row by row.
    pub fn block(&self, column: u16, row: u16) -> impl Iterator<Item = [u8; 3]> + Clone {
        let (across, down) = self.cell_dots();
        let start = usize::from(row) * down * self.width + usize::from(column) * across;
        (0..across * down)
            .map(move |dot| self.dots[start + dot / across * self.width + dot % across])
    }
}
