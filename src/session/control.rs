//! Commands of operators, taken at safe points; every one is answered by events.

use crate::bus::{CommandInbox, CommandRequest, EventSink};
use crate::event::{Command, EventKind, F, SafePoint, TrainerState};
use crate::rollout::{Gate, GateHandle, GateState};
use crate::session::debug::DebugControl;

/// What can be changed while running.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Settings {
    /// Of the optimizer.
    pub learning_rate: f64,
    /// Of the rollouts.
    pub temperature: f64,
    /// Desktops side by side.
    pub desktops: u32,
}

/// How far to go before pausing again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stepping {
    Phase,
    Iteration,
}

/// Receives commands and says at each safe point how to go on. Requests whose work is still to
/// come are kept, and answered when it is done.
pub struct Control {
    inbox: CommandInbox,
    sink: EventSink,
    gate: GateHandle,
    gate_side: Gate,
    state: TrainerState,
    pause_at: Option<SafePoint>,
    pause_request: Option<CommandRequest>,
    stepping: Option<(Stepping, CommandRequest)>,
    checkpoint_requests: Vec<CommandRequest>,
    stop_asked: bool,
    stop_requests: Vec<CommandRequest>,
    settings: Settings,
    pub(super) debug: DebugControl,
}

impl Control {
    /// Commands from `inbox`, state changes to `sink`.
    pub fn new(inbox: CommandInbox, sink: EventSink, settings: Settings) -> Self {
        let (gate, gate_side) = GateHandle::new();
        Self {
            inbox,
            sink,
            gate,
            gate_side,
            state: TrainerState::Starting,
            pause_at: None,
            pause_request: None,
            stepping: None,
            checkpoint_requests: Vec::new(),
            stop_asked: false,
            stop_requests: Vec::new(),
            settings,
            debug: DebugControl::default(),
        }
    }

    /// The settings in force.
    pub fn settings(&self) -> Settings {
        self.settings
    }

    /// Takes over the settings of a resumed run.
    pub fn restore(&mut self, settings: Settings) {
        self.settings = settings;
    }

    /// The gate that episodes pass.
    pub fn gate(&self) -> Gate {
        self.gate_side.clone()
    }

    /// Whether the run is to end.
    pub fn is_stopping(&self) -> bool {
        self.stop_asked
    }

    /// Whether an operator waits for a checkpoint.
    pub fn wants_checkpoint(&self) -> bool {
        !self.checkpoint_requests.is_empty()
    }

    /// Answers those who waited for a checkpoint.
    pub fn checkpoint_written(&mut self) {
        for request in self.checkpoint_requests.drain(..) {
            request.done();
        }
    }

    /// Answers those who asked the run to stop.
    pub fn stopped(&mut self) {
        for request in self.stop_requests.drain(..) {
            request.done();
        }
    }

    /// Tells of a new state, if it is one.
    pub fn set_state(&mut self, state: TrainerState) {
        if self.state != state {
            self.state = state;
            self.sink.emit(EventKind::StateChanged { state });
        }
    }

    /// Handles commands for as long as the caller polls it; never ready.
    pub async fn serve(&mut self) {
        loop {
            self.handle_next().await;
        }
    }

    /// A safe point of kind `at`: takes what is waiting, stands still if that was asked for.
    /// False if the run is to end.
    pub async fn safe_point(&mut self, at: SafePoint) -> bool {
        while let Some(request) = self.inbox.try_recv() {
            self.handle(request);
        }
        self.end_stepping(at);
        if self.stop_asked || self.pause_at != Some(at) {
            return !self.stop_asked;
        }
        self.pause_at = None;
        self.set_state(TrainerState::Paused(at));
        if let Some(request) = self.pause_request.take() {
            request.done();
        }
        while matches!(self.state, TrainerState::Paused(_)) && !self.stop_asked {
            self.handle_next().await;
        }
        !self.stop_asked
    }

