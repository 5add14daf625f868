//! A presentation as python-pptx opens it: slides in their order, what they stand on, their notes.

use std::collections::BTreeMap;

use roxmltree::{Document, Node};

use super::super::MetricError;
use super::super::package::{Dangling, OFFICE, Package, Part};
use super::super::python::{parse_int, raised};
use super::shape::{Shape, members};
use super::xml::{A, P, R, child, children, is, required};

const KINDS: &str = "application/vnd.openxmlformats-officedocument.presentationml";

/// Kinds of parts that python-pptx parses as it opens a presentation, beside the main one's.
const PARSED: [&str; 5] = [
    "slide",
    "slideLayout",
    "slideMaster",
    "notesSlide",
    "notesMaster",
];

/// Other parts that it parses.
const PARSED_ELSEWHERE: [&str; 2] = [
    "application/vnd.openxmlformats-package.core-properties+xml",
    "application/vnd.openxmlformats-officedocument.drawingml.chart+xml",
];

/// What main parts are; only the first two can be looked at.
const MAIN: [&str; 4] = [
    "application/vnd.openxmlformats-officedocument.presentationml.presentation.main+xml",
    "application/vnd.ms-powerpoint.presentation.macroEnabled.main+xml",
    "application/vnd.openxmlformats-officedocument.presentationml.template.main+xml",
    "application/vnd.openxmlformats-officedocument.presentationml.slideshow.main+xml",
];

/// Red, green and blue, from 0 to 255.
pub(super) type Rgb = [u8; 3];

/// A presentation.
pub(super) struct Deck<'a> {
    package: &'a Package,
    main: &'a str,
    /// What is parsed of it, by name.
    trees: BTreeMap<&'a str, Document<'a>>,
}

/// A slide of it.
#[derive(Clone, Copy)]
pub(super) struct Slide<'a> {
    deck: &'a Deck<'a>,
    /// The name of its part.
    part: &'a str,
}

/// How an area is filled, as far as metrics tell fills apart.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Fill<'a, 'i> {
    /// With one color; the element that says which.
    Solid(Node<'a, 'i>),
    /// With what lies behind.
    Through,
    /// In another way, or nobody says.
    Other,
}

/// Unpacks a presentation; whether it is one turns out as it is read.
pub(super) fn unpack(bytes: &[u8]) -> Result<Package, MetricError> {
    let package = Package::open(bytes, Dangling::Dropped);
    package.ok_or_else(|| raised("cannot be opened as a presentation"))
}

impl<'a> Deck<'a> {
    /// Parses a presentation.
    pub(super) fn read(package: &'a Package) -> Result<Self, MetricError> {
        let mut trees = BTreeMap::new();
        for (name, part) in &package.parts {
            if is_parsed(part) {
                let broken = || raised(format!("{name}: not XML"));
                trees.insert(name.as_str(), part.tree().ok_or_else(broken)?);
            }
        }
        let none = || raised("the package is no presentation");
        let main = package.main().ok_or_else(none)?;
        let kind = &package.parts.get(main).ok_or_else(none)?.kind;
        if !MAIN[..2].contains(&kind.as_str()) {
            return Err(none());
        }
        Ok(Self {
            package,
            main,
            trees,
        })
    }

    /// Its slides in their order.
    pub(super) fn slides(&'a self) -> Result<Vec<Slide<'a>>, MetricError> {
        let list = child(self.tree(self.main)?.root_element(), P, "sldIdLst");
        let entries = list.into_iter().flat_map(|list| children(list, P, "sldId"));
        let slides = entries.map(|entry| {
            let id = entry.attribute((R, "id"));
            let id = id.ok_or_else(|| raised("a slide of no id"))?;
            let part = self.related(self.main, id)?;
            self.tree(part)?;
            Ok(Slide { deck: self, part })
        });
        slides.collect()
    }

    /// Width and height of its slides in EMU; none where nobody says.
    pub(super) fn size(&self) -> Result<Option<(i64, i64)>, MetricError> {
        let Some(size) = child(self.tree(self.main)?.root_element(), P, "sldSz") else {
            return Ok(None);
        };
        let side = |name: &str| {
            let side = size.attribute(name).and_then(parse_int);
            side.ok_or_else(|| raised(format!("slides of no {name:?}")))
        };
        Ok(Some((side("cx")?, side("cy")?)))
    }

    /// A part that is parsed.
    fn tree(&self, part: &str) -> Result<&Document<'a>, MetricError> {
        let tree = self.trees.get(part);
        tree.ok_or_else(|| raised(format!("{part}: not what it should be")))
    }

    fn part(&self, name: &str) -> Result<&'a Part, MetricError> {
        let part = self.package.parts.get(name);
        part.ok_or_else(|| raised(format!("no part {name:?}")))
    }

    /// The part that another calls by an id.
    fn related(&self, part: &str, id: &str) -> Result<&'a str, MetricError> {
        let mut relations = self.part(part)?.relations.iter();
        let found = relations.find(|relation| relation.id == id && !relation.is_outside);
        let found = found.ok_or_else(|| raised(format!("{part}: nothing is related as {id:?}")))?;
        Ok(found.target.as_str())
    }

    /// The part that another refers to as one of a kind; none where there is none.
    fn related_by(&self, part: &str, kind: &str) -> Result<Option<&'a str>, MetricError> {
        let kind = format!("{OFFICE}/{kind}");
        let mut found = self.part(part)?.relations.iter();
        let mut found = found.by_ref().filter(|relation| relation.kind == kind);
        let Some(first) = found.next() else {
            return Ok(None);
        };
        if found.next().is_some() {
            return Err(raised(format!("{part}: several parts related as {kind}")));
        }
        Ok(Some(first.target.as_str()))
    }

    /// The same where there has to be one.
    fn related_by_kind(&self, part: &str, kind: &str) -> Result<&'a str, MetricError> {
        let found = self.related_by(part, kind)?;
        found.ok_or_else(|| raised(format!("{part}: no {kind}")))
    }
}

