//! Pictures as PIL opens them: their modes, and what it makes of them in other modes.
//!
//! Departs: pictures of 16-bit greys, of CMYK, and of formats other than PNG, JPEG, GIF and BMP
//! cannot be opened here; a GIF is its first frame in its colors, without their indexes. Colors of
//! JPEGs, where they are halved in size, are a little off PIL's.

use std::io::Cursor;

use image::ImageDecoder as _;
use image::codecs::{bmp::BmpDecoder, gif::GifDecoder, jpeg::JpegDecoder};
use png::{BitDepth, ColorType, Transformations};

use super::super::MetricError;
use super::super::python::raised;

/// What a pixel is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Black or white, as 0 or 255.
    One,
    /// A grey.
    L,
    /// A grey, and how opaque it is.
    La,
    /// Red, green, blue.
    Rgb,
    /// Red, green, blue, and how opaque it is.
    Rgba,
    /// A place in a palette.
    P,
}

/// A picture.
#[derive(Clone, Debug)]
pub(in crate::evaluator::metrics) struct Picture {
    /// What its pixels are made of.
    pub(super) mode: Mode,
    /// Pixels in a row.
    pub(super) width: usize,
    /// Rows.
    pub(super) height: usize,
    /// The pixels, row by row; of one with a palette without places, red, green and blue.
    pub(super) data: Vec<u8>,
    /// Red, green, blue and how opaque that is, by place.
    palette: Option<Vec<[u8; 4]>>,
    /// Whether it names colors that are see-through.
    pub(super) names_transparent: bool,
    /// The color that is see-through, of one without a palette.
    transparent: Option<Vec<u8>>,
}

impl Mode {
    /// Bytes of a pixel.
    pub(super) fn channels(self) -> usize {
        match self {
            Mode::One | Mode::L | Mode::P => 1,
            Mode::La => 2,
            Mode::Rgb => 3,
            Mode::Rgba => 4,
        }
    }
}

fn broken(error: impl std::fmt::Display) -> MetricError {
    raised(format!("not a picture: {error}"))
}

impl Picture {
    /// Decodes a picture.
    pub(in crate::evaluator::metrics) fn open(bytes: &[u8]) -> Result<Self, MetricError> {
        if bytes.starts_with(b"\x89PNG") {
            return Self::png(bytes);
        }
        if bytes.starts_with(b"GIF8") {
            let decoder = GifDecoder::new(Cursor::new(bytes)).map_err(broken)?;
            let (width, height, rgba) = decoded(decoder)?;
            let mut picture = Self::new(Mode::Rgba, width, height, rgba);
            picture.names_transparent = picture.data.chunks(4).any(|pixel| pixel[3] == 0);
            picture.data = picture.rgb().data;
            picture.mode = Mode::P;
            return Ok(picture);
        }
        if bytes.starts_with(b"BM") {
            let decoder = BmpDecoder::new(Cursor::new(bytes)).map_err(broken)?;
            return Self::plain(decoder);
        }
        if bytes.starts_with(&[0xff, 0xd8]) {
            // The decoder fills up what is missing; PIL does not.
            if !bytes.windows(2).any(|pair| pair == [0xff, 0xd9]) {
                return Err(broken("it is cut short"));
            }
            let decoder = JpegDecoder::new(Cursor::new(bytes)).map_err(broken)?;
            return Self::plain(decoder);
        }
        Err(broken("neither PNG, JPEG, GIF nor BMP"))
    }

    /// Width and height without what follows the header; a picture cut short has them too.
    pub(super) fn size(bytes: &[u8]) -> Result<(usize, usize), MetricError> {
        let (width, height) = if bytes.starts_with(b"\x89PNG") {
            let reader = png::Decoder::new(Cursor::new(bytes)).read_info();
            reader.map_err(broken)?.info().size()
        } else if bytes.starts_with(b"GIF8") {
            let decoder = GifDecoder::new(Cursor::new(bytes)).map_err(broken)?;
            decoder.dimensions()
        } else if bytes.starts_with(&[0xff, 0xd8]) {
            let decoder = JpegDecoder::new(Cursor::new(bytes)).map_err(broken)?;
            decoder.dimensions()
        } else {
            let picture = Self::open(bytes)?;
            return Ok((picture.width, picture.height));
        };
        Ok((width as usize, height as usize))
    }

