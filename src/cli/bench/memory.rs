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
    let mut desktops = open_desktops(profile, count as u32)?;
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

/// The same of another process.
pub(super) fn peak_of(pid: u32) -> anyhow::Result<u64> {
    status_bytes_of(&format!("/proc/{pid}/status"), "VmHWM:")
}

/// Seconds that a process has kept a core busy.
pub(super) fn cpu_seconds(pid: u32) -> anyhow::Result<f64> {
    let path = format!("/proc/{pid}/stat");
    let stat = std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    // The name, in parentheses, may contain anything; user and system ticks are the 12th and
    // 13th field after it.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let ticks: u64 = fields
        .split_whitespace()
        .skip(11)
        .take(2)
        .filter_map(|ticks| ticks.parse::<u64>().ok())
        .sum();
    Ok(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}

/// A size out of what Linux says of this process.
fn status_bytes(name: &str) -> anyhow::Result<u64> {
    status_bytes_of("/proc/self/status", name)
}

fn status_bytes_of(path: &str, name: &str) -> anyhow::Result<u64> {
    let status = std::fs::read_to_string(path).with_context(|| format!("cannot read {path}"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.trim().strip_suffix(" kB"))
        .and_then(|kib| kib.parse::<u64>().ok())
        .map(|kib| kib * 1024)
        .with_context(|| format!("{path} has no {name}"))
}
