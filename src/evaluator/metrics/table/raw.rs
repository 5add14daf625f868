//! Values and sparklines straight out of a book's parts, as OSWorld reads them beside openpyxl:
//! a sheet's part is the one of its number, whatever the workbook says.

use std::collections::BTreeMap;

use roxmltree::{Document, Node};
use serde_json::{Map, Value};

use super::super::MetricError;
use super::super::package::{Archive, bare};
use super::super::python::{self, raised};
use super::range::{Place, coordinate};
use super::xml::child;

const MAIN: &str = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
const MORE: &str = "http://schemas.microsoft.com/office/spreadsheetml/2009/9/main";
const EXCEL: &str = "http://schemas.microsoft.com/office/excel/2006/main";

/// Cells of a sheet.
pub(super) struct RawSheet {
    /// By coordinates as they are written; the first of each counts.
    cells: BTreeMap<String, Raw>,
    shared: Vec<String>,
}

/// A cell: its kind and what stands in it.
struct Raw {
    kind: Option<String>,
    /// `v`; none where there is no such element.
    value: Option<Value>,
    /// `is`.
    inline: Option<Value>,
}

impl RawSheet {
    /// The sheet of a title. One that is missing or broken has no cells.
    pub(super) fn read(bytes: &[u8], title: &str) -> Self {
        let none = Self {
            cells: BTreeMap::new(),
            shared: Vec::new(),
        };
        let Some(mut archive) = Archive::open(bytes) else {
            return none;
        };
        let shared = archive.read_text("xl/sharedStrings.xml");
        let shared = shared.and_then(|text| shared_texts(&text));
        let text = part_of(&mut archive, title).and_then(|part| archive.read_text(&part));
        let tree = text.as_deref().map(|text| Document::parse(bare(text)));
        let Some(Ok(tree)) = tree else {
            return none;
        };
        let mut cells = BTreeMap::new();
        for node in tree
            .descendants()
            .filter(|node| node.has_tag_name((MAIN, "c")))
        {
            let in_row = node
                .ancestors()
                .any(|node| node.has_tag_name((MAIN, "row")));
            if let Some(at) = node.attribute("r").filter(|_| in_row) {
                cells.entry(at.to_owned()).or_insert_with(|| Raw {
                    kind: node.attribute("t").map(str::to_owned),
                    value: child(node, "v").map(as_value),
                    inline: child(node, "is").map(as_value),
                });
            }
        }
        Self {
            cells,
            shared: shared.unwrap_or_default(),
        }
    }

    /// What stands in a cell, null where nothing does, `read_cell_value`.
    pub(super) fn value(&self, place: Place) -> Result<Value, MetricError> {
        let Some(cell) = self.cells.get(&coordinate(place)) else {
            return Ok(Value::Null);
        };
        let broken = || raised("what stands in a cell is no text");
        let text = || -> Result<Option<&str>, MetricError> {
            let value = cell.value.as_ref();
            value
                .map(|value| value.as_str().ok_or_else(broken))
                .transpose()
        };
        match cell.kind.as_deref() {
            None | Some("n") => {
                let number = text()?.and_then(python::parse_float);
                Ok(number.map_or(Value::Null, Value::from))
            }
            Some("s") => {
                let Some(at) = text()?.and_then(|text| text.parse::<usize>().ok()) else {
                    return Ok(Value::Null);
                };
                let shared = self.shared.get(at);
                Ok(shared
                    .ok_or_else(|| raised("no such shared text"))?
                    .as_str()
                    .into())
            }
            Some("str" | "e") => Ok(cell.value.clone().unwrap_or_default()),
            Some("inlineStr") => match &cell.inline {
                None => Ok(Value::Null),
                Some(Value::Object(inline)) => Ok(inline.get("t").cloned().unwrap_or_default()),
                Some(_) => Err(broken()),
            },
            Some(_) => Ok(Value::Null),
        }
    }
}

/// The part of a sheet's number.
fn part_of(archive: &mut Archive<'_>, title: &str) -> Option<String> {
    let text = archive.read_text("xl/workbook.xml")?;
    let tree = Document::parse(bare(&text)).ok()?;
    let mut sheets = tree.descendants().filter(|node| {
        let parent = node.parent_element();
        node.has_tag_name((MAIN, "sheet"))
            && parent.is_some_and(|parent| parent.has_tag_name((MAIN, "sheets")))
    });
    let sheet = sheets.rfind(|sheet| sheet.attribute("name") == Some(title))?;
    let number = sheet.attribute("sheetId").unwrap_or("None");
    Some(format!("xl/worksheets/sheet{number}.xml"))
}

/// Shared texts with all that is in them; none at all if one of their elements is empty.
fn shared_texts(text: &str) -> Option<Vec<String>> {
    let tree = Document::parse(bare(text)).ok()?;
    let items = tree.descendants().filter(|node| {
        let parent = node.parent_element();
        node.has_tag_name((MAIN, "si"))
            && parent.is_some_and(|parent| parent.has_tag_name((MAIN, "sst")))
    });
    let texts = items.map(|item| {
        let texts = item
            .descendants()
            .filter(|node| node.has_tag_name((MAIN, "t")));
        texts.map(|text| text.text()).collect::<Option<String>>()
    });
    texts.collect()
}

/// An element as `xmltodict` has it: its text without blanks around it, or an object where it has
/// attributes or other elements; null where it has nothing.
fn as_value(node: Node<'_, '_>) -> Value {
    let mut object = Map::new();
    for attribute in node.attributes() {
        let space = attribute.namespace().map(|space| format!("{space}:"));
        let name = format!("@{}{}", space.unwrap_or_default(), attribute.name());
        object.insert(name, attribute.value().into());
    }
    for child in node.children().filter(Node::is_element) {
        let value = as_value(child);
        match object.get_mut(child.tag_name().name()) {
            None => {
                object.insert(child.tag_name().name().to_owned(), value);
            }
            Some(Value::Array(several)) => several.push(value),
            Some(one) => *one = Value::Array(vec![one.take(), value]),
        }
    }
    let texts = node.children().filter(Node::is_text);
    let text: String = texts.filter_map(|text| text.text()).collect();
    let text = python::strip(&text);
    match (object.is_empty(), text.is_empty()) {
        (true, true) => Value::Null,
        (true, false) => text.into(),
        (false, true) => object.into(),
        (false, false) => {
            object.insert("#text".into(), text.into());
            object.into()
        }
    }
}

/// Sparklines of a sheet: where each stands, and what it draws. A file that is no archive has none.
pub(super) fn sparklines(
    bytes: &[u8],
    title: &str,
) -> Result<BTreeMap<String, String>, MetricError> {
    let Some(mut archive) = Archive::open(bytes) else {
        return Ok(BTreeMap::new());
    };
    let missing = || raised(format!("there is no sheet {title:?}"));
    let part = part_of(&mut archive, title).ok_or_else(missing)?;
    let text = archive.read_text(&part).ok_or_else(missing)?;
    let tree = Document::parse(bare(&text)).map_err(|error| raised(format!("not XML: {error}")))?;
    let sparklines = tree
        .descendants()
        .filter(|node| node.has_tag_name((MORE, "sparkline")));
    sparklines
        .map(|node| {
            let said = |name: &'static str| {
                let child = node
                    .children()
                    .find(|child| child.has_tag_name((EXCEL, name)));
                let child = child.ok_or_else(|| raised(format!("a sparkline lacks {name}")))?;
                Ok(python::strip(child.text().unwrap_or_default()).to_owned())
            };
            Ok((said("sqref")?, said("f")?))
        })
        .collect()
}
