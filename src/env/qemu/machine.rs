//! One desktop of a run: the machine in use, and the next one.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tokio::task::JoinHandle;

use super::Shared;
use super::running::Running;
use crate::env::EnvError;
use crate::env::guest::Guest;
use crate::env::machine::{Connection, Machine, MachineNews, MachineState, Reporter};
use crate::env::sandbox::{Slot, retired, slot_of};
use crate::types::osworld::PlaceholderValues;
use crate::types::{MachineHealth, MachinePhase, Screenshot};

/// Times a machine is restored before its desktop is given up.
const TRIES: u32 = 2;

/// `Machine` of the provider `qemu`.
#[derive(Debug)]
pub struct QemuMachine {
    name: String,
    shared: Arc<Shared>,
    slot: Arc<Mutex<Slot>>,
    live: Option<Running>,
    /// The next one, restored while nobody waits for it.
    spare: Option<JoinHandle<Result<Running, String>>>,
    /// Asked before the first start, by mistake: answers that nobody is there.
    nobody: Guest,
    /// Why the last revert failed.
    broken: Option<String>,
    reporter: Reporter,
    reverts: u64,
}

impl QemuMachine {
    /// Takes a slot for the desktop; starts nothing.
    pub(super) fn new(
        shared: Arc<Shared>,
        desktop: u32,
        reporter: Reporter,
    ) -> Result<Self, EnvError> {
        let name = format!("qemu desktop {desktop}");
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
            spare: None,
            nobody,
            broken: None,
            reporter,
            reverts: 0,
        })
    }

    /// The slot's number on this machine.
    pub fn slot(&self) -> u32 {
        slot_of(&self.slot).number()
    }

    /// The machine that waits, if it came up and still answers.
    async fn take_spare(&mut self) -> Option<Running> {
        let spare = self.spare.take()?;
        if !spare.is_finished() {
            let limit = Duration::from_secs_f64(self.shared.options.config.restore_deadline_s);
            let then = "killed, and another restored";
            let detail = "the one that was begun before";
            self.reporter
                .status(MachinePhase::Restoring, Some(limit), then, detail);
        }
        let running = match spare.await {
            Ok(Ok(running)) => running,
            Ok(Err(reason)) => {
                tracing::warn!(machine = self.name, reason, "the spare did not come up");
                return None;
            }
            Err(error) => {
                tracing::warn!(machine = self.name, %error, "the spare was not started");
                return None;
            }
        };
        let limit = Duration::from_secs_f64(self.shared.options.config.restore_deadline_s);
        let then = "killed, and another restored";
        self.reporter
            .status(MachinePhase::Checking, Some(limit), then, "");
        let woken = async {
            running.vm.go_on().await?;
            running.vm.wake_guest().await?;
            running.settle(Instant::now() + limit).await.map(drop)
        };
        match woken.await {
            Ok(()) => Some(running),
            Err(reason) => {
                tracing::warn!(machine = self.name, reason, "the spare is not well");
                running.vm.kill().await;
                None
            }
        }
    }

    /// Waits for what all are restored from.
    async fn prepare(&self) -> Result<(), String> {
        if self.shared.snapshot.get().is_none() {
            // One of the desktops makes it and tells more; it has deadlines of its own.
            let detail = "the snapshot that all are restored from";
            self.reporter
                .status(MachinePhase::Preparing, None, "", detail);
        }
        // Outside of the turn of starts, which it would hold for minutes.
        self.shared.snapshot(&self.reporter).await.map(drop)
    }

    async fn start(&self) -> Result<Running, String> {
        let mut tries = 1;
        loop {
            match restore(&self.shared, &self.slot, &self.reporter).await {
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
        let starting = async move {
            // Those that are waited for have the rest of the processors.
            let turn = shared.spares.acquire().await;
            let _turn = turn.map_err(|error| error.to_string())?;
            let running = restore(&shared, &slot, &Reporter::silent()).await?;
            // Nobody looks at it yet: it takes no time of this machine's.
            running.vm.stop().await?;
            Ok(running)
        };
        self.spare = Some(tokio::spawn(starting));
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

    /// Tells of a machine that has just come up.
    fn tell_ready(&self, running: &Running, took: Duration) {
        self.reporter.status(MachinePhase::Ready, None, "", "");
        let processor = self
            .shared
            .basis
            .get()
            .map(|basis| basis.hardware.processor);
        self.reporter.tell(MachineNews::Health(MachineHealth {
            layers: running.layers.clone(),
            kind: processor.map_or_else(String::new, |processor| processor.name().to_owned()),
            memory_mb: running.vm.memory_bytes().map(|bytes| bytes >> 20),
            revert_ms: Some(took.as_millis() as u64),
            reverts: self.reverts,
            ..MachineHealth::default()
        }));
    }
}

async fn restore(shared: &Shared, slot: &Mutex<Slot>, voice: &Reporter) -> Result<Running, String> {
    let (basis, snapshot) = shared.snapshot(voice).await?;
    Running::restore(basis, snapshot, &shared.options, slot, voice).await
}

#[async_trait]
impl Machine for QemuMachine {
    fn name(&self) -> String {
        self.name.clone()
    }

    async fn revert(&mut self) -> Result<(), EnvError> {
        let mut begun = Instant::now();
        // The one before is of no use any more, whatever comes of its successor.
        let before = self.live.take();
        let ending = before.map(|running| {
            let limit = Some(Duration::from_secs(2));
            self.reporter
                .status(MachinePhase::Stopping, limit, "left to the kernel", "");
            tokio::spawn(running.vm.kill())
        });
        let next = match self.take_spare().await {
            Some(running) => Ok(running),
            None => match self.prepare().await {
                Ok(()) => {
                    begun = Instant::now();
                    self.start().await
                }
                Err(reason) => Err(reason),
            },
        };
        retired(ending, &self.slot, &self.name).await;
        match next {
            Ok(running) => {
                self.reverts += 1;
                running.vm.announce(&self.reporter);
                self.tell_ready(&running, begun.elapsed());
                self.live = Some(running);
                self.broken = None;
                self.start_spare();
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
            Some(running) => MachineState::of_started(running.vm.ended()),
            None => MachineState::of_absent(self.broken.as_deref()),
        }
    }

    fn guest(&self) -> &Guest {
        self.live
            .as_ref()
            .map_or(&self.nobody, |running| &running.guest)
    }

    async fn restart_server(&mut self) -> Result<(), EnvError> {
        let running = self.running("a restart of its server")?;
        let limit = Duration::from_secs_f64(self.shared.options.config.restore_deadline_s);
        let restarted = running.restart_server(Instant::now() + limit).await;
        restarted.map_err(|reason| self.failed(reason))
    }

    async fn connect(&self, port: u16) -> Result<Box<dyn Connection>, EnvError> {
        let running = self.running("a connection")?;
        let connected = running.guest.connect_to(port).await;
        connected
            .map_err(|error| self.failed(format!("port {port} inside cannot be reached: {error}")))
    }

    fn placeholders(&self) -> PlaceholderValues {
        PlaceholderValues {
            client_password: "password".to_owned(),
            screen: self.shared.options.config.screen(),
        }
    }

    async fn picture(&self) -> Option<Screenshot> {
        let picture = self.live.as_ref()?.vm.picture().await;
        let told = |reason: &String| tracing::warn!(machine = self.name, reason, "no picture");
        picture.inspect_err(told).ok()
    }

    fn kind(&self) -> String {
        let basis = self.shared.basis.get();
        basis.map_or_else(String::new, |basis| {
            basis.hardware.processor.name().to_owned()
        })
    }

    fn memory_bytes(&self) -> Option<u64> {
        self.live.as_ref()?.vm.memory_bytes()
    }

    fn cpu_time(&self) -> Option<Duration> {
        self.live.as_ref()?.vm.cpu_time()
    }

    async fn suspend(&mut self) -> Result<(), EnvError> {
        let running = self.running("a stop of its time")?;
        let stopped = running.vm.stop().await;
        stopped.map_err(|reason| self.failed(reason))?;
        self.reporter.status(MachinePhase::Frozen, None, "", "");
        Ok(())
    }

    async fn wake(&mut self) -> Result<(), EnvError> {
        let running = self.running("a start of its time")?;
        let woken = running.vm.go_on().await;
        woken.map_err(|reason| self.failed(reason))?;
        self.reporter.status(MachinePhase::Ready, None, "", "");
        Ok(())
    }

    async fn close(&mut self) -> Result<(), EnvError> {
        let limit = Some(Duration::from_secs(2));
        self.reporter
            .status(MachinePhase::Stopping, limit, "left to the kernel", "");
        if let Some(spare) = self.spare.take() {
            // One that is still starting is killed by being dropped.
            spare.abort();
            if let Ok(Ok(spare)) = spare.await {
                spare.vm.kill().await;
            }
        }
        if let Some(live) = self.live.take() {
            live.vm.kill().await;
        }
        self.broken = None;
        self.reporter.status(MachinePhase::Off, None, "", "");
        Ok(())
    }
}

impl Drop for QemuMachine {
    fn drop(&mut self) {
        if let Some(spare) = self.spare.take() {
            spare.abort();
        }
    }
}
