//! Resampling: bicubic for the model, quick and smooth for people.

use fast_image_resize::images::{Image, ImageRef};
use fast_image_resize::{FilterType, PixelType, ResizeAlg, ResizeOptions, Resizer};

use crate::screen::ScreenError;
use crate::types::{ScreenSize, Screenshot};

/// The picture at `size` pixels, bicubic (a = -0.5) with antialiasing, 8 bit between the
/// passes: what `torchvision`'s `resize(antialias=True)` makes of 8-bit pictures. Returns
/// `[height, width, 3]`.
pub fn resize_bicubic(screenshot: &Screenshot, size: ScreenSize) -> Result<Vec<u8>, ScreenError> {
    resize(screenshot, size, FilterType::CatmullRom)
}

/// The picture at exactly `width_px` x `height_px` (at least one pixel each), averaged. The
/// caller keeps the aspect ratio.
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
    let rgb = resize(screenshot, size, FilterType::Bilinear)?;
    Ok(Screenshot::new(size, rgb))
}

fn resize(
    screenshot: &Screenshot,
    size: ScreenSize,
    filter: FilterType,
) -> Result<Vec<u8>, ScreenError> {
    let from = screenshot.size();
    let empty = ScreenError::Empty {
        width: from.width,
        height: from.height,
    };
    if from.width == 0 || from.height == 0 {
        return Err(empty);
    }
    let Ok(source) = ImageRef::new(from.width, from.height, screenshot.rgb(), PixelType::U8x3)
    else {
        return Err(empty);
    };
    let mut target = Image::new(size.width, size.height, PixelType::U8x3);
    let options = ResizeOptions::new().resize_alg(ResizeAlg::Convolution(filter));
    Resizer::new()
        .resize(&source, &mut target, &options)
        .map_err(|_| empty)?;
    Ok(target.into_vec())
}
