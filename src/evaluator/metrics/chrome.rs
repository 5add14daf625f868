//! Metrics over what Chrome shows and keeps. Those that compare addresses are in `address`.

use serde_json::Value;

use super::python::{self, is_in, raised};
use super::values::strings;
use super::{Call, MetricError, pattern, rule, score};

/// The rules' `type`.
fn kind<'a>(call: &Call<'a>) -> Result<&'a str, MetricError> {
    rule::text(call.rules()?, "type")
}

fn unknown(kind: &str) -> MetricError {
    MetricError::Rules(format!("no type is called {kind:?}"))
}

/// An entry that what was found has to have.
fn found<'a>(value: &'a Value, key: &str) -> Result<&'a Value, MetricError> {
    value
        .get(key)
        .ok_or_else(|| raised(format!("what was found lacks {key:?}")))
}

fn items<'a>(value: &'a Value, what: &str) -> Result<&'a [Value], MetricError> {
    let items = value.as_array().map(Vec::as_slice);
    items.ok_or_else(|| raised(format!("{what}: not a list")))
}

/// All patterns of `expected` are found in an address.
pub(super) fn is_expected_url_pattern_match(call: &Call<'_>) -> Result<f64, MetricError> {
    let value = call.value()?;
    let address = match value {
        Value::String(address) if !address.is_empty() => Some(address.as_str()),
        Value::Object(tab) if tab.contains_key("url") => tab["url"].as_str(),
        _ => return Ok(0.0),
    };
    for pattern in strings(rule::entry(call.rules()?, "expected")?)? {
        let address = address.ok_or_else(|| raised("the address is no text"))?;
        if !pattern::search(&pattern::compile(pattern)?, address)? {
            return Ok(0.0);
        }
    }
    Ok(1.0)
}

/// The pattern of `expect` is found in the active tab's address.
pub(super) fn is_expected_search_query(call: &Call<'_>) -> Result<f64, MetricError> {
    let value = call.value()?;
    if !python::is_true(value) {
        return Ok(0.0);
    }
    let pattern = pattern::compile(rule::text(
        rule::entry(call.rules()?, "expect")?,
        "pattern",
    )?)?;
    let address = found(value, "url")?;
    let address = address
        .as_str()
        .ok_or_else(|| raised("the address is no text"))?;
    Ok(score(pattern::search(&pattern, address)?))
}

/// All extensions of `expected` are installed.
pub(super) fn is_expected_installed_extensions(call: &Call<'_>) -> Result<f64, MetricError> {
    let installed = call.value()?;
    if !python::is_true(installed) {
        return Ok(0.0);
    }
    let expected = strings(rule::entry(call.rules()?, "expected")?)?;
    let installed = items(installed, "extensions")?;
    Ok(score(
        expected
            .iter()
            .all(|name| installed.iter().any(|one| one == name)),
    ))
}

/// What stands in Chrome's bookmark bar: the folders' names, the pages' addresses, or the
/// addresses in the folder "Liked Authors", where a list in `urls` allows any one of it.
pub(super) fn is_expected_bookmarks(call: &Call<'_>) -> Result<f64, MetricError> {
    let bookmarks = call.value()?;
    if !python::is_true(bookmarks) {
        return Ok(0.0);
    }
    let rules = call.rules()?;
    let kind = kind(call)?;
    let bar = found(found(bookmarks, "bookmark_bar")?, "children")?;
    match kind {
        "bookmark_bar_folders_names" => {
            let names = fields(bar, "folder", "name")?;
            Ok(score(same_set(&names, rule::list(rules, "names")?)))
        }
        "bookmark_bar_websites_urls" => {
            let addresses = fields(bar, "url", "url")?;
            Ok(score(same_set(&addresses, rule::list(rules, "urls")?)))
        }
        "liked_authors_websites_urls" => {
            let mut folder = None;
            for one in items(bar, "bookmarks")? {
                if found(one, "type")? == "folder" && found(one, "name")? == "Liked Authors" {
                    folder = Some(one);
                    break;
                }
            }
            let Some(folder) = folder else {
                return Ok(0.0);
            };
            let addresses = fields(found(folder, "children")?, "url", "url")?;
            Ok(score(is_choice(&addresses, rule::list(rules, "urls")?)))
        }
        other => Err(unknown(other)),
    }
}

/// A field of all bookmarks of a kind.
fn fields<'a>(bar: &'a Value, kind: &str, field: &str) -> Result<Vec<&'a Value>, MetricError> {
    let mut fields = Vec::new();
    for one in items(bar, "bookmarks")? {
        if found(one, "type")? == kind {
            fields.push(found(one, field)?);
        }
    }
    Ok(fields)
}

