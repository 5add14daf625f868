//! The vocabulary of the run's event stream, pure: who emits and who shows is not known here.
//!
//! Invariants: events are small (ids, counts, hashes, short texts; pictures and tokens lie in
//! files); `RunState::apply` in `state` is the only way a view of a run comes about; readers
//! tolerate unknown kinds and fields; non-finite numbers are written as strings.

mod command;
mod debug;
mod evaluation;
mod float;
mod report;
pub mod score;
mod state;
mod tokens;

use serde::{Deserialize, Serialize};

use crate::types::{
    Action, EpisodeEnd, EpisodeId, ErrorClass, GroupId, ImageHash, Iteration, MachineHealth,
    MachineStatus, PolicyVersion, TaskId,
};

pub use command::{Command, parse_switch};
pub use debug::{
    BranchReplayed, BreakOn, Breakpoint, BreakpointsChanged, CANDIDATES_MAX, Candidate,
    CandidatesProposed, DebugCommand, Decision, EpisodeBranched, EpisodeHeld, EpisodeReleased,
    HoldReason, HoldTarget,
};
pub use evaluation::{
    EvalManifest, EvalRequest, EvalWeights, EvalWhen, ManifestDifference, TrialRow,
};
pub use float::F;
pub use report::{
    EvalReport, IterationReport, ProtocolScore, RATIO_BINS, RATIO_LOG_BOUND, RunSummary,
    SampleSignal, Score, StepSignal, UpdateReport, ratio_bin_edge, ratio_bin_width,
};
pub use state::{
    CheckpointState, CommandState, CommandStatus, Counters, DesktopPhase, DesktopState,
    EpisodeDebug, EpisodeState, EvaluationState, EvaluationStatus, FailureState, FinishedPhase,
    GroupState, Header, HeldState, Injection, MachineView, MarkKind, MemberPlace, NoticeState,
    PhaseState, ReplayState, RunMark, RunState, Settings, StepState, StoredFrame, StoredSuccess,
};
pub use tokens::{Clip, LearnedTokens, ReplyId, ReplyTokens, TokenSignals};

/// Version of this vocabulary; a console refuses a run of a newer one with a clear message.
pub const SCHEMA_VERSION: u32 = 1;

/// Profile key that `Command::SetLearningRate` changes.
pub const LEARNING_RATE_KEY: &str = "optimizer.lr";
/// Profile key that `Command::SetTemperature` changes.
pub const TEMPERATURE_KEY: &str = "sampling.temperature";
/// Profile key that `Command::SetDesktops` changes.
pub const DESKTOPS_KEY: &str = "env.desktops";
/// Profile key that `Command::SetClip` changes, with `CLIP_HIGH_KEY`.
pub const CLIP_LOW_KEY: &str = "grpo.clip_low";
/// Profile key that `Command::SetClip` changes, with `CLIP_LOW_KEY`.
pub const CLIP_HIGH_KEY: &str = "grpo.clip_high";
/// Profile key that `Command::SetReplay` changes; 1 is on, 0 off.
pub const REPLAY_KEY: &str = "replay.enabled";

/// One line of the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Position in the run's log, from 0, without gaps.
    pub seq: u64,
    /// Milliseconds since the run's first start, by the wall clock of the engine.
    pub at_ms: u64,
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// A part of an iteration, in order. Pausing happens between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Evaluation before or after training, or on demand.
    Evaluate,
    /// Rollouts.
    Collect,
    /// Replay injection and insertion.
    Replay,
    /// Log-probabilities before the first update.
    OldLogprobs,
    /// Gradient updates.
    Update,
    /// Handing the new weights to the policy.
    Publish,
    /// Writing a checkpoint.
    Checkpoint,
}

/// Where a pause takes hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SafePoint {
    /// Before the next step of any desktop.
    EnvStep,
    /// Before the next iteration's rollouts.
    Batch,
    /// After the rollouts, before the first update.
    PreUpdate,
    /// After the next checkpoint.
    PostCheckpoint,
}

/// How far a step goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stride {
    /// To the next safe point of any kind.
    Phase,
    /// To the next iteration's rollouts.
    Iteration,
}

