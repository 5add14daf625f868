//! What trials add up to: scores by protocol and domain, and how two evaluations of the same
//! tasks differ. Pure, so that engine, command line and console agree to the last digit.

use std::collections::BTreeMap;

use crate::event::{ProtocolScore, Score, TrialRow};
use crate::types::{Protocol, TaskId};

/// An outcome above this is a success.
const SUCCESS_ABOVE: f32 = 0.5;

/// Scores under one protocol: all, feasible, infeasible.
pub fn score_trials(trials: &[TrialRow], protocol: Protocol) -> ProtocolScore {
    let score_of = |keep: &dyn Fn(&TrialRow) -> bool| {
        let kept = trials.iter().filter(|trial| keep(trial));
        score(&kept.map(|t| t.outcome(protocol)).collect::<Vec<_>>())
    };
    ProtocolScore {
        all: score_of(&|_| true),
        feasible: score_of(&|trial| !trial.infeasible),
        infeasible: score_of(&|trial| trial.infeasible),
    }
}

/// Scores of each domain under one protocol.
pub fn score_by_domain<'a>(
    trials: impl IntoIterator<Item = &'a TrialRow>,
    protocol: Protocol,
) -> BTreeMap<String, Score> {
    score_by(trials, protocol, |trial| trial.domain.clone())
}

/// Scores of each family of tasks: of those whose ids agree up to the last `/`.
pub fn score_by_family<'a>(
    trials: impl IntoIterator<Item = &'a TrialRow>,
    protocol: Protocol,
) -> BTreeMap<String, Score> {
    score_by(trials, protocol, |trial| {
        let id = trial.task.0.as_str();
        id.rsplit_once('/')
            .map_or(id, |(family, _)| family)
            .to_owned()
    })
}

fn score_by<'a>(
    trials: impl IntoIterator<Item = &'a TrialRow>,
    protocol: Protocol,
    key: impl Fn(&TrialRow) -> String,
) -> BTreeMap<String, Score> {
    let mut outcomes: BTreeMap<String, Vec<Option<f32>>> = BTreeMap::new();
    for trial in trials {
        let of_key = outcomes.entry(key(trial)).or_default();
        of_key.push(trial.outcome(protocol));
    }
    let scored = |(key, outcomes): (String, Vec<_>)| (key, score(&outcomes));
    outcomes.into_iter().map(scored).collect()
}

/// Trials whose last action declared the task infeasible: rightly, and wrongly.
pub fn count_fail_ends<'a>(trials: impl IntoIterator<Item = &'a TrialRow>) -> (u32, u32) {
    let ended = trials.into_iter().filter(|trial| trial.ended_by_fail());
    ended.fold((0, 0), |(right, wrong), trial| {
        let is_right = u32::from(trial.infeasible);
        (right + is_right, wrong + 1 - is_right)
    })
}

/// A trial that one evaluation solved and the other did not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flip {
    /// Its task.
    pub task: TaskId,
    /// What the task is about.
    pub domain: String,
    /// Its number among the task's trials.
    pub trial: u32,
    /// Whether the second evaluation solved it.
    pub gained: bool,
}

/// Two evaluations, trial by trial.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Flips {
    /// Trials scored in both.
    pub pairs: u32,
    /// Those that only the second solved.
    pub gained: u32,
    /// Those that only the first solved.
    pub lost: u32,
    /// Both, in the order of tasks and trials.
    pub flips: Vec<Flip>,
    /// Two-sided p of the sign test over gained and lost.
    pub p: f64,
}

/// Compares trials of the same task and number; those that only one of the two scored count
/// nowhere.
pub fn flips<'a>(
    first: impl IntoIterator<Item = &'a TrialRow>,
    second: impl IntoIterator<Item = &'a TrialRow>,
    protocol: Protocol,
) -> Flips {
    let solved = |trial: &TrialRow| trial.outcome(protocol).map(|one| one > SUCCESS_ABOVE);
    let before: BTreeMap<(&TaskId, u32), bool> = first
        .into_iter()
        .filter_map(|trial| Some(((&trial.task, trial.trial), solved(trial)?)))
        .collect();
    let mut found = Flips::default();
    for trial in second {
        let old = before.get(&(&trial.task, trial.trial));
        let (Some(old), Some(new)) = (old, solved(trial)) else {
            continue;
        };
        found.pairs += 1;
        if *old == new {
            continue;
        }
        found.gained += u32::from(new);
        found.lost += u32::from(!new);
        found.flips.push(Flip {
            task: trial.task.clone(),
            domain: trial.domain.clone(),
            trial: trial.trial,
            gained: new,
        });
    }
    found
        .flips
        .sort_by(|a, b| (&a.task, a.trial).cmp(&(&b.task, b.trial)));
    found.p = sign_test(found.gained, found.lost);
    found
}

/// Two-sided p of seeing so uneven a split of gains and losses if each were a fair coin's.
///
/// Source: the exact binomial (sign) test; the same as McNemar's exact test on paired outcomes.
pub fn sign_test(gained: u32, lost: u32) -> f64 {
    let (n, k) = (gained + lost, gained.min(lost));
    // From 2^-n upwards in logarithms, so that many pairs do not underflow.
    let mut ln_term = -f64::from(n) * std::f64::consts::LN_2;
    let mut tail = 0.0;
    for i in 0..=k {
        tail += ln_term.exp();
        ln_term += (f64::from(n - i) / f64::from(i + 1)).ln();
    }
    (2.0 * tail).min(1.0)
}

/// Figures of outcomes; `None` is a trial that an error ended.
pub fn score(outcomes: &[Option<f32>]) -> Score {
    let scored = || outcomes.iter().flatten();
    let (n, all) = (scored().count() as u64, outcomes.len() as u64);
    let errors = all - n;
    // From 0: the empty sum of floats is -0, which would be printed.
    let sum = scored().fold(0.0, |sum, outcome| sum + f64::from(*outcome));
    let successes = scored().filter(|outcome| **outcome > SUCCESS_ABOVE).count() as u64;
    Score {
        score: sum / n.max(1) as f64,
        success: successes as f64 / n.max(1) as f64,
        n,
        interval: wilson_interval(successes, n),
        errors,
        score_bounds: bounds(sum, errors, all),
        success_bounds: bounds(successes as f64, errors, all),
    }
}

/// The mean over `all` trials whose outcomes add up to `sum`, if each of the `errors` among them
/// had been worth 0, and if each had been worth 1.
fn bounds(sum: f64, errors: u64, all: u64) -> (f64, f64) {
    if all == 0 {
        return (0.0, 1.0);
    }
    (sum / all as f64, (sum + errors as f64) / all as f64)
}

/// 95 % interval of a share of `successes` among `n`.
///
/// Source: Wilson, "Probable inference", JASA 22 (1927), with z = 1.959964.
pub fn wilson_interval(successes: u64, n: u64) -> (f64, f64) {
    if n == 0 {
        return (0.0, 1.0);
    }
    let (z, n) = (1.959_964_f64, n as f64);
    let share = successes as f64 / n;
    let scale = 1.0 + z * z / n;
    let center = (share + z * z / (2.0 * n)) / scale;
    let half = z / scale * (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt();
    ((center - half).max(0.0), (center + half).min(1.0))
}
