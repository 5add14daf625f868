//! Replies: thought, calls, and what the calls mean.

use crate::action::call::{Argument, Call, Cursor, read_call};
use crate::action::{ParseError, ParseErrorKind, Space, keys};
use crate::types::{Action, Point, ScrollDirection};

/// What a reply says.
#[derive(Clone, Debug, PartialEq)]
pub struct ParsedReply {
    /// The thought, its label left out; empty if there is none.
    pub thought: String,
    /// At least one action, in screen pixels; only the last may end the episode.
    pub actions: Vec<Action>,
    /// Whether a place lay outside the picture and was moved to its edge.
    pub clamped: bool,
}

const MARKER: &str = "Action:";

/// Every name a call may have. `left_single`, `select` and `error_env` are older spellings of
/// `click`, `drag` and `fail`.
const NAMES: [&str; 16] = [
    "click",
    "left_single",
    "left_double",
    "right_single",
    "hover",
    "drag",
    "select",
    "hotkey",
    "press",
    "type",
    "scroll",
    "wait",
    "finished",
    "fail",
    "error_env",
    "call_user",
];

/// Reads a reply, special tokens already left out or not.
pub fn parse_reply(text: &str, space: &Space) -> Result<ParsedReply, ParseError> {
    let mut last_error = None;
    for marker in markers(text) {
        match parse_calls(text, marker.at + MARKER.len(), space) {
            Ok((actions, clamped)) => {
                return Ok(ParsedReply {
                    thought: read_thought(&text[..marker.at]),
                    actions,
                    clamped,
                });
            }
            Err(error) if marker.is_final => return Err(error),
            Err(error) => last_error = Some(error),
        }
    }
    Err(last_error.unwrap_or_else(|| ParseErrorKind::NoAction.at(text.len())))
}

/// A place where the calls may begin.
struct Marker {
    at: usize,
    /// Whether nothing behind it may be tried instead.
    is_final: bool,
}

/// The thought may speak of an `Action:` too. A marker that begins a line is the one, unless
/// all from an earlier one on is calls. Without such a line the first marker with a call
/// behind it is. So no call behind the right marker is ever skipped.
fn markers(text: &str) -> impl Iterator<Item = Marker> + '_ {
    let mut done = false;
    let begins_line = |at: usize| {
        let before = text[..at].trim_end_matches([' ', '\t', '\r']);
        before.is_empty() || before.ends_with('\n')
    };
    let has_line = text.match_indices(MARKER).any(|(at, _)| begins_line(at));
    text.match_indices(MARKER).map_while(move |(at, _)| {
        if done {
            return None;
        }
        let rest = text[at + MARKER.len()..].trim_start();
        done = if has_line {
            begins_line(at)
        } else {
            call_name(rest).is_some()
        };
        Some(Marker { at, is_final: done })
    })
}

/// Name of the call that `text` begins with, known or not.
fn call_name(text: &str) -> Option<&str> {
    let (name, _) = text.split_once('(')?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    (!name.is_empty() && name.chars().all(is_name)).then_some(name)
}

/// Whether anywhere in `text` something looks like a call of an action.
pub(super) fn has_call(text: &str) -> bool {
    text.match_indices('(').any(|(at, _)| {
        let before = &text[..at];
        let start = before
            .rfind(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
            .map_or(0, |last| {
                last + before[last..].chars().next().map_or(1, char::len_utf8)
            });
        NAMES.contains(&&before[start..])
    })
}

/// The words before the marker without their label. Of a reflection with a summary, the
/// summary.
fn read_thought(head: &str) -> String {
    let head = head.trim();
    let labelled = if head.starts_with("Reflection:") || head.starts_with("Action_Summary:") {
        head.split_once("Action_Summary:").map(|(_, rest)| rest)
    } else {
        head.strip_prefix("Thought:")
    };
    labelled.unwrap_or(head).trim().to_owned()
}

/// Reads calls from byte `at` to the end of the reply.
fn parse_calls(text: &str, at: usize, space: &Space) -> Result<(Vec<Action>, bool), ParseError> {
    let mut cursor = Cursor::new(text, at);
    let mut actions: Vec<Action> = Vec::new();
    let mut clamped = false;
    loop {
        cursor.skip_whitespace();
        if !actions.is_empty() {
            if cursor.rest().is_empty() {
                return Ok((actions, clamped));
            }
            if cursor.eat(MARKER) {
                cursor.skip_whitespace();
            }
        }
        let call = read_call(&mut cursor)?;
        if let Some(last) = actions.last().filter(|last| last.is_terminal()) {
            let action = last.name();
            return Err(ParseErrorKind::AfterTerminal { action }.at(call.at));
        }
        let mut reader = Reader {
            call: &call,
            space,
            clamped: false,
        };
        actions.push(reader.action()?);
        clamped |= reader.clamped;
        cursor.skip_blanks();
        if !cursor.rest().is_empty() && !cursor.rest().starts_with('\n') {
            let kind = ParseErrorKind::Syntax {
                expected: "a line end after an action",
                found: cursor.found(),
            };
            return Err(kind.at(cursor.at()));
        }
    }
}

/// What an argument may be called.
type Names = &'static [&'static str];

