//! Arguments that several commands share.

use crate::config::{ConfigError, Resolved};

/// Which profile.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct ProfileArgs {
    /// Profile laid over the base: a file, or the name of one that comes with arpo; repeatable,
    /// later ones win
    #[arg(short = 'p', long = "profile", value_name = "PROFILE")]
    pub profiles: Vec<String>,
    /// One value laid over the profiles; repeatable
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub sets: Vec<String>,
}

impl ProfileArgs {
    /// Merges and checks.
    pub fn resolve(&self) -> Result<Resolved, ConfigError> {
        Resolved::load(&self.profiles, &self.sets)
    }
}
