//! The snapshot that machines are restored from: a clean desktop, booted once, stopped, its memory
//! and its disk's layer kept, and taken for good only after a fresh QEMU was restored from it.
//!
//! ```text
//! IMAGE/snapshots/lock          held while one is made or removed
//! IMAGE/snapshots/KEY.lock      held by everyone who restores from it
//! IMAGE/snapshots/KEY/          initrd, overlay.qcow2, memory, fresh.qcow2, snapshot.json
//! ```
//!
//! The key changes with the image, `arpo`, QEMU, the machine that QEMU is told to build, and with
//! KVM this host: restored by another, memory is garbage. `.config/vm-image.sh` holds all of the
//! locks while it makes the image anew.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::arguments::{self, Disk, Files, Processor};
use super::image::Image;
use super::running::{Running, follow, layer};
use super::vm::{Launch, Vm, open, open_written};
use super::{Basis, QemuOptions, initrd};
use crate::env::guest::is_black;
use crate::env::machine::Reporter;
use crate::env::sandbox::{Slot, State, await_end};
use crate::store::{Durability, write_whole};
use crate::types::{MachinePhase, ScreenSize};

/// The form of `snapshot.json`.
const FORMAT: u32 = 1;

/// Between two looks at a lock.
const POLL: Duration = Duration::from_millis(200);

/// For all but the start of the guest: what is copied and tried is a few hundred megabytes.
const SAVING: Duration = Duration::from_secs(120);

const MB: u64 = 1 << 20;

/// `snapshot.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct About {
    format: u32,
    key: String,
    /// Key of the image.
    image: String,
    /// Hash of `arpo`.
    arpo: String,
    /// QEMU's version.
    qemu: String,
    accelerator: String,
    screen: ScreenSize,
    arguments: Vec<String>,
    token: String,
    memory_bytes: u64,
    overlay_bytes: u64,
    made_at: String,
    boot_ms: u64,
    made_ms: u64,
}

/// A snapshot that is whole, held against removal.
#[derive(Debug)]
pub(super) struct Snapshot {
    folder: PathBuf,
    about: About,
    _held: Option<File>,
}

impl Snapshot {
    /// Where it lies.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// What the guest's kernel started with.
    pub(super) fn initrd(&self) -> PathBuf {
        self.folder.join("initrd")
    }

    /// The disk's layer.
    pub(super) fn layer(&self) -> PathBuf {
        self.folder.join("overlay.qcow2")
    }

    /// The guest's memory.
    pub(super) fn memory(&self) -> PathBuf {
        self.folder.join("memory")
    }

    /// An empty layer.
    pub(super) fn fresh(&self) -> PathBuf {
        self.folder.join("fresh.qcow2")
    }

    /// What its server wants to hear.
    pub(super) fn token(&self) -> &str {
        &self.about.token
    }

    /// Opens what lies in a folder, if it is whole and what it says.
    fn open(folder: &Path, key: &str, held: Option<File>) -> Result<Self, String> {
        let path = folder.join("snapshot.json");
        let told = |reason: String| format!("{}: {reason}", path.display());
        let text = fs::read_to_string(&path).map_err(|error| told(error.to_string()))?;
        let about: About = serde_json::from_str(&text).map_err(|error| told(error.to_string()))?;
        if about.format != FORMAT || about.key != key {
            return Err(told("it is of another machine".to_owned()));
        }
        let snapshot = Self {
            folder: folder.to_owned(),
            about,
            _held: held,
        };
        let bytes = |path: &Path| fs::metadata(path).map_or(0, |data| data.len());
        let sizes = [bytes(&snapshot.memory()), bytes(&snapshot.layer())];
        if sizes != [snapshot.about.memory_bytes, snapshot.about.overlay_bytes] {
            return Err(told("its files are not as large as it says".to_owned()));
        }
        Ok(snapshot)
    }
}

