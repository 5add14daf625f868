//! The one connection to the X server: opened when it is first needed, kept, and opened anew where
//! the server was restarted.
//!
//! Invariants: never more than one connection; a question has an end even where the X server is
//! frozen: its connection is then cut, which wakes whoever waits for it.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::net::Shutdown;
use x11rb::connection::Connection;
use x11rb::errors::{ConnectError, ConnectionError, ReplyError, ReplyOrIdError};
use x11rb::protocol::xproto::{ConnectionExt, Window};
use x11rb::protocol::xtest::ConnectionExt as _;
use x11rb::reexports::x11rb_protocol::{parse_display, xauth};
use x11rb::rust_connection::{DefaultStream, RustConnection};

use super::picture::Capture;
use crate::screen::ScreenError;

/// For what takes the X server no time.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// Why the display did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub(super) enum DisplayError {
    /// There is no X server, or no longer.
    #[error("no X server at {display}: {reason}")]
    Lost { display: String, reason: String },
    /// It does not answer.
    #[error("the X server at {display} did not answer within {} s", .after.as_secs_f64())]
    Silent { display: String, after: Duration },
    /// It says no.
    #[error("the X server refused: {reason}")]
    Refused { reason: String },
    /// Its pixels are of a kind that nobody has any more.
    #[error("pixels of {bits} bits with red {red:#x}: start the X server with a depth of 24")]
    Pixels { bits: u8, red: u32 },
    /// No keyboard has this.
    #[error("no key is called {name:?}")]
    NoKey { name: String },
    /// The picture could not be written as PNG.
    #[error("cannot encode the picture")]
    Picture(#[source] ScreenError),
}

/// What the X server answered, or why it did not. The display's name is added where it is known.
pub(super) enum Broken {
    Connection(String),
    Other(DisplayError),
}

impl From<ConnectionError> for Broken {
    fn from(error: ConnectionError) -> Self {
        Self::Connection(error.to_string())
    }
}

impl From<std::io::Error> for Broken {
    fn from(error: std::io::Error) -> Self {
        Self::Connection(error.to_string())
    }
}

impl From<ReplyError> for Broken {
    fn from(error: ReplyError) -> Self {
        match error {
            ReplyError::ConnectionError(error) => error.into(),
            ReplyError::X11Error(error) => DisplayError::Refused {
                reason: format!("{:?} on {:?}", error.error_kind, error.request_name),
            }
            .into(),
        }
    }
}

impl From<ReplyOrIdError> for Broken {
    fn from(error: ReplyOrIdError) -> Self {
        match error {
            ReplyOrIdError::IdsExhausted => Self::Connection("it has no ids left".to_owned()),
            ReplyOrIdError::ConnectionError(error) => error.into(),
            ReplyOrIdError::X11Error(error) => ReplyError::X11Error(error).into(),
        }
    }
}

impl From<DisplayError> for Broken {
    fn from(error: DisplayError) -> Self {
        Self::Other(error)
    }
}

/// An open connection.
pub(super) struct Session {
    pub(super) x: RustConnection,
    pub(super) root: Window,
    pub(super) capture: Capture,
}

impl Session {
    /// Waits until the server has done all that was sent before.
    pub(super) fn sync(&self) -> Result<(), Broken> {
        self.x.get_input_focus()?.reply()?;
        Ok(())
    }

    /// Whether the server is still there. Forgets what it told unasked: every client hears of
    /// every change of the keyboard.
    fn is_alive(&self) -> bool {
        self.sync().is_ok() && {
            while let Ok(Some(_)) = self.x.poll_for_event() {}
            true
        }
    }
}

/// An X server, by name.
pub(super) struct Display {
    name: String,
    session: Mutex<Option<Arc<Session>>>,
    /// The connection's socket, from before the server has greeted.
    socket: Mutex<Option<OwnedFd>>,
    opened: AtomicU64,
}

