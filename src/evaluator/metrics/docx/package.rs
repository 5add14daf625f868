//! Office documents as packages: parts in a zip archive, and how they relate.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Cursor, Read as _};

use roxmltree::Document;
use zip::ZipArchive;

use super::super::python::raised;
use super::super::{Call, MetricError, score};

/// Largest part that is unpacked, bytes: an archive can claim anything.
const MAX_PART: u64 = 256 * 1024 * 1024;

const OFFICE: &str = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
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

struct Relation {
    id: String,
    kind: String,
    /// Name of a part, or an address where it is outside.
    target: String,
    is_outside: bool,
}

impl Package {
    /// Opens a document with all that it refers to; none if any of it is broken.
    pub(super) fn open(bytes: &[u8]) -> Option<Self> {
        let mut archive = ZipArchive::new(Cursor::new(bytes)).ok()?;
        let types = ContentTypes::read(&read_text(&mut archive, "[Content_Types].xml")?)?;
        let roots = relations(&mut archive, "")?;
        let mut parts = BTreeMap::new();
        let mut seen = BTreeSet::new();
        let mut open: Vec<String> = inner_targets(&roots);
        while let Some(name) = open.pop() {
            if !seen.insert(name.clone()) {
                continue;
            }
            let content = read(&mut archive, &name)?;
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
            open.extend(inner_targets(&relations(&mut archive, &name)?));
        }
        let mut mains = roots
            .into_iter()
            .filter(|root| root.kind == format!("{OFFICE}/officeDocument"));
        let (main, None) = (mains.next()?.target, mains.next()) else {
            return None;
        };
        let is_document = types.of(&main)? == format!("{WORD}.document.main+xml");
        let relations = relations(&mut archive, &main)?;
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

/// Without a byte order mark.
fn bare(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

fn inner_targets(relations: &[Relation]) -> Vec<String> {
    let inner = relations.iter().filter(|relation| !relation.is_outside);
    inner.map(|relation| relation.target.clone()).collect()
}

fn read(archive: &mut ZipArchive<Cursor<&[u8]>>, name: &str) -> Option<Vec<u8>> {
    let file = archive.by_name(name).ok()?;
    let mut content = Vec::new();
    // The checksum is that of all of it: a part cut short by the limit fails as a broken one.
    file.take(MAX_PART).read_to_end(&mut content).ok()?;
    ((content.len() as u64) < MAX_PART).then_some(content)
}

fn read_text(archive: &mut ZipArchive<Cursor<&[u8]>>, name: &str) -> Option<String> {
    String::from_utf8(read(archive, name)?).ok()
}

/// What a part refers to (the package itself has no name); none if that is broken.
fn relations(archive: &mut ZipArchive<Cursor<&[u8]>>, part: &str) -> Option<Vec<Relation>> {
    let (folder, file) = part.rsplit_once('/').unwrap_or(("", part));
    let slash = if folder.is_empty() { "" } else { "/" };
    let name = format!("{folder}{slash}_rels/{file}.rels");
    if archive.index_for_name(&name).is_none() {
        return Some(Vec::new());
    }
    let text = read_text(archive, &name)?;
    let tree = Document::parse(bare(&text)).ok()?;
    let elements = tree
        .root_element()
        .children()
        .filter(roxmltree::Node::is_element);
    elements
        .map(|element| {
            let is_outside = element.attribute("TargetMode") == Some("External");
            let target = element.attribute("Target")?;
            Some(Relation {
                id: element.attribute("Id")?.to_owned(),
                kind: element.attribute("Type")?.to_owned(),
                target: if is_outside {
                    target.to_owned()
                } else {
                    resolve(folder, target)
                },
                is_outside,
            })
        })
        .collect()
}

/// A part's name from where it is referred to.
fn resolve(folder: &str, target: &str) -> String {
    let from_root = target.starts_with('/');
    let mut names: Vec<&str> = if from_root {
        Vec::new()
    } else {
        folder.split('/').collect()
    };
    for name in target.split('/') {
        match name {
            "" | "." => {}
            ".." => {
                names.pop();
            }
            name => names.push(name),
        }
    }
    names.retain(|name| !name.is_empty());
    names.join("/")
}

/// What each part is, by its name or its extension.
struct ContentTypes {
    parts: BTreeMap<String, String>,
    extensions: BTreeMap<String, String>,
}

impl ContentTypes {
    fn read(text: &str) -> Option<Self> {
        let tree = Document::parse(bare(text)).ok()?;
        let mut types = Self {
            parts: BTreeMap::new(),
            extensions: BTreeMap::new(),
        };
        for element in tree
            .root_element()
            .children()
            .filter(roxmltree::Node::is_element)
        {
            let kind = element.attribute("ContentType")?.to_owned();
            if let Some(name) = element.attribute("PartName") {
                let name = name.trim_start_matches('/').to_lowercase();
                types.parts.insert(name, kind);
            } else {
                types
                    .extensions
                    .insert(element.attribute("Extension")?.to_lowercase(), kind);
            }
        }
        Some(types)
    }

    fn of(&self, name: &str) -> Option<&str> {
        let name = name.to_lowercase();
        let of_extension = || {
            let (_, extension) = name.rsplit_once('.')?;
            self.extensions.get(extension)
        };
        self.parts
            .get(&name)
            .or_else(of_extension)
            .map(String::as_str)
    }
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
    let open = |bytes| {
        let archive = ZipArchive::new(Cursor::new(bytes));
        archive.map_err(|error| raised(format!("not an archive: {error}")))
    };
    let (mut found, mut expected) = (
        open(found.bytes.as_slice())?,
        open(expected.bytes.as_slice())?,
    );
    let found_names = names(&found)?;
    if found_names != names(&expected)? {
        return Ok(0.0);
    }
    for name in found_names {
        let broken = || raised(format!("{name}: cannot be unpacked"));
        let content = read(&mut found, &name).ok_or_else(broken)?;
        if content == read(&mut expected, &name).ok_or_else(broken)? {
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

fn names(archive: &ZipArchive<Cursor<&[u8]>>) -> Result<BTreeSet<String>, MetricError> {
    let names = archive.file_names().map(|name| {
        let name = name.map_err(|error| raised(format!("a name in the archive: {error}")))?;
        Ok(name.into_owned())
    });
    names.collect()
}
