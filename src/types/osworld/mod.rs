//! A task of OSWorld with every part typed: set-up steps, getters, metrics.
//!
//! `Task` is the file as written; `OsworldTask::read` checks all of it and names the key of what
//! it cannot read. Simulated desktops have steps, getters and metrics of their own, which are none
//! here. Source: OSWorld as in `assets/osworld/README.md`.

mod file_name;
pub mod getter;
mod metric;
mod names;
mod needs;
mod placeholder;
pub mod setup;
mod typed;

#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

pub use file_name::FileName;
pub use getter::{GETTER_NAMES, Getter};
pub use metric::{Expectation, IGNORED_OPTIONS, METRICS, Metric};
pub use names::nearest;
pub use needs::{InternetUse, TaskNeeds};
pub use placeholder::{
    PLACEHOLDER_NAMES, PlaceholderValues, UnknownPlaceholder, check_placeholders,
    resolve_placeholders,
};
pub use setup::{SETUP_NAMES, Setup};

use crate::types::{EvaluatorSpec, OneOrMany, SetupStep, Task};

/// Keys of a task file that nothing is done with, and why.
pub const IGNORED: [(&str, &str); 9] = [
    (
        "snapshot",
        "OSWorld starts every task from the same machine state",
    ),
    ("source", "says where the task came from"),
    ("trajectory", "names a folder of OSWorld's authors"),
    (
        "related_apps",
        "free text; the folder of the file is the domain",
    ),
    (
        "fixed_ip",
        "read by nothing; marks the tasks on Google Drive",
    ),
    (
        "possibility_of_env_change",
        "read by nothing; a guess how stable web pages are",
    ),
    ("env_may_change", "the same in one file"),
    ("hint", "for people, not for the agent"),
    ("evaluator._config_note", "for people"),
];

/// What is wrong in a task file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {reason}")]
pub struct TaskFault {
    /// Where, for instance `evaluator.result[1].path`.
    pub key: String,
    /// What, and what would be right.
    pub reason: String,
}

impl TaskFault {
    /// A fault at a key.
    pub fn new(key: impl Into<String>, reason: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            reason: reason.into(),
        }
    }
}

/// All of a task that something is done with.
#[derive(Clone, Debug, PartialEq)]
pub struct OsworldTask {
    /// Steps that prepare the desktop.
    pub setup: Vec<Setup>,
    /// Whether the desktop reaches the web through the operator's proxy.
    pub proxy: bool,
    /// Steps run after the episode, before judging.
    pub postconfig: Vec<Setup>,
    /// How the end state is judged.
    pub judge: Judge,
}

/// How the end state of a task is judged.
#[derive(Clone, Debug, PartialEq)]
pub enum Judge {
    /// The right answer is to declare the task infeasible; the state says nothing.
    Infeasible,
    /// By the scores of checks.
    Checks {
        /// How they are joined.
        join: Join,
        /// At least one.
        checks: Vec<Check>,
    },
}

/// How the scores of several checks are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Join {
    /// 0 if one is 0, else the mean. The default.
    And,
    /// 1 if one is 1, else the best.
    Or,
}

/// One metric over what a getter finds.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// The metric.
    pub metric: &'static Metric,
    /// What the desktop shows.
    pub result: Getter,
    /// What that is held against; some metrics take nothing.
    pub expected: Option<Getter>,
    /// Named arguments of the metric.
    pub options: Map<String, Value>,
}

/// Reads a task file's text and checks all of it.
pub fn read_task(text: &str) -> Result<(Task, OsworldTask), TaskFault> {
    // A pass of its own: what serde says of broken JSON has a place, but no key.
    let json: Value = serde_json::from_str(text)
        .map_err(|error| TaskFault::new("file", format!("not JSON: {error}")))?;
    if !json.is_object() {
        return Err(TaskFault::new("file", "not a JSON object"));
    }
    let task: Task =
        serde_path_to_error::deserialize(json).map_err(|error| typed::fault(&error))?;
    let typed = OsworldTask::read(&task)?;
    Ok((task, typed))
}

