//! One desktop of a run: a container, made anew for each episode.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use scopeguard::{ScopeGuard, guard};
use tokio::net::TcpStream;
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::time::timeout;

use super::Shared;
use super::container;
use super::daemon::DaemonError;
use super::owner::{Engine, Owner, now};
use super::watch::Watch;
use crate::env::EnvError;
use crate::env::guest::Guest;
use crate::env::machine::{Connection, Machine, MachineState, Reporter, over};
use crate::env::readiness::{self, NotReady, Patience};
use crate::types::MachinePhase;
use crate::types::osworld::PlaceholderValues;

/// Times a container is started before its desktop is given up.
const TRIES: u32 = 2;

/// From a container that is to be made to one that runs.
const START_LIMIT: Duration = Duration::from_secs(180);

/// For its end.
const STOP_LIMIT: Duration = Duration::from_secs(90);

/// From a container that does not run any more to the reason.
const SEEN_ENDED: Duration = Duration::from_secs(10);

/// For a connection to a published port.
const CONNECT: Duration = Duration::from_secs(10);

/// Counts the machines of this process: two runs in it have a desktop 0 each.
static MACHINES: AtomicU64 = AtomicU64::new(0);

/// `Machine` of the provider `docker`.
#[derive(Debug)]
pub struct DockerMachine {
    name: String,
    shared: Arc<Shared>,
    owner: Owner,
    live: Option<Live>,
    /// Whether the daemon may have something of ours.
    may_exist: bool,
    /// Held while what a start that was given up has made is removed: what comes next bears the same
    /// name, and would go with it.
    leaving: Arc<Mutex<()>>,
    /// Asked before the first start, by mistake: answers that nobody is there.
    nobody: Guest,
    /// Why the last revert failed.
    broken: Option<String>,
    reporter: Reporter,
}

/// A container whose desktop answers.
#[derive(Debug)]
struct Live {
    id: String,
    guest: Guest,
    /// By the port within.
    ports: BTreeMap<u16, u16>,
    watch: Watch,
}

impl DockerMachine {
    /// The machine of a desktop; starts nothing.
    pub(super) fn new(
        shared: Arc<Shared>,
        desktop: u32,
        reporter: Reporter,
    ) -> Result<Self, EnvError> {
        let name = format!("docker desktop {desktop}");
        // A port that no server has.
        let nobody = Guest::new("127.0.0.1:1", shared.options.guest.clone());
        let nobody = nobody.map_err(|error| EnvError::Machine {
            machine: name.clone(),
            reason: error.to_string(),
        })?;
        let owner = Owner {
            engine: Engine::this_process(),
            run: shared.options.run.clone(),
            desktop,
            machine: MACHINES.fetch_add(1, Ordering::Relaxed),
            created: 0,
            lease: 0,
        };
        Ok(Self {
            name,
            shared,
            owner,
            live: None,
            may_exist: false,
            leaving: Arc::default(),
            nobody,
            broken: None,
            reporter,
        })
    }

    /// As `begin_anew`; what that has made is removed if nobody waits for it to the end.
    async fn begin(&mut self) -> Result<Live, String> {
        let leaving = self.leaving.clone();
        let made = (self.shared.clone(), self.owner.clone());
        let given_up = guard(made, |(shared, owner)| {
            // Where it is taken, what was there before is being removed, and nothing was made since.
            if let Ok(turn) = leaving.try_lock_owned() {
                remove_later(&shared, &owner, Some(turn));
            }
        });
        let begun = self.begin_anew().await;
        ScopeGuard::into_inner(given_up);
        begun
    }

    /// Ends what there is of it and begins anew, on a disk that nobody has written to.
    async fn begin_anew(&mut self) -> Result<Live, String> {
        self.end().await?;
        let mut number = 1;
        loop {
            let not_ready = match self.start(number).await {
                Ok(live) => return Ok(live),
                Err(not_ready) => not_ready,
            };
            // What it has written is gone with it, and said above.
            self.end().await?;
            if not_ready.is_lasting || number == TRIES {
                return Err(not_ready.reason);
            }
            let reason = not_ready.reason;
            tracing::warn!(machine = self.name, reason, number, "did not start");
            number += 1;
        }
    }

