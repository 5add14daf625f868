//! Other sizes of pictures, as Pillow makes them (`src/libImaging/Resample.c`).

use super::picture::{Mode, Picture};

/// What a pixel of the new size takes of those of the old.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Filter {
    /// `BICUBIC`, which `resize` takes unless told.
    Cubic,
    /// `LANCZOS`.
    Lanczos,
}

/// Bits behind the point of weights.
const PRECISION: u32 = 22;

impl Filter {
    /// How many pixels away it looks.
    fn reach(self) -> f64 {
        match self {
            Filter::Cubic => 2.0,
            Filter::Lanczos => 3.0,
        }
    }

    fn weight(self, x: f64) -> f64 {
        match self {
            Filter::Cubic => {
                const A: f64 = -0.5;
                let x = x.abs();
                if x < 1.0 {
                    ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0
                } else if x < 2.0 {
                    (((x - 5.0) * x + 8.0) * x - 4.0) * A
                } else {
                    0.0
                }
            }
            Filter::Lanczos if (-3.0..3.0).contains(&x) => sinc(x) * sinc(x / 3.0),
            Filter::Lanczos => 0.0,
        }
    }
}

fn sinc(x: f64) -> f64 {
    if x == 0.0 {
        return 1.0;
    }
    let x = x * std::f64::consts::PI;
    x.sin() / x
}

impl Picture {
    /// `resize`: in the size of another. Palettes and black and white are not mixed.
    pub(super) fn resized(&self, width: usize, height: usize, filter: Filter) -> Self {
        if (self.width, self.height) == (width, height) {
            return self.clone();
        }
        if matches!(self.mode, Mode::P | Mode::One) {
            return self.nearest(width, height);
        }
        let mut picture = self.clone();
        let with_opacity = matches!(self.mode, Mode::La | Mode::Rgba);
        if with_opacity {
            weigh(&mut picture);
        }
        // The side that shrinks more comes first, columns where both do alike (Pillow 13).
        let shrinks = |old: usize, new: usize| (old as f64 / new as f64).max(1.0);
        let rows_first = shrinks(self.height, height) > shrinks(self.width, width);
        if rows_first {
            fit_height(&mut picture, height, filter);
        }
        fit_width(&mut picture, width, filter);
        fit_height(&mut picture, height, filter);
        if with_opacity {
            unweigh(&mut picture);
        }
        picture
    }

    fn nearest(&self, width: usize, height: usize) -> Self {
        let channels = self.channels();
        let place = |at: usize, old: usize, new: usize| {
            let place = (at as f64 + 0.5) * (old as f64 / new as f64);
            (place as usize).min(old - 1)
        };
        let mut picture = self.clone();
        picture.data.clear();
        for y in 0..height {
            let row = place(y, self.height, height) * self.width;
            for x in 0..width {
                let at = (row + place(x, self.width, width)) * channels;
                picture.data.extend(&self.data[at..at + channels]);
            }
        }
        (picture.width, picture.height) = (width, height);
        picture
    }
}

fn fit_width(picture: &mut Picture, width: usize, filter: Filter) {
    if picture.width == width {
        return;
    }
    let channels = picture.channels();
    let weights = weights(picture.width, width, filter);
    let mut data = Vec::with_capacity(width * picture.height * channels);
    for row in picture.data.chunks(picture.width * channels) {
        for (from, weights) in &weights {
            for channel in 0..channels {
                let places = (*from..).map(|place| row[place * channels + channel]);
                data.push(mixed(weights.iter().zip(places)));
            }
        }
    }
    (picture.data, picture.width) = (data, width);
}

fn fit_height(picture: &mut Picture, height: usize, filter: Filter) {
    if picture.height == height {
        return;
    }
    let line = picture.width * picture.channels();
    let mut data = Vec::with_capacity(line * height);
    for (from, weights) in weights(picture.height, height, filter) {
        for column in 0..line {
            let places = (from..).map(|place| picture.data[place * line + column]);
            data.push(mixed(weights.iter().zip(places)));
        }
    }
    (picture.data, picture.height) = (data, height);
}

/// For each pixel of the new size, the first of the old that it takes of, and how much of each.
fn weights(old: usize, new: usize, filter: Filter) -> Vec<(usize, Vec<i64>)> {
    let scale = old as f64 / new as f64;
    let stretch = scale.max(1.0);
    let reach = filter.reach() * stretch;
    let weights = (0..new).map(|at| {
        let center = (at as f64 + 0.5) * scale;
        let from = ((center - reach + 0.5) as i64).max(0) as usize;
        let upto = ((center + reach + 0.5) as i64).min(old as i64) as usize;
        let places = from..upto;
        let weights: Vec<f64> = places
            .map(|place| filter.weight((place as f64 - center + 0.5) / stretch))
            .collect();
        let total: f64 = weights.iter().sum();
        let fixed = weights.into_iter().map(|weight| {
            let weight = if total == 0.0 { weight } else { weight / total };
            let weight = weight * f64::from(1_u32 << PRECISION);
            (weight + 0.5_f64.copysign(weight)) as i64
        });
        (from, fixed.collect())
    });
    weights.collect()
}

fn mixed<'a>(bytes: impl Iterator<Item = (&'a i64, u8)>) -> u8 {
    let half = 1_i64 << (PRECISION - 1);
    let total = bytes.fold(half, |total, (weight, byte)| {
        total + weight * i64::from(byte)
    });
    (total >> PRECISION).clamp(0, 255) as u8
}

/// Colors by how opaque they are, so that what is see-through does not color its neighbours.
fn weigh(picture: &mut Picture) {
    let channels = picture.channels();
    for pixel in picture.data.chunks_mut(channels) {
        let opaque = u32::from(pixel[channels - 1]);
        for byte in &mut pixel[..channels - 1] {
            let product = u32::from(*byte) * opaque + 128;
            *byte = (((product >> 8) + product) >> 8) as u8;
        }
    }
}

fn unweigh(picture: &mut Picture) {
    let channels = picture.channels();
    for pixel in picture.data.chunks_mut(channels) {
        let opaque = u32::from(pixel[channels - 1]);
        if opaque == 0 || opaque == 255 {
            continue;
        }
        for byte in &mut pixel[..channels - 1] {
            *byte = (255 * u32::from(*byte) / opaque).min(255) as u8;
        }
    }
}
