//! Screenshots as terminal cells: scaled down off the UI thread, kept, drawn as block characters
//! in as many colors as the terminal has, or as shades of characters where it has none.
//!
//! It does not know where pictures come from; `worker` is given a function that fetches them.
//! No terminal picture protocol is used here.

mod cache;
mod cells;
mod mark;
mod raster;
#[cfg(test)]
mod tests;
mod worker;

use crate::types::ImageHash;

pub use cache::{PictureCache, PictureState};
pub use cells::draw_raster;
pub use mark::Mark;
pub use raster::{Raster, cells_for};
pub use worker::{FetchPicture, PictureWorker};

/// A picture at a size: what the cache holds, and what drawing asks for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PictureKey {
    /// Which screenshot.
    pub image: ImageHash,
    /// The room for it, terminal cells across.
    pub columns: u16,
    /// The room for it, terminal cells down.
    pub rows: u16,
}
