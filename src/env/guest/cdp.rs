//! Chrome's DevTools protocol, over a connection to the machine that Chrome runs on: which pages
//! are open, opening and closing them.
//!
//! One WebSocket to the browser itself; a page is a session of it. Chrome answers nobody who names
//! it by anything but an address, whence the host that is named here.

use std::error::Error;
use std::time::{Duration, Instant};

use futures::{SinkExt, StreamExt};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::env::{Connection, Machine};
use crate::http::with_causes;

/// Where Chrome listens on OSWorld's machines: what joins it to its own port listens there.
pub const CHROME_PORT: u16 = 9222;

/// For one answer.
const DEADLINE: Duration = Duration::from_secs(15);

/// For a page to go once it is closed.
const CLOSING: Duration = Duration::from_secs(5);

/// For the first tab of a Chrome that was just launched, which answers before it has one.
const FIRST_TAB: Duration = Duration::from_secs(2);

const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// Bytes of the answer that names the WebSocket.
const MAX_VERSION_BYTES: usize = 64 << 10;

/// Why Chrome did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum CdpError {
    /// Nobody listens, or it is not Chrome.
    #[error("Chrome does not answer on port {CHROME_PORT}: {reason}")]
    Unreachable {
        /// What came instead.
        reason: String,
    },
    /// The connection broke within the conversation.
    #[error("Chrome hung up during {method}: {reason}")]
    Broken {
        /// What was asked.
        method: &'static str,
        /// The connection's words.
        reason: String,
    },
    /// No answer in time.
    #[error("Chrome did not answer {method} within {} s", DEADLINE.as_secs())]
    Timeout {
        /// What was asked.
        method: &'static str,
    },
    /// It says no.
    #[error("Chrome says no to {method}: {told}")]
    Refused {
        /// What was asked.
        method: &'static str,
        /// Its words.
        told: String,
    },
}

impl CdpError {
    fn unreachable(reason: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        let reason = with_causes(reason.into().as_ref());
        Self::Unreachable { reason }
    }
}

/// A page that is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// What Chrome calls it.
    pub id: String,
    /// Its address.
    pub url: String,
    /// Its title.
    pub title: String,
}

/// A conversation with Chrome. Nothing is closed when it ends.
pub struct Browser {
    socket: WebSocketStream<Box<dyn Connection>>,
    /// Number of the last question.
    asked: u64,
    /// Documents that have loaded, by their loaders.
    loaded: Vec<String>,
}

impl Browser {
    /// Begins a conversation with the Chrome of a machine.
    pub async fn connect(machine: &dyn Machine) -> Result<Self, CdpError> {
        let connecting = async {
            let path = socket_path(connect(machine).await?).await?;
            let url = format!("ws://127.0.0.1:{CHROME_PORT}{path}");
            let opened = client_async(url, connect(machine).await?).await;
            let (socket, _) = opened.map_err(CdpError::unreachable)?;
            Ok(Self {
                socket,
                asked: 0,
                loaded: Vec::new(),
            })
        };
        let late = |_| CdpError::unreachable(format!("no answer within {} s", DEADLINE.as_secs()));
        timeout(DEADLINE, connecting).await.map_err(late)?
    }

    /// The pages that are open, in Chrome's own order.
    pub async fn pages(&mut self) -> Result<Vec<Page>, CdpError> {
        let method = "Target.getTargets";
        let answer = self.ask(method, json!({}), None).await?;
        let targets = answer["targetInfos"].as_array();
        let targets = targets.ok_or_else(|| CdpError::Refused {
            method,
            told: answer.to_string(),
        })?;
        let pages = targets.iter().filter(|target| target["type"] == "page");
        Ok(pages
            .map(|target| Page {
                id: text(&target["targetId"]),
                url: text(&target["url"]),
                title: text(&target["title"]),
            })
            .collect())
    }

    /// Opens a page in a tab of its own and waits until it has loaded, or failed to. After `limit`
    /// it is left as it is. Gives what Chrome calls it.
    pub async fn open(&mut self, url: &str, limit: Duration) -> Result<String, CdpError> {
        let blank = json!({"url": "about:blank"});
        let created = self.ask("Target.createTarget", blank, None).await?;
        let target = json!({"targetId": created["targetId"], "flatten": true});
        let attached = self.ask("Target.attachToTarget", target, None).await?;
        let session = text(&attached["sessionId"]);
        let session = Some(session.as_str());
        self.ask("Page.enable", json!({}), session).await?;
        let enabled = json!({"enabled": true});
        self.ask("Page.setLifecycleEventsEnabled", enabled, session)
            .await?;
        let loading = async {
            let navigate = "Page.navigate";
            let number = self.say(navigate, json!({"url": url}), session).await?;
            let answer = self.hear(navigate, number).await?;
            match answer["loaderId"].as_str() {
                Some(loader) if answer["errorText"].is_null() => self.wait_loaded(loader).await,
                _ => Ok(()),
            }
        };
        match timeout(limit, loading).await {
            Ok(Err(CdpError::Refused { told, .. })) => {
                tracing::warn!(url, told, "Chrome does not open a page");
            }
            Ok(result) => result?,
            Err(_) => tracing::warn!(url, ?limit, "a page goes on loading"),
        }
        Ok(text(&created["targetId"]))
    }

    /// The first page but one, soon; none where there is no other.
    pub async fn first_but(&mut self, id: &str) -> Result<Option<Page>, CdpError> {
        let is_other = |page: &Page| page.id != id;
        let has_other = |pages: &[Page]| pages.iter().any(is_other);
        let pages = self.pages_until(FIRST_TAB, has_other).await?;
        Ok(pages.into_iter().find(is_other))
    }

