//! What OSWorld's virtual machines need of this host and its daemon: looked at before the first
//! starts, since a container that lacks one of them fails late and in other words.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use bollard::models::SystemInfo;

use super::daemon::{Daemon, DaemonError};
use super::{DockerOptions, Host};
use crate::config::{AdmissionMode, DockerConfig, Kvm};

/// Below this a disk image is a part of one: the smallest desktop takes more.
const MIN_DISK_BYTES: u64 = 64 << 20;

/// Free space for what one episode writes, GB: the least, and what is comfortable.
const LEAST_FREE_GB: f64 = 2.0;
const GOOD_FREE_GB: f64 = 8.0;

/// How a look came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grade {
    /// Works.
    Met,
    /// Works with less.
    Limited,
    /// Nothing can be started.
    Unmet,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// What it is, in a word.
    pub name: &'static str,
    /// How it came out.
    pub grade: Grade,
    /// What is there.
    pub found: String,
    /// What to do; empty where nothing is wrong.
    pub remedy: String,
}

impl Need {
    fn met(name: &'static str, found: String) -> Self {
        Self {
            name,
            grade: Grade::Met,
            found,
            remedy: String::new(),
        }
    }

    fn limited(name: &'static str, found: String, remedy: &str) -> Self {
        Self {
            name,
            grade: Grade::Limited,
            found,
            remedy: remedy.to_owned(),
        }
    }

    fn unmet(name: &'static str, found: String, remedy: impl Into<String>) -> Self {
        Self {
            name,
            grade: Grade::Unmet,
            found,
            remedy: remedy.into(),
        }
    }
}

/// Everything, as far as the daemon lets it be looked at; with the daemon, if it answers.
pub(super) async fn look(options: &DockerOptions) -> (Vec<Need>, Option<Daemon>) {
    let config = &options.config;
    let mut needs = Vec::new();
    let daemon = match connect(options).await {
        Ok((daemon, info)) => {
            needs.push(Need::met("docker", describe(&info)));
            needs.push(image(&daemon, config).await);
            needs.push(memory(&info, options));
            needs.push(space(&info, options.desktops));
            Some(daemon)
        }
        Err(need) => {
            needs.push(need);
            None
        }
    };
    needs.insert(1, disk(Path::new(&config.disk)));
    needs.insert(2, kvm(config.kvm, &options.host));
    (needs, daemon)
}

/// What `needs` lack, in one line; none where machines can be started.
pub(super) fn unmet(needs: &[Need]) -> Option<String> {
    let unmet = needs.iter().filter(|need| need.grade == Grade::Unmet);
    let said: Vec<String> = unmet
        .map(|need| format!("{}: {}", need.found, need.remedy))
        .collect();
    (!said.is_empty()).then(|| said.join("; "))
}

async fn connect(options: &DockerOptions) -> Result<(Daemon, SystemInfo), Need> {
    let socket = options.socket.as_ref().map_err(|reason| {
        Need::unmet(
            "docker",
            reason.clone(),
            "unset DOCKER_HOST, or set it to unix:///var/run/docker.sock",
        )
    })?;
    let asked = async {
        let daemon = Daemon::connect(socket, options.deadlines).await?;
        let info = daemon.info().await?;
        Ok::<_, DaemonError>((daemon, info))
    };
    asked.await.map_err(|error| {
        let found = format!("{error} ({})", socket.display());
        Need::unmet("docker", found, daemon_remedy(socket))
    })
}

/// What to do about a daemon that does not answer.
fn daemon_remedy(socket: &Path) -> &'static str {
    match std::os::unix::net::UnixStream::connect(socket) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            "install and start Docker (Debian: apt-get install docker.io), or set \
             DOCKER_HOST=unix:///path to its socket"
        }
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            "let this user use it (usermod -aG docker USER, then log in anew), which is as good as \
             root on this host"
        }
        Err(_) => "start it: systemctl start docker",
        Ok(_) => "see `docker info` and the daemon's log, journalctl -u docker",
    }
}

