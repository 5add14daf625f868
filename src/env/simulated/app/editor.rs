//! Text editor: one short text of large characters, a formatting toolbar, undo and redo.
//!
//! A click selects a character. A character is never both superscript and subscript: the
//! button of the one does nothing while the other is set, so a wrong one is undone first.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Input, MAX_TEXT_CHARS};
use crate::env::simulated::canvas::Rect;
use crate::env::simulated::icons::Icon;
use crate::env::simulated::widget::{CELL_PX, Look, Part, Widget, cells};

/// Characters in a line.
const LINE_CHARS: usize = 6;
/// Lines shown.
const LINES: usize = 2;
/// Steps kept for undo.
const UNDO_DEPTH: usize = 64;

/// What a toolbar button does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// Heavier strokes.
    Bold,
    /// Leaning.
    Italic,
    /// A line below.
    Underline,
    /// Small and high.
    Superscript,
    /// Small and low.
    Subscript,
    /// Not a format: saves the text.
    Save,
}

impl Format {
    /// All buttons in their usual order.
    pub const ALL: [Format; 6] = [
        Format::Bold,
        Format::Italic,
        Format::Underline,
        Format::Superscript,
        Format::Subscript,
        Format::Save,
    ];

    /// Its name in instructions, thoughts and state.
    pub const fn name(self) -> &'static str {
        match self {
            Format::Bold => "bold",
            Format::Italic => "italic",
            Format::Underline => "underline",
            Format::Superscript => "superscript",
            Format::Subscript => "subscript",
            Format::Save => "save",
        }
    }

    const fn icon(self) -> Icon {
        match self {
            Format::Bold => Icon::Bold,
            Format::Italic => Icon::Italic,
            Format::Underline => Icon::Underline,
            Format::Superscript => Icon::Superscript,
            Format::Subscript => Icon::Subscript,
            Format::Save => Icon::Save,
        }
    }
}

/// One character with its formats, in the order they were set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Glyph {
    /// The character.
    pub ch: char,
    /// Its formats, sorted by `Format::ALL`.
    #[serde(default)]
    pub formats: Vec<Format>,
}

impl Glyph {
    /// A plain character.
    pub fn plain(ch: char) -> Self {
        Self {
            ch,
            formats: Vec::new(),
        }
    }

    /// Whether a format is set.
    pub fn has(&self, format: Format) -> bool {
        self.formats.contains(&format)
    }

    /// Sets a format that its opposite does not forbid.
    pub fn set(&mut self, format: Format) {
        let opposite = match format {
            Format::Superscript => Format::Subscript,
            Format::Subscript => Format::Superscript,
            Format::Bold | Format::Italic | Format::Underline | Format::Save => Format::Save,
        };
        if self.has(format) || self.has(opposite) || format == Format::Save {
            return;
        }
        self.formats.push(format);
        self.formats
            .sort_by_key(|format| Format::ALL.iter().position(|other| other == format));
    }

    /// Clears a format.
    pub fn clear(&mut self, format: Format) {
        self.formats.retain(|other| *other != format);
    }

    /// Its formats as the state spells them: `bold subscript`, or nothing.
    pub fn style(&self) -> String {
        let names: Vec<&str> = self.formats.iter().map(|format| format.name()).collect();
        names.join(" ")
    }
}

/// The editor's state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Editor {
    /// The text.
    pub glyphs: Vec<Glyph>,
    /// Order of the toolbar's buttons.
    pub buttons: Vec<Format>,
    /// Whether the text is saved.
    pub saved: bool,
    /// Selected characters `[start, end)`; empty means the caret stands at `start`.
    #[serde(default)]
    pub selection: (usize, usize),
    /// Earlier texts, the latest last.
    #[serde(default)]
    pub undo: Vec<Vec<Glyph>>,
    /// Texts taken back, the latest last.
    #[serde(default)]
    pub redo: Vec<Vec<Glyph>>,
}

impl Editor {
    /// Columns and rows of its content.
    pub(super) const SIZE: (i32, i32) = (6, 3);

