//! Quoted strings: where they end, what their escapes mean, and how to write them.

use crate::action::ParseErrorKind;
use crate::action::reply::has_call;

/// How strictly a string's quotes are read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Quoting {
    /// The first unescaped quote ends the string.
    Strict,
    /// A quote that does not end the argument belongs to the text (`'it's done'`).
    Text,
}

/// A string literal.
#[derive(Debug)]
pub(super) struct Scanned {
    /// Its content, un-escaped once.
    pub(super) value: String,
    /// Bytes of the literal, quotes included.
    pub(super) len: usize,
}

/// Reads the string literal that `text` begins with; `None` if it begins with no quote. An
/// error comes with its place within `text`.
pub(super) fn scan_string(
    text: &str,
    quoting: Quoting,
) -> Option<Result<Scanned, (usize, ParseErrorKind)>> {
    let quote = text.chars().next().filter(|&c| c == '\'' || c == '"')?;
    Some(scan_body(text, quote, quoting))
}

fn scan_body(
    text: &str,
    quote: char,
    quoting: Quoting,
) -> Result<Scanned, (usize, ParseErrorKind)> {
    let mut inner_quote = None;
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        if escaped {
            escaped = false;
        } else if c == '\\' {
            escaped = true;
        } else if c == quote {
            if quoting == Quoting::Strict || ends_argument(&text[at + 1..]) {
                return finish(text, at, inner_quote);
            }
            inner_quote.get_or_insert(at);
        }
    }
    Err((0, ParseErrorKind::UnclosedString))
}

/// A text with a bare quote is taken only if nothing behind that quote may be a call: the
/// quote may have been the end, and the call must not be swallowed.
fn finish(
    text: &str,
    end: usize,
    inner_quote: Option<usize>,
) -> Result<Scanned, (usize, ParseErrorKind)> {
    if let Some(at) = inner_quote
        && has_call(&text[at..end])
    {
        return Err((at, ParseErrorKind::AmbiguousQuote));
    }
    Ok(Scanned {
        value: unescape(&text[1..end]),
        len: end + 1,
    })
}

/// Whether an argument that ended just before `rest` would be followed properly: by the
/// call's end and a line's end, or by another argument.
fn ends_argument(rest: &str) -> bool {
    let rest = rest.trim_start();
    if let Some(rest) = rest.strip_prefix(')') {
        let rest = rest.trim_start_matches([' ', '\t', '\r']);
        return rest.is_empty() || rest.starts_with('\n');
    }
    let Some(rest) = rest.strip_prefix(',') else {
        return false;
    };
    let rest = rest.trim_start();
    let name_len = rest
        .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .unwrap_or(0);
    let value = rest[name_len..].trim_start().strip_prefix('=');
    name_len > 0 && value.is_some_and(|value| value.trim_start().starts_with(['\'', '"']))
}

/// Undoes escapes exactly once, as Python's string literals have them, as far as they can be
/// typed: `\\ \' \" \n \t \r \xhh \uhhhh \Uhhhhhhhh`. Anything else keeps its backslash.
pub(super) fn unescape(body: &str) -> String {
    let mut value = String::with_capacity(body.len());
    let mut rest = body;
    while let Some(at) = rest.find('\\') {
        value.push_str(&rest[..at]);
        let (meant, len) = read_escape(&rest[at + 1..]);
        value.push_str(meant.encode_utf8(&mut [0; 4]));
        rest = &rest[at + 1 + len..];
    }
    value + rest
}

/// The character that an escape means and the bytes it takes after the backslash.
fn read_escape(after: &str) -> (char, usize) {
    let verbatim = ('\\', 0);
    match after.chars().next() {
        Some('n') => ('\n', 1),
        Some('t') => ('\t', 1),
        Some('r') => ('\r', 1),
        Some(c @ ('\\' | '\'' | '"')) => (c, 1),
        Some('x') => read_hex(after, 2).unwrap_or(verbatim),
        Some('u') => read_hex(after, 4).unwrap_or(verbatim),
        Some('U') => read_hex(after, 8).unwrap_or(verbatim),
        _ => verbatim,
    }
}

fn read_hex(after: &str, digits: usize) -> Option<(char, usize)> {
    let hex = after.get(1..=digits)?;
    if !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let code = u32::from_str_radix(hex, 16).ok()?;
    Some((char::from_u32(code)?, digits + 1))
}

/// Writes `text` as a string literal that reads back as the same text.
pub(super) fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('\'');
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\'' => out.push_str("\\'"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            // All of them are below U+0100.
            c if c.is_control() => out.extend(format!("\\u{:04x}", u32::from(c)).chars()),
            c => out.push(c),
        }
    }
    out.push('\'');
    out
}
