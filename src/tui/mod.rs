//! The console: what an operator sees of a run and steers it with.
//!
//! `update` changes the `App`, `draw` only reads it; neither touches a terminal. `run` wires
//! both to one. It knows events and the source they come from, never desktops or policies.

pub mod app;
pub mod changes;
pub mod commands;
pub mod debug;
pub mod draw;
pub mod evals;
pub mod figures;
pub mod fleet;
pub mod focus;
pub mod help;
pub mod journal;
pub mod keymap;
pub mod keys;
pub mod keys_file;
pub mod launch;
pub mod layout;
pub mod lease;
pub mod logs;
pub mod machine_log;
pub mod machines;
pub mod outlet;
pub mod page;
pub mod picture;
pub mod profile;
pub mod prompt;
pub mod replay;
pub mod rollout;
pub mod term;
pub mod text;
pub mod text_out;
pub mod theme;
pub mod timeline;
pub mod tokens;
pub mod train;
pub mod update;
pub mod wording;
pub mod work;

mod console;
mod desk;
mod feed;
mod gate;
mod guard;
mod press;
mod run;
mod terminal;

pub use guard::stand_guard;
pub use keys_file::{KeysError, load_keymap};
pub use run::{Options, TuiError, run};
pub use term::Images;
pub use update::Exit;
