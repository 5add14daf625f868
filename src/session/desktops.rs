//! Opens the desktops a profile asks for.

use crate::config::EnvConfig;
use crate::env::Environment;
use crate::env::simulated::Simulated;
use crate::session::SessionError;

/// `count` desktops of the profile's kind.
pub fn open_desktops(
    config: &EnvConfig,
    count: u32,
) -> Result<Vec<Box<dyn Environment>>, SessionError> {
    (0..count)
        .map(|_| {
            let env = Simulated::new(config.simulated.clone());
            Ok(Box::new(env) as Box<dyn Environment>)
        })
        .collect()
}
