//! Asking before a command that takes something away.

use crate::tui::app::{App, Overlay, Question};
use crate::tui::theme::Role;
use crate::tui::update::Effect;

use super::{CommandRow, Danger};

/// Runs a command, or asks first where its danger wants that.
pub(in crate::tui) fn invoke(app: &mut App, row: &CommandRow, argument: &str) -> Vec<Effect> {
    let Some(victim) = row.victim.filter(|_| row.danger >= Danger::Costly) else {
        return (row.run)(app, argument);
    };
    if let Err(reason) = app.can_command() {
        app.say(Role::Warning, format!("not sent: {reason}"));
        return Vec::new();
    }
    let victim = match victim(app, argument) {
        Ok(victim) => victim,
        Err(reason) => {
            app.say(Role::Danger, reason);
            return Vec::new();
        }
    };
    let question = Question {
        command: row.name,
        argument: argument.to_owned(),
        victim,
    };
    // The demo's run was made to be thrown away.
    let by_name = row.danger == Danger::Irreversible && !app.ui.is_demo;
    app.ui.overlay = Some(if by_name {
        Overlay::Naming(question, String::new())
    } else {
        Overlay::Confirm(question)
    });
    Vec::new()
}
