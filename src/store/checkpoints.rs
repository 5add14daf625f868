//! Checkpoints: `checkpoints/iter-000008/`, whole or absent.
//!
//! A checkpoint is written into a hidden folder, its files are synced and hashed, `manifest.toml`
//! is written last, and the folder is renamed into place. Older ones go only after that. What is
//! in the files is the trainer's affair; the manifest knows names, sizes and hashes, where the
//! event log stood, and which episodes replay still needs.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde::{Deserialize, Serialize};

use crate::event::EventKind;
use crate::store::atomic::{self, Durability};
use crate::store::{RunDir, StoreError};
use crate::types::{EpisodeId, PolicyVersion};

const FORMAT: u32 = 1;
const MANIFEST: &str = "manifest.toml";

/// One file of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointFile {
    /// Its name in the checkpoint's folder.
    pub name: String,
    /// Its length, bytes.
    pub bytes: u64,
    /// blake3 of its content, hex.
    pub blake3: String,
}

/// What a checkpoint says of itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Format of the checkpoint; set by `publish`.
    #[serde(default)]
    pub format: u32,
    /// Iterations behind it; the next one to do has this number.
    pub iterations_done: u64,
    /// Optimizer updates behind its weights.
    pub policy: PolicyVersion,
    /// Number of the first event after its state: those from here on are done anew.
    pub next_seq: u64,
    /// Number of the next episode.
    pub next_episode: u64,
    /// Hash of the weights, as the trainer defines it.
    pub weights: String,
    /// Episodes that replay still needs, which are never pruned.
    #[serde(default)]
    pub pinned: Vec<EpisodeId>,
    /// Its files but the manifest; set by `publish`.
    #[serde(default)]
    pub files: Vec<CheckpointFile>,
}

/// A whole checkpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// Its folder.
    pub path: PathBuf,
    /// What it says of itself.
    pub manifest: Manifest,
}

impl Checkpoint {
    /// Reads and verifies the checkpoint in a folder, wherever it lies.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let manifest = read_manifest(path)?;
        for file in &manifest.files {
            let on_disk = describe(path, &file.name)?;
            if on_disk != *file {
                let path = path.join(&file.name);
                let reason = "it is not what the manifest names; use an older checkpoint";
                return Err(StoreError::damaged(&path, reason));
            }
        }
        Ok(Self {
            path: path.to_owned(),
            manifest,
        })
    }

    /// Path of one of its files.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

/// A checkpoint being written. Dropped unpublished, it vanishes.
#[derive(Debug)]
pub struct CheckpointDraft {
    path: PathBuf,
    target: PathBuf,
}

impl CheckpointDraft {
    /// The folder to write files into.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes one file.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        let path = self.path.join(name);
        fs::write(&path, bytes).map_err(StoreError::io("write", &path))
    }

    /// Hashes and syncs the files, writes the manifest and puts the checkpoint in its place,
    /// where it replaces an older one of the same iteration at once.
    pub fn publish(self, mut manifest: Manifest) -> Result<Checkpoint, StoreError> {
        manifest.format = FORMAT;
        manifest.files = Vec::new();
        for name in file_names(&self.path)? {
            let path = self.path.join(&name);
            File::open(&path)
                .and_then(|file| file.sync_all())
                .map_err(StoreError::io("sync", &path))?;
            manifest.files.push(describe(&self.path, &name)?);
        }
        let path = self.path.join(MANIFEST);
        let text = toml::to_string(&manifest)
            .map_err(|error| StoreError::damaged(&path, error.to_string()))?;
        atomic::write(&path, text.as_bytes(), Durability::Machine)?;
        // The exchange leaves an older one in the draft's folder, which goes with the draft.
        let exchanged = renameat_with(CWD, &self.path, CWD, &self.target, RenameFlags::EXCHANGE);
        if exchanged.is_err() {
            if self.target.exists() {
                fs::remove_dir_all(&self.target)
                    .map_err(StoreError::io("replace", &self.target))?;
            }
            fs::rename(&self.path, &self.target)
                .map_err(StoreError::io("publish", &self.target))?;
        }
        atomic::sync_folder_of(&self.target)?;
        Ok(Checkpoint {
            path: self.target.clone(),
            manifest,
        })
    }
}

impl Drop for CheckpointDraft {
    fn drop(&mut self) {
        // What remains is hidden and removed at the next start.
        let _ = fs::remove_dir_all(&self.path);
    }
}

impl RunDir {
    /// Begins a checkpoint of `iterations_done` iterations that will take about `expected_bytes`.
    pub fn begin_checkpoint(
        &self,
        iterations_done: u64,
        expected_bytes: u64,
    ) -> Result<CheckpointDraft, StoreError> {
        self.require_space(expected_bytes)?;
        let target = self.checkpoint_path(iterations_done);
        let path = atomic::temporary_beside(&target);
        fs::create_dir_all(&path).map_err(StoreError::io("make folder", &path))?;
        Ok(CheckpointDraft { path, target })
    }

