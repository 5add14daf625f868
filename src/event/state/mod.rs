//! What is known of a run: the data that `apply` folds events into.
//!
//! Invariants: `RunState` is a pure function of the events applied, in order: no clock, no IO, no
//! randomness, so ages are computed where they are drawn, from `at_ms` here. It is serialisable
//! and bounded: detail (groups, episodes, steps) is kept for the last iterations only, figures of
//! an iteration for the whole run. It never undoes anything: a reader leaves out the events that
//! a `RunResumed` discards before folding (see `store::log`), and where one did not, `superseded`
//! says how many events were counted that no longer hold.

mod debug;
mod evaluation;
mod fold;
mod machine;
mod pairs;
mod replay;

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

pub use debug::{EpisodeDebug, HeldState};

use crate::event::{
    Breakpoint, Command, F, IterationReport, MemberSignal, NoticeLevel, Phase, Purpose, RunSummary,
    StepSignal, TrainerState, UpdateReport,
};
pub use evaluation::{EvaluationState, EvaluationStatus};

use crate::types::{
    Action, EpisodeEnd, EpisodeId, ErrorClass, GroupId, ImageHash, Iteration, MachineHealth,
    MachineStatus, PolicyVersion, TaskId,
};

/// Iterations whose groups, episodes and steps are kept.
pub(crate) const ITERATIONS_KEPT: u64 = 3;
/// Episodes kept at most; three iterations of 256 desktops with two episodes each fit.
pub(crate) const EPISODES_KEPT: usize = 2048;
/// Of those, episodes without a group: evaluations.
pub(crate) const UNGROUPED_KEPT: usize = 512;
/// Groups kept at most, for selections, which are one long iteration.
pub(crate) const GROUPS_KEPT: usize = 1024;
/// Updates kept: enough for a chart of the last iterations.
pub(crate) const UPDATES_KEPT: usize = 256;
/// Evaluations kept.
pub(crate) const EVALUATIONS_KEPT: usize = 256;
/// Commands kept.
pub(crate) const COMMANDS_KEPT: usize = 128;
/// Rows of notices kept; equal ones share a row.
pub(crate) const NOTICES_KEPT: usize = 256;
/// Failures kept one by one.
pub(crate) const FAILURES_KEPT: usize = 256;
/// Marks of charts kept.
pub(crate) const MARKS_KEPT: usize = 512;
/// Uses of a stored success kept.
pub(crate) const USES_KEPT: usize = 8;
/// Phases kept after their end.
pub(crate) const PHASES_KEPT: usize = 64;

/// What the first line of the log says of the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Header {
    /// `SCHEMA_VERSION` of the writer.
    pub schema: u32,
    /// The run's name.
    pub run: String,
    /// Version of arpo.
    pub version: String,
    /// Name of the last profile overlay.
    pub profile: String,
    /// Milliseconds since 1970 of `at_ms` 0.
    pub unix_ms: u64,
    /// The run's seed.
    pub seed: u64,
    /// Episodes a group.
    pub group_size: u32,
    /// Groups an iteration.
    pub tasks_per_iteration: u32,
    /// Iterations asked for.
    pub iterations: u64,
    /// Most actions of an episode.
    pub max_steps: u32,
    /// Size of the tasks' pool.
    pub num_tasks: u32,
    /// Context of the policy, tokens.
    pub context_tokens: u32,
    /// Whether time is virtual.
    pub virtual_clock: bool,
}

/// Settings now in force.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// Learning rate.
    pub learning_rate: F,
    /// Sampling temperature.
    pub temperature: F,
    /// Desktops running side by side.
    pub desktops: u32,
    /// Lower clip; absent in older logs.
    pub clip_low: Option<F>,
    /// Upper clip; absent in older logs.
    pub clip_high: Option<F>,
    /// Whether replay is on; absent in older logs.
    pub replay: Option<bool>,
    /// Every setting changed while running, by profile key.
    pub changed: BTreeMap<String, F>,
}

/// A phase that runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseState {
    /// Of which iteration.
    pub iteration: Iteration,
    /// Which.
    pub phase: Phase,
    /// Units done: episodes, trajectories.
    pub done: u32,
    /// Units in all, 0 if unknown.
    pub total: u32,
    /// `at_ms` of its start.
    pub since_ms: u64,
}

