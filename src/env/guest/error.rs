//! What can go wrong between us and a guest's server: a class for each cause, with what was asked
//! and the line that tells most of what came back.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use super::routes::SCREENSHOT;
use crate::screen::ScreenError;
use crate::types::{ErrorClass, ScreenSize};

/// Characters of an answer that an error repeats.
const MAX_TOLD: usize = 200;

/// What was asked of a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The path of the route.
    pub route: &'static str,
    /// Which file, window or command; may be empty.
    pub detail: String,
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.route)?;
        if self.detail.is_empty() {
            return Ok(());
        }
        write!(f, " ({})", self.detail)
    }
}

/// Why a guest did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum GuestError {
    /// No connection came about; nothing was asked.
    #[error("cannot reach the guest for {asked}: {reason}")]
    Unreachable {
        /// What would have been asked.
        asked: Asked,
        /// The connection's words.
        reason: String,
    },
    /// The connection broke before an answer; the request may have been carried out.
    #[error("the guest hung up during {asked}: {reason}")]
    Broken {
        /// What was asked.
        asked: Asked,
        /// The connection's words.
        reason: String,
    },
    /// The connection broke within the answer.
    #[error("the guest's answer to {asked} ended after {came} of {of} bytes")]
    HalfSent {
        /// What was asked.
        asked: Asked,
        /// Bytes that came.
        came: u64,
        /// Bytes that were announced.
        of: u64,
    },
    /// No answer in time; the request may be carried out yet.
    #[error("the guest did not answer {asked} within {} s", .after.as_secs_f64())]
    Timeout {
        /// What was asked.
        asked: Asked,
        /// How long was waited.
        after: Duration,
    },
    /// A status that is no success, and nothing in particular about it: mostly a page about an
    /// exception that the server did not expect.
    #[error("the guest answered {asked} with {status}: {told}")]
    Status {
        /// What was asked.
        asked: Asked,
        /// The HTTP status.
        status: u16,
        /// What the answer says.
        told: String,
    },
    /// Success, but of another kind than the route gives.
    #[error("the guest answered {asked} with {came} instead of {expected}: {told}")]
    ContentType {
        /// What was asked.
        asked: Asked,
        /// What the route gives.
        expected: &'static str,
        /// What came.
        came: String,
        /// What the answer says.
        told: String,
    },
    /// Success, but no answer to what was asked.
    #[error("the guest's answer to {asked} cannot be read: {reason}: {told}")]
    Malformed {
        /// What was asked.
        asked: Asked,
        /// What is wrong with it.
        reason: String,
        /// What the answer says.
        told: String,
    },
    /// The server tells of a failure in JSON, some with a status of success.
    #[error("the guest says that {asked} failed ({status}): {told}")]
    Reported {
        /// What was asked.
        asked: Asked,
        /// The HTTP status.
        status: u16,
        /// What the answer says.
        told: String,
    },
    /// A program ran and says that it failed.
    #[error("{asked} ended with return code {code}: {told}")]
    ReturnCode {
        /// What was asked.
        asked: Asked,
        /// Its return code; negative is a signal.
        code: i32,
        /// What it wrote.
        told: String,
    },
    /// The picture cannot be read.
    #[error("the guest's screenshot cannot be used")]
    Screenshot(#[source] ScreenError),
    /// The screen is not what the run is configured for.
    #[error(
        "the guest's screen has {}x{} pixels instead of {}x{}; set its resolution or the profile's",
        .came.width, .came.height, .expected.width, .expected.height
    )]
    ScreenSize {
        /// What is configured.
        expected: ScreenSize,
        /// What came.
        came: ScreenSize,
    },
    /// The answer is longer than anybody wants.
    #[error("the guest's answer to {asked} exceeds {limit} bytes")]
    TooLarge {
        /// What was asked.
        asked: Asked,
        /// The most that is taken.
        limit: u64,
    },
    /// A file of this machine.
    #[error("cannot {what} {}", .path.display())]
    File {
        /// What was tried.
        what: &'static str,
        /// Which file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// The HTTP client cannot be made, or an address is none.
    #[error("cannot set up HTTP to the guest at {address}: {reason}")]
    Client {
        /// Where the guest is.
        address: String,
        /// Why not.
        reason: String,
    },
}

