//! Cells of a sheet, with what stands in them as openpyxl tells it.

use roxmltree::Node;

use super::super::MetricError;
use super::super::python::{self, raised};
use super::range::{Place, place};
use super::style::Styles;
use super::xml::{child, children};

/// A value of a cell.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Datum {
    /// Nothing, or not a number.
    Nothing,
    Bool(bool),
    Int(i128),
    Float(f64),
    Text(String),
    /// One of the errors of formulas.
    Error,
    /// A point in time: milliseconds since the first day of serial numbers, 1899-12-30.
    Moment(i64),
    /// A time of day, milliseconds.
    Time(i64),
    /// A length of time, milliseconds.
    Span(i64),
}

/// A cell.
#[derive(Clone, Debug)]
pub(super) struct Cell {
    pub(super) place: Place,
    /// The value; of a formula the one that was calculated last.
    pub(super) value: Datum,
    /// The formula.
    pub(super) formula: Option<String>,
    /// Whether the value is a plain number (or nothing), no date and no text.
    pub(super) is_number: bool,
    /// Index of its style.
    pub(super) style: usize,
}

/// A row: its number and its cells.
pub(super) type Row = (u32, Vec<Cell>);

/// What cells are read with.
pub(super) struct Reading<'a> {
    pub(super) shared: &'a [String],
    pub(super) styles: &'a Styles,
    /// Days from 1899-12-30 to the first day of the book: 0, or 1462 where days count from 1904.
    pub(super) first_day: i64,
}

impl Reading<'_> {
    /// All rows below a sheet's root, with numbers that are not written counted on.
    pub(super) fn rows(&self, root: Node<'_, '_>) -> Result<Vec<Row>, MetricError> {
        let namespace = root.tag_name().namespace();
        let is_row = |node: &Node<'_, '_>| {
            node.tag_name().name() == "row" && node.tag_name().namespace() == namespace
        };
        let mut rows = Vec::new();
        let mut number = 0;
        for row in root.descendants().filter(is_row) {
            number = match row.attribute("r") {
                Some(text) => row_number(text)?,
                None => number + 1,
            };
            let mut column = 0;
            let mut cells = Vec::new();
            for node in row.children().filter(Node::is_element) {
                let cell = self.cell(node, (number, column + 1))?;
                column = cell.place.1;
                cells.push(cell);
            }
            rows.push((number, cells));
        }
        Ok(rows)
    }

    fn cell(&self, node: Node<'_, '_>, next: Place) -> Result<Cell, MetricError> {
        let at = match node.attribute("r") {
            Some(text) => place(text).ok_or_else(|| raised(format!("{text:?} is no cell")))?,
            None => next,
        };
        let style = node.attribute("s").map_or(Ok(0), str::parse);
        let style = style.map_err(|_| raised("a cell's style is no number"))?;
        if style >= self.styles.len() {
            return Err(raised(format!("a cell has style {style}, which is none")));
        }
        let kind = node.attribute("t").unwrap_or("n");
        let formula = child(node, "f");
        let value = self.value(node, kind, style)?;
        Ok(Cell {
            place: at,
            is_number: formula.is_none()
                && kind == "n"
                && matches!(value, Datum::Nothing | Datum::Int(_) | Datum::Float(_)),
            value,
            formula: formula.map(|formula| format!("={}", formula.text().unwrap_or_default())),
            style,
        })
    }

    /// A value by its written kind. Departs: dates as ISO texts, which neither LibreOffice nor
    /// Excel writes unless told to, stay texts.
    fn value(&self, node: Node<'_, '_>, kind: &str, style: usize) -> Result<Datum, MetricError> {
        if kind == "inlineStr" {
            let text = child(node, "is").map(plain_text);
            return Ok(text.map_or(Datum::Nothing, Datum::Text));
        }
        let Some(text) = child(node, "v").and_then(|value| value.text()) else {
            return Ok(Datum::Nothing);
        };
        let whole = |text: &str| {
            let number = python::strip(text).parse::<i128>();
            number.map_err(|_| raised(format!("{text:?} is no number")))
        };
        Ok(match kind {
            "n" => {
                let number = if text.contains(['.', 'E', 'e']) {
                    let number = python::parse_float(text);
                    Datum::Float(number.ok_or_else(|| raised(format!("{text:?} is no number")))?)
                } else {
                    Datum::Int(whole(text)?)
                };
                self.dated(number, style)
            }
            "s" => {
                let at = usize::try_from(whole(text)?).ok();
                let text = at.and_then(|at| self.shared.get(at));
                Datum::Text(text.ok_or_else(|| raised("no such shared text"))?.clone())
            }
            "b" => Datum::Bool(whole(text)? != 0),
            "e" => Datum::Error,
            _ => Datum::Text(text.to_owned()),
        })
    }

    /// A number as a date or a time where its style says so, `openpyxl.utils.datetime.from_excel`.
    fn dated(&self, number: Datum, style: usize) -> Datum {
        const DAY: f64 = 86_400_000.0;
        if !self.styles.is_date(style) {
            return number;
        }
        let serial = match number {
            Datum::Int(number) => number as f64,
            Datum::Float(number) => number,
            other => return other,
        };
        if self.styles.is_span(style) {
            return Datum::Span((serial * DAY).round_ties_even() as i64);
        }
        let (day, rest) = (serial.floor(), serial - serial.floor());
        let rest = (rest * DAY).round_ties_even();
        if (0.0..1.0).contains(&serial) && rest < DAY {
            return Datum::Time(rest as i64);
        }
        let is_early = serial > 0.0 && serial < 60.0 && self.first_day == 0;
        let day = day + f64::from(u8::from(is_early)) + self.first_day as f64;
        // Years 1 to 9999, which is what Python's dates reach.
        if !(-693_593.0..2_958_466.0).contains(&day) {
            return Datum::Error;
        }
        Datum::Moment((day * DAY + rest) as i64)
    }
}

fn row_number(text: &str) -> Result<u32, MetricError> {
    let number = python::parse_float(text).filter(|number| number.fract() == 0.0);
    let number = number.ok_or_else(|| raised(format!("{text:?} is no row")))?;
    Ok(number as u32)
}

/// A text without its formatting: plain, then run by run; readings for pronunciation are none.
pub(super) fn plain_text(node: Node<'_, '_>) -> String {
    let runs = children(node, "r").filter_map(|run| child(run, "t"));
    // As there, the last plain text is the one that counts.
    let plain = children(node, "t").last();
    let texts = plain.into_iter().chain(runs);
    texts.filter_map(|text| text.text()).collect()
}
