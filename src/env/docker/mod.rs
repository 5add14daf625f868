//! Provider `docker`: OSWorld's own virtual machines, each in a container of OSWorld's image on a
//! Docker daemon of this host.
//!
//! ```text
//! engine ── daemon's socket ── container ── QEMU ── Ubuntu, OSWorld's server
//!    │                            │  /System.qcow2, read-only; what is written is the container's
//!    └── 127.0.0.1:chosen by the daemon: 5000, 9222, 8006, 8080
//! ```
//!
//! An episode gets a container of its own, a cold boot: the image keeps no snapshot. Containers
//! outlive an engine that is killed, since the daemon runs them. They bear the engine's name
//! (`owner`), the next engine on this host removes those of the dead (`sweep`), and so does
//! `arpo runs clean`.

mod container;
mod daemon;
mod machine;
pub mod needs;
mod owner;
mod sweep;
mod watch;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub use daemon::{DaemonError, Deadlines, socket_of};
pub use machine::DockerMachine;
pub use sweep::Swept;

use super::guest::GuestOptions;
use super::machine::{Machine, Provider, Reporter};
use super::{EnvError, MachineNeed, apart};
use crate::config::{AdmissionMode, DockerConfig, EnvConfig};
use daemon::Daemon;
use needs::{Grade, Need};
use owner::Owner;

/// What the machines of a run are made from.
#[derive(Clone, Debug)]
pub struct DockerOptions {
    /// The profile's.
    pub config: DockerConfig,
    /// The daemon's socket, by `socket_of`.
    pub socket: Result<PathBuf, String>,
    /// What containers are labelled with; may be empty.
    pub run: String,
    /// Desktops that the run will have.
    pub desktops: usize,
    /// What is done if there is too little memory for them.
    pub admission: AdmissionMode,
    /// How the servers inside are asked.
    pub guest: GuestOptions,
    /// How long the daemon is waited for.
    pub deadlines: Deadlines,
    /// Between two looks at a machine that starts.
    pub poll: Duration,
    /// What says whether there is virtualisation.
    pub host: Host,
}

/// Where this host says whether it has virtualisation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// The device.
    pub kvm: PathBuf,
    /// What the kernel says of its processors.
    pub cpuinfo: PathBuf,
}

impl Host {
    /// Where Linux has it.
    pub fn linux() -> Self {
        Self {
            kvm: PathBuf::from("/dev/kvm"),
            cpuinfo: PathBuf::from("/proc/cpuinfo"),
        }
    }
}

impl DockerOptions {
    /// For a profile's desktops; `docker_host` is the variable of that name.
    pub fn new(env: &EnvConfig, docker_host: Option<&str>) -> Self {
        Self {
            socket: socket_of(docker_host),
            run: String::new(),
            desktops: env.desktops,
            admission: env.fleet.admission,
            guest: GuestOptions::new(env.docker.screen()),
            deadlines: Deadlines::default(),
            poll: Duration::from_secs(1),
            host: Host::linux(),
            config: env.docker.clone(),
        }
    }
}

/// Who makes containers.
#[derive(Clone, Debug)]
pub struct Docker {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    options: DockerOptions,
    daemon: Daemon,
    /// The image that machines begin from, as the daemon finds it.
    disk: PathBuf,
    uses_kvm: bool,
}

impl Docker {
    /// Makes sure that machines can be started here, and sweeps what dead engines left. Waits for
    /// the daemon.
    pub fn new(options: DockerOptions) -> Result<Self, EnvError> {
        let failed = |reason: String| EnvError::Machine {
            machine: "docker".to_owned(),
            reason,
        };
        let (needs, daemon) = apart::answer(needs::look(&options));
        if let Some(unmet) = needs::unmet(&needs) {
            return Err(failed(unmet));
        }
        for need in needs.iter().filter(|need| need.grade == Grade::Limited) {
            tracing::warn!(remedy = need.remedy, "{}", need.found);
        }
        let daemon = daemon.expect("without one something is unmet");
        let swept = apart::answer(sweep::sweep(&daemon));
        tell(&swept.map_err(|error| failed(error.to_string()))?);
        let disk = needs::absolute(&options.config.disk);
        let disk = disk.map_err(|error| failed(format!("{}: {error}", options.config.disk)))?;
        let shared = Shared {
            uses_kvm: needs::uses_kvm(options.config.kvm, &options.host),
            options,
            daemon,
            disk,
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }
}

impl Provider for Docker {
    fn machine(&self, desktop: u32, reporter: Reporter) -> Result<Box<dyn Machine>, EnvError> {
        let machine = DockerMachine::new(self.shared.clone(), desktop, reporter)?;
        Ok(Box::new(machine))
    }

    /// Its processors are its guest's; most of the time they wait for a model.
    fn need(&self) -> MachineNeed {
        MachineNeed {
            memory_mb: u64::from(self.shared.options.config.ram_gb) * 1024,
            ..MachineNeed::default()
        }
    }
}

impl Shared {
    /// Removes every container of a machine.
    async fn remove(&self, owner: &Owner) -> Result<(), String> {
        let found = self.daemon.list(&owner.filters()).await;
        for container in found.map_err(|error| error.to_string())? {
            let id = container.id.unwrap_or_default();
            let removed = self.daemon.remove(&id).await;
            removed.map_err(|error| format!("{error} ({})", sweep::short(&id)))?;
        }
        Ok(())
    }
}

/// Everything that machines need, for `arpo doctor`. Waits for the daemon.
pub fn examine(options: &DockerOptions) -> Vec<Need> {
    apart::answer(needs::look(options)).0
}

/// Sweeps what dead engines left with the daemon at a socket.
pub async fn sweep(socket: &std::path::Path) -> Result<Swept, DaemonError> {
    sweep::sweep(&Daemon::connect(socket, Deadlines::default()).await?).await
}

fn tell(swept: &Swept) {
    for container in &swept.removed {
        tracing::info!("removed {container}: its engine is dead");
    }
    for container in swept.left.iter().chain(&swept.failed) {
        tracing::warn!("left {container}");
    }
}
