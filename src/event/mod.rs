//! The vocabulary of the run's event stream, pure: who emits and who shows is not known here.
//!
//! Invariants: events are small (ids, counts, hashes, short texts; pictures and tokens lie in
//! files); `RunState::apply` in `state` is the only way a view of a run comes about; readers
//! tolerate unknown kinds and fields; non-finite numbers are written as strings.

mod debug;
mod float;
mod report;
mod state;

use serde::{Deserialize, Serialize};

use crate::types::{
    Action, EpisodeEnd, EpisodeId, ErrorClass, GroupId, ImageHash, Iteration, PolicyVersion, TaskId,
};

pub use debug::{
    BranchReplayed, BreakOn, Breakpoint, BreakpointsChanged, CANDIDATES_MAX, Candidate,
    CandidatesProposed, DebugCommand, Decision, EpisodeBranched, EpisodeHeld, EpisodeReleased,
    HoldReason, HoldTarget,
};
pub use float::F;
pub use report::{EvalReport, IterationReport, ProtocolScore, RunSummary, Score, UpdateReport};
pub use state::{
    CheckpointState, CommandState, CommandStatus, Counters, DesktopPhase, DesktopState,
    EpisodeDebug, EpisodeState, FailureState, FinishedPhase, GroupState, Header, HeldState,
    Injection, NoticeState, PhaseState, ReplayState, RunState, Settings, StepState, StoredSuccess,
};

/// Version of this vocabulary; a console refuses a run of a newer one with a clear message.
pub const SCHEMA_VERSION: u32 = 1;

/// Profile key that `Command::SetLearningRate` changes.
pub const LEARNING_RATE_KEY: &str = "optimizer.lr";
/// Profile key that `Command::SetTemperature` changes.
pub const TEMPERATURE_KEY: &str = "sampling.temperature";
/// Profile key that `Command::SetDesktops` changes.
pub const DESKTOPS_KEY: &str = "env.desktops";

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
    /// Ends after what is running, with a checkpoint.
    Stopping,
    /// All iterations done, or stopped as asked.
    Finished,
    /// Ended by an error.
    Failed,
}

/// What an operator can ask of a running engine. Each is answered by events, never assumed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum Command {
    /// Stand still at the next safe point of this kind.
    Pause {
        /// Which.
        at: SafePoint,
    },
    /// Go on.
    Resume,
    /// Go on until the next safe point of any kind, then pause again.
    StepPhase,
    /// Go on for one iteration, then pause again.
    StepIteration,
    /// End after the running phase, with a checkpoint.
    Stop,
    /// Write a checkpoint at the next safe point.
    Checkpoint,
    /// Use this learning rate from the next update on.
    SetLearningRate {
        /// The rate.
        value: f64,
    },
    /// Use this temperature from the next rollout on.
    SetTemperature {
        /// The temperature, above 0.
        value: f64,
    },
    /// Use this many desktops from the next iteration on.
    SetDesktops {
        /// How many, at least 1.
        value: u32,
    },
    /// Something of the debugger.
    Debug(DebugCommand),
}

impl Command {
    /// Whether its value makes sense for any run; if not, why.
    pub fn check(&self) -> Result<(), String> {
        match *self {
            Command::Debug(ref command) => command.check(),
            Command::SetLearningRate { value } if !(value > 0.0 && value <= 1.0) => Err(format!(
                "a learning rate lies above 0 and up to 1, not at {value}"
            )),
            Command::SetTemperature { value } if !(value > 0.0 && value <= 2.0) => Err(format!(
                "a temperature lies above 0 and up to 2, not at {value}"
            )),
            Command::SetDesktops { value } if !(1..=4096).contains(&value) => {
                Err(format!("a run has 1 to 4096 desktops, not {value}"))
            }
            _ => Ok(()),
        }
    }
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
        /// The thought, shortened to 400 characters.
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
    /// What training makes of a group.
    AdvantagesComputed {
        /// Which.
        group: GroupId,
        /// Its members, replay applied, failed ones left out.
        members: Vec<MemberSignal>,
    },
    /// An optimizer update was made.
    UpdateFinished(UpdateReport),
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
mod tests;
