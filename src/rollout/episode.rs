//! One episode from reset to score.
//!
//! Follows ARPO@7489ae3 `gui_agent.py` `EnvWorker` in its order of things. Departs: sampled
//! ids are kept verbatim; errors of desktop and evaluator are outcomes of their own; a terminal
//! action does not discard the actions before it in the same reply.

use std::sync::Arc;
use std::time::Duration;

use crate::action::{ParsedReply, parse_reply};
use crate::config::{PolicyConfig, Protocol};
use crate::env::{EnvError, Environment, Observation};
use crate::evaluator::protocol::outcome;
use crate::evaluator::{EvaluatorError, Scorer, evaluate};
use crate::event::{EventKind, F, Purpose};
use crate::policy::{
    Extension, FinishReason, Generation, Policy, PolicyError, SamplingParams, SessionId,
    SessionSpec, WeightsId,
};
use crate::prompt::{Piece, PromptBuilder, PromptError};
use crate::rollout::barrier::Barrier;
use crate::rollout::branch::Branch;
use crate::rollout::cause::explained;
use crate::rollout::clock::Clock;
use crate::rollout::debug::Debugger;
use crate::rollout::fleet::{Ending, Seat};
use crate::rollout::gate::Gate;
use crate::rollout::recorder::Recorder;
use crate::types::{
    Action, Episode, EpisodeEnd, EpisodeId, ErrorClass, FailedEpisode, GroupId, PolicyVersion,
    Reward, ScreenSize, Screenshot, Step, StepTiming, Task, TokenStream, derive_seed,
};

/// Characters of a thought that an event carries; longer ones are rare, and the file has them.
const THOUGHT_CHARS: usize = 2000;
/// Purposes of seeds below an episode's own.
const SEED_DESKTOP: u64 = 1;
const SEED_SAMPLING: u64 = 2;

/// One episode to run.
#[derive(Clone, Debug)]
pub struct Job {
    /// Its task.
    pub task: Arc<Task>,
    /// What for.
    pub purpose: Purpose,
    /// Its group, if it trains.
    pub group: Option<GroupId>,
    /// Its place in the group or among the task's trials.
    pub sample: u32,
    /// Decides its sampling and its desktop's chances.
    pub seed: u64,
    /// The evaluation it is a trial of, if it is one of a run's numbered ones.
    pub trial_of: Option<TrialOf>,
    /// The recorded steps it begins with.
    pub branch: Option<Arc<Branch>>,
}

impl Job {
    /// An episode of no group and no evaluation, from its task's start.
    pub fn alone(task: Arc<Task>, purpose: Purpose, seed: u64) -> Self {
        Self {
            task,
            purpose,
            group: None,
            sample: 0,
            seed,
            trial_of: None,
            branch: None,
        }
    }
}

/// What a trial takes from its evaluation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrialOf {
    /// The evaluation's number in the run.
    pub evaluation: u32,
    /// Its sampling temperature, whatever that of the collection is.
    pub temperature: f32,
    /// Pinned weights; the published ones if absent.
    pub weights: Option<WeightsId>,
}

/// An episode with the pictures its policy saw, one a step.
#[derive(Clone, Debug)]
pub struct Collected {
    /// The record.
    pub episode: Episode,
    /// `[steps]` screenshots, in order; none where nothing is learned from the episode.
    pub screenshots: Vec<Screenshot>,
    /// What the desktop says its reset, actions and evaluation took. Waiting for anybody else is
    /// not part of it.
    pub desktop_time: Duration,
}

/// How a job ended. Every job has exactly one.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// It was scored.
    Scored(Box<Collected>),
    /// An error ended it; nothing to learn from.
    Failed(FailedEpisode),
}

impl Outcome {
    /// The scored episode, if it is one.
    pub fn scored(&self) -> Option<&Collected> {
        match self {
            Outcome::Scored(collected) => Some(collected),
            Outcome::Failed(_) => None,
        }
    }
}

