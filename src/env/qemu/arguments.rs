//! What QEMU and the sandbox around it are told.
//!
//! The guest sees a screen, a tablet, a keyboard, a disk, random numbers, a serial line, a port for
//! our words and a network of nobody but itself. QEMU sees /usr, a folder in memory, one on disk,
//! and files that it is handed opened: those of the image and the snapshot lie where its user could
//! not reach them.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::Path;

use serde_json::{Value, json};

use super::needs::QEMU;
use crate::config::QemuConfig;
use crate::env::sandbox::bubblewrap::FIRST_HANDED;
use crate::env::sandbox::{Arguments, Limits};
use crate::types::ScreenSize;

/// What runs around QEMU within the sandbox.
const SESSION: &str = include_str!("../../../assets/desktop/machine.sh");

/// Where the sandbox's folder on disk is.
const DISK: &str = "/run/disk";

/// Memory of QEMU beside its guest's: what it has translated, and itself.
const QEMU_MEMORY_MB: u64 = 1536;

const MB: u64 = 1 << 20;

/// What runs the instructions of a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Processor {
    /// The processor itself.
    Kvm,
    /// QEMU.
    Tcg,
}

impl Processor {
    /// Its name, as QEMU has it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Kvm => "kvm",
            Self::Tcg => "tcg",
        }
    }
}

/// A machine as QEMU is told to build it. Equal ones can be restored from each other's snapshots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hardware {
    pub(super) processor: Processor,
    pub(super) screen: ScreenSize,
    pub(super) memory_mb: u32,
    /// The kernel's command line.
    pub(super) append: String,
}

/// What its disk consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Disk {
    /// There is none.
    None,
    /// A fresh layer over the image's disk.
    OverImage,
    /// A fresh layer over that of the snapshot, over the image's.
    OverSnapshot,
}

/// Files that are handed over, opened, by what they are for.
#[derive(Debug)]
pub(super) struct Files {
    pub(super) kernel: OwnedFd,
    pub(super) initrd: OwnedFd,
    /// The image's disk.
    pub(super) base: Option<OwnedFd>,
    /// The snapshot's layer, and its memory.
    pub(super) snapshot: Option<(OwnedFd, OwnedFd)>,
    /// /dev/kvm.
    pub(super) kvm: Option<OwnedFd>,
}

impl Files {
    /// As they are handed over, in the order of `Handed`.
    pub(super) fn into_list(self) -> Vec<OwnedFd> {
        let (layer, memory) = self.snapshot.unzip();
        let rest = [self.base, layer, memory, self.kvm];
        let all = [Some(self.kernel), Some(self.initrd)].into_iter();
        all.chain(rest).flatten().collect()
    }
}

/// Numbers of handed files, in the sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Handed {
    kernel: i32,
    initrd: i32,
    base: i32,
    layer: i32,
    memory: i32,
    kvm: i32,
}

impl Handed {
    /// The numbers with such a disk; those of files that it lacks are the next one's.
    fn with(disk: Disk) -> Self {
        let base = FIRST_HANDED + 2;
        let layer = base + i32::from(disk != Disk::None);
        let memory = layer + i32::from(disk == Disk::OverSnapshot);
        Self {
            kernel: FIRST_HANDED,
            initrd: FIRST_HANDED + 1,
            base,
            layer,
            memory,
            kvm: memory + i32::from(disk == Disk::OverSnapshot),
        }
    }
}

/// Where a handed file is opened anew: with a place of its own in it, and no folder above it.
fn path_of(number: i32) -> String {
    format!("/proc/self/fd/{number}")
}

/// Where the memory of a snapshot comes from. QEMU reads files by their paths from 8.2 on only.
pub(super) fn memory_uri() -> String {
    format!("fd:{}", Handed::with(Disk::OverSnapshot).memory)
}

