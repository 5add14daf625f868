//! The vocabulary's JSON, and what the fold makes of it.

mod kinds;
mod machines;

use serde_json::{Value, json};

use crate::event::*;
use crate::types::ErrorClass;

use kinds::*;

#[test]
fn every_kind_survives_json() {
    for event in numbered(every_kind()) {
        let line = serde_json::to_string(&event).unwrap();
        assert!(
            !line.contains('\n') && !line.contains("null,null"),
            "{line}"
        );
        let back: Event = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line}"));
        assert_eq!(back, event, "{line}");
    }
}

#[test]
fn lines_are_flat_and_named_in_snake_case() {
    let event = Event {
        seq: 7,
        at_ms: 1200,
        kind: EventKind::StateChanged {
            state: TrainerState::Paused(SafePoint::PreUpdate),
        },
    };
    let line = serde_json::to_value(&event).unwrap();
    let expected = json!({"seq": 7, "at_ms": 1200, "type": "state_changed", "state": "paused",
        "at": "pre_update"});
    assert_eq!(line, expected);
}

#[test]
fn unknown_kinds_and_fields_are_tolerated() {
    let newer = r#"{"seq":3,"at_ms":9,"type":"desktop_hibernated","desktop":4}"#;
    let event: Event = serde_json::from_str(newer).unwrap();
    assert_eq!((event.seq, event.kind), (3, EventKind::Unknown));

    for event in numbered(every_kind()) {
        let mut line = serde_json::to_value(&event).unwrap();
        line["added_later"] = json!({"deep": [1, 2]});
        let back: Event = serde_json::from_value(line.clone()).unwrap();
        assert_eq!(back, event, "{line}");
    }
}

#[test]
fn floats_survive_whatever_they_are() {
    for value in [
        0.1,
        -0.0,
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        5e-324,
        1e308,
    ] {
        let text = serde_json::to_string(&F(value)).unwrap();
        let back: F = serde_json::from_str(&text).unwrap();
        assert_eq!(back, F(value), "{text}");
        if !value.is_nan() {
            assert_eq!(back.0.to_bits(), value.to_bits(), "{text}");
        }
    }
    assert_eq!(serde_json::from_str::<F>("3").unwrap(), F(3.0));
    assert!(serde_json::from_str::<F>("\"many\"").is_err());
    assert!(F(f64::NAN).partial_cmp(&F(1.0)).is_none());
}

#[test]
fn the_state_survives_json_at_every_cut() {
    let events = numbered(every_kind());
    let mut state = RunState::default();
    for event in &events {
        state.apply(event);
        let text = serde_json::to_string(&state).unwrap();
        let back: RunState = serde_json::from_str(&text).unwrap();
        assert_eq!(back, state);
    }
    // An older console reads a state with parts it does not know.
    let mut value: Value = serde_json::to_value(&state).unwrap();
    value["added_later"] = json!(1);
    assert_eq!(serde_json::from_value::<RunState>(value).unwrap(), state);
}

#[test]
fn an_episode_is_followed_from_reset_to_score() {
    let events = numbered([
        run_started(),
        EventKind::IterationStarted {
            iteration: Iteration(0),
            policy: PolicyVersion(0),
        },
        EventKind::GroupStarted {
            group: group(0, 0),
            task: task("h2o"),
            instruction: "…".to_owned(),
            infeasible: false,
        },
        episode_started(5, Some(group(0, 0)), 1, 1),
        EventKind::ObservationTaken {
            episode: id(5),
            step: 0,
            image: image('a'),
        },
        EventKind::ActingStarted {
            episode: id(5),
            step: 0,
        },
        step_finished(5, 0),
        EventKind::ObservationTaken {
            episode: id(5),
            step: 1,
            image: image('b'),
        },
        EventKind::ScoringStarted { episode: id(5) },
        episode_finished(5, 1.0, 1),
    ]);
    let phases = [
        (3, DesktopPhase::Resetting),
        (4, DesktopPhase::Thinking),
        (5, DesktopPhase::Acting),
        (6, DesktopPhase::Acting),
        (7, DesktopPhase::Thinking),
        (8, DesktopPhase::Scoring),
        (9, DesktopPhase::Idle),
    ];
    let mut state = RunState::default();
    let mut expected = phases.iter();
    for event in &events {
        state.apply(event);
        if event.seq >= 3 {
            let desktop = &state.desktops[1];
            assert_eq!((event.seq, desktop.phase), *expected.next().unwrap());
        }
    }
    // Acting began with event 5; event 6 is of the same phase.
    let halfway = RunState::from_events(&events[..7]);
    assert_eq!(halfway.desktops[1].since_ms, 50);
    assert_eq!(halfway.groups[&group(0, 0)].members, [None, Some(id(5))]);

    let episode = &state.episodes[&id(5)];
    assert_eq!(episode.steps.len(), 1);
    assert_eq!(episode.steps[0].image, Some(image('a')));
    assert_eq!(episode.final_image, Some(image('b')));
    assert_eq!(episode.newest_image(), Some(&image('b')));
    assert_eq!(state.desktops[1].image, Some(image('b')));
    assert_eq!(state.counters.episodes, 1);
    assert_eq!(state.counters.successes, 1);
}

