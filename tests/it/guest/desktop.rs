//! A real desktop as an environment, over a server that a test makes up.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use arpo::env::guest::{DesktopOptions, GuestDesktop, GuestOptions, Settle};
use arpo::env::{EnvError, Environment, Probe, ProbeBody};
use arpo::types::osworld::read_task;
use arpo::types::{Action, ErrorClass, SetupStep, Task};
use serde_json::{Value, json};

use super::machine::{Scripted, cache, quick};
use super::{Reply, Server, block_on, of_json, options, output, page, picture, text};
use crate::loopback::Request;

const URL: &str = "https://files.example/a.docx";

/// A task with these steps.
fn task(config: &Value) -> Task {
    let task = json!({"id": "t", "instruction": "Do it.", "config": config,
        "evaluator": {"func": "infeasible"}});
    serde_json::from_value(task).unwrap()
}

fn steps(written: &Value) -> Vec<SetupStep> {
    serde_json::from_value(written.clone()).unwrap()
}

/// A server that answers screenshots with `picture`s, and all else by `answer`.
fn serve(answer: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Server {
    Server::answering(move |request| match request.path() {
        "/screenshot" => picture(),
        _ => answer(request),
    })
}

/// All that is asked for is done.
fn obedient() -> Server {
    serve(|request| match request.path() {
        "/execute" => output(0, "said", "told"),
        _ => text("done"),
    })
}

fn desktop(server: &Server) -> GuestDesktop {
    let folder = tempfile::tempdir().unwrap();
    Scripted::new(&server.address).desktop(cache(folder.path(), &[]))
}

/// Class and words of an error.
fn told<T: std::fmt::Debug>(result: Result<T, EnvError>) -> (ErrorClass, String) {
    let error = result.unwrap_err();
    (error.class(), error.to_string())
}

#[test]
fn an_episode_is_reset_acted_on_and_read() {
    let folder = tempfile::tempdir().unwrap();
    let files = cache(folder.path(), &[(URL, b"content")]);
    let server = obedient();
    let machine = Scripted::new(&server.address);
    let counts = machine.counts();
    let mut desktop = machine.desktop(files);
    assert_eq!(desktop.screen_size(), super::SCREEN);
    let task = task(&json!([
        {"type": "download", "parameters": {"files": [{"url": URL, "path": "~/a.docx"}]}},
        {"type": "execute", "parameters": {"command": ["x", "{SCREEN_WIDTH_HALF}"],
            "stdout": "out.txt", "stderr": "err.txt"}},
        {"type": "sleep", "parameters": {"seconds": 0.2}},
    ]));
    let first = block_on(desktop.reset(&task, 0)).unwrap();
    assert!(first.elapsed >= Duration::from_millis(200), "{first:?}");
    assert_eq!(first.screenshot.size(), super::SCREEN);
    assert_eq!(counts.reverts.load(Ordering::Relaxed), 1);
    let asked = server.asked_paths();
    assert_eq!(asked, ["/setup/upload", "/execute", "/screenshot"]);

    block_on(desktop.step(&Action::Press { key: "a".into() })).unwrap();
    block_on(desktop.observe()).unwrap();
    let file = Probe::File { path: "/x".into() };
    let file = block_on(desktop.probe(&file)).unwrap();
    assert_eq!(file.body, ProbeBody::File(Some(b"done".to_vec())));
    let command = Probe::Command {
        argv: vec!["ls".into()],
    };
    let reply = block_on(desktop.probe(&command)).unwrap();
    let expected = ProbeBody::Output {
        status: 0,
        stdout: "said".into(),
        stderr: "told".into(),
    };
    assert_eq!(reply.body, expected);
    let (class, words) = told(block_on(desktop.probe(&Probe::State)));
    assert_eq!(class, ErrorClass::Reset, "{words}");

    let real = desktop.real().unwrap();
    assert_eq!(real.kept["out.txt"], b"said");
    assert_eq!(real.kept["err.txt"], b"told");
    assert!(real.files.path(URL).is_some());
    // Steps before judging add to what is kept; a reset forgets it.
    let later = steps(&json!([{"type": "command",
        "parameters": {"command": "x", "stdout": "later.txt"}}]));
    block_on(desktop.set_up(&task, &later, "evaluator.postconfig")).unwrap();
    assert_eq!(desktop.real().unwrap().kept.len(), 3);
    block_on(desktop.reset(&self::task(&json!([])), 0)).unwrap();
    assert!(desktop.real().unwrap().kept.is_empty());
}

#[test]
fn a_step_that_cannot_be_is_refused_before_the_machine_is_touched() {
    let table = [
        (
            json!({"type": "download", "parameters": {"files": [{"url": URL, "path": "/a"}]}}),
            "config[1].parameters.files[0].url (download): https://files.example/a.docx is not in \
             the file cache; bring it there with `arpo tasks fetch t`",
        ),
        (
            json!({"type": "googledrive", "parameters": {"settings_file": "s.yml",
                "operation": ["delete"], "args": [{"query": ""}]}}),
            "config[1].parameters.settings_file (googledrive): needs credentials: a Google account",
        ),
        (
            json!({"type": "login", "parameters": {"settings_file": "s.json",
                "platform": "googledrive"}}),
            "(login): needs credentials: a Google account of your own and its OAuth client in \
             s.json",
        ),
        (
            json!({"type": "proxy", "parameters": {}}),
            "config[1] (proxy): needs credentials: an HTTP proxy",
        ),
        (
            json!({"type": "open", "parameters": {"path": ""}}),
            "config[1].parameters.path (open): empty; name a file or a program",
        ),
        (
            json!({"type": "upload_file", "parameters": {"files": [
                {"local_path": "/no/such", "path": "/a"}]}}),
            "files[0].local_path (upload_file): /no/such is no file of this machine",
        ),
        (
            json!({"type": "update_browse_history", "parameters": {"history": []}}),
            "history_empty.sqlite?download=true is not in the file cache",
        ),
        (
            json!({"type": "lunch", "parameters": {}}),
            "config[1].type: no set-up type is called \"lunch\"; the nearest name is \"launch\"",
        ),
    ];
    for (step, phrase) in table {
        let server = obedient();
        let machine = Scripted::new(&server.address);
        let counts = machine.counts();
        let folder = tempfile::tempdir().unwrap();
        let mut desktop = machine.desktop(cache(folder.path(), &[]));
        let harmless = json!({"type": "sleep", "parameters": {"seconds": 0}});
        let task = task(&json!([harmless, step]));
        let result = block_on(desktop.reset(&task, 0));
        assert!(matches!(result, Err(EnvError::Task { .. })), "{result:?}");
        let (class, words) = told(result);
        assert_eq!(class, ErrorClass::Reset);
        assert!(
            words.starts_with("task t: ") && words.contains(phrase),
            "{words}"
        );
        assert_eq!(counts.reverts.load(Ordering::Relaxed), 0, "{words}");
        assert_eq!(server.asked(), 0, "{words}");
    }
    let text = json!({"id": "t", "instruction": "x", "proxy": true,
        "evaluator": {"func": "infeasible"}});
    let (proxied, _) = read_task(&text.to_string()).unwrap();
    let (_, words) = told(block_on(desktop(&obedient()).reset(&proxied, 0)));
    assert!(
        words.contains("task t: proxy: needs credentials"),
        "{words}"
    );
}

#[test]
fn a_step_that_fails_says_where() {
    let table = [
        (
            json!({"type": "launch", "parameters": {"command": ["soffice"]}}),
            "(launch): the guest answered /setup/launch (soffice) with 500",
        ),
        (
            json!({"type": "execute", "parameters": {"command": "x", "shell": true}}),
            "(execute): the guest answered /execute (x) with 500",
        ),
        (
            json!({"type": "change_wallpaper", "parameters": {"path": "/a.png"}}),
            "(change_wallpaper): ",
        ),
        (
            json!({"type": "chrome_open_tabs", "parameters": {"urls_to_open": ["http://a"]}}),
            "(chrome_open_tabs): Chrome does not answer on port 9222: scripted 0: port 9222: \
             nobody listens",
        ),
        (
            json!({"type": "execute_with_verification", "parameters": {"command": ["x"],
                "max_wait_time": -1}}),
            "max_wait_time (execute_with_verification): -1 is not within an hour",
        ),
    ];
    for (step, phrase) in table {
        let server = serve(|_| page());
        let result = block_on(desktop(&server).reset(&task(&json!([step])), 0));
        let (_, words) = told(result);
        assert!(
            words.contains("task t: config[0]") && words.contains(phrase),
            "{words}"
        );
    }
    // Of what the agent may have brought about, the metric is the judge.
    let server = serve(|_| page());
    let mut desktop = desktop(&server);
    block_on(desktop.reset(&task(&json!([])), 0)).unwrap();
    let forgiven = json!([
        {"type": "launch", "parameters": {"command": ["soffice"]}},
        {"type": "execute", "parameters": {"command": ["x"], "stdout": "out.txt"}},
    ]);
    let task = task(&json!([]));
    block_on(desktop.set_up(&task, &steps(&forgiven), "evaluator.postconfig")).unwrap();
    assert!(desktop.real().unwrap().kept.is_empty());
    let open = json!([{"type": "open", "parameters": {"path": "/a"}}]);
    let result = block_on(desktop.set_up(&task, &steps(&open), "evaluator.postconfig"));
    let (class, words) = told(result);
    assert_eq!(class, ErrorClass::Crash);
    assert!(
        words.contains("task t: evaluator.postconfig[0] (open): "),
        "{words}"
    );
}

#[test]
fn windows_that_are_not_there_are_no_error() {
    let server = serve(|_| Reply::Whole(404, "text/html", b"no window".to_vec()));
    let window = json!({"window_name": "Files"});
    let task = task(&json!([{"type": "activate_window", "parameters": window},
        {"type": "close_window", "parameters": window}]));
    block_on(desktop(&server).reset(&task, 0)).unwrap();
    assert_eq!(server.asked(), 3);
}

#[test]
fn a_program_is_run_until_something_holds() {
    let until = |until: Value| {
        task(&json!([{"type": "execute", "parameters":
            {"command": "x", "stdout": "o", "until": until}}]))
    };
    let third = |ran: fn(usize) -> Reply| {
        let number = std::sync::atomic::AtomicUsize::new(0);
        serve(move |_| ran(number.fetch_add(1, Ordering::Relaxed)))
    };
    let counting = |number| output(i32::from(number < 2), &format!("run {number}"), "");
    for (condition, runs) in [
        (json!({"returncode": 0}), 3),
        (json!({"stdout": "run 1"}), 2),
        (json!({"stderr": ""}), 1),
        (json!({"returncode": 7, "stdout": "n 2"}), 3),
        (json!({}), 1),
    ] {
        let server = third(counting);
        let mut desktop = desktop(&server);
        block_on(desktop.reset(&until(condition), 0)).unwrap();
        // And the screenshot.
        assert_eq!(server.asked(), runs + 1);
        let kept = format!("run {}", runs - 1);
        assert_eq!(desktop.real().unwrap().kept["o"], kept.as_bytes());
    }
    let server = serve(|_| page());
    let result = block_on(desktop(&server).reset(&until(json!({"returncode": 0})), 0));
    assert!(told(result).1.contains("config[0] (execute): "));
    assert_eq!(server.asked(), 5);
}

#[test]
fn after_a_crash_every_call_fails_alike() {
    let task = task(&json!([]));
    let act = Action::Press { key: "a".into() };
    let failing = |reply: Reply, class: ErrorClass| {
        let server = Server::answering(move |request| match request.path() {
            "/screenshot" => picture(),
            _ => reply.clone(),
        });
        let options = GuestOptions {
            deadline: Duration::from_millis(500),
            ..options()
        };
        let folder = tempfile::tempdir().unwrap();
        let files = cache(folder.path(), &[]);
        let mut desktop = Scripted::with(&server.address, options).desktop(files);
        // Before the first reset, too.
        assert_eq!(told(block_on(desktop.observe())).0, ErrorClass::Crash);
        block_on(desktop.reset(&task, 0)).unwrap();
        let file = Probe::File { path: "/x".into() };
        let (came, words) = told(block_on(desktop.probe(&file)));
        assert_eq!(came, class, "{words}");
        let asked = server.asked();
        for result in [
            block_on(desktop.step(&act)).map(|_| ()),
            block_on(desktop.observe()).map(|_| ()),
            block_on(desktop.probe(&file)).map(|_| ()),
            block_on(desktop.set_up(&task, &[], "x")).map(|_| ()),
        ] {
            assert_eq!(told(result).0, class);
        }
        assert_eq!(server.asked(), asked);
        block_on(desktop.reset(&task, 0)).unwrap();
        block_on(desktop.observe()).unwrap();
    };
    failing(Reply::HangUp, ErrorClass::Crash);
    failing(Reply::Silent, ErrorClass::Timeout);
    // What an action ends in is told with it.
    let server = serve(|_| output(1, "", "no display"));
    let mut broken = desktop(&server);
    block_on(broken.reset(&task, 0)).unwrap();
    let (class, words) = told(block_on(broken.step(&act)));
    assert_eq!(class, ErrorClass::Crash);
    assert!(
        words.starts_with("action press: ") && words.contains("no display"),
        "{words}"
    );
}

#[test]
fn a_black_screen_is_right_where_there_is_no_window() {
    let dark = || {
        let size = super::SCREEN;
        let rgb = vec![0; (size.width * size.height * 3) as usize];
        let picture = arpo::types::Screenshot::new(size, rgb);
        let png = arpo::screen::encode_png(&picture).unwrap();
        Reply::Whole(200, "image/png", png)
    };
    let table = [
        (output(0, "\n", ""), None),
        (
            output(0, "0x01 0 host Writer\n", ""),
            Some("though there are windows"),
        ),
        (
            of_json(
                500,
                &json!({"status": "error", "message": "No such file: 'wmctrl'"}),
            ),
            Some("nobody can say whether there are windows"),
        ),
    ];
    for (windows, phrase) in table {
        let server = Server::answering(move |request| match request.path() {
            "/screenshot" => dark(),
            _ => windows.clone(),
        });
        let result = block_on(desktop(&server).reset(&task(&json!([])), 0));
        match phrase {
            None => assert!(result.is_ok(), "{result:?}"),
            Some(phrase) => {
                let (class, words) = told(result);
                assert_eq!(class, ErrorClass::Screenshot);
                assert!(words.contains(phrase), "{words}");
            }
        }
        // Looked at more than once before it is believed.
        assert_eq!(server.asked(), 5);
    }
}

#[test]
fn a_server_is_started_anew_between_two_steps() {
    let server = obedient();
    let options = GuestOptions {
        max_screenshots: 3,
        ..options()
    };
    let machine = Scripted::with(&server.address, options);
    let counts = machine.counts();
    let folder = tempfile::tempdir().unwrap();
    let mut desktop = machine.desktop(cache(folder.path(), &[]));
    block_on(desktop.reset(&task(&json!([])), 0)).unwrap();
    let act = Action::Press { key: "a".into() };
    let restarts = (0..7).map(|_| {
        block_on(desktop.step(&act)).unwrap();
        counts.restarts.load(Ordering::Relaxed)
    });
    // The first look is the reset's.
    assert_eq!(restarts.collect::<Vec<_>>(), [0, 0, 1, 1, 1, 2, 2]);
}

#[test]
fn a_screen_is_looked_at_once_it_is_still() {
    let still = Settle::Still {
        shortest: Duration::from_millis(10),
        between: Duration::from_millis(10),
        longest: Duration::from_secs(30),
    };
    let short = Settle::Still {
        shortest: Duration::from_millis(10),
        between: Duration::from_millis(10),
        longest: Duration::from_millis(300),
    };
    // So many pictures differ from the one before.
    let moving = |pictures: u32| {
        let number = std::sync::atomic::AtomicU32::new(0);
        Server::answering(move |request| match request.path() {
            "/screenshot" => {
                let seen = number.fetch_add(1, Ordering::Relaxed);
                let rgb = vec![100 + seen.min(pictures) as u8; 16 * 9 * 3];
                let picture = arpo::types::Screenshot::new(super::SCREEN, rgb);
                let png = arpo::screen::encode_png(&picture).unwrap();
                Reply::Whole(200, "image/png", png)
            }
            _ => text("done"),
        })
    };
    for (settle, pictures, looks) in [(still, 0, 2), (still, 5, 7), (short, 200, 1)] {
        let server = moving(pictures);
        let options = DesktopOptions {
            settle_reset: settle,
            ..quick()
        };
        let folder = tempfile::tempdir().unwrap();
        let files = cache(folder.path(), &[]);
        let machine = Box::new(Scripted::new(&server.address));
        let mut desktop = GuestDesktop::new(machine, files, options);
        block_on(desktop.reset(&task(&json!([])), 0)).unwrap();
        if settle == still {
            assert_eq!(server.asked(), looks, "{pictures}");
        } else {
            assert!(server.asked() >= looks);
        }
    }
}

#[test]
fn waiting_is_done_here() {
    let server = obedient();
    let mut desktop = desktop(&server);
    block_on(desktop.reset(&task(&json!([])), 0)).unwrap();
    let began = Instant::now();
    let seen = block_on(desktop.step(&Action::Wait)).unwrap();
    assert!(began.elapsed() >= Duration::from_secs(5));
    assert!(seen.elapsed >= Duration::from_secs(5));
    assert_eq!(server.asked_paths(), ["/screenshot", "/screenshot"]);
}
