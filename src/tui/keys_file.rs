//! The operator's own keys: `$XDG_CONFIG_HOME/arpo/keys.toml`, one line a chord.
//!
//! ```toml
//! "ctrl-r" = "resume"
//! "x b" = "pause batch"
//! "s" = "none"
//! ```
//!
//! A chord takes the place of the default with the same keys where its command holds; `none`
//! frees it everywhere. All that is wrong is told at once, before the console starts.

use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use toml::de::{DeTable, DeValue};

use crate::tui::commands::{command_named, nearest_command};
use crate::tui::keymap::{Binding, Keymap};
use crate::tui::keys::{Key, chord_name, parse_chord};

/// Frees a chord of its default.
const NONE: &str = "none";

/// What is wrong with a file of keys, one line each.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub struct KeysError(pub Vec<String>);

/// Where the file lies, given the environment.
pub fn keys_path(lookup: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let set = |name: &str| lookup(name).filter(|value| !value.is_empty());
    let config = match set("XDG_CONFIG_HOME") {
        Some(folder) => PathBuf::from(folder),
        None => Path::new(&set("HOME")?).join(".config"),
    };
    Some(config.join("arpo/keys.toml"))
}

/// The default keys, changed by the operator's file if there is one.
pub fn load_keymap() -> Result<Keymap, KeysError> {
    let Some(path) = keys_path(|name| std::env::var(name).ok()) else {
        return Ok(Keymap::default());
    };
    match fs::read_to_string(&path) {
        Ok(text) => read_keymap(&text, &path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Keymap::default()),
        Err(error) => Err(KeysError(vec![format!(
            "cannot read {}: {error}",
            path.display()
        )])),
    }
}

/// The default keys, changed by a file's text; `path` is named in errors.
pub fn read_keymap(text: &str, path: &Path) -> Result<Keymap, KeysError> {
    let mut reader = Reader {
        text,
        path,
        errors: Vec::new(),
    };
    let entries = reader.entries();
    let mut keymap = Keymap::default();
    for entry in entries.iter().filter(|entry| entry.line == NONE) {
        keymap.unbind(&entry.chord);
    }
    let mut bound: Vec<(&Entry, Binding)> = Vec::new();
    for entry in entries.iter().filter(|entry| entry.line != NONE) {
        if let Some(binding) = reader.binding(entry) {
            bound.push((entry, binding));
        }
    }
    for (place, (entry, binding)) in bound.iter().enumerate() {
        let same = |(_, other): &&(&Entry, Binding)| {
            other.chord == binding.chord && other.scope == binding.scope
        };
        if bound[..place].iter().any(|other| same(&other)) {
            reader.complain(&entry.at, &format!("{} is bound twice", entry.name()));
        }
        keymap.bind(binding.clone());
    }
    for (entry, binding) in &bound {
        for other in keymap.overlaps(binding) {
            let (name, command) = (chord_name(&other.chord), other.row.name);
            let reason = format!(
                "{} and {name} ({command}) begin alike, so one of them could never be pressed; \
                 free it by \"{name}\" = \"none\", or choose other keys",
                entry.name()
            );
            reader.complain(&entry.at, &reason);
        }
    }
    if reader.errors.is_empty() {
        Ok(keymap)
    } else {
        Err(KeysError(reader.errors))
    }
}

/// One line of the file.
struct Entry {
    chord: Vec<Key>,
    /// The command and its argument.
    line: String,
    at: Range<usize>,
}

impl Entry {
    fn name(&self) -> String {
        chord_name(&self.chord)
    }
}

struct Reader<'a> {
    text: &'a str,
    path: &'a Path,
    errors: Vec<String>,
}

