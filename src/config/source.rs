//! One source of values: a TOML text or a `--set`, flattened to leaves that remember where they
//! were written.
//!
//! A leaf keeps its text verbatim, so `1e-6` is shown as `1e-6`. Inline tables (`{ … }`) are
//! values: they are replaced whole, never merged.

use std::fmt;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::config::ConfigError;

/// What the base is called in origins and messages.
pub(crate) const BASE_NAME: &str = "profiles/base.toml";

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A line of a profile, counted from 1.
    File {
        /// The file as named on the command line.
        name: String,
        /// The line its key stands on.
        line: usize,
    },
    /// A `--set` of the command line.
    Set,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::File { name, line } => write!(f, "{name}:{line}"),
            Origin::Set => f.write_str("--set"),
        }
    }
}

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueKind {
    String,
    Integer,
    Float,
    Boolean,
    Array,
    InlineTable,
    Date,
}

impl ValueKind {
    /// For messages.
    pub(crate) fn words(self) -> &'static str {
        match self {
            ValueKind::String => "a string",
            ValueKind::Integer => "a whole number",
            ValueKind::Float => "a number",
            ValueKind::Boolean => "true or false",
            ValueKind::Array => "a list",
            ValueKind::InlineTable => "an inline table { ... }",
            ValueKind::Date => "a date",
        }
    }
}

/// One value, its key and where it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// Sections and key, joined by dots.
    pub key: String,
    /// The value as TOML, on one line.
    pub text: String,
    /// Where it came from.
    pub origin: Origin,
    pub(crate) kind: ValueKind,
}

impl Leaf {
    /// Whether nothing was laid over the base's value.
    pub fn is_from_base(&self) -> bool {
        matches!(&self.origin, Origin::File { name, .. } if name == BASE_NAME)
    }
}

/// What a TOML text says: its leaves and its section headers, in the order of the text.
#[derive(Debug, Default)]
pub(crate) struct Source {
    pub(crate) leaves: Vec<Leaf>,
    /// Keys of tables and where they are opened.
    pub(crate) sections: Vec<(String, Origin)>,
}

/// Reads a TOML text; `name` is shown in messages and origins.
pub(crate) fn parse(name: &str, text: &str) -> Result<Source, ConfigError> {
    let table = DeTable::parse(text).map_err(|error| ConfigError::Syntax {
        at: format!(
            "{name}:{}",
            error.span().map_or(1, |span| line_of(text, span.start))
        ),
        message: error.message().replace('\n', " "),
    })?;
    let mut reader = Reader {
        name,
        text,
        found: Vec::new(),
        sections: Vec::new(),
    };
    reader.walk("", table.get_ref());
    // The parser's tables are sorted by key; people want the order of the file.
    reader.found.sort_by_key(|(offset, _)| *offset);
    Ok(Source {
        leaves: reader.found.into_iter().map(|(_, leaf)| leaf).collect(),
        sections: reader.sections,
    })
}

/// Reads the value of `--set key=value`. Where the profile has a string, quotes may be left out.
pub(crate) fn parse_set(key: &str, value: &str, expected: ValueKind) -> Result<Leaf, ConfigError> {
    let bare = expected == ValueKind::String && !value.starts_with(['"', '\'']);
    let value = if bare {
        toml::Value::String(value.to_owned()).to_string()
    } else {
        value.to_owned()
    };
    let source = parse("--set", &format!("value = {value}")).map_err(|error| match error {
        ConfigError::Syntax { message, .. } => ConfigError::Syntax {
            at: format!("--set {key}={value}"),
            message,
        },
        other => other,
    })?;
    match <[Leaf; 1]>::try_from(source.leaves) {
        Ok([leaf]) => Ok(Leaf {
            key: key.to_owned(),
            origin: Origin::Set,
            ..leaf
        }),
        Err(_) => Err(ConfigError::SetSyntax {
            argument: format!("{key}={value}"),
        }),
    }
}

fn line_of(text: &str, offset: usize) -> usize {
    text.bytes()
        .take(offset)
        .filter(|byte| *byte == b'\n')
        .count()
        + 1
}

struct Reader<'a> {
    name: &'a str,
    text: &'a str,
    /// With the offset of each key.
    found: Vec<(usize, Leaf)>,
    sections: Vec<(String, Origin)>,
}

impl Reader<'_> {
    fn walk(&mut self, prefix: &str, table: &DeTable<'_>) {
        for (name, value) in table {
            let dot = if prefix.is_empty() { "" } else { "." };
            let key = format!("{prefix}{dot}{}", name.get_ref());
            let offset = name.span().start;
            let origin = Origin::File {
                name: self.name.to_owned(),
                line: line_of(self.text, offset),
            };
            match (value.get_ref(), self.kind(value)) {
                (DeValue::Table(inner), None) => {
                    self.sections.push((key.clone(), origin));
                    self.walk(&key, inner);
                }
                (_, kind) => {
                    let kind = kind.unwrap_or(ValueKind::InlineTable);
                    let text = one_line(&self.text[value.span()]);
                    self.found.push((
                        offset,
                        Leaf {
                            key,
                            text,
                            origin,
                            kind,
                        },
                    ));
                }
            }
        }
    }

    /// The kind of a value; `None` for a section.
    fn kind(&self, value: &Spanned<DeValue<'_>>) -> Option<ValueKind> {
        Some(match value.get_ref() {
            DeValue::String(_) => ValueKind::String,
            DeValue::Integer(_) => ValueKind::Integer,
            DeValue::Float(_) => ValueKind::Float,
            DeValue::Boolean(_) => ValueKind::Boolean,
            DeValue::Datetime(_) => ValueKind::Date,
            DeValue::Array(_) => ValueKind::Array,
            DeValue::Table(_) if self.text[value.span()].starts_with('{') => ValueKind::InlineTable,
            DeValue::Table(_) => return None,
        })
    }
}

/// A value on one line. What spans lines (lists with comments, long strings) is printed anew.
fn one_line(text: &str) -> String {
    if !text.contains('\n') {
        return text.to_owned();
    }
    let whole: toml::Table = format!("v = {text}")
        .parse()
        .expect("a slice of parsed TOML parses by itself");
    whole["v"].to_string()
}
