//! Calls as written: `name(argument='value', …)`. Knows nothing of actions but which
//! argument holds free text.

use crate::action::text::{Quoting, scan_string};
use crate::action::{ParseError, ParseErrorKind};

/// One call, its strings un-escaped.
#[derive(Debug)]
pub(super) struct Call<'a> {
    /// What is called.
    pub(super) name: &'a str,
    /// Where it begins, bytes of the reply.
    pub(super) at: usize,
    /// Its arguments in order.
    pub(super) arguments: Vec<Argument<'a>>,
}

/// One argument of a call.
#[derive(Debug)]
pub(super) struct Argument<'a> {
    /// Its name.
    pub(super) name: &'a str,
    /// Its value.
    pub(super) value: String,
    /// Where the value's quote opens, bytes of the reply.
    pub(super) at: usize,
}

/// The argument that holds free text; models forget to escape quotes in it.
const TEXT_ARGUMENT: &str = "content";

/// A place in a reply.
pub(super) struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str, at: usize) -> Self {
        Self { text, at }
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    pub(super) fn skip_whitespace(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    /// Skips blanks but no line end.
    pub(super) fn skip_blanks(&mut self) {
        let rest = self.rest().trim_start_matches([' ', '\t', '\r']);
        self.at = self.text.len() - rest.len();
    }

    pub(super) fn eat(&mut self, expected: &str) -> bool {
        let found = self.rest().starts_with(expected);
        if found {
            self.at += expected.len();
        }
        found
    }

    fn identifier(&mut self) -> &'a str {
        let rest = self.rest();
        let end = rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '.'))
            .unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    /// What stands here, for messages.
    pub(super) fn found(&self) -> String {
        let mut chars = self.rest().chars();
        match chars.next() {
            None => "the end".to_owned(),
            Some('\n') => "a line end".to_owned(),
            Some(first) => {
                let word: String = chars.take_while(|c| !c.is_whitespace()).take(19).collect();
                format!("`{first}{word}`")
            }
        }
    }

    fn syntax_error(&self, expected: &'static str) -> ParseError {
        let found = self.found();
        ParseErrorKind::Syntax { expected, found }.at(self.at)
    }
}

/// Reads one call at the cursor and leaves the cursor behind it.
pub(super) fn read_call<'a>(cursor: &mut Cursor<'a>) -> Result<Call<'a>, ParseError> {
    let at = cursor.at();
    let found = cursor.found();
    let name = cursor.identifier();
    if name.is_empty() {
        return Err(ParseErrorKind::ExpectedCall { found }.at(at));
    }
    if !cursor.eat("(") {
        return Err(cursor.syntax_error("`(` after the action's name"));
    }
    let mut arguments = Vec::new();
    loop {
        cursor.skip_whitespace();
        if cursor.eat(")") {
            return Ok(Call {
                name,
                at,
                arguments,
            });
        }
        arguments.push(read_argument(cursor)?);
        cursor.skip_whitespace();
        if !cursor.rest().starts_with(')') && !cursor.eat(",") {
            return Err(cursor.syntax_error("`,` or `)` after an argument"));
        }
    }
}

fn read_argument<'a>(cursor: &mut Cursor<'a>) -> Result<Argument<'a>, ParseError> {
    let name = cursor.identifier();
    if name.is_empty() {
        return Err(cursor.syntax_error("an argument's name"));
    }
    cursor.skip_whitespace();
    if !cursor.eat("=") {
        return Err(cursor.syntax_error("`=` after an argument's name"));
    }
    cursor.skip_whitespace();
    let at = cursor.at();
    let quoting = if name == TEXT_ARGUMENT {
        Quoting::Text
    } else {
        Quoting::Strict
    };
    let Some(scanned) = scan_string(cursor.rest(), quoting) else {
        return Err(cursor.syntax_error("a quoted value"));
    };
    let string = scanned.map_err(|(within, kind)| kind.at(at + within))?;
    cursor.at += string.len;
    Ok(Argument {
        name,
        value: string.value,
        at,
    })
}
