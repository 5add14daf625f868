//! Cells and ranges of cells by their coordinates.

use super::super::MetricError;
use super::super::python::raised;

/// Largest row and column; the column is `ZZZ`.
const MOST: (u32, u32) = (1_048_576, 18_278);

/// Row and column of a cell, both from 1.
pub(super) type Place = (u32, u32);

/// A rectangle of cells, both ends in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) first: Place,
    pub(super) last: Place,
}

impl Range {
    /// `A1:B2`, or one cell; dollars do not matter.
    pub(super) fn parse(text: &str) -> Result<Self, MetricError> {
        let wrong = || raised(format!("{text:?} is no range of cells"));
        let (first, last) = text.split_once(':').unwrap_or((text, text));
        let (first, last) = (place(first), place(last));
        let (first, last) = first.zip(last).ok_or_else(wrong)?;
        let is_right = first.0 <= last.0 && first.1 <= last.1;
        is_right.then_some(Self { first, last }).ok_or_else(wrong)
    }

    /// Several, with blanks between them.
    pub(super) fn parse_all(text: &str) -> Result<Vec<Self>, MetricError> {
        text.split_whitespace().map(Self::parse).collect()
    }

    /// All cells, row by row.
    pub(super) fn places(self) -> impl Iterator<Item = Place> {
        let columns = self.first.1..=self.last.1;
        (self.first.0..=self.last.0)
            .flat_map(move |row| columns.clone().map(move |column| (row, column)))
    }

    /// Whether all of it lies in one of the others.
    pub(super) fn is_within(self, others: &[Self]) -> bool {
        others.iter().any(|other| {
            let (first, last) = (other.first, other.last);
            first.0 <= self.first.0
                && first.1 <= self.first.1
                && self.last.0 <= last.0
                && self.last.1 <= last.1
        })
    }
}

/// A cell's place from its coordinate.
pub(super) fn place(text: &str) -> Option<Place> {
    let text = text.strip_prefix('$').unwrap_or(text);
    let digits = text.find(|c: char| !c.is_ascii_alphabetic())?;
    let (letters, row) = text.split_at(digits);
    let row = row.strip_prefix('$').unwrap_or(row);
    if !(1..=3).contains(&letters.len()) || !row.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let digit = |byte: u8| u32::from(byte.to_ascii_uppercase() - b'A' + 1);
    let column = letters
        .bytes()
        .fold(0, |column, byte| column * 26 + digit(byte));
    let row = row.parse().ok()?;
    (1..=MOST.0).contains(&row).then_some((row, column))
}

/// A cell's coordinate.
pub(super) fn coordinate((row, column): Place) -> String {
    format!("{}{row}", letters(column))
}

/// A column's letters.
pub(super) fn letters(column: u32) -> String {
    let mut letters = Vec::new();
    let mut rest = column;
    while rest > 0 {
        letters.push(char::from(b'A' + ((rest - 1) % 26) as u8));
        rest = (rest - 1) / 26;
    }
    letters.iter().rev().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_have_letters_and_letters_columns() {
        for column in [1, 26, 27, 52, 53, 702, 703, MOST.1] {
            let text = coordinate((7, column));
            assert_eq!(place(&text), Some((7, column)), "{text}");
        }
        assert_eq!(coordinate((1, 703)), "AAA1");
        for wrong in ["", "A", "1", "A0", "AAAA1", "A1B", "A1048577", "A:1"] {
            assert_eq!(place(wrong), None, "{wrong}");
        }
    }
}
