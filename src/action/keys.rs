//! Names of keys: one canonical name each, and what models call them.
//!
//! A key that prints a character of ASCII is named by it, letters in lower case; the others
//! are in the table. What no key types (other scripts) has no name here: it is text.

/// Canonical names of keys that print nothing, with what else they are called.
const NAMED: &[(&str, &[&str])] = &[
    (
        "ctrl",
        &[
            "control",
            "ctrlleft",
            "ctrlright",
            "ctrl_l",
            "ctrl_r",
            "leftctrl",
            "rightctrl",
        ],
    ),
    (
        "shift",
        &[
            "shiftleft",
            "shiftright",
            "shift_l",
            "shift_r",
            "leftshift",
            "rightshift",
        ],
    ),
    (
        "alt",
        &[
            "altleft", "altright", "alt_l", "alt_r", "leftalt", "rightalt", "option", "altgr",
        ],
    ),
    (
        "super",
        &[
            "win", "windows", "winleft", "winright", "meta", "cmd", "command", "super_l", "super_r",
        ],
    ),
    ("enter", &["return", "kp_enter", "numpadenter"]),
    ("esc", &["escape"]),
    ("tab", &[]),
    ("space", &["spacebar", "blank"]),
    ("backspace", &["back_space", "back"]),
    ("delete", &["del"]),
    ("insert", &["ins"]),
    ("home", &[]),
    ("end", &[]),
    ("pageup", &["page_up", "pgup", "prior"]),
    ("pagedown", &["page_down", "pgdn", "pgdown", "next"]),
    ("up", &["arrowup", "arrow_up", "uparrow", "up_arrow"]),
    (
        "down",
        &["arrowdown", "arrow_down", "downarrow", "down_arrow"],
    ),
    (
        "left",
        &["arrowleft", "arrow_left", "leftarrow", "left_arrow"],
    ),
    (
        "right",
        &["arrowright", "arrow_right", "rightarrow", "right_arrow"],
    ),
    ("capslock", &["caps_lock", "caps"]),
    ("numlock", &["num_lock"]),
    ("scrolllock", &["scroll_lock"]),
    (
        "printscreen",
        &["print_screen", "prtsc", "prtscr", "prntscrn", "print"],
    ),
    ("pause", &["break"]),
    ("menu", &["apps", "contextmenu"]),
    ("volumeup", &["volume_up"]),
    ("volumedown", &["volume_down"]),
    ("volumemute", &["volume_mute", "mute"]),
    ("f1", &[]),
    ("f2", &[]),
    ("f3", &[]),
    ("f4", &[]),
    ("f5", &[]),
    ("f6", &[]),
    ("f7", &[]),
    ("f8", &[]),
    ("f9", &[]),
    ("f10", &[]),
    ("f11", &[]),
    ("f12", &[]),
];

/// Characters that models also call by name.
const SPELLED: &[(&str, &[&str])] = &[
    ("+", &["plus"]),
    ("-", &["minus", "hyphen", "dash"]),
    ("=", &["equal", "equals"]),
    (",", &["comma"]),
    (".", &["period", "dot"]),
    ("/", &["slash"]),
    ("\\", &["backslash"]),
    (";", &["semicolon"]),
    ("'", &["apostrophe", "quote"]),
    ("`", &["grave", "backtick", "backquote"]),
    ("[", &["bracketleft"]),
    ("]", &["bracketright"]),
    ("*", &["asterisk"]),
    ("_", &["underscore"]),
];

/// Every printable character of ASCII but the blank, capitals left out.
const PRINTED: &str = "!\"#$%&'()*+,-./0123456789:;<=>?@[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~";

/// The canonical name of a key by any of its names, whatever its case; `None` if no keyboard
/// has it.
pub fn canonical(name: &str) -> Option<&'static str> {
    let lower = match name {
        " " => "space".to_owned(),
        "\n" => "enter".to_owned(),
        "\t" => "tab".to_owned(),
        _ => name.trim().to_ascii_lowercase(),
    };
    if lower.len() == 1 {
        let at = PRINTED.find(&lower)?;
        return PRINTED.get(at..=at);
    }
    let (canonical, _) = NAMED
        .iter()
        .chain(SPELLED)
        .find(|(canonical, aliases)| *canonical == lower || aliases.contains(&lower.as_str()))?;
    Some(canonical)
}

/// Canonical names of the keys that print nothing.
pub fn all_named() -> impl Iterator<Item = &'static str> {
    NAMED.iter().map(|(canonical, _)| *canonical)
}

/// Whether a key is held while another is pressed; by canonical name.
pub fn is_modifier(name: &str) -> bool {
    matches!(name, "ctrl" | "shift" | "alt" | "super")
}

/// The names in a combination, separated by blanks, by `+`, or both. A plus that cannot
/// separate is the key: `ctrl +`, `ctrl++`. No part of `text` is left out.
pub(super) fn split(text: &str) -> Vec<&str> {
    let mut keys = Vec::new();
    let mut rest = text.trim();
    while let Some(first) = rest.chars().next() {
        let name_len = match first {
            '+' => 1,
            _ => rest
                .find(|c: char| c == '+' || c.is_whitespace())
                .unwrap_or(rest.len()),
        };
        keys.push(&rest[..name_len]);
        rest = rest[name_len..].trim_start();
        if let Some(behind) = rest.strip_prefix('+')
            && !behind.is_empty()
        {
            rest = behind.trim_start();
        }
    }
    keys
}

/// A combination as written in a reply: canonical names, blanks between.
pub(super) fn join(keys: &[String]) -> String {
    let spelled = keys.iter().map(|key| match key.as_str() {
        // A lone plus between two keys would read as a separator.
        "+" => "plus",
        " " => "space",
        other => other,
    });
    spelled.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::{NAMED, SPELLED};

    #[test]
    fn no_name_is_listed_twice() {
        let mut seen = HashSet::new();
        for (canonical, aliases) in NAMED.iter().chain(SPELLED) {
            for name in std::iter::once(canonical).chain(*aliases) {
                assert!(seen.insert(*name), "{name} is listed twice");
                assert_eq!(*name, name.to_ascii_lowercase(), "compared in lower case");
            }
        }
    }
}
