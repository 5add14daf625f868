//! Sets of tasks, written in a small language: `arpo_128 & feasible - proxy`.
//!
//! A set is a term, or a set, `+`, `&` or `-`, and a term; from left to right, separated by spaces.
//! A term is `all`, a domain, a property, a list of the library, a list file, or a task's id or the
//! beginning of one. The same tasks are the same set, with the same hash, however it was written.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;

use crate::store::StoreError;
use crate::tasks::{Library, TaskFile, TasksError};
use crate::types::osworld::{Judge, nearest};
use crate::types::{Task, tasks_hash};

/// Whether a task has a property.
type Property = fn(&TaskFile) -> bool;

/// Properties of tasks, by name.
const PROPERTIES: [(&str, Property); 5] = [
    ("feasible", |file| file.typed.judge != Judge::Infeasible),
    ("infeasible", |file| file.typed.judge == Judge::Infeasible),
    ("proxy", |file| file.typed.proxy),
    ("internet", |file| !file.needs.internet.is_empty()),
    ("google", |file| file.needs.google),
];

/// Some tasks of a library, by domain, then by id.
#[derive(Clone, Debug)]
pub struct TaskSet<'a> {
    /// As it was written.
    pub name: String,
    /// Its tasks.
    pub files: Vec<&'a TaskFile>,
}

impl TaskSet<'_> {
    /// Pins what the set holds, as the manifests of evaluations do.
    pub fn hash(&self) -> String {
        tasks_hash(self.files.iter().map(|file| file.task.as_ref()))
    }

    /// Its tasks as written.
    pub fn tasks(&self) -> Vec<Arc<Task>> {
        self.files
            .iter()
            .map(|file| Arc::clone(&file.task))
            .collect()
    }

    /// Addresses of the files that its tasks need, each once, sorted.
    pub fn urls(&self) -> Vec<String> {
        let needed = self.files.iter().flat_map(|file| &file.needs.files);
        let mut urls: Vec<String> = needed.cloned().collect();
        urls.sort_unstable();
        urls.dedup();
        urls
    }
}

/// A list of tasks, as OSWorld writes them or plain.
#[derive(Deserialize)]
#[serde(untagged)]
enum TaskList {
    ByDomain(BTreeMap<String, Vec<String>>),
    Plain(Vec<String>),
}

/// Which tasks of a library, by place.
type Members = Vec<bool>;

