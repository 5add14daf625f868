//! Desktops of the tests: an X server, a window manager, `arpo guest`. `ARPO_NO_DESKTOPS=1` skips
//! whatever needs them, saying so.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use arpo::env::guest::{Guest, GuestOptions};
use arpo::types::ScreenSize;

pub(crate) const SCREEN: ScreenSize = ScreenSize {
    width: 1280,
    height: 720,
};

/// Programs and the Debian packages that they are in.
const PACKAGES: &[(&str, &str)] = &[
    ("Xvfb", "xvfb"),
    ("openbox", "openbox"),
    ("mousepad", "mousepad"),
    ("xterm", "xterm"),
    ("ffmpeg", "ffmpeg"),
    ("dbus-daemon", "dbus-daemon"),
    ("gsettings", "libglib2.0-bin gsettings-desktop-schemas"),
    ("xdg-open", "xdg-utils"),
];

/// Whether a test that needs these programs can run; fails it where one is missing.
#[expect(clippy::print_stderr, reason = "a skipped test says so by name")]
pub(crate) fn has_desktops(test: &str, programs: &[&str]) -> bool {
    if std::env::var_os("ARPO_NO_DESKTOPS").is_some_and(|value| value == "1") {
        eprintln!("skipped, ARPO_NO_DESKTOPS=1: {test}");
        return false;
    }
    for program in ["Xvfb", "openbox"].iter().chain(programs) {
        let folders = std::env::var_os("PATH").unwrap();
        let is_there = std::env::split_paths(&folders).any(|it| it.join(program).is_file());
        let package = PACKAGES.iter().find(|(name, _)| name == program);
        let (_, package) = package.expect("it is listed");
        assert!(
            is_there,
            "{test} needs {program}: apt-get install {package}, or ARPO_NO_DESKTOPS=1 does without"
        );
    }
    true
}

/// A program that ends with its owner.
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Reads lines on a thread of its own, so that their writer is never held up.
fn first_line(from: ChildStdout) -> String {
    let mut reader = BufReader::new(from);
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    std::thread::spawn(move || reader.read_to_end(&mut Vec::new()));
    line.trim().to_owned()
}

/// An X server and a window manager.
pub(crate) struct Screen {
    /// `:N`.
    pub(crate) display: String,
    pub(crate) xvfb: Running,
    manager: Option<Running>,
}

impl Screen {
    /// At a number of its own choice.
    pub(crate) fn start() -> Self {
        let mut xvfb = xvfb();
        xvfb.args(["-displayfd", "1"]).stdout(Stdio::piped());
        let mut xvfb = xvfb.spawn().unwrap();
        let number = first_line(xvfb.stdout.take().unwrap());
        let mut screen = Self {
            display: format!(":{number}"),
            xvfb: Running(xvfb),
            manager: None,
        };
        screen.manage();
        screen
    }

    /// Kills the X server and starts another one in its place.
    pub(crate) fn replace(&mut self) {
        self.kill();
        let xvfb = xvfb().arg(&self.display).spawn().unwrap();
        self.xvfb = Running(xvfb);
        self.manage();
    }

    /// Kills the X server.
    pub(crate) fn kill(&mut self) {
        self.manager = None;
        self.xvfb.0.kill().unwrap();
        self.xvfb.0.wait().unwrap();
        let number = self.display.trim_start_matches(':');
        let _ = std::fs::remove_file(format!("/tmp/.X11-unix/X{number}"));
        let _ = std::fs::remove_file(format!("/tmp/.X{number}-lock"));
    }

    /// Ends the window manager.
    pub(crate) fn unmanage(&mut self) {
        self.manager = None;
    }