impl Display {
    /// Does not connect yet.
    pub(super) fn new(name: String) -> Self {
        Self {
            name,
            session: Mutex::new(None),
            socket: Mutex::new(None),
            opened: AtomicU64::new(0),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// How many connections there were, one after another.
    pub(super) fn opened(&self) -> u64 {
        self.opened.load(Ordering::Relaxed)
    }

    /// Asks the server on a thread of its own, for at most `limit`.
    pub(super) async fn ask<T: Send + 'static>(
        self: &Arc<Self>,
        limit: Duration,
        question: impl FnOnce(&Session) -> Result<T, Broken> + Send + 'static,
    ) -> Result<T, DisplayError> {
        let end = Instant::now() + limit;
        let display = Arc::clone(self);
        let asking = tokio::task::spawn_blocking(move || {
            let session = display.session(end)?;
            let answer = question(&session);
            answer.map_err(|broken| display.explain(broken))
        });
        if let Ok(answer) = tokio::time::timeout_at(end.into(), asking).await {
            return answer.unwrap_or_else(|error| Err(self.lost(error.to_string())));
        }
        self.cut();
        Err(self.silent(limit))
    }

    /// The open connection, or a new one.
    fn session(&self, end: Instant) -> Result<Arc<Session>, DisplayError> {
        let mut session = lock(&self.session);
        // Whoever asked is gone; nobody would cut this one.
        if Instant::now() >= end {
            return Err(self.silent(PATIENCE));
        }
        if let Some(open) = session.as_ref()
            && open.is_alive()
        {
            return Ok(Arc::clone(open));
        }
        // Closed before the next is opened.
        *session = None;
        self.opened.fetch_add(1, Ordering::Relaxed);
        let opened = self.open().map_err(|broken| self.explain(broken))?;
        let opened = Arc::new(opened);
        *session = Some(Arc::clone(&opened));
        Ok(opened)
    }

    fn open(&self) -> Result<Session, Broken> {
        let connect_error = |error: ConnectError| Broken::Connection(error.to_string());
        let parsed = parse_display::parse_display(Some(&self.name));
        let parsed = parsed.map_err(|error| Broken::Connection(error.to_string()))?;
        let (mut stream, mut reason) = (None, "it has no address".to_owned());
        for address in parsed.connect_instruction() {
            match DefaultStream::connect(&address) {
                Ok(connected) => {
                    stream = Some(connected);
                    break;
                }
                Err(error) => reason = error.to_string(),
            }
        }
        let Some((stream, (family, address))) = stream else {
            return Err(Broken::Connection(reason));
        };
        *lock(&self.socket) = Some(rustix::io::dup(&stream).map_err(std::io::Error::from)?);
        let auth = xauth::get_auth(family, &address, parsed.display);
        let (name, data) = auth.ok().flatten().unwrap_or_default();
        let screen = usize::from(parsed.screen);
        let x = RustConnection::connect_to_stream_with_auth_info(stream, screen, name, data)
            .map_err(connect_error)?;
        let root = x.setup().roots[screen].root;
        let capture = Capture::new(&x, screen)?;
        // A program that grabs the server for itself must not shut out its user.
        x.xtest_grab_control(true)?;
        Ok(Session { x, root, capture })
    }

    /// Ends the connection under whoever waits for it.
    fn cut(&self) {
        if let Some(socket) = lock(&self.socket).take() {
            let _ = rustix::net::shutdown(&socket, Shutdown::Both);
        }
    }

    fn explain(&self, broken: Broken) -> DisplayError {
        match broken {
            Broken::Connection(reason) => self.lost(reason),
            Broken::Other(error) => error,
        }
    }

    fn lost(&self, reason: String) -> DisplayError {
        DisplayError::Lost {
            display: self.name.clone(),
            reason,
        }
    }

    fn silent(&self, after: Duration) -> DisplayError {
        DisplayError::Silent {
            display: self.name.clone(),
            after,
        }
    }
}

/// What a panic left is as good as before: each is replaced as a whole.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
