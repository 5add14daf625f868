//! Resampling: bicubic for the model, quick and smooth for people.

use fast_image_resize::images::{TypedImage, TypedImageRef};
use fast_image_resize::pixels::U8x3;
use fast_image_resize::{FilterType, ResizeAlg, ResizeOptions, Resizer};

use crate::screen::ScreenError;
use crate::types::{ScreenSize, Screenshot};

/// The picture at `size` pixels, bicubic (a = -0.5) with antialiasing: what `torchvision`'s
/// `resize(antialias=True)` makes of 8-bit pictures. Returns `[height, width, 3]`.
///
/// Columns come first, and what that makes is 8 bit again: at hard edges the clamp between
/// the passes moves a pixel by more than ten steps if their order is swapped.
pub fn resize_bicubic(screenshot: &Screenshot, size: ScreenSize) -> Result<Vec<u8>, ScreenError> {
    let narrowed = ScreenSize {
        width: size.width,
        height: screenshot.size().height,
    };
    let columns = resize(
        screenshot.rgb(),
        screenshot.size(),
        narrowed,
        FilterType::CatmullRom,
    )?;
    resize(&columns, narrowed, size, FilterType::CatmullRom)
}

/// The picture at exactly `width_px` x `height_px` (at least one pixel each), averaged: Hamming
/// is as sharp as bicubic when scaling down and as cheap as bilinear. The caller keeps the
/// aspect ratio.
pub fn thumbnail(
    screenshot: &Screenshot,
    width_px: u32,
    height_px: u32,
) -> Result<Screenshot, ScreenError> {
    let size = ScreenSize {
        width: width_px.max(1),
        height: height_px.max(1),
    };
    if size == screenshot.size() {
        return Ok(screenshot.clone());
    }
    let rgb = resize(
        screenshot.rgb(),
        screenshot.size(),
        size,
        FilterType::Hamming,
    )?;
    Ok(Screenshot::new(size, rgb))
}

/// Resamples `rgb`, `[height, width, 3]` of size `from`.
fn resize(
    rgb: &[u8],
    from: ScreenSize,
    to: ScreenSize,
    filter: FilterType,
) -> Result<Vec<u8>, ScreenError> {
    if from == to {
        return Ok(rgb.to_vec());
    }
    let empty = || ScreenError::Empty {
        width: from.width,
        height: from.height,
    };
    if from.width == 0 || from.height == 0 {
        return Err(empty());
    }
    let source =
        TypedImageRef::<U8x3>::from_buffer(from.width, from.height, rgb).map_err(|_| empty())?;
    let mut out = vec![0; to.width as usize * to.height as usize * 3];
    let mut target =
        TypedImage::<U8x3>::from_buffer(to.width, to.height, &mut out).map_err(|_| empty())?;
    let options = ResizeOptions::new().resize_alg(ResizeAlg::Convolution(filter));
    // The untyped call would compile every pixel type into our crate: minutes.
    Resizer::new()
        .resize_typed(&source, &mut target, &options)
        .map_err(|_| empty())?;
    Ok(out)
}
