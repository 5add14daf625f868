//! What bubblewrap is told: which of the host a desktop sees, how large its own folders are, what
//! its programs find in their environment.

use std::path::Path;

use super::Plan;
use super::template::OWN_ETC;
use crate::config::XvfbConfig;
use crate::env::sandbox::Arguments;

/// What makes the template.
pub(super) const TEMPLATE: &str = include_str!("../../../assets/desktop/template.sh");

/// Of the host's /etc, what programs need and nobody minds an agent to read. No keys, no accounts,
/// no configuration of the host's own.
pub(super) const ETC: [&str; 42] = [
    "ImageMagick-6",
    "OpenCL",
    "X11",
    "alternatives",
    "at-spi2",
    "bash.bashrc",
    "chromium",
    "chromium.d",
    "dbus-1",
    "debian_version",
    "dictionaries-common",
    "fonts",
    "ghostscript",
    "gimp",
    "glvnd",
    "gtk-2.0",
    "gtk-3.0",
    "inputrc",
    "java-17-openjdk",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "libreoffice",
    "locale.alias",
    "localtime",
    "magic",
    "mailcap",
    "mime.types",
    "openal",
    "opt/chrome",
    "os-release",
    "pango",
    "papersize",
    "profile",
    "pulse",
    "python3",
    "shells",
    "ssl/certs",
    "ssl/openssl.cnf",
    "terminfo",
    "thunderbird",
    "xdg",
];

/// What is bound read-only beside /usr, where it exists.
const READ_ONLY: [&str; 2] = ["/opt/google", "/var/cache/fontconfig"];

/// Bytes of /dev/shm and of /run, each.
const SMALL_BYTES: u64 = 256 << 20;

const MB: u64 = 1 << 20;

impl Plan {
    /// For a desktop.
    pub(super) fn arguments(&self) -> Arguments {
        let mut list = host_and_folders(&self.config);
        list.tmpfs("0700", u64::from(self.config.home_mb) * MB, "/home/user");
        list.bind("--ro-bind", &self.template.join("etc"), "/etc");
        list.bind("--ro-bind", &self.template.join("home"), "/opt/arpo/home");
        list.bind("--ro-bind", &self.template.join("bin"), "/opt/arpo/bin");
        let session = self.template.join("session.sh");
        list.bind("--ro-bind", &session, "/opt/arpo/session.sh");
        list.bind("--ro-bind", &self.arpo, "/opt/arpo/arpo");
        set_environment(&mut list, &self.config);
        list.bash(["/opt/arpo/session.sh"]);
        list
    }
}

/// For the making of a template in `folder`, of which `home` and `etc` are written to.
pub(super) fn template_arguments(config: &XvfbConfig, folder: &Path) -> Arguments {
    let mut list = host_and_folders(config);
    for name in ETC {
        let path = Path::new("/etc").join(name);
        list.bind("--ro-bind-try", &path, &path);
    }
    for (name, _) in OWN_ETC {
        let path = folder.join("etc").join(name);
        list.bind("--ro-bind", &path, Path::new("/etc").join(name));
    }
    list.bind("--bind", &folder.join("home"), "/home/user");
    list.bind("--bind", &folder.join("etc"), "/opt/arpo/etc");
    set_environment(&mut list, config);
    list.bash(["-c", TEMPLATE]);
    list
}

/// The host's programs, and folders of its own, each of a limited size; all else stays as it is.
fn host_and_folders(config: &XvfbConfig) -> Arguments {
    let mut list = Arguments::isolated();
    for path in READ_ONLY {
        list.bind("--ro-bind-try", Path::new(path), path);
    }
    list.system(SMALL_BYTES);
    list.tmpfs("1777", u64::from(config.tmp_mb) * MB, "/tmp");
    list.tmpfs("0755", SMALL_BYTES, "/run");
    list.add(["--dir", "/run/arpo", "--dir", "/run/user", "--dir", "/var"]);
    list.add(["--symlink", "/tmp", "/var/tmp"]);
    list.add(["--symlink", "/run", "/var/run"]);
    list
}

fn set_environment(list: &mut Arguments, config: &XvfbConfig) {
    let screen = format!("{}x{}x24", config.screen_width, config.screen_height);
    let processes = config.max_processes.to_string();
    let path = "/opt/arpo/bin:/usr/local/bin:/usr/bin:/bin:/usr/games:/usr/sbin:/sbin";
    let variables = [
        ("HOME", "/home/user"),
        ("USER", "user"),
        ("LOGNAME", "user"),
        ("SHELL", "/bin/bash"),
        ("PATH", path),
        ("LANG", "C.UTF-8"),
        ("DISPLAY", ":0"),
        ("ARPO_SCREEN", &screen),
        ("ARPO_PROCESSES", &processes),
        ("XDG_RUNTIME_DIR", "/run/user/1000"),
        ("XDG_SESSION_TYPE", "x11"),
        ("DBUS_SESSION_BUS_ADDRESS", "unix:path=/run/arpo/bus"),
        // Programs speak to the accessibility bus only if told so before they start.
        ("GTK_MODULES", "gail:atk-bridge"),
        ("ACCESSIBILITY_ENABLED", "1"),
        ("GNOME_ACCESSIBILITY", "1"),
        ("QT_LINUX_ACCESSIBILITY_ALWAYS_ON", "1"),
    ];
    for (name, value) in variables {
        list.set(name, value);
    }
}
