//! What the process sees of this machine: its interpreter and packages, read only, and sockets of
//! the desktops it is asked about. No home, no network, no other process.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tokio::process::Command;

use super::{SidecarError, SidecarOptions};
use crate::config::Confinement;

/// Its code, by file.
pub(super) const CODE: [(&str, &str); 3] = [
    ("child.py", include_str!("../../../assets/sidecar/child.py")),
    (
        "osworld.py",
        include_str!("../../../assets/sidecar/osworld.py"),
    ),
    (
        "server.py",
        include_str!("../../../assets/sidecar/server.py"),
    ),
];

/// Where things lie in the sandbox. Not below /tmp, which each evaluation has for itself.
const PACKAGES: &str = "/opt/packages";
const SERVER: &str = "/opt/sidecar";
const RELAYS: &str = "/opt/relay";

/// What every evaluation finds in its environment. One thread: a fork keeps no other.
const ENVIRONMENT: [(&str, &str); 6] = [
    ("HOME", "/tmp"),
    ("LANG", "C.UTF-8"),
    ("MKL_NUM_THREADS", "1"),
    ("OMP_NUM_THREADS", "1"),
    ("OPENBLAS_NUM_THREADS", "1"),
    ("PATH", "/usr/bin:/bin"),
];

/// Folder of a request's sockets as the process sees it.
pub(super) fn relay_seen(options: &SidecarOptions, id: u64) -> PathBuf {
    relays_seen(options).join(id.to_string())
}

fn relays_seen(options: &SidecarOptions) -> PathBuf {
    match options.confinement {
        Confinement::Bubblewrap => PathBuf::from(RELAYS),
        Confinement::LimitsOnly => options.folder.join("relay"),
    }
}

/// The command that starts it.
pub(super) fn command(options: &SidecarOptions) -> Result<Command, SidecarError> {
    let network = if options.live_sites { "shared" } else { "none" };
    let mut command = match options.confinement {
        Confinement::LimitsOnly => {
            let mut command = Command::new(&options.python);
            command.env_clear().envs(ENVIRONMENT);
            command.args(["-B", "-W", "ignore"]);
            command.arg(options.folder.join("code/server.py"));
            command.args(["none", "shared"]);
            command
        }
        Confinement::Bubblewrap => {
            let mut command = Command::new("bwrap");
            confine(&mut command, options)?;
            for (name, value) in ENVIRONMENT {
                command.args(["--setenv", name, value]);
            }
            command.arg(Path::new(PACKAGES).join("bin/python"));
            command.args(["-B", "-W", "ignore"]);
            command.arg(Path::new(SERVER).join("server.py"));
            command.args(["namespaces", network]);
            command
        }
    };
    command.arg(relays_seen(options));
    Ok(command)
}

fn confine(command: &mut Command, options: &SidecarOptions) -> Result<(), SidecarError> {
    let packages = packages_of(&options.python);
    let bind = |command: &mut Command, from: &Path, to: &Path| {
        command.arg("--ro-bind").arg(from).arg(to);
    };
    // It ends with the thread that starts it, which is one of the runtime's own and lasts as long.
    command.args([
        "--unshare-all",
        "--new-session",
        "--die-with-parent",
        "--clearenv",
    ]);
    command.args([
        "--unshare-user",
        "--uid",
        "1000",
        "--gid",
        "1000",
        "--cap-drop",
        "ALL",
    ]);
    bind(command, Path::new("/usr"), Path::new("/usr"));
    for name in ["/bin", "/lib", "/lib32", "/lib64", "/sbin"] {
        match fs::read_link(name) {
            Ok(target) => command.arg("--symlink").arg(target).arg(name),
            Err(_) => command.args(["--ro-bind-try", name, name]),
        };
    }
    for name in ["/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/localtime"] {
        command.args(["--ro-bind-try", name, name]);
    }
    if options.live_sites {
        command.arg("--share-net");
        for name in [
            "/etc/resolv.conf",
            "/etc/hosts",
            "/etc/nsswitch.conf",
            "/etc/ssl",
        ] {
            command.args(["--ro-bind-try", name, name]);
        }
    }
    command.args(["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]);
    for base in bases(&packages)? {
        bind(command, &base, &base);
    }
    bind(command, &packages, Path::new(PACKAGES));
    bind(command, &options.folder.join("code"), Path::new(SERVER));
    bind(command, &options.folder.join("relay"), Path::new(RELAYS));
    command.args([
        "--remount-ro",
        "/",
        "--remount-ro",
        "/dev",
        "--chdir",
        "/tmp",
    ]);
    Ok(())
}

/// The virtual environment of an interpreter. Its own link is not followed: that leads to the
/// interpreter that it was made with.
fn packages_of(python: &Path) -> PathBuf {
    let bin = python.parent().unwrap_or(Path::new("."));
    let bin = fs::canonicalize(bin).unwrap_or_else(|_| bin.to_owned());
    bin.parent().unwrap_or(&bin).to_owned()
}

/// Where the interpreter lies that a virtual environment was made with, unless that is in `/usr`.
fn bases(packages: &Path) -> Result<Vec<PathBuf>, SidecarError> {
    let path = packages.join("pyvenv.cfg");
    let text = fs::read_to_string(&path).map_err(|error| {
        let path = path.display();
        SidecarError::Unavailable(format!(
            "cannot read {path}: {error}; name the interpreter of a virtual environment"
        ))
    })?;
    let value = |name: &str| {
        let lines = text.lines().filter_map(|line| line.split_once('='));
        let found = lines.map(|(key, value)| (key.trim(), value.trim()));
        found
            .into_iter()
            .find(|(key, _)| *key == name)
            .map(|(_, value)| PathBuf::from(value))
    };
    let home = value("home").unwrap_or_default();
    let real = fs::canonicalize(packages.join("bin/python")).unwrap_or_default();
    let folders = [Some(home.as_path()), real.parent()];
    let mut bases: Vec<PathBuf> = folders
        .into_iter()
        .flatten()
        .filter_map(Path::parent)
        .filter(|base| !base.starts_with("/usr") && base.parent().is_some())
        .map(Path::to_owned)
        .collect();
    bases.dedup();
    Ok(bases)
}

/// Why a program did not start, and what to do.
pub(super) fn no_start(program: &OsStr, error: &io::Error) -> String {
    if program == "bwrap" && error.kind() == io::ErrorKind::NotFound {
        return format!("bubblewrap is not installed (Debian: apt install bubblewrap); {WITHOUT}");
    }
    format!("{}: {error}", program.display())
}

const WITHOUT: &str = "eval.sidecar_confinement = \"limits_only\" does without it";

/// What its last words mean where it ended before it was ready.
pub(super) fn explain(words: &str) -> String {
    if words.contains("bwrap:") {
        return format!("no sandbox can be made here ({words}); {WITHOUT}");
    }
    words.to_owned()
}
