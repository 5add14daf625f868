//! Latencies and faults of one simulated desktop, drawn from its episode's seed.
//!
//! Every call draws the same count of numbers whatever comes of them, so that changing one
//! probability of a profile leaves all other draws as they were.

use std::f64::consts::TAU;
use std::time::Duration;

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde::Deserialize;

use crate::config::simulated::{FaultLaw, LatencyLaw};

/// What comes of one call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Luck {
    /// How long it takes.
    pub elapsed: Duration,
    /// What goes wrong.
    pub fault: Option<Fault>,
}

/// What can go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// No answer any more.
    Hang,
    /// The desktop is gone.
    Crash,
    /// The picture is black.
    BlackScreen,
    /// The evaluator is slow.
    SlowEvaluator,
}

/// The random numbers of one episode's desktop.
pub struct Fortune {
    rng: Pcg64Mcg,
}

impl Fortune {
    /// Fortune of one episode.
    pub fn new(seed: u64) -> Self {
        Self {
            rng: Pcg64Mcg::seed_from_u64(seed),
        }
    }

    /// Draws what comes of the next call.
    pub fn draw(&mut self, latency: &LatencyLaw, faults: &FaultLaw) -> Luck {
        let [hang, crash, black, slow, tail, radius, angle] =
            std::array::from_fn(|_| self.rng.random::<f64>());
        let fault = if hang < faults.hang {
            Some(Fault::Hang)
        } else if crash < faults.crash {
            Some(Fault::Crash)
        } else if black < faults.black_screen {
            Some(Fault::BlackScreen)
        } else if slow < faults.slow_evaluator {
            Some(Fault::SlowEvaluator)
        } else {
            None
        };
        // Box and Muller's transform; 1 - radius keeps the logarithm's argument above 0.
        let normal = (-2.0 * (1.0 - radius).ln()).sqrt() * (TAU * angle).cos();
        let factor = if tail < latency.tail_probability {
            latency.tail_factor
        } else {
            1.0
        };
        let seconds = latency.median_s * (latency.sigma * normal).exp() * factor;
        Luck {
            elapsed: duration(seconds),
            fault,
        }
    }
}

/// A duration of that many seconds; what is no time or beyond all bounds becomes 0 or a year.
pub fn duration(seconds: f64) -> Duration {
    const YEAR_S: f64 = 365.0 * 86_400.0;
    Duration::from_secs_f64(if seconds.is_nan() {
        0.0
    } else {
        seconds.clamp(0.0, YEAR_S)
    })
}
