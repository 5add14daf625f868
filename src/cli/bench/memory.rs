//! What an idle desktop costs, by what the system says this process holds.

use std::sync::Arc;

use anyhow::Context;

use crate::config::Profile;
use crate::session::open_desktops;
use crate::types::Task;

/// Memory of one desktop that waits for its next action.
#[derive(Clone, Copy, Debug)]
pub(super) struct Desktop {
    /// Resident bytes, its screenshot not counted.
    pub(super) bytes: u64,
    /// Bytes of its screenshot.
    pub(super) screenshot_bytes: u64,
}

/// Starts all desktops of the profile on tasks, in turn, and sees by how much the process grew.
pub(super) async fn idle_desktop(
    profile: &Profile,
    tasks: &[Arc<Task>],
) -> anyhow::Result<Desktop> {
    let count = profile.env.desktops;
    let before = resident_bytes()?;
    let mut desktops = open_desktops(&profile.env, count as u32)?;
    let mut shown = Vec::with_capacity(count);
    for (index, desktop) in desktops.iter_mut().enumerate() {
        let task = &tasks[index % tasks.len()];
        // A desktop that a fault law breaks is as large as the others.
        shown.extend(desktop.reset(task, index as u64).await);
    }
    let grown = resident_bytes()?.saturating_sub(before);
    let screenshots: u64 = shown
        .iter()
        .map(|observation| observation.screenshot.rgb().len() as u64)
        .sum();
    Ok(Desktop {
        bytes: grown.saturating_sub(screenshots) / count as u64,
        screenshot_bytes: screenshots / shown.len().max(1) as u64,
    })
}

/// Bytes of this process in memory now.
fn resident_bytes() -> anyhow::Result<u64> {
    status_bytes("VmRSS:")
}

/// The most bytes of this process that were in memory at a time; `None` where the system does
/// not say.
pub(super) fn peak_bytes() -> Option<u64> {
    status_bytes("VmHWM:").ok()
}

/// A size out of what Linux says of this process.
fn status_bytes(name: &str) -> anyhow::Result<u64> {
    const PATH: &str = "/proc/self/status";
    let status = std::fs::read_to_string(PATH).with_context(|| format!("cannot read {PATH}"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.trim().strip_suffix(" kB"))
        .and_then(|kib| kib.parse::<u64>().ok())
        .map(|kib| kib * 1024)
        .with_context(|| format!("{PATH} has no {name}"))
}
