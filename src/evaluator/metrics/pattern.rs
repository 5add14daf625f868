//! Regular expressions as task files write them: Python's.
//!
//! Departs: `\w` and `\b` take combining marks for letters, which Python does not.

use fancy_regex::{Regex, RegexBuilder};

use super::MetricError;

/// Flags of Python's `re` that rules may name, `re.I` for one.
const FLAGS: [(&str, char); 8] = [
    ("I", 'i'),
    ("IGNORECASE", 'i'),
    ("M", 'm'),
    ("MULTILINE", 'm'),
    ("S", 's'),
    ("DOTALL", 's'),
    ("X", 'x'),
    ("VERBOSE", 'x'),
];

/// A compiled pattern.
pub(super) fn compile(pattern: &str) -> Result<Regex, MetricError> {
    compile_with(pattern, &[])
}

/// A compiled pattern with flags by their names.
pub(super) fn compile_with(pattern: &str, flags: &[&str]) -> Result<Regex, MetricError> {
    let mut letters = String::new();
    for name in flags {
        let known = FLAGS.iter().find(|(known, _)| known == name);
        let (_, letter) = known.ok_or_else(|| MetricError::Rules(format!("no flag re.{name}")))?;
        letters.push(*letter);
    }
    let is_multiline = letters.contains('m');
    let mut rust = if letters.is_empty() {
        String::new()
    } else {
        format!("(?{letters})")
    };
    rust.push_str(&translate(pattern, is_multiline));
    let built = RegexBuilder::new(&rust).build();
    built.map_err(|error| MetricError::Rules(format!("pattern {pattern:?}: {error}")))
}

/// Whether a pattern is found anywhere in a text.
pub(super) fn search(pattern: &Regex, text: &str) -> Result<bool, MetricError> {
    pattern
        .is_match(text)
        .map_err(|error| super::python::raised(format!("pattern {:?}: {error}", pattern.as_str())))
}

/// What Python means by a pattern, in the words of the crate: `$` holds before a last line end,
/// `\Z` is the very end, a class holds no classes, and a brace that repeats nothing is itself.
fn translate(pattern: &str, is_multiline: bool) -> String {
    let mut out = String::new();
    let mut rest = pattern.chars();
    let mut in_class = false;
    while let Some(c) = rest.next() {
        match c {
            '\\' => match rest.next() {
                Some('Z') if !in_class => out.push_str(r"\z"),
                Some(escaped) => out.extend(['\\', escaped]),
                None => out.push('\\'),
            },
            '[' | '&' | '~' if in_class => out.extend(['\\', c]),
            '[' => {
                in_class = true;
                out.push('[');
                let first = rest.as_str();
                let negation = usize::from(first.starts_with('^'));
                out.push_str(&first[..negation]);
                rest = first[negation..].chars();
                if let Some(after) = rest.as_str().strip_prefix(']') {
                    out.push_str(r"\]");
                    rest = after.chars();
                }
            }
            ']' => {
                in_class = false;
                out.push(']');
            }
            '$' if !in_class && !is_multiline => out.push_str(r"(?=\n?\z)"),
            '{' if !in_class && !is_count(rest.as_str()) => out.push_str(r"\{"),
            _ => out.push(c),
        }
    }
    out
}

/// Whether what follows a brace makes it a number of repetitions.
fn is_count(rest: &str) -> bool {
    rest.split_once('}').is_some_and(|(count, _)| {
        let is_number = |text: &str| text.chars().all(|c| c.is_ascii_digit());
        match count.split_once(',') {
            Some((from, to)) => is_number(from) && is_number(to),
            None => !count.is_empty() && is_number(count),
        }
    })
}
