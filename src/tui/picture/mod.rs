//! Screenshots as terminal cells: scaled down off the UI thread, kept, drawn as block characters
//! in as many colors as the terminal has, or as shades of characters where it has none.
//!
//! It does not know where pictures come from; `worker` is given a function that fetches them.
//! Where the terminal draws pictures itself, they are sent by its protocol instead.

mod cache;
mod cells;
mod encode;
mod kitty;
mod mark;
mod quantize;
mod raster;
mod schedule;
mod sixel;
mod slots;
#[cfg(test)]
mod tests;
mod worker;

use crate::types::ImageHash;

pub use cache::{PictureCache, PictureState};
pub use cells::{Shown, centered, draw_raster};
pub use encode::{EncodeJob, Encoded, Encoder, encode};
pub use kitty::{PLACEHOLDER, delete_image, draw_placeholders, image_id, send_image};
pub use mark::Mark;
pub use quantize::Indexed;
pub use raster::{Grain, Raster, cells_for};
pub use schedule::{LineState, Quality, Schedule};
pub use sixel::encode_sixel;
pub use slots::{MAX_SLOTS, Placed, Protocol, Slots, Wanted};
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
    /// How fine.
    pub grain: Grain,
}
