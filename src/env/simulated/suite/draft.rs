//! A task being made: desktop, instruction, goal; and its OSWorld form.

use serde_json::{Map, Value, json};

use super::{Family, Suite};
use crate::env::simulated::desktop::Desktop;
use crate::env::simulated::goal::Goal;
use crate::types::{EvaluatorSpec, OneOrMany, SetupStep, Task, TaskId};

/// Parts of the state that tasks leave free unless their goal names them.
const FREE: [&str; 6] = [
    "/editor/saved",
    "/files/opened",
    "/mail/read",
    "/desk/front",
    "/desk/minimized",
    "/desk/side",
];

/// A task without its name.
pub struct Draft {
    /// The desktop it starts from.
    pub desktop: Desktop,
    /// What the agent is asked to do.
    pub instruction: String,
    /// What has to become true: JSON pointers into the state and their values.
    pub goal: Vec<(String, Value)>,
    /// Whether reaching a part of the goal counts.
    pub partial: bool,
    /// Parts of the state that this task leaves free beyond the usual ones.
    pub free: Vec<&'static str>,
    /// Whether its windows stay where it put them and on the screen.
    pub tidy: bool,
}

impl Draft {
    /// A task that earns all or nothing.
    pub fn new(desktop: Desktop, instruction: String, goal: Vec<(String, Value)>) -> Self {
        Self {
            desktop,
            instruction,
            goal,
            partial: false,
            free: Vec::new(),
            tidy: false,
        }
    }

    /// The same with credit for parts of the goal.
    pub fn in_parts(self) -> Self {
        Self {
            partial: true,
            ..self
        }
    }

    pub(super) fn into_task(self, suite: Suite, family: &Family, instance: u64) -> Task {
        let evaluator = if family.infeasible {
            infeasible()
        } else {
            self.evaluator()
        };
        let Ok(Value::Object(parameters)) = serde_json::to_value(&self.desktop) else {
            unreachable!("a desktop is a JSON object");
        };
        Task {
            id: TaskId(format!("{}/{}/{instance}", suite.name(), family.name)),
            snapshot: family.app.to_owned(),
            instruction: self.instruction,
            source: Value::from("simulated"),
            config: vec![SetupStep {
                kind: "simulated".to_owned(),
                parameters,
            }],
            related_apps: vec![family.app.to_owned()],
            evaluator,
            extra: Map::new(),
            folder: None,
        }
    }

    fn evaluator(&self) -> EvaluatorSpec {
        let mut rules = Goal {
            goal: self.goal.iter().cloned().collect(),
            keep: Map::new(),
            partial: self.partial,
        };
        let free: Vec<&str> = FREE.iter().chain(&self.free).copied().collect();
        rules.keep_rest(&self.desktop.state(), &free);
        EvaluatorSpec {
            func: OneOrMany::One("state_match".to_owned()),
            conj: None,
            result: Some(OneOrMany::One(json!({ "type": "simulated_state" }))),
            expected: Some(OneOrMany::One(json!({ "type": "rule", "rules": rules }))),
            options: None,
            postconfig: Vec::new(),
            extra: Map::new(),
        }
    }
}

fn infeasible() -> EvaluatorSpec {
    EvaluatorSpec {
        func: OneOrMany::One("infeasible".to_owned()),
        conj: None,
        result: None,
        expected: None,
        options: None,
        postconfig: Vec::new(),
        extra: Map::new(),
    }
}
