//! Provider `attached`: virtual machines that already run OSWorld's server, or `arpo guest`.
//!
//! Nothing is started or stopped here. What brings a machine to its clean state is a program of the
//! operator's; without one, episodes see what earlier ones left, which a profile has to say in so
//! many words. A machine is used by one engine of this user on this host at a time.

mod hosts;
mod machine;
mod program;

use std::collections::HashMap;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};

pub use machine::AttachedMachine;

use super::guest::{Guest, GuestOptions};
use super::machine::{Machine, Provider, Reporter};
use super::{EnvError, apart};
use crate::config::AttachedConfig;
use hosts::{Host, Spec};

/// Bytes of a list of hosts, and of a token.
const MAX_FILE: u64 = 1 << 20;
const MAX_TOKEN: usize = 4096;

/// What the machines of a run are found by.
#[derive(Clone, Debug)]
pub struct AttachedOptions {
    /// The profile's.
    pub config: AttachedConfig,
    /// Desktops that the run will have.
    pub desktops: usize,
    /// How the servers are asked.
    pub guest: GuestOptions,
    /// Between two looks at a machine that is waited for.
    pub poll: Duration,
    /// Folder of this user alone that says which machines are in use; made if need be.
    pub leases: PathBuf,
}

impl AttachedOptions {
    /// For a profile's desktops.
    pub fn new(config: &AttachedConfig, desktops: usize, leases: PathBuf) -> Self {
        Self {
            desktops,
            guest: GuestOptions::new(config.screen()),
            poll: Duration::from_secs(1),
            leases,
            config: config.clone(),
        }
    }
}

/// Who hands out machines that run.
#[derive(Clone, Debug)]
pub struct Attached {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    options: AttachedOptions,
    hosts: Vec<Host>,
    token: Option<String>,
    /// Of the state that episodes share.
    was_warned: AtomicBool,
    /// Held for as long as machines may be used.
    _leases: Vec<File>,
}

impl Attached {
    /// Finds the machines, which may run the profile's program, and takes those that the desktops
    /// will have. Asks none of them anything.
    pub fn new(options: AttachedOptions) -> Result<Self, EnvError> {
        Self::find(options).map_err(|reason| EnvError::Machine {
            machine: "attached".to_owned(),
            reason,
        })
    }

    fn find(options: AttachedOptions) -> Result<Self, String> {
        let token = read_token(&options.config.token_file)?;
        let mut hosts = apart::answer(find_hosts(&options.config))?;
        let (there, wanted) = (hosts.len(), options.desktops);
        if there < wanted {
            return Err(format!(
                "env.desktops asks for {wanted} machines, and there are {there}: name more by \
                 {}, or set env.desktops to {there}",
                source(&options.config)
            ));
        }
        hosts.truncate(wanted);
        let leases = hosts.iter().map(|host| lease(&options.leases, host));
        let leases = leases.collect::<Result<_, _>>()?;
        let shared = Shared {
            options,
            hosts,
            token,
            was_warned: AtomicBool::new(false),
            _leases: leases,
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }
}

impl Provider for Attached {
    fn machine(&self, desktop: u32, reporter: Reporter) -> Result<Box<dyn Machine>, EnvError> {
        let hosts = &self.shared.hosts;
        let host = hosts.get(desktop as usize);
        let host = host.ok_or_else(|| EnvError::Machine {
            machine: format!("attached desktop {desktop}"),
            reason: format!(
                "this run has {} machines: set env.desktops higher and start it anew",
                hosts.len()
            ),
        })?;
        let machine = AttachedMachine::new(self.shared.clone(), host.clone(), desktop, reporter)?;
        Ok(Box::new(machine))
    }

    /// Those that it has taken: others may be another run's by now.
    fn most(&self) -> Option<u32> {
        u32::try_from(self.shared.hosts.len()).ok()
    }
}

/// The key that says where machines are.
fn source(config: &AttachedConfig) -> &'static str {
    match (config.file.is_empty(), config.command.is_empty()) {
        (false, _) => "env.attached.file",
        (_, false) => "env.attached.command",
        _ => "env.attached.hosts",
    }
}

