//! The address that Chrome shows, by the accessibility tree, and what is read of it.

use percent_encoding::percent_decode_str;
use roxmltree::{Document, Node};
use serde_json::{Map, Value, json};

use crate::env::RealDesktop;
use crate::evaluator::found::Found;
use crate::evaluator::getters::{GetterError, failed, raised, value};
use crate::types::osworld::getter::{UrlParse, UrlPart, UrlPartForm};

/// The address in Chrome's address bar with what it shows it without; none where no bar is found.
pub(super) async fn address(
    desktop: RealDesktop<'_>,
    prefix: &str,
) -> Result<Option<String>, GetterError> {
    let tree = desktop.machine.guest().accessibility_tree().await;
    let tree = tree.map_err(failed)?;
    // OSWorld's parser takes no text that names an encoding; it makes nothing of that.
    if tree.starts_with("<?xml") && declares_encoding(&tree) {
        return Ok(None);
    }
    let tree = Document::parse(&tree)
        .map_err(|error| raised(format!("the accessibility tree is no XML: {error}")))?;
    let bars = ["Google Chrome", "Chromium"].map(|browser| bars(&tree, browser));
    let bars = bars.iter().find(|bars| !bars.is_empty());
    let Some((first, last)) = bars.and_then(|bars| Some((bars.first()?, bars.last()?))) else {
        return Ok(None);
    };
    // Whether the last has a text decides; the first one's is taken, and Python writes that it has
    // none as `None`.
    Ok(text(*last).map(|_| format!("{prefix}{}", text(*first).unwrap_or("None"))))
}

fn declares_encoding(tree: &str) -> bool {
    let head = tree.split("?>").next().unwrap_or_default();
    head.contains("encoding")
}

/// `application[name=BROWSER] entry[name="Address and search bar"]`.
fn bars<'a>(tree: &'a Document<'a>, browser: &str) -> Vec<Node<'a, 'a>> {
    let is = |node: &Node<'_, '_>, tag: &str, name: &str| {
        let its = node.tag_name();
        its.namespace().is_none() && its.name() == tag && node.attribute("name") == Some(name)
    };
    let entries = tree.descendants();
    let entries = entries.filter(|node| is(node, "entry", "Address and search bar"));
    let within = |node: &Node<'_, '_>| {
        let mut above = node.ancestors().skip(1);
        above.any(|node| is(&node, "application", browser))
    };
    entries.filter(within).collect()
}

/// What stands before the first thing within, if anything does.
fn text<'a>(node: Node<'a, 'a>) -> Option<&'a str> {
    let first = node.first_child().filter(Node::is_text)?;
    first.text().filter(|text| !text.is_empty())
}

/// `get_active_url_from_accessTree`.
pub(in crate::evaluator::getters) async fn active_url(
    desktop: RealDesktop<'_>,
    prefix: &str,
) -> Result<Found, GetterError> {
    let address = address(desktop, prefix).await?;
    Ok(Found::Value(address.into()))
}

/// `get_active_tab_url_parse`: the address's parameters.
pub(in crate::evaluator::getters) async fn url_parse(
    desktop: RealDesktop<'_>,
    how: &UrlParse,
) -> Result<Found, GetterError> {
    let Some(address) = address(desktop, &how.goto_prefix).await? else {
        return Ok(Found::NOTHING);
    };
    let address = plain(&address);
    let parameters = parameters(split(&address).query);
    let first = |key: &String| {
        let found = parameters.iter().find(|(name, _)| name == key);
        found.map_or_else(String::new, |(_, text)| text.clone())
    };
    let mut found: Map<String, Value> = Map::new();
    for key in &how.parse_keys {
        found.insert(key.clone(), first(key).into());
    }
    for (key, other) in &how.replace {
        let taken = found.shift_remove(key);
        let taken = taken.ok_or_else(|| raised(format!("{key:?} is not among \"parse_keys\"")))?;
        found.insert(other.clone(), taken);
    }
    if how.split_list {
        for entry in found.values_mut() {
            let text = entry.as_str().unwrap_or_default();
            *entry = text.split(',').collect();
        }
    }
    Ok(value(found))
}

/// `get_url_dashPart`: what stands between two slashes. Counted from the end it may not be there,
/// which raises.
pub(in crate::evaluator::getters) async fn url_dash_part(
    desktop: RealDesktop<'_>,
    part: &UrlPart,
) -> Result<Found, GetterError> {
    let Some(address) = address(desktop, &part.goto_prefix).await? else {
        return Ok(Found::NOTHING);
    };
    let parts: Vec<&str> = address.split('/').collect();
    let count = parts.len() as i64;
    let index = part.part_index;
    if index >= count {
        return Ok(Found::NOTHING);
    }
    let index = if index < 0 { index + count } else { index };
    let found = usize::try_from(index).ok().and_then(|at| parts.get(at));
    let mut found = *found.ok_or_else(|| raised(format!("{address} has {count} parts")))?;
    if part.need_delete_id {
        found = found.split('?').next().unwrap_or_default();
    }
    Ok(match part.return_type {
        UrlPartForm::String => value(found),
        UrlPartForm::Json => {
            let key = part.key.as_ref();
            let key = key.ok_or_else(|| raised("\"key\" is missing"))?;
            value(json!({ key.as_str(): found }))
        }
    })
}

