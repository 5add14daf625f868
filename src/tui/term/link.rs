//! How far the terminal has come: each frame ends with a question, its answer says that all of it
//! arrived. From that: round trip, goodput, and when the next frame may go.

use std::collections::VecDeque;

/// Frames below this may go two at a time.
const SMALL_BYTES: usize = 2_000;
/// Text is drawn at most so often, ms between frames; on a distant terminal less.
const TEXT_MS: u64 = 100;
const DISTANT_TEXT_MS: u64 = 250;
/// A terminal is distant from this round trip on, ms.
const DISTANT_MS: f64 = 150.0;
/// An answer is late after this, ms, or after four round trips.
const LATE_MS: u64 = 1_000;
/// Before the first answer it is late after this, ms: every terminal that answers at all
/// answers the first questions soon.
const FIRST_LATE_MS: u64 = 400;
/// A terminal that answered before may stand still; it is waited for so long, ms.
const STANDSTILL_MS: u64 = 10_000;
/// Rate assumed of a terminal that never answers, bytes a second.
const ASSUMED_RATE: f64 = 50_000.0;
/// Frames of so many bytes tell the rate.
const TELLING_BYTES: usize = 1_500;
/// Weight of a new measurement.
const WEIGHT: f64 = 1.0 / 8.0;
/// Frames whose answers are awaited, at most.
const MAX_FLIGHTS: usize = 2;

/// How the next frame is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// By answers.
    Answers,
    /// By time alone: the terminal does not answer.
    Time,
}

#[derive(Clone, Copy, Debug)]
struct Flight {
    bytes: usize,
    sent_ms: f64,
}

/// The line to the terminal. Times are milliseconds of one clock.
#[derive(Debug)]
pub struct Link {
    flights: VecDeque<Flight>,
    round_trip_ms: Option<f64>,
    least_ms: f64,
    goodput: Option<f64>,
    is_goodput_a_bound: bool,
    pace: Pace,
    has_answered: bool,
    /// Answers that were measured.
    answers: u64,
    /// How often the oldest frame's question was asked again.
    asked_again: u32,
    /// When a terminal that does not answer will have read all, by the assumed rate.
    clear_ms: f64,
}

impl Default for Link {
    fn default() -> Self {
        Self {
            flights: VecDeque::new(),
            round_trip_ms: None,
            least_ms: f64::INFINITY,
            goodput: None,
            is_goodput_a_bound: true,
            pace: Pace::Answers,
            has_answered: false,
            answers: 0,
            asked_again: 0,
            clear_ms: 0.0,
        }
    }
}

impl Link {
    /// How frames are timed.
    pub fn pace(&self) -> Pace {
        self.pace
    }

    /// From question to answer, ms, smoothed.
    pub fn round_trip_ms(&self) -> Option<f64> {
        self.round_trip_ms
    }

    /// Bytes a second that arrive, smoothed; `None` before the first frame that tells.
    pub fn goodput(&self) -> Option<f64> {
        self.goodput
    }

    /// Whether the goodput is only what was seen at least.
    pub fn is_goodput_a_bound(&self) -> bool {
        self.is_goodput_a_bound
    }

    /// Time that the newest answer waited behind other bytes, ms.
    pub fn queueing_ms(&self) -> f64 {
        match self.round_trip_ms {
            Some(round_trip) => (round_trip - self.least_ms).max(0.0),
            None => 0.0,
        }
    }

    /// Answers so far: what the figures were measured on.
    pub fn answers(&self) -> u64 {
        self.answers
    }

    /// Bytes whose arrival is not known yet.
    pub fn unanswered_bytes(&self) -> usize {
        self.flights.iter().map(|flight| flight.bytes).sum()
    }

    /// Least time between frames that no key asked for, ms.
    pub fn text_ms(&self) -> u64 {
        let is_distant = self.round_trip_ms.is_some_and(|ms| ms > DISTANT_MS);
        if is_distant || self.pace == Pace::Time {
            DISTANT_TEXT_MS
        } else {
            TEXT_MS
        }
    }

