//! Which tasks an iteration takes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::config::{TasksConfig, assets};
use crate::env::simulated::suite;
use crate::session::SessionError;
use crate::tasks::{FileCache, Library, TasksError};
use crate::types::{Task, TaskId, derive_seed};

const SEED_ORDER: u64 = 0x7461_736b;

/// Tasks in shuffled epochs. A pure function of seed and iteration: nothing to save.
#[derive(Clone, Debug)]
pub struct TaskPool {
    tasks: Vec<Arc<Task>>,
    seed: u64,
    shuffle: bool,
}

impl TaskPool {
    /// A pool of at least one task.
    pub fn new(tasks: Vec<Arc<Task>>, seed: u64, shuffle: bool) -> Result<Self, SessionError> {
        if tasks.is_empty() {
            return Err(SessionError::Tasks(
                "the task pool is empty; set tasks.pool".to_owned(),
            ));
        }
        Ok(Self {
            tasks,
            seed,
            shuffle,
        })
    }

    /// Number of tasks.
    pub fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Whether it has no task; never true.
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// The `count` tasks of an iteration, epoch after epoch, each epoch in an order of its own.
    pub fn batch(&self, iteration: u64, count: usize) -> Vec<Arc<Task>> {
        let start = iteration * count as u64;
        (start..start + count as u64)
            .map(|position| self.at(position))
            .collect()
    }

    fn at(&self, position: u64) -> Arc<Task> {
        let epoch = position / self.tasks.len() as u64;
        let mut order: Vec<usize> = (0..self.tasks.len()).collect();
        if self.shuffle {
            let seed = derive_seed(self.seed, &[SEED_ORDER, epoch]);
            order.shuffle(&mut Pcg64Mcg::seed_from_u64(seed));
        }
        Arc::clone(&self.tasks[order[(position % self.tasks.len() as u64) as usize]])
    }
}

/// The files that tasks bring from the web.
pub fn open_files(config: &TasksConfig) -> Result<FileCache, SessionError> {
    let root = match config.files.as_str() {
        "" => default_files().ok_or_else(|| {
            let reason = "neither XDG_CACHE_HOME nor HOME is set; say where with tasks.files";
            SessionError::Tasks(reason.to_owned())
        })?,
        folder => assets::locate(folder),
    };
    FileCache::open(&root).map_err(|error| SessionError::Tasks(error.to_string()))
}

/// Where files from the web lie unless told otherwise: `$XDG_CACHE_HOME/arpo/tasks`.
pub fn default_files() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let caches = match (set("XDG_CACHE_HOME"), set("HOME")) {
        (Some(folder), _) => PathBuf::from(folder),
        (None, home) => PathBuf::from(home?).join(".cache"),
    };
    Some(caches.join("arpo/tasks"))
}

/// The tasks of a set: a list file, a folder of task files or of OSWorld's layout, the name of a
/// list under `assets/tasks/`, or a set of OSWorld's tasks as `Library::set` reads it.
pub fn find_tasks(name: &str) -> Result<Vec<Arc<Task>>, SessionError> {
    let direct = assets::locate(name);
    let path = if direct.exists() {
        direct
    } else {
        assets::locate(&format!("assets/tasks/{name}.json"))
    };
    let of_osworld = |error: TasksError| SessionError::Tasks(error.to_string());
    if path.join("examples").is_dir() {
        return every_task(&Library::open(&path).map_err(of_osworld)?).map_err(of_osworld);
    }
    if path.is_file() && is_osworlds(&path)? {
        let library = Library::shipped().map_err(of_osworld)?;
        return Ok(library.list(&path).map_err(of_osworld)?.tasks());
    }
    if path.exists() {
        return load_tasks(&path);
    }
    find_osworld(name).map_err(|error| {
        SessionError::Tasks(format!(
            "no task set {name:?}: neither a file or folder nor assets/tasks/{name}.json; and as \
             one of OSWorld's: {error}"
        ))
    })
}

/// All tasks of a library, none of whose files may be faulty.
fn every_task(library: &Library) -> Result<Vec<Arc<Task>>, TasksError> {
    match library.faults().first() {
        Some(faulty) => Err(faulty.to_error()),
        None => Ok(library.set("all")?.tasks()),
    }
}

/// Whether a list names OSWorld's tasks: by domain, or by ids that no simulated task has.
fn is_osworlds(list: &Path) -> Result<bool, SessionError> {
    let written: Value = read_json(list, "JSON")?;
    let first = written.as_array().and_then(|ids| ids.first()?.as_str());
    let is_ours = |id: &str| suite::task_by_id(&TaskId(id.to_owned())).is_ok();
    let is_uuid = |id: &str| id.len() == 36 && id.as_bytes()[8] == b'-';
    Ok(written.is_object() || first.is_some_and(|id| is_uuid(id) && !is_ours(id)))
}

/// A set of OSWorld's tasks. Files that cannot be used would be absent from it without a word, so
/// there may be none.
fn find_osworld(set: &str) -> Result<Vec<Arc<Task>>, TasksError> {
    let library = Library::shipped()?;
    match library.faults().first() {
        Some(faulty) => Err(faulty.to_error()),
        None => Ok(library.set(set)?.tasks()),
    }
}

/// The tasks of a list file, which is a JSON array of simulated tasks' ids; or those of a folder
/// of task files, in the order of their names.
pub fn load_tasks(path: &Path) -> Result<Vec<Arc<Task>>, SessionError> {
    if path.is_dir() {
        return load_folder(path);
    }
    let ids: Vec<TaskId> = read_json(path, "a JSON array of task ids")?;
    ids.iter()
        .map(|id| {
            let task = suite::task_by_id(id).map(Arc::new);
            task.map_err(|error| tasks_error(path, &error.to_string()))
        })
        .collect()
}

/// One task a file, in OSWorld's JSON.
fn load_folder(folder: &Path) -> Result<Vec<Arc<Task>>, SessionError> {
    let entries =
        std::fs::read_dir(folder).map_err(|error| tasks_error(folder, &error.to_string()))?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let is_json = |path: &PathBuf| path.extension().is_some_and(|ext| ext == "json");
    let mut paths: Vec<PathBuf> = paths.filter(is_json).collect();
    paths.sort();
    if paths.is_empty() {
        let reason = "no task file in it; task files end in .json".to_owned();
        return Err(tasks_error(folder, &reason));
    }
    paths
        .iter()
        .map(|path| read_json(path, "a task in OSWorld's JSON").map(Arc::new))
        .collect()
}

fn read_json<T: DeserializeOwned>(path: &Path, what: &str) -> Result<T, SessionError> {
    let text =
        std::fs::read_to_string(path).map_err(|error| tasks_error(path, &error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| tasks_error(path, &format!("not {what}: {error}")))
}

fn tasks_error(path: &Path, reason: &str) -> SessionError {
    SessionError::Tasks(format!("{}: {reason}", path.display()))
}
