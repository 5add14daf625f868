//! Deleting episodes and pictures that nothing needs any more; only on request.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::store::checkpoints::read_manifest;
use crate::store::lock::RunLock;
use crate::store::{RunDir, StoreError};
use crate::types::EpisodeId;

/// What a prune deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PruneReport {
    /// Episodes.
    pub episodes: u64,
    /// Pictures.
    pub pictures: u64,
    /// Room given back, bytes.
    pub bytes: u64,
}

impl RunDir {
    /// Deletes every episode that no checkpoint pins, and every picture that no pinned episode
    /// shows. The event log, and with it every curve, stays. Fails while another process writes
    /// to the run; the writer itself may prune between iterations.
    pub fn prune(&self) -> Result<PruneReport, StoreError> {
        let _lock = if self.is_writable() {
            None
        } else {
            Some(RunLock::take(self.root())?)
        };
        let pinned = self.pinned_episodes()?;
        let mut kept_files = BTreeSet::new();
        for &id in &pinned {
            for extension in ["json", "tokens", "learned"] {
                kept_files.insert(self.episode_path(id, extension));
            }
            let episode = self.episode_without_tokens(id)?;
            let steps = episode.steps.iter().map(|step| &step.screenshot);
            let pictures = steps.chain(&episode.final_screenshot);
            kept_files.extend(pictures.filter_map(|hash| self.png_path(hash)));
        }
        let mut report = PruneReport::default();
        for path in files_below(&self.root().join("episodes"))? {
            if !kept_files.contains(&path) {
                report.bytes += remove(&path)?;
                let extension = path.extension().unwrap_or_default();
                report.episodes += u64::from(extension == "json");
            }
        }
        for path in files_below(&self.root().join("blobs"))? {
            if !kept_files.contains(&path) {
                report.bytes += remove(&path)?;
                report.pictures += 1;
            }
        }
        Ok(report)
    }

    /// Episodes that a checkpoint of the run pins.
    pub fn pinned_episodes(&self) -> Result<BTreeSet<EpisodeId>, StoreError> {
        let mut pinned = BTreeSet::new();
        for (_, path) in self.checkpoints()? {
            pinned.extend(read_manifest(&path)?.pinned);
        }
        Ok(pinned)
    }
}

/// Files two levels down: `episodes/0000/x`, `blobs/ab/x`.
fn files_below(folder: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let mut files = Vec::new();
    for group in list(folder)? {
        if group.is_dir() {
            files.extend(list(&group)?);
        }
    }
    Ok(files)
}

fn list(folder: &Path) -> Result<Vec<PathBuf>, StoreError> {
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(folder).map_err(StoreError::io("list", folder))?;
    entries
        .map(|entry| Ok(entry.map_err(StoreError::io("list", folder))?.path()))
        .collect()
}

fn remove(path: &Path) -> Result<u64, StoreError> {
    let bytes = fs::metadata(path).map_or(0, |metadata| metadata.len());
    fs::remove_file(path).map_err(StoreError::io("remove", path))?;
    Ok(bytes)
}
