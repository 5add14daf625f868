//! What an evaluation is asked for, under which conditions it ran, and what each trial gave.

use serde::{Deserialize, Serialize};

use crate::event::F;
use crate::types::{EpisodeEnd, EpisodeId, PolicyVersion, Protocol, TaskId};

/// Most episodes of a task that can be asked for.
const TRIALS_MAX: u32 = 1000;

/// Which weights are measured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum EvalWeights {
    /// Those that the policy uses when the evaluation begins; later updates do not touch it.
    #[default]
    Current,
    /// Those of a checkpoint.
    Checkpoint {
        /// Its folder in Hugging Face layout: absolute, or one of the run's own checkpoints by
        /// name, as in `iter-000003`.
        path: String,
    },
}

/// When and on what an evaluation runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum EvalWhen {
    /// During rollouts, on so many desktops; training goes on with the others.
    Now {
        /// How many, at least 1 and fewer than the run has.
        desktops: u32,
    },
    /// At the next safe point, on all desktops; training waits for it.
    #[default]
    SafePoint,
}

/// A measurement asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EvalRequest {
    /// Which weights.
    pub weights: EvalWeights,
    /// Task set: its name, a list file or a folder of task files.
    pub tasks: String,
    /// Episodes a task.
    pub trials: u32,
    /// Sampling temperature; 0 is greedy.
    pub temperature: f64,
    /// Decides sampling and the desktops' chances.
    pub seed: u64,
    /// The headline among the three protocols that are reported.
    pub protocol: Protocol,
    /// When and on what.
    pub when: EvalWhen,
    /// Go on with this cancelled evaluation instead: all but `when` is then its own.
    pub resume: Option<u32>,
}

impl Default for EvalRequest {
    fn default() -> Self {
        Self {
            weights: EvalWeights::default(),
            tasks: String::new(),
            trials: 1,
            temperature: 0.0,
            seed: 0,
            protocol: Protocol::default(),
            when: EvalWhen::default(),
            resume: None,
        }
    }
}

impl EvalRequest {
    /// Whether its values make sense for any run; if not, why.
    pub fn check(&self) -> Result<(), String> {
        if self.when == (EvalWhen::Now { desktops: 0 }) {
            return Err("an evaluation takes at least 1 desktop".to_owned());
        }
        match self.resume {
            Some(0) => return Err("evaluations are numbered from 1".to_owned()),
            Some(_) => return Ok(()),
            None => {}
        }
        if self.tasks.is_empty() {
            return Err("name a task set to evaluate on".to_owned());
        }
        if !(1..=TRIALS_MAX).contains(&self.trials) {
            let trials = self.trials;
            return Err(format!("a task has 1 to {TRIALS_MAX} trials, not {trials}"));
        }
        if !(0.0..=2.0).contains(&self.temperature) {
            let temperature = self.temperature;
            return Err(format!(
                "an evaluation's temperature lies between 0 (greedy) and 2, not at {temperature}"
            ));
        }
        match &self.weights {
            EvalWeights::Checkpoint { path } if path.is_empty() => {
                Err("name the checkpoint's folder".to_owned())
            }
            _ => Ok(()),
        }
    }
}

/// The conditions a measurement was made under. Two evaluations compare only where these agree.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EvalManifest {
    /// Hash of the words around instruction and screenshots.
    pub prompt: String,
    /// Hash of the chat template.
    pub template: String,
    /// Screenshots the model sees at once.
    pub history_images: u32,
    /// Room of a session, tokens.
    pub context_tokens: u32,
    /// Sampling temperature.
    pub temperature: F,
    /// Nucleus; 1 is off.
    pub top_p: F,
    /// The most tokens of a reply.
    pub max_reply_tokens: u32,
    /// Actions after which an episode ends.
    pub max_steps: u32,
    /// Name of the task set.
    pub tasks: String,
    /// Hash of its tasks' files, in order.
    pub tasks_hash: String,
    /// Tasks in it.
    pub num_tasks: u32,
    /// Episodes a task.
    pub trials: u32,
    /// Decides sampling and the desktops' chances.
    pub seed: u64,
    /// Hash of the weights.
    pub weights: String,
    /// Updates behind them.
    pub policy: PolicyVersion,
    /// Kind of desktop.
    pub environment: String,
    /// Hash of the desktops' settings.
    pub environment_hash: String,
    /// Version of arpo.
    pub version: String,
}

/// A condition in which two evaluations differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestDifference {
    /// Name of the condition, as a person reads it.
    pub what: String,
    /// Its value in the first one.
    pub first: String,
    /// Its value in the second one.
    pub second: String,
}

impl EvalManifest {
    /// The conditions in which the two differ. The weights are not among them: they are what is
    /// compared.
    pub fn differences(&self, other: &Self) -> Vec<ManifestDifference> {
        let pairs = self.conditions().into_iter().zip(other.conditions());
        pairs
            .filter(|((_, first), (_, second))| first != second)
            .map(|((what, first), (_, second))| ManifestDifference {
                what: what.to_owned(),
                first,
                second,
            })
            .collect()
    }

    /// Whether both measured the same weights.
    pub fn has_weights_of(&self, other: &Self) -> bool {
        self.weights == other.weights
    }

    /// Everything but the weights, name by name.
    pub fn conditions(&self) -> Vec<(&'static str, String)> {
        vec![
            ("prompt", self.prompt.clone()),
            ("chat template", self.template.clone()),
            ("screenshots seen", self.history_images.to_string()),
            ("context tokens", self.context_tokens.to_string()),
            ("temperature", self.temperature.0.to_string()),
            ("top_p", self.top_p.0.to_string()),
            ("reply tokens", self.max_reply_tokens.to_string()),
            ("step limit", self.max_steps.to_string()),
            ("task set", self.tasks.clone()),
            ("tasks' contents", self.tasks_hash.clone()),
            ("tasks", self.num_tasks.to_string()),
            ("trials", self.trials.to_string()),
            ("seed", self.seed.to_string()),
            ("environment", self.environment.clone()),
            ("desktop settings", self.environment_hash.clone()),
            ("arpo version", self.version.clone()),
        ]
    }
}

/// What came of one trial of a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialRow {
    /// Its task.
    pub task: TaskId,
    /// What the task is about: an application or a family.
    pub domain: String,
    /// Its number among the task's trials, from 0.
    pub trial: u32,
    /// The episode.
    pub episode: EpisodeId,
    /// How it ended; absent where an error ended it.
    pub end: Option<EpisodeEnd>,
    /// What the evaluator said of the state, in [0, 1].
    pub state_score: f32,
    /// Whether the right answer is to declare the task infeasible.
    pub infeasible: bool,
    /// Its steps.
    pub steps: u32,
    /// The error that ended it.
    pub error: Option<String>,
}

impl TrialRow {
    /// Its outcome under a protocol; `None` where an error ended it.
    pub fn outcome(&self, protocol: Protocol) -> Option<f32> {
        let end = self.end?;
        Some(protocol.outcome(end, self.infeasible, self.state_score))
    }

    /// Whether its last action declared the task infeasible.
    pub fn ended_by_fail(&self) -> bool {
        self.end == Some(EpisodeEnd::DeclaredInfeasible)
    }
}