    async fn start(&mut self, number: u32) -> Result<Live, NotReady> {
        let then = match number {
            TRIES => "removed, and the episode tried again".to_owned(),
            _ => format!("removed, try {} of {TRIES}", number + 1),
        };
        let say = |detail: &str| {
            self.reporter
                .status(MachinePhase::Starting, Some(START_LIMIT), &then, detail);
        };
        say("container");
        self.may_exist = true;
        let (options, daemon) = (&self.shared.options, &self.shared.daemon);
        let config = &options.config;
        let lease = Duration::from_secs_f64(config.lease_h * 3600.0);
        let created = now();
        self.owner.created = created;
        self.owner.lease = created.saturating_add(lease.as_secs());
        let kvm = self.shared.uses_kvm.then_some(&options.host);
        let body = container::body(config, &self.shared.disk, kvm, &self.owner);
        let id = daemon.create(body).await.map_err(|error| refused(&error))?;
        say("created");
        daemon.start(&id).await.map_err(|error| refused(&error))?;
        let watch = Watch::start(daemon, &id, &self.reporter, lease);
        say("running");
        let ports = match daemon.inspect(&id).await {
            Ok(found) if container::is_running(&found) => container::published(&found),
            // It publishes nothing any more.
            Ok(_) => Err(ended_at_once(&watch, "it does not run".to_owned()).await),
            Err(error) => Err(ended_at_once(&watch, error.to_string()).await),
        };
        let ports = ports.map_err(passing)?;
        let address = format!("127.0.0.1:{}", ports[&5000]);
        let guest = Guest::new(address, options.guest.clone());
        let guest = guest.map_err(|error| passing(error.to_string()))?;
        let patience = Patience {
            limit: Duration::from_secs_f64(config.boot_deadline_s),
            poll: options.poll,
            probes: config.execute_probes,
            then: &then,
            screen_keys: "env.docker.screen_width and env.docker.screen_height",
        };
        let ready = readiness::wait(&guest, &self.reporter, patience);
        let outcome = tokio::select! {
            outcome = ready => outcome,
            reason = watch.until_ended() => Err(passing(reason)),
        };
        if let Err(mut not_ready) = outcome {
            let tail = watch.tail();
            if watch.ended().is_none() && !tail.is_empty() {
                not_ready.reason = format!("{}; its log ends: {tail}", not_ready.reason);
            }
            return Err(not_ready);
        }
        watch.is_up();
        Ok(Live {
            id,
            guest,
            ports,
            watch,
        })
    }

    /// Removes whatever the daemon has of this machine, also what an answer that was lost has made.
    async fn end(&mut self) -> Result<(), String> {
        self.live = None;
        if !self.may_exist {
            return Ok(());
        }
        let then = "asked again with the next episode";
        self.reporter
            .status(MachinePhase::Stopping, Some(STOP_LIMIT), then, "");
        let _turn = self.leaving.lock().await;
        self.shared.remove(&self.owner).await?;
        self.may_exist = false;
        Ok(())
    }

    fn live(&self, what: &'static str) -> Result<&Live, EnvError> {
        self.live.as_ref().ok_or(EnvError::Crashed { what })
    }

    fn failed(&self, reason: String) -> EnvError {
        EnvError::Machine {
            machine: self.name.clone(),
            reason,
        }
    }
}

/// Removes what there is of a machine, where anybody is left to do so; else the next engine sweeps
/// it. Lets the turn go when that is done. Tells nothing: by then the machine may be at something
/// else.
fn remove_later(shared: &Arc<Shared>, owner: &Owner, turn: Option<OwnedMutexGuard<()>>) {
    let Ok(runtime) = tokio::runtime::Handle::try_current() else {
        return;
    };
    let (shared, owner) = (shared.clone(), owner.clone());
    runtime.spawn(async move {
        if let Err(reason) = shared.remove(&owner).await {
            tracing::warn!(reason, "a container that was given up is still there");
        }
        drop(turn);
    });
}

/// The daemon's refusal to start something. An image or a disk that is not there stays away.
fn refused(error: &DaemonError) -> NotReady {
    NotReady {
        is_lasting: matches!(
            error,
            DaemonError::Refused {
                status: 400 | 404,
                ..
            }
        ),
        reason: error.to_string(),
    }
}

