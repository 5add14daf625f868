//! Opens the desktops a profile asks for.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use crate::bus::socket_dir;
use crate::config::simulated::SimulatedConfig;
use crate::config::{EnvKind, Profile, XvfbConfig};
use crate::env::guest::{DesktopOptions, GuestDesktop, GuestOptions};
use crate::env::simulated::Simulated;
use crate::env::xvfb::{Xvfb, XvfbOptions};
use crate::env::{EnvError, Environment, MachineEars, Provider, Reporter};
use crate::session::{SessionError, open_files};
use crate::tasks::FileCache;

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
    },
}

impl Desktops {
    /// Those of a profile; real ones tell `ears` of themselves.
    pub fn of(profile: &Profile, ears: MachineEars) -> Result<Self, SessionError> {
        Ok(match profile.env.kind {
            EnvKind::Simulated => Self::Simulated(profile.env.simulated.clone()),
            EnvKind::Xvfb => Self::Real {
                provider: Box::new(xvfb(&profile.env.xvfb).map_err(SessionError::Env)?),
                files: open_files(&profile.tasks)?,
                options: DesktopOptions::local(),
                ears,
            },
        })
    }

    /// Whether their time is virtual.
    pub fn are_virtual(&self) -> bool {
        matches!(self, Self::Simulated(_))
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
            } => {
                let reporter = Reporter::new(desktop, ears.clone());
                let machine = provider.machine(desktop, reporter);
                let machine = machine.map_err(SessionError::Env)?;
                Box::new(GuestDesktop::new(machine, files.clone(), options.clone()))
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

fn xvfb(config: &XvfbConfig) -> Result<Xvfb, EnvError> {
    let arpo = find_arpo().map_err(|error| EnvError::Machine {
        machine: "xvfb".to_owned(),
        reason: format!("cannot tell where this program is: {error}"),
    })?;
    Xvfb::new(XvfbOptions {
        config: config.clone(),
        state: beside_sockets(),
        arpo,
        guest: GuestOptions::new(config.screen()),
    })
}

/// Where desktops of this user lie: beside the folder of sockets, which nobody else may enter.
fn beside_sockets() -> PathBuf {
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
