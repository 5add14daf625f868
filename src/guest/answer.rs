//! Answers: what came of a request, in the shapes that OSWorld's clients read.

use axum::Json;
use axum::body::Bytes;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::display::DisplayError;

/// Why a request was not carried out.
#[derive(Debug)]
pub(super) struct Fault {
    status: StatusCode,
    body: FaultBody,
}

#[derive(Debug)]
enum FaultBody {
    Message(String),
    Json(Value),
}

impl Fault {
    /// The request cannot be understood, or asks for what cannot be.
    pub(super) fn bad(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    /// There is no such thing.
    pub(super) fn missing(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, message)
    }

    /// It failed.
    pub(super) fn failed(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, message)
    }

    pub(super) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self {
            status,
            body: FaultBody::Message(message.into()),
        }
    }

    /// A failure whose shape is its route's own.
    pub(super) fn json(status: StatusCode, body: Value) -> Self {
        Self {
            status,
            body: FaultBody::Json(body),
        }
    }
}

impl IntoResponse for Fault {
    fn into_response(self) -> Response {
        // `message` is what routes for commands say it in, `error` what those for files do.
        let body = match self.body {
            FaultBody::Message(text) => json!({"status": "error", "message": text, "error": text}),
            FaultBody::Json(body) => body,
        };
        (self.status, Json(body)).into_response()
    }
}

impl From<DisplayError> for Fault {
    fn from(error: DisplayError) -> Self {
        match error {
            DisplayError::NoKey { .. } => Self::bad(error.to_string()),
            DisplayError::Lost { .. }
            | DisplayError::Silent { .. }
            | DisplayError::Refused { .. }
            | DisplayError::Pixels { .. }
            | DisplayError::Picture(_) => Self::failed(error.to_string()),
        }
    }
}

/// A JSON payload, whatever type the client says it has.
pub(super) fn read_json<T: DeserializeOwned>(body: &Bytes) -> Result<T, Fault> {
    serde_json::from_slice(body).map_err(|error| Fault::bad(format!("the payload: {error}")))
}

/// Whether Python takes it for true: task files have `"true"` where `true` is meant.
pub(super) fn is_true(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(value) => *value,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::Object(map) => !map.is_empty(),
    }
}
