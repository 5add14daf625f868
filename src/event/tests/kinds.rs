//! Events to test with, one of every kind among them.

use crate::event::*;
use crate::types::{Action, BranchOrigin, ErrorClass, Point, Protocol, ScrollDirection};

pub(super) fn id(number: u64) -> EpisodeId {
    EpisodeId {
        incarnation: 1,
        number,
    }
}

pub(super) fn group(iteration: u64, index: u32) -> GroupId {
    GroupId {
        iteration: Iteration(iteration),
        index,
    }
}

pub(super) fn task(name: &str) -> TaskId {
    TaskId(name.to_owned())
}

pub(super) fn image(digit: char) -> ImageHash {
    ImageHash(digit.to_string().repeat(32).into())
}

pub(super) fn run_started() -> EventKind {
    EventKind::RunStarted {
        schema: SCHEMA_VERSION,
        run: "r".to_owned(),
        version: "0.1.0".to_owned(),
        profile: "demo".to_owned(),
        unix_ms: 1_764_432_000_000,
        seed: u64::MAX,
        desktops: 2,
        group_size: 2,
        tasks_per_iteration: 1,
        iterations: 3,
        max_steps: 15,
        num_tasks: 4,
        context_tokens: 2048,
        learning_rate: 1e-6,
        temperature: 1.0,
        clip_low: Some(0.2),
        clip_high: Some(0.3),
        replay: Some(true),
        virtual_clock: true,
    }
}

pub(super) fn episode_started(
    number: u64,
    group: Option<GroupId>,
    sample: u32,
    desktop: u32,
) -> EventKind {
    EventKind::EpisodeStarted {
        episode: id(number),
        purpose: if group.is_some() {
            Purpose::Train
        } else {
            Purpose::Evaluate
        },
        group,
        sample,
        task: task("h2o"),
        desktop,
        evaluation: group.is_none().then_some(1),
        infeasible: false,
    }
}

pub(super) fn episode_finished(number: u64, outcome: f32, steps: u32) -> EventKind {
    EventKind::EpisodeFinished {
        episode: id(number),
        purpose: Purpose::Train,
        task: task("h2o"),
        end: EpisodeEnd::Finished,
        outcome,
        format: 0.0,
        state_score: outcome,
        steps,
        tokens: 100,
        sampled_tokens: 30,
        clock_ms: 5000,
        human_touched: false,
    }
}

pub(super) fn episode_failed(number: u64, message: &str) -> EventKind {
    EventKind::EpisodeFailed {
        episode: id(number),
        purpose: Purpose::Train,
        task: task("h2o"),
        class: ErrorClass::Timeout,
        message: message.to_owned(),
        rerolled: true,
    }
}

pub(super) fn step_finished(number: u64, step: u32) -> EventKind {
    EventKind::StepFinished {
        episode: id(number),
        step,
        thought: "把 2 变成下标".to_owned(),
        actions: vec![
            Action::Click {
                at: Point { x: 1.5, y: 2.0 },
            },
            Action::Scroll {
                at: None,
                direction: ScrollDirection::Down,
            },
        ],
        malformed: None,
        reply_tokens: 12,
        mean_logprob: F(-0.25),
        generate_ms: 40,
        act_ms: 2500,
    }
}

pub(super) fn breakpoint() -> Breakpoint {
    Breakpoint {
        id: 3,
        on: BreakOn::LowLogprob { below: -1.5 },
        episode: Some(id(5)),
    }
}

pub(super) fn branch_origin() -> BranchOrigin {
    BranchOrigin {
        run: "demo".to_owned(),
        episode: id(4),
        steps: 2,
    }
}

pub(super) fn episode_held(number: u64) -> EpisodeHeld {
    EpisodeHeld {
        episode: id(number),
        step: 1,
        reason: HoldReason::Breakpoint(breakpoint()),
        instruction: "把 2 变成下标".to_owned(),
        candidate: Candidate {
            reply: "Action: wait()".to_owned(),
            actions: vec![Action::Wait],
            tokens: 4,
            mean_logprob: F(f64::NAN),
            ..Candidate::default()
        },
    }
}

