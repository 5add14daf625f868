//! What a task wants of the final state: the rules of its evaluator, read by the evaluator
//! and by the expert.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::types::Task;

/// Values at places of the state. Places are JSON pointers; `null` means nothing is there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Goal {
    /// What has to become true.
    pub goal: Map<String, Value>,
    /// What has to stay as it was.
    pub keep: Map<String, Value>,
    /// Whether a part of the goal earns a part of the reward.
    #[serde(default)]
    pub partial: bool,
}

impl Goal {
    /// The rules of a task, if it has any: infeasible tasks have none.
    pub fn of(task: &Task) -> Option<Self> {
        let expected = task.evaluator.expected.as_ref()?.iter().next()?;
        serde_json::from_value(expected.get("rules")?.clone()).ok()
    }

    /// Score of a final state in [0, 1]: 1 if the goal is reached and all else kept, 0 if
    /// anything else changed, half the reached fraction of a goal in parts.
    pub fn score(&self, state: &Value) -> f32 {
        let holds = |(pointer, value): (&String, &Value)| at(state, pointer) == value;
        if !self.keep.iter().all(holds) {
            return 0.0;
        }
        let reached = self.goal.iter().filter(|entry| holds(*entry)).count();
        if reached == self.goal.len() {
            1.0
        } else if self.partial {
            0.5 * reached as f32 / self.goal.len() as f32
        } else {
            0.0
        }
    }

    /// What is wanted at a place, whether it has to change or to stay.
    pub fn wanted(&self, pointer: &str) -> Option<&Value> {
        self.goal.get(pointer).or_else(|| self.keep.get(pointer))
    }

    /// Adds to `keep` every value of `state` that the goal does not touch. A `free` pointer
    /// and whatever lies below may change.
    pub(super) fn keep_rest(&mut self, state: &Value, free: &[&str]) {
        let mut leaves = Vec::new();
        collect_leaves(state, &mut String::new(), &mut leaves);
        for (pointer, value) in leaves {
            let touched = self.goal.keys().any(|goal| is_below(&pointer, goal))
                || free.iter().any(|free| is_below(&pointer, free));
            if !touched {
                self.keep.insert(pointer, value);
            }
        }
    }
}

/// The value at a JSON pointer, `null` if there is none.
fn at<'a>(state: &'a Value, pointer: &str) -> &'a Value {
    state.pointer(pointer).unwrap_or(&Value::Null)
}

fn is_below(pointer: &str, ancestor: &str) -> bool {
    pointer
        .strip_prefix(ancestor)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Every value of `state` that is no object, with its pointer.
fn collect_leaves(state: &Value, path: &mut String, leaves: &mut Vec<(String, Value)>) {
    let Value::Object(fields) = state else {
        leaves.push((path.clone(), state.clone()));
        return;
    };
    for (name, value) in fields {
        let length = path.len();
        path.push('/');
        path.push_str(&name.replace('~', "~0").replace('/', "~1"));
        collect_leaves(value, path, leaves);
        path.truncate(length);
    }
}
