//! What is on the screen.

use serde_json::json;

use super::{GetterError, failed, value};
use crate::env::RealDesktop;
use crate::env::guest::GuestError;
use crate::evaluator::found::{Found, FoundFile};
use crate::types::ScreenSize;
use crate::types::osworld::FileName;

/// `get_accessibility_tree`.
pub(super) async fn accessibility_tree(desktop: RealDesktop<'_>) -> Result<Found, GetterError> {
    let tree = desktop.machine.guest().accessibility_tree().await;
    tree.map(value).map_err(failed)
}

/// `get_vm_terminal_output`.
pub(super) async fn terminal_output(desktop: RealDesktop<'_>) -> Result<Found, GetterError> {
    let output = desktop.machine.guest().terminal_output().await;
    output.map(value).map_err(failed)
}

/// `get_vm_screen_size`.
pub(super) async fn screen_size(desktop: RealDesktop<'_>) -> Result<Found, GetterError> {
    let size = desktop.machine.guest().screen_size().await;
    Ok(Found::Value(written(size.map_err(failed)?)))
}

/// `get_vm_window_size`. The original server answers 500 where there is no such window.
pub(super) async fn window_size(
    desktop: RealDesktop<'_>,
    class: &str,
) -> Result<Found, GetterError> {
    match desktop.machine.guest().window_size(class).await {
        Err(GuestError::Status { .. } | GuestError::Reported { .. }) | Ok(None) => {
            Ok(Found::NOTHING)
        }
        Ok(Some(size)) => Ok(Found::Value(written(size))),
        Err(error) => Err(failed(error)),
    }
}

fn written(size: ScreenSize) -> serde_json::Value {
    json!({"width": size.width, "height": size.height})
}

/// `get_vm_wallpaper`: an empty file where there is none. The original server answers 500 to that
/// too.
pub(super) async fn wallpaper(
    desktop: RealDesktop<'_>,
    dest: &FileName,
) -> Result<Found, GetterError> {
    let bytes = match desktop.machine.guest().wallpaper().await {
        Err(GuestError::Status { .. } | GuestError::Reported { .. }) => None,
        bytes => bytes.map_err(failed)?,
    };
    let bytes = bytes.unwrap_or_default();
    Ok(Found::File(FoundFile::new(dest.as_str(), bytes)))
}