/// The snapshot of a basis, made if need be; `voice` hears how far that is.
pub(super) async fn ensure(
    basis: &Basis,
    options: &QemuOptions,
    state: &State,
    voice: &Reporter,
) -> Result<Snapshot, String> {
    let store = basis.image.snapshots();
    let key = key(basis);
    let patience = Duration::from_secs_f64(options.config.boot_deadline_s) + SAVING;
    let unusable = |error: io::Error| unusable(&store, &error);
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&store)
        .map_err(unusable)?;
    // To wait and to begin is one phase, whose age and limit are both counted from here.
    let tell = |detail: &str| {
        let limit = Some(patience + SAVING);
        voice.status(MachinePhase::Preparing, limit, "given up", detail);
    };
    tell("waits for its turn");
    let _turn = turn(&store, patience).await?;
    if Image::open(store.parent().unwrap_or(&store))?.key != basis.image.key {
        return Err("its image was made anew meanwhile: start the run again".to_owned());
    }
    let held = lock_file(&store.join(format!("{key}.lock"))).map_err(unusable)?;
    flock(&held, FlockOperation::LockShared).map_err(|error| unusable(error.into()))?;
    if let Err(error) = prune(&store, basis) {
        tracing::warn!(%error, "old snapshots stay");
    }
    let folder = store.join(&key);
    if folder.exists() {
        match Snapshot::open(&folder, &key, Some(held)) {
            Ok(snapshot) => return Ok(snapshot),
            Err(reason) => {
                tracing::warn!(reason, "a snapshot is made anew");
                fs::remove_dir_all(&folder).map_err(unusable)?;
            }
        }
    }
    let draft = store.join(format!(".{key}.draft"));
    DirBuilder::new()
        .mode(0o700)
        .create(&draft)
        .map_err(unusable)?;
    // Owned like a desktop, so that nothing of it is left if we die.
    let slot = state
        .take()
        .map_err(|error| format!("cannot take a slot: {error}"))?;
    tell("what it starts with");
    let made = make(basis, options, &Mutex::new(slot), voice, &draft, &key).await;
    let kept = made.and_then(|()| fs::rename(&draft, &folder).map_err(unusable));
    if let Err(reason) = kept {
        let _ = fs::remove_dir_all(&draft);
        return Err(reason);
    }
    let held = lock_file(&store.join(format!("{key}.lock"))).map_err(unusable)?;
    flock(&held, FlockOperation::LockShared).map_err(|error| unusable(error.into()))?;
    Snapshot::open(&folder, &key, Some(held))
}

async fn make(
    basis: &Basis,
    options: &QemuOptions,
    slot: &Mutex<Slot>,
    voice: &Reporter,
    draft: &Path,
    key: &str,
) -> Result<(), String> {
    let begun = Instant::now();
    let token = format!("{:032x}", rand::random::<u128>());
    let initrd = draft.join("initrd");
    let (image, arpo) = (basis.image.clone(), options.arpo.clone());
    let (secret, path) = (token.clone(), initrd.clone());
    apart(move || initrd::write(&image, &arpo, &secret, &path)).await?;
    let fresh = draft.join("fresh.qcow2");
    make_disk(&fresh, basis.image.disk_bytes()?)?;
    let (running, boot) = boot(basis, options, slot, voice, (&initrd, &fresh), &token).await?;
    voice.status(
        MachinePhase::Preparing,
        Some(SAVING),
        "given up",
        "memory and disk are kept",
    );
    let deadline = Instant::now() + SAVING;
    running.vm.save(deadline).await?;
    let folder = running.vm.quit(deadline).await?;
    let most = (u64::from(options.config.memory_mb) + u64::from(options.config.disk_mb)) * MB;
    let to = draft.to_owned();
    let (memory_bytes, overlay_bytes) = apart(move || {
        let keep = |name| keep(folder.path(), &to, name, most);
        Ok((keep("memory")?, keep("overlay.qcow2")?))
    })
    .await?;
    let mut about = About {
        format: FORMAT,
        key: key.to_owned(),
        image: basis.image.key.clone(),
        arpo: basis.arpo.clone(),
        qemu: basis.qemu.clone(),
        accelerator: basis.hardware.processor.name().to_owned(),
        screen: basis.hardware.screen,
        arguments: basis.hardware.qemu(Disk::OverSnapshot),
        token,
        memory_bytes,
        overlay_bytes,
        made_at: jiff::Timestamp::now().to_string(),
        boot_ms: boot.as_millis() as u64,
        made_ms: 0,
    };
    let snapshot = Snapshot {
        folder: draft.to_owned(),
        about: about.clone(),
        _held: None,
    };
    try_out(basis, &snapshot, options, slot, voice).await?;
    about.made_ms = begun.elapsed().as_millis() as u64;
    let text = serde_json::to_vec_pretty(&about).expect("numbers and strings are always JSON");
    let path = draft.join("snapshot.json");
    write_whole(&path, &text, Durability::Machine).map_err(|error| error.to_string())?;
    // It has the token.
    fs::set_permissions(&path, Permissions::from_mode(0o600)).map_err(|error| error.to_string())
}

