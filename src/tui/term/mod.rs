//! The terminal's side of the console: bytes out, bytes in, and what is known of the line between.
//!
//! ```text
//! reader thread   /dev/tty → splitter → replies │ keys, mouse, paste
//! console's loop  replies → link, probe; painter → bytes, when the link has room
//! writer thread   the only code that writes to the terminal while the console is up
//! ```

mod backend;
mod facts;
mod frame;
mod input;
mod link;
mod modes;
mod probe;
mod reply;
#[cfg(test)]
mod tests;
mod writer;

pub use backend::LeanBackend;
pub use facts::{Blocks, Form, Graphics, Images, LinkFigures, TerminalFacts};
pub use frame::Painter;
pub use link::{Link, Pace};
pub use probe::{Answers, Environment, PROBE, decide};
pub use reply::{Piece, Reply, Splitter};

pub(super) use frame::ASK;
pub(super) use input::{TerminalEvent, spawn_reader};
pub(super) use modes::{ASK_CELL, ENTER, MOUSE_OFF, MOUSE_ON, note_images, restore_bytes};
pub(super) use probe::depth_of_brand;
pub(super) use writer::{Writer, write_directly};
