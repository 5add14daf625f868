//! What desktops of this machine need of it: programs, Debian's packages that have them, a sandbox
//! that works.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A program that desktops use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    /// Its name on the search path, or its path.
    pub program: &'static str,
    /// What it is for.
    pub purpose: &'static str,
    /// Debian's package.
    pub package: &'static str,
    /// Whether there are desktops without it.
    pub is_required: bool,
}

/// One that there is no desktop without.
pub const fn required(program: &'static str, purpose: &'static str, package: &'static str) -> Need {
    Need {
        program,
        purpose,
        package,
        is_required: true,
    }
}

/// One that is good to have.
pub const fn wanted(program: &'static str, purpose: &'static str, package: &'static str) -> Need {
    Need {
        program,
        purpose,
        package,
        is_required: false,
    }
}

impl Need {
    /// Where it is.
    pub fn find(&self) -> Option<PathBuf> {
        let folders = ["/usr/local/bin", "/usr/bin", "/bin", "/usr/games"];
        let mut paths = folders.map(|folder| Path::new(folder).join(self.program));
        paths
            .iter_mut()
            .find(|path| path.is_file())
            .map(std::mem::take)
    }
}

/// Which of them are missing here.
pub fn missing_of(needs: &[Need]) -> Vec<Need> {
    let mut needs = needs.to_vec();
    needs.retain(|need| need.find().is_none());
    needs
}

/// The command that installs them.
pub fn remedy(needs: &[Need]) -> String {
    let packages: Vec<&str> = needs.iter().map(|need| need.package).collect();
    format!(
        "apt-get install --no-install-recommends {}",
        packages.join(" ")
    )
}

/// Why there can be no desktops here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmet {
    /// What is missing or does not work.
    pub found: String,
    /// What to do about it.
    pub remedy: String,
}

/// Whether there can be desktops that need these. There is no way around the sandbox.
pub fn check_all(needs: &[Need]) -> Result<(), Unmet> {
    let mut lacking = missing_of(needs);
    lacking.retain(|need| need.is_required);
    if !lacking.is_empty() {
        let names: Vec<&str> = lacking.iter().map(|need| need.program).collect();
        return Err(Unmet {
            found: format!("no {}", names.join(", ")),
            remedy: remedy(&lacking),
        });
    }
    sandbox_works()
}

/// Makes the smallest sandbox, as the user that desktops would have.
fn sandbox_works() -> Result<(), Unmet> {
    use std::os::unix::process::CommandExt;
    let mut command = Command::new("bwrap");
    command
        .args(["--unshare-user", "--unshare-all", "--disable-userns"])
        .args(["--ro-bind", "/", "/", "--proc", "/proc", "--", "/bin/true"])
        .current_dir("/")
        .stdin(Stdio::null());
    if let Some(uid) = super::slots::first_uid() {
        command.uid(uid).gid(uid);
    }
    let output = command.output().map_err(|error| Unmet {
        found: format!("bwrap does not start: {error}"),
        remedy: "see whether this user may run it".to_owned(),
    })?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.lines().next_back().unwrap_or("no reason given");
    let remedy = if said.contains("disable-userns") {
        "install bubblewrap 0.8 or newer"
    } else {
        "allow user namespaces: `sysctl kernel.unprivileged_userns_clone=1 \
         user.max_user_namespaces=10000`, on Ubuntu also \
         `sysctl kernel.apparmor_restrict_unprivileged_userns=0`; in a container, start it with \
         them allowed"
    };
    Err(Unmet {
        found: format!("bubblewrap makes no sandbox here: {said}"),
        remedy: remedy.to_owned(),
    })
}