    /// Folder of the checkpoint of that many iterations.
    pub fn checkpoint_path(&self, iterations_done: u64) -> PathBuf {
        let name = format!("iter-{iterations_done:06}");
        self.root().join("checkpoints").join(name)
    }

    /// Checkpoints that have a manifest, by iterations done; their files are not verified.
    pub fn checkpoints(&self) -> Result<Vec<(u64, PathBuf)>, StoreError> {
        let folder = self.root().join("checkpoints");
        let entries = fs::read_dir(&folder).map_err(StoreError::io("list", &folder))?;
        let mut found = Vec::new();
        for entry in entries {
            let path = entry.map_err(StoreError::io("list", &folder))?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let number = name.strip_prefix("iter-").map(str::parse);
            if let (Some(Ok(iterations_done)), true) = (number, path.join(MANIFEST).exists()) {
                found.push((iterations_done, path));
            }
        }
        found.sort();
        Ok(found)
    }

    /// The newest checkpoint that is whole, every file verified.
    pub fn newest_checkpoint(&self) -> Result<Checkpoint, StoreError> {
        let mut reasons = String::new();
        for (_, path) in self.checkpoints()?.into_iter().rev() {
            match Checkpoint::open(&path) {
                Ok(checkpoint) => return Ok(checkpoint),
                Err(error) => {
                    tracing::warn!(%error, "checkpoint passed over");
                    reasons.push_str("; ");
                    reasons.push_str(&error.to_string());
                }
            }
        }
        Err(StoreError::NoCheckpoint {
            path: self.root().to_owned(),
            reasons,
        })
    }

    /// Removes all but the newest `keep` checkpoints; call it once a new one is published.
    pub fn retain_checkpoints(&self, keep: usize) -> Result<(), StoreError> {
        let checkpoints = self.checkpoints()?;
        let old = checkpoints.len().saturating_sub(keep.max(1));
        for (_, path) in &checkpoints[..old] {
            remove_checkpoint(path)?;
        }
        Ok(())
    }

    /// Removes checkpoints of more iterations than `checkpoint`'s: a run that goes on from it
    /// does those iterations anew, and must never come back to them.
    pub fn discard_checkpoints_after(&self, checkpoint: &Checkpoint) -> Result<(), StoreError> {
        for (iterations_done, path) in self.checkpoints()? {
            if iterations_done > checkpoint.manifest.iterations_done {
                remove_checkpoint(&path)?;
            }
        }
        Ok(())
    }

    /// The first event that a resume from `checkpoint` discards: the one after its
    /// `CheckpointSaved`, or, where the process died before writing that, the one after the
    /// state that it holds.
    pub fn resume_seq(&self, checkpoint: &Checkpoint) -> Result<u64, StoreError> {
        let manifest = &checkpoint.manifest;
        for event in self.read_events(manifest.next_seq)? {
            let event = event?;
            match event.kind {
                EventKind::CheckpointSaved {
                    iterations_done, ..
                } if iterations_done == manifest.iterations_done => return Ok(event.seq + 1),
                EventKind::IterationStarted { .. } | EventKind::RunResumed { .. } => break,
                _ => {}
            }
        }
        Ok(manifest.next_seq)
    }
}

/// Renamed first, so that a half-removed checkpoint is never taken for one.
fn remove_checkpoint(path: &Path) -> Result<(), StoreError> {
    let hidden = atomic::temporary_beside(path);
    fs::rename(path, &hidden).map_err(StoreError::io("remove", path))?;
    fs::remove_dir_all(&hidden).map_err(StoreError::io("remove", &hidden))
}

pub(super) fn read_manifest(path: &Path) -> Result<Manifest, StoreError> {
    #[derive(Deserialize)]
    struct Format {
        format: u32,
    }
    let path = path.join(MANIFEST);
    let text = fs::read_to_string(&path).map_err(StoreError::io("read", &path))?;
    let damaged = |error: toml::de::Error| StoreError::damaged(&path, error.message());
    let Format { format } = toml::from_str(&text).map_err(damaged)?;
    if format > FORMAT {
        return Err(StoreError::Newer {
            path,
            found: format,
            known: FORMAT,
        });
    }
    toml::from_str(&text).map_err(damaged)
}

/// Names of the files in a draft, in order; folders in it are not part of a checkpoint.
fn file_names(folder: &Path) -> Result<Vec<String>, StoreError> {
    let mut names = Vec::new();
    let entries = fs::read_dir(folder).map_err(StoreError::io("list", folder))?;
    for entry in entries {
        let entry = entry.map_err(StoreError::io("list", folder))?;
        if entry.path().is_file() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

fn describe(folder: &Path, name: &str) -> Result<CheckpointFile, StoreError> {
    let path = folder.join(name);
    let mut hasher = blake3::Hasher::new();
    let mut file = File::open(&path).map_err(StoreError::io("open", &path))?;
    let bytes = std::io::copy(&mut file, &mut hasher).map_err(StoreError::io("read", &path))?;
    Ok(CheckpointFile {
        name: name.to_owned(),
        bytes,
        blake3: hasher.finalize().to_hex().to_string(),
    })
}
