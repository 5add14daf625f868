//! From task, screenshots and replies to token ids, with the checkpoint's own tokenizer and
//! chat template.
//!
//! Prompts are pieces: `first` opens a conversation, `next` is what stands between a reply
//! and the following one. A trajectory is first, reply, next, reply, next, …; sampled replies
//! stay the ids they were. Invariant: the pieces with the replies between them are the ids
//! that rendering and tokenizing the whole conversation gives.
//!
//! Source: transformers@5.24 `apply_chat_template`, `processing_qwen2_5_vl.py`.

mod builder;
mod error;
mod style;
mod template;
mod tokenizer;

pub use builder::{Content, Message, Piece, PromptBuilder, Role, TurnEnd};
pub use error::PromptError;
pub use tokenizer::SpecialIds;

#[cfg(test)]
mod tests;
