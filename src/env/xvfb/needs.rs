//! What real desktops need of the machine: what is there, what is missing, which package has it.

pub use crate::env::sandbox::needs::{Need, Unmet, remedy};
use crate::env::sandbox::needs::{check_all, missing_of, required, wanted};

/// All of them.
pub const NEEDS: [Need; 18] = [
    required("bwrap", "the sandbox", "bubblewrap"),
    required("Xvfb", "the X server", "xvfb"),
    required("openbox", "the window manager", "openbox"),
    wanted("dbus-daemon", "accessibility", "dbus-daemon"),
    wanted(
        "/usr/libexec/at-spi-bus-launcher",
        "accessibility",
        "at-spi2-core",
    ),
    wanted("pkill", "ending programs by name", "procps"),
    wanted("xdg-open", "opening files by their kind", "xdg-utils"),
    wanted("lowriter", "documents", "libreoffice-writer"),
    wanted("localc", "spreadsheets", "libreoffice-calc"),
    wanted("loimpress", "presentations", "libreoffice-impress"),
    wanted("mousepad", "texts", "mousepad"),
    wanted("pcmanfm", "folders", "pcmanfm"),
    wanted("xterm", "a terminal", "xterm"),
    wanted("chromium", "web pages", "chromium"),
    wanted("socat", "Chromium's debugging port", "socat"),
    wanted("ffmpeg", "recordings", "ffmpeg"),
    wanted(
        "wmctrl",
        "telling an empty screen from a broken one",
        "wmctrl",
    ),
    wanted("file", "the kinds of files", "file"),
];

/// What of this machine's needs is missing.
pub fn missing() -> Vec<Need> {
    missing_of(&NEEDS)
}

/// Whether there can be desktops here.
pub fn check() -> Result<(), Unmet> {
    check_all(&NEEDS)
}
