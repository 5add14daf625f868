//! What programs on the desktop write.

use super::{GetterError, failed};
use crate::env::RealDesktop;
use crate::env::guest::{Command, GuestError, Output};
use crate::evaluator::found::Found;
use crate::types::osworld::getter::CommandLine;

/// `get_vm_command_line`.
pub(super) async fn output(
    desktop: RealDesktop<'_>,
    command: &CommandLine,
) -> Result<Found, GetterError> {
    let output = run(desktop, command).await?;
    Ok(Found::Value(output.map(|output| output.stdout).into()))
}

/// `get_vm_command_error`.
pub(super) async fn error(
    desktop: RealDesktop<'_>,
    command: &CommandLine,
) -> Result<Found, GetterError> {
    let output = run(desktop, command).await?;
    Ok(Found::Value(output.map(|output| output.stderr).into()))
}

/// Runs a program; none where the server says that it could not, or not in time.
pub(super) async fn run(
    desktop: RealDesktop<'_>,
    command: &CommandLine,
) -> Result<Option<Output>, GetterError> {
    let command = Command::Written {
        command: command.command.clone(),
        shell: command.shell,
    };
    match desktop.machine.guest().execute(&command).await {
        Err(GuestError::Reported { .. }) => Ok(None),
        output => output.map(Some).map_err(failed),
    }
}
