//! Mail: an inbox whose messages are read, starred, archived, deleted and answered.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{Input, push_typed};
use crate::env::simulated::icons::Icon;
use crate::env::simulated::widget::{CELL_PX, CENTER_PX, Look, Part, Widget, cells};

/// Messages shown.
const ROWS: usize = 4;
/// Steps kept for undo.
const UNDO_DEPTH: usize = 32;
/// The toolbar.
const BUTTONS: [&str; 3] = ["Reply", "Archive", "Delete"];
/// Index of the button that sends an answer, behind the toolbar's.
const SEND: usize = 3;

/// Where a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// In the list.
    Inbox,
    /// Put away.
    Archive,
    /// Thrown away.
    Trash,
}

/// One message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Message {
    /// Who wrote it.
    pub from: String,
    /// What it is about; unique in the mailbox.
    pub subject: String,
    /// Marked with a star.
    pub starred: bool,
    /// Has been looked at.
    pub read: bool,
    /// Where it is.
    pub place: Place,
}

/// The mailbox's state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mail {
    /// All messages.
    pub messages: Vec<Message>,
    /// The message being read.
    #[serde(default)]
    pub selected: Option<usize>,
    /// The answer being written to it.
    #[serde(default)]
    pub draft: Option<String>,
    /// Answers sent: `Anna: yes`.
    #[serde(default)]
    pub sent: Vec<String>,
    /// Earlier mailboxes, the latest last.
    #[serde(default)]
    pub undo: Vec<Vec<Message>>,
}

impl Mail {
    /// Columns and rows of its content.
    pub(super) const SIZE: (i32, i32) = (8, ROWS as i32 + 2);

    /// A mailbox of unread messages in the inbox.
    pub fn new(messages: Vec<(String, String)>) -> Self {
        let messages = messages.into_iter().map(|(from, subject)| Message {
            from,
            subject,
            starred: false,
            read: false,
            place: Place::Inbox,
        });
        Self {
            messages: messages.collect(),
            selected: None,
            draft: None,
            sent: Vec::new(),
            undo: Vec::new(),
        }
    }

    pub(super) fn widgets(&self, origin: (i32, i32)) -> Vec<Widget> {
        let mut widgets = Vec::new();
        for (i, (text, place)) in BUTTONS.iter().zip([(0, 2), (2, 3), (5, 2)]).enumerate() {
            widgets.push(button(origin, 0, place, i, text));
        }
        let shown = self.messages.iter().enumerate();
        let shown = shown.filter(|(_, message)| message.place == Place::Inbox);
        for (row, (i, message)) in shown.take(ROWS).enumerate() {
            let row = 1 + row as i32;
            // Stars are the items behind all messages.
            widgets.push(Widget::target(
                cells(origin, 0, row, 1),
                Part::Item(self.messages.len() + i),
                format!("star {}", message.subject),
                Look::IconButton {
                    icon: if message.starred {
                        Icon::Star
                    } else {
                        Icon::NoStar
                    },
                    active: message.starred,
                },
            ));
            let rect = cells(origin, 1, row, 7);
            let look = Look::Entry {
                icon: if message.read {
                    Icon::Document
                } else {
                    Icon::Mail
                },
                label: format!("{}: {}", message.from, message.subject),
                selected: self.selected == Some(i),
                editing: false,
            };
            widgets.push(
                Widget::target(
                    rect,
                    Part::Item(i),
                    format!("select {}", message.subject),
                    look,
                )
                .aimed_at(rect.x - 1 + CELL_PX + CENTER_PX, rect.y - 1 + CENTER_PX),
            );
        }
        self.add_bottom(origin, &mut widgets);
        widgets
    }

    pub(super) fn handle(&mut self, input: &Input, clipboard: &str) {
        match input {
            Input::Click(Part::Button(i)) | Input::Double(Part::Button(i)) => self.press(*i),
            Input::Click(Part::Item(i)) | Input::Double(Part::Item(i)) => self.touch(*i),
            Input::Text(text) => {
                if let Some(draft) = &mut self.draft {
                    push_typed(draft, text);
                }
            }
            Input::Keys(keys) => self.keys(keys, clipboard),
            Input::Click(_) => self.selected = None,
            Input::Double(_) | Input::Right(_) | Input::Drag(_, _) | Input::Scroll(_) => {}
        }
    }

