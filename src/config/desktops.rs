//! `[env]`, `[tasks]`, `[rollout]` and `[eval]`: what episodes run on, what is asked, how they
//! are run and how policies are measured.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::config::assets::locate;
use crate::config::fleet::FleetConfig;
use crate::config::machines::{AttachedConfig, DockerConfig};
use crate::config::simulated::SimulatedConfig;
use crate::types::{Protocol, ScreenSize};

/// `[env]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnvConfig {
    /// Which kind of desktop.
    pub kind: EnvKind,
    /// Desktops, hence episodes running at a time.
    pub desktops: usize,
    /// Whether a real desktop's time stands still while the policy, or whoever holds its episode,
    /// thinks.
    pub freeze_while_thinking: bool,
    /// How real desktops are looked after.
    pub fleet: FleetConfig,
    /// Simulated desktops.
    pub simulated: SimulatedConfig,
    /// Real desktops on this machine.
    pub xvfb: XvfbConfig,
    /// Virtual machines on this machine.
    pub qemu: QemuConfig,
    /// OSWorld's virtual machines in containers of this machine.
    pub docker: DockerConfig,
    /// Virtual machines that already run.
    pub attached: AttachedConfig,
}

/// Which kind of desktop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EnvKind {
    /// Drawn in this process, on a virtual clock.
    Simulated,
    /// Real applications in sandboxes of this machine.
    Xvfb,
    /// Virtual machines on this machine.
    Qemu,
    /// OSWorld's virtual machines in containers of this machine.
    Docker,
    /// Virtual machines that already run, here or elsewhere.
    Attached,
}

/// `[env.xvfb]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct XvfbConfig {
    /// Pixels.
    pub screen_width: u32,
    /// Pixels.
    pub screen_height: u32,
    /// What is reached from inside.
    pub network: Network,
    /// Whether the next sandbox is started while an episode runs, so that a reset is a swap.
    pub spare: bool,
    /// Seconds a sandbox may take from nothing to a desktop that answers.
    pub start_deadline_s: f64,
    /// Size of the home folder, kept in memory.
    pub home_mb: u32,
    /// Size of /tmp, kept in memory.
    pub tmp_mb: u32,
    /// Memory that one program may ask for.
    pub memory_mb: u32,
    /// Size of one file.
    pub max_file_mb: u32,
    /// Processes and threads of a desktop.
    pub max_processes: u32,
}

impl XvfbConfig {
    /// Its screen.
    pub fn screen(&self) -> ScreenSize {
        ScreenSize {
            width: self.screen_width,
            height: self.screen_height,
        }
    }
}

/// `[env.qemu]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QemuConfig {
    /// Folder of the image; a relative one is looked for in the working directory and in the
    /// checkout, empty is `.vm-image` there.
    pub image: String,
    /// Pixels.
    pub screen_width: u32,
    /// Pixels.
    pub screen_height: u32,
    /// Memory of a machine.
    pub memory_mb: u32,
    /// What runs the guest's instructions.
    pub accelerator: Accelerator,
    /// Whether the next machine is restored while an episode runs, so that a reset is a swap.
    pub spare: bool,
    /// Seconds from power-on to a clean desktop, which a snapshot is then taken of.
    pub boot_deadline_s: f64,
    /// Seconds from nothing to a desktop that answers, from the snapshot.
    pub restore_deadline_s: f64,
    /// Disk space that one episode may take.
    pub disk_mb: u32,
}

impl QemuConfig {
    /// Its screen.
    pub fn screen(&self) -> ScreenSize {
        ScreenSize {
            width: self.screen_width,
            height: self.screen_height,
        }
    }

    /// Where the image is.
    pub fn image_folder(&self) -> PathBuf {
        match self.image.as_str() {
            "" => locate(".vm-image"),
            image => locate(image),
        }
    }
}

/// What runs the instructions of a virtual machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Accelerator {
    /// The processor where a trial shows that it does, else QEMU.
    Auto,
    /// The processor, by the kernel's KVM.
    Kvm,
    /// QEMU, which translates them.
    Tcg,
}

/// What a desktop reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// Itself.
    None,
}

impl EnvKind {
    /// Whether its desktops say how long they take, instead of taking it.
    pub fn is_virtual(self) -> bool {
        matches!(self, Self::Simulated)
    }
}

/// `[tasks]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TasksConfig {
    /// Tasks trained on: a set's name, a list file or a folder of task files.
    pub pool: String,
    /// Tasks never trained on, same forms.
    pub heldout: String,
    /// Whether each pass over the pool has its own order, drawn from the run's seed.
    pub shuffle: bool,
    /// Folder of the files that tasks bring from the web; empty is that of `arpo tasks fetch`.
    pub files: String,
}

/// `[rollout]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RolloutConfig {
    /// Actions, not replies, after which an episode ends.
    pub max_steps: usize,
    /// Who waits for whom.
    pub schedule: Schedule,
    /// Seconds of the run's clock after which an episode is given up as a straggler; 0 is never.
    pub straggler_deadline_s: f64,
    /// Times an episode ended by an error is started anew.
    pub max_rerolls: u32,
    /// Screenshots the model sees at once.
    pub max_history_images: usize,
}

impl RolloutConfig {
    /// Longest an episode may take; `straggler_deadline_s = 0` sets no limit.
    pub fn deadline(&self) -> Duration {
        if self.straggler_deadline_s > 0.0 {
            Duration::from_secs_f64(self.straggler_deadline_s)
        } else {
            Duration::MAX
        }
    }
}

/// Who waits for whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Schedule {
    /// Each episode goes on as soon as its desktop and the policy are ready.
    Async,
    /// All episodes of an iteration step together. For comparison.
    LockStep,
}

/// `[eval]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvalConfig {
    /// The headline among the three that every evaluation reports.
    pub protocol: Protocol,
    /// 0 is greedy.
    pub temperature: f64,
    /// Episodes a task.
    pub trials: usize,
    /// Tasks of `arpo eval`: a set's name, a list file or a folder of task files.
    pub tasks: String,
    /// Held-out instances measured before and after training; 0 is none.
    pub heldout_instances: usize,
    /// Whose scores of real desktops count.
    pub evaluators: Evaluators,
    /// What holds OSWorld's own code apart from this machine.
    pub sidecar_confinement: Confinement,
    /// Whether that code reaches the live web.
    pub live_sites: bool,
}

/// What holds the sidecar apart from this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Confinement {
    /// A sandbox of bubblewrap; without it nothing is run.
    Bubblewrap,
    /// Limits alone: evaluations read and write what this user may.
    LimitsOnly,
}

/// Whose scores of real desktops count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Evaluators {
    /// This program's; those of OSWorld's own code where it has none.
    Native,
    /// Those of OSWorld's own code.
    Sidecar,
    /// As native, with every metric scored by both and differences told.
    Both,
}
