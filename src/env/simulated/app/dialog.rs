//! Message dialogs, one after the other: read, press a button.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Input;
use crate::env::simulated::widget::{CELL_PX, CENTER_PX, Look, Part, Widget, cells};

/// One message with its buttons.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Page {
    /// What is asked.
    pub message: String,
    /// The buttons from the left.
    pub buttons: Vec<String>,
}

/// The state of the dialogs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dialog {
    /// The messages in order.
    pub pages: Vec<Page>,
    /// Which button was pressed at each message already answered.
    #[serde(default)]
    pub pressed: Vec<String>,
}

impl Dialog {
    /// Columns and rows of its content.
    pub(super) const SIZE: (i32, i32) = (6, 2);

    /// The message on the screen, if one is left.
    pub fn page(&self) -> Option<&Page> {
        self.pages.get(self.pressed.len())
    }

    pub(super) fn title(&self) -> String {
        match self.page() {
            Some(_) => "Message".into(),
            None => "Message - done".into(),
        }
    }

    pub(super) fn widgets(&self, origin: (i32, i32)) -> Vec<Widget> {
        let text = match (self.page(), self.pressed.last()) {
            (Some(page), _) => page.message.clone(),
            (None, Some(pressed)) => format!("You chose {pressed}."),
            (None, None) => String::new(),
        };
        let mut widgets = vec![Widget::passive(cells(origin, 0, 0, 6), Look::Text { text })];
        let buttons = self.page().map_or(&[][..], |page| &page.buttons);
        let first = 6 - 2 * buttons.len().min(3) as i32;
        for (i, text) in buttons.iter().take(3).enumerate() {
            let rect = cells(origin, first + 2 * i as i32, 1, 2);
            widgets.push(
                Widget::target(
                    rect,
                    Part::Button(i),
                    format!("press {text}"),
                    Look::Button {
                        text: text.clone(),
                        accent: false,
                    },
                )
                .aimed_at(rect.x - 1 + CELL_PX, rect.y - 1 + CENTER_PX),
            );
        }
        widgets
    }

    pub(super) fn handle(&mut self, input: &Input) {
        let (Input::Click(Part::Button(i)) | Input::Double(Part::Button(i))) = input else {
            return;
        };
        let pressed = self.page().and_then(|page| page.buttons.get(*i)).cloned();
        self.pressed.extend(pressed);
    }

    pub(super) fn state(&self) -> Value {
        json!({ "pressed": self.pressed })
    }

    pub(super) fn facts(&self) -> Vec<(String, String)> {
        let buttons = self.page().map_or(&[][..], |page| &page.buttons);
        buttons
            .iter()
            .map(|text| (text.clone(), "here".to_owned()))
            .collect()
    }
}
