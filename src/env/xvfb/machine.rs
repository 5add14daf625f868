//! One desktop of a run: the sandbox in use, and the next one.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures::future::join_all;

use super::Shared;
use crate::env::EnvError;
use crate::env::guest::Guest;
use crate::env::machine::{Connection, Machine, MachineState, Reporter, over};
use crate::env::sandbox::bubblewrap::command;
use crate::env::sandbox::{Ready, Sandbox, Slot, Socket, Spare, await_end, retired, slot_of};
use crate::types::MachinePhase;
use crate::types::osworld::PlaceholderValues;

/// Times a sandbox is started before its desktop is given up.
const TRIES: u32 = 3;

/// Between two looks at a server that is starting.
const POLL: Duration = Duration::from_millis(20);

/// Its X server and its window manager are there.
const READY: Ready<'static> = Ready {
    file: "wm",
    late: "its window manager did not come up in time: raise env.xvfb.start_deadline_s, or run \
           fewer desktops",
};

/// `Machine` of the provider `xvfb`.
#[derive(Debug)]
pub struct XvfbMachine {
    name: String,
    shared: Arc<Shared>,
    slot: Arc<Mutex<Slot>>,
    live: Option<Running>,
    /// The next one, started while nobody waits for it.
    spare: Spare<Running>,
    /// Asked before the first start, by mistake: answers that nobody is there.
    nobody: Guest,
    /// Why the last revert failed.
    broken: Option<String>,
    reporter: Reporter,
}

/// A sandbox whose server answers.
#[derive(Debug)]
struct Running {
    sandbox: Sandbox,
    guest: Guest,
    /// What the guest's address leads to.
    socket: Socket,
}

impl XvfbMachine {
    /// Takes a slot for the desktop; starts nothing.
    pub(super) fn new(
        shared: Arc<Shared>,
        desktop: u32,
        reporter: Reporter,
    ) -> Result<Self, EnvError> {
        let name = format!("xvfb desktop {desktop}");
        let failed = |reason: String| EnvError::Machine {
            machine: name.clone(),
            reason,
        };
        let slot = shared.state.take();
        let slot = slot.map_err(|error| {
            failed(format!(
                "cannot take a slot in {}: {error}",
                shared.state.root().display()
            ))
        })?;
        let nobody = Guest::new("unix:/nonexistent", shared.options.guest.clone());
        let nobody = nobody.map_err(|error| failed(error.to_string()))?;
        Ok(Self {
            name,
            shared,
            slot: Arc::new(Mutex::new(slot)),
            live: None,
            spare: Spare::none(),
            nobody,
            broken: None,
            reporter,
        })
    }

    /// The slot's number on this machine.
    pub fn slot(&self) -> u32 {
        slot_of(&self.slot).number()
    }

    /// The sandbox that waits, if it came up and still answers.
    async fn take_spare(&mut self, limit: Duration) -> Option<Running> {
        let running = self.spare.take(limit, &self.name).await?;
        match running.check().await {
            Ok(()) => Some(running),
            Err(reason) => {
                tracing::warn!(machine = self.name, reason, "the spare is not well");
                None
            }
        }
    }

    async fn start(&self) -> Result<Running, String> {
        let mut tries = 1;
        loop {
            match Running::start(&self.shared, &self.slot).await {
                Ok(running) => return Ok(running),
                Err(reason) if tries == TRIES => return Err(reason),
                Err(reason) => {
                    tracing::warn!(machine = self.name, reason, tries, "did not start");
                }
            }
            tries += 1;
        }
    }

    fn start_spare(&mut self) {
        if !self.shared.options.config.spare {
            return;
        }
        let (shared, slot) = (self.shared.clone(), self.slot.clone());
        let starting = async move { Running::start(&shared, &slot).await };
        self.spare.begin(starting);
    }

    fn running(&self, what: &'static str) -> Result<&Running, EnvError> {
        self.live.as_ref().ok_or(EnvError::Crashed { what })
    }

    fn failed(&self, reason: String) -> EnvError {
        EnvError::Machine {
            machine: self.name.clone(),
            reason,
        }
    }
}

impl Running {
    async fn start(shared: &Shared, slot: &Mutex<Slot>) -> Result<Self, String> {
        let plan = shared.plan().await?;
        let options = &shared.options;
        let deadline = deadline(&options.config);
        let uid = slot_of(slot).uid();
        let command = command(
            super::limits(&plan.config),
            uid,
            plan.arguments(),
            Vec::new(),
        );
        let command = command.map_err(|error| error.to_string())?;
        let sandbox = Sandbox::start(command, slot, READY, deadline).await?;
        let socket = sandbox.server_socket(None, deadline).await?;
        let guest = Guest::new(address(&socket), options.guest.clone());
        let guest = guest.map_err(|error| error.to_string())?;
        let running = Self {
            sandbox,
            guest,
            socket,
        };
        running.settle(deadline).await?;
        Ok(running)
    }

