//! Python source by construction: literals of any text, calls with literal arguments.
//!
//! Names of functions are ours; whatever comes from a model or a task is a literal. The source is
//! plain ASCII, so that no locale of the guest can garble it.

use std::fmt::Write as _;

/// A literal.
#[derive(Clone, Copy, Debug)]
pub(super) enum Literal<'a> {
    Int(i64),
    Float(f64),
    Text(&'a str),
}

impl Literal<'_> {
    fn write(self, source: &mut String) {
        match self {
            Self::Int(value) => {
                let _ = write!(source, "{value}");
            }
            // Rust writes a point in every number that Python would read as a whole one.
            Self::Float(value) => {
                let _ = write!(source, "{value:?}");
            }
            Self::Text(text) => write_text(source, text),
        }
    }
}

/// Statements one after another.
#[derive(Debug)]
pub(super) struct Source(String);

impl Source {
    /// Begins with this, which is ours.
    pub(super) fn new(prelude: &'static str) -> Self {
        Self(prelude.to_owned())
    }

    /// Adds statements, which are ours.
    pub(super) fn add(&mut self, statements: &'static str) {
        self.0.push_str(statements);
    }

    /// Calls a function.
    pub(super) fn call(&mut self, function: &'static str, arguments: &[Literal<'_>]) {
        self.call_with(function, arguments, &[]);
    }

    /// Calls a function with named arguments, too.
    pub(super) fn call_with(
        &mut self,
        function: &'static str,
        arguments: &[Literal<'_>],
        named: &[(&'static str, Literal<'_>)],
    ) {
        let source = &mut self.0;
        source.push_str(function);
        let mut before = "(";
        for argument in arguments {
            source.push_str(before);
            argument.write(source);
            before = ", ";
        }
        for (name, argument) in named {
            source.push_str(before);
            source.push_str(name);
            source.push('=');
            argument.write(source);
            before = ", ";
        }
        if before == "(" {
            source.push('(');
        }
        source.push_str(")\n");
    }

    pub(super) fn finish(self) -> String {
        self.0
    }
}

/// Writes `text` as a Python string literal of printable ASCII.
pub(super) fn write_text(source: &mut String, text: &str) {
    source.push('\'');
    for c in text.chars() {
        let _ = match c {
            '\'' | '\\' => write!(source, "\\{c}"),
            ' '..='~' => write!(source, "{c}"),
            '\0'..='\u{ff}' => write!(source, "\\x{:02x}", u32::from(c)),
            '\u{100}'..='\u{ffff}' => write!(source, "\\u{:04x}", u32::from(c)),
            _ => write!(source, "\\U{:08x}", u32::from(c)),
        };
    }
    source.push('\'');
}
