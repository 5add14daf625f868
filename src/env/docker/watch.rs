//! Watching one container: its end, its log, its memory, the end of its lease.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};

use super::daemon::{Daemon, DaemonError};
use crate::env::lines::Lines;
use crate::env::{MachineNews, Reporter};
use crate::types::MachinePhase;

/// Lines of a container's log that are told; a boot writes some hundred.
const MAX_LINES: usize = 2000;

/// Lines that an error repeats.
const TAIL: usize = 3;
const TAIL_CHARS: usize = 160;

/// Between two looks at its memory.
const MEMORY_EVERY: Duration = Duration::from_secs(30);

/// For the log of a container that has ended.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Times that the daemon is asked again whether a container runs, and the wait before each.
const LOOKS: u32 = 5;
const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// Who watches a container; lets it go when dropped.
#[derive(Debug)]
pub(super) struct Watch {
    ended: watch::Receiver<Option<String>>,
    shared: Arc<Shared>,
    _tasks: JoinSet<()>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Bytes; 0 is not known.
    memory: AtomicU64,
    /// Whether its end is news: until it is up, whoever starts it tells.
    is_up: AtomicBool,
    tail: Mutex<VecDeque<String>>,
}

impl Watch {
    /// Begins with a container that was just started.
    pub(super) fn start(daemon: &Daemon, id: &str, reporter: &Reporter, lease: Duration) -> Self {
        let (tell, ended) = watch::channel(None);
        let shared = Arc::new(Shared::default());
        let mut tasks = JoinSet::new();
        let log = follow(daemon, id, reporter, &shared);
        let watching = until_ended(daemon.clone(), id.to_owned(), lease);
        let (told, heard) = (reporter.clone(), shared.clone());
        tasks.spawn(async move {
            let mut reason = watching.await;
            // Its log ends with it.
            let _ = timeout(LAST_WORDS, log).await;
            let tail = heard.tail();
            if !tail.is_empty() {
                reason = format!("{reason}; its log ends: {tail}");
            }
            tell.send_replace(Some(reason.clone()));
            told.tell(MachineNews::Said(reason.clone()));
            if heard.is_up.load(Ordering::Acquire) {
                let then = "a new one with the next episode";
                told.status(MachinePhase::Off, None, then, &reason);
            }
        });
        let (daemon, id, measured) = (daemon.clone(), id.to_owned(), shared.clone());
        tasks.spawn(async move {
            loop {
                if let Some(bytes) = daemon.memory_bytes(&id).await {
                    measured.memory.store(bytes, Ordering::Relaxed);
                }
                sleep(MEMORY_EVERY).await;
            }
        });
        Self {
            ended,
            shared,
            _tasks: tasks,
        }
    }

    /// Its end is told from here on.
    pub(super) fn is_up(&self) {
        self.shared.is_up.store(true, Ordering::Release);
    }

    /// Why it ended, if it has.
    pub(super) fn ended(&self) -> Option<String> {
        self.ended.borrow().clone()
    }

    /// Waits for its end.
    pub(super) async fn until_ended(&self) -> String {
        let mut ended = self.ended.clone();
        match ended.wait_for(Option::is_some).await {
            Ok(reason) => reason.clone().unwrap_or_default(),
            Err(_) => "nobody watches its container any more".to_owned(),
        }
    }

    /// What it takes, bytes, where that is known.
    pub(super) fn memory_bytes(&self) -> Option<u64> {
        let bytes = self.shared.memory.load(Ordering::Relaxed);
        (bytes > 0).then_some(bytes)
    }

    /// The end of its log on one line; empty where it has none.
    pub(super) fn tail(&self) -> String {
        self.shared.tail()
    }
}

impl Shared {
    fn tail(&self) -> String {
        let tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        let lines: Vec<&str> = tail.iter().map(String::as_str).collect();
        lines.join(" | ")
    }

    fn keep(&self, line: &str) {
        let mut tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        if tail.len() == TAIL {
            tail.pop_front();
        }
        tail.push_back(line.chars().take(TAIL_CHARS).collect());
    }
}

/// Tells of each line that it writes.
fn follow(daemon: &Daemon, id: &str, reporter: &Reporter, shared: &Arc<Shared>) -> AbortOnDrop {
    let stream = daemon.logs(id);
    let (reporter, shared) = (reporter.clone(), shared.clone());
    AbortOnDrop(tokio::spawn(async move {
        let mut stream = Box::pin(stream);
        let mut lines = Lines::default();
        let mut told = 0;
        while let Some(Ok(output)) = stream.next().await {
            let came = lines.take(&output.into_bytes());
            for line in came {
                shared.keep(&line);
                told += 1;
                match told {
                    ..=MAX_LINES => reporter.tell(MachineNews::Said(line)),
                    more if more == MAX_LINES + 1 => {
                        let cut = format!("(more than {MAX_LINES} lines: the rest is left out)");
                        reporter.tell(MachineNews::Said(cut));
                    }
                    _ => {}
                }
            }
        }
        if let Some(line) = lines.rest() {
            shared.keep(&line);
            reporter.tell(MachineNews::Said(line));
        }
    }))
}

/// A task that ends with whoever waits for it.
struct AbortOnDrop(JoinHandle<()>);

impl Future for AbortOnDrop {
    type Output = ();

    fn poll(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<()> {
        std::pin::Pin::new(&mut self.0).poll(context).map(drop)
    }
}

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Waits for its end, or ends it with its lease; why it ended.
async fn until_ended(daemon: Daemon, id: String, lease: Duration) -> String {
    if let Ok(reason) = timeout(lease, seen_ended(&daemon, &id)).await {
        return reason;
    }
    let hours = lease.as_secs_f64() / 3600.0;
    let reason = format!("its lease of {hours} h is over: raise env.docker.lease_h");
    match daemon.remove(&id).await {
        Ok(()) => reason,
        Err(error) => format!("{reason}; {error}"),
    }
}

async fn seen_ended(daemon: &Daemon, id: &str) -> String {
    let mut looks = 0;
    loop {
        let waited = daemon.ended(id).await;
        match state(daemon, id).await {
            Ok(Some(reason)) => return reason,
            // It runs: what broke was the waiting.
            Ok(None) => looks = 0,
            Err(error) if looks == LOOKS => {
                return format!("nobody knows how its container is: {error}");
            }
            Err(_) => looks += 1,
        }
        // A daemon that ends the waiting at once must not be asked without a pause.
        tracing::debug!(?waited, id, "asked again");
        sleep(LOOK_AGAIN).await;
    }
}

/// Why it does not run, if it does not.
async fn state(daemon: &Daemon, id: &str) -> Result<Option<String>, DaemonError> {
    let found = match daemon.inspect(id).await {
        Err(error) if error.is_absence() => {
            return Ok(Some("somebody removed its container".to_owned()));
        }
        found => found?,
    };
    let Some(state) = found.state else {
        return Ok(Some("the daemon says nothing of its container".to_owned()));
    };
    if state.running == Some(true) {
        return Ok(None);
    }
    let code = state.exit_code.unwrap_or_default();
    let mut reason = format!("its container ended with exit code {code}");
    if state.oom_killed == Some(true) {
        reason += ", out of memory: lower env.desktops or env.docker.ram_gb";
    }
    if let Some(error) = state.error.filter(|error| !error.is_empty()) {
        reason = format!("{reason}: {}", crate::env::lines::plain(error.as_bytes()));
    }
    Ok(Some(reason))
}
