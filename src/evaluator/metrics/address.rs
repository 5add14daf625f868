//! The metrics over addresses of pages.

use serde_json::Value;

use super::python::{self, raised};
use super::{Call, MetricError, rule, score};
use crate::env::guest::address::is_same_page;

fn same(left: &Value, right: &Value) -> Result<bool, MetricError> {
    if left.is_null() || right.is_null() {
        return Ok(left == right);
    }
    let read = |value: &'_ Value| {
        let text = value.as_str().map(str::to_owned);
        text.ok_or_else(|| raised(format!("{value} is no address")))
    };
    Ok(is_same_page(&read(left)?, &read(right)?))
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
