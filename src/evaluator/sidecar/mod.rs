//! OSWorld's own getters and metrics, run by a Python process beside the engine.
//!
//! The process (`assets/sidecar`, with the packages that `arpo tasks sidecar` installs) imports them
//! once and forks for each evaluation: a scratch folder of its own, limits, no network but the ports
//! of the desktop that it is asked about. What came of one never touches the next. Does not decide
//! who scores what: that is `Scorer`.

mod process;
mod relay;
mod sandbox;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use serde::Serialize;
use serde_json::{Map, Value, json};
use tokio::sync::{Mutex, Semaphore};

use super::found::{Found, FoundFile};
use super::getters::GetterError;
use super::metrics::MetricError;
use super::original::Original;
use crate::config::Confinement;
use crate::env::RealDesktop;
use process::{Answer, Process};
use relay::Relay;

/// Evaluations at a time; more wait. Each takes a core and up to its limit of memory.
const MAX_AT_A_TIME: usize = 8;

/// Beyond an evaluation's own limit, after which its watcher is taken for dead too.
const GRACE: Duration = Duration::from_secs(30);

/// How the process is run.
#[derive(Clone, Debug)]
pub struct SidecarOptions {
    /// The interpreter of the virtual environment.
    pub python: PathBuf,
    /// Folder that it makes for its code and sockets, and removes; its path is short enough for a
    /// socket in it.
    pub folder: PathBuf,
    /// What holds it apart from this machine.
    pub confinement: Confinement,
    /// Whether evaluations reach the live web, and by that this machine's network.
    pub live_sites: bool,
    /// Of each evaluation.
    pub limits: Limits,
}

/// What an evaluation may take. It ends without a score where it wants more.
#[derive(Clone, Debug, Serialize)]
pub struct Limits {
    /// From request to answer, seconds.
    pub wall_s: u64,
    /// Of each process, seconds.
    pub cpu_s: u64,
    /// Of all its processes, beside what is shared; MB.
    pub memory_mb: u64,
    /// Of its scratch folder, and of each file; MB.
    pub scratch_mb: u64,
    /// At a time.
    pub processes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            // Getters wait for pages up to a minute and try three times.
            wall_s: 300,
            // The longest metric compares two films picture by picture.
            cpu_s: 120,
            memory_mb: 4096,
            scratch_mb: 1024,
            // Playwright's driver takes a dozen threads in two processes.
            processes: 64,
        }
    }
}

/// Why OSWorld's own code said nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SidecarError {
    /// The process cannot be started here.
    #[error("the sidecar cannot run: {0}")]
    Unavailable(String),
    /// The process is gone.
    #[error("the sidecar ended: {0}")]
    Ended(String),
    /// The evaluation met a limit.
    #[error("its limit of {limit} ended it ({text})")]
    Limit {
        /// Which.
        limit: String,
        /// How far it was.
        text: String,
    },
    /// The evaluation's process died.
    #[error("its process died: {0}")]
    Died(String),
    /// It asks for what the sidecar leaves out.
    #[error("{0}")]
    Absent(String),
    /// OSWorld's code raised an exception.
    #[error("{class}: {text}")]
    Raised {
        /// Its class.
        class: String,
        /// Its words, and where.
        text: String,
    },
}

/// OSWorld's own getters and metrics.
pub struct Sidecar {
    options: SidecarOptions,
    process: Mutex<Option<Arc<Process>>>,
    turns: Semaphore,
    next_id: AtomicU64,
    restarts: AtomicU32,
}

impl Sidecar {
    /// Starts nothing: the first request does.
    pub fn new(options: SidecarOptions) -> Self {
        Self {
            options,
            process: Mutex::new(None),
            turns: Semaphore::new(MAX_AT_A_TIME),
            next_id: AtomicU64::new(1),
            restarts: AtomicU32::new(0),
        }
    }

    /// How often the process was started again after it had ended.
    pub fn restarts(&self) -> u32 {
        self.restarts.load(Ordering::Relaxed)
    }

    /// Its process on this machine while it runs; it ends with this value.
    pub async fn pid(&self) -> Option<u32> {
        let process = self.process.lock().await;
        process.as_ref().and_then(|process| process.pid())
    }

    /// The process, started where it does not run.
    async fn running(&self) -> Result<Arc<Process>, SidecarError> {
        let mut slot = self.process.lock().await;
        if let Some(process) = slot.as_ref() {
            if process.is_alive() {
                return Ok(Arc::clone(process));
            }
            let words = process.last_words();
            tracing::warn!(%words, "the sidecar ended; it is started again");
            self.restarts.fetch_add(1, Ordering::Relaxed);
        }
        *slot = None;
        let process = Arc::new(Process::start(&self.options).await?);
        *slot = Some(Arc::clone(&process));
        Ok(process)
    }

