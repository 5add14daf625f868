//! Styles of cells: number formats, fonts and fills.

use roxmltree::Node;
use serde_json::{Value, json};

use super::super::MetricError;
use super::super::python::raised;
use super::grid::Spot;
use super::xml::{child, flag_of, float_of, int_of, parse};

/// Number formats that have no definition in a book, by number.
#[rustfmt::skip]
const BUILT_IN: [(i64, &str); 36] = [
    (0, "General"), (1, "0"), (2, "0.00"), (3, "#,##0"), (4, "#,##0.00"),
    (5, "\"$\"#,##0_);(\"$\"#,##0)"), (6, "\"$\"#,##0_);[Red](\"$\"#,##0)"),
    (7, "\"$\"#,##0.00_);(\"$\"#,##0.00)"), (8, "\"$\"#,##0.00_);[Red](\"$\"#,##0.00)"),
    (9, "0%"), (10, "0.00%"), (11, "0.00E+00"), (12, "# ?/?"), (13, "# ??/??"),
    (14, "mm-dd-yy"), (15, "d-mmm-yy"), (16, "d-mmm"), (17, "mmm-yy"), (18, "h:mm AM/PM"),
    (19, "h:mm:ss AM/PM"), (20, "h:mm"), (21, "h:mm:ss"), (22, "m/d/yy h:mm"),
    (37, "#,##0_);(#,##0)"), (38, "#,##0_);[Red](#,##0)"), (39, "#,##0.00_);(#,##0.00)"),
    (40, "#,##0.00_);[Red](#,##0.00)"),
    (41, r#"_(* #,##0_);_(* \(#,##0\);_(* "-"_);_(@_)"#),
    (42, r#"_("$"* #,##0_);_("$"* \(#,##0\);_("$"* "-"_);_(@_)"#),
    (43, r#"_(* #,##0.00_);_(* \(#,##0.00\);_(* "-"??_);_(@_)"#),
    (44, r#"_("$"* #,##0.00_)_("$"* \(#,##0.00\)_("$"* "-"??_)_(@_)"#),
    (45, "mm:ss"), (46, "[h]:mm:ss"), (47, "mmss.0"), (48, "##0.0E+0"), (49, "@"),
];

/// A colour as eight hexadecimal digits; none where it is one of a theme or a palette, which
/// openpyxl does not look up: all those are the same to it.
#[derive(Clone, Debug, PartialEq)]
struct Color(Option<String>);

#[derive(Clone, Debug)]
struct Font {
    name: Value,
    family: Value,
    size: Value,
    is_bold: bool,
    is_italic: bool,
    underline: Value,
    color: Option<Color>,
}

#[derive(Clone, Debug)]
enum Fill {
    Pattern { front: Color, back: Color },
    Gradient,
}

/// A cell's style: which font, which fill, and how numbers are written.
#[derive(Clone, Debug)]
struct Format {
    font: usize,
    fill: usize,
    /// None where the book does not define what it names.
    number: Option<String>,
}

/// What a conditional format changes.
#[derive(Clone, Debug)]
pub(super) struct Difference {
    number: Option<String>,
    font: Option<Font>,
    fill: Option<Fill>,
}

/// A book's styles.
#[derive(Clone, Debug)]
pub(super) struct Styles {
    fonts: Vec<Font>,
    fills: Vec<Fill>,
    formats: Vec<Format>,
    differences: Vec<Difference>,
}

impl Styles {
    /// Those of a book that defines none.
    pub(super) fn none() -> Self {
        let font = Font {
            name: "Calibri".into(),
            family: json!(2.0),
            size: json!(11.0),
            is_bold: false,
            is_italic: false,
            underline: Value::Null,
            color: Some(Color(None)),
        };
        let plain = Color::black();
        let fill = Fill::Pattern {
            front: plain.clone(),
            back: plain,
        };
        let format = Format {
            font: 0,
            fill: 0,
            number: Some("General".into()),
        };
        Self {
            fonts: vec![font],
            fills: vec![fill],
            formats: vec![format],
            differences: Vec::new(),
        }
    }

    /// What `styles.xml` says.
    pub(super) fn read(text: &str) -> Result<Self, MetricError> {
        let tree = parse(text)?;
        let root = tree.root_element();
        let list = |name| {
            child(root, name)
                .into_iter()
                .flat_map(|list| list.children())
        };
        let elements = |name| list(name).filter(Node::is_element);
        let mut custom = Vec::new();
        for format in elements("numFmts") {
            let id = int_of(format, "numFmtId")?.ok_or_else(|| raised("a format has no number"))?;
            custom.push((id, format.attribute("formatCode").unwrap_or_default()));
        }
        let formats = elements("cellXfs").map(|format| Format::read(format, &custom));
        let formats: Vec<Format> = formats.collect::<Result<_, _>>()?;
        let differences = elements("dxfs").map(Difference::read);
        let differences = differences.collect::<Result<_, _>>()?;
        if formats.is_empty() {
            return Ok(Self::none());
        }
        let styles = Self {
            fonts: elements("fonts")
                .map(Font::read)
                .collect::<Result<_, _>>()?,
            fills: elements("fills")
                .map(Fill::read)
                .collect::<Result<_, _>>()?,
            formats,
            differences,
        };
        Ok(styles)
    }

    /// How many styles cells may have.
    pub(super) fn len(&self) -> usize {
        self.formats.len()
    }

    /// Whether numbers of a style are dates or times.
    pub(super) fn is_date(&self, style: usize) -> bool {
        self.formats[style].number.as_deref().is_some_and(is_date)
    }

    /// Whether they are lengths of time.
    pub(super) fn is_span(&self, style: usize) -> bool {
        self.formats[style].number.as_deref().is_some_and(is_span)
    }

    /// What a conditional format of a number changes.
    pub(super) fn difference(&self, at: usize) -> Option<&Difference> {
        self.differences.get(at)
    }

    /// One property of a cell, `_read_cell_style`; with a difference, what that says of it.
    pub(super) fn read_property(
        &self,
        name: &str,
        spot: &Spot,
        difference: Option<&Difference>,
    ) -> Result<Value, MetricError> {
        let format = &self.formats[spot.style];
        match name {
            "number_format" => {
                if !spot.has_value || !spot.is_number {
                    return Ok(Value::Null);
                }
                let code = difference.map_or(&format.number, |difference| &difference.number);
                let missing = || raised("there is no such number format");
                Ok(code.as_deref().ok_or_else(missing)?.into())
            }
            "fill_type" | "bgcolor" | "fgcolor" => {
                let own = self.fills.get(format.fill);
                let fill = difference.map_or(own, |difference| difference.fill.as_ref());
                Ok(fill.map_or(Value::Null, |fill| {
                    fill.property(name, difference.is_some())
                }))
            }
            "hyperlink" if !spot.has_value => Ok(Value::Null),
            "hyperlink" => Ok(spot.link.clone().unwrap_or_else(|| "".into())),
            "merge" => Ok(spot.is_merged.into()),
            _ => {
                let property = name.strip_prefix("font_").filter(|name| {
                    let known = [
                        "name",
                        "family",
                        "color",
                        "bold",
                        "italic",
                        "underline",
                        "size",
                    ];
                    known.contains(name)
                });
                let unknown = || raised(format!("no style is called {name:?}"));
                let property = property.ok_or_else(unknown)?;
                if !spot.has_value {
                    return Ok(Value::Null);
                }
                let own = self.fonts.get(format.font);
                let font = difference.map_or(own, |difference| difference.font.as_ref());
                font.ok_or_else(|| raised("there is no such font"))?
                    .property(property)
            }
        }
    }
}

impl Format {
    fn read(node: Node<'_, '_>, custom: &[(i64, &str)]) -> Result<Self, MetricError> {
        let index = |name| -> Result<usize, MetricError> {
            let index = int_of(node, name)?.unwrap_or(0);
            usize::try_from(index).map_err(|_| raised(format!("{name} is below 0")))
        };
        let id = int_of(node, "numFmtId")?.unwrap_or(0);
        let own = custom.iter().rev().find(|(known, _)| *known == id);
        let built_in = || BUILT_IN.iter().find(|(known, _)| *known == id);
        let code = own.or_else(built_in).map(|(_, code)| (*code).to_owned());
        Ok(Self {
            font: index("fontId")?,
            fill: index("fillId")?,
            number: code.or_else(|| (id < 164).then(|| "General".to_owned())),
        })
    }
}

impl Difference {
    fn read(node: Node<'_, '_>) -> Result<Self, MetricError> {
        let number = child(node, "numFmt").and_then(|number| number.attribute("formatCode"));
        Ok(Self {
            number: number.map(str::to_owned),
            font: child(node, "font").map(Font::read).transpose()?,
            fill: child(node, "fill").map(Fill::read).transpose()?,
        })
    }
}

impl Font {
    fn read(node: Node<'_, '_>) -> Result<Self, MetricError> {
        let number = |name| -> Result<Value, MetricError> {
            let number = child(node, name).map(|node| float_of(node, "val"));
            Ok(number
                .transpose()?
                .flatten()
                .map_or(Value::Null, Value::from))
        };
        let text = |name, default: Option<&str>| {
            let text = child(node, name).and_then(|node| node.attribute("val").or(default));
            text.map_or(Value::Null, Value::from)
        };
        let flag = |name| child(node, name).is_some_and(|node| flag_of(node, "val", true));
        Ok(Self {
            name: text("name", None),
            family: number("family")?,
            size: number("sz")?,
            is_bold: flag("b"),
            is_italic: flag("i"),
            underline: match text("u", Some("single")) {
                Value::String(none) if none == "none" => Value::Null,
                text => text,
            },
            color: child(node, "color").map(Color::read).transpose()?,
        })
    }

    fn property(&self, name: &str) -> Result<Value, MetricError> {
        Ok(match name {
            "name" => self.name.clone(),
            "family" => self.family.clone(),
            "size" => self.size.clone(),
            "bold" => self.is_bold.into(),
            "italic" => self.is_italic.into(),
            "underline" => self.underline.clone(),
            _ => {
                let color = self.color.as_ref();
                color
                    .ok_or_else(|| raised("the font has no color"))?
                    .value()
            }
        })
    }
}

impl Fill {
    fn read(node: Node<'_, '_>) -> Result<Self, MetricError> {
        let first = node.children().find(Node::is_element);
        let Some(first) = first.filter(|first| first.tag_name().name() == "patternFill") else {
            return Ok(Self::Gradient);
        };
        let color = |name| child(first, name).map_or(Ok(Color::black()), Color::read);
        Ok(Self::Pattern {
            front: color("fgColor")?,
            back: color("bgColor")?,
        })
    }

    /// Conditional formats have their colour where cells have none.
    fn property(&self, name: &str, is_conditional: bool) -> Value {
        match (self, name) {
            (Self::Pattern { .. }, "fill_type") => "patternFill".into(),
            (Self::Gradient, "fill_type") => "gradientFill".into(),
            (Self::Pattern { back, .. }, _) if is_conditional => back.value(),
            (Self::Pattern { front, .. }, _) => front.value(),
            (Self::Gradient, _) => Value::Null,
        }
    }
}

impl Color {
    fn black() -> Self {
        Self(Some("00000000".into()))
    }

    fn read(node: Node<'_, '_>) -> Result<Self, MetricError> {
        if ["indexed", "theme", "auto"]
            .iter()
            .any(|kind| node.has_attribute(*kind))
        {
            return Ok(Self(None));
        }
        let Some(text) = node.attribute("rgb") else {
            return Ok(Self::black());
        };
        let is_hex = text.bytes().all(|byte| byte.is_ascii_hexdigit());
        match text.len() {
            8 if is_hex => Ok(Self(Some(text.to_owned()))),
            6 if is_hex => Ok(Self(Some(format!("00{text}")))),
            _ => Err(raised(format!("{text:?} is no color"))),
        }
    }

    /// One that is not looked up is nothing that a rule could name.
    fn value(&self) -> Value {
        match &self.0 {
            Some(digits) => digits.as_str().into(),
            None => json!({"color": "of a theme or palette"}),
        }
    }
}

/// Whether a number format writes dates or times, `is_date_format`.
fn is_date(code: &str) -> bool {
    let mut before = None;
    bare_format(code).chars().any(|c| {
        let is_literal = matches!(before.replace(c), Some('_' | '\\'));
        !is_literal && "dmhysDMHYS".contains(c)
    })
}

/// Whether it writes lengths of time, `is_timedelta_format`.
fn is_span(code: &str) -> bool {
    let first = code.split(';').next().unwrap_or_default().to_lowercase();
    let marks = ["[h]", "[hh]", "[m]", "[mm]", "[s]", "[ss]"];
    marks.iter().any(|mark| first.contains(mark))
}

/// The first section without quoted texts and brackets, but for those of hours and the like.
fn bare_format(code: &str) -> String {
    let mut rest = code.split(';').next().unwrap_or_default();
    let mut out = String::new();
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        let end = match c {
            '"' => after.find('"'),
            '[' => after.find(']').filter(|end| {
                let inner = &after[..*end];
                !["h", "hh", "m", "mm", "s", "ss"].contains(&inner)
            }),
            _ => None,
        };
        rest = if let Some(end) = end {
            &after[end + 1..]
        } else {
            out.push(c);
            after
        };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_say_whether_numbers_are_dates() {
        for date in [
            "mm-dd-yy",
            "[h]:mm",
            "[Red]yyyy",
            "0;yy\";\"",
            "h\"x\"",
            "[ss].0",
        ] {
            assert_eq!(is_date(date), date != "0;yy\";\"", "{date}");
        }
        for number in [
            "General",
            "0.00",
            "[Red]0",
            "\"days\"0",
            "_d0",
            "\\d0",
            "[$-409]0",
            "#,##0;d",
        ] {
            assert!(!is_date(number), "{number}");
        }
        assert!(is_span("[HH]:mm:ss") && !is_span("hh:mm;[h]"));
    }
}
