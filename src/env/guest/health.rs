//! How a guest is, layer by layer: what works says where what does not begins.
//!
//! Whether the machine itself runs is its provider's to say.

use std::time::{Duration, Instant};

use tokio::net::{TcpStream, UnixStream};

use super::Guest;
use super::reply::Command;
use super::routes::PLATFORM;
use crate::http;

/// What the layers' last question is answered with.
const ECHO: &str = "ready";

/// A layer, as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// When it was looked at.
    pub at: Instant,
    /// How long it took to answer.
    pub took: Duration,
    /// Why it does not work, if it does not.
    pub error: Option<String>,
}

impl Layer {
    /// Whether it works.
    pub fn is_up(&self) -> bool {
        self.error.is_none()
    }

    /// How old this is.
    pub fn age(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.at)
    }
}

/// What a guest's server was found to do, each layer on top of the one before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// Its port, or its socket, takes connections.
    pub tcp: Layer,
    /// The server answers.
    pub http: Layer,
    /// There is a screen, and its picture is whole and of the right size.
    pub display: Layer,
    /// Programs run.
    pub execute: Layer,
}

impl Health {
    /// The layers by name, from the lowest.
    pub fn layers(&self) -> [(&'static str, &Layer); 4] {
        [
            ("tcp", &self.tcp),
            ("http", &self.http),
            ("display", &self.display),
            ("execute", &self.execute),
        ]
    }

    /// The lowest layer that does not work.
    pub fn broken(&self) -> Option<(&'static str, &Layer)> {
        self.layers().into_iter().find(|(_, layer)| !layer.is_up())
    }
}

impl Guest {
    async fn connect(&self) -> std::io::Result<()> {
        match &self.socket {
            Some(path) => UnixStream::connect(path).await.map(drop),
            None => TcpStream::connect(self.address()).await.map(drop),
        }
    }

    /// Looks at every layer up to the first that does not work, each once. Takes a screenshot.
    pub async fn health(&self) -> Health {
        let connecting = async {
            let connect = self.connect();
            match tokio::time::timeout(self.options.connect_deadline, connect).await {
                Ok(connected) => connected.map_err(|error| error.to_string()),
                Err(_) => Err("no answer in time".to_owned()),
            }
        };
        let tcp = looked(connecting).await;
        let http = above(&tcp, "tcp", async {
            let answer = self.ask_text(&self.call(&PLATFORM).tries(1)).await;
            answer
                .map(|_| ())
                .map_err(|error| http::with_causes(&error))
        });
        let http = http.await;
        let display = above(&http, "http", async {
            let screenshot = self.look(1).await;
            screenshot
                .map(|_| ())
                .map_err(|error| http::with_causes(&error))
        });
        let display = display.await;
        let execute = above(&display, "display", async {
            let call = self.execution(&Command::program(["echo", ECHO]));
            let call = call.within(self.options.deadline);
            let output = self
                .checked(&call)
                .await
                .map_err(|error| http::with_causes(&error))?;
            match output.stdout.trim_end() {
                ECHO => Ok(()),
                other => Err(format!("echo {ECHO} gave {other:?}")),
            }
        });
        let execute = execute.await;
        Health {
            tcp,
            http,
            display,
            execute,
        }
    }
}

async fn looked(question: impl Future<Output = Result<(), String>>) -> Layer {
    let started = Instant::now();
    let error = question.await.err();
    let at = Instant::now();
    Layer {
        at,
        took: at - started,
        error,
    }
}

/// A layer that is only looked at if the one below works.
async fn above(
    below: &Layer,
    name: &str,
    question: impl Future<Output = Result<(), String>>,
) -> Layer {
    if below.is_up() {
        return looked(question).await;
    }
    let error = match &below.error {
        Some(reason) if reason.starts_with("not asked") => reason.clone(),
        _ => format!("not asked: {name} does not work"),
    };
    looked(async { Err(error) }).await
}
