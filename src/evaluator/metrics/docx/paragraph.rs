//! What a document's parts say: paragraphs, runs, and what stands at them.

use roxmltree::{Document, Node};

use super::super::MetricError;
use super::super::package::universal_length;
use super::super::python::{parse_float, raised};

const W: &str = "http://schemas.openxmlformats.org/wordprocessingml/2006/main";
const R: &str = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";

/// English Metric Units in a twentieth of a point.
const EMU_PER_TWIP: f64 = 635.0;

/// Children of a name.
pub(super) fn children<'a, 'i>(
    node: Node<'a, 'i>,
    name: &'static str,
) -> impl Iterator<Item = Node<'a, 'i>> {
    node.children().filter(move |child| is(child, name))
}

/// The first child of a name.
pub(super) fn child<'a, 'i>(node: Node<'a, 'i>, name: &'static str) -> Option<Node<'a, 'i>> {
    children(node, name).next()
}

/// Whether an element is Word's of a name.
pub(super) fn is(node: &Node<'_, '_>, name: &str) -> bool {
    node.is_element() && node.has_tag_name((W, name))
}

/// An attribute of Word's.
pub(super) fn attribute<'a>(node: Node<'a, '_>, name: &str) -> Option<&'a str> {
    node.attribute((W, name))
}

/// An attribute that points to another part.
pub(super) fn reference<'a>(node: Node<'a, '_>) -> Option<&'a str> {
    node.attribute((R, "id"))
}

/// The body of a document.
pub(super) fn body<'a, 'i>(tree: &'a Document<'i>) -> Result<Node<'a, 'i>, MetricError> {
    child(tree.root_element(), "body").ok_or_else(|| raised("the document has no body"))
}

/// Paragraphs that stand in the body itself.
pub(super) fn paragraphs<'a, 'i>(
    tree: &'a Document<'i>,
) -> Result<Vec<Paragraph<'a, 'i>>, MetricError> {
    Ok(children(body(tree)?, "p").map(Paragraph).collect())
}

/// Their texts.
pub(super) fn texts(tree: &Document<'_>) -> Result<Vec<String>, MetricError> {
    Ok(paragraphs(tree)?.iter().map(Paragraph::text).collect())
}

/// A paragraph.
#[derive(Clone, Copy)]
pub(super) struct Paragraph<'a, 'i>(pub(super) Node<'a, 'i>);

/// A stretch of text of one formatting.
#[derive(Clone, Copy)]
pub(super) struct Run<'a, 'i>(pub(super) Node<'a, 'i>);

/// Where a tabulator goes.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct TabStop<'a> {
    /// How text stands at it.
    pub(super) alignment: &'a str,
    /// EMU from the left margin.
    pub(super) position: f64,
}

/// Alignments of tab stops that there are.
const TAB_ALIGNMENTS: [&str; 10] = [
    "left", "center", "right", "decimal", "bar", "list", "clear", "end", "num", "start",
];

/// Alignments of paragraphs that there are, to python-docx.
const ALIGNMENTS: [&str; 9] = [
    "left",
    "center",
    "right",
    "both",
    "distribute",
    "mediumKashida",
    "highKashida",
    "lowKashida",
    "thaiDistribute",
];

impl<'a, 'i> Paragraph<'a, 'i> {
    /// The text of its runs and links.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for part in self.0.children() {
            if is(&part, "r") {
                text.push_str(&Run(part).text());
            } else if is(&part, "hyperlink") {
                children(part, "r").for_each(|run| text.push_str(&Run(run).text()));
            }
        }
        text
    }

    /// Its runs, without those of links.
    pub(super) fn runs(&self) -> impl Iterator<Item = Run<'a, 'i>> + use<'a, 'i> {
        children(self.0, "r").map(Run)
    }

    fn property(&self, name: &'static str) -> Option<Node<'a, 'i>> {
        child(child(self.0, "pPr")?, name)
    }

    /// How it is aligned.
    pub(super) fn alignment(&self) -> Result<Option<&'a str>, MetricError> {
        self.property("jc")
            .map(|jc| one_of(attribute(jc, "val"), &ALIGNMENTS))
            .transpose()
    }

    /// Lines, or the height of one in EMU: what there is no telling apart, as there.
    pub(super) fn line_spacing(&self) -> Result<Option<f64>, MetricError> {
        let Some(spacing) = self.property("spacing") else {
            return Ok(None);
        };
        let line = attribute(spacing, "line").map(signed_length).transpose()?;
        let rule = attribute(spacing, "lineRule");
        let rule = rule
            .map(|rule| one_of(Some(rule), &["atLeast", "exact", "auto"]))
            .transpose()?;
        let points_12 = 152_400.0;
        Ok(line.map(|line| match rule {
            None | Some("auto") => line / points_12,
            Some(_) => line,
        }))
    }

    /// Its tab stops.
    pub(super) fn tab_stops(&self) -> Result<Vec<TabStop<'a>>, MetricError> {
        let Some(tabs) = self.property("tabs") else {
            return Ok(Vec::new());
        };
        let stops = children(tabs, "tab").map(|tab| {
            let position =
                attribute(tab, "pos").ok_or_else(|| raised("a tab stop without place"))?;
            Ok(TabStop {
                alignment: one_of(attribute(tab, "val"), &TAB_ALIGNMENTS)?,
                position: signed_length(position)?,
            })
        });
        stops.collect()
    }
}