/// Boots a guest from its disk until it has a clean desktop whose server answers; and how long it
/// took.
async fn boot(
    basis: &Basis,
    options: &QemuOptions,
    slot: &Mutex<Slot>,
    voice: &Reporter,
    (initrd, fresh): (&Path, &Path),
    token: &str,
) -> Result<(Running, Duration), String> {
    let limit = Duration::from_secs_f64(options.config.boot_deadline_s);
    let (begun, deadline) = (Instant::now(), Instant::now() + limit);
    let tell = |detail: &str| {
        voice.status(
            MachinePhase::Booting,
            Some(limit),
            "killed, and given up",
            detail,
        );
    };
    tell("QEMU starts");
    let config = &options.config;
    let launch = Launch {
        hardware: &basis.hardware,
        disk: Disk::OverImage,
        files: Files {
            kernel: open(&basis.image.kernel())?,
            initrd: open(initrd)?,
            base: Some(open(&basis.image.disk())?),
            snapshot: None,
            kvm: basis.kvm()?,
        },
        // The memory is written to a file, too.
        limits: arguments::limits(config, config.disk_mb + 2 * config.memory_mb),
        fresh: Some(fresh),
    };
    let vm = Vm::launch(launch, slot, deadline).await?;
    vm.announce(voice);
    let machine = layer("machine", begun.elapsed());
    vm.go_on().await?;
    tell("kernel");
    let mut progress = vm.progress();
    let mut told = 0;
    loop {
        let stage = follow(&mut progress, &vm, deadline, |now| {
            (now.told > told).then(|| (now.told, now.stage.clone()))
        });
        let (count, stage) = stage.await?;
        told = count;
        tell(&stage);
        if stage == "ready" {
            break;
        }
    }
    let running = Running::of(vm, token, basis, options, vec![machine], deadline).await?;
    Ok((running, begun.elapsed()))
}

/// Restores a machine in a fresh process and looks at all of its layers.
async fn try_out(
    basis: &Basis,
    snapshot: &Snapshot,
    options: &QemuOptions,
    slot: &Mutex<Slot>,
    voice: &Reporter,
) -> Result<(), String> {
    let tried = Running::restore(basis, snapshot, options, slot, voice).await;
    let running = tried.map_err(|reason| format!("its snapshot cannot be restored: {reason}"))?;
    let picture = running.vm.picture().await;
    await_end(running.vm.kill(), "qemu snapshot").await;
    let picture = picture.map_err(|reason| format!("its snapshot has no picture: {reason}"))?;
    if picture.size() != basis.hardware.screen {
        let ScreenSize { width, height } = picture.size();
        return Err(format!(
            "its snapshot's screen has {width} x {height} pixels"
        ));
    }
    if is_black(&picture) {
        return Err("its snapshot's screen is black".to_owned());
    }
    Ok(())
}

/// Does what takes long on a disk where nobody waits for it but us.
async fn apart<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| error.to_string())?
}

/// An empty disk of a size, as QEMU writes it.
fn make_disk(path: &Path, bytes: u64) -> Result<(), String> {
    let output = Command::new("qemu-img")
        .args(["create", "-q", "-f", "qcow2"])
        .arg(path)
        .arg(bytes.to_string())
        .output()
        .map_err(|error| format!("qemu-img does not start: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("qemu-img made no disk: {}", said.trim()))
}

/// Copies what a machine wrote, at most so much; and how large it is.
fn keep(from: &Path, to: &Path, name: &str, most: u64) -> Result<u64, String> {
    let copied = open_written(from, name).and_then(|file| {
        let path = to.join(name);
        let mut copy = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&path)?;
        let bytes = io::copy(&mut io::Read::take(file, most + 1), &mut copy)?;
        // Opened again by the slot's user.
        copy.set_permissions(Permissions::from_mode(0o444))?;
        if bytes > most {
            return Err(io::Error::other(format!("more than {most} bytes")));
        }
        Ok(bytes)
    });
    copied.map_err(|error| format!("cannot keep its {name}: {error}"))
}

/// A name that changes with what the snapshot depends on.
fn key(basis: &Basis) -> String {
    key_on(basis, &host())
}

/// The same on a host with a processor and a kernel.
fn key_on(basis: &Basis, host: &str) -> String {
    let mut hasher = blake3::Hasher::new();
    let mut add = |text: &str| {
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    };
    for text in [&basis.image.key, &basis.arpo, &basis.qemu] {
        add(text);
    }
    add(basis.hardware.processor.name());
    if basis.hardware.processor == Processor::Kvm {
        add(host);
    }
    basis
        .hardware
        .qemu(Disk::OverSnapshot)
        .iter()
        .for_each(|argument| add(argument));
    hasher.finalize().to_hex()[..32].to_owned()
}

/// What guests on this host's processor see of it, and the kernel that runs them.
fn host() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let is_it = |line: &&str| line.starts_with("model name") || line.starts_with("flags");
    let mut lines: Vec<&str> = text.lines().filter(is_it).collect();
    lines.sort_unstable();
    lines.dedup();
    let host = rustix::system::uname();
    let kernel = host.release().to_string_lossy();
    format!("{}\n{kernel}", lines.join("\n"))
}