/// What the trainer is doing, for the operator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state", content = "at")]
pub enum TrainerState {
    /// Setting up; no iteration yet.
    #[default]
    Starting,
    /// At work.
    Running,
    /// A pause was asked for and takes hold at the safe point.
    Pausing(SafePoint),
    /// Standing at the safe point.
    Paused(SafePoint),
    /// Going on for one phase or one iteration, then paused again.
    Stepping(Stride),
    /// Ends after what is running, with a checkpoint.
    Stopping,
    /// All iterations done, or stopped as asked.
    Finished,
    /// Ended by an error.
    Failed,
}

/// What an episode is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// Its group trains the policy.
    Train,
    /// It measures the policy.
    Evaluate,
    /// It helps to choose tasks.
    Select,
    /// A person steps through it; nothing learns from it and nothing is measured by it.
    Debug,
}

/// One member of a group as training sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MemberSignal {
    /// The episode trained on; a stored success if `replayed`.
    pub episode: EpisodeId,
    /// Its total reward.
    pub reward: f32,
    /// Its advantage.
    pub advantage: F,
    /// Whether it came out of the replay buffer.
    pub replayed: bool,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum EventKind {
    /// First line of every log.
    RunStarted {
        /// `SCHEMA_VERSION` of the writer.
        schema: u32,
        /// The run's name: that of its folder.
        run: String,
        /// Version of arpo.
        version: String,
        /// Name of the last profile overlay.
        profile: String,
        /// Milliseconds since 1970 of `at_ms` 0.
        unix_ms: u64,
        /// The run's seed.
        seed: u64,
        /// Desktops running side by side.
        desktops: u32,
        /// Episodes a group.
        group_size: u32,
        /// Groups an iteration.
        tasks_per_iteration: u32,
        /// Iterations asked for.
        iterations: u64,
        /// Most actions of an episode.
        max_steps: u32,
        /// Size of the tasks' pool.
        num_tasks: u32,
        /// Context of the policy, tokens.
        context_tokens: u32,
        /// Learning rate at the start.
        learning_rate: f64,
        /// Sampling temperature at the start.
        temperature: f64,
        /// Lower clip at the start.
        #[serde(default)]
        clip_low: Option<f64>,
        /// Upper clip at the start.
        #[serde(default)]
        clip_high: Option<f64>,
        /// Whether replay is on at the start.
        #[serde(default)]
        replay: Option<bool>,
        /// Whether time is virtual.
        virtual_clock: bool,
    },
    /// The engine was started again on this run; events from `discard_from_seq` on were of work
    /// that is done anew, and do not count.
    RunResumed {
        /// The iteration that is done next.
        from_iteration: Iteration,
        /// First event that no longer counts.
        discard_from_seq: u64,
        /// Number of this start, from 1.
        incarnation: u32,
    },
    /// The trainer's state changed.
    StateChanged {
        /// The new one.
        #[serde(flatten)]
        state: TrainerState,
    },
    /// An iteration began.
    IterationStarted {
        /// Which.
        iteration: Iteration,
        /// The weights it collects with.
        policy: PolicyVersion,
    },
    /// A phase began.
    PhaseStarted {
        /// Of which iteration.
        iteration: Iteration,
        /// Which.
        phase: Phase,
        /// How many units of work it has, if known: episodes, trajectories.
        total: u32,
    },
    /// A phase got on.
    PhaseProgress {
        /// Which.
        phase: Phase,
        /// Units done.
        done: u32,
        /// Units in all.
        total: u32,
    },
    /// A phase ended.
    PhaseFinished {
        /// Of which iteration.
        iteration: Iteration,
        /// Which.
        phase: Phase,
        /// How long it took, ms of wall time.
        wall_ms: u64,
    },
    /// A group was dispatched.
    GroupStarted {
        /// Which.
        group: GroupId,
        /// Its task.
        task: TaskId,
        /// The task's instruction, shortened to 200 characters.
        instruction: String,
        /// Whether the right answer is to declare it infeasible.
        infeasible: bool,
    },
    /// An episode got its desktop.
    EpisodeStarted {
        /// Which.
        episode: EpisodeId,
        /// What for.
        purpose: Purpose,
        /// Its group, if any.
        group: Option<GroupId>,
        /// Its place in the group.
        sample: u32,
        /// Its task.
        task: TaskId,
        /// The desktop it runs on, from 0.
        desktop: u32,
        /// The evaluation it is a trial of.
        #[serde(default)]
        evaluation: Option<u32>,
        /// Whether the right answer is to declare its task infeasible.
        #[serde(default)]
        infeasible: bool,
    },
    /// A screenshot was taken: the one `step` is decided on, or the last one.
    ObservationTaken {
        /// Of which episode.
        episode: EpisodeId,
        /// Number of the step it is for, from 0.
        step: u32,
        /// The picture.
        image: ImageHash,
    },
    /// The reply of a step parsed and its actions are being carried out.
    ActingStarted {
        /// Of which episode.
        episode: EpisodeId,
        /// The step's number, from 0.
        step: u32,
    },
    /// The episode took its last action and its end state is being judged.
    ScoringStarted {
        /// Of which episode.
        episode: EpisodeId,
    },
    /// A step was carried out.
    StepFinished {
        /// Of which episode.
        episode: EpisodeId,
        /// Its number, from 0.
        step: u32,
        /// The thought, shortened to 2000 characters; its file has all of it.
        thought: String,
        /// What was done, in screen pixels.
        actions: Vec<Action>,
        /// Why the reply did not parse.
        malformed: Option<String>,
        /// Tokens of the reply.
        reply_tokens: u32,
        /// Mean log-probability of its tokens.
        mean_logprob: F,
        /// Generation, ms of the run's clock, waiting included.
        generate_ms: u64,
        /// The desktop's part, ms of the run's clock.
        act_ms: u64,
    },
    /// An episode was scored.
    EpisodeFinished {
        /// Which.
        episode: EpisodeId,
        /// What for.
        purpose: Purpose,
        /// Its task.
        task: TaskId,
        /// How it ended.
        end: EpisodeEnd,
        /// Outcome under the protocol trained on.
        outcome: f32,
        /// Format reward.
        format: f32,
        /// What the evaluator said of the state.
        state_score: f32,
        /// Steps.
        steps: u32,
        /// Tokens, prompts included.
        tokens: u32,
        /// Sampled tokens.
        sampled_tokens: u32,
        /// How long, ms of the run's clock.
        clock_ms: u64,
        /// Whether a person edited or chose one of its actions.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        human_touched: bool,
    },
    /// An episode was ended by an error: no score.
    EpisodeFailed {
        /// Which.
        episode: EpisodeId,
        /// What for.
        purpose: Purpose,
        /// Its task.
        task: TaskId,
        /// Whose fault.
        class: ErrorClass,
        /// What happened.
        message: String,
        /// Whether it is tried again under a new id.
        rerolled: bool,
    },
    /// The machine under a desktop changed its state.
    MachineChanged {
        /// The desktop, from 0.
        desktop: u32,
        /// Where its machine stands now.
        status: MachineStatus,
    },
    /// The machine under a desktop was looked at.
    MachineMeasured {
        /// The desktop, from 0.
        desktop: u32,
        /// What was found.
        health: MachineHealth,
    },
    /// A picture of a desktop was taken past its guest server, which does not answer or is busy
    /// with the set-up of a task.
    MachineSeen {
        /// The desktop, from 0.
        desktop: u32,
        /// The picture.
        image: ImageHash,
    },
    /// A group's episodes are all in.
    GroupFinished {
        /// Which.
        group: GroupId,
        /// Outcome of each member in order; `None` where it failed, or a person touched it.
        outcomes: Vec<Option<f32>>,
        /// Sample standard deviation (n - 1) of the valid outcomes.
        std: F,
    },
    /// A stored success took a failed member's place.
    ReplayInjected {
        /// In which group.
        group: GroupId,
        /// The member replaced.
        sample: u32,
        /// The success.
        source: EpisodeId,
        /// The newest weights that wrote it.
        source_policy: PolicyVersion,
    },
    /// A success was stored.
    ReplayStored {
        /// Of which task.
        task: TaskId,
        /// Which.
        episode: EpisodeId,
        /// How many the task has now.
        stored: u32,
    },
    /// An operator pinned a stored success, so that it never leaves for a newer one, or let it go.
    StoredPinned {
        /// Of which task.
        task: TaskId,
        /// Which.
        episode: EpisodeId,
        /// Whether it is pinned now.
        pinned: bool,
    },
    /// An operator removed a stored success.
    StoredDropped {
        /// Of which task.
        task: TaskId,
        /// Which.
        episode: EpisodeId,
    },
    /// What training makes of a group.
    AdvantagesComputed {
        /// Which.
        group: GroupId,
        /// Its members, replay applied, failed ones left out.
        members: Vec<MemberSignal>,
    },
    /// An optimizer update was made.
    UpdateFinished(UpdateReport),
    /// What the last update of its iteration made of a trajectory's tokens, reply by reply; token
    /// by token it is in a file beside the episode then.
    EpisodeLearned {
        /// The trajectory's episode; a stored success if `replayed`.
        episode: EpisodeId,
        /// Whether it came out of the replay buffer.
        replayed: bool,
        /// Its replies in order.
        steps: Vec<StepSignal>,
    },
    /// The policy uses new weights.
    PolicyPublished {
        /// Which.
        policy: PolicyVersion,
    },
    /// A checkpoint is complete on disk. A resume from it keeps the log up to this event, so
    /// whatever belongs to its iterations, `IterationFinished` above all, is emitted before.
    CheckpointSaved {
        /// The iterations behind it.
        iterations_done: u64,
        /// Its folder, relative to the run's.
        path: String,
        /// Hash of its weights.
        weights: String,
    },
    /// An iteration ended.
    IterationFinished(IterationReport),
    /// An evaluation was asked for and waits for its desktops.
    EvaluationQueued {
        /// Its number in the run, from 1.
        evaluation: u32,
        /// The command that asked for it.
        command: u64,
        /// What was asked for.
        request: EvalRequest,
    },
    /// An evaluation began, or goes on where it was cancelled: then the trials it has already
    /// follow as `TrialFinished`, as they came.
    EvaluationStarted {
        /// Its number in the run, from 1.
        evaluation: u32,
        /// What for: `heldout_first`, `heldout_last`, `eval`, or `operator`.
        name: String,
        /// What was asked for.
        request: EvalRequest,
        /// Under which conditions.
        manifest: Box<EvalManifest>,
        /// Trials in all.
        total: u32,
    },
    /// A trial of an evaluation was scored, or given up over an error.
    TrialFinished {
        /// Of which evaluation.
        evaluation: u32,
        /// What came of it.
        trial: TrialRow,
    },
    /// An evaluation was given up; what it has is kept, and it can go on later.
    EvaluationCancelled {
        /// Which.
        evaluation: u32,
        /// Trials it has.
        done: u32,
        /// Why.
        #[serde(default)]
        reason: String,
    },
    /// An evaluation ended.
    EvalFinished(Box<EvalReport>),
    /// A setting was changed while running.
    SettingChanged {
        /// Its profile key, for instance `LEARNING_RATE_KEY`.
        key: String,
        /// The new value.
        value: F,
    },
    /// An operator asked for something.
    CommandReceived {
        /// The command's number, given by the engine.
        id: u64,
        /// What.
        request: Command,
        /// From where: `console`, `ctl`, `signal`.
        origin: String,
    },
    /// It will be done.
    CommandAccepted {
        /// Which.
        id: u64,
    },
    /// It will not be done.
    CommandRefused {
        /// Which.
        id: u64,
        /// Why, and what to do instead.
        reason: String,
    },
    /// It has been done.
    CommandDone {
        /// Which.
        id: u64,
    },
    /// An episode stands before an action and waits for a decision.
    EpisodeHeld(Box<EpisodeHeld>),
    /// The policy wrote other replies for a held episode.
    CandidatesProposed(CandidatesProposed),
    /// A held episode goes on, or ends.
    EpisodeReleased(EpisodeReleased),
    /// An episode begins with the recorded steps of another one.
    EpisodeBranched(EpisodeBranched),
    /// Those steps have been replayed.
    BranchReplayed(BranchReplayed),
    /// The breakpoints in force changed.
    BreakpointsChanged(BreakpointsChanged),
    /// Something the operator should know.
    Notice {
        /// How grave.
        level: NoticeLevel,
        /// One sentence.
        text: String,
    },
    /// The run ended.
    RunFinished(RunSummary),
    /// A kind this build does not know; kept so that an older console can watch a newer run.
    #[serde(other)]
    Unknown,
}

/// How grave a notice is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoticeLevel {
    /// Good to know.
    Info,
    /// Something is off, the run goes on.
    Warning,
    /// Something failed.
    Error,
}

#[cfg(test)]
mod score_tests;
#[cfg(test)]
mod tests;
