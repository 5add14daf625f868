//! One question to a guest's server: what is sent, what is tried again, what answer is taken.
//!
//! Status and content type are looked at before anything is read. A question that changes the
//! desktop is sent once, whatever comes of it.

use std::path::Path;
use std::time::Duration;

use reqwest::header::{CONTENT_LENGTH, CONTENT_TYPE};
use reqwest::multipart::{Form, Part};
use reqwest::{Method, RequestBuilder, Response};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::fs::File;
use tokio::io::AsyncWriteExt;
use tokio::time::{Instant, sleep, timeout_at};

use super::Guest;
use super::error::{Asked, GuestError, gist, on_one_line};
use super::routes::SCREENSHOT;
use crate::http;

/// Bytes that are read of an answer that only an error repeats.
const MAX_TOLD_BYTES: u64 = 64 << 10;

/// Characters of a command or a path that an error repeats.
const MAX_DETAIL: usize = 80;

/// What a route answers with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// `application/json`.
    Json,
    /// `image/png`.
    Png,
    /// A sentence, which Flask calls HTML.
    Text,
    /// A file of any kind.
    File,
}

impl Content {
    fn name(self) -> &'static str {
        match self {
            Self::Json => "JSON",
            Self::Png => "a PNG",
            Self::Text => "text",
            Self::File => "a file",
        }
    }

    fn accepts(self, mime: &str) -> bool {
        match self {
            Self::Json => mime == "application/json",
            Self::Png => mime == "image/png",
            Self::Text => mime == "text/html" || mime == "text/plain",
            Self::File => true,
        }
    }
}

/// Whether the same may be asked again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repeat {
    /// It changes nothing, or twice changes no more than once.
    Harmless,
    /// It is sent once.
    Never,
}

/// A route of the server.
#[derive(Debug)]
pub(super) struct Route {
    pub(super) method: Method,
    pub(super) path: &'static str,
    pub(super) answers: Content,
    pub(super) repeat: Repeat,
}

/// What goes with a question.
#[derive(Debug)]
pub(super) enum Body<'a> {
    Nothing,
    Json(Value),
    /// One field of a form.
    Field(&'static str, &'a str),
    /// A file of this machine and its place on the desktop.
    Upload {
        from: &'a Path,
        to: &'a str,
    },
}

/// One question.
#[derive(Debug)]
pub(super) struct Call<'a> {
    route: &'static Route,
    detail: String,
    body: Body<'a>,
    /// For all tries together.
    deadline: Duration,
    tries: u32,
    /// Bytes of the answer.
    limit: u64,
    /// Where the answer is written; it is kept in memory otherwise.
    into: Option<&'a Path>,
}

impl<'a> Call<'a> {
    pub(super) fn body(mut self, body: Body<'a>) -> Self {
        self.body = body;
        self
    }

    pub(super) fn json(self, json: Value) -> Self {
        self.body(Body::Json(json))
    }

    /// What it is about, for errors.
    pub(super) fn detail(mut self, detail: &str) -> Self {
        self.detail = on_one_line(detail, MAX_DETAIL);
        self
    }

