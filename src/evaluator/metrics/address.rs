//! Addresses of pages, compared as OSWorld does (`compare_urls`), and the metrics over them.
//!
//! Departs: an address with brackets that do not match raises an exception there; here it is an
//! address like others. The public suffix list is that of the crate, there that of the package.

use serde_json::Value;

use super::python::{self, raised};
use super::{Call, MetricError, rule, score};

/// An address in parts; parameters belong to the path.
#[derive(PartialEq)]
struct Address {
    scheme: String,
    host: String,
    path: String,
    query: String,
    fragment: String,
}

impl Address {
    /// Parts an address; one without a scheme has that of the web.
    fn read(written: &str) -> Self {
        let is_part = |scheme: &str| {
            let mut chars = scheme.chars();
            chars.next().is_some_and(|c| c.is_ascii_alphabetic())
                && chars.all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
        };
        let parted = written
            .split_once("://")
            .filter(|(scheme, _)| is_part(scheme));
        let (scheme, rest) = parted.unwrap_or(("http", written));
        let end = |text: &str, marks: &[char]| text.find(marks).unwrap_or(text.len());
        let (host, rest) = rest.split_at(end(rest, &['/', '?', '#']));
        let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        Self {
            scheme: scheme.to_lowercase(),
            host: bare_host(&host.to_lowercase()),
            path: if path == "/" {
                String::new()
            } else {
                path.to_owned()
            },
            query: query.to_owned(),
            fragment: fragment.to_owned(),
        }
    }
}

/// A host without user, port, public suffix and `www`.
fn bare_host(host: &str) -> String {
    let host = host.rsplit('@').next().unwrap_or_default();
    let host = host.split(':').next().unwrap_or_default();
    let host = python::strip(host).trim_end_matches('.');
    let is_ip = host.parse::<std::net::Ipv4Addr>().is_ok();
    let suffix = if is_ip { "" } else { registry_suffix(host) };
    let rest = host.strip_suffix(suffix).unwrap_or(host);
    let rest = if suffix.is_empty() {
        rest
    } else {
        rest.trim_end_matches('.')
    };
    let (subdomain, domain) = rest.rsplit_once('.').unwrap_or(("", rest));
    if is_ip || !matches!(subdomain, "" | "www") {
        return rest.to_owned();
    }
    domain.to_owned()
}

/// The suffix that a registry gives names under; none where the list does not know it. What
/// private owners give, `github.io` for one, is none.
fn registry_suffix(host: &str) -> &str {
    let mut rest = host;
    loop {
        let suffix = psl::suffix(rest.as_bytes());
        let kind = suffix.and_then(|suffix| suffix.typ());
        let len = suffix.map_or(0, |suffix| suffix.as_bytes().len());
        match kind {
            Some(psl::Type::Icann) => return &rest[rest.len() - len..],
            Some(psl::Type::Private) => {
                let suffix = &rest[rest.len() - len..];
                let Some((_, shorter)) = suffix.split_once('.') else {
                    return "";
                };
                rest = shorter;
            }
            None => return "",
        }
    }
}

fn same(left: &Value, right: &Value) -> Result<bool, MetricError> {
    if left.is_null() || right.is_null() {
        return Ok(left == right);
    }
    let read = |value: &Value| {
        let text = value.as_str().map(Address::read);
        text.ok_or_else(|| raised(format!("{value} is no address")))
    };
    Ok(read(left)? == read(right)?)
}

/// The active tab's address, and that of the rules; none where there is no score to give.
fn tab<'a>(call: &Call<'a>) -> Result<Option<(&'a Value, &'a Value)>, MetricError> {
    let found = call.value()?;
    if !python::is_true(found) || rule::entry(call.rules()?, "type")? != "url" {
        return Ok(None);
    }
    let expected = rule::entry(call.rules()?, "url")?;
    let found = match found {
        Value::Object(tab) => tab.get("url").unwrap_or(&Value::Null),
        address => address,
    };
    Ok(Some((found, expected)))
}

/// The active tab shows the page `url`.
pub(super) fn is_expected_active_tab(call: &Call<'_>) -> Result<f64, MetricError> {
    match tab(call)? {
        Some((found, expected)) => Ok(score(same(expected, found)?)),
        None => Ok(0.0),
    }
}

/// The open tabs show as many pages as `urls`, and each of them is open.
pub(super) fn is_expected_tabs(call: &Call<'_>) -> Result<f64, MetricError> {
    let found = call.value()?;
    if !python::is_true(found) || rule::entry(call.rules()?, "type")? != "url" {
        return Ok(0.0);
    }
    let expected = rule::list(call.rules()?, "urls")?;
    let tabs = found.as_array().ok_or_else(|| raised("no list of tabs"))?;
    let addresses = tabs.iter().map(|tab| {
        let address = tab.get("url");
        address.ok_or_else(|| raised("a tab without address"))
    });
    let addresses: Vec<&Value> = addresses.collect::<Result<_, _>>()?;
    if addresses.len() != expected.len() {
        return Ok(0.0);
    }
    for wanted in expected {
        let mut is_open = false;
        for address in &addresses {
            is_open = is_open || same(wanted, address)?;
        }
        if !is_open {
            return Ok(0.0);
        }
    }
    Ok(1.0)
}

/// No cookie is left of `domains`.
pub(super) fn is_cookie_deleted(call: &Call<'_>) -> Result<f64, MetricError> {
    let kind = rule::text(call.rules()?, "type")?;
    if kind != "domains" {
        return Err(MetricError::Rules(format!("no type is called {kind:?}")));
    }
    let cookies = call
        .value()?
        .as_array()
        .ok_or_else(|| raised("no list of cookies"))?;
    let domains = cookies.iter().map(|cookie| {
        let domain = cookie.get(1);
        domain.ok_or_else(|| raised("a cookie without domain"))
    });
    let domains: Vec<&Value> = domains.collect::<Result<_, _>>()?;
    for wanted in rule::list(call.rules()?, "domains")? {
        for domain in &domains {
            if same(wanted, domain)? {
                return Ok(0.0);
            }
        }
    }
    Ok(1.0)
}
