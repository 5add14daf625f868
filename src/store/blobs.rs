//! Screenshots as PNG files, named by the hash of their pixels: `blobs/ab/abcd….png`.
//!
//! Written once, never changed. It does not encode or decode; whoever stores brings the bytes.

use std::fs;
use std::io;
use std::path::PathBuf;

use crate::store::atomic::{self, Durability};
use crate::store::{RunDir, StoreError};
use crate::types::ImageHash;

/// First bytes of every PNG file (RFC 2083, section 3.1).
const PNG_SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";

impl RunDir {
    /// Where a picture lies, or would. `None` if the hash is not one: names come over sockets.
    pub fn png_path(&self, hash: &ImageHash) -> Option<PathBuf> {
        let name = &*hash.0;
        let is_hash = name.len() == 32 && name.bytes().all(|b| b.is_ascii_hexdigit());
        is_hash.then(|| {
            let file = format!("{name}.png");
            self.root().join("blobs").join(&name[..2]).join(file)
        })
    }

    /// Whether the picture is stored.
    pub fn has_png(&self, hash: &ImageHash) -> bool {
        self.png_path(hash).is_some_and(|path| path.exists())
    }

    /// Stores an encoded picture under its pixels' hash, unless it is there. Says whether it
    /// was new.
    pub fn put_png(&self, hash: &ImageHash, png: &[u8]) -> Result<bool, StoreError> {
        let path = self.png_path(hash).ok_or_else(|| self.no_picture(hash))?;
        if path.exists() {
            return Ok(false);
        }
        if !png.starts_with(PNG_SIGNATURE) {
            return Err(StoreError::damaged(
                &path,
                "what was to be stored is no PNG",
            ));
        }
        atomic::write(&path, png, Durability::Process)?;
        Ok(true)
    }

    /// A stored picture, still encoded.
    pub fn png(&self, hash: &ImageHash) -> Result<Vec<u8>, StoreError> {
        let path = self.png_path(hash).ok_or_else(|| self.no_picture(hash))?;
        let bytes = fs::read(&path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => self.no_picture(hash),
            _ => StoreError::io("read", &path)(error),
        })?;
        if !bytes.starts_with(PNG_SIGNATURE) {
            return Err(StoreError::damaged(&path, "it is no PNG"));
        }
        Ok(bytes)
    }

    fn no_picture(&self, hash: &ImageHash) -> StoreError {
        StoreError::NoPicture {
            hash: hash.clone(),
            path: self.root().to_owned(),
        }
    }
}
