//! Metrics over presentations.
//!
//! What a presentation holds is what python-pptx shows of it: formatting that stands at a run or
//! paragraph itself, not what layouts and themes give it; places and sizes of what fills a place of
//! the layout come from there.
//! Departs: parts in UTF-16 or with a document type declaration cannot be opened here.

mod compare;
mod deck;
mod shape;
mod text;
mod xml;

use roxmltree::Document;
use serde_json::Value;

use super::package::Archive;
use super::python::{self, raised};
use super::{Call, MetricError, rule, score};
use deck::{Deck, Fill, Rgb, rgb, unpack};
use shape::{Kind, Measure, Shape};
use xml::{A, P, below};

pub(super) use compare::compare_pptx_files;

/// EMU in half an inch.
const HALF_INCH: f64 = 457_200.0;

/// The presentation is of pages that are higher than wide.
pub(super) fn check_slide_orientation_portrait(call: &Call<'_>) -> Result<f64, MetricError> {
    // Without a file python-pptx opens an empty presentation, which is wide.
    let Some(file) = call.file()? else {
        return Ok(0.0);
    };
    let package = unpack(&file.bytes)?;
    let (width, height) = size(&Deck::read(&package)?)?;
    Ok(score(width < height))
}

/// Some runs of the first slides are struck through: at each of `slide_index_s`, of
/// `shape_index_s` there, the first run of each of `paragraph_index_s`.
pub(super) fn check_strikethrough(call: &Call<'_>) -> Result<f64, MetricError> {
    let rules = call.rules()?;
    let indexes = |key: &str| rule::list(rules, key).and(rule::entry(rules, key));
    let wanted = (
        indexes("slide_index_s")?,
        indexes("shape_index_s")?,
        indexes("paragraph_index_s")?,
    );
    let package = call.file()?.map(|file| unpack(&file.bytes)).transpose()?;
    let deck = package.as_ref().map(Deck::read).transpose()?;
    let slides = deck.as_ref().map(Deck::slides).transpose()?;
    for slide in items(wanted.0) {
        let Some(slide) = at(slides.as_deref().unwrap_or_default(), slide) else {
            return Ok(0.0);
        };
        // Whatever is wrong further down is no score of 1 there, and no exception.
        let shapes = slide.shapes().unwrap_or_default();
        for shape in items(wanted.1) {
            let paragraphs = at(&shapes, shape).and_then(Shape::paragraphs);
            let paragraphs = paragraphs.unwrap_or_default();
            let is_struck = |paragraph: &Value| {
                let run = at(&paragraphs, paragraph)
                    .and_then(|paragraph| paragraph.runs().into_iter().next());
                run.is_some_and(|run| run.strike().is_some())
            };
            if !items(wanted.2).iter().all(is_struck) {
                return Ok(0.0);
            }
        }
    }
    Ok(score(true))
}

/// How near the plain colors behind the slides are to `rgb`, on the mean; those that are still
/// `original_rgb` count as far.
pub(super) fn evaluate_presentation_fill_to_rgb_distance(
    call: &Call<'_>,
) -> Result<f64, MetricError> {
    let rules = call.rules()?;
    let wanted = color(rule::entry(rules, "rgb")?)?;
    let original = rules.get("original_rgb").filter(|rgb| !rgb.is_null());
    let original = original.map(color).transpose()?;
    let package = call.file()?.map(|file| unpack(&file.bytes)).transpose()?;
    let deck = package.as_ref().map(Deck::read).transpose()?;
    let slides = deck.as_ref().map(Deck::slides).transpose()?;
    let slides = slides.unwrap_or_default();
    if slides.is_empty() {
        return Err(raised("a presentation without slides"));
    }
    let mut distance = 0.0;
    for slide in &slides {
        let fill = match slide.fill()? {
            Fill::Through => slide.master_fill()?,
            own => own,
        };
        let color = match fill {
            Fill::Solid(fill) => rgb(fill).unwrap_or_default(),
            Fill::Through | Fill::Other => None,
        };
        let color = color.map(|color: Rgb| color.map(f64::from));
        let changed = color.filter(|color| original != Some(*color));
        distance += changed.map_or(1.0, |color| apart(color, wanted));
    }
    Ok(1.0 - distance / slides.len() as f64)
}