/// One event of every kind, and of every shape where a kind has several.
pub(super) fn every_kind() -> Vec<EventKind> {
    let states = [
        TrainerState::Starting,
        TrainerState::Running,
        TrainerState::Pausing(SafePoint::EnvStep),
        TrainerState::Paused(SafePoint::PreUpdate),
        TrainerState::Stepping(Stride::Phase),
        TrainerState::Stepping(Stride::Iteration),
        TrainerState::Stopping,
        TrainerState::Finished,
        TrainerState::Failed,
    ];
    let commands = [
        Command::Pause {
            at: SafePoint::Batch,
        },
        Command::Resume,
        Command::StepPhase,
        Command::StepIteration,
        Command::Stop,
        Command::Checkpoint,
        Command::SetLearningRate { value: 3e-4 },
        Command::SetTemperature { value: 0.7 },
        Command::SetDesktops { value: 128 },
        Command::Debug(DebugCommand::Hold {
            target: HoldTarget::Desktop { desktop: 3 },
            others: true,
        }),
        Command::Debug(DebugCommand::Release {
            target: HoldTarget::All,
        }),
        Command::Debug(DebugCommand::Decide {
            episode: id(5),
            step: 1,
            decision: Decision::Regenerate { count: 3 },
        }),
        Command::Debug(DebugCommand::SetBreakpoint {
            on: BreakOn::UnchangedScreen,
            episode: None,
        }),
        Command::Debug(DebugCommand::ClearBreakpoint { id: Some(1) }),
        Command::Debug(DebugCommand::Branch {
            episode: id(4),
            step: 2,
        }),
    ]
    .into_iter()
    .chain(newer_commands());
    let mut kinds = vec![run_started()];
    kinds.extend(states.map(|state| EventKind::StateChanged { state }));
    for (number, request) in (0..).zip(commands) {
        kinds.push(EventKind::CommandReceived {
            id: number,
            request,
            origin: "ctl".to_owned(),
        });
    }
    kinds.extend(work_kinds());
    kinds.extend(evaluation_kinds());
    kinds.extend(super::machines::kinds());
    kinds.extend(report_kinds());
    kinds
}

pub(super) fn newer_commands() -> Vec<Command> {
    let (task, episode) = (task("h2o"), id(3));
    vec![
        Command::SetClip {
            low: 0.1,
            high: 0.4,
        },
        Command::SetReplay { enabled: false },
        Command::KillEpisode { episode },
        Command::RerollEpisode { episode },
        Command::RebootDesktop { desktop: 1 },
        Command::PinStored {
            task: task.clone(),
            episode,
            pinned: true,
        },
        Command::DropStored { task, episode },
        Command::Evaluate(eval_request()),
        Command::CancelEvaluation { evaluation: 2 },
    ]
}

pub(super) fn eval_request() -> EvalRequest {
    EvalRequest {
        weights: EvalWeights::Checkpoint {
            path: "iter-000003".to_owned(),
        },
        tasks: "compact-heldout".to_owned(),
        trials: 2,
        temperature: 0.6,
        seed: u64::MAX,
        protocol: Protocol::Hard,
        when: EvalWhen::Now { desktops: 1 },
        resume: None,
    }
}

pub(super) fn evaluation_kinds() -> Vec<EventKind> {
    vec![
        EventKind::EvaluationQueued {
            evaluation: 2,
            command: 4,
            request: eval_request(),
        },
        evaluation_started(2, 4),
        trial_finished(2, "a/1", 0, Some(EpisodeEnd::StepLimit), 0.25),
        trial_finished(2, "a/1", 1, None, 0.0),
        EventKind::EvaluationCancelled {
            evaluation: 2,
            done: 2,
            reason: "as asked".to_owned(),
        },
        EventKind::StoredPinned {
            task: task("h2o"),
            episode: id(0),
            pinned: true,
        },
        EventKind::StoredDropped {
            task: task("h2o"),
            episode: id(0),
        },
    ]
}

pub(super) fn evaluation_started(evaluation: u32, total: u32) -> EventKind {
    EventKind::EvaluationStarted {
        evaluation,
        name: "operator".to_owned(),
        request: eval_request(),
        manifest: Box::new(EvalManifest {
            weights: "00ff".to_owned(),
            temperature: F(0.6),
            ..EvalManifest::default()
        }),
        total,
    }
}

pub(super) fn trial(
    name: &str,
    number: u32,
    end: Option<EpisodeEnd>,
    state_score: f32,
) -> TrialRow {
    TrialRow {
        task: task(name),
        domain: name.split('/').next().unwrap().to_owned(),
        trial: number,
        episode: id(u64::from(number)),
        end,
        state_score,
        infeasible: name.starts_with("fail"),
        steps: 3,
        error: end.is_none().then(|| "no answer".to_owned()),
    }
}

pub(super) fn trial_finished(
    evaluation: u32,
    name: &str,
    number: u32,
    end: Option<EpisodeEnd>,
    state_score: f32,
) -> EventKind {
    EventKind::TrialFinished {
        evaluation,
        trial: trial(name, number, end, state_score),
    }
}

