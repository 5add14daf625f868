//! Opens the desktops a profile asks for.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::bus::socket_dir;
use crate::config::simulated::SimulatedConfig;
use crate::config::{EnvConfig, EnvKind, FleetConfig, Profile, QemuConfig, XvfbConfig};
use crate::env::attached::{Attached, AttachedOptions};
use crate::env::docker::{Docker, DockerOptions};
use crate::env::guest::{DesktopOptions, GuestDesktop, GuestOptions, Settle, Upkeep};
use crate::env::qemu::{Qemu, QemuOptions};
use crate::env::simulated::Simulated;
use crate::env::xvfb::{Xvfb, XvfbOptions};
use crate::env::{Admission, EnvError, Environment, MachineEars, Provider, Reporter, Starts};
use crate::session::{SessionError, open_files};
use crate::tasks::FileCache;

/// How many times longer a guest's server may take where its instructions are translated.
const TRANSLATED: u32 = 4;

/// Who opens the desktops of a run, one kind for all.
pub enum Desktops {
    /// Drawn in this process.
    Simulated(SimulatedConfig),
    /// Machines of a provider.
    Real {
        /// Who makes them.
        provider: Box<dyn Provider>,
        /// What tasks bring from the web.
        files: FileCache,
        /// How they are waited for.
        options: DesktopOptions,
        /// Who hears what they tell of themselves.
        ears: MachineEars,
        /// How they are looked after.
        care: FleetCare,
    },
}

/// How real desktops are looked after, whatever kind they are.
#[derive(Clone, Debug)]
pub struct FleetCare {
    config: FleetConfig,
    freeze_while_thinking: bool,
    starts: Starts,
}

impl FleetCare {
    /// As `[env]` and `[env.fleet]` say.
    pub fn of(env: &EnvConfig) -> Self {
        Self {
            config: env.fleet,
            freeze_while_thinking: env.freeze_while_thinking,
            starts: Starts::per_core_if_0(env.fleet.parallel_starts),
        }
    }

    fn upkeep(&self, reporter: Reporter) -> Upkeep {
        Upkeep {
            reporter,
            starts: self.starts.clone(),
            fleet: self.config,
            freeze_while_thinking: self.freeze_while_thinking,
        }
    }
}

impl Desktops {
    /// Those of a profile; real ones tell `ears` of themselves.
    pub fn of(profile: &Profile, ears: MachineEars) -> Result<Self, SessionError> {
        Self::of_run(profile, "", ears)
    }

    /// Those of a profile for the run of a name, which their leftovers can be told by.
    pub fn of_run(profile: &Profile, run: &str, ears: MachineEars) -> Result<Self, SessionError> {
        let (provider, options): (Box<dyn Provider>, _) = match profile.env.kind {
            EnvKind::Simulated => return Ok(Self::Simulated(profile.env.simulated.clone())),
            EnvKind::Xvfb => {
                let provider = xvfb(&profile.env.xvfb).map_err(SessionError::Env)?;
                (Box::new(provider), DesktopOptions::local())
            }
            EnvKind::Qemu => {
                let provider = qemu(&profile.env.qemu).map_err(SessionError::Env)?;
                (Box::new(provider), DesktopOptions::emulated())
            }
            EnvKind::Docker => {
                let config = &profile.env.docker;
                let provider = docker(&profile.env, run).map_err(SessionError::Env)?;
                let options = paused(config.action_pause_s, config.reset_pause_s);
                (Box::new(provider), options)
            }
            EnvKind::Attached => {
                let config = &profile.env.attached;
                let provider = attached(&profile.env).map_err(SessionError::Env)?;
                let options = paused(config.action_pause_s, config.reset_pause_s);
                (Box::new(provider), options)
            }
        };
        Ok(Self::Real {
            provider,
            files: open_files(&profile.tasks)?,
            options,
            ears,
            care: FleetCare::of(&profile.env),
        })
    }

    /// Whether their time is virtual.
    pub fn are_virtual(&self) -> bool {
        matches!(self, Self::Simulated(_))
    }

