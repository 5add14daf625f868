//! Scores, flips and what the fold keeps of evaluations.

use crate::event::score::{
    count_fail_ends, flips, score_by_domain, score_trials, sign_test, wilson_interval,
};
use crate::event::*;
use crate::types::{EpisodeEnd, EpisodeId, PolicyVersion, Protocol, TaskId};

fn trial(name: &str, number: u32, end: Option<EpisodeEnd>, state_score: f32) -> TrialRow {
    TrialRow {
        task: TaskId(name.to_owned()),
        domain: name.split('/').next().unwrap().to_owned(),
        trial: number,
        episode: EpisodeId {
            incarnation: 0,
            number: u64::from(number),
        },
        end,
        state_score,
        infeasible: name.starts_with("fail"),
        steps: 3,
        error: end.is_none().then(|| "no answer".to_owned()),
    }
}

fn fold(kinds: impl IntoIterator<Item = EventKind>) -> RunState {
    let number = |(seq, kind)| Event {
        seq,
        at_ms: seq * 10,
        kind,
    };
    RunState::from_events(&(0..).zip(kinds).map(number).collect::<Vec<_>>())
}

fn queued(evaluation: u32) -> EventKind {
    EventKind::EvaluationQueued {
        evaluation,
        command: u64::from(evaluation) + 10,
        request: EvalRequest {
            tasks: "heldout".to_owned(),
            ..EvalRequest::default()
        },
    }
}

fn started(evaluation: u32, total: u32) -> EventKind {
    EventKind::EvaluationStarted {
        evaluation,
        name: "operator".to_owned(),
        request: EvalRequest::default(),
        manifest: Box::default(),
        total,
    }
}

fn finished(evaluation: u32, trial: TrialRow) -> EventKind {
    EventKind::TrialFinished { evaluation, trial }
}

#[test]
fn protocols_score_the_same_trials_differently() {
    let trials = [
        trial("a/1", 0, Some(EpisodeEnd::Finished), 1.0),
        trial("a/2", 0, Some(EpisodeEnd::StepLimit), 0.75),
        trial("fail/1", 0, Some(EpisodeEnd::StepLimit), 0.0),
        trial("fail/2", 0, Some(EpisodeEnd::DeclaredInfeasible), 0.0),
        trial("b/1", 0, None, 0.0),
    ];
    // Successes among the four scored trials, and the mean outcome.
    for (protocol, success, score) in [
        (Protocol::Standard, 0.75, 0.75),
        (Protocol::Hard, 0.5, 0.5),
        (Protocol::Plain, 0.75, 0.6875),
    ] {
        let scores = score_trials(&trials, protocol);
        assert_eq!(scores.all.success, success, "{protocol:?}");
        assert_eq!(scores.all.score, score, "{protocol:?}");
        assert_eq!((scores.all.n, scores.all.errors), (4, 1));
        assert_eq!((scores.feasible.n, scores.infeasible.n), (2, 2));
    }
    let domains = score_by_domain(&trials, Protocol::Hard);
    let found: Vec<_> = domains
        .iter()
        .map(|(name, score)| (name.as_str(), score.success, score.n, score.errors))
        .collect();
    let expected = [("a", 0.5, 2, 0), ("b", 0.0, 0, 1), ("fail", 0.5, 2, 0)];
    assert_eq!(found, expected);
    assert_eq!(domains["a"].interval, wilson_interval(1, 2));
    assert_eq!(count_fail_ends(&trials), (1, 0));
}