impl Library {
    /// The tasks of a set. A task file that cannot be used is an error where it is named, and
    /// absent from what is chosen by property; see `faults`.
    pub fn set(&self, written: &str) -> Result<TaskSet<'_>, TasksError> {
        let mut words = written.split_whitespace();
        let first = words.next().unwrap_or("all");
        let mut members = self.term(written, first)?;
        while let Some(operator) = words.next() {
            let join = operator_of(written, operator)?;
            let Some(term) = words.next() else {
                return Err(set_error(written, format!("nothing follows {operator:?}")));
            };
            let right = self.term(written, term)?;
            for (left, right) in members.iter_mut().zip(right) {
                *left = join(*left, right);
            }
        }
        let chosen = self.files().iter().zip(members);
        Ok(TaskSet {
            name: written.to_owned(),
            files: chosen
                .filter_map(|(file, is_member)| is_member.then_some(file))
                .collect(),
        })
    }

    /// The tasks that a list file names.
    pub fn list(&self, path: &Path) -> Result<TaskSet<'_>, TasksError> {
        let chosen = self.files().iter().zip(self.listed(path)?);
        Ok(TaskSet {
            name: path.display().to_string(),
            files: chosen
                .filter_map(|(file, is_member)| is_member.then_some(file))
                .collect(),
        })
    }

    fn term(&self, written: &str, term: &str) -> Result<Members, TasksError> {
        let choose = |of: &dyn Fn(&TaskFile) -> bool| Ok(self.files().iter().map(of).collect());
        if term == "all" {
            return choose(&|_| true);
        }
        if let Some((_, has)) = PROPERTIES.iter().find(|(name, _)| *name == term) {
            return choose(has);
        }
        if self.domains().contains(&term) {
            return choose(&|file| file.task.domain() == term);
        }
        if let Some(path) = self.list_path(term) {
            return self.listed(&path);
        }
        match self.find(term) {
            Ok(found) => choose(&|file| file.id() == found.id()),
            // It is meant as an id; anything else is told what there is.
            Err(error) if is_like_an_id(term) => Err(error),
            Err(error @ TasksError::Faulty { .. }) => Err(error),
            Err(_) => Err(set_error(written, self.unknown_term(term))),
        }
    }

    fn unknown_term(&self, term: &str) -> String {
        let lists = self.list_names();
        let mut names = vec!["all"];
        names.extend(PROPERTIES.iter().map(|(name, _)| *name));
        names.extend(self.domains());
        names.extend(lists.iter().map(String::as_str));
        let nearest = nearest(term, &names);
        format!(
            "no list, domain, property or id is called {term:?}; the nearest name is {nearest:?}, \
             there are {}",
            names.join(", ")
        )
    }

    /// Names of the lists beside the tasks.
    pub fn list_names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.root()).into_iter().flatten();
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let lists = paths.filter(|path| path.extension().is_some_and(|ext| ext == "json"));
        let names = lists.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()));
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    fn list_path(&self, term: &str) -> Option<PathBuf> {
        let is_path = term.contains('/') || Path::new(term).extension().is_some();
        let own = self.root().join(format!("{term}.json"));
        let candidates = if is_path {
            [PathBuf::from(term), self.root().join(term)]
        } else {
            [own.clone(), own]
        };
        candidates.into_iter().find(|path| path.is_file())
    }

    fn listed(&self, path: &Path) -> Result<Members, TasksError> {
        let wrong = |reason: String| TasksError::List {
            path: path.to_owned(),
            reason,
        };
        let text = fs::read_to_string(path).map_err(StoreError::io("read", path))?;
        let list: TaskList = serde_json::from_str(&text).map_err(|_| {
            wrong("neither a JSON object of domains with lists of ids nor a list of ids".into())
        })?;
        let mut members = vec![false; self.files().len()];
        let mut add = |domain: Option<&str>, id: &str| {
            let found = self.files().iter().position(|file| file.id() == id);
            let Some(place) = found else {
                return Err(match self.find(id) {
                    Err(error @ TasksError::Faulty { .. }) => error,
                    _ => wrong(format!("no task has the id {id:?}")),
                });
            };
            let own = self.files()[place].task.domain();
            if let Some(domain) = domain.filter(|domain| *domain != own) {
                let reason = format!("{id} is listed under {domain:?}, but lies in {own:?}");
                return Err(wrong(reason));
            }
            members[place] = true;
            Ok(())
        };
        match &list {
            TaskList::ByDomain(domains) => {
                for (domain, ids) in domains {
                    ids.iter().try_for_each(|id| add(Some(domain), id))?;
                }
            }
            TaskList::Plain(ids) => ids.iter().try_for_each(|id| add(None, id))?,
        }
        Ok(members)
    }
}

/// OSWorld's ids begin with eight hex digits.
fn is_like_an_id(term: &str) -> bool {
    let start = term.as_bytes().get(..8);
    start.is_some_and(|start| start.iter().all(u8::is_ascii_hexdigit))
}

fn operator_of(written: &str, operator: &str) -> Result<fn(bool, bool) -> bool, TasksError> {
    match operator {
        "+" => Ok(|left, right| left || right),
        "&" => Ok(|left, right| left && right),
        "-" => Ok(|left, right| left && !right),
        other => Err(set_error(
            written,
            format!("{other:?} stands where +, & or - has to"),
        )),
    }
}

fn set_error(set: &str, reason: String) -> TasksError {
    TasksError::Set {
        set: set.to_owned(),
        reason,
    }
}
