//! What Python's operators say of JSON values and texts, where metrics lean on them.

use std::fmt::Write as _;

use serde_json::Value;

use super::MetricError;

/// `left == right`: of numbers it compares the worth, and `True` is 1.
pub(in crate::evaluator) fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Array(left), Value::Array(right)) => {
            let mut pairs = left.iter().zip(right);
            left.len() == right.len() && pairs.all(|(left, right)| equal(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            let same = |(key, left)| right.get(key).is_some_and(|right| equal(left, right));
            left.len() == right.len() && left.iter().all(same)
        }
        _ => match (worth(left), worth(right)) {
            (Some(left), Some(right)) => left == right,
            _ => left == right,
        },
    }
}

/// What a number, or `True` as 1, is worth.
pub(super) fn worth(value: &Value) -> Option<f64> {
    match value {
        Value::Bool(is_true) => Some(f64::from(u8::from(*is_true))),
        Value::Number(number) => number.as_f64(),
        _ => None,
    }
}

/// `part in whole`.
pub(super) fn is_in(part: &Value, whole: &Value) -> Result<bool, MetricError> {
    match (whole, part) {
        (Value::String(text), Value::String(part)) => Ok(text.contains(part.as_str())),
        (Value::Array(items), _) => Ok(items.iter().any(|item| equal(item, part))),
        (Value::Object(_), Value::Array(_) | Value::Object(_)) => {
            Err(raised(format!("{part} is no key of an object")))
        }
        (Value::Object(object), Value::String(key)) => Ok(object.contains_key(key)),
        (Value::Object(_), _) => Ok(false),
        (Value::String(_), _) => Err(raised(format!("looks for {part} in a text"))),
        _ => Err(raised(format!("looks for something in {whole}"))),
    }
}

/// `bool(value)`.
pub(in crate::evaluator) fn is_true(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(object) => !object.is_empty(),
        Value::Bool(_) | Value::Number(_) => worth(value) != Some(0.0),
    }
}

/// What a function of OSWorld's would raise an exception at.
pub(super) fn raised(reason: impl Into<String>) -> MetricError {
    MetricError::Raised(reason.into())
}

/// `str.isspace` of a character, which is regular expressions' `\s` too.
pub(super) fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

/// `str.strip()`.
pub(in crate::evaluator) fn strip(text: &str) -> &str {
    text.trim_matches(is_space)
}

/// `str.split()`.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(is_space).filter(|word| !word.is_empty())
}

/// `re.sub(r'\s+', ' ', text).strip()`.
pub(super) fn squeeze(text: &str) -> String {
    words(text).collect::<Vec<_>>().join(" ")
}

/// `open(path).read()`: UTF-8 with line ends made one.
pub(super) fn read_text(bytes: &[u8]) -> Result<String, MetricError> {
    let text = std::str::from_utf8(bytes).map_err(|error| raised(format!("not UTF-8: {error}")))?;
    Ok(text.replace("\r\n", "\n").replace('\r', "\n"))
}

/// The lines of `for line in open(path)`, each with its end.
pub(super) fn lines_with_ends(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive('\n')
}

/// `str.splitlines()`.
pub(super) fn split_lines(text: &str) -> Vec<&str> {
    let is_end = |c: char| {
        matches!(
            c,
            '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'
                ..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}'
        )
    };
    let mut lines = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(is_end) {
        lines.push(&rest[..at]);
        let end = &rest[at..];
        let width = end.chars().next().map_or(1, char::len_utf8);
        rest = end.strip_prefix("\r\n").unwrap_or(&end[width..]);
    }
    if !rest.is_empty() {
        lines.push(rest);
    }
    lines
}

/// `text[from:-cut]` over characters.
pub(super) fn slice(text: &str, from: usize, cut: usize) -> String {
    let len = text.chars().count();
    let upto = len.saturating_sub(cut);
    let kept = upto.saturating_sub(from);
    text.chars().skip(from).take(kept).collect()
}

/// `float(text)`, none where that raises.
pub(super) fn parse_float(text: &str) -> Option<f64> {
    let text = strip(text);
    // Python takes single underscores between digits.
    let is_digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
    let plain: Vec<char> = text.chars().collect();
    let misplaced = plain.iter().enumerate().any(|(at, c)| {
        let before = at.checked_sub(1).map(|at| plain[at]);
        *c == '_' && !(is_digit(before) && is_digit(plain.get(at + 1).copied()))
    });
    if misplaced {
        return None;
    }
    text.replace('_', "").parse().ok()
}

/// `int(text)`, none where that raises.
pub(super) fn parse_int(text: &str) -> Option<i64> {
    strip(text).replace('_', "").parse().ok()
}

/// `int(value)`, none where that raises.
pub(super) fn to_int(value: &Value) -> Option<i64> {
    match value {
        Value::String(text) => parse_int(text),
        _ => worth(value).map(|worth| worth.trunc() as i64),
    }
}

/// `str(value)`.
pub(super) fn to_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        _ => repr(value),
    }
}

/// `repr(value)`.
fn repr(value: &Value) -> String {
    match value {
        Value::Null => "None".into(),
        Value::Bool(true) => "True".into(),
        Value::Bool(false) => "False".into(),
        Value::Number(number) if number.is_f64() => repr_float(number.as_f64().unwrap_or(f64::NAN)),
        Value::Number(number) => number.to_string(),
        Value::String(text) => repr_text(text),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(repr).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(object) => {
            let item =
                |(key, value): (&String, &Value)| format!("{}: {}", repr_text(key), repr(value));
            let items: Vec<String> = object.iter().map(item).collect();
            format!("{{{}}}", items.join(", "))
        }
    }
}

/// The shortest digits that are the number, with an exponent from 1e16 up and below 1e-4.
fn repr_float(number: f64) -> String {
    if number != 0.0 && !(1e-4..1e16).contains(&number.abs()) {
        let text = format!("{number:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, exponent) = match exponent.strip_prefix('-') {
            Some(exponent) => ('-', exponent),
            None => ('+', exponent),
        };
        return format!("{digits}e{sign}{exponent:0>2}");
    }
    format!("{number:?}")
}

/// In quotes as Python chooses them. Departs: characters that do not print, beyond the control
/// ones, stand as they are.
fn repr_text(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') {
        '"'
    } else {
        '\''
    };
    let mut out = String::from(quote);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == quote => out.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(out, "\\x{:02x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push(quote);
    out
}
