//! Metrics over pictures.

mod picture;
mod resample;
mod structure;

use std::collections::BTreeMap;

use serde_json::Value;

use super::python::{self, raised};
use super::{Call, MetricError, rule, score};
use crate::evaluator::found::{Found, FoundFile};
use picture::Mode;
use resample::Filter;
use structure::{deviation, is_alike, mean, mean_square, ssim};

pub(super) use picture::Picture;

/// How alike pictures have to be unless a metric says otherwise.
const ALIKE: f64 = 0.9;

/// Both files, none where one is missing.
fn files<'a>(call: &Call<'a>) -> Result<Option<[&'a [u8]; 2]>, MetricError> {
    let files = call.file()?.zip(call.expected_file()?);
    Ok(files.map(|(found, expected)| [found.bytes.as_slice(), expected.bytes.as_slice()]))
}

/// Both pictures, none where one is missing.
fn both(call: &Call<'_>) -> Result<Option<(Picture, Picture)>, MetricError> {
    let Some([found, expected]) = files(call)? else {
        return Ok(None);
    };
    Ok(Some((Picture::open(found)?, Picture::open(expected)?)))
}

/// A number among the options.
fn number(call: &Call<'_>, option: &str) -> Result<Option<f64>, MetricError> {
    let given = call.options.get(option).filter(|given| !given.is_null());
    let wrong = || MetricError::Rules(format!("{option:?} is no number"));
    given
        .map(|given| python::worth(given).ok_or_else(wrong))
        .transpose()
}

/// How alike two pictures are in greys, at the smaller one's size. Over `reference_base_result`,
/// what a picture that is not changed reaches, it is how far the rest of the way is gone.
pub(super) fn compare_images(call: &Call<'_>) -> Result<f64, MetricError> {
    let Some((found, expected)) = both(call)? else {
        return Ok(0.0);
    };
    let size = (found.width, found.height).min((expected.width, expected.height));
    let shrunk = |picture: &Picture| picture.grey().resized(size.0, size.1, Filter::Lanczos);
    let likeness = ssim(&shrunk(&found), &shrunk(&expected), 7)?;
    let Some(base) = number(call, "reference_base_result")? else {
        return Ok(likeness);
    };
    if likeness < base + 0.01 {
        return Ok(0.0);
    }
    Ok((likeness - base) / (1.0 - base))
}

/// Pictures are the same, pixel by pixel, at the expected one's size and in its mode. Of pictures
/// that are see-through only how much so is compared, as PIL's `getbbox` looks at nothing else.
/// Departs: where colors would have to be chosen for a palette there is no score.
pub(super) fn compare_image_list(call: &Call<'_>) -> Result<f64, MetricError> {
    let many = |found: &'_ Found| match found {
        Found::Many(many) => many.clone(),
        one => vec![one.clone()],
    };
    let (found, expected) = match call.result {
        Found::Many(found) => (found.clone(), many(call.expected)),
        one => (vec![one.clone()], vec![call.expected.clone()]),
    };
    for pair in found.iter().zip(&expected) {
        let (Found::File(found), Found::File(expected)) = pair else {
            return Ok(0.0);
        };
        if !is_same(found, expected)? {
            return Ok(0.0);
        }
    }
    Ok(score(true))
}

fn is_same(found: &FoundFile, expected: &FoundFile) -> Result<bool, MetricError> {
    let (found, expected) = (
        Picture::open(&found.bytes)?,
        Picture::open(&expected.bytes)?,
    );
    let found = found.resized(expected.width, expected.height, Filter::Lanczos);
    let chosen = || raised("the colors of a palette are not chosen");
    let found = found.in_mode(expected.mode).ok_or_else(chosen)?;
    let (found, wanted) = (found.pixels()?, expected.pixels()?);
    let channels = expected.channels();
    let is_seen = |at: usize| match expected.mode {
        Mode::La | Mode::Rgba => at % channels == channels - 1,
        Mode::One | Mode::L | Mode::Rgb | Mode::P => true,
    };
    let mut pairs = found.iter().zip(wanted).enumerate();
    Ok(pairs.all(|(at, (found, wanted))| found == wanted || !is_seen(at)))
}

/// The picture is darker than the expected one, and the same but for that: with a mean brightness
/// of 128 for both, squares of differences are below `threshold`.
pub(super) fn check_brightness_decrease_and_structure_sim(
    call: &Call<'_>,
) -> Result<f64, MetricError> {
    let Some((found, expected)) = both(call)? else {
        return Ok(0.0);
    };
    let threshold = number(call, "threshold")?.unwrap_or(0.03);
    let brightness = (mean(&found.grey()), mean(&expected.grey()));
    let evened = |picture: &Picture, brightness: f64| {
        if brightness == 0.0 {
            return Err(raised("a picture all black"));
        }
        let factor = 128.0 / brightness;
        let mut table = [0; 256];
        for (byte, evened) in table.iter_mut().enumerate() {
            *evened = (byte as f64 * factor).min(255.0) as u8;
        }
        picture.through(&table)
    };
    let (dark, bright) = (
        evened(&found, brightness.0)?,
        evened(&expected, brightness.1)?,
    );
    let dark = dark.resized(bright.width, bright.height, Filter::Lanczos);
    let is_same = mean_square(&dark, &bright) < threshold;
    Ok(score(brightness.1 > brightness.0 && is_same))
}

