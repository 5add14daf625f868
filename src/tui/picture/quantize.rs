//! Pictures in few colors: a palette and one byte a pixel.

use std::collections::HashMap;

use color_quant::NeuQuant;

/// Pixels that the search for colors looks at: one of so many. Screens have large flat areas.
const SAMPLE: i32 = 3;

/// A picture as places in a palette.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Indexed {
    /// Pixels across.
    pub width: usize,
    /// Pixels down.
    pub height: usize,
    /// Red, green, blue; at most 256.
    pub palette: Vec<[u8; 3]>,
    /// `[height, width]`, places in the palette.
    pub pixels: Vec<u8>,
}

impl Indexed {
    /// Of `[height, width]` pixels, with at most `colors` (2 to 256) of them. Exact where the
    /// picture has no more; without dither, which costs half again as many bytes.
    pub fn new(pixels: &[[u8; 3]], width: usize, colors: usize) -> Self {
        let colors = colors.clamp(2, 256);
        let height = pixels.len() / width.max(1);
        let exact = exact_palette(pixels, colors);
        let palette = exact.unwrap_or_else(|| found_palette(pixels, colors));
        let mut known: HashMap<[u8; 3], u8> = HashMap::new();
        let places = pixels
            .iter()
            .map(|pixel| {
                *known
                    .entry(*pixel)
                    .or_insert_with(|| nearest(&palette, *pixel))
            })
            .collect();
        Self {
            width,
            height,
            palette,
            pixels: places,
        }
    }

    /// As a PNG with that palette, as few bits a pixel as it needs.
    pub fn to_png(&self) -> Result<Vec<u8>, String> {
        let depth = match self.palette.len() {
            0..=2 => png::BitDepth::One,
            3..=4 => png::BitDepth::Two,
            5..=16 => png::BitDepth::Four,
            _ => png::BitDepth::Eight,
        };
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, self.width as u32, self.height as u32);
        encoder.set_color(png::ColorType::Indexed);
        encoder.set_depth(depth);
        encoder.set_palette(self.palette.as_flattened());
        encoder.set_compression(png::Compression::High);
        encoder.set_filter(png::Filter::NoFilter);
        let written = encoder.write_header().and_then(|mut writer| {
            writer.write_image_data(&self.packed(depth as usize))?;
            writer.finish()
        });
        written.map_err(|error| error.to_string())?;
        Ok(bytes)
    }

    /// Rows of `bits` a pixel, each row beginning with a new byte.
    fn packed(&self, bits: usize) -> Vec<u8> {
        let a_byte = 8 / bits;
        let pack = |pixels: &[u8]| {
            let shifted = pixels
                .iter()
                .enumerate()
                .map(|(place, pixel)| pixel << (8 - bits * (place + 1)));
            shifted.fold(0, |byte, bits| byte | bits)
        };
        self.pixels
            .chunks(self.width.max(1))
            .flat_map(|row| row.chunks(a_byte).map(pack))
            .collect()
    }
}

/// All colors of a picture that has no more than `most`.
fn exact_palette(pixels: &[[u8; 3]], most: usize) -> Option<Vec<[u8; 3]>> {
    let mut palette: Vec<[u8; 3]> = Vec::new();
    let mut last = None;
    for pixel in pixels {
        if last == Some(pixel) {
            continue;
        }
        last = Some(pixel);
        if let Err(place) = palette.binary_search(pixel) {
            if palette.len() == most {
                return None;
            }
            palette.insert(place, *pixel);
        }
    }
    Some(palette)
}

fn found_palette(pixels: &[[u8; 3]], colors: usize) -> Vec<[u8; 3]> {
    let rgba: Vec<u8> = pixels
        .iter()
        .flat_map(|[red, green, blue]| [*red, *green, *blue, 255])
        .collect();
    let found = NeuQuant::new(SAMPLE, colors, &rgba).color_map_rgb();
    let mut palette: Vec<[u8; 3]> = found
        .chunks_exact(3)
        .map(|color| [color[0], color[1], color[2]])
        .collect();
    palette.sort_unstable();
    palette.dedup();
    palette
}

fn nearest(palette: &[[u8; 3]], pixel: [u8; 3]) -> u8 {
    let distance = |color: &[u8; 3]| -> u32 {
        let square = |channel: usize| u32::from(color[channel].abs_diff(pixel[channel])).pow(2);
        3 * square(0) + 6 * square(1) + square(2)
    };
    let found = palette
        .iter()
        .enumerate()
        .min_by_key(|(_, color)| distance(color));
    found.map_or(0, |(place, _)| place as u8)
}
