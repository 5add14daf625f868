//! Chrome's settings, of the JSON files in its profile; starters on the desktop.
//!
//! Where a file is missing or is no JSON, or something in it is of another kind than it should be,
//! OSWorld's getters take a default, each its own. Departs: `NaN`, `Infinity`, halves of surrogate
//! pairs, UTF-16 and what is nested deeper than 128 are no JSON here; Python reads them.

use serde_json::{Map, Value, json};

use crate::env::RealDesktop;
use crate::env::guest::{Child, Entry};
use crate::evaluator::found::Found;
use crate::evaluator::getters::{GetterError, files, raised, value};
use crate::evaluator::metrics::python::{equal, is_true};

const PREFERENCES: &str = "~/.config/google-chrome/Default/Preferences";
const BOOKMARKS: &str = "~/.config/google-chrome/Default/Bookmarks";
const LOCAL_STATE: &str = "~/.config/google-chrome/Local State";

/// What a settings file holds, if that is JSON.
async fn read(desktop: RealDesktop<'_>, path: &str) -> Result<Option<Value>, GetterError> {
    let bytes = files::read(desktop, path).await?;
    Ok(bytes.and_then(|bytes| parse(&bytes)))
}

/// `json.loads` of bytes.
fn parse(bytes: &[u8]) -> Option<Value> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    serde_json::from_slice(bytes).ok()
}

/// What stands under keys within each other. None where one of the outer ones holds no object;
/// where a key is missing, `Missing`.
enum At<'a> {
    There(&'a Value),
    Missing,
}

/// `data.get(first, {}).get(second, {})…`: none where that raises.
fn at<'a>(data: &'a Value, keys: &[&str]) -> Option<At<'a>> {
    let mut here = At::There(data);
    for key in keys {
        here = match here {
            At::Missing => At::Missing,
            At::There(value) => value.as_object()?.get(*key).map_or(At::Missing, At::There),
        };
    }
    Some(here)
}

impl At<'_> {
    fn or(self, default: Value) -> Value {
        match self {
            At::There(value) => value.clone(),
            At::Missing => default,
        }
    }
}

/// What stands under keys of a file, `missing` where it has them not, `broken` where OSWorld's
/// getter raises and catches that.
async fn setting(
    desktop: RealDesktop<'_>,
    path: &str,
    keys: &[&str],
    missing: Value,
    broken: Value,
) -> Result<Found, GetterError> {
    let data = read(desktop, path).await?;
    let found = data.as_ref().and_then(|data| at(data, keys));
    Ok(Found::Value(
        found.map_or(broken, |found| found.or(missing)),
    ))
}

/// `"true"` or `"false"`.
fn in_words(is_so: bool) -> Found {
    value(if is_so { "true" } else { "false" })
}

/// `get_default_search_engine`.
pub(in crate::evaluator::getters) async fn default_search_engine(
    desktop: RealDesktop<'_>,
) -> Result<Found, GetterError> {
    let keys = [
        "default_search_provider_data",
        "template_url_data",
        "short_name",
    ];
    setting(
        desktop,
        PREFERENCES,
        &keys,
        json!("Google"),
        json!("Google"),
    )
    .await
}

/// `get_profile_name`.
pub(in crate::evaluator::getters) async fn profile_name(
    desktop: RealDesktop<'_>,
) -> Result<Found, GetterError> {
    let keys = ["profile", "name"];
    setting(desktop, PREFERENCES, &keys, Value::Null, Value::Null).await
}

/// `get_chrome_font_size`.
pub(in crate::evaluator::getters) async fn font_size(
    desktop: RealDesktop<'_>,
) -> Result<Found, GetterError> {
    let broken = json!({"default_fixed_font_size": 13, "default_font_size": 16});
    let mut missing = broken.clone();
    missing["minimum_font_size"] = json!(13);
    let keys = ["webkit", "webprefs"];
    setting(desktop, PREFERENCES, &keys, missing, broken).await
}

/// `get_chrome_language`.
pub(in crate::evaluator::getters) async fn language(
    desktop: RealDesktop<'_>,
) -> Result<Found, GetterError> {
    let keys = ["intl", "app_locale"];
    setting(desktop, LOCAL_STATE, &keys, json!("en-US"), json!("en-US")).await
}

/// `get_enabled_experiments`.
pub(in crate::evaluator::getters) async fn enabled_experiments(
    desktop: RealDesktop<'_>,
) -> Result<Found, GetterError> {
    let keys = ["browser", "enabled_labs_experiments"];
    setting(desktop, LOCAL_STATE, &keys, json!([]), json!([])).await
}

/// `get_enable_do_not_track`.
pub(in crate::evaluator::getters) async fn tracking_is_refused(
    desktop: RealDesktop<'_>,
) -> Result<Found, GetterError> {
    let data = read(desktop, PREFERENCES).await?;
    let found = data.and_then(|data| Some(at(&data, &["enable_do_not_track"])?.or(json!({}))));
    Ok(in_words(found.is_some_and(|found| is_true(&found))))
}