    /// The answer to a request once the process runs and has a turn for it.
    async fn ask(&self, id: u64, request: &Value) -> Result<Answer, SidecarError> {
        let process = self.running().await?;
        let limit = Duration::from_secs(self.options.limits.wall_s) + GRACE;
        if let Ok(answer) = tokio::time::timeout(limit, process.ask(id, request)).await {
            return answer;
        }
        process.kill();
        let text = format!("it did not answer within {} s", limit.as_secs());
        Err(SidecarError::Ended(text))
    }

    fn id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    async fn turn(&self) -> tokio::sync::SemaphorePermit<'_> {
        self.turns.acquire().await.expect("it is never closed")
    }

    /// The score of a metric by its name.
    pub async fn score(
        &self,
        metric: &str,
        result: &Found,
        expected: Option<&Found>,
        options: &Map<String, Value>,
    ) -> Result<f64, SidecarError> {
        let _turn = self.turn().await;
        let id = self.id();
        let mut request = json!({
            "id": id, "do": "score", "metric": metric, "result": result, "options": options,
            "limits": self.options.limits,
        });
        if let Some(expected) = expected {
            request["expected"] = json!(expected);
        }
        let mut answer = self.ask(id, &request).await;
        // A score changes nothing, so it may be asked for twice; what killed the process twice is
        // the request itself.
        if let Err(SidecarError::Ended(words)) = &answer {
            tracing::warn!(metric, %words, "the sidecar ended while scoring; asking once more");
            answer = self.ask(id, &request).await;
        }
        match answer? {
            Answer::Score(score) => Ok(score),
            Answer::Found(_) => Err(out_of_turn()),
        }
    }

    /// What a getter brings, `getter` as the task file has it. Asked once: getters press keys and
    /// open pages.
    pub async fn get(
        &self,
        getter: &Value,
        desktop: RealDesktop<'_>,
    ) -> Result<Found, GetterError> {
        let _turn = self.turn().await;
        let id = self.id();
        // Its folder, where the relay's lies, is there once the process runs.
        self.running().await.map_err(|error| unavailable(&error))?;
        let relay = Relay::open(&self.options, id).map_err(|error| unavailable(&error))?;
        let request = json!({
            "id": id, "do": "get", "getter": getter, "limits": self.options.limits,
            "relay": relay.seen_as(), "files": files_of(getter, desktop),
        });
        let mut unreachable = None;
        let answer = tokio::select! {
            answer = self.ask(id, &request) => answer,
            () = relay.serve(desktop, &mut unreachable) => Err(out_of_turn()),
        };
        // OSWorld's getters go on with nothing where the desktop does not answer.
        if let Some(error) = unreachable {
            return Err(GetterError::Environment(error));
        }
        match answer {
            Ok(Answer::Found(found)) => Ok(found),
            Ok(Answer::Score(_)) => Err(unavailable(&out_of_turn())),
            Err(SidecarError::Raised { class, text }) if class == "FileNotFoundError" => {
                Err(GetterError::NoFile(text))
            }
            Err(error @ SidecarError::Raised { .. }) => Err(GetterError::Raised(error.to_string())),
            Err(error) => Err(unavailable(&error)),
        }
    }
}

impl Drop for Sidecar {
    fn drop(&mut self) {
        // It may never have been made.
        let _ = std::fs::remove_dir_all(&self.options.folder);
    }
}

fn unavailable(error: &SidecarError) -> GetterError {
    GetterError::Unavailable(error.to_string())
}

/// An answer to another question; a fault of ours.
fn out_of_turn() -> SidecarError {
    SidecarError::Ended("it answered something else than it was asked".to_owned())
}

/// What set-up steps kept, which OSWorld finds in the folder that getters write into.
fn files_of(getter: &Value, desktop: RealDesktop<'_>) -> Vec<FoundFile> {
    if getter["type"] != "cache_file" {
        return Vec::new();
    }
    let kept = desktop.kept.iter();
    kept.map(|(name, bytes)| FoundFile::new(name.clone(), bytes.clone()))
        .collect()
}

#[async_trait]
impl Original for Sidecar {
    async fn score(
        &self,
        metric: &str,
        result: &Found,
        expected: Option<&Found>,
        options: &Map<String, Value>,
    ) -> Result<f64, MetricError> {
        let score = Sidecar::score(self, metric, result, expected, options).await;
        score.map_err(|error| match error {
            SidecarError::Raised { .. } => MetricError::Raised(error.to_string()),
            error => MetricError::Unavailable(error.to_string()),
        })
    }

    async fn get(&self, getter: &Value, desktop: RealDesktop<'_>) -> Result<Found, GetterError> {
        Sidecar::get(self, getter, desktop).await
    }
}

/// Requests that wait for their answers, by number.
type Waiting = HashMap<u64, tokio::sync::oneshot::Sender<Value>>;
