//! Evaluations as the operator reads them: the newest first. Pure: from `RunState`.

use crate::event::{EvalReport, RunState};
use crate::tui::app::App;

/// View of the Evals screen.
#[derive(Clone, Debug, Default)]
pub struct EvalsUi {
    /// The evaluation looked at, by its place in the list; `None` is the newest.
    pub selected: Option<usize>,
}

/// All evaluations, the newest first.
pub fn rows(run: &RunState) -> Vec<&EvalReport> {
    run.evaluations.iter().rev().collect()
}

/// Looks at another evaluation.
pub fn move_by(app: &mut App, by: isize) {
    let last = app.run.evaluations.len().saturating_sub(1);
    let place = app.ui.evals.selected.unwrap_or(0).min(last);
    app.ui.evals.selected = Some(place.saturating_add_signed(by).min(last));
}
