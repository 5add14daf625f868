//! The gate every episode passes before each step: open, held, or shut for good.

use tokio::sync::watch;

/// What the gate does to whoever comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateState {
    /// Goes on.
    Open,
    /// Waits until the gate opens or shuts.
    Held,
    /// Gives up: the episode is cancelled.
    Shut,
}

/// The side that moves the gate.
#[derive(Debug, Clone)]
pub struct GateHandle(std::sync::Arc<watch::Sender<GateState>>);

/// The side that passes it; clones share it.
#[derive(Debug, Clone)]
pub struct Gate(watch::Receiver<GateState>);

impl GateHandle {
    /// An open gate.
    pub fn new() -> (Self, Gate) {
        let (sender, receiver) = watch::channel(GateState::Open);
        (Self(std::sync::Arc::new(sender)), Gate(receiver))
    }

    /// Moves it. A shut gate stays shut.
    pub fn set(&self, state: GateState) {
        self.0.send_if_modified(|now| {
            let change = *now != GateState::Shut && *now != state;
            if change {
                *now = state;
            }
            change
        });
    }

    /// What it is.
    pub fn state(&self) -> GateState {
        *self.0.borrow()
    }
}

impl Gate {
    /// Waits while the gate is held; false if it is shut.
    pub async fn pass(&mut self) -> bool {
        match self.0.wait_for(|state| *state != GateState::Held).await {
            Ok(state) => *state == GateState::Open,
            Err(_) => false,
        }
    }

    /// Whether it is shut, or its handle gone.
    pub fn is_shut(&self) -> bool {
        *self.0.borrow() == GateState::Shut
    }

    /// Resolves when the gate is shut, or its handle gone.
    pub async fn shut(&mut self) {
        let _ = self.0.wait_for(|state| *state == GateState::Shut).await;
    }
}
