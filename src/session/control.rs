//! Commands of operators, taken at safe points; every one is answered by events.

use std::sync::{Arc, Mutex, PoisonError};

use crate::bus::{CommandInbox, CommandRequest, EventSink};
use crate::config::Profile;
use crate::env::{Admission, Admitted};
use crate::event::{
    CLIP_HIGH_KEY, CLIP_LOW_KEY, Command, DESKTOPS_KEY, EventKind, F, LEARNING_RATE_KEY,
    REPLAY_KEY, SafePoint, Stride, TEMPERATURE_KEY, TrainerState,
};
use crate::grpo::Replay;
use crate::rollout::{Answer, Ending, Fleet, Gate, GateHandle, GateState};
use crate::session::debug::DebugControl;
use crate::session::evaluations::Evaluations;
use crate::types::{EpisodeId, TaskId};

/// What can be changed while running.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Settings {
    /// Of the optimizer.
    pub learning_rate: f64,
    /// Of the rollouts.
    pub temperature: f64,
    /// Desktops side by side.
    pub desktops: u32,
    /// Lower and upper clip of the ratio, if an operator set them; else the profile's.
    #[serde(default)]
    pub clip: Option<(f64, f64)>,
    /// Whether replay is on, if an operator said so; else as the profile says.
    #[serde(default)]
    pub replay: Option<bool>,
}

impl Settings {
    /// As the profile says, before an operator changes anything.
    pub fn of(profile: &Profile) -> Self {
        Self {
            learning_rate: profile.optimizer.lr,
            temperature: profile.sampling.temperature,
            desktops: profile.env.desktops as u32,
            clip: None,
            replay: None,
        }
    }
}

