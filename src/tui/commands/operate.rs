//! Asking something of the engine. Nothing changes here but the note that it was asked.

use crate::event::{Command, SafePoint};
use crate::tui::app::App;
use crate::tui::journal;
use crate::tui::theme::Role;
use crate::tui::update::Effect;
use crate::tui::wording::parse_safe_point;

/// Sends a command, or says why that is impossible.
pub(in crate::tui) fn send(app: &mut App, request: Command) -> Vec<Effect> {
    if let Err(reason) = app.can_command() {
        app.say(Role::Warning, format!("not sent: {reason}"));
        return Vec::new();
    }
    let ticket = journal::note_sent(app, request.clone());
    vec![Effect::Send(ticket, request)]
}

pub(super) fn pause(app: &mut App, argument: &str) -> Vec<Effect> {
    let at = match argument {
        "" => Some(SafePoint::EnvStep),
        name => parse_safe_point(name),
    };
    match at {
        Some(at) => send(app, Command::Pause { at }),
        None => refuse(
            app,
            "pause at env-step, batch, pre-update or post-checkpoint",
        ),
    }
}

pub(super) fn resume(app: &mut App, _: &str) -> Vec<Effect> {
    send(app, Command::Resume)
}

pub(super) fn step_phase(app: &mut App, _: &str) -> Vec<Effect> {
    send(app, Command::StepPhase)
}

pub(super) fn step_iteration(app: &mut App, _: &str) -> Vec<Effect> {
    send(app, Command::StepIteration)
}

pub(super) fn checkpoint(app: &mut App, _: &str) -> Vec<Effect> {
    send(app, Command::Checkpoint)
}

pub(super) fn learning_rate(app: &mut App, argument: &str) -> Vec<Effect> {
    match parse_positive(argument) {
        Some(value) => send(app, Command::SetLearningRate { value }),
        None => refuse(app, "write a rate above 0, as in: lr 1e-4"),
    }
}

pub(super) fn temperature(app: &mut App, argument: &str) -> Vec<Effect> {
    match parse_positive(argument) {
        Some(value) => send(app, Command::SetTemperature { value }),
        None => refuse(app, "write a temperature above 0, as in: temperature 0.8"),
    }
}

pub(super) fn desktops(app: &mut App, argument: &str) -> Vec<Effect> {
    match argument.parse().ok().filter(|count| *count > 0) {
        Some(value) => send(app, Command::SetDesktops { value }),
        None => refuse(app, "write a count of at least 1, as in: desktops 8"),
    }
}

/// Stops the run; the console leaves once the engine has accepted.
pub(super) fn stop(app: &mut App, _: &str) -> Vec<Effect> {
    let effects = send(app, Command::Stop);
    app.ui.leaving = !effects.is_empty();
    effects
}

/// What stopping takes: the run, by its name.
pub(super) fn run_to_stop(app: &App, _: &str) -> Result<String, String> {
    match app.run_name() {
        "" => Err("the run has no name yet".to_owned()),
        name => Ok(name.to_owned()),
    }
}

fn parse_positive(text: &str) -> Option<f64> {
    text.parse()
        .ok()
        .filter(|value: &f64| value.is_finite() && *value > 0.0)
}

fn refuse(app: &mut App, text: &str) -> Vec<Effect> {
    app.say(Role::Danger, text);
    Vec::new()
}
