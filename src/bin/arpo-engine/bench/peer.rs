//! The other side of a comparison: a Python process that answers requests, one JSON line each.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context as _, bail};
use arpo::cli::ALLOCATOR_VARIABLE;
use serde::Deserialize;
use serde_json::Value;

/// The peers' process.
pub(super) struct Peer {
    child: Child,
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    /// Its PyTorch.
    pub(super) torch: String,
}

/// The first line it writes.
#[derive(Deserialize)]
struct Greeting {
    torch: String,
}

/// A folder for what the peer is to read; gone with its value.
pub(super) struct Scratch(PathBuf);

impl Scratch {
    pub(super) fn new() -> anyhow::Result<Self> {
        let path = std::env::temp_dir().join(format!("arpo-bench-{}", std::process::id()));
        std::fs::create_dir_all(&path)
            .with_context(|| format!("cannot create {}", path.display()))?;
        Ok(Self(path))
    }

    /// Where a file of this name goes.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A left-over scratch folder is no reason to withhold the figures.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Peer {
    /// Starts `code` on the checkpoint and its inputs with up to `threads` threads.
    pub(super) fn start(
        code: &str,
        checkpoint: &Path,
        inputs: &Path,
        threads: usize,
    ) -> anyhow::Result<Self> {
        let python = reference_python();
        if !python.exists() {
            bail!(
                "{} is missing, which the comparison needs: run `just setup-ref`",
                python.display()
            );
        }
        let threads = threads.to_string();
        let mut child = Command::new(&python)
            .args(["-c", code])
            .args([checkpoint, inputs])
            // No library it may load has more.
            .envs([("OMP_NUM_THREADS", &threads), ("MKL_NUM_THREADS", &threads)])
            // What `arpo` sets for the engine is not what others' programs run with.
            .env_remove(ALLOCATOR_VARIABLE)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}: run `just setup-ref`", python.display()))?;
        let requests = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().context("the peer has no output")?);
        let mut peer = Self {
            child,
            requests,
            answers,
            torch: String::new(),
        };
        let greeting: Greeting = peer.read()?;
        peer.torch = greeting.torch;
        Ok(peer)
    }

    /// A turn of the peer's.
    pub(super) fn ask<T: for<'de> Deserialize<'de>>(
        &mut self,
        request: &Value,
    ) -> anyhow::Result<T> {
        let requests = self.requests.as_mut().context("the peer has no input")?;
        writeln!(requests, "{request}").context("the peer has ended")?;
        self.read()
    }

    /// Its next line.
    fn read<T: for<'de> Deserialize<'de>>(&mut self) -> anyhow::Result<T> {
        let mut line = String::new();
        self.answers
            .read_line(&mut line)
            .context("the peer has ended")?;
        serde_json::from_str(&line)
            .context("the Python side failed, its error is above; `just setup-ref` repairs it")
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It ends with its input; waiting only keeps it from staying behind as a zombie.
        self.requests = None;
        let _ = self.child.wait();
    }
}

/// The reference Python: `ARPO_REF_PYTHON`, else what `just setup-ref` made.
fn reference_python() -> PathBuf {
    std::env::var_os("ARPO_REF_PYTHON").map_or_else(
        || arpo::config::assets::locate(".venv-ref/bin/python"),
        PathBuf::from,
    )
}