impl Reader<'_> {
    fn complain(&mut self, at: &Range<usize>, reason: &str) {
        let before = self.text.get(..at.start).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        let path = self.path.display();
        self.errors.push(format!("{path}:{line}: {reason}"));
    }

    fn entries(&mut self) -> Vec<Entry> {
        let table = match DeTable::parse(self.text) {
            Ok(table) => table.into_inner(),
            Err(error) => {
                let at = error.span().unwrap_or(0..0);
                self.complain(&at, error.message());
                return Vec::new();
            }
        };
        let mut entries = Vec::new();
        for (key, value) in table {
            let at = key.span();
            let chord = match parse_chord(key.get_ref()) {
                Ok(chord) => chord,
                Err(error) => {
                    let reason = format!("{error}; names are as in \"ctrl-r\", \"g g\", \"enter\"");
                    self.complain(&at, &reason);
                    continue;
                }
            };
            let DeValue::String(line) = value.get_ref() else {
                let reason = format!("{} wants a command in quotes", chord_name(&chord));
                self.complain(&at, &reason);
                continue;
            };
            entries.push(Entry {
                chord,
                line: line.trim().to_owned(),
                at,
            });
        }
        // The parser sorts by key; errors read better in the order of the file.
        entries.sort_by_key(|entry| entry.at.start);
        entries
    }

    fn binding(&mut self, entry: &Entry) -> Option<Binding> {
        let (name, argument) = entry.line.split_once(' ').unwrap_or((&entry.line, ""));
        let Some(row) = command_named(name) else {
            let nearest = nearest_command(name);
            let reason = format!("no command is called {name}; did you mean {nearest}?");
            self.complain(&entry.at, &reason);
            return None;
        };
        if !argument.is_empty() && row.argument.is_empty() {
            self.complain(&entry.at, &format!("{name} takes no argument"));
            return None;
        }
        Some(Binding {
            chord: entry.chord.clone(),
            scope: row.scope,
            row,
            argument: argument.trim().to_owned(),
            is_own: true,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{keys_path, read_keymap};
    use crate::tui::app::Screen;
    use crate::tui::commands::{Scope, command_named};
    use crate::tui::keymap::{Keymap, Meaning};
    use crate::tui::keys::parse_chord;

    const FLEET: [Scope; 2] = [Scope::On(Screen::Fleet), Scope::Global];

    fn read(text: &str) -> Result<Keymap, String> {
        read_keymap(text, Path::new("keys.toml")).map_err(|error| error.to_string())
    }

    fn meaning(keymap: &Keymap, chord: &str) -> String {
        match keymap.meaning(&parse_chord(chord).unwrap(), &FLEET) {
            Meaning::Command(binding) => format!("{} {}", binding.row.name, binding.argument)
                .trim()
                .to_owned(),
            Meaning::Prefix => "…".to_owned(),
            Meaning::Nothing => String::new(),
        }
    }

    #[test]
    fn own_keys_take_the_place_of_defaults() {
        let text = "# mine\n\"ctrl-r\" = \"resume\"\n\"s b\" = \"pause batch\"\n\"s\" = \"none\"\n";
        let keymap = read(text).unwrap();
        assert_eq!(meaning(&keymap, "ctrl-r"), "resume");
        assert_eq!(meaning(&keymap, "s"), "…");
        assert_eq!(meaning(&keymap, "s b"), "pause batch");
        assert_eq!(meaning(&keymap, "p"), "pause");
        // The own key is the one that is shown.
        let resume = command_named("resume").unwrap();
        assert_eq!(keymap.keys_of(resume), ["ctrl-r", "r"]);
        // A default that lost its key is told.
        let keymap = read("p = \"resume\"").unwrap();
        assert_eq!(meaning(&keymap, "p"), "resume");
        assert_eq!(keymap.conflicts(), ["p is resume, not pause as by default"]);
        // One that holds on a screen only lets the other screens be.
        let keymap = read("z = \"pause\"").unwrap();
        assert_eq!(meaning(&keymap, "z"), "layout");
        assert!(
            keymap
                .conflicts()
                .contains(&"z is pause, but layout on Fleet".to_owned())
        );
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        for (text, expected) in [
            (
                "\n\"ctrl-r\" = \"resum\"",
                "keys.toml:2: no command is called resum; did you mean resume?",
            ),
            (
                "\"hyper-x\" = \"resume\"",
                "keys.toml:1: no key is called \"hyper-x\"; names are as in \"ctrl-r\", \"g g\", \
                 \"enter\"",
            ),
            ("x = 3", "keys.toml:1: x wants a command in quotes"),
            ("x = \"help me\"", "keys.toml:1: help takes no argument"),
            (
                "space = \"help\"\n\" space\" = \"help\"",
                "keys.toml:2: space is bound twice",
            ),
        ] {
            assert_eq!(read(text).err().as_deref(), Some(expected), "{text}");
        }
        let error = read("g = \"help\"").err().unwrap();
        assert!(error.contains("g and g g (first) begin alike"), "{error}");
        let error = read("a = \"x\"\nb = \"y\"").err().unwrap();
        assert_eq!(error.lines().count(), 2, "{error}");
        let error = read("a = \n").err().unwrap();
        assert!(error.starts_with("keys.toml:1: "), "{error}");
    }

    #[test]
    fn the_file_lies_where_the_environment_says() {
        let path = |vars: &[(&str, &str)]| {
            let found = keys_path(|name| {
                let known = vars.iter().find(|(key, _)| *key == name);
                known.map(|(_, value)| (*value).to_owned())
            });
            found.map(|path| path.display().to_string())
        };
        let own = path(&[("XDG_CONFIG_HOME", "/c"), ("HOME", "/h")]);
        assert_eq!(own.as_deref(), Some("/c/arpo/keys.toml"));
        let home = path(&[("XDG_CONFIG_HOME", ""), ("HOME", "/h")]);
        assert_eq!(home.as_deref(), Some("/h/.config/arpo/keys.toml"));
        assert_eq!(path(&[]), None);
    }
}
