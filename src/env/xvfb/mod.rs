//! Provider `xvfb`: real desktops on any Linux, each an X server with a window manager, our guest
//! server and real applications in a bubblewrap sandbox.
//!
//! ```text
//! engine ── spawner thread ── bwrap ── session: Xvfb, openbox, at-spi, `arpo guest`, applications
//!    │                                   │ /run/arpo/guest.sock, 9222.sock, 8080.sock
//!    └────────── /proc/PID/root ─────────┘
//! ```
//!
//! Nothing is ever cleaned: an episode gets a sandbox of its own, which mostly waits already, and
//! the one before is killed. Sandboxes die with the engine: bubblewrap asks the kernel for it, the
//! session ends with its standard input, and the next engine sweeps what is written down in the
//! slots of the dead.
//!
//! What a sandbox does not keep out: load on processors and disks, and memory up to its limits.

mod arguments;
mod machine;
pub mod needs;
mod template;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::OnceCell;

pub use super::sandbox::State;
pub use machine::XvfbMachine;

use super::admission::MachineNeed;
use super::machine::{Machine, Provider, Reporter};
use super::sandbox::Limits;
use super::{EnvError, guest::GuestOptions};
use crate::config::XvfbConfig;

/// What the machines of a run are made from.
#[derive(Clone, Debug)]
pub struct XvfbOptions {
    /// The profile's.
    pub config: XvfbConfig,
    /// Where slots lie, as `State` has it.
    pub state: PathBuf,
    /// The executable that has `arpo guest`.
    pub arpo: PathBuf,
    /// How the server inside is asked.
    pub guest: GuestOptions,
}

/// What a sandbox is made of.
#[derive(Clone, Debug)]
struct Plan {
    /// Sizes and limits.
    config: XvfbConfig,
    /// The executable that serves inside, readable by the slot's user.
    arpo: PathBuf,
    /// What its home, its /etc and its programs of ours are taken from.
    template: PathBuf,
}

/// Who makes sandboxes of this machine.
#[derive(Clone, Debug)]
pub struct Xvfb {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    options: XvfbOptions,
    state: State,
    /// Made by the first who needs it.
    plan: OnceCell<Plan>,
}

impl Xvfb {
    /// Sweeps what dead engines left and makes sure that sandboxes can be made here.
    pub fn new(options: XvfbOptions) -> Result<Self, EnvError> {
        let failed = |reason: String| EnvError::Machine {
            machine: "xvfb".to_owned(),
            reason,
        };
        needs::check().map_err(|unmet| {
            let needs::Unmet { found, remedy } = unmet;
            failed(format!("real desktops cannot run here: {found}: {remedy}"))
        })?;
        let opened = State::open(&options.state).and_then(|state| {
            template::prune(&state, &options.arpo)?;
            Ok(state)
        });
        let state = opened
            .map_err(|error| failed(format!("cannot use {}: {error}", options.state.display())))?;
        let shared = Shared {
            options,
            state,
            plan: OnceCell::new(),
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }
}

impl Provider for Xvfb {
    fn machine(&self, desktop: u32, reporter: Reporter) -> Result<Box<dyn Machine>, EnvError> {
        let machine = XvfbMachine::new(self.shared.clone(), desktop, reporter)?;
        Ok(Box::new(machine))
    }

    /// An X server, its desktop and an office program; a spare has no program yet.
    fn need(&self) -> MachineNeed {
        MachineNeed {
            memory_mb: 300,
            spare_mb: if self.shared.options.config.spare {
                100
            } else {
                0
            },
            cores: 0.125,
        }
    }
}

impl Shared {
    async fn plan(&self) -> Result<&Plan, String> {
        let plan = self.plan.get_or_try_init(|| async {
            let template = template::ensure(&self.state, &self.options.config).await?;
            let arpo = template::readable_arpo(&self.state, &self.options.arpo)
                .map_err(|error| cannot_read(&self.options.arpo, &error))?;
            Ok(Plan {
                config: self.options.config.clone(),
                arpo,
                template,
            })
        });
        plan.await
    }
}

fn cannot_read(arpo: &Path, error: &std::io::Error) -> String {
    format!("cannot bring {} into a sandbox: {error}", arpo.display())
}

/// What one program of a desktop may have.
fn limits(config: &XvfbConfig) -> Limits {
    Limits {
        file_mb: config.max_file_mb.into(),
        memory_mb: config.memory_mb.into(),
    }
}
