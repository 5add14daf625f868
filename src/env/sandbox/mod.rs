//! What runs desktops on this machine have in common: slots that outlive no engine, a bubblewrap
//! sandbox that a program and all that it starts ends in, how we reach in, and the next one, which
//! starts while nobody waits for it.
//!
//! What a sandbox is made of, and what its programs are, is its provider's business.

pub mod bubblewrap;
mod memory;
pub mod needs;
mod processes;
mod slots;
mod spare;
mod spawner;

pub use bubblewrap::{Arguments, Limits};
pub use processes::{
    ENDING, Lifeline, Ready, Sandbox, Socket, await_end, launch, on_one_line, retired, slot_of,
};
pub use slots::{Slot, SlotFolder, State, first_uid};
pub use spare::Spare;
