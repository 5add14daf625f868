//! What can be wrong with a checkpoint's text files, or with a text for them.

use std::path::PathBuf;

use crate::screen::ScreenError;

/// Why a prompt cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum PromptError {
    /// A file of the checkpoint is missing or cannot be read.
    #[error("cannot read {}", .path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A file of the checkpoint does not hold what it should.
    #[error("{}: {reason}", .path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The checkpoint has no chat template in any of the usual places.
    #[error(
        "no chat template in {}: add chat_template.jinja, or chat_template to tokenizer_config.json",
        .dir.display()
    )]
    NoTemplate {
        /// The checkpoint's folder.
        dir: PathBuf,
    },
    /// The chat template refuses a conversation.
    #[error("chat template fails: {reason}")]
    Template {
        /// Its words.
        reason: String,
    },
    /// The chat template makes something we cannot build a trajectory from.
    #[error("chat template does not fit: {reason}")]
    Shape {
        /// What is missing.
        reason: String,
    },
    /// The tokenizer refuses a text or ids.
    #[error("tokenizer fails: {reason}")]
    Tokenizer {
        /// Its words.
        reason: String,
    },
    /// The image processor's settings cannot be used, or not for this screen.
    #[error("cannot prepare screenshots: {0}")]
    Screen(ScreenError),
}
