//! Metrics over VLC's configuration and window.

use roxmltree::{Document, Node};
use serde_json::Value;

use super::python::{self, raised};
use super::{Call, MetricError, rule, score};

/// The configuration's text. A missing file is no score: OSWorld opens it unasked.
fn config(call: &Call<'_>) -> Result<String, MetricError> {
    let file = call
        .file()?
        .ok_or_else(|| raised("there is no configuration"))?;
    let text = std::str::from_utf8(&file.bytes);
    text.map(str::to_owned)
        .map_err(|error| raised(format!("not UTF-8: {error}")))
}

/// What the last line that holds `marker` says after its last `=`.
fn last_setting<'a>(config: &'a str, marker: &str) -> Option<&'a str> {
    let line = config.split('\n').rfind(|line| line.contains(marker))?;
    Some(after_equals(line))
}

fn after_equals(line: &str) -> &str {
    python::strip(line.rsplit('=').next().unwrap_or_default())
}

/// A number or text of the rules, as it stands in the configuration.
fn expected(call: &Call<'_>, key: &str) -> Result<Option<String>, MetricError> {
    let value = rule::entry(call.rules()?, key)?;
    Ok(match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) => Some(python::to_text(value)),
        Value::Number(number) if !number.is_f64() => Some(number.to_string()),
        _ => None,
    })
}

/// A setting is what the rules' `expected_NAME` says; `default` where it is not set.
fn check_setting(
    call: &Call<'_>,
    name: &str,
    key: &str,
    default: &str,
) -> Result<f64, MetricError> {
    let config = config(call)?;
    let wanted = expected(call, key)?;
    let found = last_setting(&config, &format!("{name}=")).unwrap_or(default);
    Ok(score(wanted.as_deref() == Some(found)))
}

/// Whether the cone stands behind the playlist.
pub(super) fn check_qt_bgcone(call: &Call<'_>) -> Result<f64, MetricError> {
    check_setting(call, "qt-bgcone", "expected_qt_bgcone", "1")
}

/// How loud it goes.
pub(super) fn check_qt_max_volume(call: &Call<'_>) -> Result<f64, MetricError> {
    check_setting(call, "qt-max-volume", "expected_qt_max_volume", "125")
}

/// Whether the window is bare.
pub(super) fn check_qt_minimal_view(call: &Call<'_>) -> Result<f64, MetricError> {
    check_setting(call, "qt-minimal-view", "expected_qt_minimal_view", "0")
}

/// Whether a file opens in the window that is there.
pub(super) fn check_one_instance_when_started_from_file(
    call: &Call<'_>,
) -> Result<f64, MetricError> {
    let key = "expected_one_instance_when_started_from_file";
    check_setting(call, "one-instance-when-started-from-file", key, "1")
}

/// Whether a key plays and pauses from everywhere.
pub(super) fn check_global_key_play_pause(call: &Call<'_>) -> Result<f64, MetricError> {
    let config = config(call)?;
    let wanted = expected(call, "expected_global_key_play_pause")?;
    let key = last_setting(&config, "global-key-play-pause=").unwrap_or_default();
    let found = if key.is_empty() { "0" } else { "1" };
    Ok(score(wanted.as_deref() == Some(found)))
}

/// The colors of the volume's slider: those given, or all dark.
pub(super) fn check_qt_slider_colours(call: &Call<'_>) -> Result<f64, MetricError> {
    let config = config(call)?;
    let default = "153;210;153;20;210;20;255;199;15;245;39;29";
    let found = last_setting(&config, "qt-slider-colours").unwrap_or(default);
    let rules = call.rules()?;
    // Everything from here on is caught there, a missing rule too.
    match rules.get("type").and_then(Value::as_str) {
        Some("match") => {
            let wanted = rules
                .get("expected_qt_slider_colours")
                .and_then(Value::as_str);
            Ok(score(wanted == Some(found)))
        }
        Some("blackish") => {
            let number = |text: &str| python::to_int(&Value::String(text.to_owned()));
            let numbers: Option<Vec<i64>> = found.split(';').map(number).collect();
            // What is left over after whole colors is not looked at.
            let are_dark = |all: Vec<i64>| {
                all.chunks_exact(3)
                    .all(|color| color.iter().all(|part| *part < 100))
            };
            Ok(score(numbers.is_some_and(are_dark)))
        }
        // OSWorld's function returns nothing, which no score is made of.
        Some(other) => Err(raised(format!("no type is called {other:?}"))),
        None => Ok(0.0),
    }
}

