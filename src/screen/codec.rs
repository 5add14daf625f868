//! Screenshots as PNG.
//!
//! Reads what guests deliver: 8-bit RGB, and exactly what can be turned into it without a
//! choice (gray, palettes, an alpha channel that is opaque everywhere). Anything else is an
//! error that says what to change.

use std::io::Cursor;

use png::{BitDepth, ColorType, Compression, Decoder, DecodingError, Encoder, Filter};
use png::{Limits, Transformations};

use crate::screen::ScreenError;
use crate::types::{ScreenSize, Screenshot};

/// Four 8K screens; beyond it a file is an attack or a mistake.
const MAX_PIXELS: u64 = 4 * 7680 * 4320;

/// What the decoder may allocate beside the picture itself.
const MAX_DECODER_BYTES: usize = 256 << 20;

const PNG_MAGIC: &[u8] = b"\x89PNG\r\n\x1a\n";

/// The screenshot as an 8-bit RGB PNG, compressed for speed.
pub fn encode_png(screenshot: &Screenshot) -> Result<Vec<u8>, ScreenError> {
    encode_rgb(screenshot.size(), screenshot.rgb())
}

/// Pixels `[height, width, 3]` as `encode_png` writes a screenshot's, without hashing them.
pub fn encode_rgb(size: ScreenSize, rgb: &[u8]) -> Result<Vec<u8>, ScreenError> {
    let ScreenSize { width, height } = size;
    if width == 0 || height == 0 {
        return Err(ScreenError::Empty { width, height });
    }
    let mut bytes = Vec::new();
    let mut encoder = Encoder::new(&mut bytes, width, height);
    encoder.set_color(ColorType::Rgb);
    encoder.set_depth(BitDepth::Eight);
    encoder.set_compression(Compression::Fast);
    encoder.set_filter(Filter::Up);
    encoder
        .write_header()
        .and_then(|mut writer| writer.write_image_data(rgb))
        .map_err(|error| ScreenError::Damaged {
            reason: error.to_string(),
        })?;
    Ok(bytes)
}

/// Reads a PNG into a screenshot.
pub fn decode_png(bytes: &[u8]) -> Result<Screenshot, ScreenError> {
    check_magic(bytes)?;
    let limits = Limits {
        bytes: MAX_DECODER_BYTES,
    };
    let mut decoder = Decoder::new_with_limits(Cursor::new(bytes), limits);
    decoder.set_transformations(Transformations::EXPAND);
    let mut reader = decoder
        .read_info()
        .map_err(|error| decoding_error(&error, bytes))?;
    let (width, height) = reader.info().size();
    if reader.info().bit_depth == BitDepth::Sixteen {
        return Err(ScreenError::Unsupported {
            what: "16 bits a channel",
        });
    }
    let too_large = ScreenError::TooLarge {
        width,
        height,
        limit: MAX_PIXELS,
    };
    if u64::from(width) * u64::from(height) > MAX_PIXELS {
        return Err(too_large);
    }
    let Some(len) = reader.output_buffer_size() else {
        return Err(too_large);
    };
    let mut pixels = vec![0; len];
    let frame = reader
        .next_frame(&mut pixels)
        .map_err(|error| decoding_error(&error, bytes))?;
    pixels.truncate(frame.buffer_size());
    let rgb = to_rgb(pixels, frame.color_type)?;
    Ok(Screenshot::new(ScreenSize { width, height }, rgb))
}

/// Names the usual mix-ups: an empty answer, a JPEG, an error page.
fn check_magic(bytes: &[u8]) -> Result<(), ScreenError> {
    let begins = match bytes {
        [] => "nothing".to_owned(),
        _ if bytes.starts_with(PNG_MAGIC) => return Ok(()),
        _ if PNG_MAGIC.starts_with(bytes) => {
            return Err(ScreenError::Truncated { bytes: bytes.len() });
        }
        _ if bytes.starts_with(&[0xff, 0xd8, 0xff]) => "a JPEG".to_owned(),
        _ if bytes.starts_with(b"RIFF") => "a WebP".to_owned(),
        _ if bytes.starts_with(b"GIF8") => "a GIF".to_owned(),
        _ => {
            let head = &bytes[..bytes.len().min(16)];
            format!("\"{}\"", head.escape_ascii())
        }
    };
    Err(ScreenError::NotPng { begins })
}

fn decoding_error(error: &DecodingError, bytes: &[u8]) -> ScreenError {
    match error {
        DecodingError::IoError(io) if io.kind() == std::io::ErrorKind::UnexpectedEof => {
            ScreenError::Truncated { bytes: bytes.len() }
        }
        DecodingError::LimitsExceeded => ScreenError::Damaged {
            reason: "it needs more memory than a screenshot does".to_owned(),
        },
        other => ScreenError::Damaged {
            reason: other.to_string(),
        },
    }
}

fn to_rgb(pixels: Vec<u8>, color: ColorType) -> Result<Vec<u8>, ScreenError> {
    match color {
        ColorType::Rgb => Ok(pixels),
        ColorType::Grayscale => Ok(pixels.iter().flat_map(|&gray| [gray; 3]).collect()),
        ColorType::Rgba => {
            opaque(pixels.iter().skip(3).step_by(4))?;
            Ok(pixels
                .chunks_exact(4)
                .flat_map(|pixel| [pixel[0], pixel[1], pixel[2]])
                .collect())
        }
        ColorType::GrayscaleAlpha => {
            opaque(pixels.iter().skip(1).step_by(2))?;
            Ok(pixels.iter().step_by(2).flat_map(|&g| [g; 3]).collect())
        }
        ColorType::Indexed => Err(ScreenError::Unsupported {
            what: "a palette the decoder did not expand",
        }),
    }
}

/// What shows through a screenshot is unknown, so nothing may.
fn opaque<'a>(mut alpha: impl Iterator<Item = &'a u8>) -> Result<(), ScreenError> {
    if alpha.all(|&value| value == 255) {
        Ok(())
    } else {
        Err(ScreenError::Unsupported {
            what: "transparent pixels",
        })
    }
}
