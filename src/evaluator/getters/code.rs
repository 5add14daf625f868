//! Visual Studio Code: a file that it writes when told a command.

use std::time::Duration;

use super::{GetterError, failed, files};
use crate::env::RealDesktop;
use crate::evaluator::found::{Found, FoundFile};
use crate::types::Action;
use crate::types::osworld::FileName;

/// What it takes to write the file.
const WRITING: Duration = Duration::from_secs(1);

/// `get_vscode_config`: the command goes into the palette of whatever window is in front.
pub(super) async fn config(
    desktop: RealDesktop<'_>,
    command: &str,
    path: &str,
    dest: &FileName,
) -> Result<Found, GetterError> {
    let keys = ["ctrl", "shift", "p"].map(str::to_owned).into();
    let actions = [
        Action::Hotkey { keys },
        Action::Type {
            content: command.to_owned(),
        },
        Action::Press {
            key: "enter".to_owned(),
        },
    ];
    for action in &actions {
        let acted = desktop.machine.guest().act(action).await;
        acted.map_err(failed)?;
    }
    tokio::time::sleep(WRITING).await;
    let bytes = files::read(desktop, path).await?;
    Ok(bytes.map_or(Found::NOTHING, |bytes| {
        Found::File(FoundFile::new(dest.as_str(), bytes))
    }))
}
