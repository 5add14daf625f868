//! `[env.fleet]`: how a run looks after its real desktops, of whatever kind.

use serde::{Deserialize, Serialize};

/// `[env.fleet]`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FleetConfig {
    /// What happens to more desktops than this machine has room for.
    pub admission: AdmissionMode,
    /// Memory that desktops leave to everything else.
    pub memory_reserve_mb: u64,
    /// Machines that start at a time; 0 is one a core.
    pub parallel_starts: usize,
    /// Failed starts in a row after which a desktop is left alone; 0 is never. It waits longer after
    /// each of them.
    pub max_start_failures: u32,
    /// A desktop whose actions take so many times what they took at first is opened anew; 0 is
    /// never.
    pub recycle_latency_ratio: f64,
    /// First episodes of a desktop, which its newest are compared with.
    pub recycle_baseline_episodes: usize,
    /// Newest episodes that are compared with them.
    pub recycle_window_episodes: usize,
    /// Episodes after which a desktop is opened anew in any case; 0 is never.
    pub recycle_after_episodes: u32,
}

/// What happens to more desktops than there is room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AdmissionMode {
    /// They are not opened.
    Refuse,
    /// They are opened, and a notice says so.
    Warn,
    /// Nobody asks.
    Off,
}
