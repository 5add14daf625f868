//! Where files that come with arpo lie: its profiles, the shipped agent, task sets.

use std::path::{Path, PathBuf};

use crate::config::ConfigError;

/// The variable that moves `assets/` elsewhere.
pub const ASSETS_VARIABLE: &str = "ARPO_ASSETS";

/// Finds a file or folder that a profile names.
///
/// Absolute paths stay. A path below `assets/` is looked up in `$ARPO_ASSETS` first. Then comes
/// the current folder, then the folders above the executable (so that `target/release/arpo`
/// finds its checkout). What is found nowhere is returned relative to the current folder, for
/// the reader's own error to name.
pub fn locate(path: &str) -> PathBuf {
    let own = Path::new(path);
    if own.is_absolute() {
        return own.to_owned();
    }
    if let (Some(root), Ok(rest)) = (
        std::env::var_os(ASSETS_VARIABLE),
        own.strip_prefix("assets"),
    ) {
        return Path::new(&root).join(rest);
    }
    if own.exists() {
        return own.to_owned();
    }
    install_roots()
        .map(|root| root.join(own))
        .find(|path| path.exists())
        .unwrap_or(own.to_owned())
}

/// Folders above the executable, nearest first.
fn install_roots() -> impl Iterator<Item = PathBuf> {
    let executable = std::env::current_exe()
        .and_then(std::fs::canonicalize)
        .unwrap_or_default();
    let roots: Vec<PathBuf> = executable.ancestors().skip(1).map(Path::to_owned).collect();
    // A checkout's build lies three folders deep; further up is not ours.
    roots.into_iter().take(4)
}

/// The file of `-p NAME`: a path, or the name of a profile that comes with arpo.
pub(crate) fn find_profile(name: &str) -> Result<PathBuf, ConfigError> {
    let as_path = Path::new(name);
    if as_path.extension().is_some() || as_path.components().count() > 1 {
        return Ok(locate(name));
    }
    let shipped = locate(&format!("profiles/{name}.toml"));
    if shipped.exists() {
        return Ok(shipped);
    }
    Err(ConfigError::NoSuchProfile {
        name: name.to_owned(),
        known: shipped_profiles().join(", "),
    })
}

/// Names of the profiles that come with arpo, sorted.
pub fn shipped_profiles() -> Vec<String> {
    let Ok(folder) = std::fs::read_dir(locate("profiles")) else {
        return Vec::new();
    };
    let mut names: Vec<String> = folder
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let is_profile = path
                .extension()
                .is_some_and(|extension| extension == "toml");
            is_profile.then(|| {
                path.file_stem()
                    .map(|stem| stem.to_string_lossy().into_owned())
            })?
        })
        .collect();
    names.sort();
    names
}
