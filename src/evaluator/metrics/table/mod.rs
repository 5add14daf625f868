//! Metrics over spreadsheets.
//!
//! Values are those that pandas reads and that the parts themselves say, styles those of
//! openpyxl: a colour of a theme is not looked up, a formula's number is no number to styles.
//! Departs: books in UTF-16 or with a document type declaration cannot be opened here.

mod book;
mod cell;
mod chart;
mod conditional;
mod formula;
mod frame;
mod fuzzy;
mod grid;
mod pivot;
mod range;
mod raw;
mod style;
mod view;
mod xml;

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::python::{self, raised};
use super::{Call, MetricError, rule, score};
use crate::evaluator::found::FoundFile;
use book::{Book, Sheet};
use cell::Datum;
use frame::Frame;
use range::{Range, place};
use raw::RawSheet;

/// Decimals that numbers are compared to unless a rule says otherwise.
const PRECISION: i64 = 4;

/// Rules hold, one by one, of a spreadsheet, most of them against another one.
pub(super) fn compare_table(call: &Call<'_>) -> Result<f64, MetricError> {
    let Some(found) = call.file()? else {
        return Ok(0.0);
    };
    // Whatever is wrong in the desktop's file is caught there; what is wrong in the other is not.
    let Ok(book) = Book::open(found) else {
        return Ok(0.0);
    };
    let mut books = Books {
        found: Opened { file: found, book },
        expected: None,
    };
    if let Some(file) = call.expected_file()? {
        let book = Book::open(file)?;
        books.expected = Some(Opened { file, book });
    }
    let options = Value::Object(call.options.clone());
    rule::entry(&options, "rules")?;
    for rule in rule::list(&options, "rules")? {
        if !books.fit(rule)? {
            return Ok(0.0);
        }
    }
    Ok(1.0)
}

struct Opened<'a> {
    file: &'a FoundFile,
    book: Book,
}

struct Books<'a> {
    found: Opened<'a>,
    expected: Option<Opened<'a>>,
}

/// A sheet that a rule names: its book and its title, which may be none of the book's.
struct Named<'a> {
    opened: &'a Opened<'a>,
    title: String,
}

impl Named<'_> {
    fn sheet(&self) -> Option<&Sheet> {
        self.opened.book.sheet(&self.title)
    }
}