#[test]
fn a_late_event_does_not_touch_the_desktops_next_episode() {
    let events = numbered([
        run_started(),
        episode_started(0, None, 0, 0),
        episode_started(1, None, 0, 0),
        episode_failed(0, "late"),
    ]);
    let state = RunState::from_events(&events);
    assert_eq!(state.desktops[0].episode, Some(id(1)));
    assert_eq!(state.desktops[0].phase, DesktopPhase::Resetting);
    assert!(state.episodes[&id(0)].failure.is_some());
}

#[test]
fn equal_failures_make_one_row_with_a_count() {
    let failures = (0..10_000).map(|number| episode_failed(number, "no answer within 30 s"));
    let state = RunState::from_events(&numbered(failures));
    assert_eq!(state.notices.len(), 1);
    assert_eq!(state.notices[0].count, 10_000);
    assert_eq!(state.notices[0].first_ms, 0);
    assert_eq!(state.notices[0].episode, Some(id(9999)));
    assert_eq!(state.counters.errors[&ErrorClass::Timeout], 10_000);
    assert!(state.failures.len() < 1000);
}

#[test]
fn replay_keeps_what_the_buffer_keeps() {
    let stored = |number: u64, stored: u32| EventKind::ReplayStored {
        task: task("h2o"),
        episode: id(number),
        stored,
    };
    let events = numbered([
        EventKind::GroupStarted {
            group: group(0, 0),
            task: task("h2o"),
            instruction: String::new(),
            infeasible: false,
        },
        episode_started(9, Some(group(0, 0)), 1, 0),
        stored(1, 1),
        stored(2, 2),
        stored(3, 2),
        EventKind::ReplayInjected {
            group: group(0, 0),
            sample: 1,
            source: id(3),
            source_policy: PolicyVersion(1),
        },
    ]);
    let state = RunState::from_events(&events);
    let replay = &state.replay[&task("h2o")];
    let kept: Vec<_> = replay
        .successes
        .iter()
        .map(|s| (s.episode, s.used))
        .collect();
    assert_eq!(kept, [(id(2), 0), (id(3), 1)]);
    assert_eq!(state.stored_successes(), 2);
    assert_eq!(state.episodes[&id(9)].replaced_by, Some(id(3)));
}

#[test]
fn commands_keep_their_answer_and_settings_their_value() {
    let received = |id, request| EventKind::CommandReceived {
        id,
        request,
        origin: "ctl".to_owned(),
    };
    let state = RunState::from_events(&numbered([
        run_started(),
        received(0, Command::SetTemperature { value: 0.7 }),
        received(1, Command::Resume),
        EventKind::CommandAccepted { id: 0 },
        EventKind::CommandRefused {
            id: 1,
            reason: "not paused".to_owned(),
        },
        EventKind::SettingChanged {
            key: TEMPERATURE_KEY.to_owned(),
            value: F(0.7),
        },
        EventKind::SettingChanged {
            key: "eval.temperature".to_owned(),
            value: F(0.1),
        },
        EventKind::CommandDone { id: 0 },
    ]));
    assert_eq!(state.commands[0].status, CommandStatus::Done);
    let refused = CommandStatus::Refused {
        reason: "not paused".to_owned(),
    };
    assert_eq!(state.commands[1].status, refused);
    assert_eq!(state.settings.temperature, F(0.7));
    assert_eq!(state.settings.learning_rate, F(1e-6));
}

#[test]
fn missing_and_discarded_events_are_told_apart() {
    let event = |seq, kind| Event {
        seq,
        at_ms: seq,
        kind,
    };
    let resumed = |discard_from_seq| EventKind::RunResumed {
        from_iteration: Iteration(0),
        discard_from_seq,
        incarnation: 1,
    };
    let check = |events: &[Event], missed, superseded| {
        let state = RunState::from_events(events);
        assert_eq!((state.missed, state.superseded), (missed, superseded));
    };
    check(
        &[event(0, run_started()), event(3, EventKind::Unknown)],
        2,
        0,
    );
    // A reader left events 1..9 out, as the resume says.
    check(&[event(0, run_started()), event(9, resumed(1))], 0, 0);
    // Events 1..3 never arrived, 3..9 were left out.
    check(&[event(0, run_started()), event(9, resumed(3))], 2, 0);
    // Event 1 was folded in although the resume discards it.
    check(
        &[
            event(0, run_started()),
            event(1, EventKind::Unknown),
            event(2, resumed(1)),
        ],
        0,
        1,
    );
}