impl OsworldTask {
    /// Reads all of a task.
    pub fn read(task: &Task) -> Result<Self, TaskFault> {
        let mut proxy = false;
        for (key, value) in &task.extra {
            if key == "proxy" {
                let wrong =
                    || TaskFault::new("proxy", format!("{value} is neither true nor false"));
                proxy = value.as_bool().ok_or_else(wrong)?;
            } else {
                refuse_unknown(key, "", &["proxy"])?;
            }
        }
        let evaluator = &task.evaluator;
        for key in evaluator.extra.keys() {
            refuse_unknown(key, "evaluator.", &EVALUATOR_KEYS)?;
        }
        Ok(Self {
            setup: read_steps(&task.config, "config")?,
            proxy,
            postconfig: read_steps(&evaluator.postconfig, "evaluator.postconfig")?,
            judge: Judge::read(evaluator)?,
        })
    }

    /// Its checks; none where it is infeasible.
    pub fn checks(&self) -> &[Check] {
        match &self.judge {
            Judge::Infeasible => &[],
            Judge::Checks { checks, .. } => checks,
        }
    }

    /// Its metrics in order, as task files name them.
    pub fn metrics(&self) -> Vec<&'static str> {
        match &self.judge {
            Judge::Infeasible => vec![INFEASIBLE],
            Judge::Checks { checks, .. } => checks.iter().map(|check| check.metric.name).collect(),
        }
    }

    /// Its getters, of results and of expectations.
    pub fn getters(&self) -> impl Iterator<Item = &Getter> {
        let results = self.checks().iter().map(|check| &check.result);
        let expected = self
            .checks()
            .iter()
            .filter_map(|check| check.expected.as_ref());
        results.chain(expected)
    }

    /// Its steps, those before judging included.
    pub fn steps(&self) -> impl Iterator<Item = &Setup> {
        self.setup.iter().chain(&self.postconfig)
    }
}

/// The metric that is none.
const INFEASIBLE: &str = "infeasible";

/// Keys of an evaluator.
const EVALUATOR_KEYS: [&str; 6] = [
    "conj",
    "expected",
    "func",
    "options",
    "postconfig",
    "result",
];

/// Keys of a task that are always read.
const TASK_KEYS: [&str; 4] = ["config", "evaluator", "id", "instruction"];

/// A key that is neither among those of its place nor ignored knowingly is a fault.
fn refuse_unknown(key: &str, place: &str, known: &[&'static str]) -> Result<(), TaskFault> {
    let full = format!("{place}{key}");
    if IGNORED.iter().any(|(name, _)| *name == full) {
        return Ok(());
    }
    let ignored = IGNORED.iter().map(|(name, _)| *name);
    let of_place = ignored.filter_map(|name| name.strip_prefix(place));
    let mut near: Vec<&str> = known.iter().copied().chain(of_place).collect();
    if place.is_empty() {
        near.extend(TASK_KEYS);
    }
    let nearest = nearest(key, &near);
    let reason = format!("no such key; the nearest one is {place}{nearest}");
    Err(TaskFault::new(full, reason))
}

fn read_steps(steps: &[SetupStep], key: &str) -> Result<Vec<Setup>, TaskFault> {
    let numbered = steps.iter().enumerate();
    numbered
        .map(|(i, step)| Setup::read(step, &format!("{key}[{i}]")))
        .collect()
}

impl Judge {
    fn read(written: &EvaluatorSpec) -> Result<Self, TaskFault> {
        let funcs = read_metrics(&written.func)?;
        if funcs.iter().any(|metric| metric.name == INFEASIBLE) {
            return Self::read_infeasible(written);
        }
        let fault = |key: &str, reason: &str| TaskFault::new(format!("evaluator.{key}"), reason);
        if funcs.is_empty() {
            return Err(fault("func", "an empty list; name at least one metric"));
        }
        let result = align(written.result.as_ref(), &written.func, "result")?;
        let expected = align(written.expected.as_ref(), &written.func, "expected")?;
        let options = align(written.options.as_ref(), &written.func, "options")?;
        let mut checks = Vec::new();
        for (i, metric) in funcs.into_iter().enumerate() {
            checks.push(Check::read(metric, &result[i], &expected[i], &options[i])?);
        }
        let join = match written.conj.as_deref() {
            None | Some("and") => Join::And,
            Some("or") => Join::Or,
            Some(other) => {
                let reason = format!("{other:?} is neither \"and\" nor \"or\"");
                return Err(fault("conj", &reason));
            }
        };
        Ok(Self::Checks { join, checks })
    }

    /// OSWorld knows it by the text alone; in a list it would call a metric that does nothing.
    fn read_infeasible(written: &EvaluatorSpec) -> Result<Self, TaskFault> {
        if matches!(written.func, OneOrMany::Many(_)) {
            let reason = "\"infeasible\" stands alone, not in a list";
            return Err(TaskFault::new("evaluator.func", reason));
        }
        Ok(Self::Infeasible)
    }
}

impl Check {
    fn read(
        metric: &'static Metric,
        (result_key, result): &Written<'_>,
        (expected_key, expected): &Written<'_>,
        (options_key, options): &Written<'_>,
    ) -> Result<Self, TaskFault> {
        let absent = || TaskFault::new(result_key, "no getter; say what the metric looks at");
        let expected = expected.map(|written| Getter::read(written, expected_key));
        let expected = expected.transpose()?;
        metric.check_expected(expected.as_ref(), expected_key)?;
        let options = match options {
            Some(Value::Object(options)) => options.clone(),
            None => Map::new(),
            Some(_) => return Err(TaskFault::new(options_key, "not an object")),
        };
        metric.check_options(&options, options_key)?;
        Ok(Self {
            metric,
            result: Getter::read(result.ok_or_else(absent)?, result_key)?,
            expected,
            options,
        })
    }
}

/// A part of an evaluator as written, with its key.
type Written<'a> = (String, Option<&'a Value>);

