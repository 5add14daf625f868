//! Sets the rpath of `arpo-engine` to libtorch, so that it starts without `LD_LIBRARY_PATH`, and
//! tells it which libtorch that is. `arpo` itself must not link libtorch, hence the per-binary
//! flags.

use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    println!("cargo::rerun-if-changed=src/build.rs");
    println!("cargo::rerun-if-env-changed=LIBTORCH");
    if std::env::var_os("CARGO_FEATURE_TORCH").is_none() {
        return;
    }
    let lib = libtorch_lib();
    if let Some(lib) = &lib {
        println!(
            "cargo::rustc-link-arg-bin=arpo-engine=-Wl,-rpath,{}",
            lib.display()
        );
    }
    let version = lib
        .as_deref()
        .and_then(Path::parent)
        .and_then(torch_version);
    let version = version.unwrap_or_else(|| "unknown".to_owned());
    println!("cargo::rustc-env=ARPO_TORCH_VERSION={version}");
}

/// Where libtorch's shared objects lie: what `torch-sys` found, else below `LIBTORCH`.
fn libtorch_lib() -> Option<PathBuf> {
    if let Some(found) = std::env::var_os("DEP_TCH_LIBTORCH_LIB") {
        return Some(found.into());
    }
    let root = PathBuf::from(std::env::var_os("LIBTORCH")?);
    fs::canonicalize(root.join("lib")).ok()
}

/// The version a libtorch folder states: the archive's `build-version` or pip's `version.py`.
fn torch_version(folder: &Path) -> Option<String> {
    if let Ok(text) = fs::read_to_string(folder.join("build-version")) {
        return Some(text.trim().to_owned());
    }
    let text = fs::read_to_string(folder.join("version.py")).ok()?;
    let line = text.lines().find(|line| line.starts_with("__version__"))?;
    Some(line.split('\'').nth(1)?.to_owned())
}
