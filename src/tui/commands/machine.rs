//! Looking at the machine under a desktop.

use crate::tui::app::{App, Overlay};
use crate::tui::machine_log::MachineLogUi;
use crate::tui::theme::Role;
use crate::tui::update::Effect;

use super::single::desktop;

/// Shows the log of a desktop's machine; what is read of it is asked for once it is open.
pub(super) fn log(app: &mut App, argument: &str) -> Vec<Effect> {
    match desktop(app, argument, "vm-log") {
        Ok(desktop) if desktop as usize >= app.run.desktops.len() => {
            app.say(Role::Danger, format!("there is no desktop {desktop}"));
        }
        Ok(desktop) => {
            let log = MachineLogUi::new(desktop);
            app.ui.overlay = Some(Overlay::MachineLog(Box::new(log)));
        }
        Err(reason) => app.say(Role::Danger, reason),
    }
    Vec::new()
}