    pub(super) fn within(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// At most so often, where it is tried again at all.
    pub(super) fn tries(mut self, tries: u32) -> Self {
        self.tries = self.tries.min(tries);
        self
    }

    pub(super) fn limit(mut self, bytes: u64) -> Self {
        self.limit = bytes;
        self
    }

    pub(super) fn into_file(mut self, path: &'a Path) -> Self {
        self.into = Some(path);
        self
    }

    pub(super) fn asked(&self) -> Asked {
        Asked {
            route: self.route.path,
            detail: self.detail.clone(),
        }
    }

    /// The connection's fault.
    fn broken(&self, error: &reqwest::Error) -> GuestError {
        let (asked, reason) = (self.asked(), http::with_causes(error));
        if error.is_connect() {
            GuestError::Unreachable { asked, reason }
        } else {
            GuestError::Broken { asked, reason }
        }
    }

    fn malformed(&self, reason: impl Into<String>, bytes: &[u8]) -> GuestError {
        GuestError::Malformed {
            asked: self.asked(),
            reason: reason.into(),
            told: gist(bytes),
        }
    }
}

impl Guest {
    /// A question with what the options say of it.
    pub(super) fn call<'a>(&self, route: &'static Route) -> Call<'a> {
        Call {
            route,
            detail: String::new(),
            body: Body::Nothing,
            deadline: self.options.deadline,
            tries: match route.repeat {
                Repeat::Harmless => self.options.tries,
                Repeat::Never => 1,
            },
            limit: self.options.max_answer_bytes,
            into: None,
        }
    }

    /// Asks for the answer's bytes; none where they go into a file.
    pub(super) async fn ask(&self, call: &Call<'_>) -> Result<Vec<u8>, GuestError> {
        let end = Instant::now() + call.deadline;
        let mut wait = self.options.backoff;
        let mut number = 1;
        loop {
            let failure = match timeout_at(end, self.attempt(call)).await {
                Ok(Ok(bytes)) => return Ok(bytes),
                Ok(Err(failure)) => failure,
                Err(_) => GuestError::Timeout {
                    asked: call.asked(),
                    after: call.deadline,
                },
            };
            let is_last = number >= call.tries || !failure.is_passing();
            if is_last || Instant::now() + wait >= end {
                return Err(failure);
            }
            tracing::debug!(guest = self.address, number, "asking again: {failure}");
            sleep(wait).await;
            wait *= 2;
            number += 1;
        }
    }

    /// Asks for a sentence.
    pub(super) async fn ask_text(&self, call: &Call<'_>) -> Result<String, GuestError> {
        let bytes = self.ask(call).await?;
        String::from_utf8(bytes).map_err(|error| call.malformed("not UTF-8", error.as_bytes()))
    }

    /// Asks for JSON of a certain form.
    pub(super) async fn ask_json<T: DeserializeOwned>(
        &self,
        call: &Call<'_>,
    ) -> Result<T, GuestError> {
        let bytes = self.ask(call).await?;
        let json: Value = serde_json::from_slice(&bytes)
            .map_err(|error| call.malformed(error.to_string(), &bytes))?;
        if is_failure(&json) {
            return Err(GuestError::Reported {
                asked: call.asked(),
                status: 200,
                told: gist(&bytes),
            });
        }
        serde_json::from_value(json).map_err(|error| call.malformed(error.to_string(), &bytes))
    }

    async fn attempt(&self, call: &Call<'_>) -> Result<Vec<u8>, GuestError> {
        let request = self.request(call).await?;
        if call.route.path == SCREENSHOT.path {
            self.count_screenshot();
        }
        let response = request.send().await.map_err(|error| call.broken(&error))?;
        let asked = call.asked();
        let (status, mime) = (response.status(), mime(&response));
        if !status.is_success() {
            let (status, told) = (status.as_u16(), told(response).await);
            return Err(if Content::Json.accepts(&mime) {
                GuestError::Reported {
                    asked,
                    status,
                    told,
                }
            } else {
                GuestError::Status {
                    asked,
                    status,
                    told,
                }
            });
        }
        if !call.route.answers.accepts(&mime) {
            return Err(GuestError::ContentType {
                asked,
                expected: call.route.answers.name(),
                came: mime,
                told: told(response).await,
            });
        }
        receive(call, response).await
    }

    async fn request(&self, call: &Call<'_>) -> Result<RequestBuilder, GuestError> {
        // A socket is told by its path; the host is for the server to read.
        let host = match self.socket {
            Some(_) => "localhost",
            None => &self.address,
        };
        let url = format!("http://{host}{}", call.route.path);
        let request = self.client.request(call.route.method.clone(), url);
        Ok(match &call.body {
            Body::Nothing => request,
            Body::Json(json) => request.json(json),
            Body::Field(name, value) => request.form(&[(name, value)]),
            Body::Upload { from, to } => {
                let error = file_error("read", from);
                let file = File::open(from).await.map_err(&error)?;
                let bytes = file.metadata().await.map_err(&error)?.len();
                // Without a file name Flask takes it for a field; without a length it is sent in
                // chunks, which Flask's own server does not read.
                let part = Part::stream_with_length(file, bytes).file_name("upload");
                let form = Form::new().text("file_path", (*to).to_owned());
                request.multipart(form.part("file_data", part))
            }
        })
    }
}