fn describe(info: &SystemInfo) -> String {
    let text = |field: &Option<String>| field.clone().unwrap_or_else(|| "unknown".to_owned());
    let said = format!(
        "daemon {}, {}, {} processors",
        text(&info.server_version),
        text(&info.operating_system),
        info.ncpu.unwrap_or_default()
    );
    crate::env::lines::plain(said.as_bytes())
}

async fn image(daemon: &Daemon, config: &DockerConfig) -> Need {
    const NAME: &str = "image";
    let image = &config.image;
    match daemon.image(image).await {
        Ok(Some(_)) => Need::met(NAME, image.clone()),
        Ok(None) => Need::unmet(
            NAME,
            format!("the daemon has no image {image}"),
            format!("docker pull {image}, or name another by env.docker.image"),
        ),
        Err(error) => Need::unmet(NAME, error.to_string(), "see `docker images`"),
    }
}

/// Whether there is a whole disk image that stands for itself.
pub(super) fn disk(path: &Path) -> Need {
    const NAME: &str = "disk image";
    const GET: &str = "get OSWorld's Ubuntu.qcow2 (assets/docs/vms.md says where), or name another \
                       by env.docker.disk";
    let shown = path.display();
    let header = match read_header(path) {
        Ok(header) => header,
        Err(error) => {
            return Need::unmet(NAME, format!("{shown} cannot be read: {error}"), GET);
        }
    };
    if header.bytes.starts_with(b"PK\x03\x04") {
        let unpack = format!("unzip {shown}, and name what was in it by env.docker.disk");
        return Need::unmet(NAME, format!("{shown} is still a zip archive"), unpack);
    }
    if !header.bytes.starts_with(b"QFI\xfb") {
        return Need::unmet(NAME, format!("{shown} is no qcow2 image"), GET);
    }
    if header.u64_at(8) != 0 {
        return Need::unmet(
            NAME,
            format!("{shown} is a layer over another file, which the container does not see"),
            "make one file of both: qemu-img convert -O qcow2 OLD NEW",
        );
    }
    // Where its tables end: an image whose copying broke off ends before them.
    let table_end = header.u64_at(40).max(header.u64_at(48));
    if header.length < MIN_DISK_BYTES.max(table_end) {
        let found = format!("{shown} is cut off, at {:.1} GB", gb(header.length));
        return Need::unmet(NAME, found, "get it again, and compare its size");
    }
    let (length, size) = (gb(header.length), gb(header.u64_at(24)));
    Need::met(
        NAME,
        format!("{shown}, {length:.1} GB, a disk of {size:.0} GB"),
    )
}

/// The beginning of a disk image (QEMU's docs/interop/qcow2.rst; big-endian).
struct Header {
    bytes: Vec<u8>,
    /// Of the file.
    length: u64,
}

impl Header {
    /// 0 where the file is shorter.
    fn u64_at(&self, at: usize) -> u64 {
        let field = self.bytes.get(at..at + 8);
        field.map_or(0, |field| {
            u64::from_be_bytes(field.try_into().expect("a slice of eight"))
        })
    }
}

fn read_header(path: &Path) -> io::Result<Header> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    let mut bytes = Vec::new();
    file.take(72).read_to_end(&mut bytes)?;
    Ok(Header { bytes, length })
}

/// Whether machines get the host's own processors.
pub(super) fn uses_kvm(wanted: Kvm, host: &Host) -> bool {
    wanted != Kvm::Off && why_no_kvm(host).is_none()
}