    /// Whether a frame may go: none is on its way, or one small one.
    pub fn has_room(&self, now_ms: f64) -> bool {
        match self.pace {
            Pace::Time => now_ms >= self.clear_ms,
            Pace::Answers => {
                self.flights.len() < MAX_FLIGHTS && self.unanswered_bytes() < SMALL_BYTES
            }
        }
    }

    /// When a frame may go, ms; `None` if only an answer can tell.
    pub fn free_ms(&self, now_ms: f64) -> Option<f64> {
        match self.pace {
            Pace::Time => Some(now_ms.max(self.clear_ms)),
            Pace::Answers => self.has_room(now_ms).then_some(now_ms),
        }
    }

    /// A frame was handed to the writer.
    pub fn sent(&mut self, now_ms: f64, bytes: usize) {
        self.clear_ms = self.clear_ms.max(now_ms) + bytes as f64 / ASSUMED_RATE * 1_000.0;
        if self.pace == Pace::Answers {
            self.flights.push_back(Flight {
                bytes,
                sent_ms: now_ms,
            });
        }
    }

    /// The terminal answered.
    pub fn answered(&mut self, now_ms: f64) {
        self.has_answered = true;
        if self.pace == Pace::Time {
            // It does answer after all; what was on its way has long arrived.
            self.pace = Pace::Answers;
            self.asked_again = 0;
            return;
        }
        self.asked_again = 0;
        let Some(flight) = self.flights.pop_front() else {
            return;
        };
        let took_ms = (now_ms - flight.sent_ms).max(0.1);
        self.answers += 1;
        self.least_ms = self.least_ms.min(took_ms);
        self.round_trip_ms = Some(smooth(self.round_trip_ms, took_ms));
        self.measure(flight.bytes, took_ms);
    }

    /// A frame of some size tells the rate: exactly if it took clearly longer than an empty one,
    /// else as a lower bound.
    fn measure(&mut self, bytes: usize, took_ms: f64) {
        if bytes < TELLING_BYTES {
            return;
        }
        let transfer_ms = took_ms - self.least_ms;
        if transfer_ms > 0.25 * self.least_ms + 1.0 {
            let rate = bytes as f64 / transfer_ms * 1_000.0;
            let before = self.goodput.filter(|_| !self.is_goodput_a_bound);
            self.goodput = Some(smooth(before, rate));
            self.is_goodput_a_bound = false;
        } else if self.is_goodput_a_bound {
            let bound = bytes as f64 / took_ms * 1_000.0;
            self.goodput = Some(self.goodput.map_or(bound, |rate| rate.max(bound)));
        }
    }

    /// When `look` is due, ms.
    pub fn due_ms(&self) -> Option<f64> {
        let flight = self.flights.front()?;
        Some(flight.sent_ms + self.late_ms() * f64::from(1 + self.asked_again))
    }

    fn late_ms(&self) -> f64 {
        let usual = 4.0 * self.round_trip_ms.unwrap_or(0.0);
        let least = match (self.has_answered, self.asked_again) {
            (false, _) => FIRST_LATE_MS,
            (true, 0) => LATE_MS,
            (true, _) => STANDSTILL_MS,
        };
        usual.max(least as f64)
    }

    /// Looks for answers that are late: asks once more (`true`), then goes on by time.
    pub fn look(&mut self, now_ms: f64) -> bool {
        if self.due_ms().is_none_or(|due| now_ms < due) {
            return false;
        }
        if self.asked_again == 0 {
            self.asked_again = 1;
            return true;
        }
        self.pace = Pace::Time;
        self.flights.clear();
        self.asked_again = 0;
        self.clear_ms = now_ms;
        false
    }

    /// Forgets what is on its way, as after a suspension.
    pub fn restart(&mut self) {
        self.flights.clear();
        self.asked_again = 0;
    }
}

fn smooth(before: Option<f64>, now: f64) -> f64 {
    before.map_or(now, |before| before + WEIGHT * (now - before))
}
