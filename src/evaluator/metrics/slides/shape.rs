//! What stands on slides: kinds, places and sizes.

use roxmltree::Node;

use super::super::MetricError;
use super::super::package::universal_length;
use super::super::python::{parse_int, raised};
use super::deck::Slide;
use super::text::{Paragraph, texts};
use super::xml::{A, P, R, child, children, is, required};

/// Graphic frames are told apart by what they hold.
const TABLE: &str = "http://schemas.openxmlformats.org/drawingml/2006/table";

/// Kinds of placeholders, and which of the master's each of a layout's takes after.
const PLACEHOLDERS: [(&str, Option<&str>); 16] = [
    ("title", Some("title")),
    ("ctrTitle", Some("title")),
    ("body", Some("body")),
    ("subTitle", Some("body")),
    ("obj", Some("body")),
    ("chart", Some("body")),
    ("tbl", Some("body")),
    ("clipArt", Some("body")),
    ("dgm", Some("body")),
    ("media", Some("body")),
    ("pic", Some("body")),
    ("dt", Some("dt")),
    ("ftr", Some("ftr")),
    ("sldNum", Some("sldNum")),
    ("hdr", None),
    ("sldImg", None),
];

/// Something that stands on a slide.
#[derive(Clone, Copy)]
pub(super) struct Shape<'a> {
    slide: Slide<'a>,
    node: Node<'a, 'a>,
    /// Whether it stands on the slide itself: in a group nothing takes after a layout.
    is_on_slide: bool,
}

/// What it is, as far as metrics tell kinds apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A drawing of its own outline.
    Freeform,
    /// A picture that fills no place of the layout.
    Picture,
    /// A table.
    Table,
    /// Anything else.
    Other,
}

/// A side or a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Measure {
    /// From the left edge.
    Left,
    /// From the top edge.
    Top,
    /// From left to right.
    Width,
    /// From top to bottom.
    Height,
}

/// What stands in a tree of shapes, from the back to the front.
pub(super) fn members<'a>(tree: Node<'a, 'a>) -> impl Iterator<Item = Node<'a, 'a>> {
    let names = ["sp", "grpSp", "graphicFrame", "cxnSp", "pic", "contentPart"];
    tree.children()
        .filter(move |node| names.iter().any(|name| is(node, P, name)))
}

impl<'a> Shape<'a> {
    /// What an element of a slide is.
    pub(super) fn on(slide: Slide<'a>, node: Node<'a, 'a>) -> Result<Self, MetricError> {
        let shape = Self {
            slide,
            node,
            is_on_slide: true,
        };
        if shape.placeholder()?.is_some() && shape.is("sp") {
            shape.placeholder_kind()?;
        }
        Ok(shape)
    }

    /// What an element of a group, or of another page than a slide, is.
    pub(super) fn new(slide: Slide<'a>, node: Node<'a, 'a>) -> Self {
        Self {
            slide,
            node,
            is_on_slide: false,
        }
    }

    /// Whether texts can stand in it.
    pub(super) fn has_text(&self) -> bool {
        self.is("sp")
    }

    /// Its text, a line a paragraph; none where none can stand in it.
    pub(super) fn text(&self) -> Result<Option<String>, MetricError> {
        let paragraphs = self.paragraphs();
        paragraphs.map(|paragraphs| texts(&paragraphs)).transpose()
    }