/// Why a container has ended, where that is seen soon.
async fn ended_at_once(watch: &Watch, otherwise: String) -> String {
    let seen = timeout(SEEN_ENDED, watch.until_ended()).await;
    seen.unwrap_or(otherwise)
}

fn passing(reason: String) -> NotReady {
    NotReady {
        reason,
        is_lasting: false,
    }
}

#[async_trait]
impl Machine for DockerMachine {
    fn name(&self) -> String {
        self.name.clone()
    }

    async fn revert(&mut self) -> Result<(), EnvError> {
        let begun = self.reporter.begun();
        let outcome = self.begin().await;
        over(begun);
        match outcome {
            Ok(live) => {
                self.live = Some(live);
                self.broken = None;
                self.reporter.status(MachinePhase::Ready, None, "", "");
                Ok(())
            }
            Err(reason) => {
                self.broken = Some(reason.clone());
                self.reporter.status(MachinePhase::Off, None, "", &reason);
                Err(self.failed(reason))
            }
        }
    }

    fn state(&self) -> MachineState {
        match &self.live {
            Some(live) => MachineState::of_started(live.watch.ended().as_deref()),
            None => MachineState::of_absent(self.broken.as_deref()),
        }
    }

    fn guest(&self) -> &Guest {
        self.live.as_ref().map_or(&self.nobody, |live| &live.guest)
    }

    /// OSWorld's server is a unit of systemd, which ends with it every application that a task has
    /// opened: an episode cannot go on after that. The next begins with a new server anyway.
    async fn restart_server(&mut self) -> Result<(), EnvError> {
        Err(self.failed(
            "its server has given as many pictures as it can, and cannot be started anew without \
             ending what it has opened: lower rollout.max_steps, or look less often"
                .to_owned(),
        ))
    }

    async fn connect(&self, port: u16) -> Result<Box<dyn Connection>, EnvError> {
        let live = self.live("a connection")?;
        let unreachable =
            |reason: String| self.failed(format!("port {port} inside cannot be reached: {reason}"));
        let Some(outer) = live.ports.get(&port) else {
            let ports = container::PORTS.map(|port| port.to_string());
            let ports = ports.join(", ");
            return Err(unreachable(format!("the image passes on {ports} alone")));
        };
        let connecting = TcpStream::connect(("127.0.0.1", *outer));
        match timeout(CONNECT, connecting).await {
            Ok(Ok(stream)) => Ok(Box::new(stream)),
            Ok(Err(error)) => Err(unreachable(error.to_string())),
            Err(_) => Err(unreachable(format!("no answer in {} s", CONNECT.as_secs()))),
        }
    }

    fn placeholders(&self) -> PlaceholderValues {
        let config = &self.shared.options.config;
        PlaceholderValues {
            client_password: config.password.clone(),
            screen: config.screen(),
        }
    }

    fn memory_bytes(&self) -> Option<u64> {
        self.live.as_ref()?.watch.memory_bytes()
    }

    async fn suspend(&mut self) -> Result<(), EnvError> {
        let Some(live) = &self.live else {
            return Ok(());
        };
        let paused = self.shared.daemon.pause(&live.id).await;
        paused.map_err(|error| self.failed(error.to_string()))?;
        self.reporter.status(MachinePhase::Frozen, None, "", "");
        Ok(())
    }

    async fn wake(&mut self) -> Result<(), EnvError> {
        let Some(live) = &self.live else {
            return Ok(());
        };
        let woken = self.shared.daemon.unpause(&live.id).await;
        woken.map_err(|error| self.failed(error.to_string()))?;
        self.reporter.status(MachinePhase::Ready, None, "", "");
        Ok(())
    }

    async fn close(&mut self) -> Result<(), EnvError> {
        let ended = self.end().await;
        self.broken = None;
        let detail = ended.as_ref().err().cloned().unwrap_or_default();
        self.reporter.status(MachinePhase::Off, None, "", &detail);
        ended.map_err(|reason| self.failed(reason))
    }
}

impl Drop for DockerMachine {
    /// Best effort: what is left, the next engine sweeps.
    fn drop(&mut self) {
        if self.may_exist {
            remove_later(&self.shared, &self.owner, None);
        }
    }
}
