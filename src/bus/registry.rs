//! The runs of this machine: sockets that answer, and folders of runs.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::bus::{BusError, probe, socket_path};
use crate::event::RunState;
use crate::store::{LockHolder, RunDir};

/// How a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// Its engine answers.
    Live,
    /// Its engine lives but does not answer at its socket.
    Silent,
    /// It ended as it should.
    Finished,
    /// It ended by an error.
    Failed,
    /// Its engine died; `--resume` goes on with it.
    Interrupted,
}

/// One run of this machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunListing {
    /// Its name.
    pub name: String,
    /// How it stands.
    pub status: RunStatus,
    /// Its folder.
    pub root: PathBuf,
    /// The engine's process.
    pub pid: Option<u32>,
    /// The socket that answers.
    pub socket: Option<PathBuf>,
    /// Name of the profile.
    pub profile: String,
    /// Milliseconds since 1970 of its start.
    pub started_unix_ms: u64,
    /// Iterations done.
    pub iterations_done: u64,
    /// Iterations asked for.
    pub iterations: u64,
    /// Mean outcome of the last iteration.
    pub reward_mean: Option<f64>,
}

impl RunListing {
    fn new(name: String, status: RunStatus, root: PathBuf, state: &RunState) -> Self {
        let header = state.header.clone().unwrap_or_default();
        Self {
            name,
            status,
            root,
            pid: None,
            socket: None,
            profile: header.profile,
            started_unix_ms: header.unix_ms,
            iterations_done: state.history.len() as u64,
            iterations: header.iterations,
            reward_mean: state.history.last().map(|report| report.reward_mean.0),
        }
    }
}

/// Runs whose engine answers in `socket_dir`, and those with a folder in one of `parents`,
/// newest first. Folders that cannot be read are left out.
pub async fn list_runs(socket_dir: &Path, parents: &[PathBuf]) -> Vec<RunListing> {
    let mut runs = BTreeMap::new();
    for socket in sockets(socket_dir) {
        let Ok((welcome, state)) = probe(&socket).await else {
            continue;
        };
        let root = welcome.root;
        let mut listing = RunListing::new(welcome.run, RunStatus::Live, root.clone(), &state);
        listing.pid = Some(welcome.pid);
        listing.socket = Some(socket);
        runs.insert(root, listing);
    }
    for root in parents.iter().flat_map(|parent| folders(parent)) {
        let Ok(run) = RunDir::open(&root) else {
            continue;
        };
        if runs.contains_key(run.root()) {
            continue;
        }
        if let Ok(state) = run.state() {
            let listing = list_folder(&run, &state);
            runs.insert(run.root().to_owned(), listing);
        }
    }
    let mut runs: Vec<RunListing> = runs.into_values().collect();
    runs.sort_by_key(|run| Reverse(run.started_unix_ms));
    runs
}

fn list_folder(run: &RunDir, state: &RunState) -> RunListing {
    let writer: Option<LockHolder> = run.writer();
    let failed = state
        .summary
        .as_ref()
        .map(|summary| summary.status == "failed");
    let status = match (&writer, failed) {
        (Some(_), _) => RunStatus::Silent,
        (None, Some(true)) => RunStatus::Failed,
        (None, Some(false)) => RunStatus::Finished,
        (None, None) => RunStatus::Interrupted,
    };
    let mut listing = RunListing::new(run.name(), status, run.root().to_owned(), state);
    listing.pid = writer.map(|holder| holder.pid);
    listing
}

/// The socket that an operator means: a path of one, a run's folder, a run's name or the start
/// of it; without a word, the only live run.
pub async fn find_socket(socket_dir: &Path, run: Option<&str>) -> Result<PathBuf, BusError> {
    if let Some(run) = run {
        let path = Path::new(run);
        if path
            .extension()
            .is_some_and(|extension| extension == "sock")
        {
            return Ok(path.to_owned());
        }
        if path.is_dir() {
            let run = RunDir::open(path).map_err(BusError::store)?;
            return socket_path(socket_dir, &run.name());
        }
    }
    let mut live = Vec::new();
    for socket in sockets(socket_dir) {
        if let Ok((welcome, _)) = probe(&socket).await {
            live.push((welcome.run, socket));
        }
    }
    choose(&live, run)
}

fn choose(live: &[(String, PathBuf)], run: Option<&str>) -> Result<PathBuf, BusError> {
    let wanted = run.unwrap_or("");
    if let Some((_, socket)) = live.iter().find(|(name, _)| name == wanted) {
        return Ok(socket.clone());
    }
    let fitting: Vec<_> = live
        .iter()
        .filter(|(name, _)| name.starts_with(wanted))
        .collect();
    if let [(_, socket)] = fitting[..] {
        return Ok(socket.clone());
    }
    let what = match (run, fitting.len()) {
        (None, 0) => "no run is live".to_owned(),
        (None, _) => "several runs are live, name one".to_owned(),
        (Some(run), 0) => format!("no live run is named {run}"),
        (Some(run), _) => format!("several live runs begin with {run}"),
    };
    let names: Vec<&str> = live.iter().map(|(name, _)| name.as_str()).collect();
    let candidates = match names.len() {
        0 => "`arpo runs list` shows those that ended, `arpo show RUN` opens one".to_owned(),
        _ => format!("live: {}", names.join(", ")),
    };
    Err(BusError::NoSuchRun { what, candidates })
}

/// Removes sockets at which nobody listens; gives their names.
pub async fn clean_sockets(socket_dir: &Path) -> Result<Vec<String>, BusError> {
    let mut removed = Vec::new();
    for socket in sockets(socket_dir) {
        if matches!(probe(&socket).await, Err(BusError::NotRunning { .. })) {
            fs::remove_file(&socket).map_err(BusError::io("remove", &socket))?;
            let name = socket.file_stem().unwrap_or_default();
            removed.push(name.to_string_lossy().into_owned());
        }
    }
    Ok(removed)
}

fn sockets(dir: &Path) -> Vec<PathBuf> {
    let mut sockets = entries(dir);
    sockets.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "sock")
    });
    sockets
}

fn folders(dir: &Path) -> Vec<PathBuf> {
    let mut folders = entries(dir);
    folders.retain(|path| path.join("events").is_dir());
    folders
}

/// What is in a folder, in order; nothing if it cannot be read.
fn entries(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(dir) else {
        return Vec::new();
    };
    let mut paths: Vec<_> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    paths.sort();
    paths
}
