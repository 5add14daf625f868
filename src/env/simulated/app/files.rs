//! File manager: a list of files in two columns, a bin, deletion with a question, renaming.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{Input, push_typed};
use crate::env::simulated::canvas::Rect;
use crate::env::simulated::icons::Icon;
use crate::env::simulated::widget::{CELL_PX, CENTER_PX, Look, Part, Widget, cells};

/// Rows of the list.
const ROWS: usize = 4;
/// Steps kept for undo.
const UNDO_DEPTH: usize = 32;

/// One file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// Its picture.
    pub icon: Icon,
    /// Whether it lies in the bin.
    #[serde(default)]
    pub binned: bool,
}

/// The question before a deletion.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// Which file is to go.
    pub entry: usize,
}

/// The file manager's state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Files {
    /// All files, those in the bin included.
    pub entries: Vec<Entry>,
    /// Whether OK stands left of Cancel.
    pub ok_first: bool,
    /// The selected file.
    #[serde(default)]
    pub selected: Option<usize>,
    /// The name being typed for the selected file, and whether all of it is selected.
    #[serde(default)]
    pub editing: Option<(String, bool)>,
    /// The question on the screen.
    #[serde(default)]
    pub question: Option<Question>,
    /// Name of the file opened last.
    #[serde(default)]
    pub opened: Option<String>,
    /// Earlier lists, the latest last.
    #[serde(default)]
    pub undo: Vec<Vec<Entry>>,
}

impl Files {
    /// Columns and rows of its content.
    pub(super) const SIZE: (i32, i32) = (6, ROWS as i32);

    /// A file manager that shows these files, nothing selected.
    pub fn new(entries: Vec<Entry>, ok_first: bool) -> Self {
        Self {
            entries,
            ok_first,
            selected: None,
            editing: None,
            question: None,
            opened: None,
            undo: Vec::new(),
        }
    }