impl<'a, 'i> Run<'a, 'i> {
    /// Its text.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for part in self
            .0
            .children()
            .filter(|part| part.tag_name().namespace() == Some(W))
        {
            match part.tag_name().name() {
                "t" => text.push_str(part.text().unwrap_or_default()),
                "tab" | "ptab" => text.push('\t'),
                "cr" => text.push('\n'),
                "noBreakHyphen" => text.push('-'),
                "br" if attribute(part, "type").is_none_or(|kind| kind == "textWrapping") => {
                    text.push('\n');
                }
                _ => {}
            }
        }
        text
    }

    fn property(&self, name: &'static str) -> Option<Node<'a, 'i>> {
        child(child(self.0, "rPr")?, name)
    }

    /// The name of its font.
    pub(super) fn font_name(&self) -> Option<&'a str> {
        attribute(self.property("rFonts")?, "ascii")
    }

    /// Whether a switch is on, `i` or `strike`.
    pub(super) fn is_on(&self, switch: &'static str) -> Result<bool, MetricError> {
        let Some(switch) = self.property(switch) else {
            return Ok(false);
        };
        let all = ["1", "true", "on", "0", "false", "off"];
        let value = one_of(Some(attribute(switch, "val").unwrap_or("1")), &all)?;
        Ok(all[..3].contains(&value))
    }

    /// Whether it stands low and small.
    pub(super) fn is_subscript(&self) -> Result<bool, MetricError> {
        let Some(align) = self.property("vertAlign") else {
            return Ok(false);
        };
        let value =
            attribute(align, "val").ok_or_else(|| raised("a vertical alignment of nothing"))?;
        Ok(value == "subscript")
    }

    /// Its size in points.
    pub(super) fn size(&self) -> Result<Option<f64>, MetricError> {
        let Some(size) = self.property("sz") else {
            return Ok(None);
        };
        let value = attribute(size, "val").ok_or_else(|| raised("a size of nothing"))?;
        if value.contains(['m', 'n', 'p']) {
            return Ok(Some(universal_length(value)? / 12_700.0));
        }
        let half_points: i64 = value
            .trim()
            .parse()
            .map_err(|_| raised(format!("size {value:?}")))?;
        Ok(Some(half_points as f64 / 2.0))
    }

    /// Its color, red, green and blue from 0 to 255; none where the style decides.
    pub(super) fn color(&self) -> Result<Option<[u8; 3]>, MetricError> {
        let Some(color) = self.property("color") else {
            return Ok(None);
        };
        let wrong = |value: &str| raised(format!("color {value:?}"));
        let value = attribute(color, "val").ok_or_else(|| wrong(""))?;
        if value == "auto" {
            return Ok(None);
        }
        let part = |range: std::ops::Range<usize>| {
            let digits = value.get(range).ok_or_else(|| wrong(value))?;
            u8::from_str_radix(digits, 16).map_err(|_| wrong(value))
        };
        Ok(Some([part(0..2)?, part(2..4)?, part(4..6)?]))
    }
}

fn one_of<'a>(value: Option<&'a str>, known: &[&str]) -> Result<&'a str, MetricError> {
    let value = value.filter(|value| known.contains(value));
    value.ok_or_else(|| raised(format!("a value that is none of {}", known.join(", "))))
}

/// A length in EMU, of twips or of another unit.
pub(super) fn signed_length(value: &str) -> Result<f64, MetricError> {
    if value.contains(['i', 'm', 'p']) {
        return universal_length(value);
    }
    let twips = parse_float(value).ok_or_else(|| raised(format!("length {value:?}")))?;
    Ok(twips.round_ties_even() * EMU_PER_TWIP)
}

/// A length in EMU, of twips in whole numbers or of another unit.
pub(super) fn length(value: &str) -> Result<f64, MetricError> {
    let is_whole = value.trim().parse::<i64>().is_ok();
    if !is_whole && !value.contains(['i', 'm', 'p']) {
        return Err(raised(format!("length {value:?}")));
    }
    signed_length(value)
}
