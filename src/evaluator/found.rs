//! What getters bring: values and files.
//!
//! How they bring it is not here: the metrics see no difference between a file that came over a
//! guest's wire and one out of a test's folder.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a getter found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Found {
    /// A text, a number, a list; null where there was nothing, a missing file too.
    Value(Value),
    /// A file.
    File(FoundFile),
    /// Several, where one getter brings several.
    Many(Vec<Found>),
}

/// A file with what is in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FoundFile {
    /// Its name; some metrics tell kinds of files apart by it.
    pub name: String,
    /// All of it; base64 where it is written down.
    #[serde(with = "in_base64")]
    pub bytes: Vec<u8>,
    /// Files that the getter brought into the same folder without giving them to the metric. Some
    /// metrics look there for a name that goes with the file's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<FoundFile>,
}

impl Found {
    /// Nothing was there.
    pub const NOTHING: Found = Found::Value(Value::Null);
}

impl FoundFile {
    /// A file that came alone.
    pub fn new(name: impl Into<String>, bytes: Vec<u8>) -> Self {
        Self {
            name: name.into(),
            bytes,
            beside: Vec::new(),
        }
    }
}

/// Bytes in JSON.
mod in_base64 {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(from)?;
        STANDARD.decode(text).map_err(D::Error::custom)
    }
}
