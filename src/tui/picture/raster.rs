//! A screenshot scaled down to the dots of terminal cells, two by two a cell.

use crate::screen::thumbnail;
use crate::types::{ScreenSize, Screenshot};

/// Width of a cell relative to its height; terminals differ, most are near this.
const CELL_ASPECT: f64 = 0.5;

/// Pixels of a picture: two columns and two rows a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Raster {
    /// Cells across.
    pub columns: u16,
    /// Cells down.
    pub rows: u16,
    /// Size of the screenshot it was made from.
    pub source: ScreenSize,
    /// `[2 * rows, 2 * columns]`, red, green, blue.
    pub dots: Vec<[u8; 3]>,
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

impl Raster {
    /// Scales a screenshot into `columns` x `rows` cells of room; `None` without room.
    pub fn from_screenshot(shot: &Screenshot, columns: u16, rows: u16) -> Option<Self> {
        let source = shot.size();
        let (columns, rows) = cells_for(source, columns, rows);
        if columns == 0 {
            return None;
        }
        let (width, height) = (2 * u32::from(columns), 2 * u32::from(rows));
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
        })
    }

    /// Dots across.
    pub fn width(&self) -> usize {
        2 * usize::from(self.columns)
    }

    /// Dots down.
    pub fn height(&self) -> usize {
        2 * usize::from(self.rows)
    }

    /// The four dots of a cell: top left, top right, bottom left, bottom right.
    pub fn quad(&self, column: u16, row: u16) -> [[u8; 3]; 4] {
        let start = 2 * usize::from(row) * self.width() + 2 * usize::from(column);
        let below = start + self.width();
        [
            self.dots[start],
            self.dots[start + 1],
            self.dots[below],
            self.dots[below + 1],
        ]
    }
}