    /// Waits until every layer works.
    async fn settle(&self, deadline: Instant) -> Result<(), String> {
        loop {
            match self.check().await {
                Ok(()) => return Ok(()),
                Err(reason) if Instant::now() >= deadline => return Err(reason),
                Err(_) => tokio::time::sleep(POLL).await,
            }
        }
    }

    /// What does not work, if anything.
    async fn check(&self) -> Result<(), String> {
        if let Some(reason) = self.sandbox.ended() {
            return Err(reason.to_owned());
        }
        match self.guest.health().await.broken() {
            None => Ok(()),
            Some((layer, found)) => Err(format!(
                "{layer} does not work: {}; its server says: {}",
                found.error.as_deref().unwrap_or_default(),
                self.sandbox.log("server")
            )),
        }
    }
}

fn deadline(config: &crate::config::XvfbConfig) -> Instant {
    Instant::now() + Duration::from_secs_f64(config.start_deadline_s)
}

fn address(socket: &Socket) -> String {
    format!("unix:{}", socket.path())
}

#[async_trait]
impl Machine for XvfbMachine {
    fn name(&self) -> String {
        self.name.clone()
    }

    async fn revert(&mut self) -> Result<(), EnvError> {
        let config = &self.shared.options.config;
        let limit = Duration::from_secs_f64(config.start_deadline_s) * TRIES;
        let then = "given up, and the episode tried again";
        // One that was begun before may come to nothing before others are tried.
        let waits = if self.spare.is_starting() { 2 } else { 1 };
        self.reporter
            .status(MachinePhase::Starting, Some(limit * waits), then, "");
        let begun = self.reporter.begun();
        // The one before is of no use any more, whatever comes of its successor.
        let before = self.live.take();
        let ending = before.map(|running| tokio::spawn(running.sandbox.kill()));
        let next = match self.take_spare(limit).await {
            Some(running) => Ok(running),
            None => self.start().await,
        };
        retired(ending, &self.slot, &self.name).await;
        over(begun);
        match next {
            Ok(running) => {
                self.live = Some(running);
                self.broken = None;
                self.start_spare();
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
            Some(running) => MachineState::of_started(running.sandbox.ended()),
            None => MachineState::of_absent(self.broken.as_deref()),
        }
    }

    fn guest(&self) -> &Guest {
        self.live
            .as_ref()
            .map_or(&self.nobody, |running| &running.guest)
    }

    async fn restart_server(&mut self) -> Result<(), EnvError> {
        let shared = self.shared.clone();
        let options = &shared.options;
        let deadline = deadline(&options.config);
        let Some(running) = &mut self.live else {
            return Err(EnvError::Crashed {
                what: "a restart of its server",
            });
        };
        let restarted = async {
            let sandbox = &mut running.sandbox;
            let asked = sandbox.restart_server().await;
            asked.map_err(|error| format!("its session does not listen: {error}"))?;
            let socket = sandbox
                .server_socket(Some(&running.socket), deadline)
                .await?;
            let guest = Guest::new(address(&socket), options.guest.clone());
            running.guest = guest.map_err(|error| error.to_string())?;
            running.socket = socket;
            running.settle(deadline).await
        };
        let outcome = restarted.await;
        outcome.map_err(|reason| self.failed(reason))
    }

    async fn connect(&self, port: u16) -> Result<Box<dyn Connection>, EnvError> {
        let running = self.running("a connection")?;
        let connected = running.sandbox.connect(port).await;
        let stream = connected.map_err(|error| {
            self.failed(format!("port {port} inside cannot be reached: {error}"))
        })?;
        Ok(Box::new(stream))
    }

    fn placeholders(&self) -> PlaceholderValues {
        PlaceholderValues {
            // Nobody there may become anybody else: there is no `sudo` that it would open.
            client_password: "password".to_owned(),
            screen: self.shared.options.config.screen(),
        }
    }

    fn memory_bytes(&self) -> Option<u64> {
        self.live.as_ref()?.sandbox.memory_bytes()
    }

    fn cpu_time(&self) -> Option<Duration> {
        self.live.as_ref()?.sandbox.cpu_time()
    }

    /// Idle applications hardly take any time.
    async fn close(&mut self) -> Result<(), EnvError> {
        let (spare, live) = (&mut self.spare, self.live.take());
        let ending = async {
            let machines = [spare.end().await, live].into_iter().flatten();
            join_all(machines.map(|running| running.sandbox.kill())).await;
        };
        await_end(ending, &self.name).await;
        self.broken = None;
        self.reporter.status(MachinePhase::Off, None, "", "");
        Ok(())
    }
}
