//! Keeps the thread that reads the terminal from it while another program has it.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The reader looks at the gate more often than this.
const PATIENCE: Duration = Duration::from_secs(2);

#[derive(Default)]
struct State {
    is_closed: bool,
    /// Whether the reader stands before it.
    waits: bool,
}

/// A gate that one thread passes again and again.
#[derive(Default)]
pub(super) struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

impl Gate {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The reader's: waits while it is closed.
    pub(super) fn pass(&self) {
        let mut state = self.state();
        while state.is_closed {
            state.waits = true;
            self.changed.notify_all();
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        state.waits = false;
    }

    /// Closes it and waits until the reader stands before it; a reader that has ended never does.
    pub(super) fn close(&self) {
        let mut state = self.state();
        state.is_closed = true;
        let waited = self
            .changed
            .wait_timeout_while(state, PATIENCE, |state| !state.waits);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// Opens it.
    pub(super) fn open(&self) {
        self.state().is_closed = false;
        self.changed.notify_all();
    }
}
