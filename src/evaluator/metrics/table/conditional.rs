//! Styles that a sheet's cells show, conditional formats among them.

use std::collections::BTreeMap;

use roxmltree::Node;
use serde_json::Value;

use super::super::MetricError;
use super::super::python::{self, raised};
use super::book::{Book, Sheet};
use super::formula::{self, Formula, Outcome};
use super::range::{Place, Range, coordinate};
use super::raw::RawSheet;
use super::xml::{children, int_of, parse};

/// Kinds of formats whose formula is the condition.
const BY_FORMULA: [&str; 7] = [
    "expression",
    "containsText",
    "notContainsText",
    "endsWith",
    "beginsWith",
    "containsErrors",
    "notContainsErrors",
];

/// Cells without a value after which a range is looked at no further.
const MOST_EMPTY: usize = 50;

/// Properties of each cell by its coordinate, `load_xlsx_styles`. `bytes` is the book's file.
///
/// Departs: where a format of a kind that is not looked at (a scale of colours, say) follows one
/// that is, the reference goes by the earlier one's condition; there is no score here.
pub(super) fn properties(
    book: &Book,
    sheet: &Sheet,
    bytes: &[u8],
    names: &[&str],
) -> Result<BTreeMap<String, Vec<Value>>, MetricError> {
    let grid = sheet.grid()?;
    let mut found = BTreeMap::new();
    let read = |place: Place, difference| -> Result<Vec<Value>, MetricError> {
        let spot = grid.spot(place);
        let properties = names.iter();
        properties
            .map(|name| book.styles.read_property(name, &spot, difference))
            .collect()
    };
    for place in grid.places()? {
        found.insert(coordinate(place), read(place, None)?);
    }
    let tree = parse(&sheet.xml)?;
    let raw = RawSheet::read(bytes, &sheet.title);
    let mut is_any_known = false;
    for (ranges, rule) in rules(tree.root_element())? {
        let Some(condition) = Condition::read(rule, &raw)? else {
            continue;
        };
        if condition == Condition::Unknown && is_any_known {
            return Err(raised("kinds of conditional formats are mixed"));
        }
        is_any_known |= condition != Condition::Unknown;
        let difference = int_of(rule, "dxfId")?.and_then(|at| usize::try_from(at).ok());
        let missing = || raised("a conditional format has no style");
        let difference = difference.map(|at| book.styles.difference(at).ok_or_else(missing));
        let difference = difference.transpose()?;
        for place in met(&condition, &ranges, &raw)? {
            found.insert(coordinate(place), read(place, difference)?);
        }
    }
    Ok(found)
}

/// All rules with their ranges; those of the same ranges together.
fn rules<'a, 'i>(root: Node<'a, 'i>) -> Result<Vec<(Vec<Range>, Node<'a, 'i>)>, MetricError> {
    let mut by_ranges: Vec<(Vec<Range>, Vec<Node<'a, 'i>>)> = Vec::new();
    let formats = root.descendants();
    let namespace = root.tag_name().namespace();
    for format in formats.filter(|node| {
        node.tag_name().name() == "conditionalFormatting"
            && node.tag_name().namespace() == namespace
    }) {
        let mut ranges = Range::parse_all(format.attribute("sqref").unwrap_or_default())?;
        ranges.sort_by_key(|range| (range.first.1, range.first.0, range.last.1, range.last.0));
        let rules = children(format, "cfRule");
        match by_ranges.iter_mut().find(|(known, _)| *known == ranges) {
            Some((_, known)) => known.extend(rules),
            None => by_ranges.push((ranges, rules.collect())),
        }
    }
    let flat = by_ranges
        .into_iter()
        .flat_map(|(ranges, rules)| rules.into_iter().map(move |rule| (ranges.clone(), rule)));
    Ok(flat.collect())
}

#[derive(Debug, PartialEq)]
enum Condition {
    /// A formula, with what it refers to beyond the cell; none where it does not fit that, so that
    /// no cell meets it.
    Formula(Option<(Formula, Vec<Outcome>)>),
    /// An operator and what cells are held against.
    Compare(String, Vec<Value>),
    /// One that no cell meets.
    Unknown,
}

