//! How a run looks after a real desktop: its turn to start, what is seen of it when it does not
//! answer, how it is between episodes.
//!
//! What a machine says of itself while it starts is its provider's to tell.

use std::convert::Infallible;
use std::future::pending;
use std::time::{Duration, Instant};

use tokio::time::{sleep, timeout};

use super::desktop::{GuestDesktop, Lost};
use super::error::on_one_line;
use super::{GuestError, Health};
use crate::config::FleetConfig;
use crate::env::machine::{Begun, over};
use crate::env::{EnvError, Machine, MachineNews, MachineState, Reporter, Starts};
use crate::types::{ErrorClass, LayerStatus, MachineHealth, MachinePhase};

/// Longest wait for a turn to start.
const TURN_DEADLINE: Duration = Duration::from_secs(1800);
/// For a picture that is taken past the server.
const PICTURE_DEADLINE: Duration = Duration::from_secs(3);
/// Looks at a screen that does not change until it is told again: before it passes for old.
const LOOKS_A_PICTURE: u32 = 3;
/// For all layers together.
const INSPECTION_DEADLINE: Duration = Duration::from_secs(5);
/// A machine's end is noticed by its server's silence first, and by whoever watches it soon after.
const END_NOTICED: Duration = Duration::from_millis(500);
const END_LOOKS: u32 = 10;
/// What happens to a machine that is of no use any more.
const NEXT: &str = "brought back before its next episode";
/// Characters of a reason that a status tells.
const MAX_REASON: usize = 300;

/// What a run adds to a desktop.
#[derive(Clone, Debug)]
pub struct Upkeep {
    /// Where it tells how it is.
    pub reporter: Reporter,
    /// Whose turn it is to start.
    pub starts: Starts,
    /// How it is looked after.
    pub fleet: FleetConfig,
    /// Whether its time stands still while nobody looks.
    pub freeze_while_thinking: bool,
}

/// How far a machine came in a reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Startup {
    /// It was not touched: the reset was refused, or waits for its turn.
    #[default]
    Untouched,
    /// It is starting, or did not come up.
    Starting,
    /// It came up.
    Up,
}

/// What was found below a desktop's failure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Found {
    /// Nobody looked.
    #[default]
    Nothing,
    /// The machine runs, and does not answer.
    Silent,
    /// The machine has ended.
    Ended,
}

/// What was counted of a desktop's machine.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reverts {
    last: Option<Duration>,
    count: u64,
}

impl GuestDesktop {
    /// Brings the machine to its clean state when it is its turn.
    pub(super) async fn revert(&mut self) -> Result<(), EnvError> {
        let _turn = self.turn().await?;
        self.startup = Startup::Starting;
        let began = Instant::now();
        self.machine.revert().await?;
        self.startup = Startup::Up;
        self.frozen = false;
        self.reverts.last = Some(began.elapsed());
        self.reverts.count += 1;
        self.guest().restarted();
        Ok(())
    }

    async fn turn(&self) -> Result<Option<crate::env::Turn>, EnvError> {
        let Some(upkeep) = &self.upkeep else {
            return Ok(None);
        };
        let mut waiting = None;
        let wait = || waiting = Some(queued(&upkeep.reporter));
        let turn = timeout(TURN_DEADLINE, upkeep.starts.turn(wait)).await;
        let turn = turn.map_err(|_| EnvError::Machine {
            machine: self.machine.name(),
            reason: format!(
                "had no turn to start within {} s: raise env.fleet.parallel_starts or lower \
                 env.desktops",
                TURN_DEADLINE.as_secs()
            ),
        })?;
        // It starts, which its machine tells.
        if let Some(waiting) = waiting {
            over(waiting);
        }
        Ok(Some(turn))
    }

