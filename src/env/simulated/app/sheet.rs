//! Spreadsheet: three columns, four rows, a sum from the menu.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Input, push_typed};
use crate::env::simulated::widget::{Look, Part, Widget, cells};

/// Columns.
const COLUMNS: usize = 3;
/// Rows.
const ROWS: usize = 4;
/// Steps kept for undo.
const UNDO_DEPTH: usize = 32;

/// The sheet's state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sheet {
    /// Contents row by row, `[4 * 3]`.
    pub cells: [String; COLUMNS * ROWS],
    /// The selected cell.
    #[serde(default)]
    pub selected: Option<usize>,
    /// Earlier contents, the latest last.
    #[serde(default)]
    pub undo: Vec<[String; COLUMNS * ROWS]>,
}

/// Name of a cell: `B3`.
pub fn cell_name(i: usize) -> String {
    let column = char::from(b'A' + (i % COLUMNS) as u8);
    format!("{column}{}", i / COLUMNS + 1)
}

impl Sheet {
    /// Columns and rows of its content.
    pub(super) const SIZE: (i32, i32) = (1 + 2 * COLUMNS as i32, 1 + ROWS as i32);

    /// An empty sheet.
    pub fn new() -> Self {
        Self {
            cells: std::array::from_fn(|_| String::new()),
            selected: None,
            undo: Vec::new(),
        }
    }

    /// Sum of the numbers above a cell.
    pub fn sum_above(&self, i: usize) -> i64 {
        (0..i / COLUMNS)
            .filter_map(|row| self.cells[row * COLUMNS + i % COLUMNS].parse::<i64>().ok())
            .fold(0, i64::saturating_add)
    }

    pub(super) fn widgets(&self, origin: (i32, i32)) -> Vec<Widget> {
        let mut widgets = Vec::new();
        for column in 0..COLUMNS as i32 {
            let name = char::from(b'A' + column as u8).to_string();
            let rect = cells(origin, 1 + 2 * column, 0, 2);
            widgets.push(Widget::passive(rect, Look::Text { text: name }));
        }
        for row in 0..ROWS as i32 {
            let text = (row + 1).to_string();
            let rect = cells(origin, 0, 1 + row, 1);
            widgets.push(Widget::passive(rect, Look::Text { text }));
        }
        for (i, text) in self.cells.iter().enumerate() {
            let (row, column) = ((i / COLUMNS) as i32, (i % COLUMNS) as i32);
            widgets.push(Widget::target(
                cells(origin, 1 + 2 * column, 1 + row, 2),
                Part::Item(i),
                format!("select {}", cell_name(i)),
                Look::Cell {
                    text: text.clone(),
                    selected: self.selected == Some(i),
                },
            ));
        }
        widgets
    }

    pub(super) fn handle(&mut self, input: &Input, clipboard: &mut String) {
        match input {
            Input::Click(Part::Item(i)) | Input::Double(Part::Item(i)) => self.selected = Some(*i),
            Input::Click(_) => self.selected = None,
            Input::Text(text) => {
                let mut typed = String::new();
                push_typed(&mut typed, text);
                self.write(typed);
                if text.ends_with('\n') {
                    self.step_down();
                }
            }
            Input::Keys(keys) => self.keys(keys, clipboard),
            Input::Double(_) | Input::Right(_) | Input::Drag(_, _) | Input::Scroll(_) => {}
        }
    }

    pub(super) fn state(&self) -> Value {
        let contents = self.cells.iter().enumerate();
        let contents: Map<String, Value> = contents
            .map(|(i, text)| (cell_name(i), Value::from(text.clone())))
            .collect();
        Value::Object(contents)
    }

    fn keys(&mut self, keys: &str, clipboard: &mut String) {
        match (keys, self.selected) {
            ("ctrl+z", _) => {
                if let Some(cells) = self.undo.pop() {
                    self.cells = cells;
                }
            }
            ("delete" | "backspace", Some(_)) => self.write(String::new()),
            ("ctrl+c", Some(i)) if i < COLUMNS * ROWS => clipboard.clone_from(&self.cells[i]),
            ("ctrl+x", Some(i)) if i < COLUMNS * ROWS => {
                clipboard.clone_from(&self.cells[i]);
                self.write(String::new());
            }
            ("ctrl+v", Some(_)) => self.write(clipboard.clone()),
            ("menu+sum", Some(i)) => self.write(self.sum_above(i).to_string()),
            ("enter" | "down", Some(_)) => self.step_down(),
            ("up", Some(i)) => self.selected = Some(i.checked_sub(COLUMNS).unwrap_or(i)),
            ("esc", _) => self.selected = None,
            _ => {}
        }
    }

    fn step_down(&mut self) {
        let last = COLUMNS * ROWS;
        self.selected = self
            .selected
            .map(|i| Some(i + COLUMNS).filter(|below| *below < last).unwrap_or(i));
    }

    fn write(&mut self, text: String) {
        let Some(i) = self.selected.filter(|i| *i < COLUMNS * ROWS) else {
            return;
        };
        if self.cells[i] == text {
            return;
        }
        if self.undo.len() == UNDO_DEPTH {
            self.undo.remove(0);
        }
        self.undo.push(self.cells.clone());
        self.cells[i] = text;
    }
}
