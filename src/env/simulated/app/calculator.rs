//! Calculator: whole numbers, four operations, a tape of the keys pressed since it was cleared.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Input;
use crate::env::simulated::widget::{Look, Part, Widget, cells};

/// The keys, four to a row.
pub const KEYS: [char; 16] = [
    '7', '8', '9', '/', '4', '5', '6', '*', '1', '2', '3', '-', '0', 'C', '=', '+',
];

/// Keys on the tape at most.
const TAPE_KEYS: usize = 24;

/// The calculator's state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calculator {
    /// Keys pressed since it was cleared: `12+7=`.
    pub tape: String,
}

impl Calculator {
    /// Columns and rows of its content.
    pub(super) const SIZE: (i32, i32) = (4, 5);

    /// What stands on the display: the number being entered, or the result.
    pub fn display(&self) -> String {
        if self.tape.ends_with('=') {
            return self.result();
        }
        let tail = self.tape.rsplit(['+', '-', '*', '/']).next().unwrap_or("");
        if tail.is_empty() {
            "0".to_owned()
        } else {
            tail.to_owned()
        }
    }

    /// The operation last worked out, or nothing.
    pub fn worked_out(&self) -> &str {
        self.tape.strip_suffix('=').unwrap_or("")
    }

    pub(super) fn widgets(&self, origin: (i32, i32)) -> Vec<Widget> {
        let display = Look::Display {
            text: self.display(),
        };
        let mut widgets = vec![Widget::passive(cells(origin, 0, 0, 4), display)];
        for (i, key) in KEYS.iter().enumerate() {
            let rect = cells(origin, i as i32 % 4, 1 + i as i32 / 4, 1);
            let look = Look::Button {
                text: key.to_string(),
                accent: *key == '=',
            };
            widgets.push(Widget::target(
                rect,
                Part::Button(i),
                format!("press {key}"),
                look,
            ));
        }
        widgets
    }

    pub(super) fn handle(&mut self, input: &Input) {
        match input {
            Input::Click(Part::Button(i)) | Input::Double(Part::Button(i)) => {
                if let Some(key) = KEYS.get(*i) {
                    self.press(*key);
                }
            }
            Input::Text(text) => {
                for key in text.chars() {
                    self.press(if key == '\n' { '=' } else { key });
                }
            }
            Input::Keys(keys) => match keys.as_str() {
                "enter" => self.press('='),
                "esc" => self.press('C'),
                "backspace" => {
                    self.tape.pop();
                }
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
        json!({ "display": self.display(), "worked_out": self.worked_out() })
    }

    fn press(&mut self, key: char) {
        if key == 'C' {
            self.tape.clear();
        } else if KEYS.contains(&key) && self.tape.len() < TAPE_KEYS {
            if self.tape.ends_with('=') {
                // A result is the start of the next operation, or makes way for a number.
                let result = self.result();
                self.tape = if key.is_ascii_digit() || result.parse::<i64>().is_err() {
                    String::new()
                } else {
                    result
                };
            }
            self.tape.push(key);
        }
    }

    /// The result of the tape from left to right, or `Error`.
    fn result(&self) -> String {
        let mut total: Option<i64> = None;
        let (mut number, mut operation) = (None::<i64>, '+');
        for key in self.tape.chars() {
            if let Some(digit) = key.to_digit(10) {
                let so_far = number.unwrap_or(0);
                number = so_far
                    .checked_mul(10)
                    .and_then(|n| n.checked_add(i64::from(digit)));
                if number.is_none() {
                    return "Error".to_owned();
                }
                continue;
            }
            // An operation without a number before it replaces the one before.
            if let Some(number) = number.take() {
                let combined = match (total, operation) {
                    (None, '-') => number.checked_neg(),
                    (None, _) => Some(number),
                    (Some(total), '+') => total.checked_add(number),
                    (Some(total), '-') => total.checked_sub(number),
                    (Some(total), '*') => total.checked_mul(number),
                    (Some(total), _) => total.checked_div(number),
                };
                let Some(combined) = combined else {
                    return "Error".to_owned();
                };
                total = Some(combined);
            }
            operation = key;
        }
        total.unwrap_or(0).to_string()
    }
}
