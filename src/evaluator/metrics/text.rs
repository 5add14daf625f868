//! Metrics over text files, line by line or as a whole.

use serde_json::{Map, Value};

use super::python::{self, raised};
use super::{Call, MetricError, likeness, pattern, rule, score};
use crate::evaluator::found::Found;

/// Two texts are the same, with `ignore_blanks` but for runs of white space, with `ignore_case`
/// but for case.
pub(super) fn compare_text_file(call: &Call<'_>) -> Result<f64, MetricError> {
    let Some(found) = call.text()? else {
        return Ok(0.0);
    };
    let read = |text: String| {
        let text = if call.is_on("ignore_blanks") {
            python::squeeze(&text)
        } else {
            text
        };
        if call.is_on("ignore_case") {
            text.to_lowercase()
        } else {
            text
        }
    };
    Ok(score(read(found) == read(call.expected_text()?)))
}

/// How much of two texts' lines match in order, by `difflib`.
pub(super) fn diff_text_file(call: &Call<'_>) -> Result<f64, MetricError> {
    let Some(found) = call.text()? else {
        return Ok(0.0);
    };
    let expected = call.expected_text()?;
    let lines = python::split_lines(&found);
    Ok(likeness::matcher_ratio(
        &lines,
        &python::split_lines(&expected),
    ))
}

/// A text is `expected`.
pub(super) fn compare_config(call: &Call<'_>) -> Result<f64, MetricError> {
    let Some(found) = call.text()? else {
        return Ok(0.0);
    };
    let expected = rule::entry(call.rules()?, "expected")?;
    Ok(score(expected.as_str() == Some(found.as_str())))
}

/// A text holds all of `expected`; one that cannot be read holds nothing.
pub(super) fn file_contains(call: &Call<'_>) -> Result<f64, MetricError> {
    let Ok(Some(found)) = call.text() else {
        return Ok(0.0);
    };
    let expected = rule::list(call.rules()?, "expected")?;
    let holds = |part: &Value| part.as_str().is_some_and(|part| found.contains(part));
    Ok(score(expected.iter().all(holds)))
}

/// As many lines as `expected` says hold a time of day.
pub(super) fn check_line_number(call: &Call<'_>) -> Result<f64, MetricError> {
    let Ok(Some(found)) = call.text() else {
        return Ok(0.0);
    };
    let time = pattern::compile(r"([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)")?;
    let mut count = 0;
    for line in python::lines_with_ends(&found) {
        count += i64::from(pattern::search(&time, line)?);
    }
    let expected = rule::entry(call.rules()?, "expected")?;
    Ok(score(python::to_int(expected) == Some(count)))
}

/// Each pattern of `expect` is found in some line, none of `unexpect` in any.
pub(super) fn check_list(call: &Call<'_>) -> Result<f64, MetricError> {
    let Some(found) = call.text()? else {
        return Ok(0.0);
    };
    for (key, wanted) in [("expect", true), ("unexpect", false)] {
        for written in rule::list(call.rules()?, key)? {
            let wrong = || MetricError::Rules(format!("{written} is no pattern"));
            let pattern = pattern::compile(written.as_str().ok_or_else(wrong)?)?;
            let mut is_found = false;
            for line in python::lines_with_ends(&found) {
                is_found |= pattern::search(&pattern, line)?;
            }
            if is_found != wanted {
                return Ok(0.0);
            }
        }
    }
    Ok(1.0)
}

/// What a terminal printed is the text of a file.
pub(super) fn compare_terminal_and_txt(call: &Call<'_>) -> Result<f64, MetricError> {
    let shown = call.rules()?;
    if !python::is_true(shown) {
        return Ok(0.0);
    }
    let Some(found) = call.text()? else {
        return Ok(0.0);
    };
    Ok(score(shown.as_str() == Some(found.as_str())))
}

/// Two Python files are the same but for an encoding or interpreter named at the top, empty
/// lines, tabs and blanks at the ends of lines. What cannot be read is not.
pub(super) fn compare_python_pure_text(call: &Call<'_>) -> Result<f64, MetricError> {
    if call.file()?.is_none() || call.expected_file()?.is_none() {
        return Ok(0.0);
    }
    let (Ok(Some(found)), Ok(expected)) = (call.text(), call.expected_text()) else {
        return Ok(0.0);
    };
    Ok(score(python_lines(&found) == python_lines(&expected)))
}

fn python_lines(text: &str) -> Vec<String> {
    let lines = python::split_lines(text);
    let tops = ["#!", "# -*- coding:", "# coding:", "# coding="];
    let is_top = |line: &&&str| {
        let line = python::strip(line);
        tops.iter().any(|top| line.starts_with(top))
    };
    let skipped = lines.iter().take(3).take_while(is_top).count();
    let kept = lines[skipped..]
        .iter()
        .filter(|line| !python::strip(line).is_empty());
    kept.map(|line| {
        expand_tabs(line)
            .trim_end_matches(python::is_space)
            .to_owned()
    })
    .collect()
}