/// `get_url_path_parse`, which is `get_macys_product_url_parse`: filters in a shop's address.
pub(in crate::evaluator::getters) async fn url_path_parse(
    desktop: RealDesktop<'_>,
    how: &UrlParse,
) -> Result<Found, GetterError> {
    let Some(address) = address(desktop, &how.goto_prefix).await? else {
        return Ok(Found::NOTHING);
    };
    let path = unquote(split(&plain(&address)).path);
    let flag = |is_so: bool| if is_so { json!(true) } else { Value::Null };
    let mut is_shirts = path.contains("shirts");
    let mut is_short = path.contains("short-sleeve");
    let mut filters: Map<String, Value> = Map::new();
    for (key, text) in filters_in(&path) {
        is_shirts |= key == "Product_department" && ["shirts", "Shirts", "Shirt"].contains(&text);
        is_short |= key == "Sleeve_length" && ["short-sleeve", "Short Sleeve"].contains(&text);
        let entry = match (key, text) {
            (_, "") => Value::Null,
            ("Price_discount_range", text) => text.split('|').map(strip).collect(),
            (_, text) => text.into(),
        };
        filters.insert(key.to_owned(), entry);
    }
    for key in ["Men_regular_size_t", "Price_discount_range"] {
        filters.entry(key).or_insert(Value::Null);
    }
    let mut found = Map::new();
    found.insert(
        "mens_clothing".to_owned(),
        flag(path.contains("mens-clothing")),
    );
    found.insert("shirts".to_owned(), flag(is_shirts));
    found.insert("short_sleeve".to_owned(), flag(is_short));
    for key in &how.parse_keys {
        let Some(filter) = filters.get(key) else {
            continue;
        };
        let entry = if key == "Price_discount_range" {
            json!(discount(filter))
        } else {
            filter.clone()
        };
        found.insert(key.clone(), entry);
    }
    Ok(value(found))
}

/// The first two parts of a path that both hold commas: names and what they are.
fn filters_in(path: &str) -> Vec<(&str, &str)> {
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    let pairs = parts.windows(2);
    let found = pairs
        .filter(|pair| pair.iter().all(|part| part.contains(',')))
        .map(|pair| (pair[0], pair[1]))
        .next();
    let found = found.map(|(keys, texts)| keys.split(',').zip(texts.split(',')));
    let found = found.into_iter().flatten();
    found.map(|(key, text)| (strip(key), strip(text))).collect()
}

/// Whether the only discounts are those of half the price and more.
fn discount(filter: &Value) -> &'static str {
    let has = |percent: u32| {
        let wanted = format!("{percent}_PERCENT_ off & more");
        let all = filter.as_array();
        all.is_some_and(|all| all.iter().any(|one| *one == wanted))
    };
    if has(50) && !has(30) && !has(20) {
        "50_PERCENT_ off & more"
    } else {
        "not_50_PERCENT_ off & more"
    }
}

/// `str.strip`.
fn strip(text: &str) -> &str {
    crate::evaluator::metrics::python::strip(text)
}

/// An address's path and parameters.
struct Split<'a> {
    path: &'a str,
    query: &'a str,
}

/// What `urlparse` takes off before it looks.
fn plain(address: &str) -> String {
    let address = address.trim_start_matches(|c: char| c <= ' ');
    address.replace(['\t', '\r', '\n'], "")
}

/// `urlparse`, of which parameters after a semicolon are no part of the path.
fn split(address: &str) -> Split<'_> {
    let is_scheme = |scheme: &str| {
        let mut chars = scheme.chars();
        chars.next().is_some_and(|c| c.is_ascii_alphabetic())
            && chars.all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    };
    let parted = address.split_once(':');
    let rest = parted
        .filter(|(scheme, _)| is_scheme(scheme))
        .map_or(address, |(_, rest)| rest);
    let rest = match rest.strip_prefix("//") {
        Some(rest) => rest.find(['/', '?', '#']).map_or("", |at| &rest[at..]),
        None => rest,
    };
    let rest = rest.split('#').next().unwrap_or_default();
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let last = path.rfind('/').unwrap_or(0);
    let end = path[last..].find(';').map_or(path.len(), |at| last + at);
    Split {
        path: &path[..end],
        query,
    }
}

/// `parse_qs`: what is empty is none.
fn parameters(query: &str) -> Vec<(String, String)> {
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let pairs = pairs.filter(|(_, text)| !text.is_empty());
    pairs
        .map(|(key, text)| (unquote_plus(key), unquote_plus(text)))
        .collect()
}

fn unquote_plus(text: &str) -> String {
    unquote(&text.replace('+', " "))
}

/// `urllib.parse.unquote`.
pub(super) fn unquote(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}