fn read_metrics(func: &OneOrMany<String>) -> Result<Vec<&'static Metric>, TaskFault> {
    let is_list = matches!(func, OneOrMany::Many(_));
    let numbered = func.iter().enumerate();
    let read = numbered.map(|(i, name)| {
        let key = item_key("func", is_list.then_some(i));
        Metric::find(name, &key)
    });
    read.collect()
}

fn item_key(name: &str, index: Option<usize>) -> String {
    index.map_or_else(
        || format!("evaluator.{name}"),
        |index| format!("evaluator.{name}[{index}]"),
    )
}

/// One entry of `written` for each metric, with its key; null, `{}` and absence are none, as in
/// OSWorld's `_set_evaluator_info`.
fn align<'a>(
    written: Option<&'a OneOrMany<Value>>,
    func: &OneOrMany<String>,
    name: &str,
) -> Result<Vec<Written<'a>>, TaskFault> {
    let num_metrics = func.iter().len();
    let present = |value: &'a Value| {
        let is_empty = value.as_object().is_some_and(Map::is_empty);
        (!value.is_null() && !is_empty).then_some(value)
    };
    let fault = |reason: String| Err(TaskFault::new(item_key(name, None), reason));
    match (written, func) {
        (None, OneOrMany::One(_)) => Ok(vec![(item_key(name, None), None)]),
        (None, OneOrMany::Many(_)) => Ok((0..num_metrics)
            .map(|i| (item_key(name, Some(i)), None))
            .collect()),
        (Some(OneOrMany::One(value)), OneOrMany::One(_)) => {
            Ok(vec![(item_key(name, None), present(value))])
        }
        (Some(OneOrMany::Many(values)), OneOrMany::Many(_)) if values.len() == num_metrics => {
            let numbered = values.iter().enumerate();
            Ok(numbered
                .map(|(i, value)| (item_key(name, Some(i)), present(value)))
                .collect())
        }
        (Some(OneOrMany::Many(values)), OneOrMany::Many(_)) => fault(format!(
            "{} entries for {num_metrics} metrics; give one each",
            values.len()
        )),
        (Some(OneOrMany::One(_)), OneOrMany::Many(_)) => {
            fault("one entry, but \"func\" is a list; make it a list of as many".into())
        }
        (Some(OneOrMany::Many(_)), OneOrMany::One(_)) => {
            fault("a list, but \"func\" is one metric; give one entry".into())
        }
    }
}