    /// An editor with a plain text, the caret at its end.
    pub fn new(text: &str, buttons: Vec<Format>) -> Self {
        let glyphs: Vec<Glyph> = text.chars().map(Glyph::plain).collect();
        let end = glyphs.len();
        Self {
            glyphs,
            buttons,
            saved: true,
            selection: (end, end),
            undo: Vec::new(),
            redo: Vec::new(),
        }
    }

    /// The text without formats.
    pub fn text(&self) -> String {
        self.glyphs.iter().map(|glyph| glyph.ch).collect()
    }

    /// Formats of each character, as the state spells them.
    pub fn styles(&self) -> Vec<String> {
        self.glyphs.iter().map(Glyph::style).collect()
    }

    /// The selection, kept within the text whatever a task file says.
    pub fn selected(&self) -> std::ops::Range<usize> {
        let end = self.selection.1.min(self.glyphs.len());
        self.selection.0.min(end)..end
    }

    pub(super) fn title(&self) -> String {
        if self.saved {
            "Editor - saved".into()
        } else {
            "Editor *".into()
        }
    }

    pub(super) fn widgets(&self, origin: (i32, i32)) -> Vec<Widget> {
        let selected = self.selected();
        let mut widgets = Vec::new();
        for (i, format) in self.buttons.iter().enumerate() {
            widgets.push(Widget::target(
                cells(origin, i as i32, 0, 1),
                Part::Button(i),
                format!("press {}", format.name()),
                Look::IconButton {
                    icon: format.icon(),
                    active: !selected.is_empty()
                        && self.glyphs[selected.clone()]
                            .iter()
                            .all(|glyph| glyph.has(*format)),
                },
            ));
        }
        let top = cells(origin, 0, 1, LINE_CHARS as i32);
        let paper = Rect::new(top.x, top.y, top.w, LINES as i32 * CELL_PX - 4);
        widgets.push(Widget::passive(paper, Look::Paper));
        for (i, glyph) in self.glyphs.iter().take(LINE_CHARS * LINES).enumerate() {
            let (row, column) = (i / LINE_CHARS, i % LINE_CHARS);
            widgets.push(Widget::target(
                cells(origin, column as i32, 1 + row as i32, 1),
                Part::Item(i),
                format!("select {}", glyph.ch),
                Look::Character {
                    ch: glyph.ch,
                    bold: glyph.has(Format::Bold),
                    italic: glyph.has(Format::Italic),
                    underline: glyph.has(Format::Underline),
                    raised: i32::from(glyph.has(Format::Superscript))
                        - i32::from(glyph.has(Format::Subscript)),
                    selected: selected.contains(&i),
                },
            ));
        }
        widgets
    }

    pub(super) fn handle(&mut self, input: &Input, clipboard: &mut String) {
        match input {
            Input::Click(Part::Button(i)) | Input::Double(Part::Button(i)) => {
                if let Some(format) = self.buttons.get(*i).copied() {
                    self.press(format);
                }
            }
            Input::Click(Part::Item(i)) | Input::Right(Part::Item(i)) => {
                self.selection = (*i, *i + 1);
            }
            Input::Drag(Part::Item(from), Part::Item(to)) => {
                self.selection = (*from.min(to), *from.max(to) + 1);
            }
            Input::Double(Part::Item(_)) => self.selection = (0, self.glyphs.len()),
            Input::Click(Part::Blank) => {
                self.selection = (self.glyphs.len(), self.glyphs.len());
            }
            Input::Text(text) => self.replace(text),
            Input::Keys(keys) => self.keys(keys, clipboard),
            Input::Click(_)
            | Input::Double(_)
            | Input::Right(_)
            | Input::Drag(_, _)
            | Input::Scroll(_) => {}
        }
    }

    pub(super) fn state(&self) -> Value {
        json!({ "text": self.text(), "styles": self.styles(), "saved": self.saved })
    }

    pub(super) fn facts(&self) -> Vec<(String, String)> {
        let saved = if self.saved { "saved" } else { "changed" };
        let mut facts = vec![("text".to_owned(), saved.to_owned())];
        for (i, glyph) in self.glyphs.iter().enumerate() {
            let alone = self.glyphs.iter().filter(|other| other.ch == glyph.ch);
            if alone.count() == 1 && glyph.ch.is_alphanumeric() && i < LINE_CHARS * LINES {
                let style = glyph
                    .formats
                    .first()
                    .map_or("plain", |format| format.name());
                facts.push((glyph.ch.to_string(), style.to_owned()));
            }
        }
        facts
    }