    /// Whether the header names a color that is see-through, or gives each pixel a measure of it.
    pub(super) fn may_be_transparent(bytes: &[u8]) -> Result<(bool, bool), MetricError> {
        if !bytes.starts_with(b"\x89PNG") {
            let names = bytes.starts_with(b"GIF8") && Self::open(bytes)?.names_transparent;
            return Ok((names, false));
        }
        let reader = png::Decoder::new(Cursor::new(bytes)).read_info();
        let reader = reader.map_err(broken)?;
        let info = reader.info();
        let has_alpha = matches!(info.color_type, ColorType::GrayscaleAlpha | ColorType::Rgba);
        Ok((info.trns.is_some(), has_alpha))
    }

    fn new(mode: Mode, width: usize, height: usize, data: Vec<u8>) -> Self {
        Self {
            mode,
            width,
            height,
            data,
            palette: None,
            names_transparent: false,
            transparent: None,
        }
    }

    fn plain(decoder: impl image::ImageDecoder) -> Result<Self, MetricError> {
        let mode = match decoder.color_type() {
            image::ColorType::L8 => Mode::L,
            image::ColorType::Rgb8 => Mode::Rgb,
            image::ColorType::Rgba8 => Mode::Rgba,
            other => return Err(broken(format!("of {other:?}"))),
        };
        let (width, height, data) = decoded(decoder)?;
        Ok(Self::new(mode, width, height, data))
    }

    fn png(bytes: &[u8]) -> Result<Self, MetricError> {
        let mut decoder = png::Decoder::new(Cursor::new(bytes));
        decoder.set_transformations(Transformations::IDENTITY);
        let mut reader = decoder.read_info().map_err(broken)?;
        let size = reader.output_buffer_size();
        let mut data = vec![0; size.ok_or_else(|| broken("too large"))?];
        let frame = reader.next_frame(&mut data).map_err(broken)?;
        data.truncate(frame.buffer_size());
        let (width, height) = (frame.width as usize, frame.height as usize);
        let info = reader.info();
        let depth = frame.bit_depth;
        let mode = match (frame.color_type, depth) {
            (ColorType::Grayscale, BitDepth::One) => Mode::One,
            (ColorType::Grayscale, BitDepth::Sixteen) => return Err(broken("of 16-bit greys")),
            (ColorType::Grayscale, _) => Mode::L,
            (ColorType::Rgb, _) => Mode::Rgb,
            (ColorType::Indexed, _) => Mode::P,
            (ColorType::GrayscaleAlpha, BitDepth::Sixteen) | (ColorType::Rgba, _) => Mode::Rgba,
            (ColorType::GrayscaleAlpha, _) => Mode::La,
        };
        let mut data = unpacked(&data, depth, width, frame.line_size);
        if mode == Mode::Rgba && frame.color_type == ColorType::GrayscaleAlpha {
            let pixels = data.chunks(2);
            data = pixels
                .flat_map(|pixel| [pixel[0], pixel[0], pixel[0], pixel[1]])
                .collect();
        }
        if matches!(mode, Mode::One | Mode::L) {
            let most = (1_u16 << (depth as u8)) - 1;
            for grey in &mut data {
                *grey = (u16::from(*grey) * (255 / most)) as u8;
            }
        }
        let mut picture = Self::new(mode, width, height, data);
        picture.names_transparent = info.trns.is_some();
        if mode == Mode::P {
            let colors = info.palette.as_deref().unwrap_or_default();
            let opaque = info.trns.as_deref().unwrap_or_default();
            let palette = colors.chunks_exact(3).enumerate().map(|(at, color)| {
                let opaque = opaque.get(at).copied().unwrap_or(255);
                [color[0], color[1], color[2], opaque]
            });
            picture.palette = Some(palette.collect());
        } else if let Some(trns) = &info.trns {
            let scale = |low: u8| match depth {
                BitDepth::One => low * 255,
                BitDepth::Two => low * 85,
                BitDepth::Four => low * 17,
                BitDepth::Eight | BitDepth::Sixteen => low,
            };
            let of_pixels = trns.chunks_exact(2).map(|pair| scale(pair[1]));
            picture.transparent = Some(of_pixels.collect());
        }
        Ok(picture)
    }

