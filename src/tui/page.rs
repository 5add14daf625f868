//! A page of text over the screen: the effective keys, a thought in full, what a pager would show.

use crate::tui::app::App;
use crate::tui::keymap::{Binding, scope_name};
use crate::tui::keys::chord_name;
use crate::tui::text::pad;
use crate::tui::theme::Role;

/// Pieces of one line, each with its role.
pub type PageLine = Vec<(String, Role)>;

/// Text that is scrolled.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// What it is.
    pub title: String,
    /// All of it.
    pub lines: Vec<PageLine>,
    /// The first line shown.
    pub scroll: usize,
}

impl Page {
    /// A page shown from its first line on.
    pub fn new(title: impl Into<String>, lines: Vec<PageLine>) -> Self {
        Self {
            title: title.into(),
            lines,
            scroll: 0,
        }
    }

    /// A page of plain lines; those that begin with `+`, `-` or `#` look like a comparison's.
    pub fn of_text(title: impl Into<String>, lines: &[String]) -> Self {
        let line = |line: &String| {
            let text = crate::tui::text::clean(line);
            let role = match text.trim_start().chars().next() {
                Some('+') => Role::Good,
                Some('-') => Role::Bad,
                Some('#') => Role::Muted,
                _ => Role::Text,
            };
            vec![(text, role)]
        };
        Self::new(title, lines.iter().map(line).collect())
    }

    /// The page after scrolling by so many lines.
    #[must_use]
    pub fn scrolled(mut self, by: isize) -> Self {
        let last = self.lines.len().saturating_sub(1);
        self.scroll = self.scroll.saturating_add_signed(by).min(last);
        self
    }
}

/// The effective keys: conflicts first, then every binding.
pub fn keys_page(app: &App) -> Page {
    let keymap = &app.ui.keymap;
    let conflicts = keymap.conflicts();
    let mut lines: Vec<PageLine> = conflicts
        .into_iter()
        .map(|text| vec![("! ".to_owned(), Role::Warning), (text, Role::Warning)])
        .collect();
    if !lines.is_empty() {
        lines.push(Vec::new());
    }
    lines.extend(keymap.bindings().iter().map(key_line));
    Page::new("Keys", lines)
}

fn key_line(binding: &Binding) -> PageLine {
    let command = format!("{} {}", binding.row.name, binding.argument);
    let own = if binding.is_own { "  keys.toml" } else { "" };
    vec![
        (pad(&chord_name(&binding.chord), 12), Role::Key),
        (pad(&command, 24), Role::Text),
        (pad(binding.row.danger.word(), 13), Role::Muted),
        (scope_name(binding.scope), Role::Muted),
        (own.to_owned(), Role::Running),
    ]
}
