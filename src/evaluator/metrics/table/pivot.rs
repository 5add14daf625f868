//! Pivot tables of a sheet.

use std::collections::BTreeSet;

use roxmltree::Node;
use serde_json::{Value, json};

use super::super::MetricError;
use super::super::package::Relation;
use super::super::python::raised;
use super::book::{Parts, related, relation_id};
use super::range::place;
use super::xml::{child, children, flag, flag_of, int_of, parse};

/// Where a pivot table takes its data from.
pub(super) struct Cache {
    id: i64,
    /// Kind of the source, range and sheet; the range is none where it is no worksheet's.
    source: (String, Option<String>, String),
}

/// A pivot table, with the properties that rules may name.
pub(super) struct Pivot {
    name: Option<String>,
    /// Flags `visualTotals`, `showEmptyRow`, `showEmptyCol`, `showHeaders`.
    flags: [bool; 4],
    location: Value,
    /// Of each field, the items that may be chosen: whether one is hidden, and its number.
    fields: Vec<Vec<(Option<bool>, i64)>>,
    /// Fields that the whole table is filtered by, that make columns, and that make rows.
    filters: BTreeSet<i64>,
    columns: Vec<i64>,
    rows: Vec<i64>,
    data: Vec<DataField>,
    source: (String, Option<String>, String),
}

struct DataField {
    field: i64,
    name: Option<String>,
    subtotal: String,
    shown_as: String,
}

/// What a book's pivot tables take their data from.
pub(super) fn caches(
    parts: &mut Parts<'_>,
    workbook: Node<'_, '_>,
    relations: &[Relation],
) -> Result<Vec<Cache>, MetricError> {
    let mut caches = Vec::new();
    let listed = child(workbook, "pivotCaches").into_iter();
    for node in listed.flat_map(|list| children(list, "pivotCache")) {
        let id = relation_id(node).unwrap_or_default();
        let text = parts.text(&related(relations, id)?.target)?;
        let tree = parse(&text)?;
        let source = child(tree.root_element(), "cacheSource");
        let source = source.ok_or_else(|| raised("a pivot table has no source"))?;
        let sheet = child(source, "worksheetSource");
        let said = |name| {
            sheet
                .and_then(|sheet| sheet.attribute(name))
                .map(str::to_owned)
        };
        let kind = source.attribute("type").unwrap_or_default().to_owned();
        caches.push(Cache {
            id: int_of(node, "cacheId")?.unwrap_or(0),
            // A sheet that is not named is `None` in the text that tells sources apart.
            source: (kind, said("ref"), said("sheet").unwrap_or("None".into())),
        });
    }
    Ok(caches)
}

/// A pivot table's part.
pub(super) fn read(text: &str, caches: &[Cache]) -> Result<Pivot, MetricError> {
    let tree = parse(text)?;
    let root = tree.root_element();
    let needed = |node, name| -> Result<i64, MetricError> {
        int_of(node, name)?.ok_or_else(|| raised(format!("a pivot table lacks {name}")))
    };
    let listed = |list, item| {
        let list = child(root, list).into_iter();
        list.flat_map(move |list| children(list, item))
    };
    let numbers = |list, item, name| -> Result<Vec<i64>, MetricError> {
        listed(list, item).map(|node| needed(node, name)).collect()
    };
    let id = needed(root, "cacheId")?;
    let cache = caches.iter().rev().find(|cache| cache.id == id);
    let cache = cache.ok_or_else(|| raised("a pivot table's source is missing"))?;
    let mut fields = Vec::new();
    for field in listed("pivotFields", "pivotField") {
        let items = child(field, "items").into_iter();
        let mut kept = Vec::new();
        for item in items.flat_map(|items| children(items, "item")) {
            if let Some(number) = int_of(item, "x")? {
                kept.push((item.attribute("h").map(flag), number));
            }
        }
        fields.push(kept);
    }
    let text = |node: Node<'_, '_>, name, default: &str| {
        node.attribute(name).unwrap_or(default).to_owned()
    };
    let mut data = Vec::new();
    for node in listed("dataFields", "dataField") {
        data.push(DataField {
            field: needed(node, "fld")?,
            name: node.attribute("name").map(str::to_owned),
            subtotal: text(node, "subtotal", "sum"),
            shown_as: text(node, "showDataAs", "normal"),
        });
    }
    let location = child(root, "location").map(|node| {
        let said = node.attributes();
        let said = said.map(|said| (said.name().to_owned(), Value::from(said.value())));
        Value::Object(said.collect())
    });
    let flags = [
        ("visualTotals", true),
        ("showEmptyRow", false),
        ("showEmptyCol", false),
        ("showHeaders", true),
    ];
    Ok(Pivot {
        name: root.attribute("name").map(str::to_owned),
        flags: flags.map(|(name, default)| flag_of(root, name, default)),
        location: location.unwrap_or_default(),
        fields,
        filters: numbers("pageFields", "pageField", "fld")?
            .into_iter()
            .collect(),
        columns: numbers("colFields", "field", "x")?,
        rows: numbers("rowFields", "field", "x")?,
        data,
        source: cache.source.clone(),
    })
}

