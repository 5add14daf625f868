//! A page with one choice out of several, in force once it is applied.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Input;
use crate::env::simulated::canvas::Color;
use crate::env::simulated::widget::{CELL_PX, CENTER_PX, Look, Part, Widget, cells};

/// One choice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Choice {
    /// Its name.
    pub label: String,
    /// The color it stands for.
    pub swatch: Color,
}

/// The state of the page.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Themes {
    /// The choices from the top.
    pub choices: Vec<Choice>,
    /// Which one is marked.
    pub chosen: usize,
    /// Which one is in force.
    pub applied: usize,
}

impl Themes {
    /// Name of the choice in force.
    pub fn applied_label(&self) -> &str {
        self.label(self.applied)
    }

    /// Name of the marked choice.
    pub fn chosen_label(&self) -> &str {
        self.label(self.chosen)
    }

    fn label(&self, i: usize) -> &str {
        self.choices.get(i).map_or("", |choice| &choice.label)
    }

    pub(super) fn size(&self) -> (i32, i32) {
        (6, self.choices.len() as i32)
    }

    pub(super) fn title(&self) -> String {
        format!("Theme: {}", self.applied_label())
    }

    pub(super) fn widgets(&self, origin: (i32, i32)) -> Vec<Widget> {
        let mut widgets = Vec::new();
        for (i, choice) in self.choices.iter().enumerate() {
            let rect = cells(origin, 0, i as i32, 4);
            widgets.push(
                Widget::target(
                    rect,
                    Part::Item(i),
                    format!("pick {}", choice.label),
                    Look::Choice {
                        label: choice.label.clone(),
                        swatch: choice.swatch,
                        chosen: i == self.chosen,
                    },
                )
                .aimed_at(rect.x - 1 + CELL_PX + CENTER_PX, rect.y - 1 + CENTER_PX),
            );
        }
        let last = (self.choices.len() as i32 - 1).max(0);
        let rect = cells(origin, 4, last, 2);
        widgets.push(
            Widget::target(
                rect,
                Part::Ok,
                "press Apply".into(),
                Look::Button {
                    text: "Apply".into(),
                    accent: true,
                },
            )
            .aimed_at(rect.x - 1 + CELL_PX, rect.y - 1 + CENTER_PX),
        );
        widgets
    }

    pub(super) fn handle(&mut self, input: &Input) {
        match input {
            Input::Click(Part::Item(i)) | Input::Double(Part::Item(i)) => {
                self.chosen = (*i).min(self.choices.len().saturating_sub(1));
            }
            Input::Click(Part::Ok) | Input::Double(Part::Ok) => self.applied = self.chosen,
            Input::Keys(keys) => match keys.as_str() {
                "enter" => self.applied = self.chosen,
                "down" => {
                    self.chosen = (self.chosen + 1).min(self.choices.len().saturating_sub(1));
                }
                "up" => self.chosen = self.chosen.saturating_sub(1),
                _ => {}
            },
            Input::Click(_)
            | Input::Double(_)
            | Input::Right(_)
            | Input::Drag(_, _)
            | Input::Text(_)
            | Input::Scroll(_) => {}
        }
    }

    pub(super) fn state(&self) -> Value {
        json!({ "applied": self.applied_label() })
    }

    pub(super) fn facts(&self) -> Vec<(String, String)> {
        let mut facts = vec![("theme".to_owned(), self.applied_label().to_owned())];
        for (i, choice) in self.choices.iter().enumerate() {
            let state = if i == self.chosen { "on" } else { "off" };
            facts.push((choice.label.clone(), state.to_owned()));
        }
        facts
    }
}
