//! The boundaries of the method, as tables. Expected values without a recipe beside them are
//! exact arithmetic.

use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;

use super::*;
use crate::config::{Denominator, FormatScope, OldLogprobs, ReplacedMember, ReplayConfig};
use crate::types::{Episode, EpisodeEnd, EpisodeId, Iteration, Reward, TaskId, TokenStream};

const EPS: f32 = 1e-6;

fn config() -> ReplayConfig {
    ReplayConfig {
        enabled: true,
        capacity: 8,
        std_below: 0.05,
        mean_below: 0.2,
        insert_above: 0.1,
        replaced: ReplacedMember::Random,
        max_age_iterations: 0,
        old_logprobs: OldLogprobs::Recomputed,
        prefill: String::new(),
    }
}

fn episode(number: u64, outcome: f32, end: EpisodeEnd) -> Episode {
    Episode {
        id: EpisodeId {
            incarnation: 0,
            number,
        },
        task: TaskId("t".to_owned()),
        group: None,
        sample: 0,
        seed: 0,
        steps: Vec::new(),
        final_screenshot: None,
        tokens: TokenStream::default(),
        end,
        state_score: outcome,
        infeasible: false,
        reward: Reward {
            outcome,
            format: 0.0,
        },
        human_touched: false,
        branched_from: None,
    }
}

#[test]
fn advantages_of_binary_groups_are_the_references() {
    // python: r = torch.tensor([1.]*k + [0.]*(8-k)); (r - r.mean()) / (r.std() + 1e-6)
    let table = [
        (1, 2.474_867, -0.353_553),
        (2, 1.620_182, -0.540_061),
        (3, 1.207_612, -0.724_567),
        (4, 0.935_413, -0.935_413),
        (5, 0.724_567, -1.207_612),
        (7, 0.353_553, -2.474_867),
    ];
    for (successes, high, low) in table {
        let rewards: Vec<f32> = (0..8).map(|i| f32::from(u8::from(i < successes))).collect();
        let found = advantages(&rewards, EPS);
        assert!((found[0] - high).abs() < 1e-4, "{successes}: {found:?}");
        assert!((found[7] - low).abs() < 1e-4, "{successes}: {found:?}");
    }
}

#[test]
fn equal_rewards_give_exact_zeros() {
    for value in [0.0_f32, 0.7, 0.1, 1.0, -0.5] {
        assert_eq!(advantages(&[value; 8], EPS), vec![0.0; 8]);
        assert_eq!(group_std(&[value; 8]), 0.0);
    }
    assert_eq!(advantages(&[1.0], EPS), vec![0.0]);
    assert_eq!(advantages(&[], EPS), Vec::<f32>::new());
}

#[test]
fn lone_format_failure_reinforces_failures_only_with_scope_always() {
    let mut rewards = vec![
        Reward {
            outcome: 0.0,
            format: 0.0
        };
        7
    ];
    rewards.push(Reward {
        outcome: 0.0,
        format: -1.0,
    });
    let always = advantages(&group_rewards(&rewards, 0.5, FormatScope::Always), EPS);
    assert!((always[0] - 0.353_55).abs() < 1e-4 && (always[7] + 2.474_87).abs() < 1e-4);
    let signal = advantages(&group_rewards(&rewards, 0.5, FormatScope::Signal), EPS);
    assert_eq!(signal, vec![0.0; 8]);
    rewards[0].outcome = 1.0;
    let with_signal = group_rewards(&rewards, 0.5, FormatScope::Signal);
    assert_eq!(with_signal[7], -0.5);
}

#[test]
fn loss_at_every_corner_of_its_clips() {
    let params = LossParams {
        clip_low: 0.2,
        clip_high: 0.3,
        clip_dual: 3.0,
    };
    // (ratio, advantage) -> (loss, clipped high, clipped low)
    let table = [
        (1.0, 1.0, -1.0, false, false),
        (1.2, 1.0, -1.2, false, false),
        (1.5, 1.0, -1.3, true, false),
        (0.5, 1.0, -0.5, false, false),
        (1.0, -1.0, 1.0, false, false),
        (0.5, -1.0, 0.8, false, true),
        (1.5, -1.0, 1.5, false, false),
        (2.9, -1.0, 2.9, false, false),
        (5.0, -1.0, 3.0, false, false),
        (5.0, -2.0, 6.0, false, false),
        (5.0, 0.0, 0.0, false, false),
    ];
    for (ratio, advantage, loss, high, low) in table {
        let found = token_loss(f64::ln(ratio), 0.0, advantage, params);
        assert!(
            (found.loss - loss).abs() < 1e-9,
            "ratio {ratio}, A {advantage}: {found:?}"
        );
        assert_eq!(
            (found.clipped_high, found.clipped_low),
            (high, low),
            "{ratio} {advantage}"
        );
    }
    assert!(token_loss(1000.0, 0.0, 1.0, params).loss.is_finite());
    assert!(token_loss(1000.0, 0.0, -1.0, params).loss.is_finite());
}

#[test]
fn weights_follow_their_denominator() {
    let (tokens, signal) = ([10, 20, 40], [true, true, false]);
    let check = |denominator, expected: [f32; 3]| {
        for (found, wanted) in weights(&tokens, &signal, denominator).iter().zip(expected) {
            assert!((found - wanted).abs() < 1e-7, "{denominator:?}");
        }
    };
    check(
        Denominator::Dispatched,
        [1.0 / 30.0, 1.0 / 60.0, 1.0 / 120.0],
    );
    check(Denominator::Signal, [1.0 / 20.0, 1.0 / 40.0, 1.0 / 80.0]);
    check(Denominator::TokenMean, [1.0 / 30.0; 3]);
}

