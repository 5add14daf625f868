//! Two presentations held against each other, with a switch for each thing that is.

use roxmltree::Node;

use super::super::python::{self, raised};
use super::super::{Call, MetricError, score};
use super::deck::{Deck, Fill, Rgb, Slide, rgb, unpack};
use super::shape::{Kind, Measure, Shape};
use super::text::{Bullets, Paragraph, Run};
use super::xml::{A, child};
use crate::evaluator::found::FoundFile;

/// All that is measured.
const MEASURES: [Measure; 4] = [Measure::Left, Measure::Top, Measure::Width, Measure::Height];

/// Whether anything differs that is not let pass; the first that does decides.
type Differs = Result<bool, MetricError>;

/// Two presentations are the same. What `examine_…` names is held against each other, all but
/// places and sizes of some tasks unless switched off.
///
/// Departs: `examine_run_count`, which OSWorld's function has since desktop-env 1.0.2, lets a
/// paragraph be made of more or fewer runs; those that there are are held against each other.
pub(in crate::evaluator::metrics) fn compare_pptx_files(
    call: &Call<'_>,
) -> Result<f64, MetricError> {
    // Where there is no file, python-pptx opens a presentation without slides.
    let open = |file: Option<&FoundFile>| file.map(|file| unpack(&file.bytes)).transpose();
    let found = open(call.file()?)?;
    let expected = open(call.expected_file()?)?;
    let found = found.as_ref().map(Deck::read).transpose()?;
    let expected = expected.as_ref().map(Deck::read).transpose()?;
    let slides = |deck| Option::map_or(deck, Ok(Vec::new()), Deck::slides);
    let (found, expected) = (slides(found.as_ref())?, slides(expected.as_ref())?);
    let examined = Examined::by(call)?;
    if found.len() != expected.len() && examined.is_on("number_of_slides") {
        return Ok(0.0);
    }
    for (at, (found, expected)) in found.into_iter().zip(expected).enumerate() {
        if examined.slides_differ(at + 1, found, expected)? {
            return Ok(0.0);
        }
    }
    Ok(score(true))
}

/// What is examined.
struct Examined<'a> {
    call: &'a Call<'a>,
    /// How far places and sizes may be apart, as a part of the larger.
    tolerance: f64,
}

/// Switches that are off unless given.
const OFF: [&str; 7] = [
    "title_bottom_position",
    "table_bottom_position",
    "right_position",
    "top_position",
    "shape_for_shift_size",
    "image_size",
    "modify_height",
];

impl<'a> Examined<'a> {
    fn by(call: &'a Call<'a>) -> Result<Self, MetricError> {
        let tolerance = call.options.get("approximately_tolerance");
        let tolerance = tolerance.map_or(Some(0.005), python::worth);
        let wrong = || MetricError::Rules("\"approximately_tolerance\" is no number".into());
        Ok(Self {
            call,
            tolerance: tolerance.ok_or_else(wrong)?,
        })
    }

    fn is_on(&self, switch: &str) -> bool {
        let given = self.call.options.get(&format!("examine_{switch}"));
        given.map_or(!OFF.contains(&switch), python::is_true)
    }