fn kvm(wanted: Kvm, host: &Host) -> Need {
    const NAME: &str = "kvm";
    const SLOW: &str = "machines are ten times slower and more, and boot for many minutes: use a \
                        host with KVM, or raise env.docker.boot_deadline_s";
    match (wanted, why_no_kvm(host)) {
        (Kvm::Off, _) => Need::limited(NAME, "env.docker.kvm is off (KVM=N)".to_owned(), SLOW),
        (_, None) => Need::met(NAME, format!("{} is there", host.kvm.display())),
        (Kvm::Auto, Some(reason)) => Need::limited(NAME, format!("{reason} (KVM=N)"), SLOW),
        (Kvm::Require, Some(reason)) => Need::unmet(
            NAME,
            reason,
            "allow virtualisation in the firmware, or nested in the hypervisor, and load kvm_intel \
             or kvm_amd; or set env.docker.kvm to \"auto\"",
        ),
    }
}

/// Whether it lets itself be opened is the container's affair, which opens it as root. A node
/// alone proves nothing: hosts without virtualisation may have one.
fn why_no_kvm(host: &Host) -> Option<String> {
    let shown = host.kvm.display();
    let node = fs::metadata(&host.kvm);
    if !node.is_ok_and(|node| node.file_type().is_char_device()) {
        return Some(format!("no device {shown}"));
    }
    let processors = fs::read_to_string(&host.cpuinfo).unwrap_or_default();
    let mut flags = processors.lines().filter(|line| line.starts_with("flags"));
    let lacks = |line: &str| !line.split_whitespace().any(|it| it == "vmx" || it == "svm");
    // Other architectures name no flags.
    flags
        .next()
        .filter(|line| lacks(line))
        .map(|_| format!("{shown} is there, but this host's processors have no vmx or svm"))
}

/// Whether all machines together have what the host has. Who wants to try all the same is told.
fn memory(info: &SystemInfo, options: &DockerOptions) -> Need {
    const NAME: &str = "vm memory";
    let (config, desktops) = (&options.config, options.desktops);
    let wanted_gb = desktops as f64 * f64::from(config.ram_gb);
    let asked = format!("{desktops} desktops of {} GB", config.ram_gb);
    let Some(total) = info.mem_total.filter(|total| *total > 0) else {
        return Need::met(
            NAME,
            format!("{asked}; the daemon does not say what it has"),
        );
    };
    // RAM_SIZE counts in 1024s.
    let total_gb = total as f64 / f64::from(1 << 30);
    let found = format!("{asked} on a host of {total_gb:.1} GB");
    if wanted_gb <= total_gb {
        return Need::met(NAME, found);
    }
    let most = (total_gb / f64::from(config.ram_gb)) as usize;
    let remedy = match most {
        0 => "lower env.docker.ram_gb, or use a larger host".to_owned(),
        most => format!("set env.desktops to {most} or less, or lower env.docker.ram_gb"),
    };
    match options.admission {
        AdmissionMode::Refuse => Need::unmet(NAME, found, remedy),
        AdmissionMode::Warn | AdmissionMode::Off => Need::limited(NAME, found, &remedy),
    }
}

fn space(info: &SystemInfo, desktops: usize) -> Need {
    const NAME: &str = "vm space";
    const REMEDY: &str = "make room there (docker system df shows what it has), or lower \
                          env.desktops";
    let root = info.docker_root_dir.clone().unwrap_or_default();
    let stat = rustix::fs::statvfs(Path::new(&root));
    let Ok(stat) = stat.map_err(drop).and_then(|stat| match root.as_str() {
        "" => Err(()),
        _ => Ok(stat),
    }) else {
        let found = "the daemon's folder cannot be seen from here".to_owned();
        return Need::met(NAME, found);
    };
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    let free_gb = gb(free);
    let each_gb = free_gb / desktops.max(1) as f64;
    let found = format!("{free_gb:.1} GB free in {root} for what {desktops} desktops write");
    if each_gb < LEAST_FREE_GB {
        return Need::unmet(NAME, found, REMEDY);
    }
    if each_gb < GOOD_FREE_GB {
        return Need::limited(NAME, found, REMEDY);
    }
    Need::met(NAME, found)
}

fn gb(bytes: u64) -> f64 {
    bytes as f64 / 1e9
}