    /// Who says whether there is room for so many; nobody for simulated ones.
    pub(super) fn admission(&self) -> Option<Admission> {
        let Self::Real { provider, care, .. } = self else {
            return None;
        };
        Some(Admission {
            most: provider.most(),
            ..Admission::of(provider.need(), &care.config)
        })
    }

    /// The desktop of a number.
    pub fn open(&self, desktop: u32) -> Result<Box<dyn Environment>, SessionError> {
        Ok(match self {
            Self::Simulated(config) => Box::new(Simulated::new(config.clone())),
            Self::Real {
                provider,
                files,
                options,
                ears,
                care,
            } => {
                let reporter = Reporter::new(desktop, ears.clone());
                let machine = provider.machine(desktop, reporter.clone());
                let machine = machine.map_err(SessionError::Env)?;
                let opened = GuestDesktop::new(machine, files.clone(), options.clone());
                Box::new(opened.kept_by(care.upkeep(reporter)))
            }
        })
    }
}

/// `count` desktops of the profile's kind, which nobody watches.
pub fn open_desktops(
    profile: &Profile,
    count: u32,
) -> Result<Vec<Box<dyn Environment>>, SessionError> {
    let desktops = Desktops::of(profile, Arc::new(|_, _| {}))?;
    (0..count).map(|desktop| desktops.open(desktop)).collect()
}

/// Pauses of OSWorld's kind, s.
fn paused(action_s: f64, reset_s: f64) -> DesktopOptions {
    DesktopOptions {
        settle_reset: Settle::Pause(Duration::from_secs_f64(reset_s)),
        ..DesktopOptions::paused(Duration::from_secs_f64(action_s))
    }
}

fn docker(env: &EnvConfig, run: &str) -> Result<Docker, EnvError> {
    Docker::new(DockerOptions {
        run: run.to_owned(),
        ..docker_options(env)
    })
}

/// How Docker's machines of a profile are made, for a run without a name.
pub fn docker_options(env: &EnvConfig) -> DockerOptions {
    let docker_host = std::env::var("DOCKER_HOST").ok();
    DockerOptions::new(env, docker_host.as_deref())
}

fn attached(env: &EnvConfig) -> Result<Attached, EnvError> {
    Attached::new(attached_options(env))
}

/// How the attached machines of a profile are found.
pub fn attached_options(env: &EnvConfig) -> AttachedOptions {
    let leases = beside_sockets().join("attached");
    AttachedOptions::new(&env.attached, env.desktops, leases)
}

fn xvfb(config: &XvfbConfig) -> Result<Xvfb, EnvError> {
    Xvfb::new(XvfbOptions {
        config: config.clone(),
        state: beside_sockets(),
        arpo: own_program("xvfb")?,
        guest: GuestOptions::new(config.screen()),
    })
}

/// The provider of virtual machines as a profile has them.
pub fn qemu(config: &QemuConfig) -> Result<Qemu, EnvError> {
    Qemu::new(QemuOptions {
        config: config.clone(),
        state: beside_sockets(),
        arpo: own_program("qemu")?,
        guest: GuestOptions::new(config.screen()),
        translated: TRANSLATED,
    })
}

fn own_program(provider: &str) -> Result<PathBuf, EnvError> {
    find_arpo().map_err(|error| EnvError::Machine {
        machine: provider.to_owned(),
        reason: format!("cannot tell where this program is: {error}"),
    })
}

/// Where desktops of this user lie: beside the folder of sockets, which nobody else may enter.
pub fn beside_sockets() -> PathBuf {
    let mut root = socket_dir().into_os_string();
    root.push("-desktops");
    PathBuf::from(root)
}

/// The executable that has `arpo guest`: this one, or `arpo` beside it.
fn find_arpo() -> io::Result<PathBuf> {
    let own = std::env::current_exe()?;
    if own.file_name().is_some_and(|name| name == "arpo") {
        return Ok(own);
    }
    Ok(own.with_file_name("arpo"))
}