/// What all episodes of a collection share.
pub struct EpisodeContext<'a> {
    /// Who answers.
    pub policy: &'a dyn Policy,
    /// How conversations become tokens.
    pub prompt: &'a PromptBuilder,
    /// How replies are sampled.
    pub sampling: SamplingParams,
    /// Most actions of an episode.
    pub max_steps: usize,
    /// How the policy speaks: its prompt, its coordinates, its context.
    pub speech: &'a PolicyConfig,
    /// The protocol whose outcome is the reward.
    pub protocol: Protocol,
    /// Longest an episode may take by the run's clock, the wall's for real desktops.
    pub deadline: Duration,
    /// The run's clock.
    pub clock: Clock,
    /// Passed before each step.
    pub gate: Gate,
    /// Asked before each action.
    pub debugger: Debugger,
    /// Who scores real desktops.
    pub scorer: Scorer,
    /// Told of everything.
    pub recorder: &'a Recorder,
}

impl EpisodeContext<'_> {
    /// Waits for a desktop, but on the wall's clock no longer than the episode has `left`: a real
    /// one may hang. A simulated one answers at once and says what it took.
    async fn in_time<T>(
        &self,
        left: Duration,
        desktop: impl Future<Output = T>,
    ) -> Result<T, RolloutError> {
        if self.clock.is_virtual() {
            return Ok(desktop.await);
        }
        let answered = tokio::time::timeout(left, desktop).await;
        answered.map_err(|_| RolloutError::Deadline(self.deadline))
    }
}

