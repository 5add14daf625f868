//! `[env.docker]` and `[env.attached]`: OSWorld's virtual machines, in containers of this machine or
//! wherever they already run.

use serde::{Deserialize, Serialize};

use crate::types::ScreenSize;

/// `[env.docker]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DockerConfig {
    /// The container image that runs the virtual machine.
    pub image: String,
    /// The disk that machines begin from, a file of the daemon's machine.
    pub disk: String,
    /// Pixels.
    pub screen_width: u32,
    /// Pixels.
    pub screen_height: u32,
    /// Memory of a machine, GB.
    pub ram_gb: u32,
    /// Its processors.
    pub cpu_cores: u32,
    /// The most that its disk may grow to, GB: `DISK_SIZE`.
    pub disk_gb: u32,
    /// Whether processors are the host's own.
    pub kvm: Kvm,
    /// Seconds a machine may take from nothing to a desktop that answers.
    pub boot_deadline_s: f64,
    /// Programs that have to run on it, one after another, before it counts as up.
    pub execute_probes: u32,
    /// Hours after which a container is nobody's any more.
    pub lease_h: f64,
    /// Password of the user `user`.
    pub password: String,
    /// Seconds between an action and the picture of what it did.
    pub action_pause_s: f64,
    /// Seconds between the set-up of a task and the first picture.
    pub reset_pause_s: f64,
}

/// Whether a virtual machine's processors are the host's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kvm {
    /// Where the host has the device, and processors for it.
    Auto,
    /// Nothing is started without.
    Require,
    /// Never: processors are computed, many times slower.
    Off,
}

/// `[env.attached]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttachedConfig {
    /// `host[:server[:chrome[:vnc[:vlc]]]]`, one a desktop.
    pub hosts: Vec<String>,
    /// A file with one of them a line.
    pub file: String,
    /// A program that prints them, and its arguments.
    pub command: Vec<String>,
    /// Seconds that program may take.
    pub command_deadline_s: f64,
    /// File of the servers' token; empty where they have none.
    pub token_file: String,
    /// A program that brings one machine to its clean state, and its arguments.
    pub revert_command: Vec<String>,
    /// Seconds that program may take, and the machine to answer after it.
    pub revert_deadline_s: f64,
    /// Whether episodes may see what earlier ones left.
    pub shared_state: bool,
    /// Whether hosts may be beyond this machine and private networks.
    pub allow_public: bool,
    /// Pixels.
    pub screen_width: u32,
    /// Pixels.
    pub screen_height: u32,
    /// Programs that have to run on it, one after another, before it counts as up.
    pub execute_probes: u32,
    /// Password of the user `user`.
    pub password: String,
    /// Seconds between an action and the picture of what it did.
    pub action_pause_s: f64,
    /// Seconds between the set-up of a task and the first picture.
    pub reset_pause_s: f64,
}

impl DockerConfig {
    /// The machines' screen.
    pub fn screen(&self) -> ScreenSize {
        ScreenSize {
            width: self.screen_width,
            height: self.screen_height,
        }
    }
}

impl AttachedConfig {
    /// The machines' screen.
    pub fn screen(&self) -> ScreenSize {
        ScreenSize {
            width: self.screen_width,
            height: self.screen_height,
        }
    }
}