    /// Red, green, blue and opacity of each pixel.
    fn colors(&self) -> impl Iterator<Item = [u8; 4]> + '_ {
        let channels = if self.has_places() {
            1
        } else {
            self.channels()
        };
        self.data.chunks_exact(channels).map(move |pixel| {
            let see_through = self.transparent.as_deref() == Some(pixel);
            let opaque = if see_through { 0 } else { 255 };
            match (&self.palette, pixel) {
                (Some(palette), [place]) => {
                    let color = palette.get(usize::from(*place));
                    color.copied().unwrap_or([0, 0, 0, 255])
                }
                (_, [grey]) => [*grey, *grey, *grey, opaque],
                (_, [grey, opaque]) => [*grey, *grey, *grey, *opaque],
                (_, [r, g, b]) => [*r, *g, *b, opaque],
                (_, [r, g, b, opaque, ..]) => [*r, *g, *b, *opaque],
                (_, []) => [0; 4],
            }
        })
    }

    /// Bytes of a pixel.
    pub(super) fn channels(&self) -> usize {
        if self.mode == Mode::P && !self.has_places() {
            return 3;
        }
        self.mode.channels()
    }

    fn has_places(&self) -> bool {
        self.palette.is_some()
    }

    /// The bytes of its pixels, whatever they are.
    pub(in crate::evaluator::metrics) fn pixels(&self) -> Result<&[u8], MetricError> {
        if self.mode == Mode::P && !self.has_places() {
            return Err(raised("the places in the palette of a GIF are not kept"));
        }
        Ok(&self.data)
    }

    /// `convert('RGB')`.
    pub(super) fn rgb(&self) -> Self {
        let data = self.colors().flat_map(|[r, g, b, _]| [r, g, b]).collect();
        Self::new(Mode::Rgb, self.width, self.height, data)
    }

    /// `convert('RGBA')`.
    pub(super) fn rgba(&self) -> Self {
        let data = self.colors().flatten().collect();
        Self::new(Mode::Rgba, self.width, self.height, data)
    }

    /// `convert('L')`.
    pub(super) fn grey(&self) -> Self {
        if matches!(self.mode, Mode::L | Mode::One | Mode::La) {
            let data = self.data.chunks(self.channels()).map(|pixel| pixel[0]);
            return Self::new(Mode::L, self.width, self.height, data.collect());
        }
        let grey = |[r, g, b, _]: [u8; 4]| {
            let [r, g, b] = [r, g, b].map(u32::from);
            ((r * 19_595 + g * 38_470 + b * 7_471 + 0x8000) >> 16) as u8
        };
        let data = self.colors().map(grey).collect();
        Self::new(Mode::L, self.width, self.height, data)
    }

    /// The hue, saturation or value of each pixel, `convert('HSV').split()[channel]`.
    pub(super) fn hsv(&self, channel: usize) -> Result<Self, MetricError> {
        if self.mode == Mode::Rgb && self.names_transparent {
            return Err(raised("PIL makes no hues where a color is see-through"));
        }
        let channels = self.colors().map(|[r, g, b, _]| hsv([r, g, b])[channel]);
        let data = channels.collect();
        Ok(Self::new(Mode::L, self.width, self.height, data))
    }

    /// In the mode of another; none where that takes choosing colors for a palette.
    pub(super) fn in_mode(&self, mode: Mode) -> Option<Self> {
        match mode {
            _ if mode == self.mode => Some(self.clone()),
            Mode::L => Some(self.grey()),
            Mode::Rgb => Some(self.rgb()),
            Mode::Rgba => Some(self.rgba()),
            Mode::One | Mode::La | Mode::P => None,
        }
    }

    /// Each byte of its pixels through a table.
    pub(super) fn through(&self, table: &[u8; 256]) -> Result<Self, MetricError> {
        self.pixels()?;
        let mut picture = self.clone();
        picture
            .data
            .iter_mut()
            .for_each(|byte| *byte = table[usize::from(*byte)]);
        Ok(picture)
    }

    /// Left and right swapped.
    pub(super) fn mirrored(&self) -> Self {
        let mut picture = self.clone();
        let channels = self.channels();
        picture.data.clear();
        for row in self.data.chunks(channels * self.width.max(1)) {
            let pixels = row.chunks(channels).rev().flatten();
            picture.data.extend(pixels);
        }
        picture
    }

    /// The part of it between columns and between rows.
    pub(super) fn cropped(&self, [left, top, right, bottom]: [usize; 4]) -> Self {
        let mut picture = self.clone();
        let channels = self.channels();
        let rows = self.data.chunks(channels * self.width.max(1));
        let rows = rows.skip(top).take(bottom - top);
        let kept = rows.flat_map(|row| &row[left * channels..right * channels]);
        picture.data = kept.copied().collect();
        (picture.width, picture.height) = (right - left, bottom - top);
        picture
    }

    /// Left, top, right and bottom of the part that is not wholly see-through; none where all is.
    pub(super) fn opaque_part(&self) -> Option<[usize; 4]> {
        let mut part: Option<[usize; 4]> = None;
        for (at, color) in self.colors().enumerate() {
            if color[3] == 0 {
                continue;
            }
            let (x, y) = (at % self.width, at / self.width);
            let [left, top, right, bottom] = part.unwrap_or([x, y, x + 1, y + 1]);
            part = Some([left.min(x), top.min(y), right.max(x + 1), bottom.max(y + 1)]);
        }
        part
    }
}

