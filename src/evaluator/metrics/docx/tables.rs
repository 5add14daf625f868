//! Metrics over the tables of documents.

use roxmltree::{Document, Node};

use super::super::python::{self, raised};
use super::super::{Call, MetricError};
use super::paragraph::{Paragraph, attribute, body, child, children};
use super::{both, one_of_the_same_words};

/// Widest span that is taken: a file can claim anything, Word allows 63.
const MAX_SPAN: usize = 1000;

/// A table that stands in the body itself.
struct Table<'a, 'i>(Node<'a, 'i>);

fn tables<'a, 'i>(tree: &'a Document<'i>) -> Result<Vec<Table<'a, 'i>>, MetricError> {
    Ok(children(body(tree)?, "tbl").map(Table).collect())
}

/// A property of a cell: how many columns it spans, or how it is merged with the one above.
fn property<'a, 'i>(cell: Node<'a, 'i>, name: &'static str) -> Option<Node<'a, 'i>> {
    child(child(cell, "tcPr")?, name)
}

/// Whether a cell goes on with the one above.
fn goes_on(cell: Node<'_, '_>) -> bool {
    let merge = property(cell, "vMerge").map(|merge| attribute(merge, "val"));
    merge.is_some_and(|how| how.is_none_or(|how| how == "continue"))
}

fn span(cell: Node<'_, '_>) -> Result<usize, MetricError> {
    let Some(span) = property(cell, "gridSpan").and_then(|span| attribute(span, "val")) else {
        return Ok(1);
    };
    let columns = span.parse().ok().filter(|columns| *columns <= MAX_SPAN);
    columns.ok_or_else(|| raised(format!("a span of {span:?}")))
}

fn cell_paragraphs<'a, 'i>(cell: Node<'a, 'i>) -> impl Iterator<Item = Paragraph<'a, 'i>> {
    children(cell, "p").map(Paragraph)
}

impl<'a, 'i> Table<'a, 'i> {
    fn num_rows(&self) -> usize {
        children(self.0, "tr").count()
    }

    fn num_columns(&self) -> Result<usize, MetricError> {
        let grid = child(self.0, "tblGrid").ok_or_else(|| raised("a table without grid"))?;
        Ok(children(grid, "gridCol").count())
    }

    /// Cells in order, as often as columns they span; those that go on are the ones above.
    fn cells(&self) -> Result<Vec<Node<'a, 'i>>, MetricError> {
        let num_columns = self.num_columns()?;
        let mut cells: Vec<Node<'a, 'i>> = Vec::new();
        for cell in children(self.0, "tr").flat_map(|row| children(row, "tc")) {
            for i in 0..span(cell)? {
                let cell = if goes_on(cell) {
                    // The first of all for a table without columns, as Python counts from the end.
                    let above = cells.len().checked_sub(num_columns);
                    let above = if num_columns == 0 { Some(0) } else { above };
                    let above = above.and_then(|at| cells.get(at));
                    *above.ok_or_else(|| raised("a cell that goes on with nothing"))?
                } else if i > 0 {
                    cells[cells.len() - 1]
                } else {
                    cell
                };
                cells.push(cell);
            }
        }
        Ok(cells)
    }

    /// The text of each place, row by row.
    fn texts(&self) -> Result<Vec<String>, MetricError> {
        let cells = self.cells()?;
        let places = self.num_rows() * self.num_columns()?;
        let text = |cell: &Node<'_, '_>| {
            let texts: Vec<String> = cell_paragraphs(*cell).map(|one| one.text()).collect();
            python::strip(&texts.join("\n")).to_owned()
        };
        let texts: Vec<String> = cells.iter().take(places).map(text).collect();
        Ok(texts)
    }
}

/// Two documents have the same tables.
pub(in crate::evaluator::metrics) fn compare_docx_tables(
    call: &Call<'_>,
) -> Result<f64, MetricError> {
    let Some((found, expected)) = both(call)? else {
        return Ok(0.0);
    };
    let (found, expected) = (found.document()?, expected.document()?);
    let (found, expected) = (tables(&found)?, tables(&expected)?);
    if found.len() != expected.len() {
        return Ok(0.0);
    }
    for (found, expected) in found.iter().zip(&expected) {
        if found.num_rows() != expected.num_rows()
            || found.num_columns()? != expected.num_columns()?
        {
            return Ok(0.0);
        }
        let places = found.num_rows() * found.num_columns()?;
        if places == 0 {
            continue;
        }
        let (found, expected) = (found.texts()?, expected.texts()?);
        if found
            .iter()
            .zip(&expected)
            .any(|(found, expected)| found != expected)
        {
            return Ok(0.0);
        }
        // A row may have fewer cells than the grid has columns.
        if found.len() < places || expected.len() < places {
            return Err(raised("a table with too few cells"));
        }
    }
    Ok(1.0)
}