/// `get_enable_enhanced_safety_browsing`.
pub(in crate::evaluator::getters) async fn safety_is_enhanced(
    desktop: RealDesktop<'_>,
) -> Result<Found, GetterError> {
    let data = read(desktop, PREFERENCES).await?;
    let found = data.and_then(|data| Some(at(&data, &["safebrowsing", "enhanced"])?.or(json!({}))));
    Ok(found.map_or(value("Google"), |found| in_words(is_true(&found))))
}

/// `get_enable_safe_browsing`.
pub(in crate::evaluator::getters) async fn safe_browsing(
    desktop: RealDesktop<'_>,
) -> Result<Found, GetterError> {
    let data = read(desktop, PREFERENCES).await?;
    let is_on = |data: &Value| {
        let of = |key| Some(is_true(&at(data, &["safebrowsing", key])?.or(json!(false))));
        Some(of("enhanced")? || of("enabled")?)
    };
    Ok(in_words(
        data.is_some_and(|data| is_on(&data) == Some(true)),
    ))
}

/// `get_new_startup_page`: whether Chrome begins with a new tab.
pub(in crate::evaluator::getters) async fn new_startup_page(
    desktop: RealDesktop<'_>,
) -> Result<Found, GetterError> {
    let data = read(desktop, PREFERENCES).await?;
    let is_new = |data: &Value| {
        if !data.as_object()?.contains_key("session") {
            return Some(true);
        }
        let how = at(data, &["session", "restore_on_startup"])?.or(json!({}));
        Some(equal(&how, &json!(5)))
    };
    let found = data.and_then(|data| is_new(&data));
    Ok(found.map_or(value("Google"), in_words))
}

/// `get_data_delete_automacally`.
pub(in crate::evaluator::getters) async fn data_delete(
    desktop: RealDesktop<'_>,
) -> Result<Found, GetterError> {
    let data = read(desktop, PREFERENCES).await?;
    let is_set = |data: &Value| {
        let profile = data.as_object()?.get("profile")?.as_object()?;
        let values = profile.get("default_content_setting_values");
        Some(values.is_some_and(|values| !values.is_null()))
    };
    let found = data.and_then(|data| is_set(&data));
    Ok(found.map_or(value("Google"), in_words))
}

/// `get_find_unpacked_extension_path`.
pub(in crate::evaluator::getters) async fn extension_paths(
    desktop: RealDesktop<'_>,
) -> Result<Found, GetterError> {
    extensions(desktop, |extension| extension.get("path").cloned()).await
}

/// `get_find_installed_extension_name`.
pub(in crate::evaluator::getters) async fn extension_names(
    desktop: RealDesktop<'_>,
) -> Result<Found, GetterError> {
    let name = |extension: &Map<String, Value>| {
        let manifest = extension.get("manifest")?.as_object()?;
        manifest.get("name").cloned()
    };
    extensions(desktop, name).await
}

/// Something of each extension; where one lacks it, `Google`.
async fn extensions(
    desktop: RealDesktop<'_>,
    part: impl Fn(&Map<String, Value>) -> Option<Value>,
) -> Result<Found, GetterError> {
    let data = read(desktop, PREFERENCES).await?;
    let parts = |data: &Value| -> Option<Vec<Value>> {
        let all = at(data, &["extensions", "settings"])?.or(json!({}));
        let all = all.as_object()?.values();
        all.map(|extension| part(extension.as_object()?)).collect()
    };
    let found = data.and_then(|data| parts(&data));
    Ok(found.map_or(value("Google"), value))
}

/// `get_bookmarks`. Nothing is caught here.
pub(in crate::evaluator::getters) async fn bookmarks(
    desktop: RealDesktop<'_>,
) -> Result<Found, GetterError> {
    let bytes = files::read(desktop, BOOKMARKS).await?;
    let Some(bytes) = bytes.filter(|bytes| !bytes.is_empty()) else {
        return Ok(value(Vec::<Value>::new()));
    };
    let data = parse(&bytes).ok_or_else(|| raised("the bookmarks are no JSON"))?;
    let found = at(&data, &["roots"]).ok_or_else(|| raised("the bookmarks are no object"))?;
    Ok(Found::Value(found.or(json!({}))))
}

/// `get_shortcuts_on_desktop`: the starters' texts by their names.
pub(in crate::evaluator::getters) async fn shortcuts_on_desktop(
    desktop: RealDesktop<'_>,
) -> Result<Found, GetterError> {
    let path = desktop.machine.guest().desktop_path().await;
    let path = path.map_err(crate::evaluator::getters::failed)?;
    let Some(Entry::Directory { children, .. }) = files::tree(desktop, &path).await? else {
        return Err(raised(format!("{path} is no folder")));
    };
    let mut found = Map::new();
    for child in children {
        let name = match child {
            Child::Entry(Entry::Directory { name, .. } | Entry::File { name }) => name,
            Child::Unreadable { error } => return Err(raised(error)),
        };
        if !name.ends_with(".desktop") {
            continue;
        }
        let bytes = files::read(desktop, &format!("~/Desktop/{name}")).await?;
        let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
        let text = text.ok_or_else(|| raised(format!("{name} is no text")))?;
        found.insert(name, text.into());
    }
    Ok(value(found))
}
