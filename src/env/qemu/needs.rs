//! What virtual machines need of this machine: programs, an image, room on a disk.

use std::path::Path;
use std::process::Command;

use super::image::Image;
use crate::config::QemuConfig;
use crate::env::sandbox::needs::{check_all, missing_of, required};

pub use crate::env::sandbox::needs::{Need, Unmet, remedy};

/// QEMU, as it is found on the search path.
pub(super) const QEMU: &str = "qemu-system-x86_64";

/// All of them.
pub const NEEDS: [Need; 4] = [
    required(QEMU, "the virtual machine", "qemu-system-x86"),
    required("qemu-img", "its disk", "qemu-utils"),
    required("bwrap", "the sandbox", "bubblewrap"),
    required("socat", "the way to its server", "socat"),
];

/// What of this machine's needs is missing.
pub fn missing() -> Vec<Need> {
    missing_of(&NEEDS)
}

/// Whether there can be virtual machines here.
pub fn check() -> Result<(), Unmet> {
    if cfg!(not(target_arch = "x86_64")) {
        return Err(Unmet {
            found: "the image's processor is an x86_64, this is another".to_owned(),
            remedy: "run on an x86_64".to_owned(),
        });
    }
    check_all(&NEEDS)
}

/// Whether there is an image, as the profile has it; what is found, or an error that says what to
/// do.
pub fn check_image(config: &QemuConfig) -> Result<String, String> {
    let folder = config.image_folder();
    let image = Image::open(&folder)?;
    let disk_gb = image.disk_bytes()? as f64 / 1e9;
    let key: String = image.key.chars().take(12).collect();
    Ok(format!(
        "{}, key {key}, a disk of {disk_gb:.1} GB",
        folder.display()
    ))
}

/// Bytes that are free where a folder is, or would be.
pub fn free_bytes(folder: &Path) -> Option<u64> {
    let existing = folder.ancestors().find(|path| path.exists());
    let existing = existing.filter(|path| !path.as_os_str().is_empty());
    let stat = rustix::fs::statvfs(existing.unwrap_or(Path::new("."))).ok()?;
    Some(stat.f_bavail * stat.f_frsize)
}

/// QEMU's version, as it says it.
pub fn qemu_version() -> Result<String, String> {
    let output = Command::new(QEMU).arg("--version").output();
    let output = output.map_err(|error| format!("{QEMU} does not start: {error}"))?;
    let said = String::from_utf8_lossy(&output.stdout);
    let line = said.lines().next().unwrap_or_default();
    match line.split_once("version ") {
        Some((_, version)) if output.status.success() => Ok(version.trim().to_owned()),
        _ => Err(format!("{QEMU} --version says {line:?}")),
    }
}
