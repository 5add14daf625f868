//! What getters bring: values and files.
//!
//! How they bring it is not here: the metrics see no difference between a file that came over a
//! guest's wire and one out of a test's folder.

use serde_json::Value;

/// What a getter found.
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    /// A text, a number, a list; null where there was nothing, a missing file too.
    Value(Value),
    /// A file.
    File(FoundFile),
    /// Several, where one getter brings several.
    Many(Vec<Found>),
}

/// A file with what is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundFile {
    /// Its name; some metrics tell kinds of files apart by it.
    pub name: String,
    /// All of it.
    pub bytes: Vec<u8>,
}

impl Found {
    /// Nothing was there.
    pub const NOTHING: Found = Found::Value(Value::Null);
}
