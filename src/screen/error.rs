//! What can go wrong with pixels.

use std::path::PathBuf;

/// Why a picture or a processor's settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ScreenError {
    /// A side of zero pixels.
    #[error("a picture of {width}x{height} pixels has nothing to see")]
    Empty {
        /// Pixels across.
        width: u32,
        /// Pixels down.
        height: u32,
    },
    /// Too long and thin for the model.
    #[error("a picture of {width}x{height} pixels is longer than 200 times its shorter side")]
    AspectRatio {
        /// Pixels across.
        width: u32,
        /// Pixels down.
        height: u32,
    },
    /// More pixels than a screen has.
    #[error("a picture of {width}x{height} pixels exceeds the limit of {limit} pixels")]
    TooLarge {
        /// Pixels across.
        width: u32,
        /// Pixels down.
        height: u32,
        /// The most pixels accepted.
        limit: u64,
    },
    /// The bytes are not a PNG at all.
    #[error("not a PNG: the data begins with {begins}")]
    NotPng {
        /// What they look like, or their first bytes.
        begins: String,
    },
    /// The PNG ends before its last row.
    #[error("PNG is cut short after {bytes} bytes")]
    Truncated {
        /// How many bytes there are.
        bytes: usize,
    },
    /// A kind of PNG that no screen delivers.
    #[error("PNG has {what}; take screenshots as 8-bit RGB")]
    Unsupported {
        /// What it has.
        what: &'static str,
    },
    /// The PNG is damaged.
    #[error("PNG is damaged: {reason}")]
    Damaged {
        /// The decoder's words.
        reason: String,
    },
    /// A settings file that cannot be read.
    #[error("cannot read {}", .path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A settings file that says something we cannot follow.
    #[error("image processor settings in {origin}: {reason}")]
    Config {
        /// Which file, or what stands for it.
        origin: String,
        /// Key, value and what to change.
        reason: String,
    },
}