    /// Its paragraphs; none where none can stand in it.
    pub(super) fn paragraphs(&self) -> Option<Vec<Paragraph<'a>>> {
        self.has_text()
            .then(|| Paragraph::all(child(self.node, P, "txBody")))
    }

    /// It, or where it is a group, all in it, as far as texts can stand in that.
    pub(super) fn with_text(&self) -> Vec<Shape<'a>> {
        if self.has_text() {
            return vec![*self];
        }
        if !self.is("grpSp") {
            return Vec::new();
        }
        let inner = members(self.node).map(|node| Self::new(self.slide, node));
        inner.flat_map(|shape| shape.with_text()).collect()
    }

    /// What it is.
    pub(super) fn kind(&self) -> Result<Kind, MetricError> {
        if self.is("graphicFrame") {
            let uri = self.graphic()?.attribute("uri");
            let uri = uri.ok_or_else(|| raised("a frame of nothing"))?;
            return Ok(if uri == TABLE {
                Kind::Table
            } else {
                Kind::Other
            });
        }
        if self.is("pic") {
            let is_film = || {
                let properties = child(self.node, P, "nvPicPr")
                    .and_then(|properties| child(properties, P, "nvPr"));
                properties.is_some_and(|properties| child(properties, A, "videoFile").is_some())
            };
            let is_placed = self.placeholder()?.is_some();
            return Ok(if is_placed || is_film() {
                Kind::Other
            } else {
                Kind::Picture
            });
        }
        if !self.is("sp") || self.placeholder()?.is_some() {
            return Ok(Kind::Other);
        }
        let outline = required(self.node, P, "spPr")?;
        if child(outline, A, "custGeom").is_some() {
            return Ok(Kind::Freeform);
        }
        if child(outline, A, "prstGeom").is_some() {
            return Ok(Kind::Other);
        }
        let properties = required(required(self.node, P, "nvSpPr")?, P, "cNvSpPr")?;
        match properties.attribute("txBox") {
            Some("1" | "true") => Ok(Kind::Other),
            _ => Err(raised("a shape of no kind")),
        }
    }

    /// The rows of the table that it holds, each with its cells, and how many columns it has.
    pub(super) fn table(&self) -> Result<(Vec<Vec<Node<'a, 'a>>>, usize), MetricError> {
        if !self.is("graphicFrame") || self.kind()? != Kind::Table {
            return Err(raised("no table to compare with"));
        }
        let table = required(self.graphic()?, A, "tbl")?;
        let rows = children(table, A, "tr").map(|row| children(row, A, "tc").collect());
        let grid = required(table, A, "tblGrid")?;
        Ok((rows.collect(), children(grid, A, "gridCol").count()))
    }

    /// The bytes of the picture that it shows.
    pub(super) fn picture(&self) -> Result<&'a [u8], MetricError> {
        let filling = required(self.node, P, "blipFill")?;
        let id = child(filling, A, "blip").and_then(|blip| blip.attribute((R, "embed")));
        self.slide
            .picture(id.ok_or_else(|| raised("a picture of nothing"))?)
    }

    /// A measure in EMU: its own, or of the place of the layout that it fills; none where nobody
    /// says.
    pub(super) fn measure(&self, measure: Measure) -> Result<Option<i64>, MetricError> {
        if let Some(own) = own_measure(self.node, measure)? {
            return Ok(Some(own));
        }
        let takes_after = self.is_on_slide && (self.is("sp") || self.is("pic"));
        let place = self.placeholder()?.filter(|_| takes_after);
        let Some(index) = place.map(placeholder_index).transpose()? else {
            return Ok(None);
        };
        for node in self.slide.layout_members()? {
            let place = placeholder(node)?;
            if place.map(placeholder_index).transpose()? == Some(index) {
                return self.of_layout(node, measure);
            }
        }
        Ok(None)
    }

    /// A measure of a place of the layout: its own, or that of the master's.
    fn of_layout(&self, node: Node<'a, 'a>, measure: Measure) -> Result<Option<i64>, MetricError> {
        let own = own_measure(node, measure)?;
        if own.is_some() || !is(&node, P, "sp") {
            return Ok(own);
        }
        let kind = placeholder(node)?.map(placeholder_kind).transpose()?;
        let wanted = PLACEHOLDERS
            .iter()
            .find(|(name, _)| Some(*name) == kind)
            .and_then(|(_, wanted)| *wanted);
        let wanted = wanted.ok_or_else(|| raised("a place that no master has"))?;
        for node in self.slide.master_members()? {
            let Some(place) = placeholder(node)? else {
                continue;
            };
            if !is(&node, P, "sp") {
                return Err(raised("a place of the master that is no shape"));
            }
            if placeholder_kind(place)? == wanted {
                return own_measure(node, measure);
            }
        }
        Ok(None)
    }

    /// The kind of place that it fills; none where it fills none.
    pub(super) fn placeholder_kind(&self) -> Result<Option<&'a str>, MetricError> {
        self.placeholder()?.map(placeholder_kind).transpose()
    }

    fn placeholder(&self) -> Result<Option<Node<'a, 'a>>, MetricError> {
        placeholder(self.node)
    }

    fn graphic(&self) -> Result<Node<'a, 'a>, MetricError> {
        required(required(self.node, A, "graphic")?, A, "graphicData")
    }

    fn is(&self, name: &str) -> bool {
        is(&self.node, P, name)
    }
}

/// The mark of an element as filling a place of the layout.
fn placeholder<'a>(node: Node<'a, 'a>) -> Result<Option<Node<'a, 'a>>, MetricError> {
    if is(&node, P, "contentPart") {
        return Err(raised("a part of foreign content"));
    }
    let first = node.children().find(Node::is_element);
    let place = first.and_then(|first| child(first, P, "nvPr"));
    Ok(place.and_then(|place| child(place, P, "ph")))
}

fn placeholder_index(place: Node<'_, '_>) -> Result<i64, MetricError> {
    let index = place.attribute("idx").unwrap_or("0");
    parse_int(index).ok_or_else(|| raised(format!("place {index:?}")))
}

fn placeholder_kind<'a>(place: Node<'a, 'a>) -> Result<&'a str, MetricError> {
    let kind = place.attribute("type").unwrap_or("obj");
    let is_known = PLACEHOLDERS.iter().any(|(known, _)| *known == kind);
    is_known
        .then_some(kind)
        .ok_or_else(|| raised(format!("a place for {kind:?}")))
}

/// A measure that stands at an element itself, in EMU.
fn own_measure(node: Node<'_, '_>, measure: Measure) -> Result<Option<i64>, MetricError> {
    let frame = match node.tag_name().name() {
        "graphicFrame" => Some(required(node, P, "xfrm")?),
        "grpSp" => child(required(node, P, "grpSpPr")?, A, "xfrm"),
        _ => child(required(node, P, "spPr")?, A, "xfrm"),
    };
    let (holder, name) = match measure {
        Measure::Left => ("off", "x"),
        Measure::Top => ("off", "y"),
        Measure::Width => ("ext", "cx"),
        Measure::Height => ("ext", "cy"),
    };
    let Some(holder) = frame.and_then(|frame| child(frame, A, holder)) else {
        return Ok(None);
    };
    let value = holder.attribute(name).unwrap_or_default();
    let is_place = matches!(measure, Measure::Left | Measure::Top);
    if is_place && value.contains(['i', 'm', 'p']) {
        return Ok(Some(universal_length(value)? as i64));
    }
    let length = parse_int(value).map(Some);
    length.ok_or_else(|| raised(format!("length {value:?}")))
}
