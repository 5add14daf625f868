//! Sheets as tables of columns: what `pandas.read_excel` makes of them.
//!
//! The first row names the columns; each column gets the narrowest type that all of its values
//! fit, texts that read as numbers among them. Two tables are the same where names, types and
//! values are, which is `DataFrame.equals` (pandas 3.1).

use super::cell::{Datum, Row};

/// Texts that are no values.
const MISSING: [&str; 19] = [
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN",
    "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null",
];

/// A table.
#[derive(Debug, PartialEq)]
pub(super) struct Frame {
    names: Vec<Datum>,
    columns: Vec<Column>,
}

#[derive(Debug, PartialEq)]
struct Column {
    kind: Kind,
    values: Vec<Datum>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Bool,
    Int,
    /// Whole numbers beyond the signed ones.
    Large,
    Float,
    Text,
    Moment,
    Span,
    /// Of several kinds.
    Mixed,
}

impl Frame {
    /// The table that the rows of a sheet are.
    pub(super) fn of(rows: &[Row]) -> Self {
        let mut lines = lines(rows).into_iter();
        let names = named(lines.next().unwrap_or_default());
        let mut columns = vec![Vec::new(); names.len()];
        for line in lines {
            for (column, value) in columns.iter_mut().zip(line) {
                column.push(value);
            }
        }
        Self {
            names,
            columns: columns.into_iter().map(Column::of).collect(),
        }
    }

    /// Numbers with a fraction rounded to so many decimals, half to even.
    pub(super) fn round(&mut self, decimals: i32) {
        let scale = 10_f64.powi(decimals.abs());
        let round = |number: f64| match decimals {
            0.. => (number * scale).round_ties_even() / scale,
            _ => (number / scale).round_ties_even() * scale,
        };
        for column in &mut self.columns {
            for value in &mut column.values {
                match (column.kind, &value) {
                    (Kind::Float, Datum::Float(number)) => *value = Datum::Float(round(*number)),
                    (Kind::Int | Kind::Large, Datum::Int(number)) if decimals < 0 => {
                        *value = Datum::Int(round(*number as f64) as i128);
                    }
                    _ => {}
                }
            }
        }
    }

    /// Whether two tables are the same.
    pub(super) fn equals(&self, other: &Self) -> bool {
        let same = |left: &[Datum], right: &[Datum]| {
            let mut pairs = left.iter().zip(right);
            left.len() == right.len() && pairs.all(|(left, right)| equal(left, right))
        };
        let mut columns = self.columns.iter().zip(&other.columns);
        same(&self.names, &other.names)
            && columns
                .all(|(left, right)| left.kind == right.kind && same(&left.values, &right.values))
    }
}

/// Rows of the same width, up to the last row and column that hold anything.
fn lines(rows: &[Row]) -> Vec<Vec<Datum>> {
    let mut lines: Vec<Vec<Datum>> = Vec::new();
    for (number, cells) in rows {
        let number = *number as usize;
        // A row that comes again, or too late, is passed over.
        if number <= lines.len() {
            continue;
        }
        let width = cells.last().map_or(0, |cell| cell.place.1 as usize);
        let mut line = vec![Datum::Nothing; width];
        for cell in cells {
            if let Some(slot) = line.get_mut(cell.place.1 as usize - 1) {
                *slot = plain(&cell.value);
            }
        }
        while line.last().is_some_and(is_empty) {
            line.pop();
        }
        if !line.is_empty() {
            lines.resize(number - 1, Vec::new());
            lines.push(line);
        }
    }
    let width = lines.iter().map(Vec::len).max().unwrap_or(0);
    for line in &mut lines {
        line.resize(width, Datum::Nothing);
    }
    lines
}

fn is_empty(value: &Datum) -> bool {
    matches!(value, Datum::Nothing) || *value == Datum::Text(String::new())
}

/// Whole numbers as such, however they are written.
fn plain(value: &Datum) -> Datum {
    match value {
        Datum::Float(number) if number.fract() == 0.0 => Datum::Int(*number as i128),
        other => other.clone(),
    }
}

