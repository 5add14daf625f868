//! Which picture is sent next, how good, and when: text goes first, pictures have a share of what
//! the line carries, and get worse before they get in the way.

use super::slots::{Slots, Wanted};
use super::{PictureCache, PictureState};

/// Part of the line that pictures may take.
const SHARE: f64 = 0.6;
/// Bytes a second where the line's rate is not known.
const UNKNOWN_RATE: f64 = 60_000.0;
/// Bytes that may be saved up.
const BURST_S: f64 = 0.5;
/// A tile is renewed at most so often, ms; the picture looked at, at the best and the worst.
const TILE_MS: f64 = 1_000.0;
const FOCUS_MS: (f64, f64) = (500.0, 2_000.0);
/// Waiting behind other bytes for so long, ms, is too long.
const QUEUE_MS: f64 = 150.0;
/// So long without that, ms, and pictures may get better.
const GOOD_MS: f64 = 10_000.0;

/// How good pictures are, from the best down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Quality {
    /// Of characters.
    Cells,
    /// 160 pixels across, 16 colors.
    Low,
    /// 160 pixels across, 64 colors.
    Middle,
    /// 320 pixels across, 64 colors.
    High,
    /// As fine as the room allows, 64 colors.
    Full,
}

/// All, worst first.
const LADDER: [Quality; 5] = [
    Quality::Cells,
    Quality::Low,
    Quality::Middle,
    Quality::High,
    Quality::Full,
];

impl Quality {
    /// Pixels across at most: the picture looked at, and a tile.
    pub fn most_px(self, is_focus: bool) -> u16 {
        match (self, is_focus) {
            (Quality::Full, true) => 1_280,
            (Quality::High, true) => 320,
            (Quality::Full | Quality::High, false) | (_, true) => 160,
            (_, false) => 110,
        }
    }

    /// Colors.
    pub fn colors(self, is_focus: bool) -> usize {
        match (self, is_focus) {
            (Quality::Full | Quality::High, _) | (Quality::Middle, true) => 64,
            _ => 16,
        }
    }

    /// The best that a line of this rate, bytes a second, carries.
    fn for_rate(rate: Option<f64>) -> Self {
        match rate {
            None => Quality::High,
            Some(rate) if rate >= 400_000.0 => Quality::Full,
            Some(rate) if rate >= 100_000.0 => Quality::High,
            Some(rate) if rate >= 40_000.0 => Quality::Middle,
            Some(rate) if rate >= 8_000.0 => Quality::Low,
            Some(_) => Quality::Cells,
        }
    }

    fn worse(self) -> Self {
        let place = LADDER.iter().position(|known| *known == self).unwrap_or(0);
        LADDER[place.saturating_sub(1)]
    }

    fn better(self) -> Self {
        let place = LADDER.iter().position(|known| *known == self).unwrap_or(0);
        LADDER[(place + 1).min(LADDER.len() - 1)]
    }
}

/// What the line is like now.
#[derive(Clone, Copy, Debug, Default)]
pub struct LineState {
    /// Bytes a second, if known.
    pub goodput: Option<f64>,
    /// Whether that is only a lower bound.
    pub is_bound: bool,
    /// Time behind other bytes, ms.
    pub queueing_ms: f64,
    /// How many answers that was measured on.
    pub answers: u64,
}

/// Decides about pictures. Times are milliseconds of one clock.
#[derive(Debug)]
pub struct Schedule {
    cap: f64,
    tokens: f64,
    refilled_ms: f64,
    quality: Quality,
    worsened_ms: f64,
    /// Answers that the line was last judged by.
    judged: u64,
    /// When each slot was last sent something.
    sent_ms: Vec<f64>,
}

impl Default for Schedule {
    fn default() -> Self {
        Self {
            cap: f64::INFINITY,
            tokens: UNKNOWN_RATE * BURST_S,
            refilled_ms: 0.0,
            quality: Quality::High,
            worsened_ms: 0.0,
            judged: 0,
            sent_ms: Vec::new(),
        }
    }
}