pub(super) fn work_kinds() -> Vec<EventKind> {
    let (iteration, phase) = (Iteration(2), Phase::OldLogprobs);
    vec![
        EventKind::RunResumed {
            from_iteration: iteration,
            discard_from_seq: 7,
            incarnation: 1,
        },
        EventKind::IterationStarted {
            iteration,
            policy: PolicyVersion(4),
        },
        EventKind::PhaseStarted {
            iteration,
            phase,
            total: 64,
        },
        EventKind::PhaseProgress {
            phase,
            done: 3,
            total: 64,
        },
        EventKind::PhaseFinished {
            iteration,
            phase,
            wall_ms: 900,
        },
        EventKind::GroupStarted {
            group: group(2, 0),
            task: task("h2o"),
            instruction: "Make the 2 in H2O a subscript".to_owned(),
            infeasible: false,
        },
        episode_started(0, Some(group(2, 0)), 1, 0),
        episode_started(1, None, 0, 1),
        EventKind::ObservationTaken {
            episode: id(0),
            step: 0,
            image: image('a'),
        },
        EventKind::ActingStarted {
            episode: id(0),
            step: 0,
        },
        EventKind::ScoringStarted { episode: id(0) },
        step_finished(0, 0),
        episode_finished(0, 0.7, 1),
        episode_failed(1, "no answer"),
        EventKind::GroupFinished {
            group: group(2, 0),
            outcomes: vec![Some(0.1), None],
            std: F(f64::NAN),
        },
        EventKind::ReplayInjected {
            group: group(2, 0),
            sample: 1,
            source: id(0),
            source_policy: PolicyVersion(3),
        },
        EventKind::ReplayStored {
            task: task("h2o"),
            episode: id(0),
            stored: 1,
        },
        EventKind::AdvantagesComputed {
            group: group(2, 0),
            members: vec![MemberSignal {
                episode: id(0),
                reward: 0.1,
                advantage: F(-1.25),
                replayed: true,
            }],
        },
        EventKind::PolicyPublished {
            policy: PolicyVersion(5),
        },
        EventKind::CheckpointSaved {
            iterations_done: 3,
            path: "checkpoints/iter-000003".to_owned(),
            weights: "00ff".to_owned(),
        },
    ]
}

pub(super) fn report_kinds() -> Vec<EventKind> {
    let nan = F(f64::NAN);
    vec![
        EventKind::UpdateFinished(UpdateReport {
            grad_norm: F(f64::INFINITY),
            approx_kl: F(f64::NEG_INFINITY),
            skipped: true,
            ..UpdateReport::default()
        }),
        EventKind::IterationFinished(IterationReport {
            iteration: Iteration(2),
            reward_mean: F(0.5),
            logprob_gap: nan,
            ..IterationReport::default()
        }),
        EventKind::EvalFinished(Box::new(EvalReport {
            name: "heldout_first".to_owned(),
            evaluation: Some(2),
            manifest: Some(Box::default()),
            ..EvalReport::default()
        })),
        EventKind::SettingChanged {
            key: TEMPERATURE_KEY.to_owned(),
            value: F(0.7),
        },
        EventKind::CommandAccepted { id: 0 },
        EventKind::CommandRefused {
            id: 1,
            reason: "not paused".to_owned(),
        },
        EventKind::CommandDone { id: 0 },
        EventKind::Notice {
            level: NoticeLevel::Warning,
            text: "two words".to_owned(),
        },
        EventKind::EpisodeHeld(Box::new(episode_held(5))),
        EventKind::CandidatesProposed(CandidatesProposed {
            episode: id(5),
            step: 1,
            candidates: vec![Candidate::default(), episode_held(5).candidate],
        }),
        EventKind::EpisodeReleased(EpisodeReleased {
            episode: id(5),
            step: 1,
            decision: Decision::Edit {
                reply: "Action: wait()".to_owned(),
            },
            human_touched: true,
        }),
        EventKind::EpisodeReleased(EpisodeReleased {
            episode: id(5),
            step: 2,
            decision: Decision::Accept,
            human_touched: true,
        }),
        EventKind::EpisodeBranched(EpisodeBranched {
            episode: id(5),
            from: branch_origin(),
        }),
        EventKind::BranchReplayed(BranchReplayed {
            episode: id(5),
            steps: 2,
            differs_at: Some(1),
        }),
        EventKind::BreakpointsChanged(BreakpointsChanged {
            breakpoints: vec![breakpoint()],
        }),
        EventKind::RunFinished(RunSummary {
            status: "finished".to_owned(),
            heldout_last: Some(0.25),
            reward_last: nan,
            ..RunSummary::default()
        }),
        EventKind::Unknown,
    ]
}

pub(super) fn numbered(kinds: impl IntoIterator<Item = EventKind>) -> Vec<Event> {
    let number = |(seq, kind)| Event {
        seq,
        at_ms: seq * 10,
        kind,
    };
    (0..).zip(kinds).map(number).collect()
}