#[test]
fn flips_pair_trials_by_task_and_number() {
    let done = Some(EpisodeEnd::Finished);
    let first = [
        trial("a/1", 0, done, 0.0),
        trial("a/1", 1, done, 1.0),
        trial("a/2", 0, done, 0.0),
        trial("a/3", 0, None, 0.0),
    ];
    let second = [
        trial("a/2", 0, done, 1.0),
        trial("a/1", 1, done, 0.0),
        trial("a/1", 0, done, 1.0),
        trial("a/3", 0, done, 1.0),
    ];
    let found = flips(&first, &second, Protocol::Plain);
    assert_eq!((found.pairs, found.gained, found.lost), (3, 2, 1));
    let rows: Vec<_> = found
        .flips
        .iter()
        .map(|flip| (flip.task.0.as_str(), flip.trial, flip.gained))
        .collect();
    assert_eq!(
        rows,
        [("a/1", 0, true), ("a/1", 1, false), ("a/2", 0, true)]
    );
    assert_eq!(found.p, 1.0);
}

#[test]
fn the_sign_test_is_the_exact_binomial() {
    // python: scipy.stats.binomtest(min(k, n - k), n, 0.5).pvalue
    for (gained, lost, p) in [
        (0, 0, 1.0),
        (5, 0, 0.0625),
        (0, 6, 0.03125),
        (8, 2, 0.109_375),
        (15, 5, 0.041_389_465_332_031_25),
        (60, 40, 0.056_887_933_640_980_78),
        (5, 5, 1.0),
    ] {
        let found = sign_test(gained, lost);
        assert!((found - p).abs() < 1e-9, "{gained} {lost}: {found}");
    }
    assert!(sign_test(2000, 0) < 1e-300);
}

#[test]
fn unlike_conditions_are_named_and_weights_are_not() {
    let first = EvalManifest {
        temperature: F(0.6),
        seed: 1,
        weights: "00ff".to_owned(),
        policy: PolicyVersion(3),
        ..EvalManifest::default()
    };
    let second = EvalManifest {
        temperature: F(0.0),
        max_steps: 15,
        weights: "11ee".to_owned(),
        ..first.clone()
    };
    assert!(first.differences(&first).is_empty());
    let differences = first.differences(&second);
    let found: Vec<_> = differences
        .iter()
        .map(|one| (one.what.as_str(), one.first.as_str(), one.second.as_str()))
        .collect();
    assert_eq!(
        found,
        [("temperature", "0.6", "0"), ("step limit", "0", "15")]
    );
    assert!(!first.has_weights_of(&second));
}

#[test]
fn an_evaluation_is_followed_from_waiting_to_its_report() {
    let done = Some(EpisodeEnd::Finished);
    let report = EvalReport {
        evaluation: Some(1),
        ..EvalReport::default()
    };
    let mut kinds = vec![queued(1)];
    let one = |state: &RunState| state.evaluation(1).cloned().unwrap();
    let waiting = one(&fold(kinds.clone()));
    assert_eq!(waiting.status, EvaluationStatus::Waiting);
    assert_eq!(waiting.command, Some(11));

    kinds.extend([started(1, 2), finished(1, trial("a/1", 0, done, 1.0))]);
    let running = one(&fold(kinds.clone()));
    assert_eq!(running.status, EvaluationStatus::Running);
    assert_eq!(
        (running.done, running.total, running.trials.len()),
        (1, 2, 1)
    );

    // Cancelled and gone on with: what it had is told again, and counts once.
    kinds.push(EventKind::EvaluationCancelled {
        evaluation: 1,
        done: 1,
        reason: "as asked".to_owned(),
    });
    let cancelled = one(&fold(kinds.clone()));
    assert!(!cancelled.is_open() && cancelled.trials.len() == 1);
    kinds.extend([
        queued(1),
        started(1, 2),
        finished(1, trial("a/1", 0, done, 1.0)),
        finished(1, trial("a/2", 0, done, 0.0)),
        EventKind::EvalFinished(Box::new(report)),
    ]);
    let state = fold(kinds);
    let ended = one(&state);
    assert_eq!(ended.status, EvaluationStatus::Finished);
    assert_eq!((ended.done, ended.total), (2, 2));
    assert!(ended.has_all_trials() && ended.report.is_some());
    assert_eq!(state.evaluations.len(), 1);
}

