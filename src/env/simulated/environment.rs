//! A `Desktop` as an `Environment`: adds a virtual clock and faults.
//!
//! Answers at once and says in `elapsed` how long its latency law makes the call; never
//! sleeps, never reads a clock. What goes wrong is drawn (`law`) or the task's plan (`plan`).
//! After a hang or a crash every call fails in the same way until
//! the next reset, as with a real machine.

use std::time::Duration;

use async_trait::async_trait;

use super::desktop::Desktop;
use super::law::{Fault, Fortune, duration};
use super::plan::{Call, FaultPlan};
use super::suite::Suite;
use crate::config::simulated::{FaultLaw, LatencyLaw, SimulatedConfig};
use crate::env::{EnvError, Environment, Observation, Probe, ProbeBody, ProbeReply};
use crate::types::{Action, ScreenSize, Task};

/// What the action `wait` waits.
const WAIT: Duration = Duration::from_secs(5);

/// One simulated desktop.
pub struct Simulated {
    config: SimulatedConfig,
    size: ScreenSize,
    desktop: Option<Desktop>,
    fortune: Fortune,
    plan: FaultPlan,
    broken: Option<Fault>,
}

impl Simulated {
    /// A desktop that is not started yet.
    pub fn new(config: SimulatedConfig) -> Self {
        Self {
            config,
            size: Suite::Compact.screen_size(),
            desktop: None,
            fortune: Fortune::new(0),
            plan: FaultPlan::default(),
            broken: None,
        }
    }

    /// The desktop itself, once it is reset: for experts, which read more than pixels.
    pub fn desktop(&self) -> Option<&Desktop> {
        self.desktop.as_ref()
    }

    /// Changes what goes wrong from now on: rehearsals break desktops in mid-episode.
    pub fn set_faults(&mut self, faults: FaultLaw) {
        self.config.faults = faults;
    }

    /// Draws what comes of a call: its duration, or the error it ends in.
    fn call(&mut self, call: Call, latency: LatencyLaw) -> Result<(Duration, bool), EnvError> {
        let what = call.name();
        let deadline = duration(self.config.deadline_s);
        let timeout = EnvError::Timeout {
            what,
            after: deadline,
        };
        match self.broken {
            Some(Fault::Hang) => return Err(timeout),
            Some(Fault::Crash) => return Err(EnvError::Crashed { what }),
            Some(Fault::BlackScreen | Fault::SlowEvaluator) | None => {}
        }
        let luck = self.fortune.draw(&latency, &self.config.faults);
        let fault = self.plan.next(call).or(luck.fault);
        let mut elapsed = luck.elapsed;
        match fault {
            Some(Fault::Hang) => {
                self.broken = Some(Fault::Hang);
                return Err(timeout);
            }
            Some(Fault::Crash) => {
                self.broken = Some(Fault::Crash);
                return Err(EnvError::Crashed { what });
            }
            Some(Fault::SlowEvaluator) if call == Call::Evaluator => {
                elapsed = elapsed.mul_f64(self.config.faults.slow_factor.clamp(1.0, 1e6));
            }
            Some(Fault::BlackScreen | Fault::SlowEvaluator) | None => {}
        }
        if deadline < elapsed {
            return Err(timeout);
        }
        Ok((elapsed, fault == Some(Fault::BlackScreen)))
    }

    fn look(&self, elapsed: Duration, black: bool) -> Result<Observation, EnvError> {
        if black {
            return Err(EnvError::Screenshot {
                reason: "all of it is black".to_owned(),
            });
        }
        let screenshot = self.running(Call::Screenshot)?.render();
        Ok(Observation {
            screenshot,
            elapsed,
        })
    }

    fn running(&self, call: Call) -> Result<&Desktop, EnvError> {
        let what = call.name();
        self.desktop.as_ref().ok_or(EnvError::Crashed { what })
    }
}

#[async_trait]
impl Environment for Simulated {
    fn screen_size(&self) -> ScreenSize {
        self.size
    }

    async fn reset(&mut self, task: &Task, seed: u64) -> Result<Observation, EnvError> {
        self.fortune = Fortune::new(seed);
        self.broken = None;
        self.desktop = None;
        let wrong = |reason: String| EnvError::Task {
            task: task.id.0.clone(),
            reason,
        };
        self.plan = FaultPlan::of(task).map_err(|error| {
            wrong(format!(
                "parameters of its \"simulated_fault\" step: {error}"
            ))
        })?;
        let desktop = Desktop::from_task(task).map_err(|error| wrong(error.to_string()))?;
        let desktop = match self.config.ui_scale {
            0 => desktop,
            scale => desktop.at_scale(scale),
        };
        let (elapsed, black) = self.call(Call::Reset, self.config.reset_latency)?;
        self.size = desktop.screen_size();
        self.desktop = Some(desktop);
        self.look(elapsed, black)
    }

    async fn step(&mut self, action: &Action) -> Result<Observation, EnvError> {
        self.running(Call::Action)?;
        let (elapsed, black) = self.call(Call::Action, self.config.step_latency)?;
        let waited = match action {
            Action::Wait => WAIT,
            _ => Duration::ZERO,
        };
        if let Some(desktop) = &mut self.desktop {
            desktop.apply(action);
        }
        self.look(elapsed + waited, black)
    }

    async fn observe(&mut self) -> Result<Observation, EnvError> {
        self.running(Call::Screenshot)?;
        let (elapsed, black) = self.call(Call::Screenshot, LatencyLaw::NONE)?;
        self.look(elapsed, black)
    }

    async fn probe(&mut self, probe: &Probe) -> Result<ProbeReply, EnvError> {
        let question = match probe {
            Probe::State => None,
            Probe::File { path } => Some(format!("for the file {path}")),
            Probe::Command { argv } => Some(format!("a command: {}", argv.join(" "))),
        };
        if let Some(probe) = question {
            return Err(EnvError::Unsupported { probe });
        }
        self.running(Call::Evaluator)?;
        let (elapsed, _) = self.call(Call::Evaluator, self.config.evaluate_latency)?;
        Ok(ProbeReply {
            body: ProbeBody::State(self.running(Call::Evaluator)?.state()),
            elapsed,
        })
    }

    async fn close(&mut self) -> Result<(), EnvError> {
        self.desktop = None;
        Ok(())
    }
}
