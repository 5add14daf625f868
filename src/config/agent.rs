//! `[policy]` and `[sampling]`: who answers, and how its replies are drawn.

use serde::{Deserialize, Serialize};

use crate::types::ReplyFormat;

/// `[policy]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyConfig {
    /// Who turns a prompt into a reply.
    pub kind: PolicyKind,
    /// Folder of the checkpoint, Hugging Face layout. Embedded policies only.
    pub checkpoint: String,
    /// How the model writes coordinates.
    pub reply_format: ReplyFormat,
    /// Words around instruction and screenshots.
    pub prompt: PromptStyle,
    /// Coordinates the model writes are multiples of this, pixels of the resized image.
    pub coordinate_snap: u32,
    /// Room of one session, tokens: prompts, screenshots and replies together.
    pub context_tokens: usize,
    /// `expert`, or a file of replies. Scripted policies only.
    pub script: String,
}

/// Who turns a prompt into a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PolicyKind {
    /// A Qwen2.5-VL on libtorch, in `arpo-engine`.
    Embedded,
    /// An expert that reads the desktop's state, or a file of replies.
    Scripted,
}

/// Words around instruction and screenshots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptStyle {
    /// One system sentence and `Task: …`, what the shipped agent was cloned with.
    Tiny,
    /// UI-TARS' own, with its list of actions.
    UiTars,
}

/// `[sampling]`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SamplingConfig {
    /// 0 is greedy.
    pub temperature: f64,
    /// Nucleus; 1 is off.
    pub top_p: f64,
    /// The most tokens of a reply, its end token included.
    pub max_reply_tokens: usize,
}