    /// `number` counts from 1.
    fn slides_differ(&self, number: usize, found: Slide<'a>, expected: Slide<'a>) -> Differs {
        if background(found)? != background(expected)? && self.is_on("background_color") {
            return Ok(true);
        }
        let (notes, expected_notes) = (found.notes()?, expected.notes()?);
        if python::strip(&notes) != python::strip(&expected_notes) && self.is_on("note") {
            return Ok(true);
        }
        let (shapes, expected_shapes) = (found.shapes()?, expected.shapes()?);
        if shapes.len() != expected_shapes.len() {
            return Ok(true);
        }
        let mut pages = Pages {
            found: Bullets::of(found.root()?),
            expected: Bullets::of(expected.root()?),
        };
        for (shape, other) in shapes.iter().zip(&expected_shapes) {
            let differs = self.places_differ(number, shape, other)?
                || self.tables_differ(shape, other)?
                || self.texts_differ(&mut pages, shape, other)?;
            if differs {
                return Ok(true);
            }
        }
        let with_text = |shapes: &[Shape<'a>]| -> Vec<Shape<'a>> {
            shapes.iter().flat_map(Shape::with_text).collect()
        };
        self.alignments_differ(&with_text(&shapes), &with_text(&expected_shapes))
    }

    /// Places and sizes, as tasks ask for them.
    fn places_differ(&self, slide: usize, shape: &Shape<'a>, other: &Shape<'a>) -> Differs {
        // Kinds are told even where nothing asks for them: a shape of none is no score.
        let kinds = (shape.kind()?, other.kind()?);
        let differs = || self.any_differs(shape, other);
        let texts = (shape.text()?, other.text()?);
        let same_text = texts.0.is_some() && texts.0 == texts.1;
        let no_texts = texts.0.is_none() && texts.1.is_none();
        let text = texts.0.as_deref();
        let is_not_lower = |top: i64| -> Differs {
            Ok(
                measured(shape, Measure::Top)? <= measured(other, Measure::Top)?
                    || measured(shape, Measure::Top)? < top,
            )
        };
        if self.is_on("title_bottom_position") {
            if same_text {
                if text == Some("Product Comparison") && is_not_lower(3_600_000)? {
                    return Ok(true);
                }
            } else if differs()? {
                return Ok(true);
            }
        }
        if self.is_on("table_bottom_position") {
            if slide == 3 && kinds == (Kind::Table, Kind::Table) {
                if is_not_lower(3_600_000)? {
                    return Ok(true);
                }
            } else if differs()? {
                return Ok(true);
            }
        }
        if self.is_on("right_position") && slide == 2 && no_texts {
            let left = measured(shape, Measure::Left)?;
            if left <= measured(other, Measure::Left)? || left < 4_320_000 {
                return Ok(true);
            }
        }
        if self.is_on("top_position") && slide == 2 && kinds == (Kind::Picture, Kind::Picture) {
            let top = measured(shape, Measure::Top)?;
            if top >= measured(other, Measure::Top)? || top > 1_980_000 {
                return Ok(true);
            }
        }
        let may_shift = same_text && text == Some("Elaborate on what you want to discuss.");
        if self.is_on("shape_for_shift_size") && differs()? && !may_shift {
            return Ok(true);
        }
        if differs()? && self.is_on("shape") {
            if self
                .call
                .options
                .get("enable_debug")
                .is_none_or(python::is_true)
            {
                // The reference logs how all four compare, and raises where one cannot be.
                for measure in MEASURES {
                    self.differ(shape, other, &[measure])?;
                }
            }
            return Ok(true);
        }
        if self.is_on("image_size") {
            let is_picture = kinds == (Kind::Picture, Kind::Picture);
            let sizes = [Measure::Width, Measure::Height];
            let measures = if is_picture { &sizes[..] } else { &MEASURES };
            if self.differ(shape, other, measures)? {
                return Ok(true);
            }
        }
        let is_drawn = no_texts || kinds == (Kind::Freeform, Kind::Freeform);
        let measures = if is_drawn { &MEASURES[3..] } else { &MEASURES };
        Ok(self.is_on("modify_height") && self.differ(shape, other, measures)?)
    }

    fn any_differs(&self, shape: &Shape<'a>, other: &Shape<'a>) -> Differs {
        self.differ(shape, other, &MEASURES)
    }

    /// Whether one of the measures is not about the same.
    fn differ(&self, shape: &Shape<'a>, other: &Shape<'a>, measures: &[Measure]) -> Differs {
        for measure in measures {
            let (left, right) = (shape.measure(*measure)?, other.measure(*measure)?);
            if left == right {
                continue;
            }
            if left == Some(0) || right == Some(0) {
                return Ok(true);
            }
            let both = left.zip(right);
            let (left, right) = both.ok_or_else(|| raised("a shape of no place or size"))?;
            let apart = left.abs_diff(right) as f64;
            let larger = left.unsigned_abs().max(right.unsigned_abs()) as f64;
            if apart / larger > self.tolerance {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Tables, cell by cell.
    fn tables_differ(&self, shape: &Shape<'a>, other: &Shape<'a>) -> Differs {
        if shape.kind()? != Kind::Table {
            return Ok(false);
        }
        let ((rows, columns), (other_rows, other_columns)) = (shape.table()?, other.table()?);
        if rows.len() != other_rows.len() || columns != other_columns {
            return Ok(true);
        }
        for (row, other_row) in rows.iter().zip(&other_rows) {
            for column in 0..columns {
                if self.cells_differ(&cell(row, column)?, &cell(other_row, column)?)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    fn cells_differ(&self, cell: &[Paragraph<'a>], other: &[Paragraph<'a>]) -> Differs {
        if cell.len() != other.len() {
            return Ok(true);
        }
        for (paragraph, other) in cell.iter().zip(other) {
            let (runs, others) = (paragraph.runs(), other.runs());
            if runs.len() != others.len() && self.is_on("run_count") {
                return Ok(true);
            }
            for (run, other) in runs.iter().zip(&others) {
                let differs = (colors_differ(run, other)? && self.is_on("color_rgb"))
                    || run.is_on("b")? != other.is_on("b")?
                    || run.is_on("i")? != other.is_on("i")?
                    || underlines_differ(run, other)?;
                if differs {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Texts that stand on the slide itself, and how they look.
    fn texts_differ(&self, pages: &mut Pages<'a>, shape: &Shape<'a>, other: &Shape<'a>) -> Differs {
        let (Some(paragraphs), Some(others)) = (shape.paragraphs(), other.paragraphs()) else {
            return Ok(false);
        };
        if self.words_differ(shape, other)? || paragraphs.len() != others.len() {
            return Ok(true);
        }
        for (paragraph, other) in paragraphs.iter().zip(&others) {
            pages.found.ask(paragraph);
            pages.expected.ask(other);
            let is_aligned =
                !self.is_on("alignment") || paragraph.alignment()? == other.alignment()?;
            let differs = !is_aligned
                || (paragraph.text()? != other.text()? && self.is_on("text"))
                || (paragraph.level()? != other.level()? && self.is_on("indent"));
            let (runs, others) = (paragraph.runs(), other.runs());
            if differs || (runs.len() != others.len() && self.is_on("run_count")) {
                return Ok(true);
            }
            for (run, other) in runs.iter().zip(&others) {
                let bullets_fit = || pages.found.fit(&pages.expected);
                if self.runs_differ(run, other)? || (self.is_on("bullets") && !bullets_fit()) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    fn runs_differ(&self, run: &Run<'a>, other: &Run<'a>) -> Differs {
        let strike = |run: &Run<'a>| run.strike().unwrap_or("noStrike");
        Ok(
            (run.font_name()? != other.font_name()? && self.is_on("font_name"))
                || (run.size()? != other.size()? && self.is_on("font_size"))
                || (run.is_on("b")? != other.is_on("b")? && self.is_on("font_bold"))
                || (run.is_on("i")? != other.is_on("i")? && self.is_on("font_italic"))
                || (colors_differ(run, other)? && self.is_on("color_rgb"))
                || (underlines_differ(run, other)? && self.is_on("font_underline"))
                || (strike(run) != strike(other) && self.is_on("strike_through")),
        )
    }

    /// How texts are aligned, in groups too.
    fn alignments_differ(&self, shapes: &[Shape<'a>], others: &[Shape<'a>]) -> Differs {
        if shapes.len() != others.len() {
            return Ok(true);
        }
        if !self.is_on("alignment") {
            return Ok(false);
        }
        for (shape, other) in shapes.iter().zip(others) {
            let paragraphs = shape.paragraphs().unwrap_or_default();
            let others = other.paragraphs().unwrap_or_default();
            if self.words_differ(shape, other)? || paragraphs.len() != others.len() {
                return Ok(true);
            }
            for (paragraph, other) in paragraphs.iter().zip(&others) {
                if paragraph.alignment()? != other.alignment()? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    fn words_differ(&self, shape: &Shape<'a>, other: &Shape<'a>) -> Differs {
        let (text, other) = (shape.text()?, other.text()?);
        let (text, other) = (text.unwrap_or_default(), other.unwrap_or_default());
        Ok(python::strip(&text) != python::strip(&other) && self.is_on("text"))
    }
}

/// The bullets of both slides.
struct Pages<'a> {
    found: Bullets<'a>,
    expected: Bullets<'a>,
}

fn measured(shape: &Shape<'_>, measure: Measure) -> Result<i64, MetricError> {
    let found = shape.measure(measure)?;
    found.ok_or_else(|| raised("a shape of no place"))
}

fn cell<'a>(row: &[Node<'a, 'a>], column: usize) -> Result<Vec<Paragraph<'a>>, MetricError> {
    let cell = row.get(column).ok_or_else(|| raised("a row too short"))?;
    let body = child(*cell, A, "txBody");
    Ok(Paragraph::all(body))
}

/// The color behind a slide, its own or its master's; none where it is no plain one.
fn background(slide: Slide<'_>) -> Result<Option<Rgb>, MetricError> {
    let color = |fill| {
        rgb(fill)?
            .ok_or_else(|| raised("a color of the theme"))
            .map(Some)
    };
    match slide.fill()? {
        Fill::Solid(fill) => color(fill),
        Fill::Other => Ok(None),
        Fill::Through => match slide.master_fill()? {
            Fill::Solid(fill) => color(fill),
            Fill::Through | Fill::Other => Ok(None),
        },
    }
}

/// Both have a color of their own, and not the same.
fn colors_differ(run: &Run<'_>, other: &Run<'_>) -> Differs {
    let Some(color) = run.color()? else {
        return Ok(false);
    };
    Ok(other.color()?.is_some_and(|other| other != color))
}

/// Both say how they are underlined, and not the same, or one is underlined and the other says
/// nothing.
fn underlines_differ(run: &Run<'_>, other: &Run<'_>) -> Differs {
    Ok(match (run.underline()?, other.underline()?) {
        (Some(underline), Some(other)) => underline != other,
        (Some(_), None) => run.is_underlined(),
        (None, Some(_)) => other.is_underlined(),
        (None, None) => false,
    })
}