/// Names of columns out of the first line: those that stand more than once are numbered on, and
/// those without one get one, after the others.
fn named(line: Vec<Datum>) -> Vec<Datum> {
    let blank: Vec<usize> = (0..line.len()).filter(|at| is_empty(&line[*at])).collect();
    let mut names = line;
    for at in &blank {
        names[*at] = Datum::Text(format!("Unnamed: {at}"));
    }
    let mut counts: Vec<(Datum, usize)> = Vec::new();
    let whole: Vec<usize> = (0..names.len()).filter(|at| !blank.contains(at)).collect();
    for at in whole.into_iter().chain(blank) {
        let old = names[at].clone();
        let mut name = old.clone();
        let mut count = count_of(&counts, &name);
        while count > 0 {
            set_count(&mut counts, &old, count + 1);
            name = Datum::Text(format!("{}.{count}", text_of(&old)));
            count = if names.iter().any(|other| equal(other, &name)) {
                count + 1
            } else {
                count_of(&counts, &name)
            };
        }
        set_count(&mut counts, &name, count + 1);
        names[at] = name;
    }
    names
}

fn count_of(counts: &[(Datum, usize)], name: &Datum) -> usize {
    let found = counts.iter().find(|(known, _)| equal(known, name));
    found.map_or(0, |(_, count)| *count)
}

fn set_count(counts: &mut Vec<(Datum, usize)>, name: &Datum, count: usize) {
    match counts.iter_mut().find(|(known, _)| equal(known, name)) {
        Some((_, known)) => *known = count,
        None => counts.push((name.clone(), count)),
    }
}

/// What a numbered name begins with; of what is no text, something that only the same has.
fn text_of(name: &Datum) -> String {
    match name {
        Datum::Text(text) => text.clone(),
        Datum::Int(number) => number.to_string(),
        other => format!("{other:?}"),
    }
}

impl Column {
    fn of(values: Vec<Datum>) -> Self {
        let values: Vec<Datum> = values.into_iter().map(without_missing).collect();
        if values.is_empty() {
            return Self {
                kind: Kind::Mixed,
                values,
            };
        }
        let numbers: Option<Vec<Datum>> = values.iter().map(number).collect();
        match numbers {
            Some(numbers) => Self::of_numbers(numbers),
            None => Self::of_others(values),
        }
    }

    fn of_numbers(values: Vec<Datum>) -> Self {
        let any = |test: fn(&Datum) -> bool| values.iter().any(test);
        let is_large = |value: &Datum| matches!(value, Datum::Int(n) if *n > i128::from(i64::MAX));
        let is_too_large =
            |value: &Datum| matches!(value, Datum::Int(n) if *n > i128::from(u64::MAX));
        let is_negative = |value: &Datum| matches!(value, Datum::Int(..0));
        let has_nothing = any(|value| *value == Datum::Nothing);
        let kind = if any(is_too_large) || any(is_large) && (has_nothing || any(is_negative)) {
            Kind::Mixed
        } else if has_nothing || any(|value| matches!(value, Datum::Float(_))) {
            Kind::Float
        } else if any(is_large) {
            Kind::Large
        } else if any(|value| matches!(value, Datum::Int(_))) {
            Kind::Int
        } else {
            Kind::Bool
        };
        let cast = |value: Datum| match (kind, &value) {
            (Kind::Float, Datum::Bool(_) | Datum::Int(_)) => {
                Datum::Float(worth(&value).unwrap_or_default())
            }
            (Kind::Int | Kind::Large, Datum::Bool(flag)) => Datum::Int(i128::from(*flag)),
            _ => value,
        };
        Self {
            kind,
            values: values.into_iter().map(cast).collect(),
        }
    }

    fn of_others(values: Vec<Datum>) -> Self {
        let all = |test: fn(&Datum) -> bool| {
            let mut there = values.iter().filter(|value| **value != Datum::Nothing);
            there.all(test)
        };
        if !matches!(values[0], Datum::Bool(_) | Datum::Int(_)) && all(|v| flag(v).is_some()) {
            let has_nothing = values.contains(&Datum::Nothing);
            let flags = values.iter();
            let flags = flags.map(|value| flag(value).map_or(Datum::Nothing, Datum::Bool));
            return Self {
                kind: if has_nothing { Kind::Mixed } else { Kind::Bool },
                values: flags.collect(),
            };
        }
        let kind = if all(|value| matches!(value, Datum::Text(_))) {
            Kind::Text
        } else if all(|value| matches!(value, Datum::Moment(_))) {
            Kind::Moment
        } else if all(|value| matches!(value, Datum::Span(_))) {
            Kind::Span
        } else {
            Kind::Mixed
        };
        Self { kind, values }
    }
}

