//! One desktop of a run: the machine in use, and the next one.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures::future::join_all;

use super::Shared;
use super::running::Running;
use crate::env::EnvError;
use crate::env::guest::Guest;
use crate::env::machine::{Connection, Machine, MachineNews, MachineState, Reporter, over};
use crate::env::sandbox::{ENDING, Slot, Spare, await_end, retired, slot_of};
use crate::types::osworld::PlaceholderValues;
use crate::types::{MachineHealth, MachinePhase, Screenshot};

/// Times a machine is restored before its desktop is given up.
const TRIES: u32 = 2;

/// What comes after a start that took too long.
const THEN: &str = "killed, and another restored";

/// `Machine` of the provider `qemu`.
#[derive(Debug)]
pub struct QemuMachine {
    name: String,
    shared: Arc<Shared>,
    slot: Arc<Mutex<Slot>>,
    live: Option<Running>,
    /// The next one, restored while nobody waits for it.
    spare: Spare<Running>,
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
            spare: Spare::none(),
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
        let limit = self.restore_limit();
        let is_waited_for = self.spare.is_starting();
        if is_waited_for {
            let detail = "the one that was begun before";
            self.reporter
                .status(MachinePhase::Restoring, Some(limit), THEN, detail);
        }
        let Some(running) = self.spare.take(limit, &self.name).await else {
            if is_waited_for {
                self.tell_stopping();
            }
            return None;
        };
        self.reporter
            .status(MachinePhase::Checking, Some(limit), THEN, "");
        let woken = async {
            running.vm.go_on().await?;
            running.vm.wake_guest().await?;
            running.settle(Instant::now() + limit).await.map(drop)
        };
        match woken.await {
            Ok(()) => Some(running),
            Err(reason) => {
                tracing::warn!(machine = self.name, reason, "the spare is not well");
                self.tell_stopping();
                await_end(running.vm.kill(), &self.name).await;
                None
            }
        }
    }

    fn restore_limit(&self) -> Duration {
        Duration::from_secs_f64(self.shared.options.config.restore_deadline_s)
    }

    /// Tells of an end, also of one between two starts: what comes after it is waited for anew.
    fn tell_stopping(&self) {
        let limit = Some(ENDING);
        self.reporter
            .status(MachinePhase::Stopping, limit, "left to the kernel", "");
    }

    /// Waits for what all are restored from.
    async fn prepare(&self) -> Result<(), String> {
        if self.shared.snapshot.get().is_none() {
            // One of the desktops makes it and tells more; it has deadlines of its own.
            let detail = "the snapshot that all are restored from";
            self.reporter
                .status(MachinePhase::Preparing, None, "", detail);
        }
        // Within the turn to start (`env::guest`): those that have none yet could not start either.
        self.shared.snapshot(&self.reporter).await.map(drop)
    }

    async fn start(&self) -> Result<Running, String> {
        let mut tries = 1;
        loop {
            match restore(&self.shared, &self.slot, &self.reporter).await {
                Ok(running) => return Ok(running),
                Err(reason) if tries == TRIES => return Err(self.with_way_out(reason)),
                Err(reason) => {
                    tracing::warn!(machine = self.name, reason, tries, "did not start");
                    self.tell_stopping();
                }
            }
            tries += 1;
        }
    }

    /// Why no start came to anything. What is wrong may be the snapshot; gone, it is made anew.
    fn with_way_out(&self, reason: String) -> String {
        let Some(snapshot) = self.shared.snapshot.get() else {
            return reason;
        };
        let folder = snapshot.folder().display();
        format!("{reason} (if that goes on, end the run and remove its snapshot, {folder})")
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
        let mut since = Instant::now();
        let begun = self.reporter.begun();
        // The one before is of no use any more, whatever comes of its successor.
        let before = self.live.take();
        let ending = before.map(|running| {
            self.tell_stopping();
            tokio::spawn(running.vm.kill())
        });
        let next = match self.take_spare().await {
            Some(running) => Ok(running),
            None => match self.prepare().await {
                Ok(()) => {
                    since = Instant::now();
                    self.start().await
                }
                Err(reason) => Err(reason),
            },
        };
        retired(ending, &self.slot, &self.name).await;
        over(begun);
        match next {
            Ok(running) => {
                self.reverts += 1;
                running.vm.announce(&self.reporter);
                self.tell_ready(&running, since.elapsed());
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
        let deadline = Instant::now() + self.restore_limit();
        let restarted = running.restart_server(deadline).await;
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
        self.tell_stopping();
        let (spare, live) = (&mut self.spare, self.live.take());
        let ending = async {
            let machines = [spare.end().await, live].into_iter().flatten();
            join_all(machines.map(|running| running.vm.kill())).await;
        };
        await_end(ending, &self.name).await;
        self.broken = None;
        self.reporter.status(MachinePhase::Off, None, "", "");
        Ok(())
    }
}
