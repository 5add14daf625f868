//! Packages as Office writes documents: parts in a zip archive, and how they relate.

use std::collections::BTreeMap;
use std::io::{Cursor, Read as _};

use roxmltree::Document;
use zip::ZipArchive;

use super::MetricError;
use super::python::{parse_float, raised};

/// Largest part that is unpacked, bytes: an archive can claim anything.
const MAX_PART: u64 = 256 * 1024 * 1024;

/// What kinds of relations begin with.
pub(super) const OFFICE: &str =
    "http://schemas.openxmlformats.org/officeDocument/2006/relationships";

/// A zip archive of parts.
pub(super) struct Archive<'a>(ZipArchive<Cursor<&'a [u8]>>);

/// What a part refers to.
pub(super) struct Relation {
    /// What it is called where it is referred to.
    pub(super) id: String,
    /// Its type, an address.
    pub(super) kind: String,
    /// Name of a part, or an address where it is outside.
    pub(super) target: String,
    /// Whether it is no part of the package.
    pub(super) is_outside: bool,
}

/// A package with all that it refers to.
pub(super) struct Package {
    /// By name, without a leading slash.
    pub(super) parts: BTreeMap<String, Part>,
    /// What the package itself refers to.
    pub(super) relations: Vec<Relation>,
}

/// A part of a package.
pub(super) struct Part {
    /// Its content type.
    pub(super) kind: String,
    /// All of it.
    pub(super) content: Vec<u8>,
    /// What it refers to, in the order written.
    pub(super) relations: Vec<Relation>,
}

/// What becomes of relations to parts that are not there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Dangling {
    /// The package is broken.
    Refused,
    /// They are left out.
    Dropped,
}

impl<'a> Archive<'a> {
    /// None if it is no archive.
    pub(super) fn open(bytes: &'a [u8]) -> Option<Self> {
        ZipArchive::new(Cursor::new(bytes)).ok().map(Self)
    }

    /// Names of all parts; none if one of them is broken.
    pub(super) fn names(&self) -> Option<Vec<String>> {
        let names = self.0.file_names();
        names.map(|name| Some(name.ok()?.into_owned())).collect()
    }

    /// Whether there is such a part.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.index_for_name(name).is_some()
    }

    /// All of a part; none if it is missing or broken.
    pub(super) fn read(&mut self, name: &str) -> Option<Vec<u8>> {
        let file = self.0.by_name(name).ok()?;
        let mut content = Vec::new();
        // The checksum is that of all of it: a part cut short by the limit fails as a broken one.
        file.take(MAX_PART).read_to_end(&mut content).ok()?;
        ((content.len() as u64) < MAX_PART).then_some(content)
    }

    /// The same as text.
    pub(super) fn read_text(&mut self, name: &str) -> Option<String> {
        String::from_utf8(self.read(name)?).ok()
    }

    /// What a part refers to (the package itself has no name); none if that is broken.
    pub(super) fn relations(&mut self, part: &str) -> Option<Vec<Relation>> {
        let (folder, file) = part.rsplit_once('/').unwrap_or(("", part));
        let slash = if folder.is_empty() { "" } else { "/" };
        let name = format!("{folder}{slash}_rels/{file}.rels");
        if !self.has(&name) {
            return Some(Vec::new());
        }
        let text = self.read_text(&name)?;
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
}

