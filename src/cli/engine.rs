//! The way from `arpo` to `arpo-engine`: where it lies, whether the loader finds libtorch, and
//! replacing this process by it.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, anyhow, bail};

const REMEDY: &str = "run `just setup && cargo build --release`";

/// Settings of the C library's allocator for the engine, as glibc reads them; others ignore them.
/// Tensors of a few MB come and go with every layer: by default their memory goes back to the
/// system each time and is mapped and zeroed again. Whole replies showed no gain above the noise.
pub const ALLOCATOR_VARIABLE: &str = "GLIBC_TUNABLES";
const ALLOCATOR: &str =
    "glibc.malloc.mmap_threshold=33554432:glibc.malloc.trim_threshold=1073741824";

/// Replaces this process by `arpo-engine` with the arguments of this one. Comes back only with the
/// reason why it could not.
pub fn exec_engine() -> anyhow::Error {
    match engine_command() {
        Ok(mut command) => {
            let error = command.args(std::env::args_os().skip(1)).exec();
            let path = Path::new(command.get_program());
            anyhow!(error).context(format!("cannot start {}", path.display()))
        }
        Err(error) => error,
    }
}

/// What starts `arpo-engine`, still without arguments.
pub fn engine_command() -> anyhow::Result<Command> {
    let mut command = Command::new(find_engine()?);
    // Whoever set it knows better.
    if std::env::var_os(ALLOCATOR_VARIABLE).is_none() {
        command.env(ALLOCATOR_VARIABLE, ALLOCATOR);
    }
    Ok(command)
}

/// `arpo-engine` beside this executable, if the loader finds all its libraries.
pub fn find_engine() -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe().context("cannot find the path of this executable")?;
    let path = own.with_file_name("arpo-engine");
    if !path.is_file() {
        bail!("{} is missing, which this needs: {REMEDY}", path.display());
    }
    match missing_library(&path) {
        Some(library) => bail!("{} cannot load {library}: {REMEDY}", path.display()),
        None => Ok(path),
    }
}

/// The first shared library the loader does not find. Asks the loader the way `ldd` does, which
/// starts nothing and costs milliseconds.
fn missing_library(path: &Path) -> Option<String> {
    let output = Command::new(path)
        .env("LD_TRACE_LOADED_OBJECTS", "1")
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find(|line| line.ends_with("=> not found"))?;
    line.split_whitespace().next().map(str::to_owned)
}
