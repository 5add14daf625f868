//! A Chrome that is none: its pages, and the part of DevTools that opens and closes them.

use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;

/// A browser on a port of this machine.
pub struct FakeChrome {
    pub address: String,
    pages: Arc<Mutex<Pages>>,
}

#[derive(Default)]
struct Pages {
    /// By number: what a page is called, and its address.
    open: Vec<(usize, String)>,
    /// Those that it begins with, until they are there.
    coming: Vec<String>,
    /// How often it is asked for its pages until they are.
    late: u32,
    /// Numbers of those that are closed and still told of once.
    closing: Vec<usize>,
    made: usize,
    /// Connections that are refused before one is taken.
    deaf: usize,
}

impl FakeChrome {
    /// With these pages, once it has been asked for them so often. It refuses the first `deaf`
    /// connections.
    pub fn start(urls: &[String], late: u32, deaf: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let mut pages = Pages {
            late,
            deaf,
            coming: urls.to_vec(),
            ..Pages::default()
        };
        pages.come();
        let pages = Arc::new(Mutex::new(pages));
        let served = Arc::clone(&pages);
        std::thread::spawn(move || super::block_on(listen(listener, served)));
        Self { address, pages }
    }

    /// The addresses of its pages, sorted.
    pub fn left(&self) -> Vec<String> {
        let pages = self.pages.lock().unwrap();
        let ended = pages.has_ended();
        let open = pages.open.iter().filter(|_| !ended).map(|(_, url)| url);
        let mut urls: Vec<String> = open.chain(&pages.coming).cloned().collect();
        urls.sort();
        urls
    }
}

impl Pages {
    fn add(&mut self, url: &str) {
        self.open.push((self.made, url.to_owned()));
        self.made += 1;
    }

    fn come(&mut self) {
        if self.late > 0 {
            return;
        }
        for url in std::mem::take(&mut self.coming) {
            self.add(&url);
        }
    }

    /// Its last page was closed.
    fn has_ended(&self) -> bool {
        let closed = |(number, _): &(usize, String)| self.closing.contains(number);
        self.coming.is_empty() && !self.closing.is_empty() && self.open.iter().all(closed)
    }

    fn answer(&mut self, question: &Value) -> Result<Value, &'static str> {
        let parameters = &question["params"];
        let number = |name: &str, of: &Value| {
            let text = of.as_str().unwrap_or_default();
            text.strip_prefix(name)
                .and_then(|text| text.parse::<usize>().ok())
        };
        let target = number("page-", &parameters["targetId"]);
        match question["method"].as_str().unwrap() {
            "Target.getTargets" => {
                self.late = self.late.saturating_sub(1);
                self.come();
                let mut targets =
                    vec![json!({"targetId": "w", "type": "service_worker", "url": "x"})];
                targets.extend(self.open.iter().map(|(number, url)| {
                    json!({"targetId": format!("page-{number}"), "type": "page", "url": url,
                        "title": ""})
                }));
                for closed in std::mem::take(&mut self.closing) {
                    self.open.retain(|(number, _)| *number != closed);
                }
                Ok(json!({"targetInfos": targets}))
            }
            "Target.createTarget" => {
                self.add(parameters["url"].as_str().unwrap());
                Ok(json!({"targetId": format!("page-{}", self.made - 1)}))
            }
            "Target.attachToTarget" if parameters["flatten"] == true => {
                Ok(json!({"sessionId": format!("session-{}", target.unwrap())}))
            }
            "Target.closeTarget" => {
                self.closing.extend(target);
                Ok(json!({"success": true}))
            }
            "Page.navigate" => {
                let session = number("session-", &question["sessionId"]);
                let url = parameters["url"].as_str().unwrap();
                if !url.contains(':') {
                    return Err("Cannot navigate to invalid URL");
                }
                let page = self
                    .open
                    .iter_mut()
                    .find(|(number, _)| Some(*number) == session);
                let page = page.unwrap();
                if url.contains(":1/") {
                    page.1.clear();
                    return Ok(json!({"frameId": "f", "loaderId": "l",
                        "errorText": "net::ERR_UNSAFE_PORT"}));
                }
                url.clone_into(&mut page.1);
                Ok(json!({"frameId": "f", "loaderId": url}))
            }
            "Page.enable" | "Page.setLifecycleEventsEnabled" => Ok(json!({})),
            _ => Err("no such method"),
        }
    }
}

async fn listen(listener: TcpListener, pages: Arc<Mutex<Pages>>) {
    listener.set_nonblocking(true).unwrap();
    let listener = tokio::net::TcpListener::from_std(listener).unwrap();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let is_deaf = {
            let mut pages = pages.lock().unwrap();
            let is_deaf = pages.deaf > 0;
            pages.deaf = pages.deaf.saturating_sub(1);
            is_deaf
        };
        if !is_deaf {
            tokio::spawn(converse(stream, Arc::clone(&pages)));
        }
    }
}

/// Answers one connection: the version, or a WebSocket's questions.
async fn converse(mut stream: TcpStream, pages: Arc<Mutex<Pages>>) {
    let mut head = [0; 512];
    let length = stream.peek(&mut head).await.unwrap();
    let head = String::from_utf8_lossy(&head[..length]).to_lowercase();
    // Chrome wants an address there, and says 500 to a name.
    let is_named = !head.contains("host: 127.0.0.1");
    if head.starts_with("get /json/version") {
        let mut rest = vec![0; length];
        stream.read_exact(&mut rest).await.unwrap();
        // Behind what joins ports, its own address is another.
        let body = json!({"webSocketDebuggerUrl": "ws://127.0.0.1/devtools/browser/b"}).to_string();
        let status = if is_named { 500 } else { 200 };
        let head = format!(
            "HTTP/1.1 {status} X\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all((head + &body).as_bytes()).await.unwrap();
        return;
    }
    assert!(
        head.starts_with("get /devtools/browser/b ") && !is_named,
        "{head}"
    );
    let mut socket = tokio_tungstenite::accept_async(stream).await.unwrap();
    while let Some(Ok(message)) = socket.next().await {
        let Message::Text(text) = message else {
            continue;
        };
        let question: Value = serde_json::from_str(&text).unwrap();
        let answered = {
            let mut pages = pages.lock().unwrap();
            if pages.has_ended() {
                return;
            }
            pages.answer(&question)
        };
        let mut answer = match &answered {
            Ok(result) => json!({"id": question["id"], "result": result}),
            Err(told) => json!({"id": question["id"], "error": {"message": told}}),
        };
        answer["sessionId"] = question["sessionId"].clone();
        // Another page's news come at any time.
        let load = |loader: &Value| {
            json!({"method": "Page.lifecycleEvent", "sessionId": question["sessionId"],
                "params": {"name": "load", "loaderId": loader}})
        };
        for message in [load(&json!("other")), answer] {
            if socket
                .send(Message::text(message.to_string()))
                .await
                .is_err()
            {
                return;
            }
        }
        if let Ok(result) = answered
            && question["method"] == "Page.navigate"
        {
            let loaded = load(&result["loaderId"]).to_string();
            let _ = socket.send(Message::text(loaded)).await;
        }
    }
}
