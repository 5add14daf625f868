//! The operator's requests to the debugger, and branches on their way to a desktop.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use crate::bus::{CommandRequest, EventSink};
use crate::env::simulated::suite;
use crate::event::{
    Breakpoint, BreakpointsChanged, DebugCommand, EventKind, HoldTarget, NoticeLevel, Phase,
    Purpose, TrainerState,
};
use crate::rollout::{Branch, Collection, Debugger, Job, Outcome};
use crate::screen::decode_png;
use crate::session::SessionError;
use crate::session::collector::Collector;
use crate::session::control::Control;
use crate::store::RunDir;
use crate::types::{EpisodeId, Screenshot, Task, TaskId};

/// A branch that an operator asked for; answered when its episode is on a desktop.
pub(super) struct BranchRequest {
    episode: EpisodeId,
    step: u32,
    request: CommandRequest,
}

/// The debugger's part of `Control`.
#[derive(Default)]
pub(super) struct DebugControl {
    debugger: Debugger,
    branches: Vec<BranchRequest>,
    /// Those dispatched so far.
    tasks: BTreeMap<TaskId, Arc<Task>>,
}

impl DebugControl {
    /// Obeys a command that has been received and not refused. Answers it now or later.
    /// True if all episodes are to stand still.
    pub(super) fn obey(
        &mut self,
        command: DebugCommand,
        request: CommandRequest,
        sink: &EventSink,
    ) -> bool {
        let debugger = &self.debugger;
        let (result, others_held) = match command {
            DebugCommand::Hold { target, others } => {
                let result = debugger.hold(target);
                let others = others && result.is_ok();
                (result, others)
            }
            DebugCommand::Release { target } => (debugger.release(target), false),
            DebugCommand::SetBreakpoint { on, episode } => {
                tell_breakpoints(sink, debugger.set_breakpoint(on, episode));
                (Ok(()), false)
            }
            DebugCommand::ClearBreakpoint { id } => {
                let left = debugger.clear_breakpoint(id);
                (left.map(|left| tell_breakpoints(sink, left)), false)
            }
            DebugCommand::Decide {
                episode,
                step,
                decision,
            } => {
                let answer = Box::new(|result| answer_with(request, result));
                debugger.decide(episode, step, decision, answer);
                return false;
            }
            DebugCommand::Branch { episode, step } => {
                request.accept();
                self.branches.push(BranchRequest {
                    episode,
                    step,
                    request,
                });
                return false;
            }
        };
        answer_with(request, result);
        others_held
    }
}

fn answer_with(request: CommandRequest, result: Result<(), String>) {
    match result {
        Ok(()) => {
            request.accept();
            request.done();
        }
        Err(reason) => request.refuse(&reason),
    }
}

fn tell_breakpoints(sink: &EventSink, breakpoints: Vec<Breakpoint>) {
    sink.emit(EventKind::BreakpointsChanged(BreakpointsChanged {
        breakpoints,
    }));
}

impl Control {
    /// The debugger that episodes ask.
    pub fn debugger(&self) -> Debugger {
        self.debug.debugger.clone()
    }

    /// Whether a branch waits for a desktop.
    pub fn wants_branch(&self) -> bool {
        !self.debug.branches.is_empty()
    }
}

/// Reads what a branch of a recorded episode needs.
///
/// `steps` is how many are replayed. Fails with a sentence for the operator.
pub fn load_branch(run: &RunDir, episode: EpisodeId, steps: usize) -> Result<Branch, String> {
    let recorded = run.episode(episode).map_err(|error| error.to_string())?;
    let shown = &recorded.steps[..steps.min(recorded.steps.len())];
    let screenshots: Result<Vec<Screenshot>, String> = shown
        .iter()
        .map(|step| {
            let png = run
                .png(&step.screenshot)
                .map_err(|error| error.to_string())?;
            decode_png(&png).map_err(|error| format!("screenshot {}: {error}", step.screenshot))
        })
        .collect();
    Branch::new(&run.name(), recorded, steps, screenshots?)
}

/// The episode that steps through a task, from its start or from a branch.
pub fn debug_job(task: Arc<Task>, branch: Option<Branch>, seed: u64) -> Job {
    let recorded = branch.as_ref().map(Branch::episode);
    // The recorded desktop's chances come again.
    let seed = recorded.map_or(seed, |episode| episode.seed);
    Job {
        sample: recorded.map_or(0, |episode| episode.sample),
        branch: branch.map(Arc::new),
        ..Job::alone(task, Purpose::Debug, seed)
    }
}

impl Collector {
    /// Puts the branches that operators wait for before `jobs`; says how many.
    pub(super) fn with_branches(&mut self, jobs: &[Job]) -> (Vec<Job>, usize) {
        for job in jobs {
            let task = (job.task.id.clone(), Arc::clone(&job.task));
            self.control.debug.tasks.extend([task]);
        }
        let asked = std::mem::take(&mut self.control.debug.branches);
        let mut all = Vec::new();
        for BranchRequest {
            episode,
            step,
            request,
        } in asked
        {
            match self.branch_job(episode, step) {
                Ok(job) => {
                    all.push(job);
                    request.done();
                }
                Err(reason) => request.refuse(&reason),
            }
        }
        let count = all.len();
        all.extend_from_slice(jobs);
        (all, count)
    }

    fn branch_job(&self, episode: EpisodeId, steps: u32) -> Result<Job, String> {
        let run = self.recorder.run().ok_or("this run keeps no episodes")?;
        let branch = load_branch(run, episode, steps as usize)?;
        let id = branch.episode().task.clone();
        let task = match self.control.debug.tasks.get(&id) {
            Some(task) => Arc::clone(task),
            None => Arc::new(suite::task_by_id(&id).map_err(|error| error.to_string())?),
        };
        Ok(debug_job(task, Some(branch), 0))
    }

    /// Takes the first `count` outcomes out of a collection and stores them: they are nobody's.
    pub(super) fn keep_branches(&self, collection: &mut Collection, count: usize) {
        for outcome in collection.outcomes.drain(..count) {
            self.keep(&outcome);
        }
    }

    fn keep(&self, outcome: &Outcome) {
        let Some(run) = self.recorder.run() else {
            return;
        };
        let stored = match outcome {
            Outcome::Scored(collected) => run.put_episode(&collected.episode),
            Outcome::Failed(failed) => run.put_failed_episode(failed),
        };
        if let Err(error) = stored {
            let text = format!("an episode was not stored: {error}");
            self.notice(NoticeLevel::Error, text);
        }
    }

    /// Runs one episode, held before each action, then the branches that were asked for meanwhile.
    pub async fn step(&mut self, job: &Job, temperature: f32) -> Result<Outcome, SessionError> {
        // Holding all cannot fail: no episode need be running.
        let _ = self.control.debugger().hold(HoldTarget::All);
        self.control.set_state(TrainerState::Running);
        let started = Instant::now();
        self.begin_phase(Phase::Collect, 1);
        let collection = self
            .collect(std::slice::from_ref(job), temperature, Phase::Collect)
            .await?;
        let outcome = collection.outcomes.into_iter().next();
        let outcome = outcome.expect("every job has an outcome");
        self.keep(&outcome);
        while self.control.wants_branch() && !self.control.is_stopping() {
            self.collect(&[], temperature, Phase::Collect).await?;
        }
        self.end_phase(Phase::Collect, started);
        self.control.stopped();
        Ok(outcome)
    }
}
