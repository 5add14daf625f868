//! Features of screenshots by content: members of a group that see the same screen share them.

use std::collections::HashMap;

use arpo::types::{ImageHash, PolicyVersion};
use tch::Tensor;

/// Bytes of features kept per lane beside those that sessions hold. The tiny agent's screenshot
/// takes 24 KiB, so this is some 2,700 of them; a full-size one takes 9 MiB.
const MAX_BYTES: usize = 64 << 20;

/// A bounded map from screenshot and vision weights to features.
#[derive(Debug, Default)]
pub(super) struct FeatureCache {
    entries: HashMap<(ImageHash, PolicyVersion), Entry>,
    bytes: usize,
    uses: u64,
}

/// Cached features.
#[derive(Debug)]
struct Entry {
    features: Tensor,
    bytes: usize,
    last_use: u64,
}

impl FeatureCache {
    /// Features of a screenshot under the vision weights of `version`.
    pub(super) fn get(&mut self, hash: &ImageHash, version: PolicyVersion) -> Option<Tensor> {
        self.uses += 1;
        let entry = self.entries.get_mut(&(hash.clone(), version))?;
        entry.last_use = self.uses;
        Some(entry.features.shallow_clone())
    }

    /// Keeps features; those longest unused make room.
    pub(super) fn insert(&mut self, hash: ImageHash, version: PolicyVersion, features: &Tensor) {
        self.uses += 1;
        let bytes = features.numel() * features.kind().elt_size_in_bytes();
        let entry = Entry {
            features: features.shallow_clone(),
            bytes,
            last_use: self.uses,
        };
        self.bytes += bytes;
        if let Some(old) = self.entries.insert((hash, version), entry) {
            self.bytes -= old.bytes;
        }
        while MAX_BYTES < self.bytes && 1 < self.entries.len() {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.last_use);
        let Some(key) = oldest.map(|(key, _)| key.clone()) else {
            return;
        };
        if let Some(entry) = self.entries.remove(&key) {
            self.bytes -= entry.bytes;
        }
    }
}