/// Why snapshots cannot be kept in a folder, and what to do.
fn unusable(store: &Path, error: &io::Error) -> String {
    format!(
        "snapshots cannot be kept in {}: {error}: name an image in a folder of yours with \
         env.qemu.image",
        store.display()
    )
}

/// Waits for the lock that another engine may hold for as long as it makes a snapshot.
async fn turn(store: &Path, patience: Duration) -> Result<File, String> {
    let path = store.join("lock");
    let lock = lock_file(&path).map_err(|error| unusable(store, &error))?;
    let deadline = Instant::now() + patience;
    loop {
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(lock),
            Err(rustix::io::Errno::WOULDBLOCK) if Instant::now() < deadline => {
                tokio::time::sleep(POLL).await;
            }
            Err(rustix::io::Errno::WOULDBLOCK) => {
                return Err(format!(
                    "another engine has held {} for {} s",
                    path.display(),
                    patience.as_secs()
                ));
            }
            Err(error) => return Err(unusable(store, &error.into())),
        }
    }
}

fn lock_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    options.open(path)
}

/// Removes snapshots of other images, programs and versions of QEMU that nobody uses. The turn must
/// be held.
fn prune(store: &Path, basis: &Basis) -> io::Result<()> {
    for entry in fs::read_dir(store)? {
        let folder = entry?.path();
        if folder
            .extension()
            .is_some_and(|extension| extension == "draft")
        {
            // Left by one who died: the turn is ours.
            fs::remove_dir_all(&folder)?;
            continue;
        }
        let text = fs::read_to_string(folder.join("snapshot.json"));
        let Some(about) = text
            .ok()
            .and_then(|text| serde_json::from_str::<About>(&text).ok())
        else {
            continue;
        };
        let of = [&about.image, &about.arpo, &about.qemu];
        if of == [&basis.image.key, &basis.arpo, &basis.qemu] {
            continue;
        }
        let path = store.join(format!("{}.lock", about.key));
        let lock = lock_file(&path)?;
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok() {
            fs::remove_dir_all(&folder)?;
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::qemu::arguments::Hardware;

    fn basis(change: impl FnOnce(&mut Basis)) -> Basis {
        let folder = tempfile::tempdir().unwrap();
        let about = r#"{"format": 1, "key": "image", "append": "quiet"}"#;
        for (name, text) in [("image.json", about), ("disk.qcow2", ""), ("vmlinux", "")] {
            fs::write(folder.path().join(name), text).unwrap();
        }
        fs::write(folder.path().join("initrd.cpio"), "").unwrap();
        let mut basis = Basis {
            image: Image::open(folder.path()).unwrap(),
            hardware: Hardware {
                processor: Processor::Tcg,
                screen: ScreenSize {
                    width: 640,
                    height: 480,
                },
                memory_mb: 512,
                append: "quiet".to_owned(),
            },
            why: String::new(),
            arpo: "arpo".to_owned(),
            qemu: "10.0".to_owned(),
        };
        change(&mut basis);
        basis
    }

    #[test]
    fn a_key_changes_with_all_that_a_snapshot_depends_on() {
        let changes: [fn(&mut Basis); 9] = [
            |_| {},
            |basis| basis.image.key.push('x'),
            |basis| basis.arpo.push('x'),
            |basis| basis.qemu.push('x'),
            |basis| basis.hardware.processor = Processor::Kvm,
            |basis| basis.hardware.screen.width += 1,
            |basis| basis.hardware.screen.height += 1,
            |basis| basis.hardware.memory_mb += 1,
            |basis| basis.hardware.append.push('x'),
        ];
        let mut keys = changes.map(|change| key(&basis(change)));
        assert_eq!(keys[0], key(&basis(|basis| basis.why.push('x'))));
        keys.sort_unstable();
        assert!(keys.windows(2).all(|pair| pair[0] != pair[1]), "{keys:?}");
        // So does a host, for guests that run on its processor.
        for (processor, is_same) in [(Processor::Tcg, true), (Processor::Kvm, false)] {
            let basis = basis(|basis| basis.hardware.processor = processor);
            let keys = ["6.1.0-42", "6.12.0"].map(|host| key_on(&basis, host));
            assert_eq!(keys[0] == keys[1], is_same, "{processor:?}");
        }
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
        assert!(host().ends_with(kernel.trim()), "{}", host());
        // What ends where is told apart, too.
        let moved = |basis: &mut Basis| (basis.arpo, basis.qemu) = ("arpo1".into(), "0.0".into());
        assert_ne!(key(&basis(|_| {})), key(&basis(moved)));
    }

    #[test]
    fn a_snapshot_that_is_not_what_it_says_is_refused() {
        let about = |format: u32, key: &str, memory_bytes: u64| About {
            format,
            key: key.to_owned(),
            image: "image".to_owned(),
            arpo: "arpo".to_owned(),
            qemu: "10.0".to_owned(),
            accelerator: "tcg".to_owned(),
            screen: ScreenSize {
                width: 640,
                height: 480,
            },
            arguments: Vec::new(),
            token: "t".to_owned(),
            memory_bytes,
            overlay_bytes: 2,
            made_at: String::new(),
            boot_ms: 0,
            made_ms: 0,
        };
        let cases = [
            (Some(about(1, "k", 3)), None),
            (Some(about(2, "k", 3)), Some("of another machine")),
            (Some(about(1, "other", 3)), Some("of another machine")),
            (Some(about(1, "k", 4)), Some("not as large")),
            (None, Some("snapshot.json: ")),
        ];
        for (about, refusal) in cases {
            let folder = tempfile::tempdir().unwrap();
            fs::write(folder.path().join("memory"), "abc").unwrap();
            fs::write(folder.path().join("overlay.qcow2"), "ab").unwrap();
            if let Some(about) = about {
                let text = serde_json::to_vec(&about).unwrap();
                fs::write(folder.path().join("snapshot.json"), text).unwrap();
            }
            let opened = Snapshot::open(folder.path(), "k", None).map(drop);
            match refusal {
                None => assert_eq!(opened, Ok(())),
                Some(part) => assert!(opened.unwrap_err().contains(part)),
            }
        }
    }

    #[tokio::test]
    async fn a_turn_is_one_engines_and_has_to_be_possible() {
        let store = tempfile::tempdir().unwrap();
        let held = turn(store.path(), Duration::ZERO).await.unwrap();
        let told = turn(store.path(), Duration::ZERO).await.unwrap_err();
        assert!(told.starts_with("another engine has held "), "{told}");
        drop(held);
        turn(store.path(), Duration::ZERO).await.unwrap();
        let none = store.path().join("none");
        let told = turn(&none, Duration::ZERO).await.unwrap_err();
        assert!(told.contains(&none.display().to_string()), "{told}");
        assert!(told.contains("env.qemu.image"), "{told}");
    }

    #[test]
    fn old_snapshots_go_unless_somebody_uses_them() {
        let store = tempfile::tempdir().unwrap();
        let path = |name: &str| store.path().join(name);
        let ours = basis(|_| {});
        for (key, arpo) in [("ours", "arpo"), ("old", "before"), ("used", "before")] {
            let about = serde_json::json!({
                "format": 1, "key": key, "image": "image", "arpo": arpo, "qemu": "10.0",
                "accelerator": "tcg", "screen": {"width": 1, "height": 1}, "arguments": [],
                "token": "", "memory_bytes": 0, "overlay_bytes": 0, "made_at": "",
                "boot_ms": 0, "made_ms": 0,
            });
            fs::create_dir(path(key)).unwrap();
            fs::write(path(key).join("snapshot.json"), about.to_string()).unwrap();
        }
        fs::create_dir(path(".x.draft")).unwrap();
        fs::create_dir(path("mine")).unwrap();
        let held = lock_file(&path("used.lock")).unwrap();
        flock(&held, FlockOperation::LockShared).unwrap();
        let left = || {
            let names = fs::read_dir(store.path()).unwrap();
            let mut names: Vec<String> = names
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort_unstable();
            names
        };
        prune(store.path(), &ours).unwrap();
        assert_eq!(left(), ["mine", "ours", "used", "used.lock"]);
        drop(held);
        prune(store.path(), &ours).unwrap();
        assert_eq!(left(), ["mine", "ours"]);
    }
}