    /// Index of the file of this name that is not in the bin.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.entries
            .iter()
            .position(|entry| entry.name == name && !entry.binned)
    }

    /// Puts the question before the deletion of a file on the screen.
    pub fn ask_about(&mut self, entry: usize) {
        self.selected = Some(entry);
        self.question = Some(Question { entry });
    }

    pub(super) fn title(&self) -> String {
        match &self.opened {
            Some(name) => format!("Files: {name} open"),
            None => "Files".into(),
        }
    }

    pub(super) fn widgets(&self, origin: (i32, i32)) -> Vec<Widget> {
        let mut widgets = Vec::new();
        let shown = self.entries.iter().enumerate().filter(|(_, e)| !e.binned);
        for (place, (i, entry)) in shown.take(2 * ROWS - 1).enumerate() {
            let rect = cells(origin, (place % 2) as i32 * 3, (place / 2) as i32, 3);
            let editing = match &self.editing {
                Some((name, _)) if self.selected == Some(i) => Some(name.clone()),
                Some(_) | None => None,
            };
            let look = Look::Entry {
                icon: entry.icon,
                selected: self.selected == Some(i),
                editing: editing.is_some(),
                label: editing.unwrap_or_else(|| entry.name.clone()),
            };
            let phrase = format!("select {}", entry.name);
            widgets.push(entry_widget(rect, Part::Item(i), phrase, look));
        }
        let bin = cells(origin, 3, ROWS as i32 - 1, 3);
        let look = Look::Entry {
            icon: Icon::Bin,
            label: "Bin".into(),
            selected: false,
            editing: false,
        };
        widgets.push(entry_widget(bin, Part::Bin, "press Bin".into(), look));
        if self.question.is_some() {
            self.add_question(origin, &mut widgets);
        }
        widgets
    }

    pub(super) fn handle(&mut self, input: &Input, clipboard: &mut String) {
        if let Some(question) = self.question.clone() {
            self.answer(input, &question);
            return;
        }
        if self.editing.is_some() {
            self.edit_name(input, clipboard);
            return;
        }
        match input {
            Input::Click(Part::Item(i)) | Input::Right(Part::Item(i)) => {
                self.selected = Some(*i).filter(|i| *i < self.entries.len());
            }
            Input::Double(Part::Item(i)) => {
                self.selected = Some(*i).filter(|i| *i < self.entries.len());
                self.opened = self.entries.get(*i).map(|entry| entry.name.clone());
            }
            Input::Drag(Part::Item(i), Part::Bin) => {
                let i = *i;
                self.change(|entries| {
                    if let Some(entry) = entries.get_mut(i) {
                        entry.binned = true;
                    }
                });
                self.selected = None;
            }
            Input::Click(Part::Blank | Part::Bin) => self.selected = None,
            Input::Keys(keys) => self.keys(keys),
            Input::Click(_)
            | Input::Double(_)
            | Input::Right(_)
            | Input::Drag(_, _)
            | Input::Text(_)
            | Input::Scroll(_) => {}
        }
    }

    pub(super) fn state(&self) -> Value {
        let entries: Map<String, Value> = self
            .entries
            .iter()
            .map(|entry| {
                let place = if entry.binned { "bin" } else { "here" };
                (entry.name.clone(), Value::from(place))
            })
            .collect();
        json!({ "entries": entries, "opened": self.opened })
    }

    pub(super) fn facts(&self) -> Vec<(String, String)> {
        if self.question.is_some() {
            return Vec::new();
        }
        let shown = self.entries.iter().filter(|entry| !entry.binned);
        shown
            .map(|entry| (entry.name.clone(), "here".to_owned()))
            .collect()
    }

    fn keys(&mut self, keys: &str) {
        if keys == "menu+sort" {
            self.change(|entries| entries.sort_by(|a, b| a.name.cmp(&b.name)));
            self.selected = None;
            return;
        }
        let Some(selected) = self.selected else {
            if keys == "ctrl+z" {
                self.step_back();
            }
            return;
        };
        match keys {
            "delete" => self.ask_about(selected),
            "f2" => {
                self.editing = self
                    .entries
                    .get(selected)
                    .map(|entry| (entry.name.clone(), true));
            }
            "enter" => {
                self.opened = self.entries.get(selected).map(|entry| entry.name.clone());
            }
            "esc" => self.selected = None,
            "ctrl+z" => self.step_back(),
            _ => {}
        }
    }

    fn answer(&mut self, input: &Input, question: &Question) {
        let yes = match input {
            Input::Click(Part::Ok) | Input::Double(Part::Ok) => true,
            Input::Click(Part::Cancel) | Input::Double(Part::Cancel) => false,
            Input::Keys(keys) if keys == "enter" => true,
            Input::Keys(keys) if keys == "esc" => false,
            Input::Click(_)
            | Input::Double(_)
            | Input::Right(_)
            | Input::Drag(_, _)
            | Input::Keys(_)
            | Input::Text(_)
            | Input::Scroll(_) => return,
        };
        self.question = None;
        if yes {
            let gone = question.entry;
            self.change(|entries| {
                if gone < entries.len() {
                    entries.remove(gone);
                }
            });
            self.selected = None;
        }
    }

    fn edit_name(&mut self, input: &Input, clipboard: &mut String) {
        let Some((name, all)) = self.editing.as_mut() else {
            return;
        };
        match input {
            Input::Text(text) => {
                if std::mem::take(all) {
                    name.clear();
                }
                push_typed(name, text);
                if text.ends_with('\n') {
                    self.rename();
                }
            }
            Input::Keys(keys) => match keys.as_str() {
                "enter" => self.rename(),
                "esc" => self.editing = None,
                "ctrl+a" => *all = true,
                "ctrl+c" => clipboard.clone_from(name),
                "ctrl+v" => {
                    if std::mem::take(all) {
                        name.clear();
                    }
                    push_typed(name, clipboard);
                }
                "backspace" | "delete" => {
                    if std::mem::take(all) {
                        name.clear();
                    } else {
                        name.pop();
                    }
                }
                _ => {}
            },
            Input::Click(Part::Item(i)) if self.selected == Some(*i) => *all = false,
            Input::Click(_) | Input::Double(_) | Input::Right(_) | Input::Drag(_, _) => {
                self.editing = None;
            }
            Input::Scroll(_) => {}
        }
    }

    /// Gives the edited name to its file, unless it is empty or taken.
    fn rename(&mut self) {
        let Some((name, _)) = self.editing.take() else {
            return;
        };
        let taken = self.entries.iter().any(|entry| entry.name == name);
        let Some(selected) = self.selected else {
            return;
        };
        if !name.is_empty() && !taken {
            self.change(|entries| {
                if let Some(entry) = entries.get_mut(selected) {
                    entry.name = name;
                }
            });
        }
    }

    fn change(&mut self, by: impl FnOnce(&mut Vec<Entry>)) {
        if self.undo.len() == UNDO_DEPTH {
            self.undo.remove(0);
        }
        self.undo.push(self.entries.clone());
        by(&mut self.entries);
    }

    fn step_back(&mut self) {
        if let Some(entries) = self.undo.pop() {
            self.entries = entries;
            self.selected = None;
        }
    }

    fn add_question(&self, origin: (i32, i32), widgets: &mut Vec<Widget>) {
        for widget in widgets.iter_mut() {
            widget.target = None;
        }
        let name = self
            .question
            .as_ref()
            .and_then(|question| self.entries.get(question.entry))
            .map_or("", |entry| entry.name.as_str());
        let mut panel = cells(origin, 0, 1, 6);
        panel.h = 2 * CELL_PX - 4;
        widgets.push(Widget::passive(panel, Look::Question));
        widgets.push(Widget::passive(
            cells(origin, 0, 1, 6),
            Look::Text {
                text: format!("Delete {name}?"),
            },
        ));
        let (ok, cancel) = if self.ok_first { (1, 3) } else { (3, 1) };
        for (column, part, text) in [(ok, Part::Ok, "OK"), (cancel, Part::Cancel, "Cancel")] {
            let rect = cells(origin, column, 2, 2);
            let look = Look::Button {
                text: text.into(),
                accent: part == Part::Ok,
            };
            widgets.push(
                Widget::target(rect, part, format!("press {text}"), look)
                    .aimed_at(rect.x - 1 + CELL_PX, rect.y - 1 + CENTER_PX),
            );
        }
    }
}

fn entry_widget(rect: Rect, part: Part, phrase: String, look: Look) -> Widget {
    Widget::target(rect, part, phrase, look)
        .aimed_at(rect.x - 1 + CELL_PX + CENTER_PX, rect.y - 1 + CENTER_PX)
}
