//! A Docker daemon that a test makes up: the part of its API that we use, over a Unix socket. Each
//! container has a guest's server behind its published ports, and fails as the test says.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use arpo::screen::encode_png;
use arpo::types::{ScreenSize, Screenshot};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::loopback;

/// What a test asks for; the rest goes well.
#[derive(Clone)]
pub struct Plan {
    pub image: bool,
    pub memory_gb: u64,
    /// What starting a container is answered with, in turn; then it works.
    pub starts: Vec<(u16, &'static str)>,
    /// Creating one never answers, though it is done.
    pub hangs_at_create: bool,
    /// What inspecting the newest says of its ports.
    pub published_at: &'static str,
    /// What happens to a container that has just started.
    pub after_start: AfterStart,
    pub guest: Guest,
    /// What it writes as it starts.
    pub log: &'static str,
}

#[derive(Clone, Copy)]
pub enum AfterStart {
    Runs,
    Exits(i64),
    IsLost,
}

/// How the server in the machine is.
#[derive(Clone, Copy)]
pub enum Guest {
    Well,
    /// Takes connections, as a published port does, and hangs up.
    NeverAnswers,
    Size(u32, u32),
    /// Answers pictures, and these many programs with an error.
    FailsPrograms(u32),
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            image: true,
            memory_gb: 64,
            starts: Vec::new(),
            hangs_at_create: false,
            published_at: "127.0.0.1",
            after_start: AfterStart::Runs,
            guest: Guest::Well,
            log: "Booting...\n",
        }
    }
}

pub struct Container {
    pub id: String,
    /// As it was asked for.
    pub body: Value,
    pub state: &'static str,
    pub exit_code: i64,
    address: String,
    /// Turns true at its end.
    ended: watch::Sender<bool>,
}

#[derive(Default)]
pub struct Daemon {
    pub containers: Vec<Container>,
    pub plan: Plan,
    /// `METHOD PATH?QUERY` without the version.
    pub asked: Vec<String>,
    created: u32,
}

/// The daemon, listening.
#[derive(Clone, Default)]
pub struct Engine {
    daemon: Arc<Mutex<Daemon>>,
}

impl Engine {
    /// Listens at a socket, on threads of its own for as long as the test's process lives.
    pub fn serve(socket: &Path, plan: Plan) -> Self {
        let engine = Self::default();
        engine.daemon().plan = plan;
        let listener = std::os::unix::net::UnixListener::bind(socket).unwrap();
        listener.set_nonblocking(true).unwrap();
        let router = Router::new().fallback(answer).with_state(engine.clone());
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let listener = tokio::net::UnixListener::from_std(listener).unwrap();
                axum::serve(listener, router).await.unwrap();
            });
        });
        engine
    }

    pub fn daemon(&self) -> MutexGuard<'_, Daemon> {
        self.daemon.lock().unwrap()
    }

    /// Containers that are there, by their ids.
    pub fn ids(&self) -> Vec<String> {
        let daemon = self.daemon();
        let ids = daemon.containers.iter().map(|it| it.id.clone());
        ids.collect()
    }

    /// What was asked that begins so.
    pub fn asked(&self, beginning: &str) -> Vec<String> {
        let asked = self.daemon().asked.clone();
        let asked = asked.into_iter();
        asked.filter(|it| it.starts_with(beginning)).collect()
    }

    /// Puts a container there that somebody else made.
    pub fn add(&self, id: &str, labels: &Value, state: &'static str) {
        let body = json!({"Image": "x", "Labels": labels});
        let container = Container::new(id.to_owned(), body, Guest::Well, state);
        self.daemon().containers.push(container);
    }

    /// Ends the newest.
    pub fn exit(&self, code: i64) {
        let mut daemon = self.daemon();
        daemon.containers.last_mut().unwrap().exit(code);
    }
}

impl Container {
    fn new(id: String, body: Value, guest: Guest, state: &'static str) -> Self {
        let ran = AtomicU32::new(0);
        let address = match state {
            "created" => loopback::serve(move |request| guest.answer(request, &ran)),
            _ => "127.0.0.1:1".to_owned(),
        };
        Self {
            id,
            body,
            state,
            exit_code: 0,
            address,
            ended: watch::Sender::new(false),
        }
    }

    pub fn label(&self, key: &str) -> String {
        let label = &self.body["Labels"][key];
        label.as_str().unwrap_or_default().to_owned()
    }

    fn exit(&mut self, code: i64) {
        self.state = "exited";
        self.exit_code = code;
        self.ended.send_replace(true);
    }

    fn summary(&self) -> Value {
        json!({"Id": self.id, "Names": [format!("/{}", self.id)], "Image": "x",
            "State": self.state, "Labels": self.body["Labels"]})
    }