    async fn handle_next(&mut self) {
        match self.inbox.recv().await {
            Some(request) => self.handle(request),
            // Nobody is left who could ask for anything.
            None => std::future::pending().await,
        }
    }

    fn end_stepping(&mut self, at: SafePoint) {
        let reached = match &self.stepping {
            Some((Stepping::Phase, _)) => true,
            Some((Stepping::Iteration, _)) => at == SafePoint::Batch,
            None => false,
        };
        if let (true, Some((_, request))) = (reached, self.stepping.take_if(|_| reached)) {
            self.pause_at = Some(at);
            self.pause_request = Some(request);
        }
    }

    fn handle(&mut self, request: CommandRequest) {
        if let Some(reason) = self.refusal(&request.command) {
            request.refuse(&reason);
        } else if let Command::Debug(command) = request.command.clone() {
            // Whether it can be done is often known to the episode alone, which answers.
            if self.debug.obey(command, request, &self.sink) {
                self.gate.set(GateState::Held);
            }
        } else {
            request.accept();
            self.obey(request);
        }
        self.tell_state();
    }

    /// Why a command cannot be obeyed now.
    fn refusal(&self, command: &Command) -> Option<String> {
        let paused = matches!(self.state, TrainerState::Paused(_)) || self.is_held();
        let reason = match command {
            _ if self.stop_asked => "the run is stopping",
            Command::Pause { .. } if paused => "already paused",
            Command::Resume if !paused && self.pause_at.is_none() => "not paused",
            Command::StepPhase | Command::StepIteration if !paused => "not paused; pause first",
            _ => return None,
        };
        Some(reason.to_owned())
    }

    fn obey(&mut self, request: CommandRequest) {
        match request.command.clone() {
            Command::Pause {
                at: SafePoint::EnvStep,
            } => {
                self.gate.set(GateState::Held);
                request.done();
            }
            Command::Pause { at } => {
                self.pause_at = Some(at);
                self.pause_request = Some(request);
            }
            Command::Resume => {
                self.go_on();
                request.done();
            }
            Command::StepPhase => {
                self.go_on();
                self.stepping = Some((Stepping::Phase, request));
            }
            Command::StepIteration => {
                self.go_on();
                self.stepping = Some((Stepping::Iteration, request));
            }
            Command::Stop => {
                self.stop_asked = true;
                self.gate.set(GateState::Shut);
                self.stop_requests.push(request);
            }
            Command::Checkpoint => self.checkpoint_requests.push(request),
            Command::SetLearningRate { value } => {
                self.settings.learning_rate = value;
                self.changed("optimizer.lr", value, request);
            }
            Command::SetTemperature { value } => {
                self.settings.temperature = value;
                self.changed("sampling.temperature", value, request);
            }
            Command::SetDesktops { value } => {
                self.settings.desktops = value;
                self.changed("env.desktops", f64::from(value), request);
            }
            // Answered before it is accepted; see `handle`.
            Command::Debug(_) => {}
        }
    }

    fn is_held(&self) -> bool {
        self.gate.state() == GateState::Held
    }

    fn go_on(&mut self) {
        self.pause_at = None;
        if let Some(request) = self.pause_request.take() {
            request.refuse("resumed before it took hold");
        }
        self.gate.set(GateState::Open);
        self.set_state(TrainerState::Running);
    }

    fn changed(&self, key: &str, value: f64, request: CommandRequest) {
        self.sink.emit(EventKind::SettingChanged {
            key: key.to_owned(),
            value: F(value),
        });
        request.done();
    }

    fn tell_state(&mut self) {
        if self.stop_asked {
            self.set_state(TrainerState::Stopping);
        } else if self.is_held() {
            self.set_state(TrainerState::Paused(SafePoint::EnvStep));
        } else if let Some(at) = self.pause_at {
            self.set_state(TrainerState::Pausing(at));
        }
    }
}