fn without_missing(value: Datum) -> Datum {
    match value {
        Datum::Error => Datum::Nothing,
        Datum::Text(text) if MISSING.contains(&text.as_str()) => Datum::Nothing,
        other => other,
    }
}

fn flag(value: &Datum) -> Option<bool> {
    match value {
        Datum::Bool(flag) => Some(*flag),
        Datum::Text(text) if ["True", "TRUE", "true"].contains(&text.as_str()) => Some(true),
        Datum::Text(text) if ["False", "FALSE", "false"].contains(&text.as_str()) => Some(false),
        _ => None,
    }
}

/// A value as a number or a flag, nothing as nothing; none where it is neither.
fn number(value: &Datum) -> Option<Datum> {
    match value {
        Datum::Text(text) => text_number(text),
        Datum::Nothing | Datum::Bool(_) | Datum::Int(_) | Datum::Float(_) => Some(value.clone()),
        _ => None,
    }
}

/// A text that reads as a number: ASCII digits, perhaps with a point and an exponent, and blanks
/// around it; or an infinity without blanks.
fn text_number(text: &str) -> Option<Datum> {
    let bare = text.trim_matches(|c: char| c.is_ascii_whitespace() || c == '\u{b}');
    let unsigned = bare.strip_prefix(['+', '-']).unwrap_or(bare);
    if ["inf", "infinity"].contains(&unsigned.to_ascii_lowercase().as_str()) {
        return (bare == text).then(|| bare.parse().ok().map(Datum::Float))?;
    }
    if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    if unsigned.bytes().all(|byte| byte.is_ascii_digit()) {
        return bare.parse().ok().map(Datum::Int);
    }
    bare.parse().ok().map(Datum::Float)
}

/// `left == right`, where nothing is the same as nothing.
fn equal(left: &Datum, right: &Datum) -> bool {
    match (worth(left), worth(right)) {
        (Some(left), Some(right)) => left == right,
        (None, None) => left == right,
        _ => false,
    }
}

fn worth(value: &Datum) -> Option<f64> {
    match value {
        Datum::Bool(flag) => Some(f64::from(u8::from(*flag))),
        Datum::Int(number) => Some(*number as f64),
        Datum::Float(number) => Some(*number),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Datum {
        Datum::Text(text.into())
    }

    #[test]
    fn columns_get_the_type_that_fits_all_values() {
        let int = Datum::Int;
        for (values, kind) in [
            (vec![int(1), text("2 ")], Kind::Int),
            (vec![int(1), Datum::Nothing], Kind::Float),
            (vec![Datum::Bool(true), int(2)], Kind::Int),
            (vec![Datum::Bool(true), Datum::Bool(false)], Kind::Bool),
            (vec![Datum::Bool(true), text("x")], Kind::Mixed),
            (vec![text("TRUE"), Datum::Bool(true)], Kind::Bool),
            (vec![text("TRUE"), text("NA")], Kind::Mixed),
            (vec![text("inf"), text("1.5")], Kind::Float),
            (vec![text("1_0"), text("2")], Kind::Text),
            (vec![text("12%"), Datum::Error], Kind::Text),
            (vec![int(1 << 63), int(3)], Kind::Large),
            (vec![int(1 << 63), int(-3)], Kind::Mixed),
            (vec![Datum::Moment(5), Datum::Nothing], Kind::Moment),
            (vec![Datum::Moment(5), int(3)], Kind::Mixed),
            (vec![Datum::Time(5), Datum::Time(6)], Kind::Mixed),
            (vec![Datum::Span(5)], Kind::Span),
        ] {
            assert_eq!(Column::of(values.clone()).kind, kind, "{values:?}");
        }
    }

    #[test]
    fn names_that_stand_twice_are_numbered() {
        let line = vec![
            text("a"),
            text("a"),
            text("a.1"),
            Datum::Nothing,
            text("Unnamed: 3"),
        ];
        let expected = ["a", "a.2", "a.1", "Unnamed: 3.1", "Unnamed: 3"];
        assert_eq!(named(line), expected.map(text));
    }
}
