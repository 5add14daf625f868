//! Embedded inference: continuous batching over sessions whose KV survives between steps.
//!
//! A session is a growing row of tokens and images; a step appends a prompt (prefill: its new
//! tokens only) and samples a reply (decode: one token a tick). Sessions are spread over lanes
//! by their episode's number; a lane is a thread with its own weights handles, KV memory and
//! batches. One tick runs one batch on every lane: newly waiting prompts with their images, or
//! else the next token of every running reply.
//!
//! Invariants:
//! - Batches depend on what was asked between ticks, not on wall time or arrival order; the
//!   same requests and lane count give the same bits.
//! - A token's KV comes from one version of the weights: publishing makes the sessions compute
//!   theirs again, except replies under way, which end with the weights they began with.

mod batch;
mod features;
mod kv;
mod lane;
mod pictures;
mod policy;
mod sampler;
mod session;
#[cfg(test)]
mod tests;
mod threads;

pub(crate) use lane::{Completion, Lane, LaneSpec};
pub use policy::{Embedded, EmbeddedSpec};
