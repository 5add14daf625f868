//! What lies below an error of an episode, where its desktop can be asked past whoever failed.
//!
//! What fails within the desktop's own calls it explains by itself.

use crate::env::{EnvError, Environment};
use crate::evaluator::EvaluatorError;
use crate::rollout::episode::{RolloutError, Running};
use crate::types::{EpisodeEnd, ErrorClass};

/// What reads the end state asks the desktop past the episode, which may owe its error to it.
pub(super) async fn explained(env: &mut dyn Environment, error: RolloutError) -> RolloutError {
    let RolloutError::Evaluator(EvaluatorError::Environment { task, source }) = error else {
        return error;
    };
    let may_be = matches!(source.class(), ErrorClass::Crash | ErrorClass::Timeout);
    let cause = if may_be {
        env.diagnose(&source.to_string()).await
    } else {
        None
    };
    RolloutError::Evaluator(EvaluatorError::Environment {
        task,
        source: cause.unwrap_or(source),
    })
}

impl Running<'_, '_> {
    /// How playing ended, the desktop going on again; an error's cause may lie below.
    pub(super) async fn wound_up(
        &mut self,
        end: Result<EpisodeEnd, RolloutError>,
    ) -> Result<EpisodeEnd, RolloutError> {
        let thawed = self.thaw().await;
        let error = match end {
            Ok(end) => return thawed.map(|()| end),
            Err(error) => error,
        };
        match (&error, thawed) {
            (_, Ok(())) => {}
            // Its policy was waited for while the machine was gone.
            (RolloutError::Deadline(_), Err(ended @ RolloutError::Env(EnvError::Ended { .. }))) => {
                return Err(ended);
            }
            (_, Err(error)) => {
                tracing::warn!(%error, episode = %self.id, "its desktop does not go on");
            }
        }
        if let (RolloutError::Deadline(_), Some(awaited)) = (&error, self.awaited) {
            let symptom = format!("{awaited}: {error}");
            if let Some(cause) = self.env.diagnose(&symptom).await {
                return Err(RolloutError::Env(cause));
            }
        }
        Err(error)
    }
}
