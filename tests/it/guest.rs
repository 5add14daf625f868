//! The client of a guest's server, against one that fails in all the ways the original does.

mod browser;
mod chromium;
mod desktop;
mod exchange;
mod files;
mod machine;
mod setup;
mod upkeep;

use std::path::Path;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use arpo::env::guest::{Command, Guest, GuestError, GuestOptions, Patience, Verification};
use arpo::screen::encode_png;
use arpo::types::osworld::setup::WindowName;
use arpo::types::{Action, ErrorClass, Point, ScreenSize, Screenshot};
use serde_json::{Value, json};

use crate::loopback::{self, Request};

const SCREEN: ScreenSize = ScreenSize {
    width: 16,
    height: 9,
};

/// What Werkzeug says of an exception, shortened from 17 KB.
const PAGE: &str = "<!doctype html>\n<html lang=en>\n  <head>\n    <title>Xlib.error.DisplayConnectionError: \
    Maximum number of clients reached\n // Werkzeug Debugger</title>\n";

fn png(width: u32, height: u32) -> Vec<u8> {
    let rgb = (0..width * height * 3).map(|i| (i * 7) as u8).collect();
    encode_png(&Screenshot::new(ScreenSize { width, height }, rgb)).unwrap()
}

/// What the server does with one request.
#[derive(Clone, Debug)]
enum Reply {
    /// Answers as Flask does: status, type, content.
    Whole(u16, &'static str, Vec<u8>),
    /// Announces all of it and hangs up after so many bytes.
    Cut(&'static str, Vec<u8>, usize),
    /// Hangs up without a word.
    HangUp,
    /// Says nothing and holds the line.
    Silent,
    /// These bytes.
    Raw(&'static str),
    /// Never listens again.
    Crash,
}

fn page() -> Reply {
    Reply::Whole(500, "text/html; charset=utf-8", PAGE.into())
}

fn text(text: &str) -> Reply {
    Reply::Whole(200, "text/html; charset=utf-8", text.into())
}

fn of_json(status: u16, json: &Value) -> Reply {
    Reply::Whole(status, "application/json", json.to_string().into())
}

fn output(returncode: i32, output: &str, error: &str) -> Reply {
    let json = json!({"status": "success", "output": output, "error": error,
        "returncode": returncode});
    of_json(200, &json)
}

fn picture() -> Reply {
    Reply::Whole(200, "image/png", png(16, 9))
}

fn bytes(reply: Reply) -> Option<Vec<u8>> {
    // Flask's own server is one of HTTP/1.0.
    let head = |status: u16, mime: &str, length: usize| {
        format!(
            "HTTP/1.0 {status} X\r\nContent-Type: {mime}\r\nContent-Length: {length}\r\n\
             Connection: close\r\n\r\n"
        )
    };
    Some(match reply {
        Reply::Whole(status, mime, body) => {
            [head(status, mime, body.len()).into_bytes(), body].concat()
        }
        Reply::Cut(mime, body, sent) => {
            [head(200, mime, body.len()).as_bytes(), &body[..sent]].concat()
        }
        Reply::HangUp => Vec::new(),
        Reply::Silent => loop {
            std::thread::park();
        },
        Reply::Raw(bytes) => bytes.into(),
        Reply::Crash => return None,
    })
}

/// A server that gives these replies in turn, the last one for ever.
struct Server {
    address: String,
    seen: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    fn start(replies: Vec<Reply>) -> Self {
        let asked = AtomicUsize::new(0);
        Self::answering(move |_| {
            let number = asked.fetch_add(1, Ordering::Relaxed);
            replies[number.min(replies.len() - 1)].clone()
        })
    }

    /// One that answers each request by what it is.
    fn answering(answer: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&seen);
        let address = loopback::serve(move |request| {
            // The original does not know it; what it is asked for is counted without.
            if request.path() == "/arpo" {
                return bytes(Reply::Whole(404, "text/html; charset=utf-8", PAGE.into()));
            }
            heard.lock().unwrap().push(request.clone());
            bytes(answer(request))
        });
        Self { address, seen }
    }

    fn guest(&self) -> Guest {
        Guest::new(&self.address, options()).unwrap()
    }

    fn asked(&self) -> usize {
        self.seen.lock().unwrap().len()
    }

    fn asked_paths(&self) -> Vec<String> {
        let seen = self.seen.lock().unwrap();
        let paths = seen.iter().map(|request| request.path().to_owned());
        paths.collect()
    }
}

/// Patient with a busy machine, except where nothing will ever come.
fn options() -> GuestOptions {
    GuestOptions {
        deadline: Duration::from_secs(60),
        slow_deadline: Duration::from_secs(60),
        tries: 3,
        backoff: Duration::from_millis(1),
        ..GuestOptions::new(SCREEN)
    }
}

type Answer<'a> = Pin<Box<dyn Future<Output = Result<String, GuestError>> + 'a>>;

/// A question, and what came of it as text.
type Question = for<'a> fn(&'a Guest) -> Answer<'a>;

macro_rules! question {
    ($guest:ident => $call:expr) => {
        |$guest: &arpo::env::guest::Guest| -> crate::guest::Answer<'_> {
            Box::pin(async move { $call.await.map(|value| format!("{value:?}")) })
        }
    };
}

