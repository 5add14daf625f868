//! A Word document as a package, and archives of any files.

use std::collections::BTreeSet;

use roxmltree::Document;

use super::super::package::{self, Archive, Dangling};
use super::super::python::raised;
use super::super::{Call, MetricError, score};

const WORD: &str = "application/vnd.openxmlformats-officedocument.wordprocessingml";

/// Kinds of parts that python-docx parses as it opens a document.
const PARSED: [&str; 7] = [
    "document.main",
    "styles",
    "numbering",
    "settings",
    "header",
    "footer",
    "comments",
];

/// A Word document that python-docx would open.
pub(super) struct Package {
    inner: package::Package,
    /// The name of the main part.
    main: String,
}

impl Package {
    /// Opens a document with all that it refers to; none if any of it is broken.
    pub(super) fn open(bytes: &[u8]) -> Option<Self> {
        let inner = package::Package::open(bytes, Dangling::Refused)?;
        for part in inner.parts.values() {
            if word_kind(&part.kind).is_some_and(|kind| PARSED.contains(&kind)) {
                part.tree()?;
            }
        }
        let main = inner.main()?.to_owned();
        let is_document = word_kind(&inner.parts.get(&main)?.kind) == Some("document.main");
        is_document.then_some(Self { inner, main })
    }

    /// The main part.
    pub(super) fn document(&self) -> Result<Document<'_>, MetricError> {
        self.part(&self.main)
    }

    /// The part that the main one refers to by an id.
    pub(super) fn related(&self, id: &str) -> Result<Document<'_>, MetricError> {
        let found = self.relations().iter().find(|relation| relation.id == id);
        let found = found.ok_or_else(|| raised(format!("nothing is related as {id:?}")))?;
        self.part(&found.target)
    }

    /// The pictures that the main part refers to, as they lie there.
    pub(super) fn pictures(&self) -> Result<Vec<&[u8]>, MetricError> {
        let pictures = self
            .relations()
            .iter()
            .filter(|relation| relation.kind.contains("image"));
        let content = pictures.map(|relation| {
            let part = self.inner.parts.get(&relation.target);
            let part = part.filter(|_| !relation.is_outside);
            let part = part.ok_or_else(|| raised(format!("no part {:?}", relation.target)))?;
            Ok(part.content.as_slice())
        });
        content.collect()
    }

    fn relations(&self) -> &[package::Relation] {
        let main = self.inner.parts.get(&self.main);
        main.map_or(&[], |part| part.relations.as_slice())
    }

    fn part(&self, name: &str) -> Result<Document<'_>, MetricError> {
        let part = self.inner.parts.get(name);
        let part =
            part.filter(|part| word_kind(&part.kind).is_some_and(|kind| PARSED.contains(&kind)));
        part.and_then(package::Part::tree)
            .ok_or_else(|| raised(format!("no part {name:?}")))
    }
}

/// What part of a Word document a content type says.
fn word_kind(content_type: &str) -> Option<&str> {
    let kind = content_type.strip_prefix(WORD)?.strip_prefix('.')?;
    kind.strip_suffix("+xml")
}

/// Two archives hold the same files. Departs: PDFs in them have to be the same byte by byte to be
/// alike; where they are not there is no score, as their texts are not read here.
pub(in crate::evaluator::metrics) fn compare_zip_files(
    call: &Call<'_>,
) -> Result<f64, MetricError> {
    let Some(found) = call.file()? else {
        return Ok(0.0);
    };
    let expected = call
        .expected_file()?
        .ok_or_else(|| raised("there is no archive to compare with"))?;
    let open = |bytes| Archive::open(bytes).ok_or_else(|| raised("not an archive"));
    let (mut found, mut expected) = (open(&found.bytes)?, open(&expected.bytes)?);
    let found_names = names(&found)?;
    if found_names != names(&expected)? {
        return Ok(0.0);
    }
    for name in found_names {
        let broken = || raised(format!("{name}: cannot be unpacked"));
        let content = found.read(&name).ok_or_else(broken)?;
        if content == expected.read(&name).ok_or_else(broken)? {
            continue;
        }
        if name.to_lowercase().ends_with(".pdf") {
            return Err(raised(format!(
                "{name}: the texts of PDFs are not compared"
            )));
        }
        return Ok(0.0);
    }
    Ok(score(true))
}

fn names(archive: &Archive<'_>) -> Result<BTreeSet<String>, MetricError> {
    let names = archive.names();
    let names = names.ok_or_else(|| raised("a name in the archive is broken"))?;
    Ok(names.into_iter().collect())
}