/// What ends an episode without a score.
#[derive(Debug, thiserror::Error)]
pub enum RolloutError {
    /// The desktop.
    #[error("{0}")]
    Env(#[source] EnvError),
    /// The desktop, before the first observation.
    #[error("reset: {0}")]
    Reset(#[source] EnvError),
    /// The policy.
    #[error("{0}")]
    Policy(#[source] PolicyError),
    /// The evaluator.
    #[error("{0}")]
    Evaluator(#[source] EvaluatorError),
    /// Too slow a straggler.
    #[error("episode exceeded its deadline of {} s", .0.as_secs_f64())]
    Deadline(Duration),
    /// Stopped from outside.
    #[error("cancelled")]
    Cancelled,
    /// The operator ended this very episode.
    #[error("{}", match .0 { Ending::Kill => "ended by the operator", Ending::Reroll => "tried again, as the operator asked" })]
    Ended(Ending),
}

impl RolloutError {
    /// The class shown to the operator.
    pub fn class(&self) -> ErrorClass {
        match self {
            RolloutError::Env(error) => error.class(),
            RolloutError::Reset(_) => ErrorClass::Reset,
            RolloutError::Policy(_) => ErrorClass::Policy,
            RolloutError::Evaluator(error) => error.class(),
            RolloutError::Deadline(_) => ErrorClass::Timeout,
            RolloutError::Cancelled | RolloutError::Ended(_) => ErrorClass::Cancelled,
        }
    }

    /// Whether trying again on a fresh desktop may help.
    pub fn is_worth_rerolling(&self) -> bool {
        !matches!(
            self,
            RolloutError::Cancelled
                | RolloutError::Ended(Ending::Kill)
                | RolloutError::Policy(_)
                // The task asks for what there is not, on every desktop.
                | RolloutError::Reset(EnvError::Task { .. })
        )
    }
}

/// An episode under way.
pub(super) struct Running<'a, 'c> {
    pub(super) context: &'a EpisodeContext<'c>,
    pub(super) env: &'a mut dyn Environment,
    /// Whether its time stands still, or may do so.
    pub(super) frozen: bool,
    /// What of the desktop is waited for, or was when the episode's time was over.
    pub(super) awaited: Option<&'static str>,
    pub(super) job: &'a Job,
    pub(super) id: EpisodeId,
    pub(super) barrier: Option<&'a Barrier>,
    pub(super) session: SessionId,
    /// Its copy before the reply under way, where that may be replaced.
    pub(super) base: Option<SessionId>,
    /// Copies made so far.
    pub(super) forks: u64,
    /// Tokens of the episode that the session does not hold yet.
    pub(super) pending: Extension,
    pub(super) human_touched: bool,
    started: Duration,
    /// Time spent waiting for an operator.
    pub(super) held_for: Duration,
    desktop_time: Duration,
    pub(super) tokens: TokenStream,
    pub(super) steps: Vec<Step>,
    /// The policy's, one a step.
    pub(super) screenshots: Vec<Screenshot>,
    pub(super) actions_done: usize,
    last: Option<Screenshot>,
}

/// Runs one episode on `env` under `id` and scores it. Tells the recorder of every step, but
/// leaves the closing event to the caller, who knows whether it is tried again.
pub(super) async fn run_episode(
    context: &EpisodeContext<'_>,
    env: &mut dyn Environment,
    job: &Job,
    id: EpisodeId,
    barrier: Option<&Barrier>,
    seat: &mut Seat,
) -> Result<Collected, RolloutError> {
    let spec = SessionSpec {
        episode: id,
        sample: job.sample,
        seed: derive_seed(job.seed, &[SEED_SAMPLING]),
        task: Arc::clone(&job.task),
        weights: job.trial_of.and_then(|trial| trial.weights),
    };
    let session = context
        .policy
        .open(spec)
        .await
        .map_err(RolloutError::Policy)?;
    let mut running = Running {
        context,
        env: &mut *env,
        frozen: false,
        awaited: None,
        job,
        id,
        barrier,
        session,
        base: None,
        forks: 0,
        pending: Extension::default(),
        human_touched: false,
        started: context.clock.now(),
        held_for: Duration::ZERO,
        desktop_time: Duration::ZERO,
        tokens: TokenStream::default(),
        steps: Vec::new(),
        screenshots: Vec::new(),
        actions_done: 0,
        last: None,
    };
    if let Some(barrier) = barrier {
        barrier.join();
    }
    // A dropped reply ends with its session, a dropped action with the next reset.
    let end = tokio::select! {
        biased;
        how = seat.ended() => Err(RolloutError::Ended(how)),
        end = running.play() => end,
    };
    if let Some(barrier) = barrier {
        barrier.leave();
    }
    let end = running.wound_up(end).await;
    running.close_base().await;
    context.policy.close(running.session).await;
    let end = end?;
    let scored = tokio::select! {
        biased;
        how = seat.ended() => Err(RolloutError::Ended(how)),
        scored = running.score(end) => scored,
    };
    match scored {
        Err(error) => Err(explained(env, error).await),
        scored => scored,
    }
}

impl Running<'_, '_> {
    async fn play(&mut self) -> Result<EpisodeEnd, RolloutError> {
        let seed = derive_seed(self.job.seed, &[SEED_DESKTOP]);
        let left = self.time_left();
        self.awaited = Some("reset");
        let resetting = self.env.reset(&self.job.task, seed);
        let first = self.context.in_time(left, resetting).await?;
        self.awaited = None;
        let mut observation = first.map_err(RolloutError::Reset)?;
        self.pass(observation.elapsed).await;
        observation = self.replay(observation).await?;
        loop {
            self.freeze().await?;
            if !self.pass_gate().await {
                return Err(RolloutError::Cancelled);
            }
            if let Some(barrier) = self.barrier {
                barrier.arrive().await;
            }
            self.check_deadline()?;
            let Some(draft) = self.think(observation.screenshot).await? else {
                return Ok(EpisodeEnd::ContextFull);
            };
            let reply = self.consult(draft).await?;
            self.thaw().await?;
            let Some(reply) = reply else {
                observation = self.env.observe().await.map_err(RolloutError::Env)?;
                self.pass(observation.elapsed).await;
                continue;
            };
            observation = match self.act(reply).await? {
                Next::Look(observation) => observation,
                Next::End(end) => return Ok(end),
            };
        }
    }

    /// Lets the time pass that the desktop says it took.
    async fn pass(&mut self, took: Duration) {
        self.desktop_time += took;
        self.context.clock.pass(took).await;
    }

    fn check_deadline(&self) -> Result<(), RolloutError> {
        let limit = self.context.deadline;
        if self.taken() > limit {
            return Err(RolloutError::Deadline(limit));
        }
        Ok(())
    }

    /// How long the episode has taken. Nobody is slow because a person thinks.
    fn taken(&self) -> Duration {
        let elapsed = self.context.clock.now().saturating_sub(self.started);
        elapsed.saturating_sub(self.held_for)
    }

    /// How long the episode may take yet.
    fn time_left(&self) -> Duration {
        self.context.deadline.saturating_sub(self.taken())
    }

    pub(super) fn emit(&self, kind: EventKind) {
        self.context.recorder.emit(kind);
    }

    /// Tells of the screenshot that the step to come is decided on.
    pub(super) fn show(&self, screenshot: &Screenshot) {
        self.context.recorder.screenshot(screenshot);
        self.emit(EventKind::ObservationTaken {
            episode: self.id,
            step: self.steps.len() as u32,
            image: screenshot.hash().clone(),
        });
    }

    /// Shows the policy the screenshot and takes its reply; `None` if the context is full.
    async fn think(&mut self, screenshot: Screenshot) -> Result<Option<Draft>, RolloutError> {
        let context = self.context;
        self.show(&screenshot);
        let piece = self.next_piece(screenshot.size())?;
        let room = context
            .speech
            .context_tokens
            .saturating_sub(self.tokens.len() + piece.ids.len());
        if room < context.sampling.max_tokens {
            self.last = Some(screenshot);
            return Ok(None);
        }
        let observed_at = context.clock.now();
        self.fork_if_watched().await?;
        let before = std::mem::take(&mut self.pending);
        let extension = extended(&before, &piece.ids, &screenshot);
        let generation = self.generate(self.session, extension).await?;
        let took = context.clock.now().saturating_sub(observed_at);
        Ok(Some(Draft {
            written: self.written(generation, screenshot.size())?,
            before,
            piece: piece.ids,
            screenshot,
            timing: StepTiming {
                observed_at_ms: observed_at.as_millis() as u64,
                generate_ms: took.as_millis() as u64,
                act_ms: 0,
            },
        }))
    }

    /// Makes a reply part of the episode.
    pub(super) fn commit(&mut self, draft: Draft) -> Reply {
        self.tokens.push_prompt(&draft.piece);
        let start = self.tokens.len();
        let text = draft.written.text.clone();
        match &draft.written.tokens {
            Tokens::Sampled(ids, logprobs) => self.tokens.push_sampled(ids, logprobs),
            Tokens::Person(ids) => {
                self.tokens.push_prompt(ids);
                self.pending = draft.extension();
                self.pending.ids.extend_from_slice(ids);
                self.pending.replies.push(text.clone());
            }
        }
        let step = Step {
            screenshot: draft.screenshot.hash().clone(),
            reply_tokens: (start, self.tokens.len()),
            reply: text,
            thought: String::new(),
            actions: Vec::new(),
            malformed: None,
            clamped: false,
            policy: draft.written.version,
            timing: draft.timing,
        };
        self.screenshots.push(draft.screenshot);
        Reply {
            parsed: draft.written.parsed,
            step,
        }
    }

    pub(super) fn decode(&self, ids: &[u32]) -> Result<String, RolloutError> {
        let text = self.context.prompt.decode(ids);
        text.map_err(|error| prompt_failed(&error))
    }

    fn next_piece(&self, size: ScreenSize) -> Result<Piece, RolloutError> {
        let prompt = self.context.prompt;
        let piece = if self.steps.is_empty() {
            prompt.first(self.context.speech.prompt, &self.job.task.instruction, size)
        } else {
            prompt.next(size)
        };
        piece.map_err(|error| prompt_failed(&error))
    }

    /// How replies are sampled: a trial has its own temperature.
    fn sampling(&self) -> SamplingParams {
        let sampling = self.context.sampling;
        SamplingParams {
            temperature: self
                .job
                .trial_of
                .map_or(sampling.temperature, |trial| trial.temperature),
            ..sampling
        }
    }

    /// Generates, unless the gate is shut meanwhile.
    pub(super) async fn generate(
        &self,
        session: SessionId,
        extension: Extension,
    ) -> Result<Generation, RolloutError> {
        let policy = self.context.policy;
        let mut gate = self.context.gate.clone();
        tokio::select! {
            biased;
            generation = policy.generate(session, extension, self.sampling()) => {
                generation.map_err(RolloutError::Policy)
            }
            () = gate.shut() => {
                policy.cancel(session).await;
                Err(RolloutError::Cancelled)
            }
        }
    }

    pub(super) fn parse(
        &self,
        generation: &Generation,
        text: &str,
        screen: ScreenSize,
    ) -> Result<ParsedReply, String> {
        match generation.finish {
            FinishReason::Length => return Err("reply cut at its token limit".to_owned()),
            FinishReason::Context => return Err("reply cut at the end of the context".to_owned()),
            FinishReason::Stop => {}
        }
        let space = self.context.prompt.space(self.context.speech, screen);
        let space = space.map_err(|error| error.to_string())?;
        parse_reply(text, &space).map_err(|error| error.to_string())
    }

    /// Carries a reply out, records the step, and says what comes next.
    async fn act(&mut self, reply: Reply) -> Result<Next, RolloutError> {
        let Reply { parsed, mut step } = reply;
        let before = self.context.clock.now();
        let parsed = match parsed {
            Ok(parsed) => parsed,
            Err(reason) => {
                step.malformed = Some(reason);
                self.finish_step(step, before);
                self.look_once_more().await;
                return Ok(Next::End(EpisodeEnd::Malformed));
            }
        };
        step.thought = parsed.thought;
        step.clamped = parsed.clamped;
        let mut next = None;
        for action in parsed.actions {
            step.actions.push(action.clone());
            self.actions_done += 1;
            if let Some(end) = terminal_end(&action) {
                next = Some(Next::End(end));
                break;
            }
            match self.perform(&action).await {
                Ok(observation) => next = Some(Next::Look(observation)),
                Err(error) => {
                    self.finish_step(step, before);
                    return Err(error);
                }
            }
        }
        self.finish_step(step, before);
        Ok(self.cap_steps(next))
    }

    pub(super) async fn perform(&mut self, action: &Action) -> Result<Observation, RolloutError> {
        let left = self.time_left();
        self.awaited = Some("action");
        let acting = self.env.step(action);
        let acted = self.context.in_time(left, acting).await?;
        self.awaited = None;
        match acted {
            Ok(observation) => {
                self.pass(observation.elapsed).await;
                self.last = Some(observation.screenshot.clone());
                Ok(observation)
            }
            Err(error) => {
                self.pass(error.elapsed()).await;
                Err(RolloutError::Env(error))
            }
        }
    }

    fn cap_steps(&self, next: Option<Next>) -> Next {
        match next {
            Some(Next::Look(_)) if self.actions_done >= self.context.max_steps => {
                Next::End(EpisodeEnd::StepLimit)
            }
            Some(next) => next,
            // The parser promises at least one action.
            None => Next::End(EpisodeEnd::Malformed),
        }
    }

    pub(super) fn finish_step(&mut self, mut step: Step, before: Duration) {
        let took = self.context.clock.now().saturating_sub(before);
        step.timing.act_ms = took.as_millis() as u64;
        let (start, end) = step.reply_tokens;
        let logprobs = &self.tokens.sampler_logprobs()[start..end];
        let mean = if self.tokens.mask()[start..end]
            .iter()
            .all(|sampled| *sampled)
        {
            logprobs.iter().sum::<f32>() / logprobs.len().max(1) as f32
        } else {
            // A person wrote it.
            f32::NAN
        };
        self.context.recorder.emit(EventKind::StepFinished {
            episode: self.id,
            step: self.steps.len() as u32,
            thought: shorten(&step.thought, THOUGHT_CHARS),
            actions: step.actions.clone(),
            malformed: step.malformed.clone(),
            reply_tokens: (end - start) as u32,
            mean_logprob: F::from(mean),
            generate_ms: step.timing.generate_ms,
            act_ms: step.timing.act_ms,
        });
        self.steps.push(step);
    }

    /// The end state's picture, for people. A desktop that cannot give it is no failure here:
    /// the evaluator will find out.
    async fn look_once_more(&mut self) {
        if let Ok(observation) = self.env.observe().await {
            self.last = Some(observation.screenshot);
        }
    }

    async fn score(mut self, end: EpisodeEnd) -> Result<Collected, RolloutError> {
        let verdict = evaluate(&self.job.task, self.env, &self.context.scorer).await;
        let evaluation = match verdict {
            Ok(evaluation) => evaluation,
            Err(error) => {
                self.pass(error.elapsed()).await;
                return Err(RolloutError::Evaluator(error));
            }
        };
        self.pass(evaluation.elapsed).await;
        let infeasible = self.job.task.is_infeasible();
        let reward = Reward {
            outcome: outcome(
                self.context.protocol,
                end,
                infeasible,
                evaluation.state_score,
            ),
            format: if end == EpisodeEnd::Malformed {
                -1.0
            } else {
                0.0
            },
        };
        Ok(self.into_collected(end, evaluation.state_score, infeasible, reward))
    }

    fn into_collected(
        self,
        end: EpisodeEnd,
        state_score: f32,
        infeasible: bool,
        reward: Reward,
    ) -> Collected {
        let final_screenshot = self.last.as_ref().map(|screenshot| {
            self.context.recorder.screenshot(screenshot);
            self.context.recorder.emit(EventKind::ObservationTaken {
                episode: self.id,
                step: self.steps.len() as u32,
                image: screenshot.hash().clone(),
            });
            screenshot.hash().clone()
        });
        let episode = Episode {
            id: self.id,
            task: self.job.task.id.clone(),
            group: self.job.group,
            sample: self.job.sample,
            seed: self.job.seed,
            steps: self.steps,
            final_screenshot,
            tokens: self.tokens,
            end,
            state_score,
            infeasible,
            reward,
            human_touched: self.human_touched,
            branched_from: self.job.branch.as_ref().map(|branch| branch.origin()),
        };
        let learned_from = self.job.purpose == Purpose::Train;
        Collected {
            episode,
            screenshots: if learned_from {
                self.screenshots
            } else {
                Vec::new()
            },
            desktop_time: self.desktop_time,
        }
    }
}

/// A reply on its way to becoming a step.
pub(super) struct Draft {
    /// What the session lacked before the piece.
    pub(super) before: Extension,
    /// Prompt tokens of this step.
    pub(super) piece: Vec<u32>,
    /// The screen it answers.
    pub(super) screenshot: Screenshot,
    /// The reply.
    pub(super) written: Written,
    pub(super) timing: StepTiming,
}

impl Draft {
    /// What a session before this step is given to reply.
    pub(super) fn extension(&self) -> Extension {
        extended(&self.before, &self.piece, &self.screenshot)
    }
}

/// What somebody wrote.
pub(super) struct Written {
    pub(super) text: String,
    /// What it means, or why it does not parse.
    pub(super) parsed: Result<ParsedReply, String>,
    pub(super) tokens: Tokens,
    /// The weights in use.
    pub(super) version: PolicyVersion,
}

/// A reply's tokens, the end token included.
pub(super) enum Tokens {
    /// Ids and log-probabilities as sampled.
    Sampled(Vec<u32>, Vec<f32>),
    /// Ids of what a person wrote.
    Person(Vec<u32>),
}

/// A reply, parsed or not, with the step it becomes.
pub(super) struct Reply {
    parsed: Result<ParsedReply, String>,
    step: Step,
}

fn extended(before: &Extension, piece: &[u32], screenshot: &Screenshot) -> Extension {
    let mut extension = before.clone();
    extension.ids.extend_from_slice(piece);
    extension.images.push(screenshot.clone());
    extension
}

/// What follows a step.
enum Next {
    Look(Observation),
    End(EpisodeEnd),
}

fn prompt_failed(error: &PromptError) -> RolloutError {
    RolloutError::Policy(PolicyError::Failed(error.to_string()))
}

fn terminal_end(action: &Action) -> Option<EpisodeEnd> {
    match action {
        Action::Finished { .. } => Some(EpisodeEnd::Finished),
        Action::Fail | Action::CallUser => Some(EpisodeEnd::DeclaredInfeasible),
        _ => None,
    }
}

/// The first `limit` characters.
pub fn shorten(text: &str, limit: usize) -> String {
    text.chars().take(limit).collect()
}