/// A phase that ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FinishedPhase {
    /// Of which iteration.
    pub iteration: Iteration,
    /// Which.
    pub phase: Phase,
    /// `at_ms` of its end.
    pub ended_ms: u64,
    /// How long it took, ms of wall time.
    pub wall_ms: u64,
}

/// What a desktop is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DesktopPhase {
    /// No episode.
    #[default]
    Idle,
    /// It is being prepared for its episode.
    Resetting,
    /// The policy writes a reply.
    Thinking,
    /// Actions are carried out.
    Acting,
    /// The end state is judged.
    Scoring,
    /// Its last episode was ended by an error, and no other one has begun.
    Failed,
}

/// One desktop.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DesktopState {
    /// The episode on it, or the last one.
    pub episode: Option<EpisodeId>,
    /// Its task.
    pub task: Option<TaskId>,
    /// Its running step, from 0.
    pub step: u32,
    /// What it is doing.
    pub phase: DesktopPhase,
    /// `at_ms` since when.
    pub since_ms: u64,
    /// Its newest screenshot.
    pub image: Option<ImageHash>,
    /// `at_ms` of that.
    pub image_ms: u64,
    /// Its machine; absent where it has none of its own, as simulated ones.
    pub machine: Option<MachineView>,
    /// Episodes it has finished.
    pub episodes: u64,
    /// Episodes that errors ended on it.
    pub errors: u64,
}

/// The machine under a desktop, as it was last heard of.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MachineView {
    /// Where it stands.
    pub status: MachineStatus,
    /// `at_ms` since when.
    pub since_ms: u64,
    /// What was last measured.
    pub health: Option<MachineHealth>,
    /// `at_ms` of that.
    pub health_ms: u64,
    /// Whether the desktop's picture was taken past its server.
    pub seen_from_outside: bool,
}

/// One step of an episode.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StepState {
    /// The screenshot it is decided on.
    pub image: Option<ImageHash>,
    /// `at_ms` of the screenshot.
    pub observed_ms: u64,
    /// The thought, shortened.
    pub thought: String,
    /// What was done, in screen pixels.
    pub actions: Vec<Action>,
    /// Why the reply did not parse.
    pub malformed: Option<String>,
    /// Tokens of the reply.
    pub reply_tokens: u32,
    /// Mean log-probability of its tokens.
    pub mean_logprob: F,
    /// Generation, ms of the run's clock, waiting included.
    pub generate_ms: u64,
    /// The desktop's part, ms of the run's clock.
    pub act_ms: u64,
    /// Whether it was carried out; the fields from `thought` on are known then.
    pub finished: bool,
}

/// An error that ended an episode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FailureState {
    /// `at_ms` of it.
    pub at_ms: u64,
    /// Which episode.
    pub episode: EpisodeId,
    /// Its task.
    pub task: TaskId,
    /// Whose fault.
    pub class: ErrorClass,
    /// What happened.
    pub message: String,
    /// Whether it was tried again under a new id.
    pub rerolled: bool,
}