/// The picture is more colorful than the expected one, with hues and values alike.
pub(super) fn check_saturation_increase_and_structure_sim(
    call: &Call<'_>,
) -> Result<f64, MetricError> {
    let Some((found, expected)) = both(call)? else {
        return Ok(0.0);
    };
    let is_more = mean(&expected.hsv(1)?) < mean(&found.hsv(1)?);
    let is_same = is_alike(&found.hsv(0)?, &expected.hsv(0)?, ALIKE)
        && is_alike(&found.hsv(2)?, &expected.hsv(2)?, ALIKE);
    Ok(score(is_more && is_same))
}

/// The picture has more contrast than the expected one, and about the same structure.
pub(super) fn check_contrast_increase_and_structure_sim(
    call: &Call<'_>,
) -> Result<f64, MetricError> {
    let Some((found, expected)) = both(call)? else {
        return Ok(0.0);
    };
    let contrast = |picture: &Picture| {
        // numpy sees black and white as 0 and 1.
        let scale = if picture.mode == Mode::One {
            255.0
        } else {
            1.0
        };
        Ok::<f64, MetricError>(deviation(picture.pixels()?) / scale)
    };
    let is_more = contrast(&expected)? < contrast(&found)?;
    Ok(score(is_more && is_alike(&found, &expected, 0.65)))
}

/// There is a picture, of the structure of the expected one.
pub(super) fn check_file_exists_and_structure_sim(call: &Call<'_>) -> Result<f64, MetricError> {
    let Some((found, expected)) = both(call)? else {
        return Ok(0.0);
    };
    Ok(score(is_alike(&found, &expected, ALIKE)))
}

/// The same; a picture that cannot be opened is none.
pub(super) fn check_structure_sim(call: &Call<'_>) -> Result<f64, MetricError> {
    let Some([found, expected]) = files(call)? else {
        return Ok(0.0);
    };
    let (Ok(found), Ok(expected)) = (Picture::open(found), Picture::open(expected)) else {
        return Ok(0.0);
    };
    Ok(score(is_alike(&found, &expected, ALIKE)))
}

/// The picture without what is see-through at its edges, in the expected one's size, is of its
/// structure.
pub(super) fn check_structure_sim_resized(call: &Call<'_>) -> Result<f64, MetricError> {
    let Some((found, expected)) = both(call)? else {
        return Ok(0.0);
    };
    let found = if found.names_transparent || matches!(found.mode, Mode::Rgba | Mode::La) {
        let found = found.rgba();
        let Some(part) = found.opaque_part() else {
            return Ok(0.0);
        };
        found.cropped(part).rgb()
    } else {
        found
    };
    let found = found.resized(expected.width, expected.height, Filter::Cubic);
    Ok(score(is_alike(&found, &expected, ALIKE)))
}

/// The picture in the expected one's size is of its structure, as far as `ssim_threshold`.
///
/// OSWorld has it since desktop-env 1.0.2.
pub(super) fn check_structure_sim_with_threshold(call: &Call<'_>) -> Result<f64, MetricError> {
    let Some([found, expected]) = files(call)? else {
        return Ok(0.0);
    };
    let threshold = number(call, "ssim_threshold")?.unwrap_or(0.85);
    let (Ok(found), Ok(expected)) = (Picture::open(found), Picture::open(expected)) else {
        return Ok(0.0);
    };
    let found = found.resized(expected.width, expected.height, Filter::Lanczos);
    let least = expected.width.min(expected.height);
    let side = if least < 7 {
        least - (least + 1) % 2
    } else {
        7
    };
    let likeness = ssim(&found.rgb(), &expected.rgb(), side);
    Ok(score(likeness.is_ok_and(|likeness| likeness >= threshold)))
}

/// The picture has a palette, and the structure of the expected one.
pub(super) fn check_palette_and_structure_sim(call: &Call<'_>) -> Result<f64, MetricError> {
    let Some([found, expected]) = files(call)? else {
        return Ok(0.0);
    };
    let (Ok(found), Ok(expected)) = (Picture::open(found), Picture::open(expected)) else {
        return Ok(0.0);
    };
    let has_palette = found.mode == Mode::P;
    Ok(score(has_palette && is_alike(&found, &expected, ALIKE)))
}

/// The picture is the expected one with left and right swapped.
pub(super) fn check_image_mirror(call: &Call<'_>) -> Result<f64, MetricError> {
    let Some((found, expected)) = both(call)? else {
        return Ok(0.0);
    };
    Ok(score(is_alike(&found.mirrored(), &expected, 0.99)))
}

