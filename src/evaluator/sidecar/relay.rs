//! A desktop's ports for one evaluation: a folder with a Unix socket for each, joined to the
//! desktop. The evaluation's watcher listens on the ports themselves, in the evaluation's network.

use std::fs;
use std::path::PathBuf;

use futures::future::select_all;
use futures::stream::{FuturesUnordered, StreamExt};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpStream, UnixListener, UnixStream};

use super::sandbox::relay_seen;
use super::{SidecarError, SidecarOptions};
use crate::env::guest::{Asked, GuestError};
use crate::env::{Connection, EnvError, RealDesktop};

/// OSWorld's server; Chrome's debugging; VLC's interface.
const PORTS: [u16; 3] = [SERVER_PORT, 9222, 8080];

const SERVER_PORT: u16 = 5000;

/// The sockets of one evaluation; removed with it.
pub(super) struct Relay {
    folder: PathBuf,
    seen_as: PathBuf,
    listeners: Vec<(u16, UnixListener)>,
}

impl Relay {
    pub(super) fn open(options: &SidecarOptions, id: u64) -> Result<Self, SidecarError> {
        let folder = options.folder.join("relay").join(id.to_string());
        let failed = |error: std::io::Error| {
            SidecarError::Unavailable(format!("no socket in {}: {error}", folder.display()))
        };
        fs::create_dir(&folder).map_err(failed)?;
        let mut relay = Self {
            folder: folder.clone(),
            seen_as: relay_seen(options, id),
            listeners: Vec::new(),
        };
        for port in PORTS {
            let listener = UnixListener::bind(folder.join(format!("{port}.sock")));
            relay.listeners.push((port, listener.map_err(failed)?));
        }
        Ok(relay)
    }

    /// The folder as the process sees it.
    pub(super) fn seen_as(&self) -> &PathBuf {
        &self.seen_as
    }

    /// Joins connections until it is dropped. `unreachable` tells why the desktop's server, if
    /// anything, could not be reached; that nothing listens on other ports is the desktop's state.
    pub(super) async fn serve(&self, desktop: RealDesktop<'_>, unreachable: &mut Option<EnvError>) {
        let mut joined = FuturesUnordered::new();
        loop {
            let accepted =
                select_all(self.listeners.iter().map(|(port, listener)| {
                    Box::pin(async move { (*port, listener.accept().await) })
                }));
            tokio::select! {
                ((port, accepted), _, _) = accepted => {
                    if let Ok((stream, _)) = accepted {
                        joined.push(join(desktop, port, stream));
                    }
                }
                Some(ended) = joined.next() => {
                    if let Err(error) = ended {
                        unreachable.get_or_insert(error);
                    }
                }
            }
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        // What is left goes with the sidecar's folder.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Joins a connection to a port of the desktop until either side closes it.
async fn join(desktop: RealDesktop<'_>, port: u16, mut stream: UnixStream) -> Result<(), EnvError> {
    let mut other = match connect(desktop, port).await {
        Ok(other) => other,
        Err(error) if port == SERVER_PORT => return Err(error),
        Err(_) => return Ok(()),
    };
    // Which side broke it off is seen by who asked.
    let _ = copy_bidirectional(&mut stream, &mut other).await;
    Ok(())
}

/// The guest's server is where its client finds it; other ports are the machine's.
async fn connect(desktop: RealDesktop<'_>, port: u16) -> Result<Box<dyn Connection>, EnvError> {
    if port != SERVER_PORT {
        return desktop.machine.connect(port).await;
    }
    let address = desktop.machine.guest().address();
    let opened: std::io::Result<Box<dyn Connection>> = match address.strip_prefix("unix:") {
        Some(path) => UnixStream::connect(path)
            .await
            .map(|stream| Box::new(stream) as _),
        None => TcpStream::connect(address)
            .await
            .map(|stream| Box::new(stream) as _),
    };
    opened.map_err(|error| EnvError::Guest {
        what: "reading the end state".to_owned(),
        source: Box::new(GuestError::Unreachable {
            asked: Asked {
                route: "/",
                detail: "OSWorld's own getter".to_owned(),
            },
            reason: error.to_string(),
        }),
    })
}
