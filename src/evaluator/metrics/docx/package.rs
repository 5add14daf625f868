//! Word documents as packages, and packages as archives.

use std::collections::{BTreeMap, BTreeSet};

use roxmltree::Document;

use super::super::package::{Archive, ContentTypes, OFFICE, Relation, bare};
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
    /// Texts of the parts it parses, by name.
    parts: BTreeMap<String, String>,
    /// The name of the main one.
    main: String,
    /// What the main part refers to.
    relations: Vec<Relation>,
}

impl Package {
    /// Opens a document with all that it refers to; none if any of it is broken.
    pub(super) fn open(bytes: &[u8]) -> Option<Self> {
        let mut archive = Archive::open(bytes)?;
        let types = ContentTypes::read(&archive.read_text("[Content_Types].xml")?)?;
        let roots = archive.relations("")?;
        let mut parts = BTreeMap::new();
        let mut seen = BTreeSet::new();
        let mut open: Vec<String> = inner_targets(&roots);
        while let Some(name) = open.pop() {
            if !seen.insert(name.clone()) {
                continue;
            }
            let content = archive.read(&name)?;
            let kind = types.of(&name)?;
            let kind = kind
                .strip_prefix(WORD)
                .and_then(|kind| kind.strip_prefix('.'));
            let kind = kind.and_then(|kind| kind.strip_suffix("+xml"));
            if kind.is_some_and(|kind| PARSED.contains(&kind)) {
                let text = String::from_utf8(content).ok()?;
                Document::parse(bare(&text)).ok()?;
                parts.insert(name.clone(), text);
            }
            open.extend(inner_targets(&archive.relations(&name)?));
        }
        let mut mains = roots
            .into_iter()
            .filter(|root| root.kind == format!("{OFFICE}/officeDocument"));
        let (main, None) = (mains.next()?.target, mains.next()) else {
            return None;
        };
        let is_document = types.of(&main)? == format!("{WORD}.document.main+xml");
        let relations = archive.relations(&main)?;
        is_document.then_some(Self {
            parts,
            main,
            relations,
        })
    }

    /// The main part.
    pub(super) fn document(&self) -> Result<Document<'_>, MetricError> {
        self.part(&self.main)
    }

    /// The part that the main one refers to by an id.
    pub(super) fn related(&self, id: &str) -> Result<Document<'_>, MetricError> {
        let found = self.relations.iter().find(|relation| relation.id == id);
        let found = found.ok_or_else(|| raised(format!("nothing is related as {id:?}")))?;
        self.part(&found.target)
    }

    fn part(&self, name: &str) -> Result<Document<'_>, MetricError> {
        let text = self
            .parts
            .get(name)
            .ok_or_else(|| raised(format!("no part {name:?}")))?;
        Document::parse(bare(text)).map_err(|error| raised(format!("{name}: {error}")))
    }
}

fn inner_targets(relations: &[Relation]) -> Vec<String> {
    let inner = relations.iter().filter(|relation| !relation.is_outside);
    inner.map(|relation| relation.target.clone()).collect()
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
