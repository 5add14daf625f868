//! A desktop between two episodes: rebooted, left alone for a while after it did not start, or
//! opened anew because it has become slow.
//!
//! Only of real desktops: what simulated ones do is drawn, and has no cause to look for.

use std::pin::pin;
use std::time::Duration;

use crate::env::Environment;
use crate::event::{EventKind, NoticeLevel};
use crate::rollout::collect::Steering;
use crate::rollout::episode::EpisodeContext;
use crate::rollout::queue::Queue;
use crate::types::{MachinePhase, MachineStatus};

/// How desktops that do not start are treated.
#[derive(Clone, Copy, Debug)]
pub struct Care {
    /// Failed starts in a row after which a desktop is left alone until it is rebooted; 0 is never,
    /// and then it does not wait either.
    pub max_start_failures: u32,
    /// How long it waits after the first failure, the second, and each further one.
    pub backoff: [Duration; 3],
}

impl Care {
    /// How long a desktop waits that has failed to start so many times in a row.
    pub fn wait_after(&self, failures: u32) -> Duration {
        let index = (failures.saturating_sub(1) as usize).min(self.backoff.len() - 1);
        self.backoff[index]
    }
}

impl Default for Care {
    /// Nobody cares.
    fn default() -> Self {
        Self {
            max_start_failures: 0,
            backoff: [1, 5, 30].map(Duration::from_secs),
        }
    }
}

/// What an episode has shown of its desktop's start.
pub(super) enum Start {
    /// The machine came up.
    Worked,
    /// It did not, for this reason.
    Failed(String),
    /// The episode did not come so far.
    Unknown,
}

/// Closes the desktop and opens it anew if an operator wants it.
pub(super) async fn reboot_if_asked(
    steering: &Steering<'_>,
    desktop: u32,
    env: &mut Box<dyn Environment>,
) {
    let Some(answers) = steering.fleet.take_reboot(desktop) else {
        return;
    };
    let reopened = reopen(steering, desktop, env).await;
    for answer in answers {
        answer(reopened.clone());
    }
}

async fn reopen(
    steering: &Steering<'_>,
    desktop: u32,
    env: &mut Box<dyn Environment>,
) -> Result<(), String> {
    let Some(reopen) = steering.reopen else {
        return Err("these desktops cannot be rebooted".to_owned());
    };
    if let Err(error) = env.close().await {
        // It is being replaced because something is wrong with it.
        tracing::warn!(%error, desktop, "closing a desktop to reboot it");
    }
    reopen(desktop).map(|opened| *env = opened)
}

/// After an episode: whether the desktop can have another, and what has to be done before.
pub(super) async fn tend(
    context: &EpisodeContext<'_>,
    queue: &Queue<'_>,
    desktop: u32,
    env: &mut Box<dyn Environment>,
    start: Start,
) {
    let steering = queue.steering();
    match start {
        Start::Failed(reason) if steering.care.max_start_failures > 0 => {
            return quarantine(context, queue, desktop, &reason).await;
        }
        Start::Worked => steering.fleet.start_worked(desktop),
        Start::Failed(_) | Start::Unknown => {}
    }
    if context.gate.is_shut() {
        return;
    }
    let Some(why) = env.inspect().await else {
        return;
    };
    if steering.reopen.is_none() {
        return;
    }
    let (level, text) = match reopen(steering, desktop, env).await {
        Ok(()) => (
            NoticeLevel::Info,
            format!("desktop {desktop} was closed and opened anew: {why}"),
        ),
        Err(error) => (
            NoticeLevel::Warning,
            format!("desktop {desktop} was to be opened anew, since {why}, and cannot be: {error}"),
        ),
    };
    context.recorder.emit(EventKind::Notice { level, text });
}

/// Counts a failed start; the desktop waits, or is left alone.
async fn quarantine(context: &EpisodeContext<'_>, queue: &Queue<'_>, desktop: u32, reason: &str) {
    let care = queue.steering().care;
    let most = care.max_start_failures;
    let failures = queue.steering().fleet.start_failed(desktop, most, reason);
    if failures >= most {
        tell(
            context,
            desktop,
            None,
            "left alone until it is rebooted",
            reason,
        );
        context.recorder.emit(EventKind::Notice {
            level: NoticeLevel::Warning,
            text: format!(
                "desktop {desktop} is left alone: it did not start {failures} times in a row, at \
                 last since {reason}; reboot it once that is mended"
            ),
        });
        return;
    }
    let wait = care.wait_after(failures);
    let then = format!("started again, try {} of {most}", failures + 1);
    tell(context, desktop, Some(wait), &then, reason);
    queue.back_off(context, desktop, wait).await;
}

fn tell(
    context: &EpisodeContext<'_>,
    desktop: u32,
    limit: Option<Duration>,
    then: &str,
    reason: &str,
) {
    let status = MachineStatus {
        phase: MachinePhase::Quarantined,
        limit_ms: limit.map(|limit| limit.as_millis() as u64),
        then: then.to_owned(),
        detail: reason.to_owned(),
    };
    context
        .recorder
        .emit(EventKind::MachineChanged { desktop, status });
}

impl Queue<'_> {
    /// Waits so long, but no longer than there is something to wait for.
    async fn back_off(&self, context: &EpisodeContext<'_>, desktop: u32, wait: Duration) {
        let mut over = pin!(tokio::time::sleep(wait));
        let fleet = &self.steering().fleet;
        let mut gate = context.gate.clone();
        loop {
            let mut changes = fleet.changes();
            if self.is_over() || fleet.wants_reboot(desktop) {
                return;
            }
            tokio::select! {
                biased;
                () = gate.shut() => return,
                () = &mut over => return,
                () = changes.any() => {}
            }
        }
    }
}