    /// Closes a page and waits until it is gone, for Chrome says yes before. One that asks whether
    /// it may be left stays. A Chrome that ends with its last page is gone, too.
    pub async fn close(&mut self, page: &Page) -> Result<(), CdpError> {
        let target = json!({"targetId": page.id});
        self.ask("Target.closeTarget", target, None).await?;
        let is_gone = |pages: &[Page]| pages.iter().all(|other| other.id != page.id);
        let pages = match self.pages_until(CLOSING, is_gone).await {
            Err(CdpError::Broken { .. }) => return Ok(()),
            pages => pages?,
        };
        if !is_gone(&pages) {
            tracing::warn!(url = page.url, "a page does not close");
        }
        Ok(())
    }

    /// The pages as soon as they are right, or as they are after `limit`.
    async fn pages_until(
        &mut self,
        limit: Duration,
        are_right: impl Fn(&[Page]) -> bool,
    ) -> Result<Vec<Page>, CdpError> {
        let began = Instant::now();
        loop {
            let pages = self.pages().await?;
            if are_right(&pages) || began.elapsed() > limit {
                return Ok(pages);
            }
            sleep(BETWEEN_LOOKS).await;
        }
    }

    /// Asks one thing of the browser, or of the page of a session.
    pub async fn ask(
        &mut self,
        method: &'static str,
        parameters: Value,
        session: Option<&str>,
    ) -> Result<Value, CdpError> {
        let asking = async {
            let number = self.say(method, parameters, session).await?;
            self.hear(method, number).await
        };
        let answered = timeout(DEADLINE, asking).await;
        answered.map_err(|_| CdpError::Timeout { method })?
    }

    async fn say(
        &mut self,
        method: &'static str,
        parameters: Value,
        session: Option<&str>,
    ) -> Result<u64, CdpError> {
        self.asked += 1;
        let mut message = json!({"id": self.asked, "method": method, "params": parameters});
        if let Some(session) = session {
            message["sessionId"] = session.into();
        }
        let sent = self.socket.send(Message::text(message.to_string())).await;
        sent.map_err(|error| CdpError::Broken {
            method,
            reason: error.to_string(),
        })?;
        Ok(self.asked)
    }

    /// The answer to a question.
    async fn hear(&mut self, method: &'static str, number: u64) -> Result<Value, CdpError> {
        loop {
            let mut message = self.message(method).await?;
            if message["id"] != number {
                continue;
            }
            if let Some(error) = message.get("error") {
                let told = error["message"].as_str();
                return Err(CdpError::Refused {
                    method,
                    told: told.map_or_else(|| error.to_string(), str::to_owned),
                });
            }
            return Ok(message["result"].take());
        }
    }

    async fn wait_loaded(&mut self, loader: &str) -> Result<(), CdpError> {
        while !self.loaded.iter().any(|loaded| loaded == loader) {
            self.message("Page.navigate").await?;
        }
        Ok(())
    }

    /// The next message; what it tells of loading is remembered.
    async fn message(&mut self, method: &'static str) -> Result<Value, CdpError> {
        let broken = |reason: String| CdpError::Broken { method, reason };
        loop {
            let next = self.socket.next().await;
            let next = next.ok_or_else(|| broken("the connection ended".to_owned()))?;
            let Message::Text(text) = next.map_err(|error| broken(error.to_string()))? else {
                continue;
            };
            let message: Value =
                serde_json::from_str(&text).map_err(|error| broken(error.to_string()))?;
            let event = &message["params"];
            if message["method"] == "Page.lifecycleEvent" && event["name"] == "load" {
                self.loaded
                    .extend(event["loaderId"].as_str().map(str::to_owned));
            }
            return Ok(message);
        }
    }
}

async fn connect(machine: &dyn Machine) -> Result<Box<dyn Connection>, CdpError> {
    let connected = machine.connect(CHROME_PORT).await;
    connected.map_err(CdpError::unreachable)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The path of the browser's WebSocket. Its host is the one that was asked for, not where it is.
async fn socket_path(connection: Box<dyn Connection>) -> Result<String, CdpError> {
    let handshake = hyper::client::conn::http1::handshake(TokioIo::new(connection));
    let (mut sender, driving) = handshake.await.map_err(CdpError::unreachable)?;
    // It ends with the answer.
    tokio::spawn(driving);
    let request = hyper::Request::get("/json/version")
        .header(hyper::header::HOST, format!("127.0.0.1:{CHROME_PORT}"))
        .body(Empty::<Bytes>::new())
        .map_err(CdpError::unreachable)?;
    let response = sender.send_request(request).await;
    let response = response.map_err(CdpError::unreachable)?;
    let status = response.status();
    if !status.is_success() {
        return Err(CdpError::unreachable(format!(
            "/json/version gives {status}"
        )));
    }
    let body = Limited::new(response.into_body(), MAX_VERSION_BYTES);
    let bytes = body.collect().await.map_err(CdpError::unreachable)?;
    let version: Value =
        serde_json::from_slice(&bytes.to_bytes()).map_err(CdpError::unreachable)?;
    let url = version["webSocketDebuggerUrl"].as_str();
    let path = url.and_then(|url| {
        let (_, rest) = url.split_once("://")?;
        rest.find('/').map(|slash| rest[slash..].to_owned())
    });
    path.ok_or_else(|| CdpError::unreachable("/json/version names no WebSocket"))
}