impl Pivot {
    /// Fields before the first that has items, and after the last: they are not counted, so that
    /// a wider source is the same one.
    fn margins(&self) -> (usize, usize) {
        let has_items = |items: &Vec<_>| !items.is_empty();
        let before = self.fields.iter().position(has_items);
        let last = self.fields.iter().rposition(has_items);
        match before.zip(last) {
            Some((before, last)) => (before, self.fields.len() - 1 - last),
            None => (self.fields.len(), 0),
        }
    }

    /// Its data's source without those fields, as a text.
    pub(super) fn source(&self) -> Result<String, MetricError> {
        let (before, after) = self.margins();
        let (kind, range, sheet) = &self.source;
        let ends = range.as_deref().and_then(|range| range.split_once(':'));
        let ends = ends.and_then(|(first, last)| place(first).zip(place(last)));
        let (first, last) = ends.ok_or_else(|| raised("a pivot table's source is no range"))?;
        let columns = (
            i64::from(first.1) + before as i64,
            i64::from(last.1) - after as i64,
        );
        let (rows, sheet) = ((first.0, last.0), sheet.as_str());
        Ok(json!([kind, rows, columns, sheet]).to_string())
    }

    /// The properties that a rule names, `load_pivot_tables`.
    pub(super) fn properties(&self, names: &[&str]) -> Value {
        let is_named = |name: &str| names.contains(&name);
        let (before, after) = self.margins();
        let shift = |field: &i64| *field - before as i64;
        let mut info = serde_json::Map::new();
        let mut put = |name: &str, value: Value| {
            if is_named(name) {
                info.insert(name.to_owned(), value);
            }
        };
        put("name", self.name.clone().into());
        let flags = [
            "show_total",
            "show_empty_row",
            "show_empty_col",
            "show_headers",
        ];
        for (name, flag) in flags.into_iter().zip(self.flags) {
            put(name, flag.into());
        }
        put("location", self.location.clone());
        put("filter", json!(self.filters));
        put("col_fields", self.columns.iter().map(shift).collect());
        put("row_fields", self.rows.iter().map(shift).collect());
        let data = self.data.iter().map(|data| {
            let name = data.name.as_deref().unwrap_or("None");
            let name = if is_named("data_fields_name") {
                name
            } else {
                ""
            };
            json!([shift(&data.field), name, data.subtotal, data.shown_as])
        });
        put("data_fields", data.collect());
        if is_named("filter") || is_named("selection") {
            let kept = self.fields.get(before..self.fields.len() - after);
            let choices = kept.unwrap_or_default().iter().map(|items| {
                let mut items = items.clone();
                if !is_named("ordered") {
                    items.sort_unstable();
                    items.dedup();
                }
                json!(items)
            });
            info.insert("selection".into(), choices.collect());
        }
        info.into()
    }
}
