//! Processes of desktops as a test finds them in the folder of slots and in /proc.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

/// The slots whose owner is this process.
pub(crate) fn slots_of(state: &Path, pid: u32) -> Vec<PathBuf> {
    let entries = fs::read_dir(state.join("slots")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let is_its = |path: &PathBuf| {
        let text = fs::read_to_string(path.join("owner.json")).unwrap_or_default();
        let owner: Value = serde_json::from_str(&text).unwrap_or_default();
        owner["engine"]["pid"] == pid
    };
    paths.filter(is_its).collect()
}

/// Processes that a slot's owner wrote down.
pub(crate) fn children_of(slot: &Path) -> Vec<(u32, u64)> {
    let text = fs::read_to_string(slot.join("owner.json")).unwrap();
    let owner: Value = serde_json::from_str(&text).unwrap();
    let children = owner["children"].as_array().unwrap().iter();
    children
        .map(|child| {
            let number = |name: &str| child[name].as_u64().unwrap();
            (number("pid") as u32, number("started_ticks"))
        })
        .collect()
}

/// Processes below `roots` by their parents.
pub(crate) fn descendants(roots: &[u32]) -> Vec<u32> {
    let mut found = roots.to_vec();
    loop {
        let more: Vec<u32> = with_parents()
            .into_iter()
            .filter(|(pid, parent)| found.contains(parent) && !found.contains(pid))
            .map(|(pid, _)| pid)
            .collect();
        if more.is_empty() {
            return found;
        }
        found.extend(more);
    }
}

/// Every process.
pub(crate) fn all() -> Vec<u32> {
    let names = fs::read_dir("/proc").unwrap();
    let pids = names.filter_map(|name| name.ok()?.file_name().to_str()?.parse().ok());
    pids.collect()
}

/// Every process with its parent.
fn with_parents() -> Vec<(u32, u32)> {
    let parent = |pid: u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (_, fields) = stat.rsplit_once(')')?;
        fields.split_whitespace().nth(1)?.parse().ok()
    };
    let pids = all().into_iter();
    pids.filter_map(|pid| Some((pid, parent(pid)?))).collect()
}

/// Mounts of this process's own namespace.
pub(crate) fn mounts() -> usize {
    fs::read_to_string("/proc/self/mounts")
        .unwrap()
        .lines()
        .count()
}

/// Waits for the end of a process, which the kernel has been asked for. Whoever takes over orphans
/// may take its time to reap one, so a zombie counts as ended.
pub(crate) async fn gone(pid: u32) {
    for _ in 0..1000 {
        if arpo::store::started_ticks(pid).is_none() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let words = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    panic!("process {pid} lives on: {words}");
}
