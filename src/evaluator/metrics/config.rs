//! Metrics over configuration files of other formats.

use roxmltree::{Document, Node};
use serde_json::Value;

use super::python::{self, raised};
use super::{Call, MetricError, rule, score};

/// A line of GIMP's configuration names a key, or a key and a second word, and a value.
pub(super) fn check_config_status(call: &Call<'_>) -> Result<f64, MetricError> {
    let Some(text) = call.text()? else {
        return Ok(0.0);
    };
    let (key, value) = (
        rule::entry(call.rules()?, "key"),
        rule::entry(call.rules()?, "value"),
    );
    for line in python::lines_with_ends(&text) {
        if line.starts_with('#') || line == "\n" {
            continue;
        }
        let bare = python::strip(line)
            .trim_start_matches('(')
            .trim_end_matches([')', '\n']);
        let words: Vec<&str> = python::words(bare).collect();
        let wanted: Vec<Option<&str>> = match key.clone()? {
            Value::String(key) => vec![Some(key.as_str())],
            Value::Array(keys) if keys.len() == 2 => keys.iter().map(Value::as_str).collect(),
            _ => return Ok(0.0),
        };
        // The reference looks at the second word only where the first is right.
        let mut is_met = true;
        for (at, wanted) in wanted.iter().enumerate() {
            let missing = || raised(format!("line {line:?} has too few words"));
            is_met = is_met && Some(*words.get(at).ok_or_else(missing)?) == *wanted;
            if !is_met {
                break;
            }
        }
        if is_met && words.last().copied() == value.clone()?.as_str() {
            return Ok(score(true));
        }
    }
    Ok(0.0)
}

/// The namespace of LibreOffice's settings.
const OFFICE: &str = "http://openoffice.org/2001/registry";

/// A settings file of LibreOffice, `registrymodifications.xcu`.
fn settings(text: &str) -> Result<Document<'_>, MetricError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    Document::parse(text).map_err(|error| raised(format!("not XML: {error}")))
}

/// Elements of a name below the root that bear an attribute of LibreOffice's.
fn marked<'a, 'i>(
    root: Node<'a, 'i>,
    name: &'static str,
    attribute: &'static str,
    value: &'static str,
) -> impl Iterator<Item = Node<'a, 'i>> {
    let is_marked = move |node: &Node<'_, '_>| {
        node.has_tag_name(name) && node.attribute((OFFICE, attribute)) == Some(value)
    };
    root.descendants().skip(1).filter(is_marked)
}

/// LibreOffice saves by itself every so many `minutes`. Departs: XML in encodings other than UTF-8
/// or with a document type declaration has no score here.
pub(super) fn check_auto_saving_time(call: &Call<'_>) -> Result<f64, MetricError> {
    let minutes = rule::entry(call.rules()?, "minutes")?;
    let text = call
        .text()?
        .ok_or_else(|| raised("there are no settings"))?;
    let tree = settings(&text)?;
    let path = "/org.openoffice.Office.Common/Save/Document";
    let mut found = None;
    for item in marked(tree.root_element(), "item", "path", path) {
        if let Some(prop) = marked(item, "prop", "name", "AutoSaveTimeIntervall").next() {
            let value = prop
                .descendants()
                .skip(1)
                .find(|node| node.has_tag_name("value"));
            found = value
                .ok_or_else(|| raised("the setting has no value"))?
                .text();
        }
    }
    let Some(found) = found else {
        return Ok(0.0);
    };
    let found = python::to_int(&Value::String(found.to_owned()));
    let found = found.ok_or_else(|| raised("the setting is no number"))?;
    Ok(score(python::equal(&found.into(), minutes)))
}

/// Impress shows no presenter's screen. What cannot be read does not say so.
pub(super) fn check_presenter_console_disable(call: &Call<'_>) -> Result<f64, MetricError> {
    call.file()?;
    let Ok(Some(text)) = call.text() else {
        return Ok(0.0);
    };
    let Ok(tree) = settings(&text) else {
        return Ok(0.0);
    };
    let path = "/org.openoffice.Office.Impress/Misc/Start";
    let mut items = marked(tree.root_element(), "item", "path", path);
    let prop = items.find_map(|item| {
        let is_it = |node: &Node<'_, '_>| {
            let name = node.attribute((OFFICE, "name"));
            node.has_tag_name("prop") && name == Some("EnablePresenterScreen")
        };
        item.children().find(is_it)
    });
    let value = prop.and_then(|prop| prop.children().find(|node| node.has_tag_name("value")));
    let value = value.and_then(|value| value.text());
    Ok(score(
        value.is_some_and(|value| value.to_lowercase() == "false"),
    ))
}

/// Writer's default font is `font_name`.
pub(super) fn find_default_font(call: &Call<'_>) -> Result<f64, MetricError> {
    let expected = rule::entry(call.rules()?, "font_name")?;
    if call.file()?.is_none() {
        return Ok(0.0);
    }
    let mut found = None;
    // What cannot be read has no font, which is caught there.
    let text = call.text().ok().flatten().unwrap_or_default();
    if let Ok(tree) = settings(&text) {
        let path = "/org.openoffice.Office.Writer/DefaultFont";
        for item in marked(tree.root_element(), "item", "path", path) {
            for prop in marked(item, "prop", "name", "Standard") {
                for value in prop.children().filter(|node| node.has_tag_name("value")) {
                    found = value.text().map(str::to_owned);
                }
            }
        }
    }
    Ok(score(found.as_deref() == expected.as_str()))
}
