//! The Evals screen: launching, cancelling and resuming evaluations; marking two to compare.

use crate::event::{Command, EvalRequest, EvalWhen, EvaluationStatus};
use crate::tui::app::{App, Overlay};
use crate::tui::evals::{rows, selected_place, toggle_mark};
use crate::tui::launch::LaunchForm;
use crate::tui::theme::Role;
use crate::tui::update::Effect;
use crate::types::Protocol;

use super::operate::send;

/// Opens the form; an argument names the task set.
pub(super) fn evaluate(app: &mut App, argument: &str) -> Vec<Effect> {
    match app.can_command() {
        Ok(()) => app.ui.overlay = Some(Overlay::Launch(LaunchForm::new(&app.run, argument))),
        Err(reason) => app.say(Role::Warning, format!("not sent: {reason}")),
    }
    Vec::new()
}

/// The number an argument or the selection names.
fn named(app: &App, argument: &str) -> Option<u32> {
    let number = if argument.is_empty() {
        let rows = rows(app);
        let row = rows.get(selected_place(app, &rows));
        row.filter(|row| !row.key.is_other)
            .and_then(|row| row.state.number)
    } else {
        argument.trim_start_matches('#').parse().ok()
    };
    number.filter(|number| app.run.evaluation(*number).is_some())
}

/// The same; says so where there is none.
fn number(app: &mut App, argument: &str, what: &str) -> Option<u32> {
    let known = named(app, argument);
    if known.is_none() {
        let text = format!("no such evaluation of this run; write its number, as in: {what} 3");
        app.say(Role::Danger, text);
    }
    known
}

/// The evaluation as it is asked about.
pub(super) fn victim(app: &App, argument: &str) -> Result<String, String> {
    let number = named(app, argument);
    let state = number.and_then(|number| app.run.evaluation(number));
    match (number, state) {
        (Some(number), Some(state)) if state.is_open() => Ok(format!(
            "#{number} with {} of {} trials done",
            state.done, state.total
        )),
        (Some(number), Some(_)) => Err(format!("evaluation {number} neither waits nor runs")),
        _ => Err(
            "no such evaluation of this run; write its number, as in: cancel-evaluation 3"
                .to_owned(),
        ),
    }
}

pub(super) fn cancel(app: &mut App, argument: &str) -> Vec<Effect> {
    let Some(evaluation) = number(app, argument, "cancel-evaluation") else {
        return Vec::new();
    };
    if app
        .run
        .evaluation(evaluation)
        .is_some_and(|one| !one.is_open())
    {
        app.say(
            Role::Warning,
            format!("evaluation {evaluation} neither waits nor runs"),
        );
        return Vec::new();
    }
    send(app, Command::CancelEvaluation { evaluation })
}

/// Goes on with a cancelled evaluation, on as many desktops as it was asked for.
pub(super) fn resume(app: &mut App, argument: &str) -> Vec<Effect> {
    let Some(evaluation) = number(app, argument, "resume-evaluation") else {
        return Vec::new();
    };
    let state = app.run.evaluation(evaluation);
    let is_cancelled =
        state.is_some_and(|state| matches!(state.status, EvaluationStatus::Cancelled { .. }));
    if !is_cancelled {
        app.say(
            Role::Warning,
            format!("evaluation {evaluation} was not cancelled"),
        );
        return Vec::new();
    }
    let when = state
        .and_then(|state| state.request.as_ref())
        .map_or(EvalWhen::SafePoint, |request| request.when);
    let request = EvalRequest {
        when,
        resume: Some(evaluation),
        ..EvalRequest::default()
    };
    send(app, Command::Evaluate(request))
}

pub(super) fn mark(app: &mut App, _: &str) -> Vec<Effect> {
    toggle_mark(app);
    Vec::new()
}

pub(super) fn flips(app: &mut App, _: &str) -> Vec<Effect> {
    app.ui.evals.shows_flips = !app.ui.evals.shows_flips;
    Vec::new()
}

/// Counts flips under the next protocol.
pub(super) fn protocol(app: &mut App, _: &str) -> Vec<Effect> {
    app.ui.evals.protocol = match app.ui.evals.protocol {
        Protocol::Standard => Protocol::Hard,
        Protocol::Hard => Protocol::Plain,
        Protocol::Plain => Protocol::Standard,
    };
    Vec::new()
}