impl Hardware {
    /// QEMU's arguments. Its guest waits for `cont`; one that is to be restored, for its memory.
    pub(super) fn qemu(&self, disk: Disk) -> Vec<String> {
        let handed = Handed::with(disk);
        let mut list = Vec::new();
        let mut add = |option: &str, value: &str| {
            list.push(format!("-{option}"));
            if !value.is_empty() {
                list.push(value.to_owned());
            }
        };
        add("nodefaults", "");
        add("no-user-config", "");
        add("M", "pc");
        match self.processor {
            Processor::Tcg => {
                add("accel", "tcg,thread=multi,tb-size=256");
                add("cpu", "Nehalem");
            }
            Processor::Kvm => {
                add("add-fd", &format!("fd={},set=1", handed.kvm));
                add("accel", "kvm,device=/dev/fdset/1");
                add("cpu", "host");
            }
        }
        add("smp", "1");
        add("m", &self.memory_mb.to_string());
        add("display", "none");
        let ScreenSize { width, height } = self.screen;
        add(
            "device",
            &format!("virtio-vga,xres={width},yres={height},edid=on"),
        );
        for device in ["virtio-tablet-pci", "virtio-keyboard-pci", "virtio-rng-pci"] {
            add("device", device);
        }
        add("device", "virtio-serial-pci");
        add(
            "chardev",
            "socket,path=/run/arpo/control.sock,server=on,wait=off,id=control",
        );
        add("device", "virtserialport,chardev=control,name=arpo.control");
        for node in nodes(disk, handed) {
            add("blockdev", &node.to_string());
        }
        if disk != Disk::None {
            // What cannot be written stops the guest and is told, instead of breaking its files.
            add("device", "virtio-blk-pci,drive=d0,werror=stop,rerror=stop");
        }
        // Without `restrict` the guest would reach what listens on this sandbox's own loopback.
        add(
            "netdev",
            "user,id=net,restrict=on,hostfwd=tcp:127.0.0.1:5000-:5000",
        );
        add("device", "virtio-net-pci,netdev=net,romfile=");
        add(
            "chardev",
            "socket,path=/run/arpo/serial.sock,server=on,wait=off,id=serial",
        );
        add("serial", "chardev:serial");
        add("qmp", "unix:/run/arpo/qmp.sock,server=on,wait=off");
        add("no-reboot", "");
        add("S", "");
        add(
            "sandbox",
            "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny",
        );
        add("kernel", &path_of(handed.kernel));
        add("initrd", &path_of(handed.initrd));
        add("append", &self.append);
        if disk == Disk::OverSnapshot {
            add("incoming", "defer");
        }
        list
    }
}

/// The layers of a disk, from below; the guest's is `d0`.
fn nodes(disk: Disk, handed: Handed) -> Vec<Value> {
    let layer = |name: &str, number: i32, below: Value| {
        json!({
            "driver": "qcow2", "node-name": name, "read-only": true, "backing": below,
            "file": {"driver": "file", "filename": path_of(number), "read-only": true},
        })
    };
    let top = |below: &str| {
        json!({
            "driver": "qcow2", "node-name": "d0", "backing": below, "discard": "unmap",
            // Nothing of it outlives the episode.
            "cache": {"no-flush": true},
            "file": {"driver": "file", "filename": format!("{DISK}/overlay.qcow2")},
        })
    };
    match disk {
        Disk::None => Vec::new(),
        Disk::OverImage => vec![layer("base", handed.base, Value::Null), top("base")],
        Disk::OverSnapshot => vec![
            layer("base", handed.base, Value::Null),
            layer("clean", handed.layer, json!("base")),
            top("clean"),
        ],
    }
}

/// The sandbox around it, with `folder` as what it may write to on disk.
pub(super) fn sandbox(hardware: &Hardware, disk: Disk, folder: &Path) -> Arguments {
    let mut list = Arguments::isolated();
    let cache = Path::new("/etc/ld.so.cache");
    list.bind("--ro-bind-try", cache, cache);
    list.system(16 * MB);
    list.tmpfs("1777", 16 * MB, "/tmp");
    // A picture of the screen, a few sockets and QEMU's last words.
    list.tmpfs("0755", picture_bytes(hardware.screen) + 16 * MB, "/run");
    list.add(["--dir", "/run/arpo"]);
    list.bind("--bind", folder, DISK);
    for (name, value) in [
        ("HOME", "/tmp"),
        ("PATH", "/usr/local/bin:/usr/bin:/bin"),
        ("LANG", "C.UTF-8"),
    ] {
        list.set(name, value);
    }
    let words = ["-c", SESSION, "machine", QEMU].map(OsString::from);
    let arguments = hardware.qemu(disk).into_iter().map(OsString::from);
    list.bash(words.into_iter().chain(arguments));
    list
}

