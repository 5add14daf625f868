//! A virtual machine whose guest's server answers: how it comes about, and how it is looked at.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::arguments::{self, Disk, Files};
use super::serial::Progress;
use super::snapshot::Snapshot;
use super::vm::{Launch, Vm, left, open};
use super::{Basis, QemuOptions};
use crate::env::guest::{Guest, Health};
use crate::env::machine::Reporter;
use crate::env::sandbox::{Slot, Socket};
use crate::types::{LayerStatus, MachinePhase};

/// Between two looks at a server that is starting.
const POLL: Duration = Duration::from_millis(50);

/// What comes after a phase that took too long.
const THEN: &str = "killed, and started anew";

/// A machine whose server answers.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) vm: Vm,
    pub(super) guest: Guest,
    /// What the guest's address leads to.
    _socket: Socket,
    /// Its layers as they were found when it came up.
    pub(super) layers: Vec<LayerStatus>,
}

impl Running {
    /// Restores one from a snapshot; `voice` hears how far it is.
    pub(super) async fn restore(
        basis: &Basis,
        snapshot: &Snapshot,
        options: &QemuOptions,
        slot: &Mutex<Slot>,
        voice: &Reporter,
    ) -> Result<Self, String> {
        let limit = Duration::from_secs_f64(options.config.restore_deadline_s);
        let (started, deadline) = (Instant::now(), Instant::now() + limit);
        voice.status(MachinePhase::Restoring, Some(limit), THEN, "QEMU starts");
        let launch = Launch {
            hardware: &basis.hardware,
            disk: Disk::OverSnapshot,
            files: Files {
                kernel: open(&basis.image.kernel())?,
                initrd: open(&snapshot.initrd())?,
                base: Some(open(&basis.image.disk())?),
                snapshot: Some((open(&snapshot.layer())?, open(&snapshot.memory())?)),
                kvm: basis.kvm()?,
            },
            limits: arguments::limits(&options.config, options.config.disk_mb),
            fresh: Some(&snapshot.fresh()),
        };
        let vm = Vm::launch(launch, slot, deadline).await?;
        let mut layers = vec![layer("machine", started.elapsed())];
        // The same phase, whose age goes on: so does its limit.
        voice.status(MachinePhase::Restoring, Some(limit), THEN, "memory");
        let begun = Instant::now();
        vm.load(deadline).await?;
        vm.go_on().await?;
        vm.wake_guest().await?;
        layers.push(layer("control", begun.elapsed()));
        voice.status(MachinePhase::Checking, Some(left(deadline)), THEN, "");
        Self::of(vm, snapshot.token(), basis, options, layers, deadline).await
    }

    /// Waits for the server of a machine that runs, until every layer works.
    pub(super) async fn of(
        vm: Vm,
        token: &str,
        basis: &Basis,
        options: &QemuOptions,
        layers: Vec<LayerStatus>,
        deadline: Instant,
    ) -> Result<Self, String> {
        let socket = vm.server_socket(deadline).await?;
        let address = format!("unix:{}", socket.path());
        let asked = options.guest_on(basis.hardware.processor);
        let guest = Guest::with_token(address, Some(token), asked);
        let guest = guest.map_err(|error| error.to_string())?;
        let mut running = Self {
            vm,
            guest,
            _socket: socket,
            layers,
        };
        let found = running.settle(deadline).await?;
        running.layers.extend(found);
        Ok(running)
    }

    /// Waits until every layer works; how they were found.
    pub(super) async fn settle(&self, deadline: Instant) -> Result<Vec<LayerStatus>, String> {
        let late = |_| "its server did not answer in time".to_owned();
        let end = tokio::time::Instant::from_std(deadline);
        let mut last = None;
        loop {
            match tokio::time::timeout_at(end, self.check())
                .await
                .map_err(late)
            {
                Ok(Ok(layers)) => return Ok(layers),
                Ok(Err(reason)) => {
                    if Instant::now() >= deadline || self.vm.ended().is_some() {
                        return Err(reason);
                    }
                    last = Some(reason);
                }
                Err(late) => {
                    return Err(last.map_or(late.clone(), |last| format!("{late}: {last}")));
                }
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// The layers above the machine, or what of it does not work.
    async fn check(&self) -> Result<Vec<LayerStatus>, String> {
        let health = self.guest.health().await;
        if let Some(reason) = self.vm.ended() {
            return Err(reason.to_owned());
        }
        match health.broken() {
            None => Ok(layers_of(&health)),
            Some((layer, found)) => Err(format!(
                "{layer} does not work: {}",
                found.error.as_deref().unwrap_or_default()
            )),
        }
    }

    /// Has the server started anew and waits until it answers.
    pub(super) async fn restart_server(&self, deadline: Instant) -> Result<(), String> {
        let mut progress = self.vm.progress();
        let before = progress.borrow_and_update().told;
        self.vm.restart_server().await?;
        // The guest says so when the new one answers; until then the old one might.
        follow(&mut progress, &self.vm, deadline, |now| {
            (now.told > before && now.stage == "server").then_some(())
        })
        .await?;
        self.guest.restarted();
        self.settle(deadline).await.map(drop)
    }
}

/// Waits until `is_there` finds what it looks for in what a guest tells.
pub(super) async fn follow<T>(
    progress: &mut watch::Receiver<Progress>,
    vm: &Vm,
    deadline: Instant,
    is_there: impl Fn(&Progress) -> Option<T>,
) -> Result<T, String> {
    let end = tokio::time::Instant::from_std(deadline);
    loop {
        let now = progress.borrow_and_update().clone();
        if let Some(found) = is_there(&now) {
            return Ok(found);
        }
        if let Some(reason) = now.failed {
            return Err(format!("its guest gave up: {reason}"));
        }
        let changed = tokio::time::timeout_at(end, progress.changed()).await;
        match changed {
            Ok(Ok(())) => {}
            Ok(Err(_)) => {
                // Its serial line has ended; why is known in a moment.
                tokio::time::sleep(POLL).await;
                let reason = vm.ended().unwrap_or("its serial line ended");
                return Err(reason.to_owned());
            }
            Err(_) => {
                return Err(match now.stage.as_str() {
                    "" => "its guest said nothing in time".to_owned(),
                    stage => format!("its guest did not come further than «{stage}» in time"),
                });
            }
        }
    }
}

/// A layer that works.
pub(super) fn layer(name: &str, took: Duration) -> LayerStatus {
    LayerStatus {
        layer: name.to_owned(),
        took_ms: took.as_millis() as u64,
        error: String::new(),
    }
}

fn layers_of(health: &Health) -> Vec<LayerStatus> {
    let layers = health.layers();
    layers.map(|(name, found)| layer(name, found.took)).into()
}
