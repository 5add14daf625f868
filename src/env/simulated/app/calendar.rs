//! Calendar: months of 31 days, one event a day.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Input, push_typed};
use crate::env::simulated::widget::{Look, Part, Widget, cells};

/// The months.
pub const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
/// Days of every month: this calendar knows no leap years either.
const DAYS: usize = 31;
/// Days in a row.
const WEEK: usize = 7;

/// The calendar's state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calendar {
    /// The month shown, from 0.
    pub month: usize,
    /// Events by day: `May 14`.
    pub events: BTreeMap<String, String>,
    /// The selected day of the month, from 1.
    #[serde(default)]
    pub selected: Option<usize>,
    /// The text being typed for that day.
    #[serde(default)]
    pub draft: String,
}

impl Calendar {
    /// Columns and rows of its content.
    pub(super) const SIZE: (i32, i32) = (WEEK as i32, 7);

    /// Name of the month shown.
    pub fn month_name(&self) -> &'static str {
        MONTHS[self.month % MONTHS.len()]
    }

    /// Name of a day of the month shown: `May 14`.
    pub fn day_name(&self, day: usize) -> String {
        format!("{} {day}", self.month_name())
    }

    pub(super) fn widgets(&self, origin: (i32, i32)) -> Vec<Widget> {
        let mut widgets = Vec::new();
        for (i, (column, text, name)) in [(0, "<", "previous"), (6, ">", "next")]
            .into_iter()
            .enumerate()
        {
            let look = Look::Button {
                text: text.to_owned(),
                accent: false,
            };
            widgets.push(Widget::target(
                cells(origin, column, 0, 1),
                Part::Button(i),
                format!("press {name}"),
                look,
            ));
        }
        let text = self.month_name().to_owned();
        widgets.push(Widget::passive(cells(origin, 1, 0, 5), Look::Text { text }));
        for day in 1..=DAYS {
            let (row, column) = ((day - 1) / WEEK, (day - 1) % WEEK);
            widgets.push(Widget::target(
                cells(origin, column as i32, 1 + row as i32, 1),
                Part::Item(day),
                format!("select day {day}"),
                Look::Day {
                    day,
                    busy: self.events.contains_key(&self.day_name(day)),
                    selected: self.selected == Some(day),
                },
            ));
        }
        widgets.push(Widget::passive(cells(origin, 0, 6, 7), self.bottom()));
        widgets
    }

    pub(super) fn handle(&mut self, input: &Input, clipboard: &str) {
        match input {
            Input::Click(Part::Button(i)) | Input::Double(Part::Button(i)) => {
                let by = if *i == 0 { MONTHS.len() - 1 } else { 1 };
                self.month = (self.month % MONTHS.len() + by) % MONTHS.len();
                self.selected = None;
            }
            Input::Click(Part::Item(day)) | Input::Double(Part::Item(day)) => {
                self.selected = Some(*day);
                self.draft.clear();
            }
            Input::Text(text) => {
                if self.selected.is_some() {
                    push_typed(&mut self.draft, text);
                    if text.ends_with('\n') {
                        self.enter();
                    }
                }
            }
            Input::Keys(keys) => match keys.as_str() {
                "enter" => self.enter(),
                "esc" => {
                    self.selected = None;
                    self.draft.clear();
                }
                "backspace" => {
                    self.draft.pop();
                }
                "delete" => {
                    if let Some(day) = self.selected {
                        self.events.remove(&self.day_name(day));
                    }
                }
                "ctrl+v" if self.selected.is_some() => push_typed(&mut self.draft, clipboard),
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
        json!({
            "month": self.month_name(),
            "events": self.events,
            "count": self.events.len(),
        })
    }

    fn bottom(&self) -> Look {
        let Some(day) = self.selected else {
            return Look::Text {
                text: "Pick a day.".into(),
            };
        };
        let name = self.day_name(day);
        match self.events.get(&name) {
            Some(event) if self.draft.is_empty() => Look::Text {
                text: format!("{name}: {event}"),
            },
            Some(_) | None => Look::Field {
                label: "Event".into(),
                text: self.draft.clone(),
                focused: true,
                selected: false,
            },
        }
    }

    fn enter(&mut self) {
        if let Some(day) = self.selected
            && !self.draft.is_empty()
        {
            let event = std::mem::take(&mut self.draft);
            self.events.insert(self.day_name(day), event);
        }
    }
}
