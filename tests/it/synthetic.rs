//! Events of a run that never took place: every kind that a real one has, in a real order.

use arpo::event::{
    Event, EventKind, F, IterationReport, MemberSignal, NoticeLevel, Phase, Purpose, RunSummary,
    SCHEMA_VERSION, TrainerState, UpdateReport,
};
use arpo::types::{
    Action, EpisodeEnd, EpisodeId, ErrorClass, GroupId, ImageHash, Iteration, Point, PolicyVersion,
    TaskId,
};

pub(crate) const GROUPS: u32 = 2;
pub(crate) const SAMPLES: u32 = 3;
const STEPS: u32 = 2;

pub(crate) fn run_started() -> EventKind {
    EventKind::RunStarted {
        schema: SCHEMA_VERSION,
        run: "synthetic".to_owned(),
        version: "0.1.0".to_owned(),
        profile: "demo".to_owned(),
        unix_ms: 1_764_432_000_000,
        seed: 3,
        desktops: GROUPS * SAMPLES,
        group_size: SAMPLES,
        tasks_per_iteration: GROUPS,
        iterations: 10,
        max_steps: 15,
        num_tasks: 4,
        context_tokens: 2048,
        learning_rate: 1e-3,
        temperature: 1.0,
        clip_low: Some(0.2),
        clip_high: Some(0.3),
        replay: Some(true),
        virtual_clock: true,
    }
}

/// One iteration as the engine's start `incarnation` does it: rollouts, an error, replay, an
/// update, its report, a checkpoint.
pub(crate) fn iteration(number: u64, incarnation: u32) -> Vec<EventKind> {
    let iteration = Iteration(number);
    let policy = PolicyVersion(2 * number);
    let mut kinds = vec![
        EventKind::IterationStarted { iteration, policy },
        EventKind::PhaseStarted {
            iteration,
            phase: Phase::Collect,
            total: GROUPS * SAMPLES,
        },
    ];
    for index in 0..GROUPS {
        kinds.extend(group(number, index, incarnation));
    }
    kinds.push(EventKind::PhaseFinished {
        iteration,
        phase: Phase::Collect,
        wall_ms: 800,
    });
    kinds.extend(training(number));
    kinds.extend([
        EventKind::PhaseStarted {
            iteration,
            phase: Phase::Checkpoint,
            total: 0,
        },
        EventKind::CheckpointSaved {
            iterations_done: number + 1,
            path: format!("checkpoints/iter-{:06}", number + 1),
            weights: format!("{number:04x}"),
        },
    ]);
    kinds
}

pub(crate) fn finished() -> Vec<EventKind> {
    vec![
        EventKind::RunFinished(RunSummary {
            status: "finished".to_owned(),
            heldout_last: Some(0.5),
            ..RunSummary::default()
        }),
        EventKind::StateChanged {
            state: TrainerState::Finished,
        },
    ]
}

/// A whole run of that many iterations.
pub(crate) fn run(iterations: u64) -> Vec<EventKind> {
    let mut kinds = vec![
        run_started(),
        EventKind::StateChanged {
            state: TrainerState::Running,
        },
    ];
    kinds.extend((0..iterations).flat_map(|number| iteration(number, 0)));
    kinds.extend(finished());
    kinds
}

/// The events in a row, numbered from `first_seq`, a millisecond apart.
pub(crate) fn numbered(first_seq: u64, kinds: impl IntoIterator<Item = EventKind>) -> Vec<Event> {
    let number = |(seq, kind)| Event {
        seq,
        at_ms: seq,
        kind,
    };
    (first_seq..).zip(kinds).map(number).collect()
}

pub(crate) fn image(number: u64) -> ImageHash {
    ImageHash(format!("{number:032x}").into())
}

fn task(index: u32) -> TaskId {
    TaskId(format!("task-{index}"))
}

