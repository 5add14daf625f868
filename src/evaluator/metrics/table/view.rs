//! How a sheet is shown and used: panes, zoom, rows and columns, filters, checks on what is typed.

use std::collections::BTreeMap;

use roxmltree::{Document, Node};
use serde_json::{Map, Value, json};

use super::super::python::raised;
use super::super::{MetricError, rule};
use super::book::Sheet;
use super::range::{Range, letters};
use super::xml::{child, children, flag, flag_of, float_of, int_of, parse};

/// Width of a column that is not told, characters.
const WIDTH: f64 = 13.0;

/// The last element of a name, below the root or deeper.
fn last<'a, 'i: 'a>(tree: &'a Document<'i>, name: &str) -> Option<Node<'a, 'i>> {
    let namespace = tree.root_element().tag_name().namespace();
    let is_it = |node: &Node<'_, '_>| {
        node.tag_name().name() == name && node.tag_name().namespace() == namespace
    };
    tree.descendants().rfind(is_it)
}

/// How a sheet is shown.
pub(super) struct View {
    /// The first cell that does not stand still, null where none does.
    pub(super) frozen_at: Value,
    /// Per cent.
    pub(super) zoom: f64,
}

impl View {
    /// A sheet's first view.
    pub(super) fn read(tree: &Document<'_>) -> Result<Self, MetricError> {
        let no_view = || raised("the sheet has no view");
        let views = last(tree, "sheetViews");
        let view = views.map(|views| child(views, "sheetView").ok_or_else(no_view));
        let view = view.transpose()?;
        let pane = view.and_then(|view| child(view, "pane"));
        let zoom = view.map(|view| int_of(view, "zoomScale")).transpose()?;
        let zoom = zoom.flatten().filter(|zoom| *zoom != 0).unwrap_or(100);
        Ok(Self {
            frozen_at: pane.and_then(|pane| pane.attribute("topLeftCell")).into(),
            zoom: zoom as f64,
        })
    }
}

/// Properties of the rows, or columns, that a sheet says something of, by number or letters.
pub(super) fn dimensions(
    sheet: &Sheet,
    of_rows: bool,
    names: &[&str],
) -> Result<BTreeMap<String, Vec<Value>>, MetricError> {
    let tree = parse(&sheet.xml)?;
    let name = if of_rows { "row" } else { "col" };
    let nodes = tree
        .descendants()
        .filter(|node| node.tag_name().name() == name);
    let mut found = BTreeMap::new();
    let mut number = 0;
    for node in nodes {
        let key = if of_rows {
            number = int_of(node, "r")?.unwrap_or(number + 1);
            let mut said = node.attributes();
            if !said
                .any(|said| said.namespace().is_none() && !["r", "spans"].contains(&said.name()))
            {
                continue;
            }
            number.to_string()
        } else {
            let first = int_of(node, "min")?.ok_or_else(|| raised("a column has no number"))?;
            letters(u32::try_from(first).unwrap_or_default())
        };
        let read = |name: &&str| dimension(node, of_rows, name);
        found.insert(key, names.iter().map(read).collect::<Result<_, _>>()?);
    }
    Ok(found)
}

fn dimension(node: Node<'_, '_>, of_rows: bool, name: &str) -> Result<Value, MetricError> {
    let flag = |name| Ok(flag_of(node, name, false).into());
    match (of_rows, name) {
        (_, "hidden" | "collapsed") | (true, "thickBot" | "thickTop") | (false, "bestFit") => {
            flag(name)
        }
        (_, "outlineLevel" | "outline_level") => {
            Ok(int_of(node, "outlineLevel")?.unwrap_or(0).into())
        }
        (true, "height" | "ht") => Ok(float_of(node, "ht")?.into()),
        (false, "auto_size") => flag("bestFit"),
        (false, "width") => Ok(float_of(node, "width")?.unwrap_or(WIDTH).into()),
        (false, "min" | "max") => Ok(int_of(node, name)?.into()),
        _ => Err(raised(format!("rows or columns have no {name:?}"))),
    }
}

/// What a sheet's rows are filtered and sorted by, `load_filters`.
pub(super) fn filters(sheet: &Sheet) -> Result<Value, MetricError> {
    let tree = parse(&sheet.xml)?;
    let Some(filter) = last(&tree, "autoFilter") else {
        return Ok(json!({"ref": null, "columns": []}));
    };
    let mut columns = Vec::new();
    for column in children(filter, "filterColumn") {
        let id = int_of(column, "colId")?.ok_or_else(|| raised("a filter has no column"))?;
        columns.push((id, filter_column(column)));
    }
    columns.sort_by_key(|(id, _)| *id);
    let sort = child(filter, "sortState").map(|sort| {
        let said = ["sortMethod", "ref"].map(|name| sort.attribute(name));
        let flags = ["columnSort", "caseSensitive"].map(|name| sort.attribute(name).map(flag));
        let conditions = children(sort, "sortCondition").map(|condition| {
            let names = ["sortBy", "ref", "customList", "dxfId", "iconSet", "iconId"];
            let said = names.map(|name| condition.attribute(name));
            json!([condition.attribute("descending").map(flag), said])
        });
        json!([said, flags, conditions.collect::<Value>()])
    });
    Ok(json!({"ref": filter.attribute("ref"), "columns": columns, "sort": sort}))
}