    pub(super) fn state(&self) -> Value {
        let (mut messages, mut read) = (Map::new(), Map::new());
        for message in &self.messages {
            let state = json!({ "place": message.place, "starred": message.starred });
            messages.insert(message.subject.clone(), state);
            read.insert(message.subject.clone(), Value::Bool(message.read));
        }
        json!({ "messages": messages, "read": read, "sent": self.sent })
    }

    pub(super) fn facts(&self) -> Vec<(String, String)> {
        let inbox = self.messages.iter().filter(|m| m.place == Place::Inbox);
        inbox
            .map(|message| (message.subject.clone(), "here".to_owned()))
            .collect()
    }

    fn add_bottom(&self, origin: (i32, i32), widgets: &mut Vec<Widget>) {
        let bottom = 1 + ROWS as i32;
        let selected = self.selected.and_then(|i| self.messages.get(i));
        match (&self.draft, selected) {
            (Some(draft), Some(_)) => {
                let look = Look::Field {
                    label: "Answer".into(),
                    text: draft.clone(),
                    focused: true,
                    selected: false,
                };
                widgets.push(Widget::passive(cells(origin, 0, bottom, 6), look));
                widgets.push(button(origin, bottom, (6, 2), SEND, "Send"));
            }
            (None, Some(message)) => {
                let text = format!("{} writes about {}.", message.from, message.subject);
                widgets.push(Widget::passive(
                    cells(origin, 0, bottom, 8),
                    Look::Text { text },
                ));
            }
            (Some(_) | None, None) => {}
        }
    }

    fn press(&mut self, button: usize) {
        let Some(selected) = self.selected else {
            return;
        };
        match BUTTONS.get(button) {
            Some(&"Reply") => self.draft = Some(String::new()),
            Some(&"Archive") => self.put(selected, Place::Archive),
            Some(&"Delete") => self.put(selected, Place::Trash),
            Some(_) | None => self.send(),
        }
    }

    fn send(&mut self) {
        let to = self.selected.and_then(|i| self.messages.get(i));
        if let (Some(message), Some(draft)) = (to, &self.draft)
            && !draft.is_empty()
        {
            self.sent.push(format!("{}: {draft}", message.from));
            self.draft = None;
        }
    }

    fn put(&mut self, i: usize, place: Place) {
        self.remember();
        if let Some(message) = self.messages.get_mut(i) {
            message.place = place;
        }
        self.selected = None;
        self.draft = None;
    }

    fn touch(&mut self, item: usize) {
        let count = self.messages.len();
        if item < count {
            self.selected = Some(item);
            self.draft = None;
            self.messages[item].read = true;
        } else if item < 2 * count {
            self.remember();
            self.messages[item - count].starred = !self.messages[item - count].starred;
        }
    }

    fn keys(&mut self, keys: &str, clipboard: &str) {
        match (keys, &mut self.draft) {
            ("esc", Some(_)) => self.draft = None,
            ("esc", None) => self.selected = None,
            ("backspace", Some(draft)) => {
                draft.pop();
            }
            ("ctrl+v", Some(draft)) => push_typed(draft, clipboard),
            ("ctrl+enter", Some(_)) => self.send(),
            ("delete", None) => self.press(2),
            ("ctrl+r", None) => self.press(0),
            ("ctrl+z", None) => {
                if let Some(messages) = self.undo.pop() {
                    self.messages = messages;
                    self.selected = None;
                }
            }
            _ => {}
        }
    }

    fn remember(&mut self) {
        if self.undo.len() == UNDO_DEPTH {
            self.undo.remove(0);
        }
        self.undo.push(self.messages.clone());
    }
}

/// A button in a row; `place` is its first column and how many it takes.
fn button(origin: (i32, i32), row: i32, place: (i32, i32), i: usize, text: &str) -> Widget {
    let rect = cells(origin, place.0, row, place.1);
    let look = Look::Button {
        text: text.to_owned(),
        accent: i == SEND,
    };
    Widget::target(rect, Part::Button(i), format!("press {text}"), look)
        .aimed_at(rect.x - 1 + CELL_PX, rect.y - 1 + CENTER_PX)
}
