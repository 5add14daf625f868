//! Who carries out what OSWorld's tasks name: set-up steps, getters, metrics.
//!
//! The one table behind `arpo tasks check`. A name that is not in it is carried by nobody. A native
//! row says how many cases it was compared with OSWorld's own code on, which a test counts; without
//! any it does not count as native.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::types::osworld::{Getter, OsworldTask, Setup};

/// What a task names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PartKind {
    /// A step that prepares a desktop.
    Setup,
    /// What reads the end state.
    Getter,
    /// What scores it.
    Metric,
}

/// A named part of tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Part {
    /// Of which kind.
    pub kind: PartKind,
    /// Its name in task files.
    pub name: &'static str,
}

/// Who carries out a part on real desktops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// This program.
    Native {
        /// Cases in `tests/it/fixtures/differential/KIND/NAME.json`, with what OSWorld's own code
        /// says of them.
        cases: usize,
    },
    /// OSWorld's own code, in the sidecar.
    Sidecar,
    /// Someone, where the operator brings credentials.
    Credentials,
    /// Nobody.
    None,
}

/// What is carried. Sorted by kind and name.
pub const CARRIED: &[(PartKind, &str, Carrier)] = &[
    (
        PartKind::Metric,
        "check_include_exclude",
        Carrier::Native { cases: 13 },
    ),
    (
        PartKind::Metric,
        "exact_match",
        Carrier::Native { cases: 15 },
    ),
    (PartKind::Metric, "infeasible", Carrier::Native { cases: 8 }),
];

/// How well a task is carried: as its worst part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Coverage {
    /// All of it by this program.
    Native,
    /// Some of it by OSWorld's own code.
    Sidecar,
    /// All of it, with credentials.
    Credentials,
    /// Some of it by nobody.
    Unsupported,
}

/// Who carries a part.
pub fn carrier(part: Part) -> Carrier {
    let row = CARRIED
        .iter()
        .find(|(kind, name, _)| *kind == part.kind && *name == part.name);
    row.map_or(Carrier::None, |(_, _, carrier)| *carrier)
}

/// The parts that a task names, each once.
pub fn parts(task: &OsworldTask) -> BTreeSet<Part> {
    let part = |kind: PartKind| move |name: &'static str| Part { kind, name };
    let steps = task.steps().map(Setup::name).map(part(PartKind::Setup));
    let getters = task.getters().map(Getter::name);
    let metrics = task.metrics().into_iter();
    steps
        .chain(getters.map(part(PartKind::Getter)))
        .chain(metrics.map(part(PartKind::Metric)))
        // The flag asks for the step of the same name.
        .chain(task.proxy.then_some("proxy").map(part(PartKind::Setup)))
        .collect()
}

/// How well a task is carried.
pub fn coverage(task: &OsworldTask) -> Coverage {
    let worst = parts(task).into_iter().map(|part| match carrier(part) {
        Carrier::Native { cases: 1.. } => Coverage::Native,
        Carrier::Sidecar => Coverage::Sidecar,
        Carrier::Credentials => Coverage::Credentials,
        Carrier::Native { cases: 0 } | Carrier::None => Coverage::Unsupported,
    });
    worst.max().unwrap_or(Coverage::Native)
}
