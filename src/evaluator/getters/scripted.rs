//! A desktop made of a case's lines, for tests: a guest's server on loopback that answers from
//! them, and the ports that programs on it would listen on.
//!
//! The other half, for OSWorld's own getters, is `fill_getters.py` beside the cases.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::env::guest::{Guest, GuestOptions};
use crate::env::{Connection, EnvError, Machine, RealDesktop};
use crate::tasks::FileCache;
use crate::types::ScreenSize;
use crate::types::osworld::PlaceholderValues;

/// The home folder of every scripted desktop.
const HOME: &str = "/home/user";

/// A machine with a scripted desktop.
pub(crate) struct Scripted {
    guest: Guest,
    desktop: Arc<Value>,
    serving: JoinHandle<()>,
    kept: BTreeMap<String, Vec<u8>>,
    files: FileCache,
    _cache: tempfile::TempDir,
}

/// The content of a file that a case has: `{"text": …}`, `{"hex": …}`, or `{"document": …}`, which
/// lies beside the cases; null is none.
pub(crate) fn content(written: &Value) -> Option<Vec<u8>> {
    let text = |key: &str| written.get(key).and_then(Value::as_str);
    if let Some(text) = text("text") {
        return Some(text.as_bytes().to_vec());
    }
    if let Some(hex) = text("hex") {
        let pairs = hex.as_bytes().chunks(2);
        let pairs = pairs.map(|pair| std::str::from_utf8(pair).unwrap());
        let bytes = pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap());
        return Some(bytes.collect());
    }
    if let Some(document) = text("document") {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        let folder = folder.join("tests/it/fixtures/differential/documents");
        return Some(std::fs::read(folder.join(document)).unwrap());
    }
    assert!(written.is_null(), "{written}");
    None
}

impl Scripted {
    /// The desktop of a case, with what its set-up kept and what was fetched.
    pub(crate) async fn start(case: &Value) -> Self {
        let desktop = Arc::new(case.get("desktop").cloned().unwrap_or(json!({})));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let screen = ScreenSize {
            width: 1920,
            height: 1080,
        };
        let options = GuestOptions {
            tries: 1,
            ..GuestOptions::new(screen)
        };
        let serving = tokio::spawn(serve(listener, Arc::clone(&desktop)));
        let cache = tempfile::tempdir().unwrap();
        fetch(cache.path(), &case["web"]);
        let kept = case.get("kept").and_then(Value::as_object);
        let kept = kept.into_iter().flatten();
        Self {
            guest: Guest::new(address, options).unwrap(),
            desktop,
            serving,
            kept: kept
                .map(|(name, file)| (name.clone(), content(file).unwrap()))
                .collect(),
            files: FileCache::open(cache.path()).unwrap(),
            _cache: cache,
        }
    }

    /// Ends its server.
    pub(crate) async fn stop(&mut self) {
        self.serving.abort();
        let _ = (&mut self.serving).await;
    }

    /// As evaluators see it.
    pub(crate) fn real(&self) -> RealDesktop<'_> {
        RealDesktop {
            machine: self,
            kept: &self.kept,
            files: &self.files,
        }
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

#[async_trait]
impl Machine for Scripted {
    fn name(&self) -> String {
        "scripted".to_owned()
    }
    async fn revert(&mut self) -> Result<(), EnvError> {
        Ok(())
    }
    fn guest(&self) -> &Guest {
        &self.guest
    }
    async fn restart_server(&mut self) -> Result<(), EnvError> {
        Ok(())
    }
    async fn connect(&self, port: u16) -> Result<Box<dyn Connection>, EnvError> {
        let vlc = &self.desktop["vlc"];
        if port != 8080 || !vlc.is_object() {
            return Err(EnvError::Machine {
                machine: self.name(),
                reason: format!("nothing listens on port {port}"),
            });
        }
        let status = vlc["status"].as_u64().unwrap_or(200) as u16;
        let page = reply(status, "text/xml", content(vlc).unwrap_or_default());
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        tokio::spawn(answered(theirs, move |(path, _)| {
            assert_eq!(path, "/requests/status.xml");
            page.clone()
        }));
        Ok(Box::new(ours))
    }
    fn placeholders(&self) -> PlaceholderValues {
        PlaceholderValues {
            client_password: "password".to_owned(),
            screen: self.guest.options().screen,
        }
    }
    async fn close(&mut self) -> Result<(), EnvError> {
        Ok(())
    }
}

/// Puts files into a cache, by address.
fn fetch(root: &Path, web: &Value) {
    let mut files = json!({});
    for (url, file) in web.as_object().into_iter().flatten() {
        let bytes = content(file).unwrap();
        let hash = blake3::hash(&bytes).to_hex().to_string();
        let folder = root.join("blobs").join(&hash[..2]);
        std::fs::create_dir_all(&folder).unwrap();
        files[url] = json!({"blake3": hash, "bytes": bytes.len()});
        std::fs::write(folder.join(hash), bytes).unwrap();
    }
    let manifest = json!({ "files": files }).to_string();
    std::fs::write(root.join("manifest.json"), manifest).unwrap();
}

/// A request: its path and its body.
type Request = (String, Vec<u8>);

async fn serve(listener: TcpListener, desktop: Arc<Value>) {
    while let Ok((stream, _)) = listener.accept().await {
        let desktop = Arc::clone(&desktop);
        tokio::spawn(answered(stream, move |request| answer(&desktop, request)));
    }
}

/// One request of a connection, and its end.
async fn answered(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    answer: impl Fn(&Request) -> Vec<u8>,
) {
    let mut read = Vec::new();
    let request = loop {
        if let Some(request) = whole(&read) {
            break request;
        }
        if stream.read_buf(&mut read).await.unwrap_or(0) == 0 {
            return;
        }
    };
    let _ = stream.write_all(&answer(&request)).await;
}

/// The request, once all of it has come.
fn whole(read: &[u8]) -> Option<Request> {
    let end = read.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&read[..end]).ok()?;
    let length = head.lines().find_map(|line| {
        let (key, value) = line.split_once(": ")?;
        let is_length = key.eq_ignore_ascii_case("content-length");
        is_length.then(|| value.parse::<usize>().unwrap())
    });
    let body = read.get(end + 4..end + 4 + length.unwrap_or(0))?;
    let path = head.split(' ').nth(1)?;
    Some((path.to_owned(), body.to_vec()))
}

