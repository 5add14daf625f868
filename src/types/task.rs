//! A task in OSWorld's own JSON: instruction, set-up steps, evaluator.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::types::TaskId;

/// One task file. Fields we do not interpret stay in `extra` and are written back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// The data set's identifier.
    pub id: TaskId,
    /// Name of the machine snapshot to start from.
    #[serde(default)]
    pub snapshot: String,
    /// What the agent is asked to do.
    pub instruction: String,
    /// Where the task came from.
    #[serde(default)]
    pub source: Value,
    /// Steps that prepare the desktop.
    #[serde(default)]
    pub config: Vec<SetupStep>,
    /// Applications involved; the first one names the domain.
    #[serde(default)]
    pub related_apps: Vec<String>,
    /// How the end state is judged.
    pub evaluator: EvaluatorSpec,
    /// Everything else in the file.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
    /// The folder that its file lay in, where that names the domain, as in OSWorld's data.
    #[serde(skip)]
    pub folder: Option<String>,
}

impl Task {
    /// What it is about: its folder, its first application, or its id up to the last `/`.
    pub fn domain(&self) -> &str {
        if let Some(folder) = &self.folder {
            return folder;
        }
        let id = self.id.0.as_str();
        let of_id = || id.rsplit_once('/').map_or(id, |(family, _)| family);
        self.related_apps.first().map_or_else(of_id, String::as_str)
    }

    /// Whether the right answer is to declare the task infeasible.
    pub fn is_infeasible(&self) -> bool {
        self.evaluator.func.iter().any(|func| func == "infeasible")
    }
}

/// One step that prepares the desktop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SetupStep {
    /// Its kind, for instance `launch`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its parameters.
    #[serde(default)]
    pub parameters: Map<String, Value>,
}

/// How the end state is judged: metrics over results and expectations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EvaluatorSpec {
    /// Name or names of the metric functions.
    pub func: OneOrMany<String>,
    /// `and` or `or` over several metrics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conj: Option<String>,
    /// Getter or getters of the actual state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<OneOrMany<Value>>,
    /// Getter or getters of the expected state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<OneOrMany<Value>>,
    /// Options of the metrics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<OneOrMany<Value>>,
    /// Set-up steps run before judging.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub postconfig: Vec<SetupStep>,
    /// Everything else.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// A value or a list of them, as OSWorld's files have both.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "neither one value of the right kind nor a list of them"
)]
pub enum OneOrMany<T> {
    /// Several.
    Many(Vec<T>),
    /// Just one.
    One(T),
}

impl<T> OneOrMany<T> {
    /// The values in order.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        match self {
            OneOrMany::Many(all) => all.iter(),
            OneOrMany::One(one) => std::slice::from_ref(one).iter(),
        }
    }
}

impl<'a, T> IntoIterator for &'a OneOrMany<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Pins what a set of tasks holds: a hash of the tasks in their order, 16 hex digits.
pub fn tasks_hash<'a>(tasks: impl IntoIterator<Item = &'a Task>) -> String {
    let mut hasher = blake3::Hasher::new();
    for task in tasks {
        hasher.update(&serde_json::to_vec(task).unwrap_or_default());
    }
    hasher.finalize().to_hex()[..16].to_owned()
}
