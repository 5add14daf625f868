//! What an operator does to one running episode or one desktop; the gate is for all of them.
//!
//! Whoever serves commands asks; the episode, or its desktop between episodes, does it and then
//! answers. So an answer says what happened, never what was hoped for.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::types::EpisodeId;

/// Called once: what was asked for has been done, or why it never will be.
pub type Answer = Box<dyn FnOnce(Result<(), String>) + Send>;

/// How an episode is ended from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// For good.
    Kill,
    /// To be tried again.
    Reroll,
}

/// Episodes that run and desktops that wait for a reboot. Clones share it.
#[derive(Clone, Default)]
pub struct Fleet(Arc<Shared>);

#[derive(Default)]
struct Shared {
    inner: Mutex<Inner>,
    changes: watch::Sender<()>,
}

#[derive(Default)]
struct Inner {
    running: BTreeMap<EpisodeId, Running>,
    reboots: BTreeMap<u32, Vec<Answer>>,
    sick: BTreeMap<u32, Sick>,
}

/// A desktop that did not start when it was last to.
struct Sick {
    /// Times in a row.
    failures: u32,
    /// Whether it is left alone.
    is_left_alone: bool,
    reason: String,
}

struct Running {
    desktop: u32,
    evaluation: Option<u32>,
    ending: watch::Sender<Option<Ending>>,
    answers: Vec<Answer>,
}

impl Fleet {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this episode runs.
    pub fn is_running(&self, episode: EpisodeId) -> bool {
        self.lock().running.contains_key(&episode)
    }

    /// Ends a running episode; `answer` is called once it has ended. One that does not run is
    /// answered at once.
    pub fn end(&self, episode: EpisodeId, how: Ending, answer: Answer) {
        let mut inner = self.lock();
        let Some(running) = inner.running.get_mut(&episode) else {
            drop(inner);
            return answer(Err(format!("episode {episode} does not run")));
        };
        running.answers.push(answer);
        running.ask(how);
    }

    /// Ends all trials of an evaluation that run.
    pub fn end_evaluation(&self, evaluation: u32) {
        for running in self.lock().running.values() {
            if running.evaluation == Some(evaluation) {
                running.ask(Ending::Kill);
            }
        }
    }

    /// Has a desktop closed and opened anew before its next episode; the one on it is tried
    /// again.
    pub fn reboot(&self, desktop: u32, answer: Answer) {
        let mut inner = self.lock();
        inner.reboots.entry(desktop).or_default().push(answer);
        // Whoever reboots it has mended it.
        inner.sick.remove(&desktop);
        for running in inner.running.values() {
            if running.desktop == desktop {
                running.ask(Ending::Reroll);
            }
        }
        drop(inner);
        self.nudge();
    }

    /// Forgets what was wrong with desktops from number `from` on: they are closed.
    pub fn forget(&self, from: u32) {
        self.lock().sick.split_off(&from);
    }

    /// The desktop's machine came up.
    pub(super) fn start_worked(&self, desktop: u32) {
        self.lock().sick.remove(&desktop);
    }

    /// The desktop's machine did not come up; how often in a row. After `most` times it is left
    /// alone until it is rebooted.
    pub(super) fn start_failed(&self, desktop: u32, most: u32, reason: &str) -> u32 {
        let mut inner = self.lock();
        let before = inner.sick.get(&desktop).map_or(0, |sick| sick.failures);
        let failures = before + 1;
        let sick = Sick {
            failures,
            is_left_alone: failures >= most,
            reason: reason.to_owned(),
        };
        inner.sick.insert(desktop, sick);
        drop(inner);
        self.nudge();
        failures
    }

    /// Whether the desktop is not to be started.
    pub(super) fn is_left_alone(&self, desktop: u32) -> bool {
        let inner = self.lock();
        inner
            .sick
            .get(&desktop)
            .is_some_and(|sick| sick.is_left_alone)
    }

    /// What is wrong with the first `desktops`, if all of them are left alone.
    pub(super) fn all_left_alone(&self, desktops: u32) -> Option<String> {
        let inner = self.lock();
        let sick = inner.sick.range(..desktops);
        let alone: Vec<_> = sick.filter(|(_, sick)| sick.is_left_alone).collect();
        let (desktop, last) = alone.last()?;
        let all = alone.len() == desktops as usize;
        all.then(|| {
            format!(
                "{desktops} of {desktops} did not start, desktop {desktop} {} times in a row: {}",
                last.failures, last.reason
            )
        })
    }

    /// Whether somebody waits for this desktop's reboot.
    pub(super) fn wants_reboot(&self, desktop: u32) -> bool {
        self.lock().reboots.contains_key(&desktop)
    }

    /// What changes from now on.
    pub(super) fn changes(&self) -> Changes {
        Changes(self.0.changes.subscribe())
    }

    /// Tells desktops that wait that something has changed: a job came back, or none will come.
    pub fn nudge(&self) {
        self.0.changes.send_replace(());
    }

    /// Refuses the reboots that wait for desktops from number `from` on.
    pub fn refuse_reboots(&self, from: u32, reason: &str) {
        let refused = self.lock().reboots.split_off(&from);
        for answer in refused.into_values().flatten() {
            answer(Err(reason.to_owned()));
        }
    }

    /// Those who wait for this desktop's reboot, if anybody does.
    pub(super) fn take_reboot(&self, desktop: u32) -> Option<Vec<Answer>> {
        self.lock().reboots.remove(&desktop)
    }

    /// An episode begins to run.
    pub(super) fn enter(&self, episode: EpisodeId, desktop: u32, evaluation: Option<u32>) -> Seat {
        let (sender, ending) = watch::channel(None);
        let running = Running {
            desktop,
            evaluation,
            ending: sender,
            answers: Vec::new(),
        };
        self.lock().running.insert(episode, running);
        Seat {
            fleet: self.clone(),
            episode,
            ending,
        }
    }
}

impl Running {
    /// The first who asks decides.
    fn ask(&self, how: Ending) {
        self.ending.send_if_modified(|now| {
            let is_first = now.is_none();
            if is_first {
                *now = Some(how);
            }
            is_first
        });
    }
}

/// Changes of a fleet that desktops may wait for.
pub(super) struct Changes(watch::Receiver<()>);

impl Changes {
    /// Resolves after the first since this was made.
    pub(super) async fn any(&mut self) {
        // Fails only without a fleet, and then nothing changes any more.
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// A running episode's place in the fleet.
pub(super) struct Seat {
    fleet: Fleet,
    episode: EpisodeId,
    ending: watch::Receiver<Option<Ending>>,
}

impl Seat {
    /// Resolves once the episode is to end.
    pub(super) async fn ended(&mut self) -> Ending {
        match self.ending.wait_for(Option::is_some).await {
            Ok(ending) => ending.unwrap_or(Ending::Kill),
            // The sender lives as long as the seat.
            Err(_) => std::future::pending().await,
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let running = self.fleet.lock().running.remove(&self.episode);
        for answer in running.into_iter().flat_map(|running| running.answers) {
            answer(Ok(()));
        }
    }
}