/// The picture of the first slide, which was the first there, fills it and stands in its middle.
pub(super) fn check_image_stretch_and_center(call: &Call<'_>) -> Result<f64, MetricError> {
    let (Some(found), Some(original)) = (call.file()?, call.expected_file()?) else {
        return Err(raised("there is no presentation"));
    };
    let (found, original) = (unpack(&found.bytes)?, unpack(&original.bytes)?);
    let (original, found) = (Deck::read(&original)?, Deck::read(&found)?);
    let (wanted, pictures) = (first_pictures(&original)?, first_pictures(&found)?);
    let Some(wanted) = wanted.first() else {
        return Ok(0.0);
    };
    let mut same = None;
    for picture in &pictures {
        if picture.picture()? == wanted.picture()? {
            same = Some(picture);
        }
    }
    let Some(same) = same else {
        return Ok(0.0);
    };
    let measure = |measure| {
        let found = same.measure(measure)?;
        found.ok_or_else(|| raised("a picture of no place or size"))
    };
    let (width, height) = (measure(Measure::Width)?, measure(Measure::Height)?);
    let (left, top) = (measure(Measure::Left)?, measure(Measure::Top)?);
    let (full_width, full_height) = size(&original)?;
    let is_near = |one: i64, other: f64| (one as f64 - other).abs() <= HALF_INCH;
    Ok(score(
        is_near(width, full_width as f64)
            && is_near(height, full_height as f64)
            && is_near(left, (full_width - width) as f64 / 2.0)
            && is_near(top, (full_height - height) as f64 / 2.0),
    ))
}

/// The pictures of the first slide.
fn first_pictures<'a>(deck: &'a Deck<'a>) -> Result<Vec<Shape<'a>>, MetricError> {
    let slides = deck.slides()?;
    let slide = slides
        .first()
        .ok_or_else(|| raised("a presentation without slides"))?;
    let mut pictures = Vec::new();
    for shape in slide.shapes()? {
        if shape.kind()? == Kind::Picture {
            pictures.push(shape);
        }
    }
    Ok(pictures)
}

/// The slide `slide_idx`, counted from 0 by names of files, comes in by `transition_type`.
pub(super) fn check_transition(call: &Call<'_>) -> Result<f64, MetricError> {
    let rules = call.rules()?;
    let index = rule::entry(rules, "slide_idx")?.as_i64();
    let index = index.ok_or_else(|| MetricError::Rules("\"slide_idx\" is no number".into()))?;
    let kind = rule::text(rules, "transition_type")?;
    let Some(text) = member(call, &format!("ppt/slides/slide{}.xml", index + 1))? else {
        return Ok(0.0);
    };
    let tree = parsed(&text)?;
    let transition = below(tree.root_element(), P, "transition").next();
    let comes_in = transition.is_some_and(|transition| {
        let mut inner = transition.descendants().skip(1);
        inner.any(|node| xml::is(&node, P, kind))
    });
    Ok(score(comes_in))
}