use question;

#[track_caller]
fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(future)
}

/// Name of the error's class among `GuestError`'s.
fn kind(error: &GuestError) -> String {
    let text = format!("{error:?}");
    let end = text.find([' ', '(']).unwrap_or(text.len());
    text[..end].to_owned()
}

/// Asks a server that replies so. `expected` is the error's kind and a phrase of its text, or
/// nothing and a phrase of the answer; `asked` counts the requests.
#[track_caller]
fn check(ask: Question, replies: &[Reply], expected: (&str, &str), asked: usize) {
    let server = Server::start(replies.to_vec());
    let guest = server.guest();
    let result = block_on(ask(&guest));
    let (name, phrase) = expected;
    let (kind, told) = match &result {
        Ok(answer) => (String::new(), answer.clone()),
        Err(error) => (kind(error), error.to_string()),
    };
    assert_eq!(kind, name, "{replies:?} {told}");
    assert!(told.contains(phrase), "{replies:?} {told}");
    assert_eq!(server.asked(), asked, "{replies:?} {told}");
}

#[test]
fn screenshots_are_whole_or_an_error() {
    let ask: Question = question!(guest => guest.screenshot());
    let whole = png(16, 9);
    let half = whole[..whole.len() / 2].to_vec();
    let cut = Reply::Cut("image/png", whole.clone(), whole.len() - 1);
    let broken = Reply::Whole(200, "image/png", half);
    check(ask, &[picture()], ("", "16x9"), 1);
    // What may be better the next time.
    check(ask, &[page(), Reply::HangUp, picture()], ("", "16x9"), 3);
    check(ask, &[cut.clone(), picture()], ("", "16x9"), 2);
    check(ask, &[broken.clone(), picture()], ("", "16x9"), 2);
    // And is not.
    let crowded = "/screenshot with 500: Xlib.error.DisplayConnectionError: Maximum number";
    check(ask, &[page()], ("Status", crowded), 3);
    check(ask, &[Reply::HangUp], ("Broken", "/screenshot"), 3);
    let ended = format!("ended after {} of {} bytes", whole.len() - 1, whole.len());
    check(ask, &[cut], ("HalfSent", &ended), 3);
    check(ask, &[broken], ("Screenshot", "cannot be used"), 3);
    // What cannot be.
    let small = Reply::Whole(200, "image/png", png(8, 9));
    check(
        ask,
        &[small],
        ("ScreenSize", "8x9 pixels instead of 16x9"),
        1,
    );
    let html = text("<title>Log in</title>");
    check(
        ask,
        &[html],
        ("ContentType", "text/html instead of a PNG: Log in"),
        1,
    );
    let jpeg = Reply::Whole(200, "image/jpeg", vec![0xff, 0xd8, 0xff]);
    check(ask, &[jpeg], ("ContentType", "image/jpeg"), 1);
    let missing = Reply::Whole(404, "text/html", b"<title>404 Not Found</title>".to_vec());
    check(ask, &[missing], ("Status", "404: 404 Not Found"), 1);
    let redirect = Reply::Raw("HTTP/1.0 302 X\r\nLocation: /other\r\nContent-Length: 0\r\n\r\n");
    check(ask, &[redirect], ("Status", "302: (nothing)"), 1);
    let endless = Reply::Raw("HTTP/1.0 200 X\r\nContent-Type: image/png\r\n\r\n\x1b");
    check(ask, &[endless], ("Malformed", "how long it is"), 1);
    check(
        ask,
        &[Reply::Raw("SSH-2.0-x\r\n")],
        ("Broken", "invalid HTTP"),
        3,
    );
}

