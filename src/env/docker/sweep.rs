//! Removing what dead engines left with the daemon, and nothing else.

use super::daemon::{Daemon, DaemonError};
use super::owner::{Engine, Owner, PID, Verdict, now};
use bollard::models::ContainerSummaryStateEnum as State;

/// What a sweep came to, each in words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Containers that are gone.
    pub removed: Vec<String>,
    /// Containers of engines that cannot be looked for from here, and what would remove them.
    pub left: Vec<String>,
    /// Containers that could not be removed, and why.
    pub failed: Vec<String>,
}

/// Looks at every container with our labels, running or not.
pub(super) async fn sweep(daemon: &Daemon) -> Result<Swept, DaemonError> {
    let here = Engine::this_process();
    let mut swept = Swept::default();
    for container in daemon.list(&[PID.to_owned()]).await? {
        let owner = container.labels.as_ref().and_then(Owner::read);
        let (Some(id), Some(owner)) = (container.id, owner) else {
            continue;
        };
        let has_ended = matches!(container.state, Some(State::EXITED | State::DEAD));
        let who = format!("container {} ({})", short(&id), owner.describe());
        match owner.verdict(&here, has_ended, now()) {
            Verdict::Alive => {}
            Verdict::Dead | Verdict::Expired => match daemon.remove(&id).await {
                Ok(()) => swept.removed.push(who),
                Err(error) => swept.failed.push(format!("{who}: {error}")),
            },
            Verdict::Elsewhere => swept.left.push(format!(
                "{who}: its engine cannot be looked for from here; if it is dead: docker rm -fv {}",
                short(&id)
            )),
        }
    }
    Ok(swept)
}

/// As the daemon's own tools show it.
pub(super) fn short(id: &str) -> &str {
    id.get(..12).unwrap_or(id)
}