/// An answer as Flask gives it.
fn reply(status: u16, mime: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let head = format!(
        "HTTP/1.1 {status} X\r\nContent-Type: {mime}\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

fn in_json(status: u16, json: &Value) -> Vec<u8> {
    reply(status, "application/json", json.to_string())
}

/// An exception that the server did not expect.
fn page() -> Vec<u8> {
    reply(
        500,
        "text/html",
        "<title>TypeError // Werkzeug Debugger</title>",
    )
}

fn answer(desktop: &Value, (path, body): &Request) -> Vec<u8> {
    let json: Value = serde_json::from_slice(body).unwrap_or(Value::Null);
    let field = || {
        let pair = std::str::from_utf8(body).unwrap().split_once('=');
        decoded(pair.unwrap().1)
    };
    match path.as_str() {
        "/file" => match desktop["files"].get(from_home(&field())) {
            Some(Value::Null) => page(),
            Some(file) => reply(200, "application/octet-stream", content(file).unwrap()),
            None => in_json(404, &json!({"error": "File not found"})),
        },
        "/execute" => execute(desktop, &json),
        "/list_directory" => match desktop["folders"].get(json["path"].as_str().unwrap()) {
            Some(tree) => in_json(200, &json!({"directory_tree": tree})),
            None => in_json(400, &json!({"error": "Directory not found"})),
        },
        "/desktop_path" => in_json(200, &json!({"desktop_path": format!("{HOME}/Desktop")})),
        "/accessibility" => in_json(200, &json!({"AT": desktop["tree"]})),
        "/terminal" => in_json(
            200,
            &json!({"output": desktop["terminal"], "status": "success"}),
        ),
        "/screen_size" => in_json(200, &desktop["screen"]),
        "/window_size" => match desktop["windows"].get(field()) {
            Some(size) => in_json(200, size),
            None => page(),
        },
        "/wallpaper" => match content(&desktop["wallpaper"]) {
            Some(bytes) => reply(200, "image/png", bytes),
            None => in_json(404, &json!({"error": "Wallpaper not found"})),
        },
        _ => reply(404, "text/html", "<title>404 Not Found</title>"),
    }
}

/// Runs one of the desktop's commands; `date` tells its clock, and what types is done.
fn execute(desktop: &Value, asked: &Value) -> Vec<u8> {
    let done = |output: &Value, error: &Value, code: &Value| {
        in_json(
            200,
            &json!({"status": "success", "output": output, "error": error, "returncode": code}),
        )
    };
    let nothing = json!("");
    if asked["command"] == json!(["date", "+%s %z"]) {
        let zone = desktop["zone"].as_str().unwrap_or("+0000");
        let now = format!("{} {zone}\n", desktop["clock"]);
        return done(&json!(now), &nothing, &json!(0));
    }
    if asked["command"][0] == "python" && asked["command"][1] == "-c" {
        return done(&nothing, &nothing, &json!(0));
    }
    let commands = desktop["commands"].as_array().into_iter().flatten();
    let known = commands
        .into_iter()
        .find(|known| known["command"] == asked["command"] && known["shell"] == asked["shell"]);
    match known {
        Some(Value::Object(known)) if known.contains_key("message") => in_json(
            500,
            &json!({"status": "error", "message": known["message"]}),
        ),
        Some(known) => {
            let or = |key: &str, other: Value| known.get(key).cloned().unwrap_or(other);
            done(
                &or("output", json!("")),
                &or("error", json!("")),
                &or("returncode", json!(0)),
            )
        }
        None => {
            let message = format!("[Errno 2] No such file or directory: {}", asked["command"]);
            in_json(500, &json!({"status": "error", "message": message}))
        }
    }
}

/// A path without `~`.
fn from_home(path: &str) -> String {
    match path.strip_prefix('~') {
        Some(rest) => format!("{HOME}{rest}"),
        None => path.to_owned(),
    }
}

/// A form's value.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digits = [rest.next().unwrap(), rest.next().unwrap()];
                u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap()
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).unwrap()
}