/// Takes an answer that is of the right kind, to its end.
async fn receive(call: &Call<'_>, mut response: Response) -> Result<Vec<u8>, GuestError> {
    // The client's own length is unknown where an answer has no content to read.
    let header = response.headers().get(CONTENT_LENGTH);
    let of: Option<u64> = header.and_then(|value| value.to_str().ok()?.parse().ok());
    if of.is_none() && !http::has_own_end(&response) {
        return Err(call.malformed("it does not say how long it is", &[]));
    }
    let limit = call.limit;
    let too_large = || GuestError::TooLarge {
        asked: call.asked(),
        limit,
    };
    if of.is_some_and(|of| of > limit) {
        return Err(too_large());
    }
    let mut sink = Sink::open(call.into).await?;
    let mut came = 0;
    loop {
        let chunk = match response.chunk().await {
            Ok(Some(chunk)) => chunk,
            Ok(None) => return sink.finish().await,
            Err(error) => {
                let asked = call.asked();
                return Err(match of {
                    Some(of) => GuestError::HalfSent { asked, came, of },
                    None => call.broken(&error),
                });
            }
        };
        came += chunk.len() as u64;
        if came > limit {
            return Err(too_large());
        }
        sink.write(&chunk).await?;
    }
}

/// Where an answer goes. A file that is not finished, for an error or a deadline, is removed.
enum Sink<'a> {
    Memory(Vec<u8>),
    File {
        file: File,
        path: &'a Path,
        is_whole: bool,
    },
}

impl<'a> Sink<'a> {
    async fn open(path: Option<&'a Path>) -> Result<Self, GuestError> {
        let Some(path) = path else {
            return Ok(Self::Memory(Vec::new()));
        };
        let file = File::create(path)
            .await
            .map_err(file_error("write", path))?;
        Ok(Self::File {
            file,
            path,
            is_whole: false,
        })
    }

    async fn write(&mut self, chunk: &[u8]) -> Result<(), GuestError> {
        match self {
            Self::Memory(bytes) => bytes.extend_from_slice(chunk),
            Self::File { file, path, .. } => {
                let written = file.write_all(chunk).await;
                written.map_err(file_error("write", path))?;
            }
        }
        Ok(())
    }

    /// The bytes; none where they are in a file.
    async fn finish(mut self) -> Result<Vec<u8>, GuestError> {
        match &mut self {
            Self::Memory(bytes) => Ok(std::mem::take(bytes)),
            Self::File {
                file,
                path,
                is_whole,
            } => {
                file.flush().await.map_err(file_error("write", path))?;
                *is_whole = true;
                Ok(Vec::new())
            }
        }
    }
}

impl Drop for Sink<'_> {
    fn drop(&mut self) {
        // Not a device or a pipe.
        if let Self::File {
            path,
            is_whole: false,
            ..
        } = self
            && path.is_file()
        {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// What an answer says that is not taken.
async fn told(mut response: Response) -> String {
    let mut bytes = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        bytes.extend_from_slice(&chunk);
        if bytes.len() as u64 >= MAX_TOLD_BYTES {
            break;
        }
    }
    gist(&bytes)
}

/// The kind of an answer, without its parameters.
fn mime(response: &Response) -> String {
    let header = response.headers().get(CONTENT_TYPE);
    let text = header.and_then(|value| value.to_str().ok());
    let mime = text.and_then(|text| text.split(';').next());
    mime.map_or_else(
        || "content of no named type".to_owned(),
        |mime| mime.trim().to_ascii_lowercase(),
    )
}

/// Whether JSON tells of a failure. Where there is a return code, that is what counts, and `error`
/// is what the program wrote.
fn is_failure(json: &Value) -> bool {
    let has = |key: &str| json.get(key).is_some();
    if has("returncode") || has("return_code") {
        return false;
    }
    json.get("status").is_some_and(|status| status != "success") || has("error")
}

pub(super) fn file_error(
    what: &'static str,
    path: &Path,
) -> impl Fn(std::io::Error) -> GuestError + use<> {
    let path = path.to_owned();
    move |source| GuestError::File {
        what,
        path: path.clone(),
        source,
    }
}