    /// The error of a call, or of what lies below it: a machine that ended says why, one that is
    /// silent is looked at past its server.
    pub(super) async fn explained(&mut self, error: EnvError) -> EnvError {
        let is_own = matches!(error, EnvError::Machine { .. } | EnvError::Ended { .. });
        let may_be = matches!(error.class(), ErrorClass::Crash | ErrorClass::Timeout);
        if is_own || !may_be {
            return error;
        }
        let silent = is_silent(&error);
        let symptom = error.to_string();
        if let Some(ended) = self.ended(silent, &symptom).await {
            return ended;
        }
        if silent {
            self.look_past(&symptom).await;
        }
        error
    }

    /// What came of stopping the machine's time or letting it go on: its end, if that is why it did
    /// neither.
    pub(super) async fn unless_ended(
        &mut self,
        done: Result<(), EnvError>,
    ) -> Result<(), EnvError> {
        let Err(error) = done else { return Ok(()) };
        let ended = self.ended(true, &error.to_string()).await;
        Err(ended.unwrap_or(error))
    }

    /// As `explained`, for a call that is not the desktop's own or did not come back.
    pub(super) async fn cause(&mut self, symptom: &str) -> Option<EnvError> {
        // A machine that starts says itself how far it is, one that waits for that is of an episode
        // before, and what was looked at is seen.
        let is_known = self.startup != Startup::Up || self.found != Found::Nothing;
        if is_known || !self.machine_is_up() {
            return None;
        }
        let ended = self.ended(true, symptom).await;
        if ended.is_none() {
            self.look_past(symptom).await;
        }
        ended
    }

    fn machine_is_up(&self) -> bool {
        !matches!(self.machine.state(), MachineState::Off)
    }

    /// The machine's own end, if it has come to it; soon, if it is silent.
    async fn ended(&mut self, silent: bool, symptom: &str) -> Option<EnvError> {
        let looks = if silent { END_LOOKS } else { 1 };
        for look in 0..looks {
            if look > 0 {
                sleep(END_NOTICED / END_LOOKS).await;
            }
            let (MachineState::Ended { reason } | MachineState::Broken { reason }) =
                self.machine.state()
            else {
                continue;
            };
            let reason = on_one_line(&reason, MAX_REASON);
            let machine = self.machine.name();
            if let Some(upkeep) = &self.upkeep {
                upkeep
                    .reporter
                    .status(MachinePhase::Off, None, NEXT, &reason);
            }
            self.lost = Some(Lost::Ended {
                machine: machine.clone(),
                reason: reason.clone(),
            });
            self.found = Found::Ended;
            return Some(EnvError::Ended {
                machine,
                reason,
                symptom: symptom.to_owned(),
            });
        }
        None
    }

    /// Tells that the machine does not answer, and shows its screen where that can be. Nobody asks again
    /// before `after_episode`, however long the episode goes on.
    async fn look_past(&mut self, symptom: &str) {
        let Some(upkeep) = &self.upkeep else { return };
        self.found = Found::Silent;
        let then = "the episode ends, and the machine is brought back before its next one";
        let detail = on_one_line(symptom, MAX_REASON);
        let reporter = &upkeep.reporter;
        reporter.status(MachinePhase::Suspect, None, then, &detail);
        if let Ok(Some(picture)) = timeout(PICTURE_DEADLINE, self.machine.picture()).await {
            reporter.tell(MachineNews::Picture(picture));
        }
    }

    /// Tells how the desktop is after an episode; why it is to be opened anew, if it is.
    pub(super) async fn after_episode(&mut self) -> Option<String> {
        let upkeep = self.upkeep.clone()?;
        self.trend.episode_over(&upkeep.fleet);
        let layers = self.layers().await;
        if self.found == Found::Silent {
            self.tell_whether_ready(&upkeep.reporter, &layers);
        }
        let health = MachineHealth {
            layers,
            kind: on_one_line(&self.machine.kind(), 40),
            memory_mb: self.machine.memory_bytes().map(|bytes| bytes >> 20),
            act_ms: self.trend.newest_ms(),
            baseline_ms: self.trend.baseline_ms(&upkeep.fleet),
            revert_ms: self.reverts.last.map(|took| took.as_millis() as u64),
            reverts: self.reverts.count,
        };
        upkeep.reporter.tell(MachineNews::Health(health));
        self.trend.verdict(&upkeep.fleet)
    }

