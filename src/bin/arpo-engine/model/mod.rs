//! The network: Qwen2.5-VL as in `transformers`, and its checkpoints.
//!
//! No sampling and no scheduling here (`engine`), no losses and no optimizer (`trainer`).
//! Forward passes take `&Weights`, never a global model, so that rollouts, evaluations and
//! training can use different versions at the same time.

pub mod checkpoint;
pub mod qwen2_5_vl;
pub mod weights;

pub use weights::Weights;

#[cfg(test)]
pub(crate) mod tests;

use std::path::PathBuf;

/// What can be wrong with a checkpoint or with what is fed to the network.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// A file could not be read or written.
    #[error("cannot {action} {}", .path.display())]
    Io {
        /// `read`, `write`, `create`, `rename`.
        action: &'static str,
        /// Which file or folder.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// `config.json` does not describe a network that this code computes.
    #[error("config.json: {0}")]
    Config(String),
    /// A weights file is damaged, or lacks what the configuration asks for.
    #[error("{}: {message}", .path.display())]
    Checkpoint {
        /// Which file.
        path: PathBuf,
        /// What is wrong and what to do.
        message: String,
    },
    /// Tensors do not fit the configuration.
    #[error("weights: {0}")]
    Weights(String),
    /// Token ids and images do not fit each other.
    #[error("prompt: {0}")]
    Prompt(String),
}
