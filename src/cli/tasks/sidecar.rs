//! `arpo tasks sidecar`: OSWorld's own evaluators on this machine.
//!
//! What is installed and how is `.config/setup.sh`'s business, which `just setup-sidecar` runs too.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, bail};
use serde_json::json;

use crate::cli::{FAILED, note, say};
use crate::config::assets;

/// Where they are installed.
#[derive(Debug, clap::Args)]
pub(super) struct SidecarArgs {
    /// The virtual environment; without it, .venv-sidecar beside what arpo comes with
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub(super) fn sidecar(args: &SidecarArgs, in_json: bool) -> anyhow::Result<ExitCode> {
    let script = fs::canonicalize(assets::locate(".config/setup.sh"))
        .context("cannot find .config/setup.sh, which installs it: run this in arpo's checkout")?;
    let root = script.ancestors().nth(2).unwrap_or(Path::new("/"));
    let dir = match &args.dir {
        Some(dir) => std::path::absolute(dir).context("cannot tell where --dir is")?,
        None => root.join(".venv-sidecar"),
    };
    // Its standard output, pip's, is progress.
    let status = Command::new("bash")
        .args([script.as_os_str(), "sidecar".as_ref(), dir.as_os_str()])
        .stdout(Stdio::from(std::io::stderr()))
        .status()
        .context("cannot run bash")?;
    if !status.success() {
        note("the sidecar is not complete; the same command goes on where it ended");
        return Ok(ExitCode::from(FAILED));
    }
    let python = dir.join("bin/python");
    if !python.exists() {
        bail!(
            "{} is missing: remove {} and try again",
            python.display(),
            dir.display()
        );
    }
    let bytes = size(&dir).with_context(|| format!("cannot read {}", dir.display()))?;
    if in_json {
        say(json!({ "dir": dir, "python": python, "bytes": bytes }));
    } else {
        let megabytes = bytes / 1_000_000;
        say(format_args!(
            "OSWorld's evaluators are in {}, {megabytes} MB",
            dir.display()
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// Bytes of the files below a folder.
fn size(folder: &Path) -> std::io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        bytes += if metadata.is_dir() {
            size(&entry.path())?
        } else {
            metadata.len()
        };
    }
    Ok(bytes)
}