    /// What has become of a machine that did not answer, by its layers.
    fn tell_whether_ready(&self, reporter: &Reporter, layers: &[LayerStatus]) {
        let broken = layers.iter().find(|layer| !layer.is_up());
        let why = match broken {
            Some(layer) => format!("{}: {}", layer.layer, layer.error),
            // Nobody asked the layers above.
            None if self.frozen => "it stands still and does not go on".to_owned(),
            None => return reporter.status(MachinePhase::Ready, None, "", ""),
        };
        reporter.status(MachinePhase::Off, None, NEXT, &why);
    }

    async fn layers(&self) -> Vec<LayerStatus> {
        let error = match self.machine.state() {
            MachineState::Running => String::new(),
            MachineState::Off => "it does not run".to_owned(),
            MachineState::Ended { reason } | MachineState::Broken { reason } => reason,
        };
        let mut layers = vec![LayerStatus {
            layer: "machine".to_owned(),
            took_ms: 0,
            error: on_one_line(&error, MAX_REASON),
        }];
        if layers[0].is_up() && !self.frozen {
            let began = Instant::now();
            match timeout(INSPECTION_DEADLINE, self.guest().health()).await {
                Ok(health) => layers.extend(asked(&health)),
                Err(_) => layers.push(LayerStatus {
                    layer: "http".to_owned(),
                    took_ms: began.elapsed().as_millis() as u64,
                    error: format!("no answer within {} s", INSPECTION_DEADLINE.as_secs()),
                }),
            }
        }
        layers
    }
}

/// Tells what a machine's screen shows, for as long as anybody waits for it and the machine runs. A
/// screen that has not changed is told again now and then: it is no old picture.
pub(super) async fn show(
    machine: &dyn Machine,
    every: Duration,
    upkeep: Option<&Upkeep>,
) -> Infallible {
    let Some(upkeep) = upkeep else {
        return pending().await;
    };
    let (mut shown, mut looks) = (None, 0);
    while machine.state() == MachineState::Running {
        sleep(every).await;
        let seen = timeout(PICTURE_DEADLINE, machine.picture()).await;
        let Ok(Some(picture)) = seen else { continue };
        looks += 1;
        if looks == LOOKS_A_PICTURE || shown.as_ref() != Some(picture.hash()) {
            (shown, looks) = (Some(picture.hash().clone()), 0);
            upkeep.reporter.tell(MachineNews::Picture(picture));
        }
    }
    pending().await
}

/// Tells that a desktop waits for its turn to start.
fn queued(reporter: &Reporter) -> Begun {
    let then = "given up, and the episode tried again";
    let limit = Some(TURN_DEADLINE);
    reporter.status(MachinePhase::Queued, limit, then, "others start first");
    reporter.begun()
}

/// A server's layers up to the first that does not work.
fn asked(health: &Health) -> Vec<LayerStatus> {
    let mut told = Vec::new();
    for (name, layer) in health.layers() {
        told.push(LayerStatus {
            layer: name.to_owned(),
            took_ms: layer.took.as_millis() as u64,
            error: on_one_line(layer.error.as_deref().unwrap_or_default(), MAX_REASON),
        });
        if !layer.is_up() {
            break;
        }
    }
    told
}

/// Whether nobody answered, in contrast to an answer that tells of a failure.
fn is_silent(error: &EnvError) -> bool {
    match error {
        EnvError::Guest { source, .. } => {
            source.is_outcome_unknown() || matches!(**source, GuestError::Unreachable { .. })
        }
        EnvError::Timeout { .. } | EnvError::Crashed { .. } => true,
        EnvError::Screenshot { .. }
        | EnvError::Task { .. }
        | EnvError::Machine { .. }
        | EnvError::Ended { .. }
        | EnvError::Unsupported { .. } => false,
    }
}
