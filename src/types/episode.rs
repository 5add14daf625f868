//! The record of one episode: its steps, its tokens, how it ended, what it earned.

use serde::{Deserialize, Serialize};

use crate::types::{
    Action, EpisodeId, GroupId, ImageHash, PolicyVersion, Reward, TaskId, TokenStream,
};

/// How an episode ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EpisodeEnd {
    /// The agent said it was done.
    Finished,
    /// The agent declared the task infeasible, or called the user.
    DeclaredInfeasible,
    /// The step limit came first.
    StepLimit,
    /// A reply did not parse, or was cut before its end token.
    Malformed,
    /// The context had no room for another reply.
    ContextFull,
}

/// Whose fault a failed episode was. Never the policy's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorClass {
    /// The desktop did not start or reset.
    Reset,
    /// The desktop did not answer in time.
    Timeout,
    /// The desktop went away.
    Crash,
    /// The picture was missing, broken or black.
    Screenshot,
    /// The evaluator failed.
    Evaluator,
    /// The policy's engine or server failed.
    Policy,
    /// The operator or the scheduler stopped it.
    Cancelled,
}

/// Where the time of one step went, in milliseconds of the run's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StepTiming {
    /// When the observation was taken, since the start of the run.
    pub observed_at_ms: u64,
    /// Waiting for and doing generation.
    pub generate_ms: u64,
    /// The desktop's part.
    pub act_ms: u64,
}

/// One step: observation, reply, actions, outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// The screenshot the reply was made from.
    pub screenshot: ImageHash,
    /// Tokens of the reply within the trajectory's stream: `[start, end)`.
    pub reply_tokens: (usize, usize),
    /// The reply as text, special tokens left out.
    pub reply: String,
    /// The thought in it, empty if there is none.
    pub thought: String,
    /// The actions in it, in screen pixels; empty if it did not parse.
    pub actions: Vec<Action>,
    /// Why it did not parse.
    pub malformed: Option<String>,
    /// Whether a coordinate lay outside the screen and was clamped.
    pub clamped: bool,
    /// Which weights wrote it.
    pub policy: PolicyVersion,
    /// Where the time went.
    pub timing: StepTiming,
}

/// An episode that reached its end and was scored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Episode {
    /// Its id.
    pub id: EpisodeId,
    /// Its task.
    pub task: TaskId,
    /// The group it belongs to; evaluations have none.
    pub group: Option<GroupId>,
    /// Its place in the group, from 0.
    pub sample: u32,
    /// The seed its sampling used.
    pub seed: u64,
    /// Steps in order.
    pub steps: Vec<Step>,
    /// The screenshot after the last action, for people; no policy saw it.
    pub final_screenshot: Option<ImageHash>,
    /// All tokens, prompts included.
    pub tokens: TokenStream,
    /// How it ended.
    pub end: EpisodeEnd,
    /// What the evaluator said of the state, in [0, 1], whatever the protocol makes of it.
    pub state_score: f32,
    /// Whether the task's right answer is to declare it infeasible.
    pub infeasible: bool,
    /// Its reward under the protocol the run trains on.
    pub reward: Reward,
    /// Whether a person edited or chose one of its actions; never trained on unless asked.
    pub human_touched: bool,
    /// The recorded episode whose first steps it replayed: it is counterfactual then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branched_from: Option<BranchOrigin>,
}

/// The recorded episode that another one branched from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BranchOrigin {
    /// Name of its run.
    pub run: String,
    /// Which.
    pub episode: EpisodeId,
    /// Steps taken over from it.
    pub steps: u32,
}

impl Episode {
    /// Whether every reply parsed.
    pub fn is_well_formed(&self) -> bool {
        self.end != EpisodeEnd::Malformed
    }

    /// Number of actions carried out.
    pub fn num_actions(&self) -> usize {
        self.steps.iter().map(|step| step.actions.len()).sum()
    }

    /// Oldest and newest policy version among its steps.
    pub fn policy_span(&self) -> Option<(PolicyVersion, PolicyVersion)> {
        let versions = self.steps.iter().map(|step| step.policy);
        Some((versions.clone().min()?, versions.max()?))
    }
}

/// An episode that an error ended: no score, not trained on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FailedEpisode {
    /// Its id.
    pub id: EpisodeId,
    /// Its task.
    pub task: TaskId,
    /// The group it belonged to.
    pub group: Option<GroupId>,
    /// Its place in the group.
    pub sample: u32,
    /// Whose fault.
    pub class: ErrorClass,
    /// What happened, for people.
    pub message: String,
    /// Steps done before.
    pub steps: usize,
}
