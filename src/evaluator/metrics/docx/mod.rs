//! Metrics over Word documents.
//!
//! What a document holds is what python-docx shows of it: paragraphs and tables that stand in the
//! body itself, and formatting that stands at a run or paragraph itself, not what styles give it.
//! Departs: documents in UTF-16 or with a document type declaration cannot be opened here.

mod content;
mod format;
mod package;
mod paragraph;
mod tables;

use super::{Call, MetricError};
use package::Package;

pub(super) use content::*;
pub(super) use format::*;
pub(super) use package::compare_zip_files;
pub(super) use tables::*;

/// Both documents, none where one is missing or cannot be opened.
fn both(call: &Call<'_>) -> Result<Option<(Package, Package)>, MetricError> {
    let (Some(found), Some(expected)) = (call.file()?, call.expected_file()?) else {
        return Ok(None);
    };
    Ok(Package::open(&found.bytes).zip(Package::open(&expected.bytes)))
}

/// The desktop's document, none where it is missing or cannot be opened.
fn one(call: &Call<'_>) -> Result<Option<Package>, MetricError> {
    Ok(call.file()?.and_then(|file| Package::open(&file.bytes)))
}

/// The same, none also where it says something else than the expected one.
fn one_of_the_same_words(call: &Call<'_>) -> Result<Option<Package>, MetricError> {
    if content::say_the_same(call)? {
        one(call)
    } else {
        Ok(None)
    }
}