impl Schedule {
    /// How good pictures are.
    pub fn quality(&self) -> Quality {
        self.quality
    }

    /// Whether they are worse than High for the line's sake.
    pub fn is_degraded(&self) -> bool {
        self.quality < Quality::High
    }

    /// Sets the most bytes a second that pictures take.
    pub fn set_cap(&mut self, cap: f64) {
        self.cap = cap.max(0.0);
    }

    /// Lets time pass on a line.
    pub fn tick(&mut self, now_ms: f64, line: LineState) {
        let rate = self.rate(line);
        let passed_s = (now_ms - self.refilled_ms).max(0.0) / 1_000.0;
        self.refilled_ms = now_ms;
        self.tokens = (self.tokens + rate * passed_s).min(rate * BURST_S);
        let known = line.goodput.filter(|_| !line.is_bound);
        let best = Quality::for_rate(known);
        // A figure is judged once: where nothing is sent it does not change.
        let is_fresh = std::mem::replace(&mut self.judged, line.answers) != line.answers;
        let is_slow = line.queueing_ms > QUEUE_MS && is_fresh;
        let since_ms = now_ms - self.worsened_ms;
        let is_worse = is_slow && since_ms > QUEUE_MS * 4.0 && self.quality > Quality::Low;
        if is_worse || self.quality > best {
            self.quality = self.quality.worse().min(best);
            self.worsened_ms = now_ms;
        } else if !is_slow && self.quality < best && since_ms > GOOD_MS {
            self.quality = self.quality.better();
            self.worsened_ms = now_ms;
        }
    }

    fn rate(&self, line: LineState) -> f64 {
        let known = line.goodput.filter(|_| !line.is_bound);
        // A bound is at least that.
        let least = line.goodput.unwrap_or(0.0).max(UNKNOWN_RATE);
        (SHARE * known.unwrap_or(least)).min(self.cap)
    }

    /// The picture to send next: the one looked at, then what is not shown at all, then what has
    /// waited for longest. `None` if there is none, or no room for one.
    pub fn next<'a>(
        &self,
        now_ms: f64,
        wanted: &'a [Wanted],
        slots: &Slots,
        cache: &PictureCache,
    ) -> Option<&'a Wanted> {
        if self.tokens <= 0.0 {
            return None;
        }
        let due = wanted.iter().filter(|wanted| {
            let is_there = slots
                .get(wanted.slot)
                .is_some_and(|placed| placed.is(wanted));
            let is_ready = matches!(cache.get(&wanted.key), Some(PictureState::Ready(_)));
            !is_there && is_ready && self.may_renew(now_ms, wanted)
        });
        due.min_by(|one, other| {
            let rank = |wanted: &Wanted| (!wanted.is_focus, wanted.is_update);
            let by_age = self.sent_ms(one.slot).total_cmp(&self.sent_ms(other.slot));
            rank(one).cmp(&rank(other)).then(by_age)
        })
    }

    fn may_renew(&self, now_ms: f64, wanted: &Wanted) -> bool {
        let least_ms = match (wanted.is_focus, self.quality >= Quality::High) {
            (true, true) => FOCUS_MS.0,
            (true, false) => FOCUS_MS.1,
            (false, _) => TILE_MS,
        };
        !wanted.is_update || now_ms >= self.sent_ms(wanted.slot) + least_ms
    }

    fn sent_ms(&self, slot: usize) -> f64 {
        self.sent_ms.get(slot).copied().unwrap_or(f64::NEG_INFINITY)
    }

    /// A slot was sent so many bytes.
    pub fn sent(&mut self, now_ms: f64, slot: usize, bytes: usize) {
        self.tokens -= bytes as f64;
        if self.sent_ms.len() <= slot {
            self.sent_ms.resize(slot + 1, f64::NEG_INFINITY);
        }
        self.sent_ms[slot] = now_ms;
    }
}
