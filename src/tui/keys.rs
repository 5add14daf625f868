//! Keys by name: `q`, `G`, `ctrl-c`, `enter`, `pagedown`, `f1`.

use std::fmt;
use std::str::FromStr;

use crossterm::event::KeyCode;

/// One key as pressed, shift folded into the character.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// Which.
    pub code: KeyCode,
    /// Whether ctrl was held.
    pub ctrl: bool,
    /// Whether alt was held.
    pub alt: bool,
}

impl Key {
    /// A key without modifiers.
    pub fn plain(code: KeyCode) -> Self {
        Self {
            code,
            ctrl: false,
            alt: false,
        }
    }

    /// The character it enters into a text, if any.
    pub fn text(self) -> Option<char> {
        match self.code {
            KeyCode::Char(c) if !self.ctrl && !self.alt => Some(c),
            _ => None,
        }
    }
}

const NAMES: [(&str, KeyCode); 15] = [
    ("enter", KeyCode::Enter),
    ("esc", KeyCode::Esc),
    ("tab", KeyCode::Tab),
    ("backtab", KeyCode::BackTab),
    ("backspace", KeyCode::Backspace),
    ("delete", KeyCode::Delete),
    ("space", KeyCode::Char(' ')),
    ("up", KeyCode::Up),
    ("down", KeyCode::Down),
    ("left", KeyCode::Left),
    ("right", KeyCode::Right),
    ("home", KeyCode::Home),
    ("end", KeyCode::End),
    ("pageup", KeyCode::PageUp),
    ("pagedown", KeyCode::PageDown),
];

/// A key's name was not understood.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("no key is called {0:?}")]
pub struct KeyNameError(String);

/// `f1` to `f12`.
fn function_key(name: &str) -> Option<KeyCode> {
    let number = name.strip_prefix('f')?.parse().ok()?;
    (1..=12).contains(&number).then_some(KeyCode::F(number))
}

impl FromStr for Key {
    type Err = KeyNameError;

    fn from_str(name: &str) -> Result<Self, KeyNameError> {
        let mut rest = name;
        let (mut ctrl, mut alt) = (false, false);
        loop {
            if let Some(tail) = rest.strip_prefix("ctrl-") {
                (rest, ctrl) = (tail, true);
            } else if let Some(tail) = rest.strip_prefix("alt-") {
                (rest, alt) = (tail, true);
            } else {
                break;
            }
        }
        let mut chars = rest.chars();
        let code = match (chars.next(), chars.next()) {
            (Some(c), None) => KeyCode::Char(c),
            _ => NAMES
                .iter()
                .find(|(known, _)| *known == rest)
                .map(|(_, code)| *code)
                .or_else(|| function_key(rest))
                .ok_or_else(|| KeyNameError(name.to_owned()))?,
        };
        Ok(Self { code, ctrl, alt })
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.ctrl {
            f.write_str("ctrl-")?;
        }
        if self.alt {
            f.write_str("alt-")?;
        }
        match self.code {
            KeyCode::Up => f.write_str("↑"),
            KeyCode::Down => f.write_str("↓"),
            KeyCode::Left => f.write_str("←"),
            KeyCode::Right => f.write_str("→"),
            code => match (NAMES.iter().find(|(_, known)| *known == code), code) {
                (Some((name, _)), _) => f.write_str(name),
                (None, KeyCode::Char(c)) => write!(f, "{c}"),
                (None, KeyCode::F(number)) => write!(f, "f{number}"),
                (None, other) => write!(f, "{other}"),
            },
        }
    }
}

/// Keys pressed in a row, by their names with spaces between: `g g`, `ctrl-x s`.
pub fn parse_chord(names: &str) -> Result<Vec<Key>, KeyNameError> {
    let keys: Vec<Key> = names
        .split_ascii_whitespace()
        .map(str::parse)
        .collect::<Result<_, _>>()?;
    if keys.is_empty() {
        return Err(KeyNameError(names.to_owned()));
    }
    Ok(keys)
}

/// Keys pressed in a row as they are written.
pub fn chord_name(keys: &[Key]) -> String {
    let names: Vec<_> = keys.iter().map(Key::to_string).collect();
    names.join(" ")
}
