//! A machine whose server is scripted, and files from the web that a test makes up.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use arpo::env::guest::{ChromePatience, DesktopOptions, Guest, GuestDesktop, GuestOptions, Settle};
use arpo::env::{Connection, EnvError, Machine};
use arpo::tasks::FileCache;
use arpo::types::osworld::PlaceholderValues;
use async_trait::async_trait;
use serde_json::json;
use std::time::Duration;

use super::{SCREEN, options};

/// How often a machine was brought back, and its server started anew.
#[derive(Default)]
pub struct Counts {
    pub reverts: AtomicU32,
    pub restarts: AtomicU32,
}

/// A machine at an address of this one.
pub struct Scripted {
    guest: Guest,
    /// Where whatever listens on any port of it does listen.
    ports: Option<String>,
    counts: Arc<Counts>,
}

impl Scripted {
    pub fn new(address: &str) -> Self {
        Self::with(address, options())
    }

    pub fn with(address: &str, options: GuestOptions) -> Self {
        Self {
            guest: Guest::new(address, options).unwrap(),
            ports: None,
            counts: Arc::default(),
        }
    }

    /// Its ports are all at this address.
    pub fn ports(mut self, address: &str) -> Self {
        self.ports = Some(address.to_owned());
        self
    }

    pub fn counts(&self) -> Arc<Counts> {
        Arc::clone(&self.counts)
    }

    pub fn desktop(self, files: FileCache) -> GuestDesktop {
        GuestDesktop::new(Box::new(self), files, quick())
    }
}

/// As short as can be.
pub fn quick() -> DesktopOptions {
    let patience = ChromePatience {
        tries: 3,
        between: Duration::from_millis(10),
        load: Duration::from_secs(20),
    };
    DesktopOptions {
        settle: Settle::Pause(Duration::ZERO),
        settle_reset: Settle::Pause(Duration::ZERO),
        open_within: Duration::from_secs(20),
        chrome: patience,
        show_every: Duration::from_secs(3600),
    }
}

#[async_trait]
impl Machine for Scripted {
    fn name(&self) -> String {
        "scripted 0".to_owned()
    }

    async fn revert(&mut self) -> Result<(), EnvError> {
        self.counts.reverts.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn guest(&self) -> &Guest {
        &self.guest
    }

    async fn restart_server(&mut self) -> Result<(), EnvError> {
        self.counts.restarts.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    async fn connect(&self, port: u16) -> Result<Box<dyn Connection>, EnvError> {
        let refused = |reason: String| EnvError::Machine {
            machine: self.name(),
            reason: format!("port {port}: {reason}"),
        };
        let address = self.ports.as_ref();
        let address = address.ok_or_else(|| refused("nobody listens".to_owned()))?;
        let connected = tokio::net::TcpStream::connect(address).await;
        let stream = connected.map_err(|error| refused(error.to_string()))?;
        Ok(Box::new(stream))
    }

    fn placeholders(&self) -> PlaceholderValues {
        PlaceholderValues {
            client_password: "pass word".to_owned(),
            screen: SCREEN,
        }
    }

    async fn close(&mut self) -> Result<(), EnvError> {
        Ok(())
    }
}

/// A cache with these contents, by address.
pub fn cache(root: &Path, files: &[(&str, &[u8])]) -> FileCache {
    let mut manifest = serde_json::Map::new();
    for (url, content) in files {
        let hash = blake3::hash(content).to_hex().to_string();
        let folder = root.join("blobs").join(&hash[..2]);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(&hash), content).unwrap();
        let record = json!({"blake3": hash, "bytes": content.len()});
        manifest.insert((*url).to_owned(), record);
    }
    let manifest = json!({"files": manifest}).to_string();
    std::fs::write(root.join("manifest.json"), manifest).unwrap();
    FileCache::open(root).unwrap()
}
