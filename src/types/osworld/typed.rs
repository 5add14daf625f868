//! Reading a named thing and its parameters into an enum, with the key of what is wrong in it.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::TaskFault;

/// Reads `{"type": kind, "parameters": parameters}`. `key` is where the thing stands in its file,
/// `within` what stands between it and its parameters there.
pub(super) fn read<T: DeserializeOwned>(
    kind: &str,
    parameters: Value,
    key: &str,
    within: &str,
) -> Result<T, TaskFault> {
    // The kind comes first: serde then reads the parameters as they come and knows their path.
    let mut tagged = Map::new();
    tagged.insert("type".to_owned(), kind.into());
    tagged.insert("parameters".to_owned(), parameters);
    serde_path_to_error::deserialize(Value::Object(tagged)).map_err(|error| {
        let mut fault = fault(&error);
        let path = fault.key.strip_prefix("parameters").unwrap_or_default();
        fault.key = format!("{key}{within}{path}");
        fault
    })
}

/// What serde found wrong, at its key; a missing or an unknown field is the key itself.
pub(super) fn fault<E: std::fmt::Display>(error: &serde_path_to_error::Error<E>) -> TaskFault {
    let reason = error.inner().to_string();
    let mut key = error.path().to_string();
    if key == "." {
        key.clear();
    }
    let field = ["missing field `", "unknown field `"]
        .iter()
        .find_map(|start| reason.strip_prefix(start)?.split('`').next());
    if let Some(field) = field
        && key.rsplit('.').next() != Some(field)
    {
        let dot = if key.is_empty() { "" } else { "." };
        key = format!("{key}{dot}{field}");
    }
    TaskFault::new(key, reason)
}
