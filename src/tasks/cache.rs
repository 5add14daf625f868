//! Files from the web on this machine: each address once, its content under its hash.
//!
//! ```text
//! manifest.json           address → hash and length of what came from there
//! blobs/ab/abcd…          contents, by blake3
//! partial/0123….part      unfinished downloads by the hash of their address, .json what they are of
//! LOCK                    held by who fills it
//! ```
//!
//! Names are hashes only, so that no address leads out of the folder, and nothing here is ever
//! executable. The manifest pins contents: give one machine's to another and `verify` compares.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::store::{Durability, StoreError, write_whole};
use crate::tasks::TasksError;

/// What came from an address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileRecord {
    /// blake3 of the content, 64 hex digits.
    pub blake3: String,
    /// Its length.
    pub bytes: u64,
}

/// What came from which address.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// By address.
    pub files: BTreeMap<String, FileRecord>,
}

impl Manifest {
    /// Reads one; an absent file is an empty one only where `path` is a cache's own.
    pub fn read(path: &Path) -> Result<Self, TasksError> {
        let text = fs::read_to_string(path).map_err(StoreError::io("read", path))?;
        let wrong = |reason: String| TasksError::List {
            path: path.to_owned(),
            reason,
        };
        let manifest: Self = serde_json::from_str(&text)
            .map_err(|error| wrong(format!("not a manifest of files: {error}")))?;
        let is_hash = |text: &str| text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit());
        match manifest
            .files
            .iter()
            .find(|(_, record)| !is_hash(&record.blake3))
        {
            Some((url, record)) => Err(wrong(format!(
                "{url}: {:?} is not a hash of 64 hex digits",
                record.blake3
            ))),
            None => Ok(manifest),
        }
    }
}

/// How a file of the cache is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileState {
    /// There, and what the manifest says.
    Good,
    /// Not there.
    Missing,
    /// There, but not what the manifest says.
    Damaged {
        /// How it differs.
        reason: String,
    },
}

/// A folder of files from the web.
#[derive(Clone, Debug)]
pub struct FileCache {
    root: PathBuf,
    manifest: Manifest,
}

/// A cache held by who fills it.
#[derive(Debug)]
pub struct FillingCache {
    cache: FileCache,
    _lock: File,
}

impl FileCache {
    /// Opens a cache to read from; an absent one is empty.
    pub fn open(root: &Path) -> Result<Self, TasksError> {
        let path = root.join("manifest.json");
        let manifest = if path.exists() {
            Manifest::read(&path)?
        } else {
            Manifest::default()
        };
        Ok(Self {
            root: root.to_owned(),
            manifest,
        })
    }

    /// What it holds, as it believes.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Where the content from an address lies, if it came and has its length.
    pub fn path(&self, url: &str) -> Option<PathBuf> {
        let record = self.manifest.files.get(url)?;
        let path = self.blob(&record.blake3);
        let length = path.metadata().ok()?.len();
        (length == record.bytes).then_some(path)
    }

    /// Reads the content from an address again and compares it with a manifest, the cache's own or
    /// another's.
    pub fn verify(&self, url: &str, against: &Manifest) -> Result<FileState, TasksError> {
        let Some(own) = self.manifest.files.get(url) else {
            return Ok(FileState::Missing);
        };
        let Some(pinned) = against.files.get(url) else {
            let reason = "the manifest does not name it".to_owned();
            return Ok(FileState::Damaged { reason });
        };
        let path = self.blob(&own.blake3);
        if !path.exists() {
            return Ok(FileState::Missing);
        }
        let found = hash_file(&path)?;
        if found == *pinned {
            return Ok(FileState::Good);
        }
        let reason = format!(
            "{} bytes of hash {} instead of {} of {}",
            found.bytes,
            short(&found.blake3),
            pinned.bytes,
            short(&pinned.blake3)
        );
        Ok(FileState::Damaged { reason })
    }

    /// Opens it to fill it; one process at a time.
    pub fn fill(self) -> Result<FillingCache, TasksError> {
        let io = StoreError::io("make folder", &self.root);
        fs::create_dir_all(&self.root).map_err(io)?;
        let path = self.root.join("LOCK");
        let lock = File::create(&path).map_err(StoreError::io("open", &path))?;
        let root = self.root.clone();
        let locked = flock(&lock, FlockOperation::NonBlockingLockExclusive);
        // A file system without locks: who fills it twice downloads twice.
        if locked == Err(rustix::io::Errno::WOULDBLOCK) {
            return Err(TasksError::CacheInUse { root });
        }
        // Who held it before may have added to it.
        Ok(FillingCache {
            cache: Self::open(&root)?,
            _lock: lock,
        })
    }

    fn blob(&self, hash: &str) -> PathBuf {
        self.root.join("blobs").join(&hash[..2]).join(hash)
    }
}

impl FillingCache {
    /// What it holds.
    pub fn cache(&self) -> &FileCache {
        &self.cache
    }

    /// Where the unfinished download of an address lies; `extension` tells it from its notes.
    pub(super) fn partial(&self, url: &str, extension: &str) -> Result<PathBuf, TasksError> {
        let folder = self.cache.root.join("partial");
        fs::create_dir_all(&folder).map_err(StoreError::io("make folder", &folder))?;
        let name = blake3::hash(url.as_bytes()).to_hex();
        Ok(folder.join(format!("{name}.{extension}")))
    }

    /// Takes over a finished download.
    pub(super) fn add(
        &mut self,
        url: &str,
        record: FileRecord,
        from: &Path,
    ) -> Result<(), TasksError> {
        let blob = self.cache.blob(&record.blake3);
        if let Some(folder) = blob.parent() {
            fs::create_dir_all(folder).map_err(StoreError::io("make folder", folder))?;
        }
        fs::rename(from, &blob).map_err(StoreError::io("write", &blob))?;
        self.cache.manifest.files.insert(url.to_owned(), record);
        let text = serde_json::to_vec_pretty(&self.cache.manifest)
            .expect("texts and numbers are always JSON");
        let path = self.cache.root.join("manifest.json");
        Ok(write_whole(&path, &text, Durability::Process)?)
    }
}

/// Hash and length of a file.
pub(super) fn hash_file(path: &Path) -> Result<FileRecord, StoreError> {
    let mut hasher = blake3::Hasher::new();
    let mut file = File::open(path).map_err(StoreError::io("open", path))?;
    let bytes = std::io::copy(&mut file, &mut hasher).map_err(StoreError::io("read", path))?;
    Ok(FileRecord {
        blake3: hasher.finalize().to_hex().to_string(),
        bytes,
    })
}

fn short(hash: &str) -> &str {
    hash.get(..12).unwrap_or(hash)
}