    fn inspected(&self, published_at: &str) -> Value {
        let running = matches!(self.state, "running" | "paused");
        let port = self.address.rsplit(':').next().unwrap();
        let binding = json!([{"HostIp": published_at, "HostPort": port}]);
        let exposed = self.body["ExposedPorts"].as_object();
        let ports = exposed.into_iter().flat_map(|ports| ports.keys());
        let ports: HashMap<&String, &Value> = ports.map(|port| (port, &binding)).collect();
        json!({"Id": self.id,
            "State": {"Status": self.state, "Running": running, "Paused": self.state == "paused",
                "ExitCode": self.exit_code, "OOMKilled": self.exit_code == 137, "Error": ""},
            "NetworkSettings": {"Ports": if running { json!(ports) } else { json!({}) }}})
    }
}

impl Guest {
    pub fn answer(self, request: &loopback::Request, programs: &AtomicU32) -> Option<Vec<u8>> {
        let of_type = |mime: &str, status: u16, body: &[u8]| {
            let head = format!(
                "HTTP/1.0 {status} X\r\nContent-Type: {mime}\r\nContent-Length: {}\r\n\r\n",
                body.len()
            );
            Some([head.as_bytes(), body].concat())
        };
        let (width, height) = match self {
            Self::NeverAnswers => return Some(Vec::new()),
            Self::Size(width, height) => (width, height),
            Self::Well | Self::FailsPrograms(_) => (320, 320),
        };
        match request.path() {
            "/platform" => of_type("text/html", 200, b"Linux"),
            "/screenshot" => {
                let rgb = (0..width * height * 3).map(|i| (i * 7) as u8).collect();
                let picture = Screenshot::new(ScreenSize { width, height }, rgb);
                of_type("image/png", 200, &encode_png(&picture).unwrap())
            }
            "/screen_size" => {
                let size = json!({"width": width, "height": height}).to_string();
                of_type("application/json", 200, size.as_bytes())
            }
            "/execute" => {
                let ran = programs.fetch_add(1, Ordering::SeqCst);
                let answer = match self {
                    Self::FailsPrograms(failures) if ran < failures => {
                        json!({"status": "error", "message": "Connection reset by peer"})
                    }
                    _ => json!({"status": "success", "output": "ready\n", "error": "",
                        "returncode": 0}),
                };
                let status = if answer["status"] == "error" {
                    500
                } else {
                    200
                };
                of_type("application/json", status, answer.to_string().as_bytes())
            }
            _ => of_type("text/html", 404, b"<title>404 Not Found</title>"),
        }
    }
}

fn of_json(status: u16, body: &Value) -> Response {
    // The end of a line ends an answer of the original's too.
    let status = StatusCode::from_u16(status).unwrap();
    (status, format!("{body}\n")).into_response()
}

fn refused(status: u16, message: &str) -> Response {
    of_json(status, &json!({"message": message}))
}

fn nothing() -> Response {
    StatusCode::NO_CONTENT.into_response()
}

async fn answer(State(engine): State<Engine>, method: Method, uri: Uri, body: Bytes) -> Response {
    let whole = uri.to_string();
    // `/v1.48/containers/json`: the version is the client's choice.
    let path = match whole.strip_prefix("/v") {
        Some(rest) if rest.starts_with(|c: char| c.is_ascii_digit()) => {
            rest.split_once('/').map_or("", |(_, path)| path).to_owned()
        }
        _ => whole.trim_start_matches('/').to_owned(),
    };
    engine.daemon().asked.push(format!("{method} {path}"));
    let (path, query) = path.split_once('?').unwrap_or((&path, ""));
    let parts: Vec<&str> = path.split('/').collect();
    match (method.as_str(), parts.as_slice()) {
        ("GET", ["version"]) => of_json(200, &json!({"ApiVersion": "1.45", "Version": "26.1"})),
        ("GET", ["info"]) => {
            let memory = engine.daemon().plan.memory_gb << 30;
            let info = json!({"ServerVersion": "26.1", "OperatingSystem": "Debian\u{1b}[1m",
                "NCPU": 8, "MemTotal": memory, "DockerRootDir": "/nowhere"});
            of_json(200, &info)
        }
        ("GET", ["images", .., "json"]) => {
            if engine.daemon().plan.image {
                of_json(200, &json!({"Id": "sha256:1"}))
            } else {
                refused(404, "No such image")
            }
        }
        ("GET", ["containers", "json"]) => list(&engine, query),
        ("POST", ["containers", "create"]) => create(&engine, &body).await,
        (verb, ["containers", id, rest @ ..]) => container(&engine, verb, id, rest, query),
        _ => refused(400, &format!("this daemon knows no {method} {path}")),
    }
}