impl Books<'_> {
    fn fit(&self, rule: &Value) -> Result<bool, MetricError> {
        match rule::text(rule, "type")? {
            "sheet_name" => Ok(self
                .expected
                .as_ref()
                .is_some_and(|expected| expected.book.titles() == self.found.book.titles())),
            "sheet_data" => self.say_the_same(rule),
            "sheet_print" => self.print_the_same(rule),
            "sheet_fuzzy" => self.are_alike(rule),
            "sparkline" => self.same(rule, |named| {
                let lines = raw::sparklines(&named.opened.file.bytes, &named.title)?;
                Ok(json!(lines))
            }),
            "chart" => {
                self.same_of_sheets(rule, "chart_props", |_, sheet, names| charts(sheet, names))
            }
            "style" => self.same_of_sheets(rule, "props", |opened, sheet, names| {
                let (book, bytes) = (&opened.book, &opened.file.bytes);
                Ok(json!(conditional::properties(book, sheet, bytes, names)?))
            }),
            "row_props" | "col_props" => self.same_of_sheets(rule, "props", |_, sheet, names| {
                let of_rows = rule["type"] == "row_props";
                Ok(json!(view::dimensions(sheet, of_rows, names)?))
            }),
            "filter" => self.same_of_sheets(rule, "", |_, sheet, _| view::filters(sheet)),
            "pivot_table" => {
                self.same_of_sheets(rule, "pivot_props", |_, sheet, names| pivots(sheet, names))
            }
            "freeze" => self.are_frozen_alike(rule),
            "zoom" => match self.named(rule, "sheet_idx")?.sheet() {
                None => Ok(false),
                Some(sheet) => rule::value_fits(&sheet.view.zoom.into(), rule),
            },
            "data_validation" => match self.named(rule, "sheet_idx")?.sheet() {
                None => Ok(false),
                Some(sheet) => {
                    rule::entry(rule, "dv_props")?;
                    view::validations_fit(sheet, rule::list(rule, "dv_props")?)
                }
            },
            // Whatever goes wrong in these is caught there.
            "check_cell" => Ok(self.cell_fits(rule).unwrap_or(false)),
            kind => Err(MetricError::Rules(format!("no rule is called {kind:?}"))),
        }
    }

    /// The sheet that a rule's key names: by a number in the desktop's book, `RI` and `EI` by a
    /// number, `RN` and `EN` by a title, in the desktop's book and the other. A number that is too
    /// large names no sheet.
    fn named(&self, rule: &Value, key: &str) -> Result<Named<'_>, MetricError> {
        let index = rule::entry(rule, key)?;
        let wrong = || MetricError::Rules(format!("{key:?} is {index}, which names no sheet"));
        let nth = |opened: &Opened<'_>, at: Option<i64>| {
            let titles = opened.book.titles();
            let at = at.map(|at| if at < 0 { at + titles.len() as i64 } else { at });
            let at = at.and_then(|at| usize::try_from(at).ok());
            let title = at.and_then(|at| titles.get(at).copied());
            title.unwrap_or_default().to_owned()
        };
        let (side, title) = match index {
            Value::Number(_) => (
                "R",
                nth(&self.found, Some(index.as_i64().ok_or_else(wrong)?)),
            ),
            Value::String(text) => {
                let name = text.get(2..).ok_or_else(wrong)?;
                let at = python::to_int(&name.into());
                match &text[..2] {
                    "RI" => ("R", nth(&self.found, at)),
                    "RN" => ("R", name.to_owned()),
                    "EI" => {
                        let expected = self.expected.as_ref();
                        (
                            "E",
                            expected.map_or(String::new(), |expected| nth(expected, at)),
                        )
                    }
                    "EN" => ("E", name.to_owned()),
                    _ => return Err(wrong()),
                }
            }
            _ => return Err(wrong()),
        };
        let opened = if side == "R" {
            &self.found
        } else {
            let missing = || raised("there is no book to compare with");
            self.expected.as_ref().ok_or_else(missing)?
        };
        Ok(Named { opened, title })
    }

    /// Both sheets of a rule.
    fn both(&self, rule: &Value) -> Result<(Named<'_>, Named<'_>), MetricError> {
        Ok((
            self.named(rule, "sheet_idx0")?,
            self.named(rule, "sheet_idx1")?,
        ))
    }

    /// Whether both sheets are told of in the same way.
    fn same(
        &self,
        rule: &Value,
        tell: impl Fn(&Named<'_>) -> Result<Value, MetricError>,
    ) -> Result<bool, MetricError> {
        let (found, expected) = self.both(rule)?;
        Ok(python::equal(&tell(&found)?, &tell(&expected)?))
    }

    /// The same by the properties that a key of the rule lists; of a sheet that is not there
    /// nothing is told.
    fn same_of_sheets(
        &self,
        rule: &Value,
        key: &str,
        tell: impl Fn(&Opened<'_>, &Sheet, &[&str]) -> Result<Value, MetricError>,
    ) -> Result<bool, MetricError> {
        let names = rule::list(rule, key)?.iter().filter_map(Value::as_str);
        let names: Vec<&str> = names.collect();
        self.same(rule, |named| match named.sheet() {
            Some(sheet) => tell(named.opened, sheet, &names),
            None => Ok(json!({})),
        })
    }

    /// Values of two sheets are the same, numbers to some decimals.
    fn say_the_same(&self, rule: &Value) -> Result<bool, MetricError> {
        let precision = rule.get("precision").map_or(Some(PRECISION), Value::as_i64);
        let precision = precision.and_then(|precision| i32::try_from(precision).ok());
        let wrong = || MetricError::Rules("\"precision\" is no whole number".into());
        let precision = precision.ok_or_else(wrong)?;
        let read = |named: &Named<'_>| {
            let sheet = named.sheet().filter(|sheet| !sheet.is_chart);
            sheet.map(|sheet| {
                let mut frame = Frame::of(&sheet.rows);
                frame.round(precision);
                frame
            })
        };
        let Some(found) = read(&self.named(rule, "sheet_idx0")?) else {
            return Ok(false);
        };
        let expected = read(&self.named(rule, "sheet_idx1")?);
        let missing = || raised("there is no sheet to compare with");
        Ok(found.equals(&expected.ok_or_else(missing)?))
    }

    /// What two sheets look like, saved as CSV beside their books, is the same but for blanks
    /// around lines and empty lines at the end.
    fn print_the_same(&self, rule: &Value) -> Result<bool, MetricError> {
        let ignore_case = rule.get("ignore_case").is_some_and(python::is_true);
        let read = |named: &Named<'_>| {
            let file = named.opened.file;
            let stem = file
                .name
                .rsplit_once('.')
                .map_or(file.name.as_str(), |(stem, _)| stem);
            let name = format!("{stem}-{}.csv", named.title);
            let printed = file.beside.iter().find(|file| file.name == name)?;
            let text = super::text::read_any(&printed.bytes);
            let text = if ignore_case {
                text.to_lowercase()
            } else {
                text
            };
            let lines = python::split_lines(&text);
            let mut lines: Vec<String> = lines
                .into_iter()
                .map(|line| python::strip(line).to_owned())
                .collect();
            let end = lines.iter().rposition(|line| !line.is_empty());
            lines.truncate(end.map_or(0, |end| end + 1));
            Some(lines)
        };
        let Some(found) = read(&self.named(rule, "sheet_idx0")?) else {
            return Ok(false);
        };
        match read(&self.named(rule, "sheet_idx1")?) {
            None if ignore_case => Err(raised("there is no table to compare with")),
            expected => Ok(Some(found) == expected),
        }
    }

    /// Cells of ranges are alike, each range in its way.
    fn are_alike(&self, rule: &Value) -> Result<bool, MetricError> {
        let (found, expected) = self.both(rule)?;
        let raw = |named: &Named<'_>| RawSheet::read(&named.opened.file.bytes, &named.title);
        let (found, expected) = (raw(&found), raw(&expected));
        rule::entry(rule, "rules")?;
        let mut are_alike = true;
        for way in rule::list(rule, "rules")? {
            for range in ranges(rule::entry(way, "range")?)? {
                for place in range.places() {
                    let (found, expected) = (found.value(place)?, expected.value(place)?);
                    are_alike &= fuzzy::alike(&found, &expected, way)?;
                }
            }
        }
        Ok(are_alike)
    }

    fn are_frozen_alike(&self, rule: &Value) -> Result<bool, MetricError> {
        let found = self.named(rule, "sheet_idx0")?;
        let Some(found) = found.sheet() else {
            return Ok(false);
        };
        let expected = self.named(rule, "sheet_idx1")?;
        let missing = || raised("there is no sheet to compare with");
        let expected = expected.sheet().ok_or_else(missing)?;
        Ok(found.view.frozen_at == expected.view.frozen_at)
    }

    /// The value and styles of one cell.
    fn cell_fits(&self, rule: &Value) -> Result<bool, MetricError> {
        let named = self.named(rule, "sheet_idx")?;
        let Some(sheet) = named.sheet() else {
            return Ok(false);
        };
        let at = place(rule::text(rule, "coordinate")?);
        let at = at.ok_or_else(|| MetricError::Rules("\"coordinate\" is no cell".into()))?;
        let spot = sheet.grid()?.spot(at);
        let Some(wanted) = rule::object(rule, "props")? else {
            return Ok(false);
        };
        for (name, rule) in wanted {
            let value = if name == "value" {
                RawSheet::read(&named.opened.file.bytes, &named.title).value(at)
            } else {
                named.opened.book.styles.read_property(name, &spot, None)
            };
            if !rule::value_fits(&value.unwrap_or_default(), rule)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Ranges as a rule writes them: a text, or a list of texts.
fn ranges(written: &Value) -> Result<Vec<Range>, MetricError> {
    let wrong = || MetricError::Rules(format!("{written} are no ranges of cells"));
    match written {
        Value::String(text) => Range::parse_all(text),
        Value::Array(ranges) => ranges
            .iter()
            .map(|range| Range::parse(range.as_str().ok_or_else(wrong)?))
            .collect(),
        _ => Err(wrong()),
    }
}

/// A sheet's charts by what they draw, with their properties.
fn charts(sheet: &Sheet, names: &[&str]) -> Result<Value, MetricError> {
    let mut found = BTreeMap::new();
    for chart in &sheet.charts {
        let mut properties = Map::new();
        for name in names {
            if let Some(property) = chart.property(name)? {
                properties.insert((*name).to_owned(), property);
            }
        }
        found.insert(&chart.source, properties);
    }
    Ok(json!(found))
}

/// A sheet's pivot tables by their source, with their properties.
fn pivots(sheet: &Sheet, names: &[&str]) -> Result<Value, MetricError> {
    let mut found = BTreeMap::new();
    for pivot in &sheet.pivots {
        found.insert(pivot.source()?, pivot.properties(names));
    }
    Ok(json!(found))
}

/// The cells C2 to C22 of the sheet on top each hold a text, or one of several, in order.
pub(super) fn compare_conference_city_in_order(call: &Call<'_>) -> Result<f64, MetricError> {
    let expected = rule::entry(call.rules()?, "expected")?;
    let file = call.file()?.ok_or_else(|| raised("there is no table"))?;
    let book = Book::open(file)?;
    let sheet = book.sheets.get(book.active).filter(|sheet| !sheet.is_chart);
    let sheet = sheet.ok_or_else(|| raised("no sheet is on top"))?;
    // Formulas count as they are written; what is no text holds nothing.
    let cells = sheet.rows.iter().flat_map(|(_, cells)| cells);
    let texts: BTreeMap<_, _> = cells
        .filter_map(|cell| match (&cell.formula, &cell.value) {
            (Some(formula), _) => Some((cell.place, formula)),
            (None, Datum::Text(text)) => Some((cell.place, text)),
            _ => None,
        })
        .collect();
    let in_order = (2..=22).all(|row| {
        let wanted = expected.get(row as usize - 2);
        let Some((wanted, text)) = wanted.zip(texts.get(&(row, 3))) else {
            return false;
        };
        match wanted {
            Value::String(wanted) => text.contains(wanted.as_str()),
            Value::Array(several) => {
                let mut several = several.iter();
                // One that is no text raises, which ends as nothing found.
                several.find_map(|wanted| match wanted.as_str() {
                    Some(wanted) => text.contains(wanted).then_some(true),
                    None => Some(false),
                }) == Some(true)
            }
            _ => false,
        }
    });
    Ok(score(in_order))
}
