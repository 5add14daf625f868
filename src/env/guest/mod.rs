//! A client of OSWorld's guest server: what can be asked of a real desktop over HTTP.
//!
//! Invariants: no answer is read before its status and its kind are looked at; every question has
//! a deadline; what changes the desktop is sent once, whatever comes of it (a lost answer is
//! `GuestError::is_outcome_unknown`); text of a model or a task is never part of a program.
//!
//! `GuestDesktop` is a desktop of OSWorld's tasks over a machine with such a server: what their
//! steps do (`setup`), when a screen is looked at (`settle`). How a machine is started, reverted or
//! stopped is its provider's business.

pub mod address;
mod call;
pub mod cdp;
mod desktop;
mod error;
mod health;
mod input;
mod join;
mod python;
mod reply;
mod routes;
mod settle;
mod setup;
mod trend;
mod upkeep;

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

pub use desktop::{ChromePatience, DesktopOptions, GuestDesktop};
pub use error::{Asked, GuestError};
pub use health::{Health, Layer};
pub use reply::{Child, Command, Entry, Output, Patience, Verification};
pub use settle::Settle;
pub(crate) use settle::is_black;
pub use upkeep::Upkeep;

use crate::http;
use crate::types::ScreenSize;

/// How a guest is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestOptions {
    /// What its screen has to be.
    pub screen: ScreenSize,
    /// For a connection.
    pub connect_deadline: Duration,
    /// For an ordinary answer, all tries together; added to the server's own limit where it has
    /// one.
    pub deadline: Duration,
    /// For what takes long on a full desktop: accessibility, terminal, folders.
    pub slow_deadline: Duration,
    /// For a file.
    pub transfer_deadline: Duration,
    /// Tries of a question that changes nothing.
    pub tries: u32,
    /// Wait before the second; doubled before each further one.
    pub backoff: Duration,
    /// Bytes of an answer that is kept in memory.
    pub max_answer_bytes: u64,
    /// Bytes of a file or a recording.
    pub max_file_bytes: u64,
    /// Screenshots after which the server has to be started anew.
    pub max_screenshots: u32,
}

impl GuestOptions {
    /// For OSWorld's own server on a machine of its size.
    pub fn new(screen: ScreenSize) -> Self {
        Self {
            screen,
            connect_deadline: Duration::from_secs(5),
            deadline: Duration::from_secs(15),
            slow_deadline: Duration::from_secs(120),
            transfer_deadline: Duration::from_secs(600),
            // 0.5 + 1 + 2 + 4 s: longer than a restart of the server takes, which is 5 s.
            tries: 5,
            backoff: Duration::from_millis(500),
            max_answer_bytes: 256 << 20,
            max_file_bytes: 4 << 30,
            // It loses one of the display's 256 clients with each; other programs need some.
            max_screenshots: 200,
        }
    }
}

/// A desktop's server.
pub struct Guest {
    address: String,
    /// The socket, where the address is one.
    socket: Option<PathBuf>,
    client: reqwest::Client,
    /// What the client bears, for connections of other kinds.
    token: Option<String>,
    options: GuestOptions,
    /// Since the server's start.
    screenshots: AtomicU32,
    screenshot_turn: tokio::sync::Mutex<()>,
    /// Whose it is, since it was asked after its start.
    server: Mutex<Option<Server>>,
}

impl std::fmt::Debug for Guest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Not the token.
        f.debug_struct("Guest")
            .field("address", &self.address)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// Whose server it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Server {
    /// OSWorld's own.
    Original,
    /// `arpo guest`.
    Arpo,
}

impl Guest {
    /// The server at `HOST:PORT` or `unix:PATH`. Does not ask it anything yet.
    pub fn new(address: impl Into<String>, options: GuestOptions) -> Result<Self, GuestError> {
        Self::with_token(address, None, options)
    }

    /// As `new`, for a server that answers only who has its token.
    pub fn with_token(
        address: impl Into<String>,
        token: Option<&str>,
        options: GuestOptions,
    ) -> Result<Self, GuestError> {
        let address = address.into();
        let socket = address.strip_prefix("unix:").map(PathBuf::from);
        let client = http::direct_client(options.connect_deadline, socket.as_deref(), token);
        let client = client.map_err(|reason| GuestError::Client {
            address: address.clone(),
            reason,
        })?;
        Ok(Self {
            address,
            socket,
            client,
            token: token.map(str::to_owned),
            options,
            screenshots: AtomicU32::new(0),
            screenshot_turn: tokio::sync::Mutex::new(()),
            server: Mutex::new(None),
        })
    }

    /// Where it is, `HOST:PORT` or `unix:PATH`.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// How it is asked.
    pub fn options(&self) -> &GuestOptions {
        &self.options
    }

    /// Screenshots asked for since the server's start.
    pub fn screenshots(&self) -> u32 {
        self.screenshots.load(Ordering::Relaxed)
    }

    /// Whether the server has to be started anew before many more screenshots: the original never
    /// closes a display connection that each opens, and dies of it after about 250. To be done
    /// between two steps, followed by `restarted`. Ours never has to, once it is known for ours.
    pub fn needs_restart(&self) -> bool {
        self.loses_clients() && self.screenshots() >= self.options.max_screenshots
    }

    /// Whether the server loses one of its display's clients with each picture, and dies when there
    /// are none left: OSWorld's does, and so may one that was not asked yet.
    pub fn loses_clients(&self) -> bool {
        self.known_server() != Some(Server::Arpo)
    }

    /// Tells that the server was started anew, alone or with its machine.
    pub fn restarted(&self) {
        self.screenshots.store(0, Ordering::Relaxed);
        self.set_server(None);
    }

    /// Whose server it is, as far as that was asked.
    fn known_server(&self) -> Option<Server> {
        *self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_server(&self, server: Option<Server>) {
        *self.server.lock().unwrap_or_else(PoisonError::into_inner) = server;
    }

    fn count_screenshot(&self) {
        self.screenshots.fetch_add(1, Ordering::Relaxed);
    }
}
