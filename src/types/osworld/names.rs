//! Checking a name, and the nearest one to one that does not exist.

use super::TaskFault;

/// The name as `known` has it, or a fault at `key`. `what` says what it is the name of.
pub(super) fn check(
    what: &str,
    name: &str,
    known: &[&'static str],
    key: &str,
) -> Result<&'static str, TaskFault> {
    let found = known.iter().find(|other| **other == name);
    found.copied().ok_or_else(|| {
        let nearest = nearest(name, known);
        let reason = format!("no {what} is called {name:?}; the nearest name is {nearest:?}");
        TaskFault::new(key, reason)
    })
}

/// The one of `known` most like `name`, above all in how it begins; empty if there is none.
pub fn nearest<'a>(name: &str, known: &[&'a str]) -> &'a str {
    let likeness = |other: &&'a str| (strsim::jaro_winkler(other, name), *other);
    let best = known.iter().map(likeness);
    best.max_by(|a, b| a.0.total_cmp(&b.0))
        .map_or("", |(_, other)| other)
}