    fn press(&mut self, format: Format) {
        if format == Format::Save {
            self.saved = true;
            return;
        }
        let range = self.selected();
        let mut glyphs = self.glyphs.clone();
        let all = glyphs[range.clone()].iter().all(|glyph| glyph.has(format));
        for glyph in &mut glyphs[range] {
            if all {
                glyph.clear(format);
            } else {
                glyph.set(format);
            }
        }
        self.change(glyphs);
    }

    fn keys(&mut self, keys: &str, clipboard: &mut String) {
        let end = self.glyphs.len();
        match keys {
            "ctrl+a" => self.selection = (0, end),
            "ctrl+z" => self.step_back(),
            "ctrl+y" | "ctrl+shift+z" => self.step_forward(),
            "ctrl+s" => self.saved = true,
            "ctrl+b" => self.press(Format::Bold),
            "ctrl+i" => self.press(Format::Italic),
            "ctrl+u" => self.press(Format::Underline),
            "menu+upper" => self.map_case(|ch| ch.to_ascii_uppercase()),
            "menu+lower" => self.map_case(|ch| ch.to_ascii_lowercase()),
            "ctrl+c" | "ctrl+x" => {
                let range = self.selected();
                if !range.is_empty() {
                    *clipboard = self.glyphs[range].iter().map(|glyph| glyph.ch).collect();
                    if keys == "ctrl+x" {
                        self.replace("");
                    }
                }
            }
            "ctrl+v" => self.replace(&clipboard.clone()),
            "backspace" => {
                let range = self.selected();
                if range.is_empty() && 0 < range.start {
                    self.selection = (range.start - 1, range.start);
                }
                self.replace("");
            }
            "delete" => {
                let range = self.selected();
                if range.is_empty() {
                    self.selection = (range.start, (range.start + 1).min(end));
                }
                self.replace("");
            }
            "end" => self.selection = (end, end),
            "home" => self.selection = (0, 0),
            "left" => {
                let at = self.selected().start.saturating_sub(1);
                self.selection = (at, at);
            }
            "right" => {
                let at = (self.selected().end + 1).min(end);
                self.selection = (at, at);
            }
            _ => {}
        }
    }

    /// Changes the letters of the selection, or of the whole text if nothing is selected.
    fn map_case(&mut self, case: impl Fn(char) -> char) {
        let mut range = self.selected();
        if range.is_empty() {
            range = 0..self.glyphs.len();
        }
        let mut glyphs = self.glyphs.clone();
        for glyph in &mut glyphs[range] {
            glyph.ch = case(glyph.ch);
        }
        self.change(glyphs);
    }

    /// Puts text in place of the selection.
    fn replace(&mut self, text: &str) {
        let range = self.selected();
        let room = MAX_TEXT_CHARS.saturating_sub(self.glyphs.len() - range.len());
        let typed: Vec<Glyph> = text
            .chars()
            .filter(|ch| !ch.is_control())
            .take(room)
            .map(Glyph::plain)
            .collect();
        let at = range.start + typed.len();
        let mut glyphs = self.glyphs.clone();
        glyphs.splice(range, typed);
        self.change(glyphs);
        self.selection = (at, at);
    }

    fn change(&mut self, glyphs: Vec<Glyph>) {
        if glyphs == self.glyphs {
            return;
        }
        let before = std::mem::replace(&mut self.glyphs, glyphs);
        if self.undo.len() == UNDO_DEPTH {
            self.undo.remove(0);
        }
        self.undo.push(before);
        self.redo.clear();
        self.saved = false;
    }

    fn step_back(&mut self) {
        if let Some(glyphs) = self.undo.pop() {
            self.redo.push(std::mem::replace(&mut self.glyphs, glyphs));
            self.saved = false;
        }
    }

    fn step_forward(&mut self) {
        if let Some(glyphs) = self.redo.pop() {
            self.undo.push(std::mem::replace(&mut self.glyphs, glyphs));
            self.saved = false;
        }
    }
}
