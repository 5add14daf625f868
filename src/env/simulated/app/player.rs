//! Music player: tracks, play and pause, volume from 0 to 9.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Input;
use crate::env::simulated::icons::Icon;
use crate::env::simulated::widget::{CELL_PX, CENTER_PX, Look, Part, Widget, cells};

/// Tracks shown.
const ROWS: i32 = 4;
/// The loudest.
const MAX_VOLUME: u8 = 9;

/// The player's state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Player {
    /// Names of the tracks.
    pub tracks: Vec<String>,
    /// The track chosen last.
    pub current: usize,
    /// Whether it plays.
    pub playing: bool,
    /// How loud, 0 to 9.
    pub volume: u8,
}

/// What the player's buttons do, in order.
pub const BUTTONS: [&str; 5] = ["Back", "Play", "Next", "Vol-", "Vol+"];

impl Player {
    /// Columns and rows of its content.
    pub(super) const SIZE: (i32, i32) = (6, ROWS + 2);

    /// The track that plays.
    pub fn track(&self) -> Option<&str> {
        let track = self.tracks.get(self.current).filter(|_| self.playing);
        track.map(String::as_str)
    }

    pub(super) fn widgets(&self, origin: (i32, i32)) -> Vec<Widget> {
        let mut widgets = Vec::new();
        for (i, track) in self.tracks.iter().take(ROWS as usize).enumerate() {
            let rect = cells(origin, 0, i as i32, 6);
            let look = Look::Entry {
                icon: Icon::Music,
                label: track.clone(),
                selected: self.playing && i == self.current,
                editing: false,
            };
            widgets.push(
                Widget::target(rect, Part::Item(i), format!("play {track}"), look)
                    .aimed_at(rect.x - 1 + CELL_PX + CENTER_PX, rect.y - 1 + CENTER_PX),
            );
        }
        for (i, name) in BUTTONS.iter().enumerate() {
            let (column, row) = (2 * (i as i32 % 3), ROWS + i as i32 / 3);
            let rect = cells(origin, column, row, 2);
            let text = if *name == "Play" && self.playing {
                "Pause"
            } else {
                name
            };
            let look = Look::Button {
                text: text.to_owned(),
                accent: i == 1,
            };
            widgets.push(
                Widget::target(rect, Part::Button(i), format!("press {text}"), look)
                    .aimed_at(rect.x - 1 + CELL_PX, rect.y - 1 + CENTER_PX),
            );
        }
        let text = format!("Vol {}", self.volume);
        widgets.push(Widget::passive(
            cells(origin, 4, ROWS + 1, 2),
            Look::Text { text },
        ));
        widgets
    }

    pub(super) fn handle(&mut self, input: &Input) {
        match input {
            Input::Double(Part::Item(i)) => {
                self.current = (*i).min(self.tracks.len().saturating_sub(1));
                self.playing = true;
            }
            Input::Click(Part::Button(i)) | Input::Double(Part::Button(i)) => self.press(*i),
            Input::Keys(keys) if keys == "space" => self.press(1),
            Input::Text(text) if text == " " => self.press(1),
            Input::Scroll(notches) => {
                let volume = i32::from(self.volume) - notches.signum();
                self.volume = volume.clamp(0, i32::from(MAX_VOLUME)) as u8;
            }
            Input::Click(_)
            | Input::Double(_)
            | Input::Right(_)
            | Input::Drag(_, _)
            | Input::Keys(_)
            | Input::Text(_) => {}
        }
    }

    pub(super) fn state(&self) -> Value {
        json!({ "playing": self.track(), "volume": self.volume })
    }

    fn press(&mut self, button: usize) {
        let count = self.tracks.len().max(1);
        match button {
            0 => self.current = (self.current % count + count - 1) % count,
            1 => self.playing = !self.playing,
            2 => self.current = (self.current % count + 1) % count,
            3 => self.volume = self.volume.saturating_sub(1),
            _ => self.volume = self.volume.saturating_add(1).min(MAX_VOLUME),
        }
    }
}
