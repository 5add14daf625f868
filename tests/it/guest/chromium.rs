//! Steps of Chrome on a real one.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use arpo::env::Environment;
use arpo::env::guest::cdp::Browser;
use arpo::types::Task;
use serde_json::json;

use super::machine::{Scripted, cache};
use super::{Server, block_on, picture};

/// A browser without a window. It ends with the test, and its own processes with it.
struct Chromium(Child);

impl Chromium {
    fn start(profile: &Path) -> Self {
        let mut command = Command::new("chromium");
        command
            .args([
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--no-first-run",
            ])
            .arg("--remote-debugging-port=0")
            .arg(format!("--user-data-dir={}", profile.display()))
            .arg("about:blank")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0);
        Self(
            command
                .spawn()
                .expect("chromium is installed, or ARPO_NO_DESKTOPS=1 is set"),
        )
    }

    /// Where its DevTools listen.
    fn address(profile: &Path) -> String {
        let file = profile.join("DevToolsActivePort");
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(120) {
            let text = std::fs::read_to_string(&file).unwrap_or_default();
            if let Some((port, _)) = text.split_once('\n') {
                return format!("127.0.0.1:{port}");
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("chromium does not come up");
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        let group = rustix::process::Pid::from_child(&self.0);
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        let _ = self.0.wait();
    }
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
    let (profile, files) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let _chromium = Chromium::start(profile.path());
    let address = Chromium::address(profile.path());
    let server = Server::answering(|_| picture());
    let machine = || Scripted::new(&server.address).ports(&address);
    let mut desktop = machine().desktop(cache(files.path(), &[]));
    let titles = || {
        block_on(async {
            let pages = Browser::connect(&machine())
                .await
                .unwrap()
                .pages()
                .await
                .unwrap();
            let mut titles: Vec<String> = pages.into_iter().map(|page| page.title).collect();
            titles.sort();
            titles
        })
    };
    assert_eq!(titles().len(), 1);
    let mut run = |step: serde_json::Value| {
        let task: Task = serde_json::from_value(json!({"id": "t", "instruction": "x",
            "config": [step], "evaluator": {"func": "infeasible"}}))
        .unwrap();
        block_on(desktop.reset(&task, 0)).unwrap();
    };
    // What does not load is no error; its tab stays.
    let urls = [page("one"), page("two"), "http://127.0.0.1:1/".to_owned()];
    run(json!({"type": "chrome_open_tabs", "parameters": {"urls_to_open": urls}}));
    let opened = titles();
    assert_eq!(opened.len(), 3, "{opened:?}");
    assert!(
        opened.contains(&"one".to_owned()) && opened.contains(&"two".to_owned()),
        "{opened:?}"
    );
    let urls = [page("one"), page("none")];
    run(json!({"type": "chrome_close_tabs", "parameters": {"urls_to_close": urls}}));
    let left = titles();
    assert_eq!(left.len(), 2, "{left:?}");
    assert!(left.contains(&"two".to_owned()), "{left:?}");
}