/// One episode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EpisodeState {
    /// Its id.
    pub id: EpisodeId,
    /// What it is for.
    pub purpose: Purpose,
    /// Its group, if any.
    pub group: Option<GroupId>,
    /// Its place in the group.
    pub sample: u32,
    /// Its task.
    pub task: TaskId,
    /// The evaluation it is a trial of.
    #[serde(default)]
    pub evaluation: Option<u32>,
    /// Whether the right answer is to declare its task infeasible.
    #[serde(default)]
    pub infeasible: bool,
    /// The desktop it runs on.
    pub desktop: u32,
    /// `at_ms` of its start.
    pub started_ms: u64,
    /// `at_ms` of its end.
    pub ended_ms: Option<u64>,
    /// Its steps in order; the last one may be under way.
    pub steps: Vec<StepState>,
    /// The screenshot after the last action.
    pub final_image: Option<ImageHash>,
    /// How it ended; absent while it runs and where an error ended it.
    pub end: Option<EpisodeEnd>,
    /// The error that ended it.
    pub failure: Option<FailureState>,
    /// Outcome under the protocol trained on, once scored.
    pub outcome: Option<f32>,
    /// Format reward, once scored.
    pub format: Option<f32>,
    /// What the evaluator said of the state, once scored.
    pub state_score: Option<f32>,
    /// Total reward as training used it.
    pub reward: Option<f32>,
    /// Its advantage, once computed.
    pub advantage: Option<F>,
    /// What the last update made of its replies, in order.
    #[serde(default)]
    pub learned: Vec<StepSignal>,
    /// The stored success that took its place in training.
    pub replaced_by: Option<EpisodeId>,
    /// Whether it was stored for replay.
    pub stored: bool,
    /// Tokens, prompts included; sampled ones only while it runs.
    pub tokens: u32,
    /// Sampled tokens.
    pub sampled_tokens: u32,
    /// How long it took, ms of the run's clock.
    pub clock_ms: u64,
    /// What the debugger did to it.
    #[serde(default)]
    pub debug: EpisodeDebug,
}

impl EpisodeState {
    /// Whether it has neither been scored nor failed.
    pub fn is_running(&self) -> bool {
        self.ended_ms.is_none()
    }

    /// Its newest screenshot.
    pub fn newest_image(&self) -> Option<&ImageHash> {
        let mut steps = self.steps.iter().rev();
        self.final_image
            .as_ref()
            .or_else(|| steps.find_map(|step| step.image.as_ref()))
    }
}

/// A stored success in a failed member's place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Injection {
    /// The member replaced.
    pub sample: u32,
    /// The success.
    pub source: EpisodeId,
    /// The newest weights that wrote it.
    pub source_policy: PolicyVersion,
}

/// One group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroupState {
    /// Its id.
    pub id: GroupId,
    /// Its task.
    pub task: TaskId,
    /// The task's instruction, shortened.
    pub instruction: String,
    /// Whether the right answer is to declare it infeasible.
    pub infeasible: bool,
    /// `at_ms` of its dispatch.
    pub started_ms: u64,
    /// Its episodes by place; the newest one where an error had it tried again.
    pub members: Vec<Option<EpisodeId>>,
    /// Outcomes by place once all are in; `None` where the member failed.
    pub outcomes: Option<Vec<Option<f32>>>,
    /// Sample standard deviation of the valid outcomes, before replay.
    pub std: Option<F>,
    /// Stored successes put in.
    pub injected: Vec<Injection>,
    /// What training makes of its members.
    pub signals: Vec<MemberSignal>,
}

/// A success in the replay buffer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredSuccess {
    /// Which.
    pub episode: EpisodeId,
    /// The iteration that stored it.
    pub iteration: Iteration,
    /// `at_ms` of it.
    pub at_ms: u64,
    /// How often it took a failed member's place.
    pub used: u32,
    /// Whether an operator keeps it whatever newer ones come.
    #[serde(default)]
    pub pinned: bool,
    /// The weights it was collected with.
    #[serde(default)]
    pub policy: PolicyVersion,
    /// Where it came from, if its group was known.
    #[serde(default)]
    pub source: Option<MemberPlace>,
    /// Where it was put in, the newest last.
    #[serde(default)]
    pub uses: VecDeque<MemberPlace>,
    /// What the newest update that used it made of its replies, in order.
    #[serde(default)]
    pub learned: Vec<StepSignal>,
    /// What it saw and did; its thoughts lie in the episode's file.
    #[serde(default)]
    pub frames: Vec<StoredFrame>,
}

/// A member of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberPlace {
    /// The group.
    pub group: GroupId,
    /// The place in it.
    pub sample: u32,
}

/// A step of a stored success.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StoredFrame {
    /// The screenshot it was decided on.
    pub image: Option<ImageHash>,
    /// What was done, in screen pixels.
    pub actions: Vec<Action>,
}

