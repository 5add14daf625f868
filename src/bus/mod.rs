//! How events get from the engine to whoever watches, and commands back.
//!
//! ```text
//! session, rollouts ──emit──► EventSink: writer thread ──► log ──► fold ──► broadcast
//!                                                                              │
//!            ┌────────────── in process ───────────┬───── socket server ───────┤
//!            ▼                                     ▼
//!        Source (snapshot + items)             Source in another process, over frames
//!
//! Source ──Command──► Controller ──CommandRequest──► session ──events──► as above
//! ```
//!
//! Invariants: what is shown is in the log already; the log never loses an event and a slow
//! viewer never slows it: it misses events, is told so, and gets a fresh snapshot. A command
//! changes nothing by itself; the events that answer it do. Of several consoles one writes.

mod client;
mod control;
mod error;
mod frame;
mod lease;
mod place;
mod player;
mod registry;
mod server;
mod sink;
mod source;

pub use client::{attach, attach_seated, probe};
pub use control::{CommandInbox, CommandRequest, CommandTicket, Controller, control};
pub use error::BusError;
pub use frame::{Hello, Role, Welcome};
pub use lease::{ANSWER as LEASE_ANSWER, LeaseRequest, LeaseState};
pub use place::{check_socket_dir, socket_dir, socket_path};
pub use player::{PlayRequest, Player, TimelineInfo};
pub use registry::{RunListing, RunStatus, clean_sockets, find_socket, list_runs};
pub use server::Server;
pub use sink::{EventSink, Resumed, Watch};
pub use source::{CommandSender, Pictures, Source, SourceItem};

#[cfg(test)]
mod tests;
