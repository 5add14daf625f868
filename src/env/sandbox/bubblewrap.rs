//! What bubblewrap is told in every sandbox of ours: namespaces of its own, the host's programs
//! read-only, no capability. What a desktop sees beyond that, its provider adds.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Stdio;

use command_fds::{CommandFdExt, FdMapping, FdMappingCollision};
use tokio::process::Command;

/// Run by bash before bubblewrap, as the slot's user: nothing but the three standard streams and
/// what was handed over goes in, an agent's files are alike whatever the operator's umask, the
/// kernel kills the desktop before anything else when memory runs out, and its programs have
/// limits: KiB of a file, KiB of a program's own memory. Processes are limited within: out here
/// those of all the user's would count.
const LAUNCH: &str = r#"
for fd in /proc/self/fd/*; do
    fd=${fd##*/}
    if [ "$fd" -gt "$1" ]; then exec {fd}>&-; fi
done
echo 1000 >/proc/self/oom_score_adj
umask 022
ulimit -c 0 && ulimit -f "$2" && ulimit -d "$3" && shift 3 && exec "$@"
"#;

/// The highest standard stream.
const STANDARD_ERROR: i32 = 2;

/// Where files are that were handed over: the first, then one after the other.
pub const FIRST_HANDED: i32 = STANDARD_ERROR + 1;

/// What one program of a sandbox may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Size of one file.
    pub file_mb: u64,
    /// Memory of its own.
    pub memory_mb: u64,
}

/// A program in bubblewrap with these arguments, with limits, as `uid` where there is one. It finds
/// the `files` handed over from `FIRST_HANDED` on.
pub fn command(
    limits: Limits,
    uid: Option<u32>,
    arguments: Arguments,
    files: Vec<OwnedFd>,
) -> Result<Command, FdMappingCollision> {
    const KIB_A_MB: u64 = 1024;
    let last = STANDARD_ERROR + files.len() as i32;
    let mut command = Command::new("/bin/bash");
    command
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .current_dir("/")
        .args(["-c", LAUNCH, "desktop"])
        .arg(last.to_string())
        .arg((limits.file_mb * KIB_A_MB).to_string())
        .arg((limits.memory_mb * KIB_A_MB).to_string())
        .arg("bwrap")
        .args(arguments.0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    if let Some(uid) = uid {
        command.uid(uid).gid(uid);
    }
    let mapping = |(child_fd, parent_fd)| FdMapping {
        parent_fd,
        child_fd,
    };
    let mappings = (FIRST_HANDED..).zip(files).map(mapping).collect();
    command.fd_mappings(mappings)?;
    Ok(command)
}

/// Arguments of bubblewrap, in order.
#[derive(Debug)]
pub struct Arguments(Vec<OsString>);

impl Arguments {
    /// Namespaces of its own, no capability, no way to more of either; the host's programs.
    pub fn isolated() -> Self {
        let mut list = Self(Vec::new());
        // Asked for by name: `--unshare-all` alone would do without a user namespace.
        list.add(["--unshare-user", "--unshare-all", "--disable-userns"]);
        list.add(["--uid", "1000", "--gid", "1000", "--hostname", "desktop"]);
        list.add(["--cap-drop", "ALL", "--new-session", "--die-with-parent"]);
        list.add(["--clearenv", "--info-fd", "1"]);
        list.add(["--ro-bind", "/usr", "/usr"]);
        for folder in ["bin", "sbin", "lib", "lib32", "lib64", "libx32"] {
            let path = Path::new("/").join(folder);
            match std::fs::read_link(&path) {
                Ok(target) => list.bind("--symlink", &target, &path),
                Err(_) => list.bind("--ro-bind-try", &path, &path),
            }
        }
        list
    }

    /// More of them.
    pub fn add<const N: usize>(&mut self, arguments: [&str; N]) {
        self.0.extend(arguments.map(OsString::from));
    }

    /// Something of the host's, at a place within.
    pub fn bind(&mut self, how: &str, from: &Path, to: impl AsRef<Path>) {
        self.add([how]);
        self.0.extend([from.into(), to.as_ref().into()]);
    }

    /// A folder in memory, of a limited size.
    pub fn tmpfs(&mut self, mode: &str, bytes: u64, path: &str) {
        self.add([
            "--perms",
            mode,
            "--size",
            &bytes.to_string(),
            "--tmpfs",
            path,
        ]);
    }

    /// /proc, and a /dev that nobody adds to, with `shared` bytes of shared memory.
    pub fn system(&mut self, shared: u64) {
        self.add(["--proc", "/proc", "--dev", "/dev"]);
        self.tmpfs("1777", shared, "/dev/shm");
        self.add(["--remount-ro", "/dev"]);
    }

    /// A variable of its environment.
    pub fn set(&mut self, name: &str, value: &str) {
        self.add(["--setenv", name, value]);
    }

    /// What bash runs in it; the last of the arguments.
    pub fn bash<T: Into<OsString>>(&mut self, script: impl IntoIterator<Item = T>) {
        // After all folders are made; what is mounted below stays writable.
        self.add(["--remount-ro", "/", "--chdir", "/", "--"]);
        self.add(["/bin/bash"]);
        self.0.extend(script.into_iter().map(Into::into));
    }
}
