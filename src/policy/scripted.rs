//! Replies from a script or from the simulated desktop's expert, instead of a model.
//!
//! It keeps time as the embedded engine would: replies become tokens of the checkpoint's own
//! tokenizer, and a tick decodes one of them for every running session at the cost table's
//! price. So schedules can be rehearsed without a model. Log-probabilities are 0: a script is
//! certain.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use serde::Deserialize;
use tokio::sync::oneshot;

use crate::action::{parse_reply, print_reply};
use crate::config::{CostTable, PolicyConfig};
use crate::env::simulated::{Desktop, expert};
use crate::policy::{
    Extension, FinishReason, Generation, PinnedWeights, Policy, PolicyError, PolicyStats,
    SamplingParams, SessionId, SessionSpec, WeightsId, WeightsSource,
};
use crate::prompt::PromptBuilder;
use crate::types::{Action, EpisodeId, PolicyVersion, ScreenSize, Task};

/// Where replies come from.
#[derive(Clone, Debug)]
pub enum Script {
    /// Replies by task id; a list per task, or one list per trial.
    Replies(BTreeMap<String, Vec<Vec<String>>>),
    /// The state-based expert of the simulated desktop, followed on a desktop of its own.
    Expert,
}

/// A script file: TOML, `[tasks]` with `"task id" = [[reply, …], …]`, one inner list a trial.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptFile {
    tasks: BTreeMap<String, Vec<Vec<String>>>,
}