#[test]
fn trials_of_old_evaluations_and_beyond_the_bound_are_let_go() {
    let done = Some(EpisodeEnd::Finished);
    let mut kinds = Vec::new();
    for number in 1..=20 {
        kinds.extend([
            started(number, 1),
            finished(number, trial("a/1", 0, done, 1.0)),
        ]);
    }
    kinds.extend((0..3000).map(|number| finished(20, trial("b/1", number, done, 0.0))));
    let state = fold(kinds);
    let kept = state
        .evaluations
        .iter()
        .filter(|one| !one.trials.is_empty());
    assert_eq!(kept.count(), 16);
    let last = state.evaluation(20).unwrap();
    assert_eq!((last.done, last.trials.len()), (3001, 2048));
    assert!(!last.has_all_trials());
}

#[test]
fn what_ran_when_the_engine_ended_is_cancelled_by_the_next_start() {
    let resumed = EventKind::RunResumed {
        from_iteration: crate::types::Iteration(0),
        discard_from_seq: 9,
        incarnation: 1,
    };
    let state = fold([queued(1), started(1, 4), queued(2), resumed]);
    assert!(state.evaluations.iter().all(|one| !one.is_open()));
}

#[test]
fn pinned_successes_stay_and_dropped_ones_go() {
    let task = TaskId("h2o".to_owned());
    let id = |number| EpisodeId {
        incarnation: 0,
        number,
    };
    let stored = |number, stored| EventKind::ReplayStored {
        task: task.clone(),
        episode: id(number),
        stored,
    };
    let pinned = |number| EventKind::StoredPinned {
        task: task.clone(),
        episode: id(number),
        pinned: true,
    };
    let state = fold([stored(1, 1), stored(2, 2), pinned(1), stored(3, 2)]);
    let of_task = |state: &RunState| -> Vec<(u64, bool)> {
        let successes = state.replay[&task].successes.iter();
        successes.map(|s| (s.episode.number, s.pinned)).collect()
    };
    assert_eq!(of_task(&state), [(1, true), (3, false)]);
    let dropped = EventKind::StoredDropped {
        task: task.clone(),
        episode: id(3),
    };
    let state = fold([stored(1, 1), stored(2, 2), pinned(1), stored(3, 2), dropped]);
    assert_eq!(of_task(&state), [(1, true)]);
}

type Change = &'static dyn Fn(&mut EvalRequest);

#[test]
fn requests_that_make_no_sense_say_what_would() {
    let good = EvalRequest {
        tasks: "heldout".to_owned(),
        ..EvalRequest::default()
    };
    good.check().unwrap();
    let changed = |change: &dyn Fn(&mut EvalRequest)| {
        let mut request = good.clone();
        change(&mut request);
        Command::Evaluate(request).check()
    };
    let cases: [(Change, &str); 6] = [
        (&|r| r.tasks.clear(), "name a task set"),
        (&|r| r.trials = 0, "1 to 1000 trials"),
        (&|r| r.temperature = f64::NAN, "between 0"),
        (&|r| r.when = EvalWhen::Now { desktops: 0 }, "at least 1"),
        (&|r| r.resume = Some(0), "numbered from 1"),
        (
            &|r| {
                r.weights = EvalWeights::Checkpoint {
                    path: String::new(),
                }
            },
            "folder",
        ),
    ];
    for (change, phrase) in cases {
        let told = changed(change).unwrap_err();
        assert!(told.contains(phrase), "{told}");
    }
    // What is gone on with brings its own values.
    changed(&|r| {
        r.tasks.clear();
        r.resume = Some(3);
    })
    .unwrap();
    for (low, high) in [(0.0, 0.3), (1.0, 0.3), (0.2, 0.0), (0.2, f64::NAN)] {
        assert!(Command::SetClip { low, high }.check().is_err());
    }
    assert!(Command::CancelEvaluation { evaluation: 0 }.check().is_err());
}
