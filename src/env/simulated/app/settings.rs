//! Settings: rows that are switched on and off, scrolled if there are many.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Input;
use crate::env::simulated::canvas::Rect;
use crate::env::simulated::icons::Icon;
use crate::env::simulated::widget::{CELL_PX, CENTER_PX, Look, Part, Widget, cells};

/// Rows shown at once.
const SHOWN: usize = 4;
/// Rows that a notch of the wheel scrolls.
const NOTCH_ROWS: i32 = 2;

/// One switch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Toggle {
    /// Its name.
    pub label: String,
    /// Its picture.
    pub icon: Icon,
    /// Whether it is on.
    pub on: bool,
}

/// The state of the settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The switches from the top.
    pub rows: Vec<Toggle>,
    /// The first row shown.
    #[serde(default)]
    pub first: usize,
}

impl Settings {
    /// The rows on the screen, as indices.
    pub fn visible(&self) -> std::ops::Range<usize> {
        let first = self.first.min(self.last_first());
        first..(first + SHOWN).min(self.rows.len())
    }

    fn last_first(&self) -> usize {
        self.rows.len().saturating_sub(SHOWN)
    }

    pub(super) fn size(&self) -> (i32, i32) {
        (6, SHOWN.min(self.rows.len()) as i32)
    }

    pub(super) fn widgets(&self, origin: (i32, i32)) -> Vec<Widget> {
        let scrolls = SHOWN < self.rows.len();
        let mut widgets = Vec::new();
        for (row, i) in self.visible().enumerate() {
            let toggle = &self.rows[i];
            let mut rect = cells(origin, 0, row as i32, 6);
            if scrolls {
                rect.w -= 8;
            }
            widgets.push(
                Widget::target(
                    rect,
                    Part::Item(i),
                    format!("press {}", toggle.label),
                    Look::Toggle {
                        icon: toggle.icon,
                        label: toggle.label.clone(),
                        on: toggle.on,
                    },
                )
                .aimed_at(rect.x - 1 + CELL_PX + CENTER_PX, rect.y - 1 + CENTER_PX),
            );
        }
        if scrolls {
            let top = cells(origin, 0, 0, 6);
            let rect = Rect::new(top.x + top.w - 5, top.y, 5, SHOWN as i32 * CELL_PX - 4);
            widgets.push(Widget::passive(
                rect,
                Look::ScrollBar {
                    rows: self.rows.len(),
                    first: self.visible().start,
                    shown: SHOWN,
                },
            ));
        }
        widgets
    }

    pub(super) fn handle(&mut self, input: &Input) {
        match input {
            Input::Click(Part::Item(i)) => {
                if let Some(toggle) = self.rows.get_mut(*i) {
                    toggle.on = !toggle.on;
                }
            }
            Input::Scroll(notches) => self.scroll(notches.saturating_mul(NOTCH_ROWS)),
            Input::Keys(keys) => match keys.as_str() {
                "pagedown" => self.scroll(SHOWN as i32),
                "pageup" => self.scroll(-(SHOWN as i32)),
                "down" => self.scroll(1),
                "up" => self.scroll(-1),
                _ => {}
            },
            Input::Click(_)
            | Input::Double(_)
            | Input::Right(_)
            | Input::Drag(_, _)
            | Input::Text(_) => {}
        }
    }

    pub(super) fn state(&self) -> Value {
        let states: Map<String, Value> = self
            .rows
            .iter()
            .map(|toggle| (toggle.label.clone(), Value::Bool(toggle.on)))
            .collect();
        Value::Object(states)
    }

    pub(super) fn facts(&self) -> Vec<(String, String)> {
        self.rows[self.visible()]
            .iter()
            .map(|toggle| {
                let state = if toggle.on { "on" } else { "off" };
                (toggle.label.clone(), state.to_owned())
            })
            .collect()
    }

    fn scroll(&mut self, rows: i32) {
        let first = (self.visible().start as i32).saturating_add(rows).max(0);
        self.first = (first as usize).min(self.last_first());
    }
}
