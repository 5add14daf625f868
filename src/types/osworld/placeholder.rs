//! What OSWorld leaves open in the commands of its set-up steps: the desktop's size and password.
//!
//! Source: `SetupController._execute_setup`, which fills them in for `execute` and `command` and
//! nowhere else. Departs: a placeholder that does not exist is an error, not left as it stands.

use std::sync::LazyLock;

use regex::{Captures, Regex};

use crate::types::ScreenSize;

/// Upper case in braces. A shell's `${NAME}` and lower-case names of Python's texts are not.
static PLACEHOLDER: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(\$?)\{([A-Z][A-Z0-9_]*)\}").expect("the pattern is a regular expression")
});

/// All placeholders.
pub const PLACEHOLDER_NAMES: [&str; 5] = [
    "CLIENT_PASSWORD",
    "SCREEN_WIDTH",
    "SCREEN_HEIGHT",
    "SCREEN_WIDTH_HALF",
    "SCREEN_HEIGHT_HALF",
];

/// What a desktop has for them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlaceholderValues {
    /// For `sudo` on the desktop.
    pub client_password: String,
    /// Of its screen; halves are rounded down.
    pub screen: ScreenSize,
}

/// A text names a placeholder that does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no placeholder is called {{{name}}}; there are {}", PLACEHOLDER_NAMES.join(", "))]
pub struct UnknownPlaceholder {
    /// What it is called.
    pub name: String,
}

impl PlaceholderValues {
    fn value(&self, name: &str) -> Option<String> {
        let value = match name {
            "CLIENT_PASSWORD" => return Some(self.client_password.clone()),
            "SCREEN_WIDTH" => self.screen.width,
            "SCREEN_HEIGHT" => self.screen.height,
            "SCREEN_WIDTH_HALF" => self.screen.width / 2,
            "SCREEN_HEIGHT_HALF" => self.screen.height / 2,
            _ => return None,
        };
        Some(value.to_string())
    }
}

/// Fills in the placeholders of a text, once: a password that looks like one stays as it is.
pub fn resolve_placeholders(
    text: &str,
    values: &PlaceholderValues,
) -> Result<String, UnknownPlaceholder> {
    check_placeholders(text)?;
    let fill = |found: &Captures<'_>| {
        let value = found[1].is_empty().then(|| values.value(&found[2]));
        value.flatten().unwrap_or_else(|| found[0].to_owned())
    };
    Ok(PLACEHOLDER.replace_all(text, fill).into_owned())
}

/// Whether all placeholders of a text exist.
pub fn check_placeholders(text: &str) -> Result<(), UnknownPlaceholder> {
    let mut found = PLACEHOLDER.captures_iter(text);
    let unknown = found.find(|one| one[1].is_empty() && !PLACEHOLDER_NAMES.contains(&&one[2]));
    unknown.map_or(Ok(()), |one| {
        Err(UnknownPlaceholder {
            name: one[2].to_owned(),
        })
    })
}
