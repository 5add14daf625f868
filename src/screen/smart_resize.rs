//! The size at which the model sees a picture.

use crate::screen::ScreenError;

/// The longest side may be this many times the shorter one.
const MAX_ASPECT_RATIO: f64 = 200.0;

/// Height and width in pixels at which the model sees a picture of `height` x `width` pixels:
/// both multiples of `factor`, their product within `min_pixels..=max_pixels` where that is
/// possible, the aspect ratio kept as well as that allows. Halves round to even, as Python's
/// `round` does.
///
/// Source: transformers@5.24 `image_processing_qwen2_vl.py` `smart_resize`.
/// Departs: UI-TARS' own copy raises a side to `factor` before it looks at the product, which
/// differs for sides under half a `factor` only; the picture the model gets decides.
pub fn smart_resize(
    height: u32,
    width: u32,
    factor: u32,
    min_pixels: u64,
    max_pixels: u64,
) -> Result<(u32, u32), ScreenError> {
    if height == 0 || width == 0 || factor == 0 {
        return Err(ScreenError::Empty { width, height });
    }
    let (h, w, unit) = (f64::from(height), f64::from(width), f64::from(factor));
    if h.max(w) / h.min(w) > MAX_ASPECT_RATIO {
        return Err(ScreenError::AspectRatio { width, height });
    }
    let mut high = (h / unit).round_ties_even() * unit;
    let mut wide = (w / unit).round_ties_even() * unit;
    if high * wide > max_pixels as f64 {
        let beta = (h * w / max_pixels as f64).sqrt();
        high = ((h / beta / unit).floor() * unit).max(unit);
        wide = ((w / beta / unit).floor() * unit).max(unit);
    } else if high * wide < min_pixels as f64 {
        let beta = (min_pixels as f64 / (h * w)).sqrt();
        high = (h * beta / unit).ceil() * unit;
        wide = (w * beta / unit).ceil() * unit;
    }
    // A minimum of zero pixels would otherwise leave a side of none.
    Ok((high.max(unit) as u32, wide.max(unit) as u32))
}
