//! Text out: copying, exporting, the operator's pager and editor.

use std::path::PathBuf;

use crate::tui::app::App;
use crate::tui::outlet::Reader;
use crate::tui::text_out;
use crate::tui::theme::Role;
use crate::tui::update::Effect;
use crate::tui::wording;

fn copy(app: &mut App, what: &'static str, text: Option<String>) -> Vec<Effect> {
    if let Some(text) = text.filter(|text| !text.is_empty()) {
        return vec![Effect::Copy { what, text }];
    }
    app.say(Role::Warning, format!("there is no {what} here"));
    Vec::new()
}

pub(super) fn copy_id(app: &mut App, _: &str) -> Vec<Effect> {
    let id = text_out::episode_id(app).map(|id| id.to_string());
    copy(app, "episode", id)
}

pub(super) fn copy_thought(app: &mut App, _: &str) -> Vec<Effect> {
    let thought = text_out::step(app).map(|step| step.thought.clone());
    copy(app, "thought", thought)
}

pub(super) fn copy_action(app: &mut App, _: &str) -> Vec<Effect> {
    let action = text_out::step(app).map(|step| wording::actions(&step.actions));
    copy(app, "action", action)
}

pub(super) fn copy_ctl(app: &mut App, _: &str) -> Vec<Effect> {
    let line = text_out::ctl_line(app);
    copy(app, "command", line)
}

pub(super) fn copy_view(app: &mut App, _: &str) -> Vec<Effect> {
    let text = text_out::view(app);
    copy(app, "view", Some(text))
}

/// Name of a file for what the screen shows.
fn file_name(app: &App) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let run: String = app
        .run_name()
        .chars()
        .map(|c| if is_plain(c) { c } else { '_' })
        .collect();
    format!("{run}-{}.txt", app.ui.screen.title().to_lowercase())
}

pub(super) fn export(app: &mut App, path: &str) -> Vec<Effect> {
    vec![Effect::Export {
        path: (!path.is_empty()).then(|| PathBuf::from(path)),
        name: file_name(app),
        text: text_out::view(app),
    }]
}

fn read(app: &App, with: Reader) -> Vec<Effect> {
    vec![Effect::Read {
        name: file_name(app),
        text: text_out::view(app),
        with,
    }]
}

pub(super) fn pager(app: &mut App, _: &str) -> Vec<Effect> {
    read(app, Reader::Pager)
}

pub(super) fn editor(app: &mut App, _: &str) -> Vec<Effect> {
    read(app, Reader::Editor)
}
