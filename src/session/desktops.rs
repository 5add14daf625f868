//! Opens the desktops a profile asks for.

use crate::config::simulated::SimulatedConfig;
use crate::config::{EnvKind, Profile};
use crate::env::guest::{DesktopOptions, GuestDesktop};
use crate::env::simulated::Simulated;
use crate::env::{Environment, Provider};
use crate::session::SessionError;
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
    },
}

impl Desktops {
    /// Those of a profile.
    pub fn of(profile: &Profile) -> Result<Self, SessionError> {
        Ok(match profile.env.kind {
            EnvKind::Simulated => Self::Simulated(profile.env.simulated.clone()),
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
            } => {
                let machine = provider.machine(desktop).map_err(SessionError::Env)?;
                Box::new(GuestDesktop::new(machine, files.clone(), options.clone()))
            }
        })
    }
}

/// `count` desktops of the profile's kind.
pub fn open_desktops(
    profile: &Profile,
    count: u32,
) -> Result<Vec<Box<dyn Environment>>, SessionError> {
    let desktops = Desktops::of(profile)?;
    (0..count).map(|desktop| desktops.open(desktop)).collect()
}
