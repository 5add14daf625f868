//! `arpo guest`: a desktop's server. It speaks the protocol of OSWorld's guest server, so that
//! OSWorld's own controllers drive it as well as `env::guest` does, and has routes of its own under
//! `/arpo` for what that protocol does badly.
//!
//! Invariants: one connection to the display at a time, whatever is asked; every wait has an end; a
//! program that outlives its limit is killed with all that it started and did not take out of its
//! process group; only who has the token is answered where others could reach it.
//!
//! Runs on the desktop's own machine, inside its sandbox, and keeps nothing between requests but a
//! recording. Nothing here knows tasks, episodes or profiles.
//!
//! Source: OSWorld `desktop_env/server/main.py` (2026-04) for names, payloads and answers. Departs:
//! where the original answers with a page of HTML, loses display connections or runs into undefined
//! names, this one answers as its clients expect.

mod accessibility;
mod act;
mod answer;
mod display;
mod exec;
mod execution;
mod files;
mod input;
mod joined;
mod keyboard;
mod listen;
mod picture;
mod pyautogui;
mod recording;
mod routes;
mod windows;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

pub use listen::{Listen, serve};

/// The environment variable that a token may be in.
pub const TOKEN_VARIABLE: &str = "ARPO_GUEST_TOKEN";

/// What a server is started with.
#[derive(Clone, Debug)]
pub struct Options {
    /// The X display, such as `:0`.
    pub display: String,
    /// Where it listens.
    pub listen: Listen,
    /// What a request has to bear; anybody is answered without one.
    pub token: Option<Token>,
    /// Ports of this machine that are reached through sockets beside the server's own.
    pub relays: Vec<u16>,
}

/// What a request has to bear. Kept as its hash: comparing hashes takes the same time whatever they
/// are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Token(blake3::Hash);

impl Token {
    /// The token as the operator wrote it.
    pub fn new(text: &str) -> Self {
        Self(blake3::hash(text.as_bytes()))
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(..)")
    }
}

/// Why a server does not come up.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Others could reach it.
    #[error(
        "{address} can be reached from other machines: set a token (--token or ARPO_GUEST_TOKEN), \
         or listen on 127.0.0.1 or unix:PATH"
    )]
    NeedsToken {
        /// Where it was to listen.
        address: String,
    },
    /// A relay has no folder to be in.
    #[error("--relay needs --listen unix:PATH: its socket lies beside the server's")]
    RelayWithoutFolder,
    /// The address is taken, or not ours.
    #[error("cannot listen on {address}")]
    Bind {
        /// Where.
        address: String,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// It stopped listening.
    #[error("cannot accept connections on {address}")]
    Accept {
        /// Where.
        address: String,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
}

/// What all routes share.
struct Desktop {
    display: Arc<display::Display>,
    /// Whose turn it is to move the pointer and press keys.
    input: Arc<tokio::sync::Mutex<()>>,
    recording: tokio::sync::Mutex<Option<recording::Recording>>,
    started: Instant,
    counts: Counts,
}

/// What was done since the server's start.
#[derive(Debug, Default)]
struct Counts {
    requests: AtomicU64,
    screenshots: AtomicU64,
    actions: AtomicU64,
    commands: AtomicU64,
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