impl Condition {
    /// A rule's condition; none where the rule is passed over.
    fn read(rule: Node<'_, '_>, raw: &RawSheet) -> Result<Option<Self>, MetricError> {
        let mut formulas = Vec::new();
        for node in children(rule, "formula") {
            let text = node.text().unwrap_or_default();
            let Some((formula, inputs)) = formula::parse(text) else {
                return Ok(None);
            };
            formulas.push((formula, inputs, fixed_ranges(text, raw)?));
        }
        let kind = rule.attribute("type").unwrap_or_default();
        if BY_FORMULA.contains(&kind) {
            let (formula, inputs, fixed) = formulas
                .into_iter()
                .next()
                .ok_or_else(|| raised("a conditional format has no formula"))?;
            let is_fit = inputs.len() == fixed.len() + 1;
            if is_fit && inputs[0].contains(':') {
                return Err(raised("a conditional format begins with a range"));
            }
            return Ok(Some(Self::Formula(is_fit.then_some((formula, fixed)))));
        }
        if kind != "cellIs" {
            return Ok(Some(Self::Unknown));
        }
        let mut references = Vec::new();
        for (formula, inputs, _) in formulas {
            if !inputs.is_empty() {
                return Ok(None);
            }
            references.push(match formula.evaluate(&[])? {
                Outcome::Number(number) => number.into(),
                Outcome::Text(text) => text.into(),
                Outcome::Bool(flag) => flag.into(),
                _ => return Err(raised("a conditional format compares with an error")),
            });
        }
        let operator = rule.attribute("operator").unwrap_or_default().to_owned();
        Ok(Some(Self::Compare(operator, references)))
    }

    fn is_met(&self, value: &Value) -> Result<bool, MetricError> {
        match self {
            Self::Unknown | Self::Formula(None) => Ok(false),
            Self::Formula(Some((formula, fixed))) => {
                let mut inputs = vec![Outcome::of(value)?];
                inputs.extend(fixed.iter().cloned());
                formula.evaluate(&inputs)?.is_true()
            }
            Self::Compare(operator, references) => Ok(compares(operator, value, references)),
        }
    }
}

/// Values of the ranges with dollars at all of their ends, `$A$1:$B$2`. One cell with dollars is
/// read for such a range there, and is none.
fn fixed_ranges(text: &str, raw: &RawSheet) -> Result<Vec<Outcome>, MetricError> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        rest = &rest[at..];
        let Some(first) = fixed_cell(rest) else {
            rest = &rest[1..];
            continue;
        };
        rest = &rest[first.len()..];
        let last = rest.strip_prefix(':').and_then(fixed_cell);
        let last = last.ok_or_else(|| raised("a conditional format refers to one fixed cell"))?;
        let range = Range::parse(&format!("{first}:{last}"))?;
        rest = &rest[1 + last.len()..];
        let values = range.places().map(|place| Ok(raw.value(place)?.as_f64()));
        found.push(Outcome::Numbers(
            values.collect::<Result<_, MetricError>>()?,
        ));
    }
    Ok(found)
}

/// `$A$1` at the beginning of a text.
fn fixed_cell(text: &str) -> Option<&str> {
    let letters = text.strip_prefix('$')?;
    let column = letters.find(|c: char| !c.is_ascii_uppercase())?;
    let digits = letters[column..].strip_prefix('$')?;
    let row = digits
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(digits.len());
    let is_cell = (1..=3).contains(&column) && row > 0;
    is_cell.then(|| &text[..2 + column + row])
}

/// `_process_xlsx_cf_operator`.
fn compares(operator: &str, value: &Value, references: &[Value]) -> bool {
    let order = |reference: &Value| match (value, reference) {
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        _ => python::worth(value)?.partial_cmp(&python::worth(reference)?),
    };
    let Some(first) = references.first() else {
        return false;
    };
    let last = references.get(1).unwrap_or(first);
    match operator {
        "equal" => python::equal(value, first),
        "notEqual" => !python::equal(value, first),
        "between" | "notBetween" => {
            let Some((one, other)) = order(first).zip(order(last)) else {
                return false;
            };
            // The ends may stand either way round.
            let is_between = one.is_eq() || other.is_eq() || one != other;
            is_between == (operator == "between")
        }
        _ => order(first).is_some_and(|order| match operator {
            "lessThan" => order.is_lt(),
            "lessThanOrEqual" => order.is_le(),
            "greaterThan" => order.is_gt(),
            "greaterThanOrEqual" => order.is_ge(),
            _ => false,
        }),
    }
}

/// The cells of some ranges that meet a condition.
fn met(condition: &Condition, ranges: &[Range], raw: &RawSheet) -> Result<Vec<Place>, MetricError> {
    let mut met = Vec::new();
    let mut empty = 0;
    for range in ranges {
        for place in range.places() {
            let value = raw.value(place)?;
            if value.is_null() {
                empty += 1;
                if empty > MOST_EMPTY {
                    break;
                }
            } else if condition.is_met(&value)? {
                met.push(place);
            }
        }
    }
    Ok(met)
}
