//! What desktops start from, made once a machine: a home with warmed-up applications, an `/etc` of
//! what they need, our few programs. And `arpo` itself, where a slot's user can read it.
//!
//! Kept until an application, the host's configuration of them or this program changes.

use std::fs::{self, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use scopeguard::guard;

use super::arguments::{self, ETC};
use crate::config::XvfbConfig;
use crate::env::sandbox::bubblewrap::command;
use crate::env::sandbox::{Slot, State, first_uid, launch};

/// The session of each desktop.
const SESSION: &str = include_str!("../../../assets/desktop/session.sh");

/// Programs by the names that OSWorld's tasks start them by.
const PROGRAMS: [(&str, &str); 4] = [
    ("code", include_str!("../../../assets/desktop/bin/code")),
    (
        "gnome-terminal",
        include_str!("../../../assets/desktop/bin/gnome-terminal"),
    ),
    (
        "google-chrome",
        include_str!("../../../assets/desktop/bin/google-chrome"),
    ),
    (
        "nautilus",
        include_str!("../../../assets/desktop/bin/nautilus"),
    ),
];

/// The files of /etc that are ours.
pub(super) const OWN_ETC: [(&str, &str); 7] = [
    (
        "passwd",
        "root:x:0:0:root:/root:/usr/sbin/nologin\nuser:x:1000:1000:User:/home/user:/bin/bash\n\
         nobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n",
    ),
    ("group", "root:x:0:\nuser:x:1000:\nnogroup:x:65534:\n"),
    ("hosts", "127.0.0.1 localhost desktop\n"),
    ("hostname", "desktop\n"),
    (
        "nsswitch.conf",
        "passwd: files\ngroup: files\nhosts: files\n",
    ),
    ("machine-id", "0123456789abcdef0123456789abcdef\n"),
    ("fstab", ""),
];

/// What changes when applications are installed, upgraded or removed.
const SIGNS: [&str; 5] = [
    "/usr/share/applications",
    "/usr/lib/libreoffice/program/versionrc",
    "/usr/lib/chromium",
    "/usr/bin",
    "/usr/libexec",
];

/// Another where templates made by an earlier version do not do: those had their maker's umask.
const FORMAT: &str = "2";

/// Drafts so far.
static DRAFTS: AtomicU32 = AtomicU32::new(0);

/// For the whole making; an office program's first start is most of it.
const PATIENCE: Duration = Duration::from_secs(180);

/// The template of this machine's applications, made if need be.
pub(super) async fn ensure(state: &State, config: &XvfbConfig) -> Result<PathBuf, String> {
    let folder = state.root().join("templates").join(key());
    if folder.exists() {
        return Ok(folder);
    }
    // Owned like a desktop, so that nothing of it is left if we die.
    let slot = state.take().map_err(told("take a slot"))?;
    let (uid, slot_number) = (slot.uid(), slot.number());
    let slot = Mutex::new(slot);
    // Numbered, for one that was given up may be on its way out still.
    let number = DRAFTS.fetch_add(1, Ordering::Relaxed);
    let name = format!(".{}-{slot_number}-{number}.tmp", std::process::id());
    let draft = guard(folder.with_file_name(name), |draft| {
        // Gone where it was kept. What a program that is just being killed still writes is left to
        // `prune`.
        let _ = fs::remove_dir_all(draft);
    });
    lay_out(&draft, uid).map_err(told("prepare the template"))?;
    let made = make(config, &slot, uid, &draft).await;
    made.and_then(|()| match fs::rename(&*draft, &folder) {
        // Another engine was quicker; one is as good as the other.
        Err(_) if folder.exists() => Ok(folder),
        outcome => outcome.map(|()| folder).map_err(told("keep the template")),
    })
}

/// Removes drafts of dead engines, and templates and programs that nobody uses any more.
pub(super) fn prune(state: &State, arpo: &Path) -> io::Result<()> {
    let _turn = state.turn()?;
    if !state.taken()?.is_empty() {
        return Ok(());
    }
    for (folder, kept) in [("templates", key()), ("programs", sign(arpo)?)] {
        for entry in fs::read_dir(state.root().join(folder))? {
            let path = entry?.path();
            if !path.ends_with(&kept) {
                fs::remove_dir_all(path)?;
            }
        }
    }
    Ok(())
}

/// `arpo` where the programs of a slot can read it: where it is if that will do, else a copy.
pub(super) fn readable_arpo(state: &State, arpo: &Path) -> io::Result<PathBuf> {
    let has = |path: &Path, mode: u32| {
        fs::metadata(path).is_ok_and(|metadata| metadata.mode() & mode == mode)
    };
    let is_reached = arpo.ancestors().skip(1).all(|folder| has(folder, 0o001));
    if first_uid().is_none() || (is_reached && has(arpo, 0o005)) {
        return Ok(arpo.to_owned());
    }
    let folder = state.root().join("programs").join(sign(arpo)?);
    let copy = folder.join("arpo");
    if copy.exists() {
        return Ok(copy);
    }
    let _turn = state.turn()?;
    fs::create_dir_all(&folder)?;
    fs::set_permissions(&folder, Permissions::from_mode(0o711))?;
    let draft = folder.join("draft");
    fs::copy(arpo, &draft)?;
    fs::set_permissions(&draft, Permissions::from_mode(0o755))?;
    fs::rename(&draft, &copy)?;
    Ok(copy)
}

fn lay_out(draft: &Path, uid: Option<u32>) -> io::Result<()> {
    fs::create_dir(draft)?;
    fs::set_permissions(draft, Permissions::from_mode(0o755))?;
    for name in ["bin", "etc", "home"] {
        let folder = draft.join(name);
        fs::create_dir(&folder)?;
        fs::set_permissions(&folder, Permissions::from_mode(0o755))?;
        if name != "bin" {
            chown(&folder, uid, uid)?;
        }
    }
    for (name, text) in OWN_ETC {
        write_file(&draft.join("etc").join(name), text, 0o644)?;
    }
    for (name, text) in PROGRAMS {
        write_file(&draft.join("bin").join(name), text, 0o755)?;
    }
    write_file(&draft.join("session.sh"), SESSION, 0o644)
}

/// Whatever our umask: slots' users read it.
fn write_file(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    fs::write(path, text)?;
    fs::set_permissions(path, Permissions::from_mode(mode))
}

async fn make(
    config: &XvfbConfig,
    slot: &Mutex<Slot>,
    uid: Option<u32>,
    draft: &Path,
) -> Result<(), String> {
    let deadline = Instant::now() + PATIENCE;
    let arguments = arguments::template_arguments(config, draft);
    let command = command(super::limits(config), uid, arguments, Vec::new());
    let command = command.map_err(|error| error.to_string())?;
    let (mut child, _) = launch(command, slot, deadline).await?;
    let limit = tokio::time::Instant::from_std(deadline);
    match tokio::time::timeout_at(limit, child.wait()).await {
        Ok(Ok(status)) if status.success() => Ok(()),
        Ok(Ok(status)) => Err(format!("making the template ended: {status}")),
        Ok(Err(error)) => Err(told("wait for the template")(error)),
        Err(_) => Err(format!(
            "making the template took more than {} s",
            PATIENCE.as_secs()
        )),
    }
}

/// A name that changes with what the template is made of.
fn key() -> String {
    let mut hasher = blake3::Hasher::new();
    for text in [FORMAT, arguments::TEMPLATE, SESSION] {
        hasher.update(text.as_bytes());
    }
    for (name, text) in PROGRAMS.into_iter().chain(OWN_ETC) {
        hasher.update(name.as_bytes()).update(text.as_bytes());
    }
    let etc = ETC.map(|name| format!("/etc/{name}"));
    let paths = SIGNS.iter().copied().chain(etc.iter().map(String::as_str));
    for path in paths {
        hasher.update(sign(Path::new(path)).unwrap_or_default().as_bytes());
    }
    hasher.finalize().to_hex()[..32].to_owned()
}

/// What changes when a file or a folder does.
fn sign(path: &Path) -> io::Result<String> {
    let of = |m: Metadata| format!("{}-{}-{}-{}", m.ino(), m.size(), m.mtime(), m.mtime_nsec());
    fs::metadata(path).map(of)
}

fn told(what: &'static str) -> impl Fn(io::Error) -> String {
    move |error| format!("cannot {what}: {error}")
}