/// Samples of less than a byte, one a byte; of two bytes the first.
fn unpacked(data: &[u8], depth: BitDepth, width: usize, line: usize) -> Vec<u8> {
    let bits = match depth {
        BitDepth::Eight => return data.to_vec(),
        BitDepth::Sixteen => return data.iter().step_by(2).copied().collect(),
        few => few as usize,
    };
    let rows = data.chunks(line.max(1));
    let samples = rows.flat_map(|row| {
        (0..width).map(move |x| {
            let from_left = x * bits % 8;
            (row[x * bits / 8] >> (8 - bits - from_left)) & ((1 << bits) - 1)
        })
    });
    samples.collect()
}

fn decoded(decoder: impl image::ImageDecoder) -> Result<(usize, usize, Vec<u8>), MetricError> {
    let (width, height) = decoder.dimensions();
    let size = usize::try_from(decoder.total_bytes()).map_err(broken)?;
    let mut data = vec![0; size];
    decoder.read_image(&mut data).map_err(broken)?;
    Ok((width as usize, height as usize, data))
}

/// Hue, saturation and value as PIL counts them: in single precision, each from 0 to 255.
fn hsv([r, g, b]: [u8; 3]) -> [u8; 3] {
    let (most, least) = (r.max(g).max(b), r.min(g).min(b));
    if most == least {
        return [0, 0, most];
    }
    let range = f32::from(most - least);
    let saturation = range / f32::from(most);
    let off = |part: u8| f32::from(most - part) / range;
    let (rc, gc, bc) = (off(r), off(g), off(b));
    let hue = if r == most {
        bc - gc
    } else if g == most {
        (2.0 + f64::from(rc) - f64::from(bc)) as f32
    } else {
        (4.0 + f64::from(gc) - f64::from(rc)) as f32
    };
    let hue = ((f64::from(hue) / 6.0 + 1.0) % 1.0) as f32;
    let byte = |part: f32| (f64::from(part) * 255.0) as u8;
    [byte(hue), byte(saturation), most]
}
