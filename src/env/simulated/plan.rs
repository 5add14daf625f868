//! Faults that a task brings along: its desktop fails at exactly one call of one kind, in every
//! episode of that task and whatever the seed. For tests and for rehearsing how a fault is
//! treated; faults by chance are the laws' (`law`).
//!
//! In the task file, one set-up step a fault:
//!
//! ```json
//! {"type": "simulated_fault", "parameters": {"call": "action", "number": 1, "fault": "crash"}}
//! ```

use serde::Deserialize;
use serde_json::Value;

use super::law::Fault;
use crate::types::Task;

/// Type of the set-up step.
const STEP: &str = "simulated_fault";

/// What a desktop is asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Call {
    /// Start, and come to the task's state.
    Reset,
    /// One action and the picture after it.
    Action,
    /// A picture alone.
    Screenshot,
    /// A question of the evaluator.
    Evaluator,
}

impl Call {
    /// How errors name it.
    pub fn name(self) -> &'static str {
        match self {
            Call::Reset => "desktop",
            Call::Action => "action",
            Call::Screenshot => "screenshot",
            Call::Evaluator => "evaluator",
        }
    }
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PlannedFault {
    call: Call,
    /// Which call of this kind since the reset began, from 1.
    number: u32,
    fault: Fault,
}

/// What is planned for one episode, and the calls so far.
#[derive(Clone, Debug, Default)]
pub struct FaultPlan {
    planned: Vec<PlannedFault>,
    calls: Vec<Call>,
}

impl FaultPlan {
    /// The faults among a task's set-up steps; mostly none.
    pub fn of(task: &Task) -> Result<Self, serde_json::Error> {
        let steps = task.config.iter().filter(|step| step.kind == STEP);
        let planned =
            steps.map(|step| serde_json::from_value(Value::Object(step.parameters.clone())));
        Ok(Self {
            planned: planned.collect::<Result<_, _>>()?,
            calls: Vec::new(),
        })
    }

    /// Counts a call and says what goes wrong with it.
    pub fn next(&mut self, call: Call) -> Option<Fault> {
        if self.planned.is_empty() {
            return None;
        }
        self.calls.push(call);
        let number = self.calls.iter().filter(|other| **other == call).count();
        let found = self
            .planned
            .iter()
            .find(|fault| fault.call == call && fault.number as usize == number);
        found.map(|found| found.fault)
    }
}
