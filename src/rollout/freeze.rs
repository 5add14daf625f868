//! A desktop whose time stands still while its policy, or whoever holds its episode, thinks.
//!
//! Invariant: whatever ends an episode, its desktop goes on before it is scored or left. Whether one
//! stands still at all is the desktop's to say; on simulated ones nothing happens.

use std::time::Duration;

use crate::env::EnvError;
use crate::rollout::episode::{RolloutError, Running};

/// For a machine to stand still, or to go on.
const DEADLINE: Duration = Duration::from_secs(10);

impl Running<'_, '_> {
    /// Has the desktop stand still. Nothing may be asked of it before `thaw`.
    pub(super) async fn freeze(&mut self) -> Result<(), RolloutError> {
        // From here on, since nobody knows what a call did that does not come back.
        self.frozen = true;
        let suspending = self.env.suspend();
        let done = self.context.in_reach("stopping the desktop", suspending);
        let done = done.await;
        self.or_its_cause(done).await
    }

    /// Lets the desktop go on, if it stands still.
    pub(super) async fn thaw(&mut self) -> Result<(), RolloutError> {
        if self.frozen {
            let waking = self.env.wake();
            let done = self.context.in_reach("waking the desktop", waking).await;
            self.or_its_cause(done).await?;
            self.frozen = false;
        }
        Ok(())
    }

    /// What did not come back says nothing of its cause, which may lie below.
    async fn or_its_cause(&mut self, done: Result<(), RolloutError>) -> Result<(), RolloutError> {
        let Err(RolloutError::Env(late @ EnvError::Timeout { .. })) = done else {
            return done;
        };
        let cause = self.env.diagnose(&late.to_string()).await;
        Err(RolloutError::Env(cause.unwrap_or(late)))
    }
}

impl crate::rollout::EpisodeContext<'_> {
    /// Waits for what should take a moment; simulated desktops take none.
    async fn in_reach(
        &self,
        what: &'static str,
        doing: impl Future<Output = Result<(), EnvError>>,
    ) -> Result<(), RolloutError> {
        if self.clock.is_virtual() {
            return doing.await.map_err(RolloutError::Env);
        }
        let late = |_| EnvError::Timeout {
            what,
            after: DEADLINE,
        };
        let done = tokio::time::timeout(DEADLINE, doing).await;
        done.map_err(late).flatten().map_err(RolloutError::Env)
    }
}