fn group(iteration: u64, index: u32, incarnation: u32) -> Vec<EventKind> {
    let group = GroupId {
        iteration: Iteration(iteration),
        index,
    };
    let mut kinds = vec![EventKind::GroupStarted {
        group,
        task: task(index),
        instruction: "把 H2O 里的 2 变成下标".to_owned(),
        infeasible: false,
    }];
    for sample in 0..SAMPLES {
        let place = index * SAMPLES + sample;
        let id = EpisodeId {
            incarnation,
            number: iteration * u64::from(GROUPS * SAMPLES) + u64::from(place),
        };
        kinds.push(EventKind::EpisodeStarted {
            episode: id,
            purpose: Purpose::Train,
            group: Some(group),
            sample,
            task: task(index),
            desktop: place,
            evaluation: None,
            infeasible: false,
        });
        kinds.extend(episode(id, index, sample == SAMPLES - 1));
    }
    kinds.push(EventKind::GroupFinished {
        group,
        outcomes: vec![Some(1.0), Some(0.7), None],
        std: F(0.212_132),
    });
    kinds
}

fn episode(id: EpisodeId, index: u32, fails: bool) -> Vec<EventKind> {
    let mut kinds = Vec::new();
    for step in 0..STEPS {
        kinds.extend([
            EventKind::ObservationTaken {
                episode: id,
                step,
                image: image(id.number * 10 + u64::from(step)),
            },
            EventKind::ActingStarted { episode: id, step },
            EventKind::StepFinished {
                episode: id,
                step,
                thought: "\"quoted\", \\ and\nnew line".to_owned(),
                actions: vec![Action::Click {
                    at: Point { x: 10.5, y: 3.0 },
                }],
                malformed: None,
                reply_tokens: 12,
                mean_logprob: F(-0.1),
                generate_ms: 30,
                act_ms: 900,
            },
        ]);
    }
    if fails {
        kinds.push(EventKind::EpisodeFailed {
            episode: id,
            purpose: Purpose::Train,
            task: task(index),
            class: ErrorClass::Timeout,
            message: "the desktop did not answer within 30 s".to_owned(),
            rerolled: false,
        });
        return kinds;
    }
    kinds.extend([
        EventKind::ScoringStarted { episode: id },
        EventKind::EpisodeFinished {
            episode: id,
            purpose: Purpose::Train,
            task: task(index),
            end: EpisodeEnd::Finished,
            outcome: 0.7,
            format: 0.0,
            state_score: 0.7,
            steps: STEPS,
            tokens: 300,
            sampled_tokens: 24,
            clock_ms: 5000,
            human_touched: false,
        },
        EventKind::ReplayStored {
            task: task(index),
            episode: id,
            stored: 2,
        },
    ]);
    kinds
}

fn training(number: u64) -> Vec<EventKind> {
    let iteration = Iteration(number);
    let member = MemberSignal {
        episode: EpisodeId {
            incarnation: 0,
            number: number * u64::from(GROUPS * SAMPLES),
        },
        reward: 1.0,
        advantage: F(f64::NAN),
        replayed: false,
    };
    vec![
        EventKind::AdvantagesComputed {
            group: GroupId {
                iteration,
                index: 0,
            },
            members: vec![member],
        },
        EventKind::UpdateFinished(UpdateReport {
            iteration,
            grad_norm: F(f64::INFINITY),
            skipped: true,
            ..UpdateReport::default()
        }),
        EventKind::Notice {
            level: NoticeLevel::Warning,
            text: "the norm was not finite; the update was skipped".to_owned(),
        },
        EventKind::PolicyPublished {
            policy: PolicyVersion(2 * number + 2),
        },
        EventKind::IterationFinished(IterationReport {
            iteration,
            policy: PolicyVersion(2 * number + 2),
            reward_mean: F(0.1 * number as f64),
            logprob_gap: F(f64::NAN),
            ..IterationReport::default()
        }),
    ]
}