/// `line.expandtabs(4)`.
fn expand_tabs(line: &str) -> String {
    let mut out = String::new();
    let mut column = 0;
    for c in line.chars() {
        if c == '\t' {
            let width = 4 - column % 4;
            out.extend(std::iter::repeat_n(' ', width));
            column += width;
        } else {
            out.push(c);
            column += 1;
        }
    }
    out
}

/// Two texts are the same; where one has to be a number, the other may hold it or be as much.
pub(super) fn compare_result_files(call: &Call<'_>) -> Result<f64, MetricError> {
    if call.file()?.is_none() || call.expected_file()?.is_none() {
        return Ok(0.0);
    }
    let found = call.text()?.unwrap_or_default();
    let expected = call.expected_text()?;
    let (found, expected) = (python::strip(&found), python::strip(&expected));
    let Some(wanted) = python::parse_float(expected) else {
        return Ok(score(found == expected));
    };
    if found.contains(expected) {
        return Ok(1.0);
    }
    let worth = python::parse_float(found);
    Ok(score(
        worth.is_some_and(|worth| (worth - wanted).abs() < 1e-4),
    ))
}

/// A table's rows have all of `expect` and none of `unexpect`, column by column.
pub(super) fn check_csv(call: &Call<'_>) -> Result<f64, MetricError> {
    let Some(found) = call.text()? else {
        return Ok(0.0);
    };
    let mut rows = csv_rows(&found).into_iter();
    let names = rows.next().unwrap_or_default();
    let rows = rows.filter(|row| !row.is_empty());
    let records: Vec<Map<String, Value>> = rows.map(|row| record(&names, row)).collect();
    Ok(score(rule::records_fit(call.rules()?, &records)?))
}

/// A row by the names of its columns, as `csv.DictReader` has it: null where it is too short.
/// What is beyond the names has none here; no rule asks for it.
fn record(names: &[String], row: Vec<String>) -> Map<String, Value> {
    let cells = row
        .into_iter()
        .map(Value::String)
        .chain(std::iter::repeat(Value::Null));
    names.iter().cloned().zip(cells).collect()
}

/// Rows of cells, as Python's `csv.reader` parts them.
fn csv_rows(text: &str) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    let (mut row, mut cell) = (Vec::new(), String::new());
    let (mut in_quotes, mut is_begun) = (false, false);
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '"' if in_quotes && rest.peek() == Some(&'"') => {
                rest.next();
                cell.push('"');
            }
            '"' if in_quotes => in_quotes = false,
            // A quote opens a cell; elsewhere in it it is itself.
            '"' if !is_begun => (in_quotes, is_begun) = (true, true),
            ',' if !in_quotes => {
                row.push(std::mem::take(&mut cell));
                is_begun = false;
            }
            '\n' if !in_quotes => {
                if is_begun || !row.is_empty() {
                    row.push(std::mem::take(&mut cell));
                }
                rows.push(std::mem::take(&mut row));
                is_begun = false;
            }
            _ => {
                cell.push(c);
                is_begun = true;
            }
        }
    }
    if is_begun || !row.is_empty() {
        row.push(cell);
        rows.push(row);
    }
    rows
}

/// A table's lines are those of one of the expected tables; with `strict` off but for blanks
/// around them, with `ignore_case` but for case.
pub(super) fn compare_csv(call: &Call<'_>) -> Result<f64, MetricError> {
    let Some(file) = call.file()? else {
        return Ok(0.0);
    };
    let is_strict = call.options.get("strict").is_none_or(python::is_true);
    let lines = |bytes: &[u8]| -> Vec<String> {
        let text = read_any(bytes);
        let lines = python::split_lines(&text).into_iter();
        let lines = lines.map(|line| if is_strict { line } else { python::strip(line) });
        let ignore_case = call.is_on("ignore_case");
        lines
            .map(|line| {
                if ignore_case {
                    line.to_lowercase()
                } else {
                    line.to_owned()
                }
            })
            .collect()
    };
    let found = lines(&file.bytes);
    let expected = match call.expected {
        Found::Many(many) => many.as_slice(),
        one => std::slice::from_ref(one),
    };
    for one in expected {
        match one {
            Found::File(file) if lines(&file.bytes) == found => return Ok(1.0),
            Found::File(_) => {}
            _ => return Err(raised("there is no file to compare with")),
        }
    }
    Ok(0.0)
}

/// Text in UTF-8, else in Latin-1, in which every byte is a character.
pub(super) fn read_any(bytes: &[u8]) -> String {
    python::read_text(bytes).unwrap_or_else(|_| {
        let text: String = bytes.iter().copied().map(char::from).collect();
        text.replace("\r\n", "\n").replace('\r', "\n")
    })
}