impl<'a> Slide<'a> {
    /// The slide as XML.
    pub(super) fn root(&self) -> Result<Node<'a, 'a>, MetricError> {
        Ok(self.deck.tree(self.part)?.root_element())
    }

    /// What stands on it, from the back to the front.
    pub(super) fn shapes(&self) -> Result<Vec<Shape<'a>>, MetricError> {
        let tree = self.shape_tree(self.part)?;
        members(tree).map(|node| Shape::on(*self, node)).collect()
    }

    /// The elements of its layout.
    pub(super) fn layout_members(&self) -> Result<Vec<Node<'a, 'a>>, MetricError> {
        Ok(members(self.shape_tree(self.layout()?)?).collect())
    }

    /// The elements of the master of its layout.
    pub(super) fn master_members(&self) -> Result<Vec<Node<'a, 'a>>, MetricError> {
        Ok(members(self.shape_tree(self.master()?)?).collect())
    }

    /// The bytes of a picture that the slide calls by an id.
    pub(super) fn picture(&self, id: &str) -> Result<&'a [u8], MetricError> {
        let part = self.deck.part(self.deck.related(self.part, id)?)?;
        if !part.kind.starts_with("image/") {
            return Err(raised(format!("{:?} is no picture", part.kind)));
        }
        Ok(&part.content)
    }

    /// How it is filled itself.
    pub(super) fn fill(&self) -> Result<Fill<'a, 'a>, MetricError> {
        background(self.root()?)
    }

    /// How its master is filled.
    pub(super) fn master_fill(&self) -> Result<Fill<'a, 'a>, MetricError> {
        background(self.deck.tree(self.master()?)?.root_element())
    }

    /// What its notes say. A slide without any gets a page of notes as its notes' master has it.
    pub(super) fn notes(&self) -> Result<String, MetricError> {
        let none = || raised(format!("{}: no place for notes", self.part));
        if let Some(notes) = self.deck.related_by(self.part, "notesSlide")? {
            for node in members(self.shape_tree(notes)?) {
                let shape = Shape::new(*self, node);
                if shape.placeholder_kind()? == Some("body") {
                    return shape.text()?.ok_or_else(none);
                }
            }
            return Err(none());
        }
        let Some(master) = self.deck.related_by(self.deck.main, "notesMaster")? else {
            return Ok(String::new());
        };
        let mut has_body = false;
        for node in members(self.shape_tree(master)?) {
            let kind = Shape::new(*self, node).placeholder_kind()?;
            has_body |= kind == Some("body");
        }
        has_body.then(String::new).ok_or_else(none)
    }

    fn layout(&self) -> Result<&'a str, MetricError> {
        self.deck.related_by_kind(self.part, "slideLayout")
    }

    fn master(&self) -> Result<&'a str, MetricError> {
        self.deck.related_by_kind(self.layout()?, "slideMaster")
    }

    fn shape_tree(&self, part: &str) -> Result<Node<'a, 'a>, MetricError> {
        let root = self.deck.tree(part)?.root_element();
        required(required(root, P, "cSld")?, P, "spTree")
    }
}

fn is_parsed(part: &Part) -> bool {
    let kind = part
        .kind
        .strip_prefix(KINDS)
        .and_then(|kind| kind.strip_prefix('.'));
    let kind = kind.and_then(|kind| kind.strip_suffix("+xml"));
    let whole = part.kind.as_str();
    kind.is_some_and(|kind| PARSED.contains(&kind))
        || MAIN.contains(&whole)
        || PARSED_ELSEWHERE.contains(&whole)
}

/// The fill of a slide or master. Where none is written there, or only which of the theme's,
/// python-pptx makes it one that what lies behind shows through.
fn background<'a>(root: Node<'a, 'a>) -> Result<Fill<'a, 'a>, MetricError> {
    let background = child(required(root, P, "cSld")?, P, "bg");
    let own = background.and_then(|background| child(background, P, "bgPr"));
    Ok(own.map_or(Fill::Through, fill))
}

/// The fill that properties say.
pub(super) fn fill<'a>(properties: Node<'a, 'a>) -> Fill<'a, 'a> {
    // In this order, whatever theirs is.
    let kinds = [
        "noFill",
        "solidFill",
        "gradFill",
        "blipFill",
        "pattFill",
        "grpFill",
    ];
    let found = kinds
        .into_iter()
        .find_map(|kind| child(properties, A, kind));
    match found {
        Some(fill) if is(&fill, A, "solidFill") => Fill::Solid(fill),
        Some(fill) if is(&fill, A, "noFill") => Fill::Through,
        _ => Fill::Other,
    }
}

/// The color of an element that holds one; none where it is of the theme or named otherwise.
pub(super) fn rgb(holder: Node<'_, '_>) -> Result<Option<Rgb>, MetricError> {
    if child(holder, A, "scrgbClr").is_some() {
        return Ok(None);
    }
    let Some(color) = child(holder, A, "srgbClr") else {
        return Ok(None);
    };
    let wrong = || raised("a color that is none");
    let value = color.attribute("val").ok_or_else(wrong)?;
    let part = |digits: Option<&str>| {
        let digits = digits.ok_or_else(wrong)?;
        u8::from_str_radix(digits, 16).map_err(|_| wrong())
    };
    Ok(Some([
        part(value.get(..2))?,
        part(value.get(2..4))?,
        part(value.get(4..))?,
    ]))
}