#[test]
fn json_is_read_with_care() {
    let size: Question = question!(guest => guest.screen_size());
    let terminal: Question = question!(guest => guest.terminal_output());
    check(
        size,
        &[of_json(200, &json!({"width": 1, "height": 2}))],
        ("", "height: 2"),
        1,
    );
    let table = [
        (json!({"width": 1}), "Malformed", "missing field `height`"),
        (json!({"width": -1, "height": 2}), "Malformed", "-1"),
        (
            json!({"error": "no display"}),
            "Reported",
            "failed (200): no display",
        ),
        (
            json!({"status": "error", "message": "m\nn"}),
            "Reported",
            "failed (200): m",
        ),
    ];
    for (json, kind, phrase) in table {
        check(size, &[of_json(200, &json)], (kind, phrase), 1);
    }
    let torn = Reply::Whole(200, "application/json", b"{\"width\": 1".to_vec());
    check(size, &[torn], ("Malformed", "EOF"), 1);
    check(size, &[text("{}")], ("ContentType", "instead of JSON"), 1);
    let none = json!({"output": null, "status": "success"});
    check(terminal, &[of_json(200, &none)], ("", "None"), 1);
    let failed = json!({"status": "error", "message": "no registry"});
    check(
        terminal,
        &[of_json(500, &failed)],
        ("Reported", "/terminal failed (500): no registry"),
        1,
    );
}

#[test]
fn return_codes_are_looked_at() {
    let execute: Question = question!(guest => guest.execute(&Command::program(["ls", "/x"])));
    let run: Question = question!(guest => guest.run(&Command::program(["ls", "/x"])));
    let act: Question = question!(guest => guest.act(&Action::Press { key: "a".to_owned() }));
    let python: Question = question!(guest => guest.run_python("1/0"));
    check(
        execute,
        &[output(2, "", "no such")],
        ("", "returncode: 2"),
        1,
    );
    check(
        run,
        &[output(0, "x\n", "warning")],
        ("", "stdout: \"x\\n\""),
        1,
    );
    let failed = "/execute (ls /x) ended with return code 2: no such";
    check(
        run,
        &[output(2, "", "\nno such\nfile\n")],
        ("ReturnCode", failed),
        1,
    );
    check(
        run,
        &[output(-9, "out", " ")],
        ("ReturnCode", "code -9: out"),
        1,
    );
    let traceback = "Traceback (most recent call last):\n  File \"<string>\", line 1\n\
        Xlib.error.DisplayNameError: Bad display name \"\"\n";
    let failed = "/execute (press) ended with return code 1: Xlib.error.DisplayNameError";
    check(act, &[output(1, "", traceback)], ("ReturnCode", failed), 1);
    let missing = json!({"status": "error", "message": "[Errno 2] No such file: 'ls'"});
    check(
        run,
        &[of_json(500, &missing)],
        ("Reported", "failed (500): [Errno 2] No such file"),
        1,
    );
    let failed = json!({"status": "error", "message": "x", "need_more": false, "output": "",
        "error": "ZeroDivisionError", "return_code": 1});
    check(python, &[of_json(200, &failed)], ("", "returncode: 1"), 1);
    // What the server itself gave up is a time-out, and over.
    for (ask, told) in [
        (python, "Execution timeout: Code took too long to execute"),
        (
            run,
            "Command '['sleep', '999']' timed out after 120 seconds",
        ),
    ] {
        let json = json!({"status": "error", "message": told, "output": null});
        let server = Server::start(vec![of_json(500, &json)]);
        let error = block_on(ask(&server.guest())).unwrap_err();
        assert!(error.to_string().contains(told), "{error}");
        assert_eq!(error.class(), ErrorClass::Timeout);
        assert!(!error.is_outcome_unknown());
    }
}

fn window() -> WindowName {
    WindowName {
        window_name: "Files".to_owned(),
        strict: true,
        by_class: false,
    }
}

