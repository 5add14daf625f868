//! The console: what an operator sees of a run and steers it with.
//!
//! `update` changes the `App`, `draw` only reads it; neither touches a terminal. `run` wires
//! both to one. It knows events and the source they come from, never desktops or policies.

pub mod app;
pub mod commands;
pub mod debug;
pub mod draw;
pub mod figures;
pub mod fleet;
pub mod journal;
pub mod keys;
pub mod layout;
pub mod logs;
pub mod picture;
pub mod prompt;
pub mod text;
pub mod theme;
pub mod train;
pub mod update;
pub mod wording;

mod feed;
mod run;
mod terminal;

pub use run::{Options, TuiError, run};
pub use update::Exit;