#[test]
fn memory_is_bounded_over_a_long_run() {
    let mut state = RunState::default();
    let mut seq = 0;
    let mut apply = |state: &mut RunState, kind| {
        state.apply(&Event {
            seq,
            at_ms: seq,
            kind,
        });
        seq += 1;
    };
    apply(&mut state, run_started());
    let mut number = 0;
    for iteration in 0..200 {
        apply(
            &mut state,
            EventKind::IterationStarted {
                iteration: Iteration(iteration),
                policy: PolicyVersion(iteration),
            },
        );
        for index in 0..32 {
            apply(
                &mut state,
                EventKind::GroupStarted {
                    group: group(iteration, index),
                    task: task(&format!("task {index}")),
                    instruction: String::new(),
                    infeasible: false,
                },
            );
            for sample in 0..8 {
                let of = Some(group(iteration, index));
                apply(&mut state, episode_started(number, of, sample, sample));
                apply(&mut state, episode_finished(number, 0.0, 0));
                number += 1;
            }
            apply(&mut state, episode_started(number, None, 0, 0));
            number += 1;
        }
    }
    assert_eq!(state.groups.len(), 3 * 32);
    let of_groups = state.episodes.values().filter(|e| e.group.is_some());
    assert_eq!(of_groups.count(), 3 * 256);
    assert!(state.episodes.len() <= 3 * 256 + 512);
    assert_eq!(state.missed, 0);
    assert_eq!(state.groups_of(Iteration(198)).count(), 32);
}

#[test]
fn a_held_episode_is_known_until_it_goes_on() {
    let start = || {
        numbered([
            run_started(),
            episode_started(5, None, 0, 1),
            EventKind::EpisodeBranched(EpisodeBranched {
                episode: id(5),
                from: branch_origin(),
            }),
            EventKind::EpisodeHeld(Box::new(episode_held(5))),
            EventKind::CandidatesProposed(CandidatesProposed {
                episode: id(5),
                step: 1,
                candidates: vec![Candidate::default(); 2],
            }),
        ])
    };
    let state = RunState::from_events(&start());
    let held = &state.held[&id(5)];
    assert_eq!((held.step, held.since_ms, held.others.len()), (1, 30, 2));
    assert_eq!(held.reason, HoldReason::Breakpoint(breakpoint()));
    let from = state.episodes[&id(5)].debug.branched_from.as_ref();
    assert_eq!(from, Some(&branch_origin()));
    let released = EventKind::EpisodeReleased(EpisodeReleased {
        episode: id(5),
        step: 1,
        decision: Decision::Skip,
        human_touched: true,
    });
    for (end, touched) in [
        (released, true),
        (episode_finished(5, 1.0, 2), false),
        (episode_failed(5, "cancelled"), false),
    ] {
        let mut events = start();
        let last = Event {
            seq: 5,
            at_ms: 50,
            kind: end,
        };
        events.push(last);
        let state = RunState::from_events(&events);
        assert!(state.held.is_empty());
        assert_eq!(state.episodes[&id(5)].debug.human_touched, touched);
    }
}

#[test]
fn requests_to_the_debugger_are_checked() {
    let decide = |decision| DebugCommand::Decide {
        episode: id(5),
        step: 0,
        decision,
    };
    let stop_at = |on| DebugCommand::SetBreakpoint { on, episode: None };
    let kind = |name: &str| BreakOn::Kind {
        action: name.to_owned(),
    };
    for (command, part) in [
        (decide(Decision::Accept), ""),
        (decide(Decision::Regenerate { count: 0 }), "1 to 16"),
        (decide(Decision::Regenerate { count: 17 }), "1 to 16"),
        (
            decide(Decision::Write {
                reply: " \n".to_owned(),
            }),
            "empty",
        ),
        (
            decide(Decision::Edit {
                reply: "x".repeat(20_000),
            }),
            "at most",
        ),
        (stop_at(kind("click")), ""),
        (stop_at(kind("clack")), "click, left_double"),
        (stop_at(BreakOn::LowLogprob { below: 0.5 }), "at 0 or below"),
        (
            stop_at(BreakOn::LowLogprob { below: f64::NAN }),
            "at 0 or below",
        ),
    ] {
        match Command::Debug(command.clone()).check() {
            Ok(()) => assert!(part.is_empty(), "{command:?} was let through"),
            Err(reason) => assert!(!part.is_empty() && reason.contains(part), "{reason}"),
        }
    }
}