const PLACE: Names = &["start_box", "point"];
const FROM: Names = &["start_box", "start_point"];
const TO: Names = &["end_box", "end_point"];
const KEYS: Names = &["key", "hotkey"];
const KEY: Names = &["key"];
const CONTENT: Names = &["content"];
const DIRECTION: Names = &["direction"];

/// Reads one call's meaning.
struct Reader<'a> {
    call: &'a Call<'a>,
    space: &'a Space,
    clamped: bool,
}

impl Reader<'_> {
    fn action(&mut self) -> Result<Action, ParseError> {
        Ok(match self.call.name {
            "click" | "left_single" => Action::Click {
                at: self.only_place("click")?,
            },
            "left_double" => Action::LeftDouble {
                at: self.only_place("left_double")?,
            },
            "right_single" => Action::RightSingle {
                at: self.only_place("right_single")?,
            },
            "hover" => Action::Hover {
                at: self.only_place("hover")?,
            },
            "drag" | "select" => self.drag()?,
            "hotkey" => self.hotkey()?,
            "press" => self.press()?,
            "type" => self.type_text()?,
            "scroll" => self.scroll()?,
            "wait" => self.bare("wait", Action::Wait)?,
            "finished" => self.finished()?,
            "fail" | "error_env" => self.bare("fail", Action::Fail)?,
            "call_user" => self.bare("call_user", Action::CallUser)?,
            name => {
                let name = name.to_owned();
                return Err(ParseErrorKind::UnknownAction { name }.at(self.call.at));
            }
        })
    }

    fn only_place(&mut self, action: &'static str) -> Result<Point, ParseError> {
        self.only(action, &[PLACE])?;
        self.place(action, PLACE)
    }

    fn drag(&mut self) -> Result<Action, ParseError> {
        self.only("drag", &[FROM, TO])?;
        Ok(Action::Drag {
            from: self.place("drag", FROM)?,
            to: self.place("drag", TO)?,
        })
    }

    fn hotkey(&self) -> Result<Action, ParseError> {
        self.only("hotkey", &[KEYS])?;
        Ok(Action::Hotkey {
            keys: self.keys("hotkey", KEYS)?,
        })
    }

    fn press(&self) -> Result<Action, ParseError> {
        self.only("press", &[KEY])?;
        let mut keys = self.keys("press", KEY)?;
        match (keys.pop(), keys.is_empty()) {
            (Some(key), true) => Ok(Action::Press { key }),
            _ => Err(ParseErrorKind::SeveralKeys.at(self.call.at)),
        }
    }

    fn type_text(&self) -> Result<Action, ParseError> {
        self.only("type", &[CONTENT])?;
        let argument = self.needed("type", CONTENT)?;
        Ok(Action::Type {
            content: not_empty(argument)?.to_owned(),
        })
    }

    fn scroll(&mut self) -> Result<Action, ParseError> {
        self.only("scroll", &[PLACE, DIRECTION])?;
        let at = match self.find(PLACE) {
            Some(_) => Some(self.place("scroll", PLACE)?),
            None => None,
        };
        let argument = self.needed("scroll", DIRECTION)?;
        let direction = match argument.value.trim().to_ascii_lowercase().as_str() {
            "up" => ScrollDirection::Up,
            "down" => ScrollDirection::Down,
            "left" => ScrollDirection::Left,
            "right" => ScrollDirection::Right,
            _ => {
                let found = argument.value.clone();
                return Err(ParseErrorKind::BadDirection { found }.at(argument.at));
            }
        };
        Ok(Action::Scroll { at, direction })
    }

    fn finished(&self) -> Result<Action, ParseError> {
        self.only("finished", &[CONTENT])?;
        let content = self.find(CONTENT).map(|argument| argument.value.clone());
        Ok(Action::Finished {
            content: content.unwrap_or_default(),
        })
    }

    fn bare(&self, name: &'static str, action: Action) -> Result<Action, ParseError> {
        self.only(name, &[])?;
        Ok(action)
    }

    /// Refuses arguments the action does not have, and the same one twice.
    fn only(&self, action: &'static str, allowed: &[Names]) -> Result<(), ParseError> {
        let mut seen: Vec<Names> = Vec::new();
        for argument in &self.call.arguments {
            let names = allowed.iter().find(|names| names.contains(&argument.name));
            let name = argument.name.to_owned();
            match names {
                None => {
                    let kind = ParseErrorKind::UnknownArgument {
                        action,
                        argument: name,
                    };
                    return Err(kind.at(argument.at));
                }
                Some(names) if seen.contains(names) => {
                    let kind = ParseErrorKind::DuplicateArgument { argument: name };
                    return Err(kind.at(argument.at));
                }
                Some(names) => seen.push(names),
            }
        }
        Ok(())
    }

    fn find(&self, names: Names) -> Option<&Argument<'_>> {
        let mut all = self.call.arguments.iter();
        all.find(|argument| names.contains(&argument.name))
    }

    fn needed(&self, action: &'static str, names: Names) -> Result<&Argument<'_>, ParseError> {
        self.find(names).ok_or_else(|| {
            let argument = names[0];
            ParseErrorKind::MissingArgument { action, argument }.at(self.call.at)
        })
    }

    fn place(&mut self, action: &'static str, names: Names) -> Result<Point, ParseError> {
        let argument = self.needed(action, names)?;
        let (x, y) = parse_box(not_empty(argument)?)
            .map_err(|reason| ParseErrorKind::BadBox { reason }.at(argument.at))?;
        let (point, clamped) = self.space.to_screen(x, y);
        self.clamped |= clamped;
        Ok(point)
    }

    fn keys(&self, action: &'static str, names: Names) -> Result<Vec<String>, ParseError> {
        let argument = self.needed(action, names)?;
        keys::split(not_empty(argument)?)
            .into_iter()
            .map(|key| {
                let name = keys::canonical(key).map(str::to_owned);
                name.ok_or_else(|| {
                    let key = key.to_owned();
                    ParseErrorKind::UnknownKey { key }.at(argument.at)
                })
            })
            .collect()
    }
}