/// The replay buffer, which the training loop fills and operators prune. Never locked while
/// anything is waited for.
pub(super) type SharedReplay = Arc<Mutex<Replay>>;

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
    stepping: Option<(Stride, CommandRequest)>,
    checkpoint_requests: Vec<CommandRequest>,
    stop_asked: bool,
    stop_requests: Vec<CommandRequest>,
    settings: Settings,
    fleet: Fleet,
    admission: Option<Admission>,
    evaluations: Option<Evaluations>,
    replay: Option<SharedReplay>,
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
            fleet: Fleet::default(),
            admission: None,
            evaluations: None,
            replay: None,
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

    /// Where state changes are told.
    pub(super) fn sink(&self) -> EventSink {
        self.sink.clone()
    }

    /// Single episodes and desktops.
    pub(super) fn fleet(&self) -> Fleet {
        self.fleet.clone()
    }

    /// Refuses more desktops than this admits.
    pub(super) fn admit_desktops(&mut self, admission: Admission) {
        self.admission = Some(admission);
    }

    /// Takes evaluations from now on.
    pub(super) fn serve_evaluations(&mut self, evaluations: Evaluations) {
        self.evaluations = Some(evaluations);
    }

    /// Lets operators prune this replay buffer.
    pub(super) fn serve_replay(&mut self, replay: SharedReplay) {
        self.replay = Some(replay);
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
    ///
    /// It also returns while the run stands, if an evaluation waits for a safe point: call it
    /// again once that is done.
    pub async fn safe_point(&mut self, at: SafePoint) -> bool {
        self.take_waiting();
        self.end_stepping(at);
        let pauses_here = !self.stop_asked && self.pause_at == Some(at);
        if pauses_here {
            self.pause_at = None;
            self.set_state(TrainerState::Paused(at));
            if let Some(request) = self.pause_request.take() {
                request.done();
            }
        }
        while self.state == TrainerState::Paused(at) && !self.stop_asked {
            if self.wants_safe_point() {
                return true;
            }
            self.handle_next().await;
        }
        !self.stop_asked
    }

    /// Whether an evaluation waits for the run to stand at a safe point.
    pub(super) fn wants_safe_point(&self) -> bool {
        let evaluations = self.evaluations.as_ref();
        evaluations.is_some_and(Evaluations::wants_safe_point)
    }

    /// Handles the commands that wait already.
    pub(super) fn take_waiting(&mut self) {
        while let Some(request) = self.inbox.try_recv() {
            self.handle(request);
        }
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
            Some((Stride::Phase, _)) => true,
            Some((Stride::Iteration, _)) => at == SafePoint::Batch,
            None => false,
        };
        if let (true, Some((_, request))) = (reached, self.stepping.take_if(|_| reached)) {
            self.pause_at = Some(at);
            self.pause_request = Some(request);
        }
    }

    fn handle(&mut self, request: CommandRequest) {
        match (self.refusal(&request.command), request.command.clone()) {
            (Some(reason), _) => request.refuse(&reason),
            // Whether it can be done is often known to the episode alone, which answers.
            (None, Command::Debug(command)) => {
                if self.debug.obey(command, request, &self.sink) {
                    self.gate.set(GateState::Held);
                }
            }
            (None, _) => self.obey_or_refuse(request),
        }
        self.tell_state();
    }

    /// What an evaluation needs is found out by getting it.
    fn obey_or_refuse(&mut self, request: CommandRequest) {
        let (Some(evaluations), Command::Evaluate(wanted)) = (&self.evaluations, &request.command)
        else {
            request.accept();
            return self.obey(request);
        };
        match evaluations.prepare(wanted, self.settings.desktops) {
            Ok(queued) => {
                request.accept();
                evaluations.queue(queued, request);
            }
            Err(reason) => request.refuse(&reason),
        }
    }

    /// Why a command cannot be obeyed now.
    fn refusal(&self, command: &Command) -> Option<String> {
        let paused = matches!(self.state, TrainerState::Paused(_)) || self.is_held();
        let on_its_way = self.pause_at.is_some() || self.stepping.is_some();
        let reason = match command {
            _ if self.stop_asked => "the run is stopping",
            Command::Pause { .. } if paused => "already paused; resume or step",
            Command::Pause { at } if self.pause_at == Some(*at) => {
                "already pausing there; resume takes that back"
            }
            Command::Resume if !paused && !on_its_way => "not paused",
            Command::StepPhase | Command::StepIteration if self.stepping.is_some() => {
                "already stepping; it pauses by itself"
            }
            Command::StepPhase | Command::StepIteration if !paused => "not paused; pause first",
            _ => return self.refusal_of_one(command),
        };
        Some(reason.to_owned())
    }

    /// Why a command about one episode, desktop, success or evaluation cannot be obeyed now.
    fn refusal_of_one(&self, command: &Command) -> Option<String> {
        match command {
            Command::KillEpisode { episode } | Command::RerollEpisode { episode } => {
                let runs = self.fleet.is_running(*episode);
                (!runs).then(|| format!("episode {episode} does not run; only a running one ends"))
            }
            Command::RebootDesktop { desktop } => {
                let desktops = self.settings.desktops;
                (*desktop >= desktops)
                    .then(|| format!("the run has {desktops} desktops, numbered from 0"))
            }
            Command::SetDesktops { value } => self.no_room_for(*value),
            Command::PinStored {
                task,
                episode,
                pinned,
            } => match self.stored(task, *episode) {
                Ok(now) if now == *pinned => {
                    let state = if now { "pinned" } else { "not pinned" };
                    Some(format!("episode {episode} is {state} already"))
                }
                stored => stored.err(),
            },
            Command::DropStored { task, episode } => self.stored(task, *episode).err(),
            Command::Evaluate(_) | Command::CancelEvaluation { .. }
                if self.evaluations.is_none() =>
            {
                Some("this run takes no evaluations".to_owned())
            }
            Command::CancelEvaluation { evaluation } => self
                .evaluations
                .as_ref()
                .and_then(|evaluations| evaluations.cannot_cancel(*evaluation)),
            _ => None,
        }
    }

    /// Why there cannot be so many desktops, if that is so.
    fn no_room_for(&self, desktops: u32) -> Option<String> {
        let admission = self.admission?;
        if let Some(says) = admission.beyond(desktops) {
            return Some(says);
        }
        match admission.ask(self.settings.desktops, desktops) {
            Admitted::Refused(says) => Some(says),
            // Told when they are opened.
            Admitted::Warned(_) | Admitted::Fits => None,
        }
    }

    /// Whether a stored success is pinned; why not, if there is none.
    fn stored(&self, task: &TaskId, episode: EpisodeId) -> Result<bool, String> {
        let replay = self
            .replay
            .as_ref()
            .ok_or("this run has no replay buffer")?;
        let replay = replay.lock().unwrap_or_else(PoisonError::into_inner);
        let mut of_task = replay.of_task(task);
        let found = of_task.find(|stored| stored.episode.id == episode);
        found
            .map(|stored| stored.pinned)
            .ok_or_else(|| format!("task {task} has no stored success {episode}"))
    }

    fn prune(&self, command: &Command) {
        let Some(replay) = &self.replay else { return };
        let mut replay = replay.lock().unwrap_or_else(PoisonError::into_inner);
        match command {
            Command::PinStored {
                task,
                episode,
                pinned,
            } if replay.pin(task, *episode, *pinned) => self.sink.emit(EventKind::StoredPinned {
                task: task.clone(),
                episode: *episode,
                pinned: *pinned,
            }),
            Command::DropStored { task, episode } if replay.remove(task, *episode) => {
                self.sink.emit(EventKind::StoredDropped {
                    task: task.clone(),
                    episode: *episode,
                });
            }
            _ => {}
        }
    }

    fn obey(&mut self, request: CommandRequest) {
        match request.command.clone() {
            Command::Pause {
                at: SafePoint::EnvStep,
            } => {
                self.replace_pause("a pause before the next step took its place");
                self.gate.set(GateState::Held);
                request.done();
            }
            Command::Pause { at } => {
                self.replace_pause("a pause elsewhere took its place");
                self.pause_at = Some(at);
                self.pause_request = Some(request);
            }
            Command::Resume => {
                self.go_on();
                request.done();
            }
            Command::StepPhase => {
                self.go_on();
                self.stepping = Some((Stride::Phase, request));
                self.set_state(TrainerState::Stepping(Stride::Phase));
            }
            Command::StepIteration => {
                self.go_on();
                self.stepping = Some((Stride::Iteration, request));
                self.set_state(TrainerState::Stepping(Stride::Iteration));
            }
            Command::Stop => {
                self.stop_asked = true;
                self.gate.set(GateState::Shut);
                self.stop_requests.push(request);
            }
            Command::Checkpoint => self.checkpoint_requests.push(request),
            Command::SetLearningRate { value } => {
                self.settings.learning_rate = value;
                self.changed(&[(LEARNING_RATE_KEY, value)], request);
            }
            Command::SetTemperature { value } => {
                self.settings.temperature = value;
                self.changed(&[(TEMPERATURE_KEY, value)], request);
            }
            Command::SetDesktops { value } => {
                self.settings.desktops = value;
                self.changed(&[(DESKTOPS_KEY, f64::from(value))], request);
            }
            Command::SetClip { low, high } => {
                self.settings.clip = Some((low, high));
                self.changed(&[(CLIP_LOW_KEY, low), (CLIP_HIGH_KEY, high)], request);
            }
            Command::SetReplay { enabled } => {
                self.settings.replay = Some(enabled);
                self.changed(&[(REPLAY_KEY, f64::from(u8::from(enabled)))], request);
            }
            Command::KillEpisode { episode } => {
                self.fleet.end(episode, Ending::Kill, answer(request));
            }
            Command::RerollEpisode { episode } => {
                self.fleet.end(episode, Ending::Reroll, answer(request));
            }
            Command::RebootDesktop { desktop } => self.fleet.reboot(desktop, answer(request)),
            command @ (Command::PinStored { .. } | Command::DropStored { .. }) => {
                self.prune(&command);
                request.done();
            }
            Command::CancelEvaluation { evaluation } => match &self.evaluations {
                Some(evaluations) => evaluations.cancel(evaluation, request),
                None => request.refuse("this run takes no evaluations"),
            },
            // Taken by `obey_or_refuse` where there are any.
            Command::Evaluate(_) => request.refuse("this run takes no evaluations"),
            // Answered before it is accepted; see `handle`.
            Command::Debug(_) => {}
        }
    }

    fn is_held(&self) -> bool {
        self.gate.state() == GateState::Held
    }

    /// Calls off a pause or a step that has not got there.
    fn replace_pause(&mut self, reason: &str) {
        self.pause_at = None;
        let stepping = self.stepping.take().map(|(_, request)| request);
        for request in self.pause_request.take().into_iter().chain(stepping) {
            request.refuse(reason);
        }
    }

    fn go_on(&mut self) {
        self.replace_pause("resumed before it took hold");
        self.gate.set(GateState::Open);
        self.set_state(TrainerState::Running);
    }

    fn changed(&self, settings: &[(&str, f64)], request: CommandRequest) {
        for (key, value) in settings {
            self.sink.emit(EventKind::SettingChanged {
                key: (*key).to_owned(),
                value: F(*value),
            });
        }
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

/// Answers a request once it has been done, or cannot be.
fn answer(request: CommandRequest) -> Answer {
    Box::new(move |done| match done {
        Ok(()) => request.done(),
        Err(reason) => request.refuse(&reason),
    })
}