impl Package {
    /// Opens a package with all that it refers to; none if any of it is broken.
    pub(super) fn open(bytes: &[u8], dangling: Dangling) -> Option<Self> {
        let mut archive = Archive::open(bytes)?;
        let types = ContentTypes::read(&archive.read_text("[Content_Types].xml")?)?;
        let mut package = Self {
            parts: BTreeMap::new(),
            relations: archive.relations("")?,
        };
        let is_there = |archive: &Archive<'_>, relation: &Relation| {
            relation.is_outside || dangling == Dangling::Refused || archive.has(&relation.target)
        };
        package
            .relations
            .retain(|relation| is_there(&archive, relation));
        let mut open = inner_targets(&package.relations);
        while let Some(name) = open.pop() {
            if package.parts.contains_key(&name) {
                continue;
            }
            let content = archive.read(&name)?;
            let kind = types.of(&name)?.to_owned();
            let mut relations = archive.relations(&name)?;
            relations.retain(|relation| is_there(&archive, relation));
            open.extend(inner_targets(&relations));
            let part = Part {
                kind,
                content,
                relations,
            };
            package.parts.insert(name, part);
        }
        Some(package)
    }

    /// The part that is the document itself; none unless there is exactly one.
    pub(super) fn main(&self) -> Option<&str> {
        let kind = format!("{OFFICE}/officeDocument");
        let mut mains = self.relations.iter().filter(|root| root.kind == kind);
        let main = mains.next()?;
        mains.next().is_none().then_some(main.target.as_str())
    }
}

impl Part {
    /// It as XML; none if it is none.
    pub(super) fn tree(&self) -> Option<Document<'_>> {
        Document::parse(bare(std::str::from_utf8(&self.content).ok()?)).ok()
    }
}

fn inner_targets(relations: &[Relation]) -> Vec<String> {
    let inner = relations.iter().filter(|relation| !relation.is_outside);
    inner.map(|relation| relation.target.clone()).collect()
}

/// Without a byte order mark.
pub(super) fn bare(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
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
pub(super) struct ContentTypes {
    /// Names without the leading slash, in order.
    parts: Vec<(String, String)>,
    extensions: BTreeMap<String, String>,
}

impl ContentTypes {
    /// What `[Content_Types].xml` says; none if it is broken.
    pub(super) fn read(text: &str) -> Option<Self> {
        let tree = Document::parse(bare(text)).ok()?;
        let mut types = Self {
            parts: Vec::new(),
            extensions: BTreeMap::new(),
        };
        for element in tree
            .root_element()
            .children()
            .filter(roxmltree::Node::is_element)
        {
            let kind = element.attribute("ContentType")?.to_owned();
            if let Some(name) = element.attribute("PartName") {
                let name = name.trim_start_matches('/').to_owned();
                types.parts.push((name, kind));
            } else {
                types
                    .extensions
                    .insert(element.attribute("Extension")?.to_lowercase(), kind);
            }
        }
        Some(types)
    }

    /// What a part is.
    pub(super) fn of(&self, name: &str) -> Option<&str> {
        let of_extension = || {
            let (_, extension) = name.rsplit_once('.')?;
            self.extensions.get(&extension.to_lowercase())
        };
        let mut parts = self.parts.iter().rev();
        parts
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, kind)| kind)
            .or_else(of_extension)
            .map(String::as_str)
    }

    /// The first part that is listed by its name as such a kind.
    pub(super) fn first(&self, kind: &str) -> Option<&str> {
        let mut parts = self.parts.iter();
        let found = parts.find(|(_, known)| known == kind);
        found.map(|(name, _)| name.as_str())
    }

    /// Whether some extension stands for such a kind.
    pub(super) fn has_default(&self, kind: &str) -> bool {
        self.extensions.values().any(|known| known == kind)
    }
}

/// A length with its unit, in EMU.
pub(super) fn universal_length(value: &str) -> Result<f64, MetricError> {
    const EMU_PER_UNIT: [(&str, f64); 6] = [
        ("mm", 36_000.0),
        ("cm", 360_000.0),
        ("in", 914_400.0),
        ("pt", 12_700.0),
        ("pc", 152_400.0),
        ("pi", 152_400.0),
    ];
    let found = EMU_PER_UNIT.iter().find_map(|(unit, emu)| {
        let number = parse_float(value.strip_suffix(unit)?)?;
        Some((number * emu).round_ties_even())
    });
    found.ok_or_else(|| raised(format!("length {value:?}")))
}