/// The image's path as the daemon needs it.
pub(super) fn absolute(disk: &str) -> io::Result<PathBuf> {
    fs::canonicalize(disk)
}

#[cfg(test)]
mod tests {
    use super::{Grade, Host, Kvm, MIN_DISK_BYTES, disk, kvm};
    use std::fs::File;
    use std::io::Write;

    /// The beginning of an image with such a backing file and such tables.
    fn header(magic: &[u8], backing: u64, table: u64) -> Vec<u8> {
        let mut header = magic.to_vec();
        header.extend(3_u32.to_be_bytes());
        header.extend(backing.to_be_bytes());
        header.extend([0; 8]);
        header.extend((32_u64 << 30).to_be_bytes());
        header.extend([0; 8]);
        header.extend(table.to_be_bytes());
        header.extend([0; 24]);
        header
    }

    #[test]
    fn only_a_whole_image_is_a_disk() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("disk");
        let size = MIN_DISK_BYTES;
        let table = [
            (header(b"QFI\xfb", 0, 1 << 16), size, None),
            (header(b"QFI\xfb", 0, size + 1), size, Some("is cut off")),
            (header(b"QFI\xfb", 0, 0), size - 1, Some("is cut off")),
            (header(b"QFI\xfb", 104, 0), size, Some("is a layer over")),
            (header(b"QFI\xfa", 0, 0), size, Some("is no qcow2 image")),
            (header(b"PK\x03\x04", 0, 0), size, Some("still a zip")),
            (Vec::new(), 0, Some("is no qcow2 image")),
            (b"QFI\xfb".to_vec(), 4, Some("is cut off")),
        ];
        for (header, length, complaint) in table {
            let mut file = File::create(&path).unwrap();
            file.write_all(&header).unwrap();
            file.set_len(length).unwrap();
            let need = disk(&path);
            let expected = complaint.map_or(Grade::Met, |_| Grade::Unmet);
            assert_eq!(need.grade, expected, "{need:?}");
            // 32 GiB as its tables count it.
            let says = complaint.unwrap_or(", 0.1 GB, a disk of 34 GB");
            assert!(need.found.contains(says), "{need:?}");
            assert_eq!(need.remedy.is_empty(), complaint.is_none(), "{need:?}");
        }
        for absent in [folder.path().join("nothing"), folder.path().to_owned()] {
            let need = disk(&absent);
            assert!(need.found.contains("cannot be read"), "{need:?}");
        }
    }

    #[test]
    fn a_node_alone_is_no_virtualisation() {
        let folder = tempfile::tempdir().unwrap();
        let cpuinfo = folder.path().join("cpuinfo");
        // Any character device stands for the node.
        let node = "/dev/null";
        let table = [
            (node, "flags\t: fpu vmx\n", Kvm::Require, Grade::Met),
            (node, "flags\t: fpu svm\n", Kvm::Auto, Grade::Met),
            (node, "Features\t: fp asimd\n", Kvm::Auto, Grade::Met),
            (node, "flags\t: fpu vmx2\n", Kvm::Auto, Grade::Limited),
            (node, "flags\t: fpu\n", Kvm::Require, Grade::Unmet),
            ("/dev", "flags\t: vmx\n", Kvm::Require, Grade::Unmet),
            ("/nowhere", "flags\t: vmx\n", Kvm::Auto, Grade::Limited),
            (node, "flags\t: vmx\n", Kvm::Off, Grade::Limited),
        ];
        for (node, processors, wanted, expected) in table {
            std::fs::write(&cpuinfo, processors).unwrap();
            let host = Host {
                kvm: node.into(),
                cpuinfo: cpuinfo.clone(),
            };
            let need = kvm(wanted, &host);
            assert_eq!(need.grade, expected, "{need:?}");
            assert_eq!(need.remedy.is_empty(), expected == Grade::Met, "{need:?}");
        }
    }
}
