//! Terminal: a few commands over one folder of names.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Input, push_typed};
use crate::env::simulated::widget::{Look, Widget, cells};

/// Lines shown, the prompt included.
const ROWS: usize = 5;
/// Lines kept.
const KEPT_LINES: usize = 50;

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A file.
    File,
    /// A folder.
    Folder,
}

/// The terminal's state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Terminal {
    /// What the folder holds.
    pub names: BTreeMap<String, Kind>,
    /// What has been typed at the prompt.
    #[serde(default)]
    pub prompt: String,
    /// What has been printed.
    #[serde(default)]
    pub lines: Vec<String>,
}

impl Terminal {
    /// Columns and rows of its content.
    pub(super) const SIZE: (i32, i32) = (9, ROWS as i32);

    pub(super) fn widgets(&self, origin: (i32, i32)) -> Vec<Widget> {
        let skipped = self.lines.len().saturating_sub(ROWS - 1);
        let prompt = format!("$ {}_", self.prompt);
        let shown = self.lines[skipped..].iter().chain([&prompt]);
        let line = |(row, text): (usize, &String)| {
            let text = text.clone();
            Widget::passive(cells(origin, 0, row as i32, 9), Look::Text { text })
        };
        shown.enumerate().map(line).collect()
    }

    pub(super) fn handle(&mut self, input: &Input, clipboard: &str) {
        match input {
            Input::Text(text) => {
                for (i, line) in text.split('\n').enumerate() {
                    if 0 < i {
                        self.enter();
                    }
                    push_typed(&mut self.prompt, line);
                }
            }
            Input::Keys(keys) => match keys.as_str() {
                "enter" => self.enter(),
                "backspace" => {
                    self.prompt.pop();
                }
                "ctrl+c" | "ctrl+u" | "esc" => self.prompt.clear(),
                "ctrl+l" => self.lines.clear(),
                "ctrl+v" | "ctrl+shift+v" => push_typed(&mut self.prompt, clipboard),
                _ => {}
            },
            Input::Click(_)
            | Input::Double(_)
            | Input::Right(_)
            | Input::Drag(_, _)
            | Input::Scroll(_) => {}
        }
    }

    pub(super) fn state(&self) -> Value {
        json!({ "names": self.names, "count": self.names.len() })
    }

    fn enter(&mut self) {
        let command = std::mem::take(&mut self.prompt);
        self.print(format!("$ {command}"));
        let words: Vec<&str> = command.split_whitespace().collect();
        if let Some(answer) = self.execute(&words) {
            self.print(answer);
        }
    }

    fn print(&mut self, line: String) {
        if self.lines.len() == KEPT_LINES {
            self.lines.remove(0);
        }
        self.lines.push(line);
    }

    /// Carries out a command; says what it prints.
    fn execute(&mut self, words: &[&str]) -> Option<String> {
        match words {
            [] => None,
            ["ls"] => {
                let names: Vec<&str> = self.names.keys().map(String::as_str).collect();
                Some(names.join("  "))
            }
            ["clear"] => {
                self.lines.clear();
                None
            }
            ["echo", rest @ ..] => Some(rest.join(" ")),
            ["mkdir", name] => self.create(name, Kind::Folder),
            ["touch", name] => self.create(name, Kind::File),
            ["rm" | "rmdir", name] | ["rm", "-r", name] => {
                let gone = self.names.remove(*name);
                gone.is_none().then(|| format!("no such name: {name}"))
            }
            ["mv", from, to] => match self.names.remove(*from) {
                Some(kind) => {
                    self.names.insert((*to).to_owned(), kind);
                    None
                }
                None => Some(format!("no such name: {from}")),
            },
            [command, ..] => Some(format!("unknown command: {command}")),
        }
    }

    fn create(&mut self, name: &str, kind: Kind) -> Option<String> {
        if self.names.contains_key(name) {
            return Some(format!("exists: {name}"));
        }
        self.names.insert(name.to_owned(), kind);
        None
    }
}