    fn manage(&mut self) {
        use x11rb::connection::Connection;
        use x11rb::protocol::xproto::ConnectionExt;
        let client = eventually("an X server", || x11rb::connect(Some(&self.display)).ok());
        let mut manager = Command::new("openbox");
        manager.env("DISPLAY", &self.display).stderr(Stdio::null());
        self.manager = Some(Running(manager.spawn().unwrap()));
        let (x, screen) = client;
        let root = x.setup().roots[screen].root;
        let atom = x.intern_atom(false, b"_NET_SUPPORTING_WM_CHECK").unwrap();
        let atom = atom.reply().unwrap().atom;
        eventually("a window manager", || {
            let property = x.get_property(false, root, atom, 0_u32, 0, 1).unwrap();
            (property.reply().unwrap().value_len > 0).then_some(())
        });
    }
}

fn xvfb() -> Command {
    let mut command = Command::new("Xvfb");
    let size = format!("{}x{}x24", SCREEN.width, SCREEN.height);
    command.args(["-screen", "0", &size, "-nolisten", "tcp", "-noreset"]);
    command.stderr(Stdio::null());
    command
}

/// Looks again and again until there is something.
#[track_caller]
pub(crate) fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < end, "no {what} within a minute");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A session's bus, which starts what accessibility needs.
pub(crate) struct SessionBus {
    address: String,
    _daemon: Running,
}

impl SessionBus {
    fn start(display: &str) -> Self {
        let mut daemon = Command::new("dbus-daemon");
        daemon.args(["--session", "--nofork", "--nopidfile", "--print-address=1"]);
        daemon.env("DISPLAY", display).stdout(Stdio::piped());
        let mut daemon = daemon.spawn().unwrap();
        Self {
            address: first_line(daemon.stdout.take().unwrap()),
            _daemon: Running(daemon),
        }
    }
}

/// A desktop with our server.
pub(crate) struct Desk {
    pub(crate) screen: Screen,
    pub(crate) server: Running,
    /// `HOST:PORT` or `unix:PATH`.
    pub(crate) address: String,
    /// Its programs' home.
    pub(crate) home: tempfile::TempDir,
    _bus: Option<SessionBus>,
}

impl Desk {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::on(Screen::start(), None, arguments)
    }

    /// With what a session has: a bus, settings that are kept.
    pub(crate) fn start_session() -> Self {
        let screen = Screen::start();
        let bus = SessionBus::start(&screen.display);
        Self::on(screen, Some(bus), &[])
    }

    fn on(screen: Screen, bus: Option<SessionBus>, arguments: &[&str]) -> Self {
        let home = tempfile::tempdir().unwrap();
        let address = bus.as_ref().map(|bus| bus.address.as_str());
        let (server, address) = serve_session(&screen.display, home.path(), address, arguments);
        Self {
            screen,
            server,
            address,
            home,
            _bus: bus,
        }
    }

    pub(crate) fn guest(&self) -> Guest {
        Guest::new(&self.address, options()).unwrap()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }
}

/// Patient with a busy machine.
pub(crate) fn options() -> GuestOptions {
    GuestOptions {
        deadline: Duration::from_secs(60),
        ..GuestOptions::new(SCREEN)
    }
}

/// Starts our server; gives its address.
pub(crate) fn serve(display: &str, home: &Path, arguments: &[&str]) -> (Running, String) {
    serve_session(display, home, None, arguments)
}

fn serve_session(
    display: &str,
    home: &Path,
    bus: Option<&str>,
    arguments: &[&str],
) -> (Running, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_arpo"));
    command
        .args(["guest", "--display", display])
        .args(arguments);
    if !arguments.contains(&"--listen") {
        command.args(["--listen", "127.0.0.1:0"]);
    }
    command
        .env("HOME", home)
        .env("GSETTINGS_BACKEND", "keyfile");
    // Nothing of the session that the tests run in.
    command
        .env_remove("XDG_CONFIG_HOME")
        .env_remove("DBUS_SESSION_BUS_ADDRESS");
    command.envs(bus.map(|address| ("DBUS_SESSION_BUS_ADDRESS", address)));
    command.stdout(Stdio::piped());
    let mut server = command.spawn().unwrap();
    let line = first_line(server.stdout.take().unwrap());
    let address = line.strip_prefix("listening on ").expect("it says where");
    (Running(server), address.to_owned())
}
