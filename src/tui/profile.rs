//! A run's profile as it is read: what was changed since the run began, what differs from another
//! run's.

use std::collections::BTreeMap;

use crate::event::F;

/// All of a profile, and before it what operators changed while the run was under way: the value
/// it began with, and the one in force.
pub fn page_lines(profile: &str, changed: &BTreeMap<String, F>) -> Vec<String> {
    let began = flat(profile).unwrap_or_default();
    let mut lines = Vec::new();
    if !changed.is_empty() {
        lines.push("# Changed while it runs".to_owned());
    }
    for (key, value) in changed {
        let before = value_of(&began, key).unwrap_or("not set");
        // Switches are told as numbers.
        let now = match before {
            "true" | "false" => (value.0 != 0.0).to_string(),
            _ => value.0.to_string(),
        };
        lines.push(format!("{key} = {before} -> {now}"));
    }
    if !changed.is_empty() {
        lines.extend([String::new(), "# As it began".to_owned()]);
    }
    lines.extend(profile.lines().map(str::to_owned));
    lines
}

/// Keys whose values differ: the other run's value, then this run's.
pub fn differences(own: &str, other: &str) -> Result<Vec<String>, String> {
    let (own, other) = (flat(own)?, flat(other)?);
    let mut keys: Vec<&String> = own.iter().chain(&other).map(|(key, _)| key).collect();
    keys.sort();
    keys.dedup();
    let mut lines = Vec::new();
    for key in keys {
        let (mine, theirs) = (value_of(&own, key), value_of(&other, key));
        if mine == theirs {
            continue;
        }
        lines.push(key.clone());
        lines.push(format!("  - {}", theirs.unwrap_or("not set")));
        lines.push(format!("  + {}", mine.unwrap_or("not set")));
    }
    if lines.is_empty() {
        lines.push("Both profiles are the same.".to_owned());
    }
    Ok(lines)
}

/// Keys with their values, nested ones joined with dots.
fn flat(text: &str) -> Result<Vec<(String, String)>, String> {
    let table: toml::Table = text
        .parse()
        .map_err(|error: toml::de::Error| error.to_string())?;
    let mut flat = Vec::new();
    flatten("", &toml::Value::Table(table), &mut flat);
    Ok(flat)
}

fn value_of<'a>(all: &'a [(String, String)], key: &str) -> Option<&'a str> {
    let found = all.iter().find(|(known, _)| known == key);
    found.map(|(_, value)| value.as_str())
}

fn flatten(prefix: &str, value: &toml::Value, flat: &mut Vec<(String, String)>) {
    match value {
        toml::Value::Table(table) => {
            for (key, value) in table {
                let dot = if prefix.is_empty() { "" } else { "." };
                flatten(&format!("{prefix}{dot}{key}"), value, flat);
            }
        }
        value => flat.push((prefix.to_owned(), value.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{differences, page_lines};
    use crate::event::F;

    #[test]
    fn profiles_differ_by_key() {
        let own = "[grpo]\nclip_low = 0.2\nepochs = 1\n[replay]\nenabled = true\n";
        let other = "[grpo]\nclip_low = 0.3\nepochs = 1\n[eval]\nevery = 5\n";
        let lines = differences(own, other).unwrap();
        let expected = [
            "eval.every",
            "  - 5",
            "  + not set",
            "grpo.clip_low",
            "  - 0.3",
            "  + 0.2",
            "replay.enabled",
            "  - not set",
            "  + true",
        ];
        assert_eq!(lines, expected);
        assert_eq!(
            differences(own, own).unwrap(),
            ["Both profiles are the same."]
        );
        assert!(differences(own, "[").is_err());
    }

    #[test]
    fn what_was_changed_stands_before_the_profile() {
        let own = "[trainer]\nlr = 3e-4\non = true\n";
        let none = BTreeMap::new();
        assert_eq!(
            page_lines(own, &none),
            ["[trainer]", "lr = 3e-4", "on = true"]
        );
        let changed = [("trainer.lr", 1e-4), ("trainer.on", 0.0), ("kept", 0.9)];
        let changed = changed.map(|(key, value)| (key.to_owned(), F(value)));
        let expected = [
            "# Changed while it runs",
            "kept = not set -> 0.9",
            "trainer.lr = 0.0003 -> 0.0001",
            "trainer.on = true -> false",
            "",
            "# As it began",
            "[trainer]",
            "lr = 3e-4",
            "on = true",
        ];
        assert_eq!(page_lines(own, &changed.into()), expected);
    }
}
