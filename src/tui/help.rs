//! What the help lists: commands whose keys hold now, those of the focused pane first; then the
//! other screens'. A search narrows it, enter runs the selected command.

use crate::tui::app::{App, SCREENS, Screen};
use crate::tui::commands::{COMMANDS, CommandRow, Scope};
use crate::tui::focus::{means_something, scopes};
use crate::tui::keymap::scope_name;

/// State of the help.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Help {
    /// Whether the second page is shown: codes and colors.
    pub legend: bool,
    /// The command in focus, counted from 0; on the second page the first line shown.
    pub selected: usize,
    /// What is searched for.
    pub query: String,
    /// Whether that is being typed.
    pub types: bool,
}

/// One line of it.
pub enum HelpLine {
    /// The head of a section.
    Title(String),
    /// A command.
    Command(&'static CommandRow),
}

/// All lines for what is searched.
pub fn help_lines(app: &App, query: &str) -> Vec<HelpLine> {
    let here = scopes(app);
    let mut sections: Vec<(String, Vec<&'static CommandRow>)> = Vec::new();
    let mut add = |title: String, wanted: &dyn Fn(&CommandRow) -> bool| {
        let rows = COMMANDS
            .iter()
            .filter(|row| wanted(row) && means_something(app, row) && matches(app, row, query));
        sections.push((title, rows.collect()));
    };
    for scope in here.iter().filter(|scope| **scope != Scope::Global) {
        add(capitalized(&scope_name(*scope)), &|row| row.scope == *scope);
    }
    add("Run (asks the engine)".to_owned(), &|row| {
        row.operates && row.scope == Scope::Global
    });
    add("Recorded runs".to_owned(), &|row| row.recorded);
    add("Everywhere".to_owned(), &|row| {
        row.scope == Scope::Global && !row.operates && !row.recorded
    });
    for screen in SCREENS {
        let held = (screen == Screen::Rollout).then_some(Scope::Held);
        for scope in held
            .into_iter()
            .chain([Scope::On(screen), Scope::Detail(screen)])
        {
            if !here.contains(&scope) {
                add(capitalized(&scope_name(scope)), &|row| row.scope == scope);
            }
        }
    }
    let filled = sections.into_iter().filter(|(_, rows)| !rows.is_empty());
    filled
        .flat_map(|(title, rows)| {
            let title = std::iter::once(HelpLine::Title(title));
            title.chain(rows.into_iter().map(HelpLine::Command))
        })
        .collect()
}

/// The commands among them, in order.
pub fn help_commands(app: &App, query: &str) -> Vec<&'static CommandRow> {
    let rows = help_lines(app, query).into_iter();
    rows.filter_map(|line| match line {
        HelpLine::Command(row) => Some(row),
        HelpLine::Title(_) => None,
    })
    .collect()
}

fn matches(app: &App, row: &CommandRow, query: &str) -> bool {
    let query = query.to_lowercase();
    let keys = app.ui.keymap.keys_of(row);
    row.name.contains(&query)
        || row.doc.to_lowercase().contains(&query)
        || keys.iter().any(|key| key.to_lowercase() == query)
}

fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| {
        first.to_uppercase().chain(chars).collect()
    })
}