/// Text of blanks alone is text when typed, but names no key and no place.
fn not_empty<'a>(argument: &'a Argument<'_>) -> Result<&'a str, ParseError> {
    let typed = CONTENT.contains(&argument.name);
    let empty = if typed {
        argument.value.is_empty()
    } else {
        argument.value.trim().is_empty()
    };
    if empty {
        let argument_name = argument.name.to_owned();
        let kind = ParseErrorKind::EmptyArgument {
            argument: argument_name,
        };
        return Err(kind.at(argument.at));
    }
    Ok(&argument.value)
}

/// Tokens and tags that models put around a place.
const WRAPPERS: [(&str, &str); 3] = [
    ("<|box_start|>", "<|box_end|>"),
    ("<point>", "</point>"),
    ("<bbox>", "</bbox>"),
];

/// Middle of the place that `text` names in the model's coordinates: two numbers, or the four
/// of a box, in brackets or not.
fn parse_box(text: &str) -> Result<(f64, f64), &'static str> {
    let mut body = text.trim();
    for (open, close) in WRAPPERS {
        body = match (body.strip_prefix(open), body.strip_suffix(close)) {
            (None, None) => body,
            (Some(inner), Some(_)) => inner.strip_suffix(close).unwrap_or(inner).trim(),
            _ => return Err("its box tokens are not a pair"),
        };
    }
    match parse_numbers(body)?.as_slice() {
        [x, y] => Ok((*x, *y)),
        [x1, y1, x2, y2] => Ok((f64::midpoint(*x1, *x2), f64::midpoint(*y1, *y2))),
        _ => Err("it must have two or four numbers"),
    }
}

fn parse_numbers(body: &str) -> Result<Vec<f64>, &'static str> {
    let inner = match body.as_bytes() {
        [b'(', .., b')'] | [b'[', .., b']'] => &body[1..body.len() - 1],
        [b'(' | b'[', ..] | [.., b')' | b']'] => return Err("its brackets are not a pair"),
        _ => body,
    };
    // Qwen's own boxes have two pairs: (x1,y1),(x2,y2).
    let Some((first, second)) = inner.split_once(')') else {
        return split_numbers(inner);
    };
    let second = second.trim_start();
    let second = second.strip_prefix(',').unwrap_or(second).trim_start();
    let second = second
        .strip_prefix('(')
        .ok_or("its brackets are not a pair")?;
    let (first, second) = (split_numbers(first)?, split_numbers(second)?);
    if first.len() != 2 || second.len() != 2 {
        return Err("each of its pairs must have two numbers");
    }
    Ok([first, second].concat())
}

/// Numbers separated by commas, or by blanks alone.
fn split_numbers(list: &str) -> Result<Vec<f64>, &'static str> {
    if list.contains(',') {
        list.split(',').map(parse_number).collect()
    } else {
        list.split_whitespace().map(parse_number).collect()
    }
}

fn parse_number(text: &str) -> Result<f64, &'static str> {
    let text = text.trim();
    let is_plain = |c: char| c.is_ascii_digit() || c == '.' || c == '-';
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() && text.chars().all(is_plain) => Ok(value),
        _ => Err("its numbers must be plain ones"),
    }
}