/// Most bytes of a picture of a screen as QEMU writes it.
pub(super) fn picture_bytes(screen: ScreenSize) -> u64 {
    u64::from(screen.width) * u64::from(screen.height) * 3 + 64
}

/// Limits of the processes of a machine whose files may grow by `disk_mb`.
pub(super) fn limits(config: &QemuConfig, disk_mb: u32) -> Limits {
    Limits {
        file_mb: disk_mb.into(),
        memory_mb: u64::from(config.memory_mb) + QEMU_MEMORY_MB,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hardware(processor: Processor) -> Hardware {
        Hardware {
            processor,
            screen: ScreenSize {
                width: 640,
                height: 480,
            },
            memory_mb: 512,
            append: "console=ttyS0 quiet".to_owned(),
        }
    }

    #[test]
    fn files_have_the_numbers_that_arguments_name() {
        use std::os::fd::AsRawFd;
        let open = || OwnedFd::from(std::fs::File::open("/dev/null").unwrap());
        let cases = [
            (Disk::None, vec![3, 4, 5]),
            (Disk::OverImage, vec![3, 4, 5, 6]),
            (Disk::OverSnapshot, vec![3, 4, 5, 6, 7, 8]),
        ];
        for (disk, numbers) in cases {
            let snapshot = (disk == Disk::OverSnapshot).then(|| (open(), open()));
            let files = Files {
                kernel: open(),
                initrd: open(),
                base: (disk != Disk::None).then(open),
                snapshot,
                kvm: Some(open()),
            };
            let kvm = files.kvm.as_ref().map(AsRawFd::as_raw_fd);
            let list = files.into_list();
            assert_eq!(list.len(), numbers.len(), "{disk:?}");
            assert_eq!(list.last().map(AsRawFd::as_raw_fd), kvm);
            let handed = Handed::with(disk);
            assert_eq!(handed.kvm, *numbers.last().unwrap(), "{disk:?}");
            let told = hardware(Processor::Kvm).qemu(disk).join(" ");
            for number in &numbers[..numbers.len() - 1] {
                // The memory is told when it is asked for.
                let is_told = told.contains(&path_of(*number));
                let is_memory = disk == Disk::OverSnapshot && *number == handed.memory;
                assert_eq!(is_told, !is_memory, "{disk:?}: {number} in {told}");
            }
            assert!(told.contains(&format!("fd={},set=1", handed.kvm)));
        }
        assert_eq!(memory_uri(), "fd:7");
    }

    #[test]
    fn every_machine_is_confined() {
        let must = [
            "-nodefaults",
            "-no-user-config",
            "restrict=on",
            "hostfwd=tcp:127.0.0.1:5000-:5000",
            "-sandbox on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny",
            "-no-reboot -S ",
            "xres=640,yres=480",
            "-m 512 ",
            "-append console=ttyS0 quiet",
        ];
        for processor in [Processor::Kvm, Processor::Tcg] {
            for disk in [Disk::None, Disk::OverImage, Disk::OverSnapshot] {
                let told = hardware(processor).qemu(disk).join(" ");
                for part in must {
                    assert!(told.contains(part), "{part} in {told}");
                }
                assert!(!told.contains("tcp:0.0.0.0") && !told.contains("virtfs"));
                assert_eq!(told.contains("/dev/fdset"), processor == Processor::Kvm);
                assert_eq!(told.contains("drive=d0"), disk != Disk::None);
                // All but the layer of its own is read only.
                let layers = told.matches("\"driver\":\"qcow2\"").count();
                let closed = told
                    .matches("\"driver\":\"qcow2\",\"node-name\":\"d0\"")
                    .count();
                let read_only = told.matches("\"read-only\":true,\"backing\"").count();
                assert_eq!(layers, closed + read_only, "{told}");
            }
        }
    }
}
