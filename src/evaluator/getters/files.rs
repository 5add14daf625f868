//! Files: of the desktop, from the web, kept by set-up steps.

use jiff::civil::DateTime;
use serde_json::{Value, json};

use super::{GetterError, failed, raised, time};
use crate::env::RealDesktop;
use crate::env::guest::{Child, Entry, GuestError};
use crate::evaluator::found::{Found, FoundFile};
use crate::types::osworld::FileName;
use crate::types::osworld::getter::Files;

/// A file of the desktop, none where it has none.
pub(super) async fn read(
    desktop: RealDesktop<'_>,
    path: &str,
) -> Result<Option<Vec<u8>>, GetterError> {
    let read = desktop.machine.guest().read_file(path).await;
    match read {
        // A folder, or one that may not be read: OSWorld takes all but 200 for nothing.
        Err(GuestError::Status { .. } | GuestError::Reported { .. }) => Ok(None),
        read => read.map_err(failed),
    }
}

/// `get_vm_file`.
pub(super) async fn vm_file(desktop: RealDesktop<'_>, files: &Files) -> Result<Found, GetterError> {
    let now = match &files.time_format {
        None => None,
        Some(format) => Some((time::now(desktop).await?.0, format)),
    };
    let mut found = Vec::new();
    for file in &files.files {
        let name = match &now {
            None => file.dest.as_str().to_owned(),
            Some((now, format)) => with_time(file.dest.as_str(), *now, format)?,
        };
        let bytes = read(desktop, &file.path).await?;
        found.push(bytes.map(|bytes| FoundFile::new(name, bytes)));
    }
    Ok(given(found, &files.gives))
}

/// `get_cloud_file`.
pub(super) async fn cloud_file(
    desktop: RealDesktop<'_>,
    files: &Files,
) -> Result<Found, GetterError> {
    let mut found = Vec::new();
    for file in &files.files {
        let url = file.path.as_str();
        let path = desktop.files.path(url);
        let path = path.ok_or_else(|| GetterError::NotFetched {
            url: url.to_owned(),
        })?;
        let bytes = tokio::fs::read(&path).await;
        let bytes = bytes.map_err(|source| GetterError::File {
            path: path.display().to_string(),
            source,
        })?;
        found.push(Some(FoundFile::new(file.dest.as_str(), bytes)));
    }
    Ok(given(found, &files.gives))
}

/// Those that the metric is given, with the others in their folder; one alone is no list.
fn given(files: Vec<Option<FoundFile>>, gives: &[usize]) -> Found {
    let beside = files.iter().enumerate();
    let beside: Vec<FoundFile> = beside
        .filter(|(index, _)| !gives.contains(index))
        .filter_map(|(_, file)| file.clone())
        .collect();
    let given = files.into_iter().enumerate();
    let given = given.filter(|(index, _)| gives.contains(index));
    let mut given: Vec<Found> = given
        .map(|(_, file)| {
            file.map_or(Found::NOTHING, |file| {
                Found::File(FoundFile {
                    beside: beside.clone(),
                    ..file
                })
            })
        })
        .collect();
    match given.len() {
        1 => given.remove(0),
        _ => Found::Many(given),
    }
}

/// A name with the time before its extension. Departs: the time is the desktop's, not this
/// machine's.
fn with_time(name: &str, now: DateTime, format: &str) -> Result<String, GetterError> {
    let time = jiff::fmt::strtime::format(format, now)
        .map_err(|error| raised(format!("\"time_format\" {format:?}: {error}")))?;
    // `os.path.splitext`: leading dots are part of the stem.
    let stem = name.trim_start_matches('.');
    let dot = stem.rfind('.').map(|at| at + name.len() - stem.len());
    let (stem, extension) = name.split_at(dot.unwrap_or(name.len()));
    Ok(format!("{stem}_{time}{extension}"))
}

/// `get_cache_file`.
pub(super) fn cache_file(desktop: RealDesktop<'_>, path: &FileName) -> Result<Found, GetterError> {
    let name = path.as_str();
    let bytes = desktop.kept.get(name);
    let bytes = bytes.ok_or_else(|| raised(format!("no set-up step has kept {name:?}")))?;
    Ok(Found::File(FoundFile::new(name, bytes.clone())))
}

/// `get_gimp_config_file`: an empty one is none.
pub(super) async fn gimp_config_file(
    desktop: RealDesktop<'_>,
    name: &str,
    dest: &FileName,
) -> Result<Found, GetterError> {
    let bytes = read(desktop, &format!("~/.config/GIMP/2.10/{name}")).await?;
    let bytes = bytes.filter(|bytes| !bytes.is_empty());
    Ok(bytes.map_or(Found::NOTHING, |bytes| {
        Found::File(FoundFile::new(dest.as_str(), bytes))
    }))
}

/// `get_vlc_config`.
pub(super) async fn vlc_config(
    desktop: RealDesktop<'_>,
    dest: &FileName,
) -> Result<Found, GetterError> {
    let bytes = read(desktop, "~/.config/vlc/vlcrc").await?;
    let bytes = bytes.ok_or_else(|| raised("VLC has no settings"))?;
    Ok(Found::File(FoundFile::new(dest.as_str(), bytes)))
}

/// `get_list_directory`.
pub(super) async fn list_directory(
    desktop: RealDesktop<'_>,
    path: &str,
) -> Result<Found, GetterError> {
    let tree = tree(desktop, path).await?;
    Ok(Found::Value(
        tree.map_or(Value::Null, |tree| written(&tree)),
    ))
}

/// A folder of the desktop; none where it has none.
pub(super) async fn tree(
    desktop: RealDesktop<'_>,
    path: &str,
) -> Result<Option<Entry>, GetterError> {
    match desktop.machine.guest().list_directory(path).await {
        Err(GuestError::Status { .. } | GuestError::Reported { .. }) => Ok(None),
        tree => tree.map(Some).map_err(failed),
    }
}

/// As the server wrote it.
fn written(entry: &Entry) -> Value {
    match entry {
        Entry::File { name } => json!({"type": "file", "name": name}),
        Entry::Directory { name, children } => {
            let children = children.iter().map(|child| match child {
                Child::Entry(entry) => written(entry),
                Child::Unreadable { error } => json!({"error": error}),
            });
            let children: Vec<Value> = children.collect();
            json!({"type": "directory", "name": name, "children": children})
        }
    }
}
