//! Pictures of the screen: through memory shared with the X server where it can share, with the
//! pointer drawn in.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Mutex;

use x11rb::connection::Connection;
use x11rb::errors::ReplyError;
use x11rb::protocol::shm::ConnectionExt as _;
use x11rb::protocol::xfixes::{ConnectionExt as _, GetCursorImageReply};
use x11rb::protocol::xproto::{ConnectionExt, ImageFormat, ImageOrder};
use x11rb::rust_connection::RustConnection;

use super::display::{Broken, DisplayError, Session, lock};
use crate::types::ScreenSize;

/// Every plane of a pixel.
const ALL_PLANES: u32 = !0;

/// Pixels `[height, width, 3]`, rows from the top.
pub(super) struct Picture {
    pub(super) size: ScreenSize,
    pub(super) rgb: Vec<u8>,
}

/// How pictures are taken on a connection.
pub(super) struct Capture {
    /// Held while one is taken: all are written into the same memory.
    shared: Mutex<Shared>,
}

enum Shared {
    /// Not tried yet.
    Unknown,
    /// The server is on another machine, or too old.
    No,
    Segment {
        id: u32,
        memory: File,
        bytes: usize,
    },
}

impl Capture {
    pub(super) fn new(x: &RustConnection, screen: usize) -> Result<Self, Broken> {
        check_pixels(x, screen)?;
        x.xfixes_query_version(5, 0)?.reply()?;
        Ok(Self {
            shared: Mutex::new(Shared::Unknown),
        })
    }
}

/// Whether pixels are what every X server has had for twenty years: four bytes, blue first.
fn check_pixels(x: &RustConnection, screen: usize) -> Result<(), Broken> {
    let setup = x.setup();
    let screen = &setup.roots[screen];
    let formats = setup.pixmap_formats.iter();
    let format = formats.clone().find(|it| it.depth == screen.root_depth);
    let visuals = screen
        .allowed_depths
        .iter()
        .flat_map(|depth| &depth.visuals);
    let visual = visuals
        .clone()
        .find(|it| it.visual_id == screen.root_visual);
    let bits = format.map_or(0, |format| format.bits_per_pixel);
    let masks = visual.map_or((0, 0, 0), |it| (it.red_mask, it.green_mask, it.blue_mask));
    if bits == 32
        && masks == (0xff_0000, 0xff00, 0xff)
        && setup.image_byte_order == ImageOrder::LSB_FIRST
    {
        return Ok(());
    }
    Err(DisplayError::Pixels { bits, red: masks.0 }.into())
}

impl Session {
    /// The screen's size now: it changes while a connection lasts.
    pub(super) fn screen_size(&self) -> Result<ScreenSize, Broken> {
        let geometry = self.x.get_geometry(self.root)?.reply()?;
        Ok(ScreenSize {
            width: geometry.width.into(),
            height: geometry.height.into(),
        })
    }

    /// The screen with the pointer.
    pub(super) fn picture(&self) -> Result<Picture, Broken> {
        let (size, pixels, cursor) = {
            let mut shared = lock(&self.capture.shared);
            let size = self.screen_size()?;
            let pixels = self.pixels(&mut shared, size)?;
            // A server has no picture of the pointer to give after the program that set it was
            // killed, and the screen is worth seeing without.
            let cursor = match self.x.xfixes_get_cursor_image()?.reply() {
                Err(ReplyError::X11Error(_)) => None,
                reply => Some(reply?),
            };
            (size, pixels, cursor)
        };
        let mut rgb = vec![0; pixels.len() / 4 * 3];
        for (to, from) in rgb.chunks_exact_mut(3).zip(pixels.chunks_exact(4)) {
            to.copy_from_slice(&[from[2], from[1], from[0]]);
        }
        let mut picture = Picture { size, rgb };
        if let Some(cursor) = &cursor {
            draw_pointer(&mut picture, cursor);
        }
        Ok(picture)
    }

    /// Four bytes a pixel.
    fn pixels(&self, shared: &mut Shared, size: ScreenSize) -> Result<Vec<u8>, Broken> {
        let bytes = size.width as usize * size.height as usize * 4;
        self.share(shared, bytes)?;
        let (width, height) = (size.width as u16, size.height as u16);
        let Shared::Segment { id, memory, .. } = shared else {
            let format = ImageFormat::Z_PIXMAP;
            let image = self
                .x
                .get_image(format, self.root, 0, 0, width, height, ALL_PLANES)?;
            return Ok(image.reply()?.data);
        };
        let format = ImageFormat::Z_PIXMAP.into();
        let image = self
            .x
            .shm_get_image(self.root, 0, 0, width, height, ALL_PLANES, format, *id, 0)?;
        image.reply()?;
        let mut pixels = vec![0; bytes];
        // Read, not mapped: a copy of a screen takes a millisecond, and needs no unsafe code.
        memory.read_exact_at(&mut pixels, 0)?;
        Ok(pixels)
    }

    /// Sees to memory of at least so many bytes. The server makes it and passes its descriptor:
    /// numbers of memory mean nothing between two sandboxes.
    fn share(&self, shared: &mut Shared, bytes: usize) -> Result<(), Broken> {
        match shared {
            Shared::No => return Ok(()),
            Shared::Segment { bytes: has, .. } if *has >= bytes => return Ok(()),
            Shared::Segment { id, .. } => {
                self.x.shm_detach(*id)?;
            }
            Shared::Unknown => {}
        }
        *shared = Shared::No;
        let Ok(version) = self.x.shm_query_version() else {
            return Ok(());
        };
        let version = version.reply()?;
        if (version.major_version, version.minor_version) < (1, 2) {
            return Ok(());
        }
        let id = self.x.generate_id()?;
        let asked = self.x.shm_create_segment(id, bytes as u32, false)?;
        // Refused on a connection that cannot carry descriptors.
        if let Ok(segment) = asked.reply() {
            let memory = File::from(segment.shm_fd);
            *shared = Shared::Segment { id, memory, bytes };
        }
        Ok(())
    }
}

/// Draws the pointer's image, whose colors are multiplied by their opacity already.
fn draw_pointer(picture: &mut Picture, cursor: &GetCursorImageReply) {
    let (width, height) = (picture.size.width as i32, picture.size.height as i32);
    let left = i32::from(cursor.x) - i32::from(cursor.xhot);
    let top = i32::from(cursor.y) - i32::from(cursor.yhot);
    let columns = usize::from(cursor.width).max(1);
    for (row, line) in cursor.cursor_image.chunks(columns).enumerate() {
        for (column, pixel) in line.iter().enumerate() {
            let (x, y) = (left + column as i32, top + row as i32);
            if !(0..width).contains(&x) || !(0..height).contains(&y) {
                continue;
            }
            let at = (y * width + x) as usize * 3;
            let [alpha, color @ ..] = pixel.to_be_bytes();
            for (under, over) in picture.rgb[at..at + 3].iter_mut().zip(color) {
                let shows = u32::from(*under) * (255 - u32::from(alpha)) / 255;
                *under = (u32::from(over) + shows).min(255) as u8;
            }
        }
    }
}