/// The replay buffer of one task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReplayState {
    /// Its successes, oldest first.
    pub successes: VecDeque<StoredSuccess>,
    /// How often one of them was put into a group.
    pub injected: u64,
    /// The last iteration that did.
    pub last_injected: Option<Iteration>,
    /// Groups of the task whose episodes came in.
    pub groups: u64,
    /// Of those, groups in which every scored episode failed.
    pub groups_all_fail: u64,
    /// Scored episodes of the task with an outcome above 0.5.
    pub solved: u64,
    /// Mean outcome of its newest group.
    pub reward: Option<F>,
}

/// Where a command stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "status")]
pub enum CommandStatus {
    /// The engine has it.
    Received,
    /// It will be done.
    Accepted,
    /// It will not.
    Refused {
        /// Why, and what to do instead.
        reason: String,
    },
    /// It has been done.
    Done,
}

/// One command and its answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CommandState {
    /// Its number.
    pub id: u64,
    /// What was asked.
    pub request: Command,
    /// From where.
    pub origin: String,
    /// `at_ms` of its arrival.
    pub at_ms: u64,
    /// Where it stands.
    pub status: CommandStatus,
    /// `at_ms` of the newest answer.
    pub answered_ms: Option<u64>,
}

/// Notices with the same text, or failures of the same class and message, in one row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NoticeState {
    /// How grave.
    pub level: NoticeLevel,
    /// The sentence.
    pub text: String,
    /// For a failed episode: whose fault.
    pub class: Option<ErrorClass>,
    /// For a failed episode: the newest one.
    pub episode: Option<EpisodeId>,
    /// How often.
    pub count: u64,
    /// `at_ms` of the first.
    pub first_ms: u64,
    /// `at_ms` of the newest.
    pub last_ms: u64,
}

/// The newest checkpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckpointState {
    /// `at_ms` of its completion.
    pub at_ms: u64,
    /// The iterations behind it.
    pub iterations_done: u64,
    /// Its folder, relative to the run's.
    pub path: String,
    /// Hash of its weights.
    pub weights: String,
}

/// Something that charts over iterations mark.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunMark {
    /// The iteration it fell into.
    pub iteration: Iteration,
    /// `at_ms` of it.
    pub at_ms: u64,
    /// What.
    pub kind: MarkKind,
}

/// What a mark is about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum MarkKind {
    /// A checkpoint was written.
    Checkpoint,
    /// The run stood still.
    Pause,
    /// A setting was changed.
    Setting {
        /// Its profile key.
        key: String,
        /// The new value.
        value: F,
    },
    /// An evaluation ended.
    Evaluation {
        /// Its name.
        name: String,
    },
}

/// Counts over the whole run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counters {
    /// Scored training episodes.
    pub episodes: u64,
    /// Scored episodes of evaluations and selections.
    pub other_episodes: u64,
    /// Steps of all scored episodes.
    pub steps: u64,
    /// Tokens sampled in scored episodes.
    pub sampled_tokens: u64,
    /// Scored training episodes with an outcome above 0.5.
    pub successes: u64,
    /// Scored episodes that ended in a reply that did not parse.
    pub malformed: u64,
    /// Episodes ended by an error, by class.
    pub errors: BTreeMap<ErrorClass, u64>,
    /// Of those, tried again.
    pub rerolled: u64,
    /// Of those, given up: the group went on without them.
    pub dropped: u64,
    /// Groups whose episodes are all in.
    pub groups: u64,
    /// Groups without variance among their signals.
    pub zero_variance_groups: u64,
    /// Members replaced by stored successes.
    pub replaced: u64,
    /// Successes stored.
    pub stored: u64,
    /// Optimizer updates made.
    pub updates: u64,
    /// Updates skipped because a norm was not finite.
    pub skipped_updates: u64,
    /// Events of a kind this build does not know.
    pub unknown_events: u64,
}

impl Counters {
    /// Episodes ended by an error, of all classes.
    pub fn all_errors(&self) -> u64 {
        self.errors.values().sum()
    }
}

