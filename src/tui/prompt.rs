//! The line a command is typed into: fuzzy over all commands, then over what the argument may be;
//! `@` lists groups and tasks, `!!` is the line before.

use crossterm::event::KeyCode;
use nucleo_matcher::pattern::{AtomKind, CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};

use crate::tui::app::App;
use crate::tui::commands::{Choice, CommandRow, command_named, matching_commands, places};
use crate::tui::focus::means_something;
use crate::tui::keys::Key;

/// The line before.
const AGAIN: &str = "!!";

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

/// What the typed text may become.
#[derive(Clone)]
pub struct Proposal {
    /// The whole line.
    pub line: String,
    /// What is shown of it.
    pub label: String,
    /// Its command.
    pub row: &'static CommandRow,
    /// What it does.
    pub doc: String,
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
    /// One that begins with a text.
    pub fn with_text(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            ..Self::default()
        }
    }

    /// What is typed may become one of these, the best first.
    pub fn proposals(&self, app: &App) -> Vec<Proposal> {
        let typed = self.text.trim_start();
        if let Some(place) = typed.strip_prefix('@') {
            let row = command_named("goto");
            return row.map_or(Vec::new(), |row| values(row, &places(app), place));
        }
        let Some((name, argument)) = typed.split_once(' ') else {
            let rows = matching_commands(typed).into_iter();
            return rows
                .filter(|row| means_something(app, row))
                .map(bare)
                .collect();
        };
        match command_named(name) {
            Some(row) => match row.complete {
                Some(complete) => values(row, &complete(app), argument),
                None => vec![Proposal {
                    line: self.text.clone(),
                    ..bare(row)
                }],
            },
            None => Vec::new(),
        }
    }

    /// Takes a key in.
    pub fn press(mut self, key: Key, app: &App) -> PromptReply {
        match key.code {
            KeyCode::Esc => return PromptReply::Closed,
            KeyCode::Char('c') if key.ctrl => return PromptReply::Closed,
            KeyCode::Enter => return self.enter(app),
            KeyCode::Tab => self.complete(app),
            KeyCode::Down => self.selected = self.selected.saturating_add(1),
            KeyCode::Up if self.selected > 0 => self.selected -= 1,
            KeyCode::Up => self.recall(&app.ui.typed),
            KeyCode::Backspace if self.text.is_empty() => return PromptReply::Closed,
            _ => {
                edit(&mut self.text, key);
                self.selected = 0;
            }
        }
        self.selected = self
            .selected
            .min(self.proposals(app).len().saturating_sub(1));
        PromptReply::Open(self)
    }

    fn enter(mut self, app: &App) -> PromptReply {
        let typed = self.text.trim();
        if typed.is_empty() && self.selected == 0 {
            return PromptReply::Closed;
        }
        if typed == AGAIN {
            let before = app.ui.typed.last().cloned();
            return before.map_or(PromptReply::Closed, PromptReply::Run);
        }
        let proposals = self.proposals(app);
        let is_whole = self.selected == 0
            && (proposals.iter().any(|one| one.line == typed)
                || !self.text.ends_with(' ')
                    && command_named(typed).is_some_and(|row| !needs_argument(row)));
        match proposals.into_iter().nth(self.selected) {
            Some(chosen) if !is_whole => {
                let has_argument = chosen.line.contains(' ');
                if has_argument || !needs_argument(chosen.row) {
                    return PromptReply::Run(chosen.line);
                }
                self.complete(app);
                PromptReply::Open(self)
            }
            _ => PromptReply::Run(typed.to_owned()),
        }
    }

    fn complete(&mut self, app: &App) {
        if let Some(chosen) = self.proposals(app).into_iter().nth(self.selected) {
            let takes_more = !chosen.line.contains(' ') && !chosen.row.argument.is_empty();
            let space = if takes_more { " " } else { "" };
            self.text = format!("{}{space}", chosen.line);
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

fn needs_argument(row: &CommandRow) -> bool {
    !row.argument.is_empty() && !row.argument.starts_with('[')
}

fn bare(row: &'static CommandRow) -> Proposal {
    Proposal {
        line: row.name.to_owned(),
        label: format!("{} {}", row.name, row.argument)
            .trim_end()
            .to_owned(),
        row,
        doc: row.doc.to_owned(),
    }
}

fn values(row: &'static CommandRow, choices: &[Choice], typed: &str) -> Vec<Proposal> {
    let texts = choices
        .iter()
        .map(|choice| format!("{} {}", choice.value, choice.doc));
    let ranked = rank(typed.trim(), texts);
    let proposal = |choice: &Choice| Proposal {
        line: format!("{} {}", row.name, choice.value),
        label: choice.value.clone(),
        row,
        doc: choice.doc.clone(),
    };
    ranked
        .into_iter()
        .map(|place| proposal(&choices[place]))
        .collect()
}

/// Places of the texts that contain the letters of `typed` in order, the best first.
pub fn rank(typed: &str, texts: impl Iterator<Item = String>) -> Vec<usize> {
    let mut config = Config::DEFAULT;
    config.prefer_prefix = true;
    let mut matcher = Matcher::new(config);
    let pattern = Pattern::new(
        typed,
        CaseMatching::Ignore,
        Normalization::Smart,
        AtomKind::Fuzzy,
    );
    let mut buffer = Vec::new();
    let mut scored: Vec<(u32, usize)> = texts
        .enumerate()
        .filter_map(|(place, text)| {
            let text = Utf32Str::new(&text, &mut buffer);
            Some((pattern.score(text, &mut matcher)?, place))
        })
        .collect();
    scored.sort_by_key(|(score, place)| (std::cmp::Reverse(*score), *place));
    scored.into_iter().map(|(_, place)| place).collect()
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
