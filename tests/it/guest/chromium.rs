//! Steps of Chrome on a real one.

use std::fmt::Debug;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use arpo::env::Environment;
use arpo::env::guest::cdp::Browser;
use arpo::env::guest::{ChromePatience, DesktopOptions, GuestDesktop};
use arpo::types::Task;
use serde_json::json;
use tempfile::TempDir;

use super::machine::{Scripted, cache, quick};
use super::{Server, block_on, picture};

/// The file in its profile that it complains into.
const COMPLAINTS: &str = "complaints.txt";

/// For whatever Chromium does. Its first seconds on a busy machine are slow.
const PATIENCE: Duration = Duration::from_secs(120);

/// A browser without a window. It ends with the test, and its own processes with it.
struct Chromium {
    child: Child,
    profile: TempDir,
}

impl Chromium {
    fn start() -> Self {
        let profile = tempfile::tempdir().unwrap();
        let complaints = File::create(profile.path().join(COMPLAINTS)).unwrap();
        let mut command = Command::new("chromium");
        command
            .args([
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--no-first-run",
                // /dev/shm may be small where this runs, and nothing outside may be asked.
                "--disable-dev-shm-usage",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
            ])
            .arg("--remote-debugging-port=0")
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .stdout(Stdio::null())
            .stderr(complaints)
            .process_group(0);
        let started = command.spawn();
        Self {
            child: started.expect("chromium is installed, or ARPO_NO_DESKTOPS=1 is set"),
            profile,
        }
    }

    /// Where its DevTools listen.
    fn address(&self) -> String {
        let file = self.profile.path().join("DevToolsActivePort");
        let read = || std::fs::read_to_string(&file).unwrap_or_default();
        let text = self.until("it does not come up", read, |text| text.contains('\n'));
        let port = text.lines().next().unwrap();
        format!("127.0.0.1:{port}")
    }

    /// Looks until what is seen is as it should be.
    fn until<T: Debug>(
        &self,
        complaint: &str,
        look: impl Fn() -> T,
        is_right: impl Fn(&T) -> bool,
    ) -> T {
        let began = Instant::now();
        loop {
            let seen = look();
            if is_right(&seen) {
                return seen;
            }
            assert!(
                began.elapsed() < PATIENCE,
                "{complaint}: {seen:?}; Chromium said:\n{}",
                std::fs::read_to_string(self.profile.path().join(COMPLAINTS)).unwrap_or_default()
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        let group = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        let _ = self.child.wait();
    }
}

/// Titles of the open pages, sorted; why not where they cannot be had.
fn titles(machine: &Scripted) -> Result<Vec<String>, String> {
    let pages = block_on(async { Browser::connect(machine).await?.pages().await });
    let pages = pages.map_err(|error| error.to_string())?;
    let mut titles: Vec<String> = pages.into_iter().map(|page| page.title).collect();
    titles.sort();
    Ok(titles)
}

/// A desktop in no hurry.
fn desktop(machine: Scripted, files: &Path) -> GuestDesktop {
    let options = DesktopOptions {
        chrome: ChromePatience::OSWORLD,
        ..quick()
    };
    GuestDesktop::new(Box::new(machine), cache(files, &[]), options)
}

fn page(title: &str) -> String {
    format!("data:text/html,<title>{title}</title>")
}

#[test]
fn a_real_chromium_opens_and_closes_pages() {
    if std::env::var_os("ARPO_NO_DESKTOPS").is_some() {
        eprintln!("skipped, ARPO_NO_DESKTOPS: a_real_chromium_opens_and_closes_pages");
        return;
    }
    let chromium = Chromium::start();
    let address = chromium.address();
    let server = Server::answering(|_| picture());
    let machine = || Scripted::new(&server.address).ports(&address);
    let files = tempfile::tempdir().unwrap();
    let mut desktop = desktop(machine(), files.path());
    // What a tab is called is told a moment after it was opened, loaded or closed.
    let wait = |what: &str, is_right: fn(&[String]) -> bool| {
        let looked = || titles(&machine());
        chromium
            .until(what, looked, |seen| seen.as_deref().is_ok_and(is_right))
            .unwrap()
    };
    wait("it does not open its first page", |titles| {
        titles.len() == 1
    });
    let mut run = |step: serde_json::Value| {
        let task: Task = serde_json::from_value(json!({"id": "t", "instruction": "x",
            "config": [step], "evaluator": {"func": "infeasible"}}))
        .unwrap();
        block_on(desktop.reset(&task, 0)).unwrap();
    };
    // What does not load is no error; its tab stays.
    let urls = [page("one"), page("two"), "http://127.0.0.1:1/".to_owned()];
    run(json!({"type": "chrome_open_tabs", "parameters": {"urls_to_open": urls}}));
    wait(
        "three pages are wanted, the first blank one gone",
        |titles| {
            let has = |title: &str| titles.iter().any(|other| other == title);
            titles.len() == 3 && has("one") && has("two")
        },
    );
    let urls = [page("one"), page("none")];
    run(json!({"type": "chrome_close_tabs", "parameters": {"urls_to_close": urls}}));
    wait("two pages are wanted, one of them «two»", |titles| {
        titles.len() == 2 && titles.contains(&"two".to_owned())
    });
}