/// Everything known of a run: the fold of its events.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunState {
    /// The run, from its first event.
    pub header: Option<Header>,
    /// Which start of the engine wrote the newest events, from 0.
    pub incarnation: u32,
    /// What the trainer is doing.
    pub trainer: TrainerState,
    /// `at_ms` since when.
    pub trainer_since_ms: u64,
    /// The running iteration, or the last one.
    pub iteration: Option<Iteration>,
    /// `at_ms` of its start.
    pub iteration_since_ms: u64,
    /// The weights in use.
    pub policy: PolicyVersion,
    /// Running phases in order of their start: several while an evaluation overlaps.
    pub phases: Vec<PhaseState>,
    /// Phases that ended, newest last.
    pub finished_phases: VecDeque<FinishedPhase>,
    /// Desktops by number.
    pub desktops: Vec<DesktopState>,
    /// Groups of the last iterations.
    #[serde(with = "pairs")]
    pub groups: BTreeMap<GroupId, GroupState>,
    /// Episodes of the last iterations, and the newest ones of evaluations.
    #[serde(with = "pairs")]
    pub episodes: BTreeMap<EpisodeId, EpisodeState>,
    /// Every iteration that ended, in order.
    pub history: Vec<IterationReport>,
    /// Updates of the last iterations, newest last.
    pub updates: VecDeque<UpdateReport>,
    /// Evaluations in order of their first mention, newest last.
    pub evaluations: VecDeque<EvaluationState>,
    /// The replay buffer by task; tasks without a success too, once a group of theirs came in.
    pub replay: BTreeMap<TaskId, ReplayState>,
    /// Tasks with a stored success at the end of each iteration of `history`.
    pub coverage: Vec<u32>,
    /// Checkpoints, pauses, changes and evaluations for the charts, newest last.
    pub marks: VecDeque<RunMark>,
    /// Settings now in force.
    pub settings: Settings,
    /// Commands and their answers, newest last.
    pub commands: VecDeque<CommandState>,
    /// Notices and failures, in order of their newest occurrence, newest last.
    pub notices: VecDeque<NoticeState>,
    /// Failed episodes one by one, newest last.
    pub failures: VecDeque<FailureState>,
    /// Counts over the whole run.
    pub counters: Counters,
    /// The newest checkpoint.
    pub checkpoint: Option<CheckpointState>,
    /// Episodes that stand before an action and wait for a decision.
    #[serde(with = "pairs")]
    pub held: BTreeMap<EpisodeId, HeldState>,
    /// Breakpoints in force.
    pub breakpoints: Vec<Breakpoint>,
    /// The closing figures.
    pub summary: Option<RunSummary>,
    /// Number of the event to come; those below are folded in or discarded.
    pub next_seq: u64,
    /// `at_ms` of the newest event.
    pub at_ms: u64,
    /// Events that never arrived.
    pub missed: u64,
    /// Events counted here that a later resume discarded; 0 with a proper reader.
    pub superseded: u64,
}

impl RunState {
    /// Folds events in order into the state they make.
    pub fn from_events<'a>(events: impl IntoIterator<Item = &'a crate::event::Event>) -> Self {
        let mut state = Self::default();
        for event in events {
            state.apply(event);
        }
        state
    }

    /// The phase that began last and still runs.
    pub fn phase(&self) -> Option<&PhaseState> {
        self.phases.last()
    }

    /// Whether the run has ended, for good or ill.
    pub fn is_over(&self) -> bool {
        matches!(self.trainer, TrainerState::Finished | TrainerState::Failed)
    }

    /// Groups of one iteration in order.
    pub fn groups_of(&self, iteration: Iteration) -> impl DoubleEndedIterator<Item = &GroupState> {
        let first = GroupId {
            iteration,
            index: 0,
        };
        let last = GroupId {
            iteration,
            index: u32::MAX,
        };
        self.groups.range(first..=last).map(|(_, group)| group)
    }

    /// Training episodes that run: what a pause before the updates still waits for.
    pub fn episodes_in_flight(&self) -> usize {
        let running = self.episodes.values().filter(|one| one.is_running());
        running.filter(|one| one.purpose == Purpose::Train).count()
    }

    /// Number of successes in the replay buffer.
    pub fn stored_successes(&self) -> usize {
        self.replay.values().map(|task| task.successes.len()).sum()
    }

    /// Number of tasks with a success in the replay buffer.
    pub fn covered_tasks(&self) -> usize {
        let tasks = self.replay.values();
        tasks.filter(|task| !task.successes.is_empty()).count()
    }
}