/// Containers with all the labels of the filter, those that do not run only where all are asked for.
fn list(engine: &Engine, query: &str) -> Response {
    let query: HashMap<String, String> = query
        .split('&')
        .filter_map(|pair| {
            let (key, value) = pair.split_once('=')?;
            let value = percent_encoding::percent_decode_str(value);
            Some((key.to_owned(), value.decode_utf8().unwrap().into_owned()))
        })
        .collect();
    let filters = query.get("filters").map_or("{}", String::as_str);
    let filters: Value = serde_json::from_str(filters).unwrap();
    let labels = filters["label"].as_array().cloned().unwrap_or_default();
    let bears = |container: &Container| {
        labels.iter().all(|wanted| {
            let wanted = wanted.as_str().unwrap();
            match wanted.split_once('=') {
                Some((key, value)) => container.body["Labels"][key] == value,
                None => !container.body["Labels"][wanted].is_null(),
            }
        })
    };
    let all = query.get("all").is_some_and(|all| all == "true");
    let daemon = engine.daemon();
    let found = daemon.containers.iter();
    let found = found.filter(|it| bears(it) && (all || it.state == "running"));
    let found: Vec<Value> = found.map(Container::summary).collect();
    of_json(200, &json!(found))
}

async fn create(engine: &Engine, body: &Bytes) -> Response {
    let (id, hangs) = {
        let mut daemon = engine.daemon();
        daemon.created += 1;
        let id = format!("{:0>64}", daemon.created);
        let body = serde_json::from_slice(body).unwrap();
        let container = Container::new(id.clone(), body, daemon.plan.guest, "created");
        daemon.containers.push(container);
        (id, daemon.plan.hangs_at_create)
    };
    if hangs {
        tokio::time::sleep(Duration::from_secs(600)).await;
    }
    of_json(201, &json!({"Id": id, "Warnings": []}))
}

fn container(engine: &Engine, verb: &str, id: &str, rest: &[&str], query: &str) -> Response {
    if let ("POST", ["wait"]) = (verb, rest) {
        return wait(engine, id);
    }
    let mut daemon = engine.daemon();
    let at = daemon.containers.iter().position(|it| it.id == id);
    let Some(at) = at else {
        return refused(404, &format!("No such container: {id}"));
    };
    match (verb, rest) {
        ("GET", ["json"]) => {
            let published_at = daemon.plan.published_at;
            of_json(200, &daemon.containers[at].inspected(published_at))
        }
        ("POST", ["start"]) => start(&mut daemon, at),
        ("POST", ["pause"]) if daemon.containers[at].state == "running" => {
            daemon.containers[at].state = "paused";
            nothing()
        }
        ("POST", ["unpause"]) if daemon.containers[at].state == "paused" => {
            daemon.containers[at].state = "running";
            nothing()
        }
        ("POST", ["pause" | "unpause"]) => refused(409, "it is not in that state"),
        ("DELETE", []) => {
            let is_idle = !matches!(daemon.containers[at].state, "running" | "paused");
            if !is_idle && !query.contains("force=true") {
                return refused(409, "it runs: stop it, or force its removal");
            }
            daemon.containers[at].ended.send_replace(true);
            daemon.containers.remove(at);
            nothing()
        }
        ("GET", ["logs"]) => {
            let (log, mut ended) = (daemon.plan.log, daemon.containers[at].ended.subscribe());
            // One frame: its stream, then its length.
            let mut frame = vec![1, 0, 0, 0];
            frame.extend((log.len() as u32).to_be_bytes());
            frame.extend(log.as_bytes());
            let first = futures::stream::iter([Ok::<_, std::io::Error>(frame)]);
            let last = futures::stream::once(async move {
                let _ = ended.wait_for(|ended| *ended).await;
                Ok(Vec::new())
            });
            Body::from_stream(futures::StreamExt::chain(first, last)).into_response()
        }
        ("GET", ["stats"]) => of_json(200, &json!({"memory_stats": {"usage": 5_u64 << 30}})),
        _ => refused(400, &format!("this daemon knows no {verb} {rest:?}")),
    }
}

fn start(daemon: &mut Daemon, at: usize) -> Response {
    if !daemon.plan.starts.is_empty() {
        let (status, message) = daemon.plan.starts.remove(0);
        return refused(status, message);
    }
    daemon.containers[at].state = "running";
    match daemon.plan.after_start {
        AfterStart::Runs => {}
        AfterStart::Exits(code) => daemon.containers[at].exit(code),
        AfterStart::IsLost => drop(daemon.containers.remove(at)),
    }
    nothing()
}

/// Answers when it does not run any more.
fn wait(engine: &Engine, id: &str) -> Response {
    let daemon = engine.daemon();
    let Some(container) = daemon.containers.iter().find(|it| it.id == id) else {
        return refused(404, &format!("No such container: {id}"));
    };
    let mut ended = container.ended.subscribe();
    let has_ended = !matches!(container.state, "running" | "paused");
    let answer = futures::stream::once(async move {
        if !has_ended {
            let _ = ended.wait_for(|ended| *ended).await;
        }
        Ok::<_, std::io::Error>("{\"StatusCode\": 0}\n")
    });
    Body::from_stream(answer).into_response()
}