/// Where nothing is ever whole.
const NOWHERE: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/no-recording.mp4");

const AT: Point = Point { x: 1.0, y: 2.0 };

/// What changes a desktop each time it is asked.
const ONCE: &[(&str, Question)] = &[
    (
        "act",
        question!(guest => guest.act(&Action::Click { at: AT })),
    ),
    (
        "execute",
        question!(guest => guest.execute(&Command::program(["true"]))),
    ),
    (
        "run",
        question!(guest => guest.run(&Command::shell("true"))),
    ),
    (
        "execute_until",
        question!(guest => guest.execute_until(
            &Command::program(["true"]),
            &Verification::default(),
            Patience { longest: Duration::from_secs(1), interval: Duration::from_secs(1) },
        )),
    ),
    (
        "launch",
        question!(guest => guest.launch(&Command::program(["xterm"]))),
    ),
    ("run_python", question!(guest => guest.run_python("pass"))),
    (
        "run_bash_script",
        question!(guest => guest.run_bash_script("true", Duration::from_secs(1))),
    ),
    (
        "open_file",
        question!(guest => guest.open_file("a.docx", Duration::from_secs(60))),
    ),
    (
        "close_window",
        question!(guest => guest.close_window(&window())),
    ),
    (
        "start_recording",
        question!(guest => guest.start_recording()),
    ),
    (
        "end_recording",
        question!(guest => guest.end_recording(Path::new(NOWHERE))),
    ),
];

#[test]
fn what_changes_a_desktop_is_sent_once() {
    let cut = Reply::Cut("application/json", b"{\"returncode\": 0}".to_vec(), 3);
    let failures = [
        (Reply::HangUp, true),
        (cut, true),
        (page(), false),
        (of_json(500, &json!({"error": "x"})), false),
        (
            Reply::Raw("HTTP/1.0 503 X\r\nContent-Length: 0\r\n\r\n"),
            false,
        ),
        (
            Reply::Raw("HTTP/1.0 307 X\r\nLocation: /execute\r\nContent-Length: 0\r\n\r\n"),
            false,
        ),
    ];
    for (name, ask) in ONCE {
        for (reply, is_unknown) in &failures {
            let server = Server::start(vec![reply.clone()]);
            let guest = server.guest();
            let result = block_on(ask(&guest));
            let is_text = matches!(reply, Reply::Cut(..))
                && matches!(*name, "launch" | "open_file" | "close_window");
            let Err(error) = result else {
                panic!("{name} {reply:?}")
            };
            // JSON where a sentence is due is no answer that could be cut.
            let is_unknown = *is_unknown && !is_text;
            assert_eq!(
                error.is_outcome_unknown(),
                is_unknown,
                "{name} {reply:?} {error}"
            );
            assert_eq!(server.asked(), 1, "{name} {reply:?}");
        }
    }
}

#[test]
fn silence_ends_at_the_deadline() {
    let questions: [(&str, Question); 3] = [
        ("/screenshot", question!(guest => guest.screenshot())),
        ("/platform", question!(guest => guest.platform())),
        (
            "/setup/launch (xterm)",
            question!(guest => guest.launch(&Command::program(["xterm"]))),
        ),
    ];
    for (asked, ask) in questions {
        let server = Server::start(vec![Reply::Silent]);
        let options = GuestOptions {
            deadline: Duration::from_millis(200),
            ..options()
        };
        let guest = Guest::new(&server.address, options).unwrap();
        let error = block_on(ask(&guest)).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("the guest did not answer {asked} within 0.2 s")
        );
        assert_eq!(error.class(), ErrorClass::Timeout);
        assert!(error.is_outcome_unknown());
        // The guest may still be at work on it.
        assert_eq!(server.asked(), 1);
    }
}

#[test]
fn nobody_there_is_known_before_anything_is_sent() {
    let server = Server::start(vec![Reply::Crash]);
    let guest = server.guest();
    let xterm = Command::program(["xterm"]);
    let ask = || guest.launch(&xterm);
    let error = block_on(ask()).unwrap_err();
    assert!(matches!(error, GuestError::Broken { .. }), "{error}");
    let error = block_on(ask()).unwrap_err();
    assert!(matches!(error, GuestError::Unreachable { .. }), "{error}");
    assert!(!error.is_outcome_unknown());
    assert!(error.to_string().contains("refused"), "{error}");
    assert_eq!(error.class(), ErrorClass::Crash);
    for address in ["", "no port", "host:port", "1.2.3.4:5000/x?"] {
        let guest = Guest::new(address, options()).unwrap();
        assert!(block_on(guest.platform()).is_err(), "{address}");
    }
}