impl GuestError {
    /// The class shown to the operator. There is none for a guest that answers and fails: what
    /// ran on it is over, as after a crash.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Timeout { .. } => ErrorClass::Timeout,
            // Its own limits: 120 s a command, 30 s a Python program.
            Self::Reported { told, .. }
                if told.contains("timed out") || told.contains("timeout") =>
            {
                ErrorClass::Timeout
            }
            Self::Screenshot(_) | Self::ScreenSize { .. } => ErrorClass::Screenshot,
            Self::Status { asked, .. }
            | Self::ContentType { asked, .. }
            | Self::Malformed { asked, .. }
            | Self::TooLarge { asked, .. }
                if asked.route == SCREENSHOT.path =>
            {
                ErrorClass::Screenshot
            }
            Self::Unreachable { .. }
            | Self::Broken { .. }
            | Self::HalfSent { .. }
            | Self::Status { .. }
            | Self::ContentType { .. }
            | Self::Malformed { .. }
            | Self::Reported { .. }
            | Self::ReturnCode { .. }
            | Self::TooLarge { .. } => ErrorClass::Crash,
            Self::File { .. } | Self::Client { .. } => ErrorClass::Reset,
        }
    }

    /// Whether nobody can say if the request was carried out. Such a guest is looked at again, or
    /// given up, never asked the same once more.
    pub fn is_outcome_unknown(&self) -> bool {
        match self {
            Self::Broken { .. } | Self::HalfSent { .. } | Self::Timeout { .. } => true,
            Self::Unreachable { .. }
            | Self::Status { .. }
            | Self::ContentType { .. }
            | Self::Malformed { .. }
            | Self::Reported { .. }
            | Self::ReturnCode { .. }
            | Self::Screenshot(_)
            | Self::ScreenSize { .. }
            | Self::TooLarge { .. }
            | Self::File { .. }
            | Self::Client { .. } => false,
        }
    }

    /// Whether another try may do better, where asking twice does no harm. After a time-out the
    /// guest may still be at work on the first, and what it tells of it has made up its mind about.
    pub(super) fn is_passing(&self) -> bool {
        match self {
            Self::Unreachable { .. }
            | Self::Broken { .. }
            | Self::HalfSent { .. }
            | Self::Screenshot(_) => true,
            Self::Status { status, .. } => *status >= 500,
            Self::Timeout { .. }
            | Self::ContentType { .. }
            | Self::Malformed { .. }
            | Self::Reported { .. }
            | Self::ReturnCode { .. }
            | Self::ScreenSize { .. }
            | Self::TooLarge { .. }
            | Self::File { .. }
            | Self::Client { .. } => false,
        }
    }
}

/// The line that tells most of an answer: the message of JSON, the title of a page, the end of a
/// Python traceback, else the first line.
pub(super) fn gist(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let json = serde_json::from_slice::<Value>(bytes).ok();
    let message = json.as_ref().map(message);
    let line = message.as_deref().or_else(|| title(&text)).unwrap_or(&text);
    let mut lines = line.lines().map(str::trim).filter(|line| !line.is_empty());
    let line = match lines.next() {
        Some(first) if first.starts_with("Traceback (") => lines.next_back().unwrap_or(first),
        Some(first) => first,
        None => "(nothing)",
    };
    on_one_line(line, MAX_TOLD)
}

/// The beginning of a text, so many characters, fit for one line of an error.
pub(super) fn on_one_line(text: &str, max_chars: usize) -> String {
    let plain = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    plain.take(max_chars).collect()
}

/// What a JSON answer says of a failure; all of it where it has no message.
fn message(json: &Value) -> String {
    let texts = ["message", "error", "output"].map(|key| json.get(key)?.as_str());
    let text = texts.into_iter().flatten().find(|text| !text.is_empty());
    text.map_or_else(|| json.to_string(), str::to_owned)
}

/// The title of an HTML page.
fn title(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("<title>")?;
    let (title, _) = rest.split_once("</title>")?;
    Some(title)
}

#[cfg(test)]
mod tests {
    use super::gist;

    #[test]
    fn an_answer_is_told_by_its_best_line() {
        let page = "<!doctype html>\n<html>\n<title>KeyError: 'x'\n // Werkzeug Debugger</title>";
        let traceback = "Traceback (most recent call last):\n  File \"x\"\nValueError: no\n";
        let long = "x".repeat(500);
        let table = [
            ("", "(nothing)"),
            (" \n\n first\nsecond", "first"),
            (page, "KeyError: 'x'"),
            (traceback, "ValueError: no"),
            (
                "Traceback (most recent call last):",
                "Traceback (most recent call last):",
            ),
            (r#"{"status": "error", "message": "a\nb"}"#, "a"),
            (r#"{"error": "File not found"}"#, "File not found"),
            (r#"{"status": "error", "output": "o", "error": ""}"#, "o"),
            ("{\n  \"status\": \"failed\"\n}", r#"{"status":"failed"}"#),
            ("a\u{1b}[31mb", "a [31mb"),
            (&long, &long[..200]),
        ];
        for (text, expected) in table {
            assert_eq!(gist(text.as_bytes()), expected, "{text}");
        }
        assert_eq!(gist(&[0xff, b'x']), "\u{fffd}x");
    }
}
