//! `[env.simulated]`: how slow and how unreliable the simulated desktops are. All of it happens
//! on the run's virtual clock and is drawn from the episode's seed; nothing ever sleeps.

use serde::{Deserialize, Serialize};

/// `[env.simulated]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SimulatedConfig {
    /// Screen pixels of a logical pixel, per axis; 0 keeps the task's own.
    pub ui_scale: u32,
    /// Seconds after which a desktop that has not answered is given up.
    pub deadline_s: f64,
    /// Starting a desktop and bringing it to the task's state.
    pub reset_latency: LatencyLaw,
    /// One action and the picture after it.
    pub step_latency: LatencyLaw,
    /// One question of the evaluator.
    pub evaluate_latency: LatencyLaw,
    /// What goes wrong, and how often.
    pub faults: FaultLaw,
}

/// How long a call takes: log-normal, now and then much longer. `sigma = 0` is a constant.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LatencyLaw {
    /// Half of the calls take longer, in seconds.
    pub median_s: f64,
    /// Standard deviation of the logarithm.
    pub sigma: f64,
    /// Share of calls in the tail, 0 to 1.
    pub tail_probability: f64,
    /// How many times longer those take.
    pub tail_factor: f64,
}

/// Probabilities of faults, each per call, 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultLaw {
    /// The desktop never answers again, until it is reset.
    pub hang: f64,
    /// The desktop goes away, until it is reset.
    pub crash: f64,
    /// One screenshot is black.
    pub black_screen: f64,
    /// The evaluator takes `slow_factor` times longer.
    pub slow_evaluator: f64,
    /// How many times longer.
    pub slow_factor: f64,
}

impl LatencyLaw {
    /// A call that takes no time.
    pub const NONE: LatencyLaw = LatencyLaw {
        median_s: 0.0,
        sigma: 0.0,
        tail_probability: 0.0,
        tail_factor: 1.0,
    };

    /// What a call takes on average, s: the mean of the log-normal, with its tail.
    pub fn mean_s(&self) -> f64 {
        let tail = 1.0 + self.tail_probability * (self.tail_factor - 1.0);
        self.median_s * (self.sigma * self.sigma / 2.0).exp() * tail
    }
}

impl FaultLaw {
    /// Nothing goes wrong.
    pub const NONE: FaultLaw = FaultLaw {
        hang: 0.0,
        crash: 0.0,
        black_screen: 0.0,
        slow_evaluator: 0.0,
        slow_factor: 1.0,
    };
}

impl SimulatedConfig {
    /// Desktops that answer at once and never fail, for tests and for cloning.
    pub const INSTANT: SimulatedConfig = SimulatedConfig {
        ui_scale: 0,
        deadline_s: 60.0,
        reset_latency: LatencyLaw::NONE,
        step_latency: LatencyLaw::NONE,
        evaluate_latency: LatencyLaw::NONE,
        faults: FaultLaw::NONE,
    };
}
