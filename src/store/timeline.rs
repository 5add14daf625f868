//! Any moment of a recorded run, fast: states kept while the log was read once, each the start of
//! a short fold.
//!
//! A state is bounded (see `RunState`), so that a fixed number of them is bounded, too; the longer
//! the log, the farther apart they lie.

use crate::event::{Event, EventKind, RunState};
use crate::store::{RunDir, StoreError};

/// States kept at most; one of 256 desktops has about a megabyte.
const STATES_KEPT: usize = 24;
/// Events between states at first.
const FIRST_SPACING: u64 = 2_048;

/// Where an iteration begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IterationMark {
    /// Counted from 0.
    pub iteration: u64,
    /// Its first event.
    pub seq: u64,
    /// When that was, ms since the run's first start.
    pub at_ms: u64,
}

/// A moment of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Before the event of this number.
    Seq(u64),
    /// After the last event up to this time, ms since the run's first start.
    Time(u64),
}

impl Moment {
    fn is_after(self, event: &Event) -> bool {
        match self {
            Moment::Seq(seq) => event.seq < seq,
            Moment::Time(at_ms) => event.at_ms <= at_ms,
        }
    }

    fn is_reached_by(self, state: &RunState) -> bool {
        match self {
            Moment::Seq(seq) => state.next_seq <= seq,
            Moment::Time(at_ms) => state.at_ms <= at_ms,
        }
    }
}

/// A log that was read once.
#[derive(Debug)]
pub struct Timeline {
    run: RunDir,
    states: Vec<RunState>,
    marks: Vec<IterationMark>,
    end_seq: u64,
    end_ms: u64,
}

impl Timeline {
    /// Reads the whole log.
    pub fn read(run: RunDir) -> Result<Self, StoreError> {
        let mut timeline = Self {
            states: vec![RunState::default()],
            marks: Vec::new(),
            end_seq: 0,
            end_ms: 0,
            run,
        };
        let mut spacing = FIRST_SPACING;
        let mut state = RunState::default();
        let mut since = 0;
        for event in timeline.run.read_events(0)? {
            let event = event?;
            if since >= spacing {
                timeline.states.push(state.clone());
                since = 0;
                if timeline.states.len() > STATES_KEPT {
                    let mut place = 0;
                    timeline.states.retain(|_| {
                        place += 1;
                        place % 2 == 1
                    });
                    spacing *= 2;
                }
            }
            timeline.note(&event);
            state.apply(&event);
            since += 1;
        }
        timeline.end_seq = state.next_seq;
        timeline.end_ms = state.at_ms;
        Ok(timeline)
    }

    fn note(&mut self, event: &Event) {
        if let EventKind::IterationStarted { iteration, .. } = event.kind {
            // An iteration that was begun anew begins where it was begun last.
            self.marks.retain(|mark| mark.iteration < iteration.0);
            self.marks.push(IterationMark {
                iteration: iteration.0,
                seq: event.seq,
                at_ms: event.at_ms,
            });
        }
    }

    /// The run as it was at a moment.
    pub fn state_at(&self, moment: Moment) -> Result<RunState, StoreError> {
        let nearest = self
            .states
            .iter()
            .rev()
            .find(|state| moment.is_reached_by(state));
        let mut state = nearest.cloned().unwrap_or_default();
        for event in self.run.read_events(state.next_seq)? {
            let event = event?;
            if !moment.is_after(&event) {
                break;
            }
            state.apply(&event);
        }
        Ok(state)
    }

    /// The log it is of.
    pub fn run(&self) -> &RunDir {
        &self.run
    }

    /// Where iterations begin, in order.
    pub fn marks(&self) -> &[IterationMark] {
        &self.marks
    }

    /// Number that the next event would have.
    pub fn end_seq(&self) -> u64 {
        self.end_seq
    }

    /// When the last event was, ms since the run's first start.
    pub fn end_ms(&self) -> u64 {
        self.end_ms
    }
}