fn same_set(found: &[&Value], expected: &[Value]) -> bool {
    found.iter().all(|one| expected.contains(one))
        && expected.iter().all(|one| found.contains(&one))
}

/// Whether taking one of each list of `choices` can give the set that was found.
fn is_choice(found: &[&Value], choices: &[Value]) -> bool {
    let options = |choice: &Value| match choice {
        Value::Array(options) => options.clone(),
        one => vec![one.clone()],
    };
    let choices: Vec<Vec<Value>> = choices.iter().map(options).collect();
    let mut at = vec![0; choices.len()];
    if choices.iter().any(Vec::is_empty) {
        return false;
    }
    loop {
        let chosen: Vec<Value> = choices
            .iter()
            .zip(&at)
            .map(|(all, i)| all[*i].clone())
            .collect();
        if same_set(found, &chosen) {
            return true;
        }
        let next = choices.iter().zip(&mut at).any(|(all, i)| {
            *i = (*i + 1) % all.len();
            *i != 0
        });
        if !next {
            return false;
        }
    }
}

/// A file on the desktop starts what it has to, by its `Name` or `Exec`.
pub(super) fn is_shortcut_on_desktop(call: &Call<'_>) -> Result<f64, MetricError> {
    let shortcuts = call
        .value()?
        .as_object()
        .ok_or_else(|| raised("no shortcuts"))?;
    let (entry, key) = match kind(call)? {
        "name" => ("Name", "name"),
        "exec" => ("Exec", "exec"),
        other => return Err(unknown(other)),
    };
    for content in shortcuts.values() {
        let line = format!("{entry}={}\n", rule::text(call.rules()?, key)?);
        if is_in(&line.into(), content)? {
            return Ok(1.0);
        }
    }
    Ok(0.0)
}

/// No address of the history holds one of `keywords`.
pub(super) fn check_history_deleted(call: &Call<'_>) -> Result<f64, MetricError> {
    match kind(call)? {
        "keywords" => {}
        other => return Err(unknown(other)),
    }
    let first = |visit: &'_ Value| -> Result<Value, MetricError> {
        let address = items(visit, "a visit")?.first();
        address
            .cloned()
            .ok_or_else(|| raised("a visit without address"))
    };
    let visits = items(call.value()?, "history")?.iter().map(first);
    let visits: Vec<Value> = visits.collect::<Result<_, _>>()?;
    for keyword in rule::list(call.rules()?, "keywords")? {
        for visit in &visits {
            if is_in(keyword, visit)? {
                return Ok(0.0);
            }
        }
    }
    Ok(1.0)
}

/// The experiments that are on are `names`, in order.
pub(super) fn check_enabled_experiments(call: &Call<'_>) -> Result<f64, MetricError> {
    let experiments = items(call.value()?, "experiments")?
        .iter()
        .map(Value::as_str);
    let experiments: Option<Vec<&str>> = experiments.collect();
    let experiments = experiments.ok_or_else(|| raised("an experiment is no text"))?;
    match kind(call)? {
        "names" => {}
        other => return Err(unknown(other)),
    }
    let names = experiments
        .iter()
        .map(|name| name.split('@').next().unwrap_or_default());
    let expected = strings(rule::entry(call.rules()?, "names")?)?;
    Ok(score(names.eq(expected)))
}

/// The font size is `value`, or between `min` and `max`.
pub(super) fn check_font_size(call: &Call<'_>) -> Result<f64, MetricError> {
    let size = found(call.value()?, "default_font_size")?;
    let rules = call.rules()?;
    match kind(call)? {
        "value" => Ok(score(python::equal(size, rule::entry(rules, "value")?))),
        "range" => {
            let number = |value: &Value| {
                python::worth(value).ok_or_else(|| raised(format!("{value} is no number")))
            };
            let min = number(rule::entry(rules, "min")?)?;
            let max = number(rule::entry(rules, "max")?)?;
            let size = number(size)?;
            Ok(score(min < size && size < max))
        }
        other => Err(unknown(other)),
    }
}

/// The page names all of `items`.
pub(super) fn is_added_to_steam_cart(call: &Call<'_>) -> Result<f64, MetricError> {
    let wanted = rule::entry(call.rules()?, "items")?.clone();
    let content = found(call.value()?, "content")?;
    for item in items(&wanted, "\"items\"")? {
        if !is_in(item, content)? {
            return Ok(0.0);
        }
    }
    Ok(1.0)
}
