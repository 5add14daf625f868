//! Texts on slides: paragraphs, runs, fonts, bullets.

use std::collections::HashSet;

use roxmltree::{Node, NodeId};

use super::super::MetricError;
use super::super::python::{self, parse_int, raised};
use super::deck::{Fill, Rgb, fill, rgb};
use super::xml::{A, below, child, children, is, required};

/// Alignments of paragraphs that there are, to python-pptx.
const ALIGNMENTS: [&str; 7] = ["l", "ctr", "r", "just", "justLow", "dist", "thaiDist"];

/// Underlines that there are, with what python-pptx counts as the same.
const UNDERLINES: [(&str, u8); 18] = [
    ("none", 0),
    ("sng", 1),
    ("words", 1),
    ("dbl", 3),
    ("heavy", 4),
    ("dotted", 5),
    ("dottedHeavy", 6),
    ("dash", 7),
    ("dashHeavy", 8),
    ("dashLong", 9),
    ("dashLongHeavy", 10),
    ("dotDash", 11),
    ("dotDashHeavy", 12),
    ("dotDotDash", 13),
    ("dotDotDashHeavy", 14),
    ("wavy", 15),
    ("wavyHeavy", 16),
    ("wavyDbl", 17),
];

/// A paragraph. Where there is no text at all there is an empty one.
#[derive(Clone, Copy)]
pub(super) struct Paragraph<'a>(Option<Node<'a, 'a>>);

/// A stretch of text of one formatting.
#[derive(Clone, Copy)]
pub(super) struct Run<'a>(Node<'a, 'a>);

/// How a text is underlined; `sng` and `words` are as good as each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Underline(u8);

impl<'a> Paragraph<'a> {
    /// Those of a body of text.
    pub(super) fn all(body: Option<Node<'a, 'a>>) -> Vec<Self> {
        let Some(body) = body else {
            return vec![Self(None)];
        };
        let paragraphs = children(body, A, "p");
        paragraphs.map(|paragraph| Self(Some(paragraph))).collect()
    }

    /// Its text; lines in it are parted by vertical tabs.
    pub(super) fn text(&self) -> Result<String, MetricError> {
        let mut text = String::new();
        let parts = self
            .0
            .into_iter()
            .flat_map(|paragraph| paragraph.children());
        for part in parts {
            if is(&part, A, "r") {
                text.push_str(required(part, A, "t")?.text().unwrap_or_default());
            } else if is(&part, A, "br") {
                text.push('\u{b}');
            } else if is(&part, A, "fld") {
                let field = child(part, A, "t").and_then(|field| field.text());
                text.push_str(field.unwrap_or_default());
            }
        }
        Ok(text)
    }

    /// Its runs.
    pub(super) fn runs(&self) -> Vec<Run<'a>> {
        let runs = self.0.into_iter().flat_map(|node| children(node, A, "r"));
        runs.map(Run).collect()
    }

    /// How it is aligned; to the left where nobody says.
    pub(super) fn alignment(&self) -> Result<&'a str, MetricError> {
        let alignment = self.property("algn").unwrap_or("l");
        let is_known = ALIGNMENTS.contains(&alignment);
        is_known
            .then_some(alignment)
            .ok_or_else(|| raised(format!("alignment {alignment:?}")))
    }

    /// How deep it stands in a list.
    pub(super) fn level(&self) -> Result<i64, MetricError> {
        let level = self.property("lvl").unwrap_or("0");
        parse_int(level).ok_or_else(|| raised(format!("level {level:?}")))
    }

    /// By which it is told from others of its slide.
    pub(super) fn id(&self) -> Option<NodeId> {
        self.0.map(|node| node.id())
    }

    fn property(&self, name: &str) -> Option<&'a str> {
        child(self.0?, A, "pPr")?.attribute(name)
    }
}

