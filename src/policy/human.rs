//! Nobody but a person: no reply of its own, so that the debugger asks for each one.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;

use crate::policy::{
    Extension, FinishReason, Generation, PinnedWeights, Policy, PolicyError, PolicyStats,
    SamplingParams, SessionId, SessionSpec, WeightsId, WeightsSource,
};
use crate::types::PolicyVersion;

/// A policy without replies. Its sessions hold nothing; the episode keeps the tokens.
#[derive(Debug, Default)]
pub struct Human {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    next_session: u64,
    open: BTreeSet<SessionId>,
    stats: PolicyStats,
}

impl Human {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Policy for Human {
    async fn open(&self, _: SessionSpec) -> Result<SessionId, PolicyError> {
        let mut state = self.lock();
        let id = SessionId(state.next_session);
        state.next_session += 1;
        state.open.insert(id);
        Ok(id)
    }

    /// Answers at once, with no token.
    async fn generate(
        &self,
        session: SessionId,
        extension: Extension,
        _: SamplingParams,
    ) -> Result<Generation, PolicyError> {
        let mut state = self.lock();
        if !state.open.contains(&session) {
            return Err(PolicyError::NoSession(session));
        }
        state.stats.images_seen += extension.images.len() as u64;
        state.stats.tokens_new += extension.ids.len() as u64;
        Ok(Generation {
            ids: Vec::new(),
            logprobs: Vec::new(),
            finish: FinishReason::Stop,
            version: PolicyVersion(0),
        })
    }

    async fn fork(&self, session: SessionId, spec: SessionSpec) -> Result<SessionId, PolicyError> {
        if !self.lock().open.contains(&session) {
            return Err(PolicyError::NoSession(session));
        }
        self.open(spec).await
    }

    async fn score(&self, _: SessionId, _: Vec<u32>) -> Result<Vec<f32>, PolicyError> {
        let reason = "a person's replies have no log-probability";
        Err(PolicyError::Failed(reason.to_owned()))
    }

    async fn close(&self, session: SessionId) {
        self.lock().open.remove(&session);
    }

    async fn cancel(&self, _: SessionId) {}

    async fn pin(&self, source: WeightsSource) -> Result<PinnedWeights, PolicyError> {
        Err(PolicyError::Weights(match source {
            WeightsSource::Current => "a person has no weights to keep".to_owned(),
            WeightsSource::Folder { path, .. } => {
                format!(
                    "a person has no weights, so {} cannot be loaded",
                    path.display()
                )
            }
        }))
    }

    fn unpin(&self, _: WeightsId) {}

    fn version(&self) -> PolicyVersion {
        PolicyVersion(0)
    }

    fn stats(&self) -> PolicyStats {
        self.lock().stats
    }

    fn writes(&self) -> bool {
        false
    }

    async fn tick(&self) -> Option<Duration> {
        None
    }
}