/// A server as the original: each screenshot takes a display connection that it never gives back;
/// then it fails, then it dies.
fn leaking(taken: &Arc<AtomicU32>) -> String {
    let taken = Arc::clone(taken);
    loopback::serve(move |_| match taken.fetch_add(1, Ordering::SeqCst) {
        0..243 => bytes(picture()),
        243..250 => bytes(page()),
        _ => None,
    })
}

#[test]
fn screenshots_are_counted_for_the_servers_life() {
    let taken = Arc::new(AtomicU32::new(0));
    let guest = Guest::new(leaking(&taken), options()).unwrap();
    block_on(async {
        for _ in 0..600 {
            if guest.needs_restart() {
                assert_eq!(guest.screenshots(), 200);
                taken.store(0, Ordering::SeqCst);
                guest.restarted();
            }
            guest.screenshot().await.unwrap();
        }
    });
    assert_eq!(guest.screenshots(), 200);
}

#[test]
fn a_server_that_is_not_restarted_is_seen_to_die() {
    let taken = Arc::new(AtomicU32::new(0));
    let guest = Guest::new(leaking(&taken), options()).unwrap();
    block_on(async {
        for _ in 0..243 {
            guest.screenshot().await.unwrap();
        }
        // Three tries each: 246, 249, then the last failure, the crash, and nobody.
        let mut ends = Vec::new();
        for _ in 0..4 {
            let error = guest.screenshot().await.unwrap_err();
            ends.push((kind(&error), error.class()));
        }
        let [status, crash] = [
            ("Status", ErrorClass::Screenshot),
            ("Unreachable", ErrorClass::Crash),
        ];
        let expected = [status, status, crash, crash];
        let ends: Vec<_> = ends
            .iter()
            .map(|(kind, class)| (kind.as_str(), *class))
            .collect();
        assert_eq!(ends, expected);
    });
    assert!(
        guest.screenshots() >= 251,
        "failed ones take a connection, too"
    );
}

#[test]
fn health_names_the_lowest_layer_that_does_not_work() {
    fn serve(broken: &'static str) -> String {
        loopback::serve(move |request| {
            bytes(match request.path() {
                path if path == broken => page(),
                "/platform" => text("Linux"),
                "/screenshot" => picture(),
                _ => output(0, "ready\n", ""),
            })
        })
    }
    let gone = Server::start(vec![Reply::Crash]);
    let _ = block_on(gone.guest().platform());
    let not = |below: &str| format!("not asked: {below} does not work");
    let table = [
        (serve(""), ["", "", "", ""].map(str::to_owned), None),
        (
            serve("/execute"),
            [
                String::new(),
                String::new(),
                String::new(),
                "500: Xlib".to_owned(),
            ],
            Some("execute"),
        ),
        (
            serve("/screenshot"),
            [
                String::new(),
                String::new(),
                "500: Xlib".to_owned(),
                not("display"),
            ],
            Some("display"),
        ),
        (
            serve("/platform"),
            [
                String::new(),
                "500: Xlib".to_owned(),
                not("http"),
                not("http"),
            ],
            Some("http"),
        ),
        (
            gone.address.clone(),
            ["refused".to_owned(), not("tcp"), not("tcp"), not("tcp")],
            Some("tcp"),
        ),
    ];
    for (address, errors, broken) in table {
        let guest = Guest::new(address, options()).unwrap();
        let health = block_on(guest.health());
        for ((name, layer), expected) in health.layers().into_iter().zip(errors) {
            let error = layer.error.clone().unwrap_or_default();
            assert_eq!(error.is_empty(), expected.is_empty(), "{name} {error}");
            assert!(error.contains(&expected), "{name} {error}");
            assert!(layer.age(Instant::now()) < Duration::from_secs(60));
        }
        assert_eq!(health.broken().map(|(name, _)| name), broken);
        // Looking costs one screenshot at most.
        assert!(guest.screenshots() <= 1);
    }
}