/// The profile's machines, in their order, each once and none that anybody reaches.
async fn find_hosts(config: &AttachedConfig) -> Result<Vec<Host>, String> {
    let key = source(config);
    let written = if !config.file.is_empty() {
        let text = read_file(Path::new(&config.file));
        hosts::lines(&text.map_err(|error| format!("{key}: {}: {error}", config.file))?)
    } else if !config.command.is_empty() {
        let limit = Duration::from_secs_f64(config.command_deadline_s);
        let printed = program::run(&config.command, limit).await;
        let printed = printed.map_err(|reason| format!("{key}: {reason}"))?;
        hosts::lines(&String::from_utf8_lossy(&printed))
    } else {
        config.hosts.clone()
    };
    let mut found: Vec<Host> = Vec::new();
    let mut by_server = HashMap::new();
    for written in written {
        let spec = Spec::read(&written).map_err(|reason| format!("{key}: {reason}"))?;
        let host = spec
            .find()
            .await
            .map_err(|reason| format!("{key}: {reason}"))?;
        if host.is_public() && !config.allow_public {
            return Err(format!(
                "{key}: {written} is {}, which anybody may reach, and its ports let anybody in: go \
                 through ssh -L or a private network, or set env.attached.allow_public = true",
                host.ip()
            ));
        }
        if let Some(other) = by_server.insert(host.server(), written.clone()) {
            return Err(format!(
                "{key}: {other} and {written} are the same machine ({}): each desktop needs one \
                 of its own",
                host.server()
            ));
        }
        found.push(host);
    }
    Ok(found)
}

fn read_file(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(MAX_FILE).read_to_string(&mut text)?;
    Ok(text)
}

fn read_token(path: &str) -> Result<Option<String>, String> {
    if path.is_empty() {
        return Ok(None);
    }
    let wrong = |what: String| format!("env.attached.token_file: {path}: {what}");
    let text = read_file(Path::new(path)).map_err(|error| wrong(error.to_string()))?;
    let token = text.trim();
    if token.is_empty() || token.len() > MAX_TOKEN || token.contains(char::is_whitespace) {
        return Err(wrong("holds no token, which is one word".to_owned()));
    }
    Ok(Some(token.to_owned()))
}

/// Takes a machine for this engine. The kernel drops a dead one's lock.
fn lease(folder: &Path, host: &Host) -> Result<File, String> {
    let wrong = |what: String| format!("{}: {what}", folder.display());
    make_folder(folder).map_err(|error| wrong(error.to_string()))?;
    let name = host.server().to_string().replace(['[', ']', ':'], "_");
    let path = folder.join(name);
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false);
    let lock = options
        .open(&path)
        .map_err(|error| wrong(error.to_string()))?;
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(lock),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(format!(
            "{} is in use by another run of this user: end that, or name other machines",
            host.written
        )),
        Err(error) => Err(wrong(error.to_string())),
    }
}

fn make_folder(folder: &Path) -> io::Result<()> {
    let parent = folder.parent().unwrap_or(Path::new("/"));
    for folder in [parent, folder] {
        match DirBuilder::new().mode(0o711).create(folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
    }
    let is_ours = {
        use std::os::unix::fs::MetadataExt;
        let metadata = fs::symlink_metadata(folder)?;
        let uid = rustix::process::geteuid().as_raw();
        metadata.is_dir() && metadata.uid() == uid && metadata.mode() & 0o022 == 0
    };
    if is_ours {
        return Ok(());
    }
    Err(io::Error::other(
        "is no folder of this user alone: remove it, or set ARPO_RUNTIME_DIR to a folder of your own",
    ))
}

/// One machine, for `arpo doctor`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// As it is written.
    pub host: String,
    /// The lowest layer that does not work, and why; none where all do.
    pub broken: Option<String>,
}

/// Finds the machines and asks each how it is; takes none.
pub fn examine(options: &AttachedOptions) -> Result<Vec<Answer>, String> {
    let token = read_token(&options.config.token_file)?;
    apart::answer(async {
        let hosts = find_hosts(&options.config).await?;
        let asked = hosts.into_iter().take(options.desktops).map(|host| {
            let token = token.clone();
            async move { ask(&host, token.as_deref(), &options.guest).await }
        });
        Ok(futures::future::join_all(asked).await)
    })
}

async fn ask(host: &Host, token: Option<&str>, options: &GuestOptions) -> Answer {
    let address = host.server().to_string();
    let broken = match Guest::with_token(address, token, options.clone()) {
        Ok(guest) => guest.health().await.broken().map(|(layer, found)| {
            let error = found.error.as_deref().unwrap_or_default();
            format!("{layer}: {error}")
        }),
        Err(error) => Some(error.to_string()),
    };
    Answer {
        host: host.written.clone(),
        broken,
    }
}
