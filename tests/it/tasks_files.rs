//! Fetching and verifying files of tasks, against a server that does what its script says.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;

use arpo::tasks::fetch::{FetchOptions, FetchReport, fetch};
use arpo::tasks::{FileCache, FileState, Manifest};
use serde_json::{Value, json};

use crate::loopback::{self, Request};
use crate::tasks::{arpo, json_of};

const HUGGING_FACE: &str = "https://huggingface.co";
const BODY: &[u8] = b"0123456789abcdefghij";

/// What the server does with one request.
#[derive(Clone, Debug)]
enum Reply {
    /// Answers as a good server does, with ranges and this tag.
    Good(&'static str),
    /// The same, but hangs up after so many bytes.
    Cut(&'static str, usize),
    /// Always the whole, and no word of tags.
    Whole,
    /// The same, but hangs up after so many bytes.
    WholeCut(usize),
    /// Status and further headers, without content.
    Status(u16, &'static str),
    /// These headers, then the content until it hangs up.
    Raw(&'static str),
    /// The whole, once as many requests wait as the barrier wants.
    Together(Arc<Barrier>),
}

/// A server on this machine; scripts by path.
struct Server {
    url: String,
    /// `PATH RANGE` of each request.
    seen: Arc<Mutex<Vec<String>>>,
    /// Requests in hand, and the most there were.
    in_hand: Arc<Mutex<(usize, usize)>>,
}

type Scripts = Mutex<BTreeMap<String, VecDeque<Reply>>>;

impl Server {
    /// The last reply of a script is given for ever.
    fn start(scripts: &[(&str, &[Reply])]) -> Self {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let own = scripts
            .iter()
            .map(|(path, replies)| ((*path).to_owned(), replies.iter().cloned().collect()));
        let scripts: Scripts = Mutex::new(own.collect());
        let in_hand = Arc::new(Mutex::new((0, 0)));
        let (heard, busy) = (Arc::clone(&seen), Arc::clone(&in_hand));
        let address =
            loopback::serve(move |request| Some(answer(request, &scripts, &heard, &busy)));
        let url = format!("http://{address}");
        Self { url, seen, in_hand }
    }

    fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

fn answer(
    request: &Request,
    scripts: &Scripts,
    heard: &Mutex<Vec<String>>,
    in_hand: &Mutex<(usize, usize)>,
) -> Vec<u8> {
    let path = request.path();
    let (range, tag) = (request.header("range"), request.header("if-range"));
    let count = |change: fn(usize) -> usize| {
        let mut in_hand = in_hand.lock().unwrap();
        in_hand.0 = change(in_hand.0);
        in_hand.1 = in_hand.1.max(in_hand.0);
    };
    count(|busy| busy + 1);
    heard
        .lock()
        .unwrap()
        .push(format!("{path} {range}").trim_end().to_owned());
    let reply = {
        let mut scripts = scripts.lock().unwrap();
        match scripts.get_mut(path) {
            Some(replies) if replies.len() > 1 => replies.pop_front(),
            Some(replies) => replies.front().cloned(),
            None => Some(Reply::Status(404, "")),
        }
    };
    let start = range
        .strip_prefix("bytes=")
        .and_then(|range| range.strip_suffix('-'));
    let start: usize = start.map_or(0, |start| start.parse().unwrap());
    let bytes = reply_bytes(&reply.unwrap(), start, tag);
    // Before the last byte: the client asks for the next file at once.
    count(|busy| busy - 1);
    bytes
}

fn reply_bytes(reply: &Reply, start: usize, if_range: &str) -> Vec<u8> {
    let whole = |headers: &str, sent: usize| {
        let length = BODY.len();
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n{headers}\r\n");
        [head.as_bytes(), &BODY[..sent]].concat()
    };
    match reply {
        Reply::Good(tag) | Reply::Cut(tag, _) => {
            let sent = match reply {
                Reply::Cut(_, sent) => *sent,
                _ => BODY.len(),
            };
            if start == 0 || if_range != *tag {
                return whole(&format!("ETag: {tag}\r\n"), sent);
            }
            let mut head = "HTTP/1.1 206 Partial Content\r\n".to_owned();
            let (last, length) = (BODY.len() - 1, BODY.len());
            let _ = write!(head, "Content-Length: {}\r\n", length - start);
            let _ = write!(head, "Content-Range: bytes {start}-{last}/{length}\r\n\r\n");
            [head.as_bytes(), &BODY[start..sent.max(start)]].concat()
        }
        Reply::Whole => whole("", BODY.len()),
        Reply::Together(barrier) => {
            barrier.wait();
            whole("", BODY.len())
        }
        Reply::WholeCut(sent) => whole("", *sent),
        Reply::Status(status, headers) => {
            format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\n{headers}\r\n").into_bytes()
        }
        Reply::Raw(head) => [head.as_bytes(), b"\r\n\r\n", BODY].concat(),
    }
}

fn options(server: &Server) -> FetchOptions {
    FetchOptions {
        base_url: Some(server.url.clone()),
        jobs: 3,
        tries: 3,
        backoff: Duration::from_millis(1),
        stall: Duration::from_secs(20),
        pinned: Manifest::default(),
    }
}

fn fetch_into(cache: &Path, urls: &[String], options: &FetchOptions) -> FetchReport {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut filling = FileCache::open(cache).unwrap().fill().unwrap();
    runtime
        .block_on(fetch(&mut filling, urls, options, &|_| {}))
        .unwrap()
}

/// Fetches one file by a script. `expected` is empty where it comes, else what is said of it;
/// `ranges` are those asked for.
#[track_caller]
fn check(script: &[Reply], expected: &str, ranges: &[&str]) {
    let server = Server::start(&[("/f", script)]);
    let folder = tempfile::tempdir().unwrap();
    let url = format!("{HUGGING_FACE}/f");
    let report = fetch_into(folder.path(), std::slice::from_ref(&url), &options(&server));
    let seen: Vec<String> = server.seen();
    let asked: Vec<String> = ranges
        .iter()
        .map(|range| format!("/f {range}").trim_end().into())
        .collect();
    assert_eq!(seen, asked, "{script:?} {report:?}");
    let cache = FileCache::open(folder.path()).unwrap();
    if expected.is_empty() {
        assert_eq!(
            (report.fetched, report.failed.len()),
            (1, 0),
            "{script:?} {report:?}"
        );
        let path = cache.path(&url).unwrap();
        assert_eq!(fs::read(&path).unwrap(), BODY);
        assert_eq!(
            fs::read_dir(folder.path().join("partial")).unwrap().count(),
            0
        );
        assert_eq!(
            path.file_name().unwrap().to_str(),
            Some(blake3::hash(BODY).to_hex().as_str())
        );
    } else {
        assert_eq!(cache.path(&url), None);
        let [(failed, reason)] = report.failed.as_slice() else {
            panic!("{script:?} {report:?}")
        };
        assert!(
            *failed == url && reason.contains(expected),
            "{script:?} {reason}"
        );
    }
}

#[test]
fn servers_may_do_their_worst() {
    use Reply::{Cut, Good, Raw, Status, Whole, WholeCut};
    check(&[Good("\"a\"")], "", &[""]);
    check(&[Whole], "", &[""]);
    // Gone on with where it was cut, twice.
    check(
        &[Cut("\"a\"", 5), Cut("\"a\"", 12), Good("\"a\"")],
        "",
        &["", "bytes=5-", "bytes=12-"],
    );
    // Another version by then: from the start.
    check(&[Cut("\"a\"", 5), Good("\"b\"")], "", &["", "bytes=5-"]);
    // A server that ignores ranges: from the start. Without a strong tag none is asked for.
    check(&[Cut("\"a\"", 5), Whole], "", &["", "bytes=5-"]);
    check(&[WholeCut(5), Whole], "", &["", ""]);
    check(&[Cut("W/\"a\"", 5), Good("W/\"a\"")], "", &["", ""]);
    check(
        &[
            Status(500, ""),
            Status(429, "Retry-After: 0\r\n"),
            Good("\"a\""),
        ],
        "",
        &["", "", ""],
    );
    check(&[Status(404, "")], "404", &[""]);
    check(&[Status(401, "")], "401", &[""]);
    check(&[Status(503, "")], "503", &["", "", ""]);
    check(
        &[WholeCut(5)],
        "error decoding response body",
        &["", "", ""],
    );
    // Another range than asked for, and a range beyond the end: what came before is given up.
    let wrong = "HTTP/1.1 206 X\r\nContent-Length: 20\r\nContent-Range: bytes 3-22/23";
    check(
        &[Cut("\"a\"", 5), Raw(wrong), Good("\"a\"")],
        "",
        &["", "bytes=5-", ""],
    );
    let empty = Status(416, "Content-Range: bytes */3\r\n");
    check(
        &[Cut("\"a\"", 5), empty, Good("\"a\"")],
        "",
        &["", "bytes=5-", ""],
    );
    // Lengths: one byte more than said is not read; less than said is a cut; none said is refused
    // unless the content marks its end.
    let short = "HTTP/1.1 200 X\r\nContent-Length: 21";
    check(&[Raw(short), Whole], "", &["", ""]);
    check(
        &[Raw("HTTP/1.1 200 X\r\nConnection: close")],
        "how long the file is",
        &[""],
    );
    check(
        &[Raw(
            "HTTP/1.1 200 X\r\nContent-Length: 20\r\nContent-Encoding: gzip",
        )],
        "encoded",
        &[""],
    );
    check(&[Raw("SSH-2.0-x")], "invalid HTTP version", &["", "", ""]);
}

#[test]
fn as_many_come_at_a_time_as_allowed() {
    let barrier = Arc::new(Barrier::new(3));
    let reply = [Reply::Together(barrier)];
    let paths: Vec<String> = (0..9).map(|i| format!("/{i}")).collect();
    let scripts: Vec<(&str, &[Reply])> = paths
        .iter()
        .map(|path| (path.as_str(), &reply[..]))
        .collect();
    let server = Server::start(&scripts);
    let folder = tempfile::tempdir().unwrap();
    let urls: Vec<String> = paths
        .iter()
        .map(|path| format!("{HUGGING_FACE}{path}"))
        .collect();
    // Fewer than three at a time would wait for ever.
    let report = fetch_into(folder.path(), &urls, &options(&server));
    assert_eq!(report.fetched, 9);
    assert_eq!(server.in_hand.lock().unwrap().1, 3);
}

#[test]
fn what_was_cut_in_one_run_is_gone_on_with_in_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("{HUGGING_FACE}/f");
    let server = Server::start(&[("/f", &[Reply::Cut("\"a\"", 7)])]);
    let once = FetchOptions {
        tries: 1,
        ..options(&server)
    };
    let report = fetch_into(folder.path(), std::slice::from_ref(&url), &once);
    assert_eq!((report.failed.len(), report.bytes), (1, 7));
    let server = Server::start(&[("/f", &[Reply::Good("\"a\"")])]);
    let report = fetch_into(folder.path(), std::slice::from_ref(&url), &options(&server));
    assert_eq!((report.fetched, report.bytes), (1, 13));
    assert_eq!(server.seen(), ["/f bytes=7-"]);
    // And what is there is not asked for again.
    let report = fetch_into(folder.path(), &[url], &options(&server));
    assert_eq!((report.present, server.seen().len()), (1, 1));
}

#[test]
fn contents_are_held_against_the_pinned_ones() {
    let url = format!("{HUGGING_FACE}/f");
    let server = Server::start(&[("/f", &[Reply::Good("\"a\"")])]);
    let pinned = |content: &[u8]| {
        let record =
            json!({"blake3": blake3::hash(content).to_hex().as_str(), "bytes": content.len()});
        serde_json::from_value::<Manifest>(json!({"files": {&url: record}})).unwrap()
    };
    let folder = tempfile::tempdir().unwrap();
    let urls = std::slice::from_ref(&url);
    let other = FetchOptions {
        pinned: pinned(b"other"),
        ..options(&server)
    };
    let report = fetch_into(folder.path(), urls, &other);
    assert!(
        report.failed[0].1.contains("not the pinned one"),
        "{report:?}"
    );
    let same = FetchOptions {
        pinned: pinned(BODY),
        ..options(&server)
    };
    assert_eq!(fetch_into(folder.path(), urls, &same).fetched, 1);
    // Pinned otherwise, the file that is there is not what it has to be.
    assert_eq!(fetch_into(folder.path(), urls, &other).present, 0);
    let cache = FileCache::open(folder.path()).unwrap();
    assert_eq!(
        cache.verify(&url, cache.manifest()).unwrap(),
        FileState::Good
    );
    let state = cache.verify(&url, &other.pinned).unwrap();
    assert!(matches!(state, FileState::Damaged { .. }), "{state:?}");
}

#[test]
fn one_process_fills_a_cache() {
    let folder = tempfile::tempdir().unwrap();
    let _held = FileCache::open(folder.path()).unwrap().fill().unwrap();
    let error = FileCache::open(folder.path()).unwrap().fill().unwrap_err();
    assert!(
        error.to_string().contains("another fetch fills this cache"),
        "{error}"
    );
}

#[test]
fn a_manifest_that_is_none_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("manifest.json");
    for (text, phrase) in [
        ("{", "not a manifest of files"),
        (
            r#"{"files": {"u": {"blake3": "../x", "bytes": 1}}}"#,
            "u: \"../x\" is not a hash",
        ),
    ] {
        fs::write(&path, text).unwrap();
        let error = FileCache::open(folder.path()).unwrap_err().to_string();
        assert!(
            error.contains(phrase) && error.contains("manifest.json"),
            "{error}"
        );
    }
}

/// Tasks with files `/a` and `/b`, `/b`, and none.
fn data(root: &Path) -> String {
    for (id, paths) in [("t1", &["/a", "/b"][..]), ("t2", &["/b"]), ("t3", &[])] {
        let files = paths
            .iter()
            .map(|path| json!({"url": format!("{HUGGING_FACE}{path}"), "path": "x"}));
        let step = json!({"type": "download", "parameters": {"files": files.collect::<Vec<_>>()}});
        let task = json!({
            "id": id, "instruction": "x", "config": [step], "evaluator": {"func": "infeasible"},
        });
        let path = root.join("data/examples/os").join(format!("{id}.json"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, task.to_string()).unwrap();
    }
    root.join("data").to_str().unwrap().to_owned()
}

fn blobs(cache: &Path) -> Vec<PathBuf> {
    let folders = fs::read_dir(cache.join("blobs")).unwrap();
    let files = folders.flat_map(|folder| fs::read_dir(folder.unwrap().path()).unwrap());
    files.map(|file| file.unwrap().path()).collect()
}

#[test]
fn the_commands_fetch_verify_and_repair() {
    let folder = tempfile::tempdir().unwrap();
    let data = data(folder.path());
    let cache = folder.path().join("cache");
    let place = [
        "--data",
        &data,
        "--cache",
        cache.to_str().unwrap(),
        "--json",
    ];
    let run = |args: &[&str]| -> (Option<i32>, Value, String) {
        let output = arpo(&[args, &place].concat());
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), json_of(&output), told)
    };

    let (code, verified, _) = run(&["verify"]);
    assert_eq!((code, &verified["complete"]), (Some(1), &json!(1)));

    let server = Server::start(&[("/a", &[Reply::Status(500, ""), Reply::Good("\"a\"")])]);
    let from = ["--base-url", &server.url, "--tries", "2"];
    let (code, fetched, told) = run(&[&["fetch"], &from[..]].concat());
    assert_eq!(code, Some(1));
    assert_eq!(
        (&fetched["files"], &fetched["fetched"]),
        (&json!(2), &json!(1))
    );
    assert_eq!(fetched["failed"][0]["tasks"], json!(["t1", "t2"]));
    assert!(
        told.contains("trying again https://huggingface.co/a"),
        "{told}"
    );
    assert!(
        told.contains("failed https://huggingface.co/b: the server answered 404"),
        "{told}"
    );

    let (code, verified, _) = run(&["verify"]);
    assert_eq!(code, Some(1));
    let b = json!([format!("{HUGGING_FACE}/b")]);
    assert_eq!(
        verified["incomplete"],
        json!([
            {"id": "t1", "domain": "os", "missing": b, "damaged": []},
            {"id": "t2", "domain": "os", "missing": b, "damaged": []},
        ])
    );
    assert_eq!(run(&["verify", "t3"]).0, Some(0));

    // Same length, other content.
    let [blob] = blobs(&cache).try_into().unwrap();
    fs::write(&blob, BODY.to_ascii_uppercase()).unwrap();
    let (_, verified, _) = run(&["verify", "t1"]);
    assert_eq!(
        verified["incomplete"][0]["damaged"],
        json!([format!("{HUGGING_FACE}/a")])
    );

    let good = [Reply::Good("\"a\"")];
    let server = Server::start(&[("/a", &good), ("/b", &good)]);
    let (code, fetched, _) = run(&["fetch", "--base-url", &server.url]);
    assert_eq!(
        (code, &fetched["fetched"], &fetched["present"]),
        (Some(0), &json!(2), &json!(0))
    );
    assert_eq!(blobs(&cache).len(), 1, "the same content lies there once");
    let (code, verified, _) = run(&["verify"]);
    assert_eq!((code, &verified["good"]), (Some(0), &json!(2)));
}
