//! A form: text fields, a box to tick, a button that sends it. Any change after sending makes
//! it unsent again.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{Input, push_typed};
use crate::env::simulated::widget::{CELL_PX, CENTER_PX, Look, Part, Widget, cells};

/// One text field.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Field {
    /// Its name.
    pub label: String,
    /// What has been entered.
    pub text: String,
}

/// The form's state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Form {
    /// The fields from the top.
    pub fields: Vec<Field>,
    /// Whether the box is ticked.
    pub agree: bool,
    /// Whether the form has been sent as it is.
    #[serde(default)]
    pub sent: bool,
    /// Which field has the keyboard, and whether all of its text is selected.
    #[serde(default)]
    pub focus: Option<(usize, bool)>,
}

impl Form {
    /// A form with empty fields of these names.
    pub fn new(labels: &[&str]) -> Self {
        let fields = labels
            .iter()
            .map(|label| Field {
                label: (*label).to_owned(),
                text: String::new(),
            })
            .collect();
        Self {
            fields,
            agree: false,
            sent: false,
            focus: None,
        }
    }

    pub(super) fn size(&self) -> (i32, i32) {
        (6, self.fields.len() as i32 + 1)
    }

    pub(super) fn title(&self) -> String {
        if self.sent {
            "Form - sent".into()
        } else {
            "Form".into()
        }
    }

    pub(super) fn widgets(&self, origin: (i32, i32)) -> Vec<Widget> {
        let mut widgets = Vec::new();
        for (i, field) in self.fields.iter().enumerate() {
            let focus = self.focus.filter(|(focused, _)| *focused == i);
            widgets.push(Widget::target(
                cells(origin, 0, i as i32, 6),
                Part::Item(i),
                format!("press {}", field.label),
                Look::Field {
                    label: field.label.clone(),
                    text: field.text.clone(),
                    focused: focus.is_some(),
                    selected: focus.is_some_and(|(_, all)| all),
                },
            ));
        }
        let last = self.fields.len() as i32;
        widgets.push(Widget::target(
            cells(origin, 0, last, 3),
            Part::Ok,
            "tick Agree".into(),
            Look::Check {
                label: "Agree".into(),
                on: self.agree,
            },
        ));
        let rect = cells(origin, 4, last, 2);
        widgets.push(
            Widget::target(
                rect,
                Part::Button(0),
                "press Send".into(),
                Look::Button {
                    text: "Send".into(),
                    accent: true,
                },
            )
            .aimed_at(rect.x - 1 + CELL_PX, rect.y - 1 + CENTER_PX),
        );
        widgets
    }

    pub(super) fn handle(&mut self, input: &Input, clipboard: &mut String) {
        match input {
            Input::Click(Part::Item(i)) | Input::Double(Part::Item(i)) => self.focus_on(*i),
            Input::Click(Part::Ok) => {
                self.agree = !self.agree;
                self.sent = false;
                self.focus = None;
            }
            Input::Click(Part::Button(_)) | Input::Double(Part::Button(_)) => {
                self.sent = true;
                self.focus = None;
            }
            Input::Click(_) => self.focus = None,
            Input::Text(text) => {
                self.edit(|field| push_typed(field, text));
                if text.ends_with('\n') {
                    self.sent = true;
                }
            }
            Input::Keys(keys) => self.keys(keys, clipboard),
            Input::Double(_) | Input::Right(_) | Input::Drag(_, _) | Input::Scroll(_) => {}
        }
    }

    pub(super) fn state(&self) -> Value {
        let fields: Map<String, Value> = self
            .fields
            .iter()
            .map(|field| (field.label.clone(), Value::from(field.text.clone())))
            .collect();
        json!({ "fields": fields, "agree": self.agree, "sent": self.sent })
    }

    pub(super) fn facts(&self) -> Vec<(String, String)> {
        let tick = if self.agree { "on" } else { "off" };
        let mut facts = vec![("Agree".to_owned(), tick.to_owned())];
        for field in &self.fields {
            let state = if field.text.is_empty() {
                "empty"
            } else {
                "full"
            };
            facts.push((field.label.clone(), state.to_owned()));
        }
        facts
    }

    fn focus_on(&mut self, i: usize) {
        if let Some(field) = self.fields.get(i) {
            self.focus = Some((i, !field.text.is_empty()));
        }
    }

    fn keys(&mut self, keys: &str, clipboard: &mut String) {
        match keys {
            "tab" => {
                let next = self.focus.map_or(0, |(i, _)| i + 1);
                self.focus_on(next % self.fields.len().max(1));
            }
            "enter" => self.sent = true,
            "esc" => self.focus = None,
            "ctrl+a" => {
                if let Some((_, all)) = &mut self.focus {
                    *all = true;
                }
            }
            "ctrl+c" | "ctrl+x" => {
                if let Some((i, true)) = self.focus
                    && let Some(field) = self.fields.get(i)
                {
                    clipboard.clone_from(&field.text);
                    if keys == "ctrl+x" {
                        self.edit(|_| {});
                    }
                }
            }
            "ctrl+v" => self.edit(|field| push_typed(field, clipboard)),
            "backspace" | "delete" => {
                let whole = self.focus.is_some_and(|(_, all)| all);
                self.edit(|field| {
                    if !whole {
                        field.pop();
                    }
                });
            }
            _ => {}
        }
    }

    /// Changes the focused field, whose text goes first if all of it is selected.
    fn edit(&mut self, by: impl FnOnce(&mut String)) {
        let Some((i, all)) = &mut self.focus else {
            return;
        };
        let Some(field) = self.fields.get_mut(*i) else {
            return;
        };
        if std::mem::take(all) {
            field.text.clear();
        }
        by(&mut field.text);
        self.sent = false;
    }
}
