//! The line a command is typed into.

use crossterm::event::KeyCode;

use crate::tui::commands::{CommandRow, command_named, matching_commands};
use crate::tui::keys::Key;

/// A command being typed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prompt {
    /// What is typed.
    pub text: String,
    /// The proposal in focus.
    pub selected: usize,
    /// How far back in the history the text was taken from; 0 is not.
    pub back: usize,
}

/// What a key did to a prompt.
#[derive(Clone, Debug, PartialEq)]
pub enum PromptReply {
    /// It goes on.
    Open(Prompt),
    /// It was given up.
    Closed,
    /// This line shall be run.
    Run(String),
}

impl Prompt {
    /// Commands that what is typed may become; none once an argument is typed.
    pub fn proposals(&self) -> Vec<&'static CommandRow> {
        let typed = self.text.trim_start();
        match typed.split_once(' ') {
            Some((name, _)) => command_named(name).into_iter().collect(),
            None => matching_commands(typed),
        }
    }

    /// Takes a key in.
    pub fn press(mut self, key: Key, typed_before: &[String]) -> PromptReply {
        match key.code {
            KeyCode::Esc => return PromptReply::Closed,
            KeyCode::Char('c') if key.ctrl => return PromptReply::Closed,
            KeyCode::Enter => return self.enter(),
            KeyCode::Tab => self.complete(),
            KeyCode::Down => self.selected = self.selected.saturating_add(1),
            KeyCode::Up if self.selected > 0 => self.selected -= 1,
            KeyCode::Up => self.recall(typed_before),
            KeyCode::Backspace if self.text.is_empty() => return PromptReply::Closed,
            _ => {
                edit(&mut self.text, key);
                self.selected = 0;
            }
        }
        self.selected = self.selected.min(self.proposals().len().saturating_sub(1));
        PromptReply::Open(self)
    }

    fn enter(mut self) -> PromptReply {
        let name = self.text.trim().split(' ').next().unwrap_or("");
        if name.is_empty() && self.selected == 0 {
            return PromptReply::Closed;
        }
        let chosen = self.proposals().get(self.selected).copied();
        match chosen {
            Some(row) if row.name != name && row.argument.is_empty() => {
                PromptReply::Run(row.name.to_owned())
            }
            Some(row) if row.name != name => {
                self.complete();
                PromptReply::Open(self)
            }
            _ => PromptReply::Run(self.text),
        }
    }

    fn complete(&mut self) {
        if let Some(row) = self.proposals().get(self.selected) {
            let space = if row.argument.is_empty() { "" } else { " " };
            if !self.text.trim_start().contains(' ') {
                self.text = format!("{}{space}", row.name);
            }
            self.selected = 0;
        }
    }

    fn recall(&mut self, typed_before: &[String]) {
        let line = typed_before
            .len()
            .checked_sub(self.back + 1)
            .map(|place| &typed_before[place]);
        if let Some(line) = line {
            self.text.clone_from(line);
            self.back += 1;
        }
    }
}

/// Takes a key into a line of text: characters, backspace, ctrl-u, ctrl-w.
pub fn edit(text: &mut String, key: Key) {
    match key.code {
        KeyCode::Backspace => {
            text.pop();
        }
        KeyCode::Char('u') if key.ctrl => text.clear(),
        KeyCode::Char('w') if key.ctrl => {
            let kept = text.trim_end().rfind(' ').map_or(0, |place| place + 1);
            text.truncate(kept);
        }
        _ => text.extend(key.text()),
    }
}
