//! The UI-TARS action grammar: a model's reply to actions, and actions to a reply.
//!
//! A reply is an optional thought, `Action:`, and one call a line, blank lines allowed:
//!
//! ```text
//! Thought: press subscript
//! Action: click(start_box='(156,40)')
//! ```
//!
//! Invariants: `parse_reply` never panics; it gives every action of a reply or an error with
//! the byte where the reply went wrong, never some of them; every action it gives does
//! something. Strings are un-escaped exactly once. After the parser nobody knows the model's
//! coordinates: points are screen pixels.
//!
//! Sources: UI-TARS@582f3a7 `codes/ui_tars/{prompt,action_parser}.py`, ARPO@7489ae3
//! `verl/trainer/gui_agent.py`. Deliberate differences from both are data, with their reasons:
//! `tests/it/fixtures/actions/`.

mod call;
mod error;
pub mod keys;
mod print;
mod reply;
mod space;
mod text;

pub use error::{ParseError, ParseErrorKind};
pub use print::print_reply;
pub use reply::{ParsedReply, parse_reply};
pub use space::Space;

#[cfg(test)]
mod tests;
