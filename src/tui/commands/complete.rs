//! What an argument may be: values to choose from, by what the run and the console know.

use crate::event::SafePoint;
use crate::tui::app::{App, SCREENS};
use crate::tui::fleet::rows_in_order;
use crate::tui::theme::theme_names;
use crate::tui::wording;

/// A value an argument may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// As it is typed.
    pub value: String,
    /// What it is.
    pub doc: String,
}

fn choice(value: impl Into<String>, doc: impl Into<String>) -> Choice {
    Choice {
        value: value.into(),
        doc: doc.into(),
    }
}

pub(super) fn safe_points(_: &App) -> Vec<Choice> {
    [
        (SafePoint::EnvStep, "before any desktop's next step"),
        (SafePoint::Batch, "once the rollouts under way are complete"),
        (SafePoint::PreUpdate, "before the updates"),
        (SafePoint::PostCheckpoint, "after the next checkpoint"),
    ]
    .map(|(point, doc)| choice(wording::safe_point(point), doc))
    .into()
}

pub(super) fn switches(_: &App) -> Vec<Choice> {
    ["on", "off"].map(|word| choice(word, "")).into()
}

pub(super) fn themes(_: &App) -> Vec<Choice> {
    theme_names().map(|name| choice(name, "")).collect()
}

pub(super) fn screens(_: &App) -> Vec<Choice> {
    SCREENS
        .into_iter()
        .map(|screen| choice(screen.title().to_lowercase(), ""))
        .collect()
}

/// Groups and tasks of the fleet.
pub fn places(app: &App) -> Vec<Choice> {
    rows_in_order(app)
        .iter()
        .map(|row| {
            let number = row.key.number();
            choice(super::goto::row_name(row.key, number), row.task.0.clone())
        })
        .collect()
}
