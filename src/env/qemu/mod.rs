//! Provider `qemu`: virtual machines on this machine, each QEMU in a sandbox, restored from the
//! snapshot of a clean desktop.
//!
//! ```text
//! engine ── spawner thread ── bwrap ── session ─┬─ QEMU: kernel, X, applications, `arpo guest`
//!    │                          /run/arpo/qmp.sock, control.sock, serial.sock     │ port 5000
//!    └── /proc/PID/root ────────/run/arpo/guest.sock ── socat ── 127.0.0.1:5000 ──┘
//! ```
//!
//! Nothing is ever cleaned: an episode gets a process and a disk's layer of its own, both made from
//! the snapshot, and those before are gone. Ports of the guest are reached through its server.
//! Sandboxes die with the engine, as those of `xvfb` do.
//!
//! QEMU's own words on security hold for KVM alone: with its translator the sandbox around it is the
//! wall. What neither keeps out: load on processors and disks, and memory up to its limits.

mod accelerator;
mod arguments;
mod image;
mod initrd;
mod lines;
mod machine;
pub mod needs;
mod once;
mod picture;
mod qmp;
mod running;
mod serial;
mod snapshot;
mod vm;

#[cfg(test)]
mod tests;

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::{OnceCell, Semaphore};

pub use machine::QemuMachine;

use super::admission::cores;
use super::machine::{Machine, Provider, Reporter};
use super::sandbox::State;
use super::{EnvError, MachineNeed, guest::GuestOptions};
use crate::config::QemuConfig;
use accelerator::Choice;
use arguments::{Hardware, Processor};
use image::Image;
use once::Once;
use snapshot::Snapshot;

/// Memory of QEMU itself, its translations included.
const OVERHEAD_MB: u64 = 300;

/// What the machines of a run are made from.
#[derive(Clone, Debug)]
pub struct QemuOptions {
    /// The profile's.
    pub config: QemuConfig,
    /// Where slots lie, as `State` has it.
    pub state: PathBuf,
    /// The executable that has `arpo guest`.
    pub arpo: PathBuf,
    /// How the server inside is asked.
    pub guest: GuestOptions,
    /// How many times longer it may take where QEMU translates the guest's instructions.
    pub translated: u32,
}

impl QemuOptions {
    /// How the server of a guest is asked that this runs.
    fn guest_on(&self, processor: Processor) -> GuestOptions {
        let mut guest = self.guest.clone();
        if processor == Processor::Tcg {
            guest.connect_deadline *= self.translated;
            guest.deadline *= self.translated;
            guest.slow_deadline *= self.translated;
        }
        guest
    }
}

/// Who makes virtual machines of this machine.
#[derive(Clone, Debug)]
pub struct Qemu {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    options: QemuOptions,
    state: State,
    /// Held by who restores a machine that nobody waits for yet.
    spares: Semaphore,
    /// Found by the first who needs it.
    basis: OnceCell<Basis>,
    /// Made by the first who needs it, or in vain for all who waited for it.
    snapshot: Once<Snapshot>,
}

/// What snapshots depend on.
#[derive(Debug)]
struct Basis {
    image: Image,
    hardware: Hardware,
    /// Why it is that processor.
    why: String,
    /// Hash of `arpo`.
    arpo: String,
    /// QEMU's version.
    qemu: String,
}

impl Basis {
    /// /dev/kvm, where guests run on it.
    fn kvm(&self) -> Result<Option<OwnedFd>, String> {
        match self.hardware.processor {
            Processor::Kvm => accelerator::open_kvm().map(Some),
            Processor::Tcg => Ok(None),
        }
    }
}

/// What runs guests, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Runs {
    /// `kvm` or `tcg`.
    pub accelerator: &'static str,
    /// What was found.
    pub why: String,
}

impl Qemu {
    /// Sweeps what dead engines left and makes sure that machines can be made here.
    pub fn new(options: QemuOptions) -> Result<Self, EnvError> {
        let unmet = |needs::Unmet { found, remedy }| {
            failed(format!(
                "virtual machines cannot run here: {found}: {remedy}"
            ))
        };
        needs::check().map_err(unmet)?;
        Image::open(&options.config.image_folder()).map_err(failed)?;
        let state = State::open(&options.state)
            .map_err(|error| failed(format!("cannot use {}: {error}", options.state.display())))?;
        let shared = Shared {
            spares: Semaphore::new(cores().div_ceil(2)),
            options,
            state,
            basis: OnceCell::new(),
            snapshot: Once::new(),
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    /// What runs guests here; found by a trial where nobody has since the boot.
    pub async fn runs(&self) -> Result<Runs, EnvError> {
        let basis = self.shared.basis().await.map_err(failed)?;
        Ok(Runs {
            accelerator: basis.hardware.processor.name(),
            why: basis.why.clone(),
        })
    }
}

fn failed(reason: String) -> EnvError {
    EnvError::Machine {
        machine: "qemu".to_owned(),
        reason,
    }
}

impl Provider for Qemu {
    fn machine(&self, desktop: u32, reporter: Reporter) -> Result<Box<dyn Machine>, EnvError> {
        let machine = QemuMachine::new(self.shared.clone(), desktop, reporter)?;
        Ok(Box::new(machine))
    }

    fn need(&self) -> MachineNeed {
        let config = &self.shared.options.config;
        // A guest touches most of its memory, and the translator keeps what it made of it.
        let memory_mb = u64::from(config.memory_mb) + OVERHEAD_MB;
        // One that waits has touched what its snapshot holds.
        let spare_mb = if config.spare { memory_mb / 2 } else { 0 };
        MachineNeed {
            memory_mb,
            spare_mb,
            cores: 0.5,
        }
    }
}

impl Shared {
    async fn basis(&self) -> Result<&Basis, String> {
        let find = || async {
            let config = &self.options.config;
            let image = Image::open(&config.image_folder())?;
            let qemu = needs::qemu_version()?;
            let chosen = accelerator::choose(config, &image, &qemu, &self.state).await?;
            let Choice { processor, why } = chosen;
            tracing::info!(accelerator = processor.name(), why, "virtual machines");
            Ok(Basis {
                hardware: Hardware {
                    processor,
                    screen: config.screen(),
                    memory_mb: config.memory_mb,
                    append: image.append.clone(),
                },
                image,
                why,
                arpo: hash_of(&self.options.arpo)?,
                qemu,
            })
        };
        self.basis.get_or_try_init(find).await
    }

    /// The snapshot, made if need be; `voice` hears how far that is.
    async fn snapshot(&self, voice: &Reporter) -> Result<(&Basis, &Snapshot), String> {
        let basis = self.basis().await?;
        let make = || snapshot::ensure(basis, &self.options, &self.state, voice);
        let snapshot = self.snapshot.get_or_make(make).await?;
        Ok((basis, snapshot))
    }
}

fn hash_of(path: &Path) -> Result<String, String> {
    let hash = File::open(path).and_then(|file| {
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(file)?;
        Ok(hasher.finalize())
    });
    let hash = hash.map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    Ok(hash.to_hex().to_string())
}