impl Script {
    /// Reads a script file.
    pub fn read(path: &Path) -> Result<Self, PolicyError> {
        let at = |reason: String| PolicyError::Failed(format!("{}: {reason}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|error| at(error.to_string()))?;
        let file: ScriptFile = toml::from_str(&text).map_err(|error| at(error.to_string()))?;
        if let Some((task, _)) = file.tasks.iter().find(|(_, trials)| trials.is_empty()) {
            return Err(at(format!("task {task:?} has no trial")));
        }
        Ok(Script::Replies(file.tasks))
    }
}

impl Script {
    /// Tells one script from another.
    fn hash(&self) -> String {
        match self {
            Script::Expert => "expert".to_owned(),
            Script::Replies(replies) => {
                let mut hasher = blake3::Hasher::new();
                for (task, trials) in replies {
                    hasher.update(task.as_bytes());
                    for reply in trials.iter().flatten() {
                        hasher.update(&[0]).update(reply.as_bytes());
                    }
                }
                hasher.finalize().to_hex()[..16].to_owned()
            }
        }
    }
}

/// A policy that follows a script.
pub struct Scripted {
    script: Script,
    prompt: Arc<PromptBuilder>,
    config: PolicyConfig,
    cost: CostTable,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    next_session: u64,
    sessions: BTreeMap<SessionId, Session>,
    stats: PolicyStats,
}

struct Session {
    episode: EpisodeId,
    task: Arc<Task>,
    trial: usize,
    replies_given: usize,
    desktop: Option<Desktop>,
    tokens: usize,
    request: Option<Request>,
}

struct Request {
    reply: Vec<u32>,
    finish: FinishReason,
    decoded: usize,
    prompt_tokens: usize,
    images: usize,
    prefilled: bool,
    answer: oneshot::Sender<Result<Generation, PolicyError>>,
}

impl Scripted {
    /// Follows `script` with the tokenizer of `prompt` at the price of `cost`.
    pub fn new(
        script: Script,
        prompt: Arc<PromptBuilder>,
        config: PolicyConfig,
        cost: CostTable,
    ) -> Self {
        Self {
            script,
            prompt,
            config,
            cost,
            state: Mutex::new(State::default()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reply(
        &self,
        session: &mut Session,
        screen: Option<ScreenSize>,
    ) -> Result<String, PolicyError> {
        let step = session.replies_given;
        session.replies_given += 1;
        match &self.script {
            Script::Replies(tasks) => {
                let trials = tasks.get(&session.task.id.0).ok_or_else(|| {
                    PolicyError::Failed(format!("the script has no task {}", session.task.id))
                })?;
                let replies = &trials[session.trial % trials.len()];
                replies.get(step).cloned().ok_or_else(|| {
                    PolicyError::Failed(format!(
                        "the script of task {} ends after {} replies",
                        session.task.id,
                        replies.len()
                    ))
                })
            }
            Script::Expert => self.expert_reply(session, screen),
        }
    }

    fn expert_reply(
        &self,
        session: &mut Session,
        screen: Option<ScreenSize>,
    ) -> Result<String, PolicyError> {
        let failed = |reason: String| PolicyError::Failed(reason);
        let task = Arc::clone(&session.task);
        let desktop = shadow_desktop(session)?;
        let screen = screen.unwrap_or_else(|| desktop.screen_size());
        let advice = expert::next(desktop, &task);
        let space = self.prompt.space(&self.config, screen);
        let space = space.map_err(|error| failed(error.to_string()))?;
        let text = print_reply(
            &advice.thought,
            std::slice::from_ref(&advice.action),
            &space,
        );
        // The real desktop sees what was written, so the shadow does too.
        let parsed = parse_reply(&text, &space).map_err(|error| failed(error.to_string()))?;
        apply_all(desktop, &parsed.actions);
        Ok(text)
    }

    /// Takes note of a reply that somebody else wrote in this session.
    fn follow(&self, session: &mut Session, text: &str) -> Result<(), PolicyError> {
        session.replies_given += 1;
        if matches!(self.script, Script::Replies(_)) {
            return Ok(());
        }
        let desktop = shadow_desktop(session)?;
        let space = self.prompt.space(&self.config, desktop.screen_size());
        let space = space.map_err(|error| PolicyError::Failed(error.to_string()))?;
        // One that does not parse did nothing.
        if let Ok(parsed) = parse_reply(text, &space) {
            apply_all(desktop, &parsed.actions);
        }
        Ok(())
    }

    fn request(
        &self,
        session: &mut Session,
        extension: &Extension,
        params: SamplingParams,
        answer: oneshot::Sender<Result<Generation, PolicyError>>,
    ) -> Result<Request, PolicyError> {
        for text in &extension.replies {
            self.follow(session, text)?;
        }
        let screen = extension.images.last().map(crate::types::Screenshot::size);
        let encoded = self.prompt.encode(&self.reply(session, screen)?);
        let mut reply = encoded.map_err(|error| PolicyError::Failed(error.to_string()))?;
        reply.push(self.prompt.special().turn_end);
        let prompt_tokens = extension.ids.len();
        let room = self
            .config
            .context_tokens
            .saturating_sub(session.tokens + prompt_tokens);
        let finish = if reply.len() > params.max_tokens.min(room) {
            reply.truncate(params.max_tokens.min(room));
            if room < params.max_tokens {
                FinishReason::Context
            } else {
                FinishReason::Length
            }
        } else {
            FinishReason::Stop
        };
        session.tokens += prompt_tokens + reply.len();
        Ok(Request {
            reply,
            finish,
            decoded: 0,
            prompt_tokens,
            images: extension.images.len(),
            prefilled: false,
            answer,
        })
    }
}

/// The desktop on which the expert follows its session.
fn shadow_desktop(session: &mut Session) -> Result<&mut Desktop, PolicyError> {
    if session.desktop.is_none() {
        let desktop = Desktop::from_task(&session.task);
        let desktop = desktop.map_err(|error| PolicyError::Failed(error.to_string()))?;
        session.desktop = Some(desktop);
    }
    Ok(session.desktop.as_mut().expect("set above"))
}

fn apply_all(desktop: &mut Desktop, actions: &[Action]) {
    for action in actions.iter().filter(|action| !action.is_terminal()) {
        desktop.apply(action);
    }
}

#[async_trait]
impl Policy for Scripted {
    async fn open(&self, spec: SessionSpec) -> Result<SessionId, PolicyError> {
        let mut state = self.lock();
        let id = SessionId(state.next_session);
        state.next_session += 1;
        state.sessions.insert(
            id,
            Session {
                episode: spec.episode,
                task: spec.task,
                trial: spec.sample as usize,
                replies_given: 0,
                desktop: None,
                tokens: 0,
                request: None,
            },
        );
        Ok(id)
    }

    async fn generate(
        &self,
        session: SessionId,
        extension: Extension,
        params: SamplingParams,
    ) -> Result<Generation, PolicyError> {
        let (answer, answered) = oneshot::channel();
        {
            let mut state = self.lock();
            state.stats.images_seen += extension.images.len() as u64;
            state.stats.tokens_new += extension.ids.len() as u64;
            let open = state
                .sessions
                .get_mut(&session)
                .ok_or(PolicyError::NoSession(session))?;
            let request = self.request(open, &extension, params, answer)?;
            open.request = Some(request);
        }
        answered.await.map_err(|_| PolicyError::Cancelled)?
    }

    async fn fork(&self, session: SessionId, spec: SessionSpec) -> Result<SessionId, PolicyError> {
        let mut state = self.lock();
        let from = state
            .sessions
            .get(&session)
            .ok_or(PolicyError::NoSession(session))?;
        let copy = Session {
            episode: spec.episode,
            task: Arc::clone(&from.task),
            trial: from.trial,
            replies_given: from.replies_given,
            desktop: from.desktop.clone(),
            tokens: from.tokens,
            request: None,
        };
        let id = SessionId(state.next_session);
        state.next_session += 1;
        state.sessions.insert(id, copy);
        Ok(id)
    }

    async fn score(&self, session: SessionId, ids: Vec<u32>) -> Result<Vec<f32>, PolicyError> {
        let state = self.lock();
        state
            .sessions
            .get(&session)
            .ok_or(PolicyError::NoSession(session))?;
        Ok(vec![0.0; ids.len()])
    }

    async fn close(&self, session: SessionId) {
        self.lock().sessions.remove(&session);
    }

    async fn cancel(&self, session: SessionId) {
        if let Some(open) = self.lock().sessions.get_mut(&session) {
            open.request = None;
        }
    }

    async fn pin(&self, source: WeightsSource) -> Result<PinnedWeights, PolicyError> {
        match source {
            WeightsSource::Current => Ok(PinnedWeights {
                id: WeightsId(0),
                version: self.version(),
                hash: self.script.hash(),
            }),
            WeightsSource::Folder { path, .. } => Err(PolicyError::Weights(format!(
                "a scripted policy has none, so {} cannot be loaded; leave the checkpoint out",
                path.display()
            ))),
        }
    }

    fn unpin(&self, _: WeightsId) {}

    fn version(&self) -> PolicyVersion {
        PolicyVersion(0)
    }

    fn stats(&self) -> PolicyStats {
        self.lock().stats
    }

    async fn tick(&self) -> Option<Duration> {
        let mut state = self.lock();
        let State {
            sessions, stats, ..
        } = &mut *state;
        let mut waiting: Vec<&mut Session> = sessions
            .values_mut()
            .filter(|session| session.request.is_some())
            .collect();
        if waiting.is_empty() {
            return None;
        }
        waiting.sort_by_key(|session| session.episode);
        Some(Duration::from_micros(run_batch(
            &mut waiting,
            &self.cost,
            stats,
        )))
    }
}

/// Prefills whoever is new, decodes one token for everybody; returns the cost in µs.
fn run_batch(waiting: &mut [&mut Session], cost: &CostTable, stats: &mut PolicyStats) -> u64 {
    let (mut images, mut prompt_tokens) = (0, 0);
    for request in waiting
        .iter_mut()
        .filter_map(|session| session.request.as_mut())
    {
        if !request.prefilled {
            request.prefilled = true;
            images += request.images;
            prompt_tokens += request.prompt_tokens;
        }
        request.decoded += 1;
    }
    stats.images_encoded += images as u64;
    stats.tokens_prefilled += prompt_tokens as u64;
    stats.tokens_sampled += waiting.len() as u64;
    let rows = waiting.len();
    for session in waiting {
        answer_if_complete(session);
    }
    cost.batch_us(images, prompt_tokens, rows)
}

fn answer_if_complete(session: &mut Session) {
    let complete = session
        .request
        .as_ref()
        .is_some_and(|r| r.decoded >= r.reply.len());
    if let (true, Some(request)) = (complete, session.request.take_if(|_| complete)) {
        let generation = Generation {
            logprobs: vec![0.0; request.reply.len()],
            ids: request.reply,
            finish: request.finish,
            version: PolicyVersion(0),
        };
        // The asker may be gone; then nobody needs the answer.
        let _ = request.answer.send(Ok(generation));
    }
}