/// The folder that recordings go to.
pub(super) fn is_vlc_recordings_folder(call: &Call<'_>) -> Result<f64, MetricError> {
    let config = config(call)?;
    let wanted = rule::entry(call.rules()?, "recording_file_path")?;
    let is_set = |line: &&str| !line.starts_with('#') && line.contains("input-record-path");
    let line = config.split('\n').find(is_set);
    Ok(score(line.is_some_and(|line| {
        wanted.as_str() == Some(after_equals(line))
    })))
}

/// The window is as large as the screen.
pub(super) fn is_vlc_fullscreen(call: &Call<'_>) -> Result<f64, MetricError> {
    let (window, screen) = (call.value()?, call.rules()?);
    if window.is_null() || screen.is_null() {
        return Ok(0.0);
    }
    for side in ["width", "height"] {
        let missing = || raised(format!("a size without {side:?}"));
        let found = window.get(side).ok_or_else(missing)?;
        if !python::equal(found, screen.get(side).ok_or_else(missing)?) {
            return Ok(0.0);
        }
    }
    Ok(1.0)
}

/// Where VLC's status names the file that plays: category and field.
const FILE_FIELDS: [(&str, &str); 5] = [
    ("meta", "filename"),
    ("meta", "title"),
    ("meta", "uri"),
    ("meta", "location"),
    ("meta", "name"),
];

/// Where it names the address that plays.
const ADDRESS_FIELDS: [(&str, &str); 8] = [
    ("meta", "url"),
    ("meta", "URI"),
    ("meta", "location"),
    ("meta", "title"),
    ("meta", "filename"),
    ("Stream 0", "Codec"),
    ("Stream 0", "Type"),
    ("Stream 0", "Language"),
];

/// VLC plays a file or an address, by its status page.
pub(super) fn is_vlc_playing(call: &Call<'_>) -> Result<f64, MetricError> {
    let status = config(call)?;
    let text = status.strip_prefix('\u{feff}').unwrap_or(&status);
    let tree = Document::parse(text).map_err(|error| raised(format!("not XML: {error}")))?;
    let root = tree.root_element();
    let state = root.children().find(|node| node.has_tag_name("state"));
    if state
        .ok_or_else(|| raised("the status has no state"))?
        .text()
        != Some("playing")
    {
        return Ok(0.0);
    }
    let rules = call.rules()?;
    match rule::text(rules, "type")? {
        "file_name" => {
            let Some(found) = first_field(root, &FILE_FIELDS) else {
                return Ok(0.0);
            };
            Ok(score(found.ends_with(rule::text(rules, "file_name")?)))
        }
        "url" => {
            let wanted = rule::text(rules, "url")?;
            let found = first_field(root, &ADDRESS_FIELDS);
            Ok(score(found.is_some_and(|found| is_address(found, wanted))))
        }
        _ => Ok(0.0),
    }
}

/// The first of some fields that says something.
fn first_field<'a>(root: Node<'a, '_>, fields: &[(&str, &str)]) -> Option<&'a str> {
    let named = |parent: Node<'a, '_>, tag: &str, name: &str| {
        let mut children = parent.children();
        children.find(|node| node.has_tag_name(tag) && node.attribute("name") == Some(name))
    };
    let information = root
        .children()
        .find(|node| node.has_tag_name("information"))?;
    fields.iter().find_map(|(category, field)| {
        named(named(information, "category", category)?, "info", field)?.text()
    })
}

/// Whether what plays is an address: it holds it, is its last part, or is below it.
fn is_address(found: &str, wanted: &str) -> bool {
    let (wanted_host, wanted_path) = host_and_path(wanted);
    let file = wanted_path.rsplit('/').next().unwrap_or_default();
    let (host, path) = host_and_path(found);
    let is_below = found.contains("://") && host == wanted_host && path.contains(wanted_path);
    found.contains(wanted) || found == file || is_below
}

/// Host and path of an address, without parameters, query and fragment, as `urlparse` parts it.
fn host_and_path(address: &str) -> (&str, &str) {
    let rest = address.split_once(':').map_or(address, |(scheme, rest)| {
        let is_scheme = scheme
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
        if is_scheme && scheme.starts_with(|c: char| c.is_ascii_alphabetic()) {
            rest
        } else {
            address
        }
    });
    let end = |text: &str, marks: &[char]| text.find(marks).unwrap_or(text.len());
    let (host, rest) = match rest.strip_prefix("//") {
        Some(rest) => rest.split_at(end(rest, &['/', '?', '#'])),
        None => ("", rest),
    };
    let path = &rest[..end(rest, &['?', '#'])];
    // Parameters stand behind a semicolon of the last part.
    let last = path.rfind('/').map_or(0, |at| at + 1);
    (host, &path[..last + end(&path[last..], &[';'])])
}