#[test]
fn minibatches_keep_groups_whole() {
    assert_eq!(
        minibatches(&[2, 2, 2, 2], 2),
        vec![vec![0, 1, 2, 3], vec![4, 5, 6, 7]]
    );
    assert_eq!(
        minibatches(&[3, 1, 2], 2),
        vec![vec![0, 1, 2, 3], vec![4, 5]]
    );
    assert_eq!(minibatches(&[2], 2), vec![vec![0, 1]]);
    assert!(minibatches(&[], 2).is_empty());
    let all: Vec<usize> = minibatches(&[8; 7], 3).concat();
    assert_eq!(all, (0..56).collect::<Vec<_>>());
}

#[test]
fn replay_triggers_at_its_boundaries() {
    let mut replay = Replay::default();
    assert!(replay.insert(
        &episode(1, 1.0, EpisodeEnd::Finished),
        Iteration(0),
        &config()
    ));
    let task = TaskId("t".to_owned());
    let ok = |values: &[f32]| values.iter().map(|v| Some(*v)).collect::<Vec<_>>();
    let table: [(&str, Vec<Option<f32>>, bool); 9] = [
        ("all zero", ok(&[0.0; 8]), true),
        (
            "eight times 0.15: low mean, no spread",
            ok(&[0.15; 8]),
            true,
        ),
        ("mean at the bound", ok(&[0.2; 8]), false),
        (
            "one success",
            ok(&[1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]),
            false,
        ),
        ("population std just above 0.05", ok(&[0.11, 0.0]), false),
        (
            "population std just below 0.05, Bessel above",
            ok(&[0.09, 0.0]),
            true,
        ),
        ("all pass", ok(&[1.0; 8]), false),
        (
            "errors do not count",
            vec![None, Some(0.0), Some(0.0)],
            true,
        ),
        ("one valid member", vec![None, Some(0.0), None], false),
    ];
    for (name, outcomes, expected) in table {
        let mut rng = Pcg64Mcg::seed_from_u64(1);
        let drawn = replay.draw(&task, &outcomes, Iteration(1), &config(), &mut rng);
        assert_eq!(drawn.is_some(), expected, "{name}");
        if let Some(injection) = drawn {
            assert!(
                outcomes[injection.member].is_some(),
                "{name}: a failed member was replaced"
            );
        }
    }
}

#[test]
fn replay_replaces_a_random_valid_member_or_the_first() {
    let mut replay = Replay::default();
    replay.insert(
        &episode(1, 1.0, EpisodeEnd::Finished),
        Iteration(0),
        &config(),
    );
    let outcomes = [None, Some(0.0), Some(0.0), Some(0.0)];
    let members = |config: &ReplayConfig| -> std::collections::BTreeSet<usize> {
        let task = TaskId("t".to_owned());
        (0..64)
            .filter_map(|seed| {
                let mut rng = Pcg64Mcg::seed_from_u64(seed);
                replay.draw(&task, &outcomes, Iteration(1), config, &mut rng)
            })
            .map(|injection| injection.member)
            .collect()
    };
    assert_eq!(members(&config()), [1, 2, 3].into());
    let first = ReplayConfig {
        replaced: ReplacedMember::First,
        ..config()
    };
    assert_eq!(members(&first), [1].into());
}

#[test]
fn replay_stores_only_worthy_episodes_first_in_first_out() {
    let mut replay = Replay::default();
    let task = TaskId("t".to_owned());
    let malformed = episode(0, 1.0, EpisodeEnd::Malformed);
    let at_bound = episode(0, 0.1, EpisodeEnd::Finished);
    let mut touched = episode(0, 1.0, EpisodeEnd::Finished);
    touched.human_touched = true;
    for unworthy in [malformed, at_bound, touched] {
        assert!(!replay.insert(&unworthy, Iteration(0), &config()));
    }
    for number in 1..=9 {
        assert!(replay.insert(
            &episode(number, 0.5, EpisodeEnd::StepLimit),
            Iteration(0),
            &config()
        ));
    }
    let numbers: Vec<u64> = replay
        .of_task(&task)
        .map(|stored| stored.episode.id.number)
        .collect();
    assert_eq!(numbers, (2..=9).collect::<Vec<_>>());
    let text = serde_json::to_string(&replay).unwrap();
    assert_eq!(serde_json::from_str::<Replay>(&text).unwrap(), replay);
}

#[test]
fn replay_off_is_off_and_age_is_kept() {
    let mut replay = Replay::default();
    let (task, outcomes) = (TaskId("t".to_owned()), [Some(0.0), Some(0.0)]);
    let success = episode(1, 1.0, EpisodeEnd::Finished);
    let off = ReplayConfig {
        enabled: false,
        ..config()
    };
    assert!(!replay.insert(&success, Iteration(0), &off));
    replay.insert(&success, Iteration(0), &config());
    let mut rng = Pcg64Mcg::seed_from_u64(1);
    assert!(
        replay
            .draw(&task, &outcomes, Iteration(1), &off, &mut rng)
            .is_none()
    );
    let aged = ReplayConfig {
        max_age_iterations: 3,
        ..config()
    };
    assert!(
        replay
            .draw(&task, &outcomes, Iteration(3), &aged, &mut rng)
            .is_some()
    );
    assert!(
        replay
            .draw(&task, &outcomes, Iteration(4), &aged, &mut rng)
            .is_none()
    );
}