fn filter_column(column: Node<'_, '_>) -> Value {
    let mut found = Map::new();
    found.insert(
        "hidden".into(),
        flag_of(column, "hiddenButton", false).into(),
    );
    found.insert("shown".into(), flag_of(column, "showButton", true).into());
    let set = |node, name, attributes: &[&str]| {
        let items = children(node, name);
        let item = |node: Node<'_, '_>| -> Vec<Option<String>> {
            let said = attributes.iter().map(|name| node.attribute(*name));
            said.map(|said| said.map(str::to_owned)).collect()
        };
        let mut items: Vec<_> = items.map(item).collect();
        items.sort();
        items.dedup();
        json!(items)
    };
    if let Some(filters) = child(column, "filters") {
        found.insert("blank".into(), filters.attribute("blank").map(flag).into());
        found.insert("values".into(), set(filters, "filter", &["val"]));
    }
    if let Some(filters) = child(column, "customFilters") {
        found.insert("and".into(), filters.attribute("and").map(flag).into());
        // The comparison is for equality where none is said.
        let pairs = set(filters, "customFilter", &["operator", "val"]);
        let text = pairs.to_string().replace("[null,", "[\"equal\",");
        found.insert("custom".into(), text.into());
    }
    found.into()
}

/// Whether each check on what is typed into cells is one of those that a rule asks for, and there
/// are at least as many.
pub(super) fn validations_fit(sheet: &Sheet, wanted: &[Value]) -> Result<bool, MetricError> {
    let tree = parse(&sheet.xml)?;
    let list = last(&tree, "dataValidations").into_iter();
    let found: Vec<_> = list
        .flat_map(|list| children(list, "dataValidation"))
        .collect();
    if found.len() < wanted.len() {
        return Ok(false);
    }
    'found: for node in found {
        for wanted in wanted {
            if validation_fits(node, wanted)? {
                continue 'found;
            }
        }
        return Ok(false);
    }
    Ok(true)
}

fn validation_fits(node: Node<'_, '_>, wanted: &Value) -> Result<bool, MetricError> {
    let wrong = || MetricError::Rules(format!("{wanted} is no object"));
    for (name, rule) in wanted.as_object().ok_or_else(wrong)? {
        let fits = if ["ranges", "sqref", "cells"].contains(&name.as_str()) {
            let found = Range::parse_all(node.attribute("sqref").unwrap_or_default())?;
            ranges_fit(&found, rule)?
        } else {
            rule::value_fits(&validation(node, name)?, rule)?
        };
        if !fits {
            return Ok(false);
        }
    }
    Ok(true)
}

fn validation(node: Node<'_, '_>, name: &str) -> Result<Value, MetricError> {
    Ok(match name {
        "showDropDown" | "hide_drop_down" => flag_of(node, "showDropDown", false).into(),
        "allowBlank" | "allow_blank" => flag_of(node, "allowBlank", false).into(),
        "showInputMessage" | "showErrorMessage" => flag_of(node, name, false).into(),
        "type" | "validation_type" | "errorStyle" | "imeMode" | "operator" => {
            let name = if name == "validation_type" {
                "type"
            } else {
                name
            };
            node.attribute(name).filter(|text| *text != "none").into()
        }
        "errorTitle" | "error" | "promptTitle" | "prompt" => node.attribute(name).into(),
        "formula1" | "formula2" => {
            let names = [("formula1"), ("formula2")];
            let known = names.into_iter().find(|known| *known == name);
            known
                .and_then(|name| child(node, name))
                .and_then(|node| node.text())
                .into()
        }
        _ => return Err(raised(format!("checks have no {name:?}"))),
    })
}

/// Whether ranges cover the first of a rule's ranges and lie within the second, or are the same.
fn ranges_fit(found: &[Range], rule: &Value) -> Result<bool, MetricError> {
    let reference = rule::entry(rule, "ref")?;
    let ranges = |value: &Value| {
        let wrong = || MetricError::Rules(format!("{value} is no range of cells"));
        Range::parse_all(value.as_str().ok_or_else(wrong)?)
    };
    let are_within =
        |left: &[Range], right: &[Range]| left.iter().all(|range| range.is_within(right));
    match rule::text(rule, "method")? {
        "spreadsheet_range" => {
            let wrong = || MetricError::Rules("\"spreadsheet_range\" takes two ranges".into());
            let (least, most) = reference.get(0).zip(reference.get(1)).ok_or_else(wrong)?;
            Ok(are_within(&ranges(least)?, found) && are_within(found, &ranges(most)?))
        }
        "eq" | "ne" if reference.is_string() => {
            let wanted = ranges(reference)?;
            let is_same = found.iter().all(|range| wanted.contains(range))
                && wanted.iter().all(|range| found.contains(range));
            Ok(is_same == (rule::text(rule, "method")? == "eq"))
        }
        method => Err(MetricError::Rules(format!(
            "{method:?} compares no ranges of cells"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_lie_between_two_others() {
        let found = Range::parse_all("D2:D29 F1").unwrap();
        for (method, reference, fits) in [
            (
                "spreadsheet_range",
                json!(["D3:D4", "D1:D99 F1:F2"]),
                Some(true),
            ),
            (
                "spreadsheet_range",
                json!(["D1:D4", "D1:D99 F1:F2"]),
                Some(false),
            ),
            ("spreadsheet_range", json!(["D3:D4", "D1:D99"]), Some(false)),
            ("eq", json!("F1 D2:D29"), Some(true)),
            ("ne", json!("F1 D2:D29"), Some(false)),
            ("le", json!("F1"), None),
        ] {
            let rule = json!({"method": method, "ref": reference});
            assert_eq!(ranges_fit(&found, &rule).ok(), fits, "{rule}");
        }
    }
}
