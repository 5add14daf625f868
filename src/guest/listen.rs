//! Where the server listens: a port of this machine, or a socket with sockets beside it that lead to
//! other ports.

use std::net::SocketAddr;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

use super::{Options, ServeError, routes};

/// An address to listen at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// A port.
    Tcp(SocketAddr),
    /// A Unix socket: `unix:PATH`.
    Unix(PathBuf),
}

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("unix:") {
            return Ok(Self::Unix(path.into()));
        }
        let address = text.replace("localhost:", "127.0.0.1:").parse();
        let address = address.map_err(|_| "neither HOST:PORT, with numbers, nor unix:PATH")?;
        Ok(Self::Tcp(address))
    }
}

impl std::fmt::Display for Listen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tcp(address) => write!(f, "{address}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// Serves a desktop until `stop` is there. `ready` is told where, once it listens.
pub async fn serve(
    options: Options,
    ready: impl FnOnce(&Listen),
    stop: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let listen = options.listen.clone();
    let relays = relay_paths(&options)?;
    let desktop = routes::desktop(&options);
    let router = routes::router(desktop.clone(), options.token);
    match &listen {
        Listen::Tcp(address) => {
            if options.token.is_none() && !address.ip().is_loopback() {
                let address = address.to_string();
                return Err(ServeError::NeedsToken { address });
            }
            let bound = TcpListener::bind(address).await;
            let listener = bound.map_err(bind_error(&listen))?;
            let address = listener.local_addr().map_err(bind_error(&listen))?;
            ready(&Listen::Tcp(address));
            tokio::select! {
                ended = axum::serve(listener, router) => ended.map_err(accept_error(&listen))?,
                () = stop => {}
            }
        }
        Listen::Unix(path) => {
            let socket = Socket::bind(path).await?;
            let mut joining = tokio::task::JoinSet::new();
            for (port, path) in relays {
                joining.spawn(relay(Socket::bind(&path).await?, port));
            }
            ready(&listen);
            tokio::select! {
                ended = axum::serve(socket.listener, router) => {
                    ended.map_err(accept_error(&listen))?;
                }
                () = stop => {}
            }
        }
    }
    routes::finish(&desktop).await;
    Ok(())
}

/// A port and the socket that leads to it.
fn relay_paths(options: &Options) -> Result<Vec<(u16, PathBuf)>, ServeError> {
    let ports = options.relays.iter().copied();
    match &options.listen {
        Listen::Unix(path) => {
            let beside = |port| path.with_file_name(format!("{port}.sock"));
            Ok(ports.map(|port| (port, beside(port))).collect())
        }
        Listen::Tcp(_) if options.relays.is_empty() => Ok(Vec::new()),
        Listen::Tcp(_) => Err(ServeError::RelayWithoutFolder),
    }
}

/// A listening socket, whose file goes with it.
struct Socket {
    listener: UnixListener,
    _file: SocketFile,
}

struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Socket {
    /// In the place of one that nobody listens at any more.
    async fn bind(path: &Path) -> Result<Self, ServeError> {
        let is_socket = |data: std::fs::Metadata| data.file_type().is_socket();
        let is_left = std::fs::symlink_metadata(path).is_ok_and(is_socket);
        if is_left && UnixStream::connect(path).await.is_err() {
            let _ = std::fs::remove_file(path);
        }
        let bound = UnixListener::bind(path);
        let listener = bound.map_err(bind_error(&Listen::Unix(path.to_owned())))?;
        Ok(Self {
            listener,
            _file: SocketFile(path.to_owned()),
        })
    }
}

/// Joins each connection to one to the port, for as long as both last.
async fn relay(socket: Socket, port: u16) {
    let mut joined = tokio::task::JoinSet::new();
    while let Ok((mut outer, _)) = socket.listener.accept().await {
        while joined.try_join_next().is_some() {}
        joined.spawn(async move {
            // Nobody listens: the client sees its connection end.
            if let Ok(mut inner) = TcpStream::connect(("127.0.0.1", port)).await {
                let _ = tokio::io::copy_bidirectional(&mut outer, &mut inner).await;
            }
        });
    }
}

fn bind_error(listen: &Listen) -> impl Fn(std::io::Error) -> ServeError + use<> {
    let address = listen.to_string();
    move |source| ServeError::Bind {
        address: address.clone(),
        source,
    }
}

fn accept_error(listen: &Listen) -> impl Fn(std::io::Error) -> ServeError + use<> {
    let address = listen.to_string();
    move |source| ServeError::Accept {
        address: address.clone(),
        source,
    }
}