/// What paragraphs say, a line each.
pub(super) fn texts(paragraphs: &[Paragraph<'_>]) -> Result<String, MetricError> {
    let texts: Result<Vec<String>, MetricError> = paragraphs.iter().map(Paragraph::text).collect();
    Ok(texts?.join("\n"))
}

impl<'a> Run<'a> {
    fn properties(&self) -> Option<Node<'a, 'a>> {
        child(self.0, A, "rPr")
    }

    fn property(&self, name: &str) -> Option<&'a str> {
        self.properties()?.attribute(name)
    }

    /// The name of its font.
    pub(super) fn font_name(&self) -> Result<Option<&'a str>, MetricError> {
        let font = self
            .properties()
            .and_then(|properties| child(properties, A, "latin"));
        let name = |font: Node<'a, 'a>| font.attribute("typeface");
        font.map(|font| name(font).ok_or_else(|| raised("a font of no name")))
            .transpose()
    }

    /// Its size in hundredths of a point.
    pub(super) fn size(&self) -> Result<Option<i64>, MetricError> {
        let size = self.property("sz");
        size.map(|size| parse_int(size).ok_or_else(|| raised(format!("size {size:?}"))))
            .transpose()
    }

    /// Whether a switch is on, `b` or `i`; off where nobody says.
    pub(super) fn is_on(&self, switch: &str) -> Result<bool, MetricError> {
        match self.property(switch) {
            None | Some("0" | "false") => Ok(false),
            Some("1" | "true") => Ok(true),
            Some(value) => Err(raised(format!("{switch} {value:?}"))),
        }
    }

    /// Its color, where it has one of its own and that is no theme's.
    pub(super) fn color(&self) -> Result<Option<Rgb>, MetricError> {
        match self.properties().map(fill) {
            Some(Fill::Solid(color)) => rgb(color),
            _ => Ok(None),
        }
    }

    /// How it is underlined; none where nobody says.
    pub(super) fn underline(&self) -> Result<Option<Underline>, MetricError> {
        let Some(underline) = self.property("u") else {
            return Ok(None);
        };
        let known = UNDERLINES.iter().find(|(name, _)| *name == underline);
        let known = known.ok_or_else(|| raised(format!("underline {underline:?}")))?;
        Ok(Some(Underline(known.1)))
    }

    /// Whether it is underlined once, letters and spaces.
    pub(super) fn is_underlined(&self) -> bool {
        self.property("u") == Some("sng")
    }

    /// How it is struck through; none where nobody says.
    pub(super) fn strike(&self) -> Option<&'a str> {
        self.property("strike")
    }
}

/// A paragraph of a slide with what stands before it.
struct Bullet<'a> {
    id: NodeId,
    /// None without properties; within them 0 unless written.
    level: Option<&'a str>,
    mark: Option<&'a str>,
    text: String,
}

/// What stands before the paragraphs of a slide that say something.
///
/// As python-pptx gives each paragraph that it was asked about properties, and paragraphs with and
/// without any are not the same here, what was asked about is kept count of.
pub(super) struct Bullets<'a> {
    /// None where they cannot be read.
    all: Option<Vec<Bullet<'a>>>,
    asked: HashSet<NodeId>,
}

impl<'a> Bullets<'a> {
    /// Those of a slide.
    pub(super) fn of(root: Node<'a, 'a>) -> Self {
        let all = below(root, A, "p").map(|paragraph| {
            let texts: Option<Vec<&str>> =
                below(paragraph, A, "t").map(|text| text.text()).collect();
            let properties = child(paragraph, A, "pPr");
            let mark = properties.and_then(|properties| child(properties, A, "buChar"));
            Some(Bullet {
                id: paragraph.id(),
                level: properties.map(|properties| properties.attribute("lvl").unwrap_or("0")),
                mark: mark.map_or(Some("No Bullet"), |mark| mark.attribute("char")),
                text: texts?.concat(),
            })
        });
        let all: Option<Vec<Bullet<'a>>> = all.collect();
        let says_something = |bullet: &Bullet<'_>| !python::strip(&bullet.text).is_empty();
        Self {
            all: all.map(|all| all.into_iter().filter(says_something).collect()),
            asked: HashSet::new(),
        }
    }

    /// Counts a paragraph as one that was asked about.
    pub(super) fn ask(&mut self, paragraph: &Paragraph<'_>) {
        self.asked.extend(paragraph.id());
    }

    /// Whether paragraphs say the same, as deep and with the same marks; so too where one cannot
    /// be read.
    pub(super) fn fit(&self, other: &Self) -> bool {
        let (Some(all), Some(others)) = (&self.all, &other.all) else {
            return true;
        };
        let is_same = |(bullet, another): (&Bullet<'_>, &Bullet<'_>)| {
            bullet.text == another.text
                && bullet.mark == another.mark
                && self.level(bullet) == other.level(another)
        };
        all.len() == others.len() && all.iter().zip(others).all(is_same)
    }

    fn level(&self, bullet: &Bullet<'a>) -> Option<&'a str> {
        let is_asked = self.asked.contains(&bullet.id);
        bullet.level.or(is_asked.then_some("0"))
    }
}