/// The last plain color but one of the first master is of a `color`: red, green, blue or black.
///
/// As the function does, which takes it for `#rrggbb` where it is `rrggbb`: of what it looks at,
/// red lacks its first digit and blue its last.
pub(super) fn check_page_number_colors(call: &Call<'_>) -> Result<f64, MetricError> {
    let wanted = rule::entry(call.rules()?, "color")?;
    let lost = || raised("the presentation has no master");
    let text = member(call, "ppt/slideMasters/slideMaster1.xml")?.ok_or_else(lost)?;
    let tree = parsed(&text)?;
    let colors =
        below(tree.root_element(), A, "solidFill").flat_map(|fill| below(fill, A, "srgbClr"));
    let colors: Vec<_> = colors.collect();
    let before_last = colors.len().checked_sub(2).map(|at| colors[at]);
    let color = before_last.ok_or_else(|| raised("the master has fewer than two colors"))?;
    let Some(color) = color.attribute("val") else {
        return Ok(0.0);
    };
    let part = |from: usize, to: usize| {
        let digits: String = color.chars().skip(from).take(to - from).collect();
        let value = i64::from_str_radix(python::strip(&digits), 16);
        value.map_err(|_| raised(format!("color {color:?}")))
    };
    let parts = || Ok::<_, MetricError>((part(1, 3)?, part(3, 5)?, part(5, 7)?));
    let most = |high: i64, low: i64, other: i64| high > low + 50 && high > other + 50;
    let is_right = match wanted.as_str() {
        Some("red") => parts().map(|(r, g, b)| most(r, g, b))?,
        Some("blue") => parts().map(|(r, g, b)| most(b, g, r))?,
        Some("green") => parts().map(|(r, g, b)| most(g, r, b))?,
        Some("black") => parts().map(|(r, g, b)| r < 50 && g < 50 && b < 50)?,
        _ => true,
    };
    Ok(score(is_right))
}

/// Impress shows the panel of all slides: its accessibility tree has it.
pub(super) fn check_left_panel(call: &Call<'_>) -> Result<f64, MetricError> {
    let text = call.value()?.as_str();
    let text = text.ok_or_else(|| raised("there is no accessibility tree"))?;
    let tree = parsed(text)?;
    let is_panel = tree.descendants().any(|node| {
        let name = node.tag_name();
        name.name() == "document-frame"
            && name.namespace().is_none()
            && node.attribute("name") == Some("Slides View")
    });
    Ok(score(is_panel))
}

/// The text of a file in the presentation's archive; none where it lacks it.
fn member(call: &Call<'_>, name: &str) -> Result<Option<String>, MetricError> {
    let file = call.file()?.ok_or_else(|| raised("there is no file"))?;
    let mut archive = Archive::open(&file.bytes).ok_or_else(|| raised("not an archive"))?;
    if !archive.has(name) {
        return Ok(None);
    }
    archive
        .read_text(name)
        .map(Some)
        .ok_or_else(|| raised(format!("{name}: cannot be read")))
}

fn parsed(text: &str) -> Result<Document<'_>, MetricError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    Document::parse(text).map_err(|error| raised(format!("not XML: {error}")))
}

fn size(deck: &Deck<'_>) -> Result<(i64, i64), MetricError> {
    deck.size()?
        .ok_or_else(|| raised("a presentation of no size"))
}

/// The items of a list of the rules.
fn items(list: &Value) -> &[Value] {
    list.as_array().map_or(&[], Vec::as_slice)
}

/// `items[index]`: below 0 it counts from the end.
fn at<'a, T>(items: &'a [T], index: &Value) -> Option<&'a T> {
    let index = index.as_i64()?;
    let from_end = || {
        items
            .len()
            .checked_sub(usize::try_from(index.unsigned_abs()).ok()?)
    };
    let place = if index < 0 {
        from_end()
    } else {
        usize::try_from(index).ok()
    };
    items.get(place?)
}

/// A color of the rules.
fn color(value: &Value) -> Result<[f64; 3], MetricError> {
    let parts: Vec<f64> = items(value).iter().filter_map(python::worth).collect();
    let wrong = |_| MetricError::Rules(format!("{value} is no color: give red, green and blue"));
    parts.try_into().map_err(wrong)
}

/// How far colors are apart, as a part of what black and white are.
fn apart(color: [f64; 3], other: [f64; 3]) -> f64 {
    let squares = color
        .iter()
        .zip(other)
        .map(|(one, other)| (one - other).powi(2));
    squares.sum::<f64>().sqrt() / (3.0 * 255_f64.powi(2)).sqrt()
}