/// Words in tables are red where they begin with a vowel and blue elsewhere, within `threshold`,
/// in a document that says the same as the other.
pub(in crate::evaluator::metrics) fn evaluate_colored_words_in_tables(
    call: &Call<'_>,
) -> Result<f64, MetricError> {
    let Some(document) = one_of_the_same_words(call)? else {
        return Ok(0.0);
    };
    let threshold = call
        .options
        .get("threshold")
        .map_or(Some(3.5), python::worth);
    let threshold = threshold.ok_or_else(|| raised("\"threshold\" is no number"))?;
    let tree = document.document()?;
    for table in tables(&tree)? {
        for (number, row) in children(table.0, "tr").enumerate() {
            for cell in children(row, "tc") {
                if goes_on(cell) {
                    if number == 0 {
                        return Err(raised("a cell that goes on with nothing"));
                    }
                    continue;
                }
                if span(cell)? > 0 && !is_colored_right(cell, threshold)? {
                    return Ok(0.0);
                }
            }
        }
    }
    Ok(1.0)
}

fn is_colored_right(cell: Node<'_, '_>, threshold: f64) -> Result<bool, MetricError> {
    for run in cell_paragraphs(cell).flat_map(|one| one.runs().collect::<Vec<_>>()) {
        let text = run.text();
        let Some(first) = text.chars().next() else {
            continue;
        };
        let first = first.to_lowercase().to_string();
        let wanted = if "aeiou".contains(&first) {
            [255, 0, 0]
        } else {
            [0, 0, 255]
        };
        let color = run.color()?.ok_or_else(|| raised("a word without color"))?;
        if color_difference(color, wanted) > threshold {
            return Ok(false);
        }
    }
    Ok(true)
}

/// CIEDE2000 of two colors, as scikit-image computes it (`rgb2lab`, `deltaE_ciede2000`).
fn color_difference(left: [u8; 3], right: [u8; 3]) -> f64 {
    let ([l1, a1, b1], [l2, a2, b2]) = (lab(left), lab(right));
    let seventh = |c: f64| (c.powi(7) / (c.powi(7) + 25f64.powi(7))).sqrt();
    let mean_chroma = 0.5 * (a1.hypot(b1) + a2.hypot(b2));
    let scale = 1.0 + 0.5 * (1.0 - seventh(mean_chroma));
    let polar = |a: f64, b: f64| (a.hypot(b), b.atan2(a).rem_euclid(std::f64::consts::TAU));
    let ((c1, h1), (c2, h2)) = (polar(a1 * scale, b1), polar(a2 * scale, b2));
    let (l_mean, c_mean) = (0.5 * (l1 + l2), 0.5 * (c1 + c2));
    let lightness = (l2 - l1)
        / (1.0 + 0.015 * (l_mean - 50.0).powi(2) / (20.0 + (l_mean - 50.0).powi(2)).sqrt());
    let chroma = (c2 - c1) / (1.0 + 0.045 * c_mean);
    let (mut turn, is_grey) = (h2 - h1, c1 * c2 == 0.0);
    let pi = std::f64::consts::PI;
    if turn.abs() > pi {
        turn -= turn.signum() * 2.0 * pi;
    }
    if is_grey {
        turn = 0.0;
    }
    let mut h_mean = h1 + h2;
    if !is_grey && (h1 - h2).abs() > pi {
        h_mean += if h_mean < 2.0 * pi {
            2.0 * pi
        } else {
            -2.0 * pi
        };
    }
    if !is_grey {
        h_mean *= 0.5;
    }
    let t = 1.0 - 0.17 * (h_mean - 30f64.to_radians()).cos()
        + 0.24 * (2.0 * h_mean).cos()
        + 0.32 * (3.0 * h_mean + 6f64.to_radians()).cos()
        - 0.20 * (4.0 * h_mean - 63f64.to_radians()).cos();
    let hue = 2.0 * (c1 * c2).sqrt() * (turn / 2.0).sin() / (1.0 + 0.015 * c_mean * t);
    let around = 30f64.to_radians() * (-((h_mean.to_degrees() - 275.0) / 25.0).powi(2)).exp();
    let rotation = -(2.0 * around).sin() * 2.0 * seventh(c_mean);
    let square = lightness.powi(2) + chroma.powi(2) + hue.powi(2) + rotation * chroma * hue;
    square.max(0.0).sqrt()
}

/// CIE L*a*b* under D65.
fn lab(color: [u8; 3]) -> [f64; 3] {
    let linear = color.map(|part| {
        let part = f64::from(part) / 255.0;
        if part > 0.04045 {
            ((part + 0.055) / 1.055).powf(2.4)
        } else {
            part / 12.92
        }
    });
    let row = |weights: [f64; 3]| {
        weights
            .iter()
            .zip(&linear)
            .map(|(weight, part)| weight * part)
            .sum::<f64>()
    };
    let x = row([0.412_453, 0.357_580, 0.180_423]) / 0.95047;
    let y = row([0.212_671, 0.715_160, 0.072_169]);
    let z = row([0.019_334, 0.119_193, 0.950_227]) / 1.08883;
    let [x, y, z] = [x, y, z].map(|part| {
        if part > 0.008_856 {
            part.cbrt()
        } else {
            7.787 * part + 16.0 / 116.0
        }
    });
    [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
}