/// Wherever the expected picture is not black, this one is more green than red and than blue. As
/// the function does, it goes by columns as if they were rows.
pub(super) fn check_green_background(call: &Call<'_>) -> Result<f64, MetricError> {
    let Some((found, expected)) = both(call)? else {
        return Ok(0.0);
    };
    let colors = |picture: &Picture| match picture.mode {
        Mode::Rgb | Mode::Rgba => Ok(picture.channels()),
        Mode::One | Mode::L | Mode::La | Mode::P => Err(raised("a picture without colors")),
    };
    let channels = colors(&expected)?;
    let pixel = |picture: &Picture, channels: usize, row: usize, column: usize| {
        let at = (row * picture.width + column) * channels;
        let is_within = row < picture.height && column < picture.width;
        let color = picture.data.get(at..at + 3).filter(|_| is_within);
        let color = color.ok_or_else(|| raised("a place outside the picture"))?;
        Ok::<[u8; 3], MetricError>([color[0], color[1], color[2]])
    };
    for row in 0..expected.width {
        for column in 0..expected.height {
            if pixel(&expected, channels, row, column)? == [0, 0, 0] {
                continue;
            }
            let [r, g, b] = pixel(&found, colors(&found)?, row, column)?;
            if g <= r || g <= b {
                return Ok(0.0);
            }
        }
    }
    Ok(score(true))
}

/// The picture is as high and as wide as the rules say, without what is see-through at its edges
/// where they, or the file itself, call for that.
pub(super) fn check_image_size(call: &Call<'_>) -> Result<f64, MetricError> {
    let Some(file) = call.file()? else {
        return Ok(0.0);
    };
    let rules = call.rules()?;
    let (mut width, mut height) = Picture::size(&file.bytes)?;
    let (names_transparent, has_alpha) = Picture::may_be_transparent(&file.bytes)?;
    let ignores = rules.get("ignore_transparent").is_some_and(python::is_true);
    if (ignores && has_alpha) || names_transparent {
        let part = Picture::open(&file.bytes)?.opaque_part();
        let [left, top, right, bottom] = part.unwrap_or_default();
        (width, height) = (right - left, bottom - top);
    }
    let is_right = |key: &str, side: usize| {
        let wanted = rules.get(key).filter(|wanted| !wanted.is_null());
        wanted.is_none_or(|wanted| python::equal(wanted, &Value::from(side)))
    };
    Ok(score(
        is_right("height", height) && is_right("width", width),
    ))
}

/// The picture's file has fewer bytes than `max_size`.
pub(super) fn check_image_file_size(call: &Call<'_>) -> Result<f64, MetricError> {
    let Some(file) = call.file()? else {
        return Ok(0.0);
    };
    let most = rule::entry(call.rules()?, "max_size")?;
    let most = python::worth(most).ok_or_else(|| raised(format!("{most} is no size")))?;
    Ok(score((file.bytes.len() as f64) < most))
}

/// Something dark stands in the first twentieth of the picture.
pub(super) fn check_textbox_on_leftside(call: &Call<'_>) -> Result<f64, MetricError> {
    let Some(file) = call.file()? else {
        return Ok(0.0);
    };
    let picture = Picture::open(&file.bytes)?.grey();
    let rows = picture.data.chunks(picture.width.max(1));
    let firsts = rows.filter_map(|row| row.iter().position(|grey| *grey < 128));
    let first = firsts.min().unwrap_or(picture.width);
    Ok(score((first as f64) < picture.width as f64 * 0.05))
}

/// What is of the second rarest color stands in the middle, a twentieth of each side at most off.
/// Departs: of colors as rare as each other the darker comes first; there it is left open.
pub(super) fn check_triangle_position(call: &Call<'_>) -> Result<f64, MetricError> {
    let Some(file) = call.file()? else {
        return Ok(0.0);
    };
    let picture = Picture::open(&file.bytes)?;
    if matches!(picture.mode, Mode::One | Mode::L | Mode::P) {
        return Err(raised("a picture without colors"));
    }
    let pixels = || picture.data.chunks(picture.channels());
    let mut counts: BTreeMap<&[u8], usize> = BTreeMap::new();
    for pixel in pixels() {
        *counts.entry(pixel).or_default() += 1;
    }
    let mut colors: Vec<(&[u8], usize)> = counts.into_iter().collect();
    colors.sort_by_key(|(_, count)| *count);
    let (color, count) = *colors
        .get(1)
        .ok_or_else(|| raised("a picture of one color"))?;
    let (mut rows, mut columns) = (0, 0);
    for (at, _) in pixels().enumerate().filter(|(_, pixel)| *pixel == color) {
        rows += at / picture.width;
        columns += at % picture.width;
    }
    let is_central = |sum: usize, side: usize| {
        let (place, side) = (sum as f64 / count as f64, side as f64);
        (place - side / 2.0).abs() < 0.05 * side
    };
    Ok(score(
        is_central(rows, picture.height) && is_central(columns, picture.width),
    ))
}
