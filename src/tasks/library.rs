//! A folder of task files in OSWorld's own layout: `examples/DOMAIN/ID.json` and lists of ids.
//!
//! All files are read and checked at once; one that cannot be is set aside with its fault, so that
//! it stops who names it and nobody else.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::config::assets;
use crate::store::StoreError;
use crate::tasks::TasksError;
use crate::types::Task;
use crate::types::osworld::{OsworldTask, TaskFault, TaskNeeds, read_task};

/// Where the tasks that come with arpo lie.
const SHIPPED: &str = "assets/osworld";

/// One task of a library.
#[derive(Clone, Debug)]
pub struct TaskFile {
    /// As written.
    pub task: Arc<Task>,
    /// With every part typed.
    pub typed: OsworldTask,
    /// What it needs beside a desktop.
    pub needs: TaskNeeds,
    /// The file's own text.
    pub text: String,
    /// The file, from the library's folder.
    pub path: PathBuf,
}

impl TaskFile {
    /// Its identifier.
    pub fn id(&self) -> &str {
        &self.task.id.0
    }
}

/// A task file that cannot be used.
#[derive(Clone, Debug)]
pub struct FaultyFile {
    /// The file, from the library's folder.
    pub path: PathBuf,
    /// What is wrong in it.
    pub fault: TaskFault,
}

impl FaultyFile {
    fn id(&self) -> &str {
        let stem = self.path.file_stem().and_then(|stem| stem.to_str());
        stem.unwrap_or_default()
    }

    /// As an error of whoever needs the file.
    pub fn to_error(&self) -> TasksError {
        TasksError::Faulty {
            path: self.path.clone(),
            fault: self.fault.clone(),
        }
    }
}

/// The tasks of a folder.
#[derive(Clone, Debug)]
pub struct Library {
    root: PathBuf,
    /// By domain, then by id.
    files: Vec<TaskFile>,
    faults: Vec<FaultyFile>,
}

impl Library {
    /// The tasks that come with arpo.
    pub fn shipped() -> Result<Self, TasksError> {
        Self::open(&assets::locate(SHIPPED))
    }

    /// The tasks of a folder such as OSWorld's `evaluation_examples`.
    pub fn open(root: &Path) -> Result<Self, TasksError> {
        let mut library = Self {
            root: root.to_owned(),
            files: Vec::new(),
            faults: Vec::new(),
        };
        let examples = root.join("examples");
        if examples.is_dir() {
            for domain in sorted_entries(&examples)? {
                library.read_domain(&domain)?;
            }
        }
        if library.files.is_empty() && library.faults.is_empty() {
            let root = root.to_owned();
            return Err(TasksError::NoTasks { root });
        }
        Ok(library)
    }

    fn read_domain(&mut self, folder: &Path) -> Result<(), TasksError> {
        if !folder.is_dir() {
            return Ok(());
        }
        for path in sorted_entries(folder)? {
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            let text = fs::read_to_string(&path).map_err(StoreError::io("read", &path))?;
            let path = path.strip_prefix(&self.root).unwrap_or(&path).to_owned();
            match self.read_file(&path, text) {
                Ok(file) => self.files.push(file),
                Err(fault) => self.faults.push(FaultyFile { path, fault }),
            }
        }
        Ok(())
    }

    fn read_file(&self, path: &Path, text: String) -> Result<TaskFile, TaskFault> {
        let (mut task, typed) = read_task(&text)?;
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        if stem != Some(task.id.0.as_str()) {
            let name = stem.unwrap_or_default();
            let reason = format!("{:?}, but the file is called {name:?}", task.id.0);
            return Err(TaskFault::new("id", reason));
        }
        if let Some(other) = self.files.iter().find(|file| file.task.id == task.id) {
            let reason = format!("{} has the same", other.path.display());
            return Err(TaskFault::new("id", reason));
        }
        let domain = path.parent().and_then(Path::file_name);
        task.folder = domain.map(|domain| domain.to_string_lossy().into_owned());
        Ok(TaskFile {
            needs: TaskNeeds::of(&task, &typed),
            task: Arc::new(task),
            typed,
            text,
            path: path.to_owned(),
        })
    }

    /// Its folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Its tasks by domain, then by id.
    pub fn files(&self) -> &[TaskFile] {
        &self.files
    }

    /// Its files that cannot be used.
    pub fn faults(&self) -> &[FaultyFile] {
        &self.faults
    }

    /// Its domains in order, each once.
    pub fn domains(&self) -> Vec<&str> {
        let mut domains: Vec<&str> = self.files.iter().map(|file| file.task.domain()).collect();
        domains.dedup();
        domains
    }

    /// The task of an id, or of the only one that begins so.
    pub fn find(&self, id: &str) -> Result<&TaskFile, TasksError> {
        let error = |reason: String| TasksError::Set {
            set: id.to_owned(),
            reason,
        };
        let begins: Vec<&TaskFile> = self
            .files
            .iter()
            .filter(|file| !id.is_empty() && file.id().starts_with(id))
            .collect();
        match begins.as_slice() {
            [one] => Ok(one),
            [] => match self.faults.iter().find(|file| file.id().starts_with(id)) {
                Some(faulty) if !id.is_empty() => Err(faulty.to_error()),
                _ => Err(error("no task has this id".to_owned())),
            },
            [first, second, ..] => Err(error(format!(
                "{} tasks begin so, {} and {} among them; write more of the id",
                begins.len(),
                first.id(),
                second.id()
            ))),
        }
    }
}

/// The entries of a folder by name.
fn sorted_entries(folder: &Path) -> Result<Vec<PathBuf>, TasksError> {
    let entries = fs::read_dir(folder).map_err(StoreError::io("read folder", folder))?;
    let paths: Result<Vec<PathBuf>, _> = entries.map(|entry| Ok(entry?.path())).collect();
    let mut paths = paths.map_err(StoreError::io("read folder", folder))?;
    paths.sort();
    Ok(paths)
}
