//! One picture of a desktop, in memory.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Width and height of a screen in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ScreenSize {
    /// Pixels across.
    pub width: u32,
    /// Pixels down.
    pub height: u32,
}

/// Content hash of a screenshot: blake3 of size and pixels, 32 hex digits. The name of its PNG.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ImageHash(pub Arc<str>);

impl fmt::Display for ImageHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A screenshot: `rgb` is `[height, width, 3]`, 8 bit, rows from the top. Never changed once made.
#[derive(Clone, PartialEq, Eq)]
pub struct Screenshot {
    size: ScreenSize,
    rgb: Arc<[u8]>,
    hash: ImageHash,
}

impl Screenshot {
    /// Wraps pixels `[height, width, 3]` and hashes them.
    ///
    /// # Panics
    /// If `rgb` is not `width * height * 3` bytes long.
    pub fn new(size: ScreenSize, rgb: Vec<u8>) -> Self {
        assert_eq!(
            rgb.len(),
            size.width as usize * size.height as usize * 3,
            "a screenshot has three bytes a pixel"
        );
        let mut hasher = blake3::Hasher::new();
        hasher.update(&size.width.to_le_bytes());
        hasher.update(&size.height.to_le_bytes());
        hasher.update(&rgb);
        let hex = hasher.finalize().to_hex();
        Self {
            size,
            rgb: rgb.into(),
            hash: ImageHash(hex[..32].into()),
        }
    }

    /// Its size in pixels.
    pub fn size(&self) -> ScreenSize {
        self.size
    }

    /// Its pixels, `[height, width, 3]`.
    pub fn rgb(&self) -> &[u8] {
        &self.rgb
    }

    /// Its content hash.
    pub fn hash(&self) -> &ImageHash {
        &self.hash
    }
}

impl fmt::Debug for Screenshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Screenshot({}x{}, {})",
            self.size.width, self.size.height, self.hash
        )
    }
}
