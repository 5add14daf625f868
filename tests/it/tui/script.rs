//! The run that golden screens show: twelve iterations behind it, the thirteenth at work, with
//! one group in every state an operator meets. Hand-made; the figures mean nothing.

use arpo::event::{
    Command, EvalReport, Event, EventKind, F, IterationReport, MemberSignal, NoticeLevel, Phase,
    ProtocolScore, Purpose, Score, StepSignal, TEMPERATURE_KEY, TrainerState, UpdateReport,
};
use arpo::types::{
    Action, EpisodeEnd, EpisodeId, ErrorClass, GroupId, ImageHash, Iteration, Point, PolicyVersion,
    TaskId,
};

use super::evaluations::evaluation;

const DONE: u64 = 12;
const SAMPLES: u32 = 8;

/// Task, instruction, whether infeasible.
const TASKS: [(&str, &str, bool); 6] = [
    (
        "writer/subscript-h2o",
        "Change the 2 in H2O into a subscript.",
        false,
    ),
    (
        "settings/dark-mode",
        "Turn on dark mode and set the text size to large.",
        false,
    ),
    (
        "files/rename-report",
        "Rename report.txt to report-final.txt.",
        false,
    ),
    (
        "form/register",
        "Fill in the registration form for Ada Lovelace and send it.",
        false,
    ),
    (
        "dialog/discard",
        "Close the dialog without saving the changes.",
        false,
    ),
    ("settings/blink", "Set the blink rate of the cursor.", true),
];

/// What becomes of a sample: steps done, then its fate.
enum Fate {
    Booting,
    Running(u32),
    Scoring(u32),
    Done(u32, f32, EpisodeEnd),
    Crashed(u32),
    Waiting,
}

use Fate::{Booting, Crashed, Done, Running, Scoring, Waiting};

fn fates(group: usize) -> [Fate; 8] {
    let pass = |steps| Done(steps, 1.0, EpisodeEnd::Finished);
    let fail = |steps| Done(steps, 0.0, EpisodeEnd::Finished);
    let limit = || Done(4, 0.0, EpisodeEnd::StepLimit);
    let broken = || Done(2, 0.0, EpisodeEnd::Malformed);
    match group {
        0 => [
            pass(4),
            Running(3),
            fail(3),
            pass(5),
            broken(),
            Running(2),
            fail(4),
            Scoring(4),
        ],
        1 => [
            fail(3),
            limit(),
            Running(2),
            fail(2),
            limit(),
            Running(4),
            fail(3),
            Booting,
        ],
        2 => [
            pass(2),
            pass(3),
            pass(2),
            fail(2),
            pass(3),
            pass(2),
            pass(2),
            pass(2),
        ],
        3 => [
            fail(4),
            fail(4),
            limit(),
            fail(2),
            limit(),
            broken(),
            fail(4),
            fail(3),
        ],
        4 => [
            Crashed(1),
            pass(1),
            Running(1),
            Running(2),
            pass(1),
            Booting,
            pass(2),
            Running(1),
        ],
        _ => [
            Waiting, Waiting, Waiting, Waiting, Waiting, Waiting, Waiting, Waiting,
        ],
    }
}

struct Script {
    events: Vec<Event>,
    at_ms: u64,
    next_episode: u64,
}

impl Script {
    fn tell(&mut self, after_ms: u64, kind: EventKind) {
        self.at_ms += after_ms;
        let seq = self.events.len() as u64;
        self.events.push(Event {
            seq,
            at_ms: self.at_ms,
            kind,
        });
    }
}

/// All events of the run.
pub(crate) fn recorded_events() -> Vec<Event> {
    let mut script = Script {
        events: Vec::new(),
        at_ms: 0,
        next_episode: 2000,
    };
    tell_start(&mut script);
    for iteration in 0..DONE {
        tell_finished_iteration(&mut script, iteration);
    }
    tell_running_iteration(&mut script);
    script.events
}

fn tell_start(script: &mut Script) {
    let started = EventKind::RunStarted {
        schema: 1,
        run: "demo-1129-1631".to_owned(),
        version: "0.1.0".to_owned(),
        profile: "demo".to_owned(),
        unix_ms: 1_796_000_000_000,
        seed: 1,
        desktops: 16,
        group_size: SAMPLES,
        tasks_per_iteration: TASKS.len() as u32,
        iterations: 60,
        max_steps: 15,
        num_tasks: 128,
        context_tokens: 4096,
        learning_rate: 3e-4,
        temperature: 1.0,
        clip_low: Some(0.2),
        clip_high: Some(0.3),
        replay: Some(true),
        virtual_clock: false,
    };
    script.tell(0, started);
    script.tell(
        900,
        EventKind::StateChanged {
            state: TrainerState::Running,
        },
    );
    let all = Score {
        score: 0.31,
        success: 0.31,
        n: 64,
        interval: (0.21, 0.43),
        ..Score::default()
    };
    let plain = ProtocolScore {
        all,
        ..ProtocolScore::default()
    };
    let report = EvalReport {
        name: "heldout_first".to_owned(),
        tasks: "heldout".to_owned(),
        temperature: F(1.0),
        plain,
        wall_ms: 9_800,
        ..EvalReport::default()
    };
    script.tell(9_800, EventKind::EvalFinished(Box::new(report)));
}

/// A learning curve with some unrest, the same every time.
fn reward(iteration: u64) -> f64 {
    let unrest = [
        0.02, -0.03, 0.01, 0.04, -0.02, 0.0, 0.03, -0.04, 0.02, 0.01, -0.01, 0.03,
    ];
    0.30 + 0.025 * iteration as f64 + unrest[iteration as usize % unrest.len()]
}

fn tell_phase(script: &mut Script, iteration: u64, phase: Phase, wall_ms: u64) {
    let iteration = Iteration(iteration);
    script.tell(
        5,
        EventKind::PhaseStarted {
            iteration,
            phase,
            total: 48,
        },
    );
    script.tell(
        wall_ms,
        EventKind::PhaseFinished {
            iteration,
            phase,
            wall_ms,
        },
    );
}

fn tell_finished_iteration(script: &mut Script, iteration: u64) {
    let policy = PolicyVersion(2 * iteration);
    script.tell(
        10,
        EventKind::IterationStarted {
            iteration: Iteration(iteration),
            policy,
        },
    );
    tell_phase(script, iteration, Phase::Collect, 7_200 + 90 * iteration);
    tell_phase(script, iteration, Phase::Replay, 14);
    tell_phase(script, iteration, Phase::OldLogprobs, 1_100);
    tell_phase(script, iteration, Phase::Update, 2_900);
    let update = UpdateReport {
        iteration: Iteration(iteration),
        policy: PolicyVersion(2 * iteration + 2),
        grad_norm: F(0.4),
        ..UpdateReport::default()
    };
    script.tell(3, EventKind::UpdateFinished(update));
    tell_phase(script, iteration, Phase::Publish, 40);
    if iteration % 4 == 3 {
        tell_replay(script, iteration);
        let path = format!("checkpoints/{:06}", iteration + 1);
        let weights = "6f1e2d3c4b5a69788796a5b4c3d2e1f0".to_owned();
        script.tell(
            160,
            EventKind::CheckpointSaved {
                iterations_done: iteration + 1,
                path,
                weights,
            },
        );
    }
    if iteration == 6 {
        tell_trouble(script);
    }
    if iteration == 10 {
        tell_hopeless_group(script, iteration);
    }
    if let Some((number, skill)) = match iteration {
        3 => Some((1, 6)),
        9 => Some((2, 8)),
        _ => None,
    } {
        for kind in evaluation(number, policy.0, 0.0, skill, None) {
            script.tell(3, kind);
        }
    }
    script.tell(5, EventKind::IterationFinished(report(iteration)));
}

fn report(iteration: u64) -> IterationReport {
    let t = iteration as f64;
    let dead = [2, 1, 3, 1, 1, 0, 2, 1, 0, 1, 2, 1][iteration as usize];
    IterationReport {
        iteration: Iteration(iteration),
        policy: PolicyVersion(2 * iteration + 2),
        reward_mean: F(reward(iteration)),
        group_std: F(0.29 + 0.008 * t),
        group_std_after: F(0.33 + 0.007 * t),
        groups_all_fail: dead,
        groups_all_pass: 0,
        groups_zero_variance: dead,
        groups: 6,
        replaced: dead.min(1),
        stored: 8 + iteration as u32 * 3,
        episodes: 48,
        env_errors: u32::from(iteration == 6),
        malformed: 2,
        steps_mean: F(4.1),
        reply_tokens_mean: F(23.0),
        tokens_max: 1_180,
        logprob_gap: F(0.0021 + 0.0001 * t),
        logprob_gap_max: F(0.04),
        entropy: F(0.92 - 0.02 * t),
        clip_fraction: F(0.018 + 0.002 * (t % 3.0)),
        clip_high: F(0.015 + 0.002 * (t % 3.0)),
        clip_low: F(0.003),
        ratios: ratios(iteration),
        grad_norm: F(0.38 + 0.05 * (t % 4.0)),
        loss: F(-0.01),
        approx_kl: F(0.0031 + 0.0004 * (t % 5.0)),
        learning_rate: F(3e-4),
        temperature: F(1.0),
        tokens_per_s: F(610.0 + 4.0 * t),
        collect_ms: 7_200 + 90 * iteration,
        train_ms: 4_100,
        wall_ms: 11_300 + 90 * iteration,
        clock_ms: 7_200 + 90 * iteration,
    }
}

/// A histogram whose middle holds nearly all tokens.
fn ratios(iteration: u64) -> Vec<u64> {
    let bin = |place: u64| match place.abs_diff(12) {
        0 => 9_800 + 10 * iteration,
        1 => 7_100,
        distance => 900 >> (2 * distance).min(20),
    };
    (0..26).map(bin).collect()
}

/// A group that fails altogether, of a task that never succeeds.
fn tell_hopeless_group(script: &mut Script, iteration: u64) {
    let group = GroupId {
        iteration: Iteration(iteration),
        index: 5,
    };
    let (task, instruction, infeasible) = TASKS[5];
    let started = EventKind::GroupStarted {
        group,
        task: TaskId(task.to_owned()),
        instruction: instruction.to_owned(),
        infeasible,
    };
    script.tell(2, started);
    let finished = EventKind::GroupFinished {
        group,
        outcomes: vec![Some(0.0); SAMPLES as usize],
        std: F(0.0),
    };
    script.tell(2, finished);
}

fn tell_replay(script: &mut Script, iteration: u64) {
    for (place, (task, _, _)) in TASKS.iter().take(4).enumerate() {
        let episode = EpisodeId {
            incarnation: 0,
            number: iteration * 48 + place as u64,
        };
        let task = TaskId((*task).to_owned());
        script.tell(
            1,
            EventKind::ReplayStored {
                task,
                episode,
                stored: 1,
            },
        );
    }
}

fn tell_trouble(script: &mut Script) {
    let text = "desktop 5 took 12 s for a screenshot, ten times the usual".to_owned();
    script.tell(
        20,
        EventKind::Notice {
            level: NoticeLevel::Warning,
            text,
        },
    );
    let request = Command::SetTemperature { value: 0.9 };
    let origin = "console".to_owned();
    script.tell(
        400,
        EventKind::CommandReceived {
            id: 1,
            request,
            origin,
        },
    );
    script.tell(1, EventKind::CommandAccepted { id: 1 });
    let changed = EventKind::SettingChanged {
        key: TEMPERATURE_KEY.to_owned(),
        value: F(0.9),
    };
    script.tell(900, changed);
    script.tell(1, EventKind::CommandDone { id: 1 });
    let request = Command::SetDesktops { value: 64 };
    script.tell(
        300,
        EventKind::CommandReceived {
            id: 2,
            request,
            origin: "ctl".to_owned(),
        },
    );
    let reason = "this profile has room for 32 desktops; raise env.desktops_max".to_owned();
    script.tell(2, EventKind::CommandRefused { id: 2, reason });
}

fn tell_running_iteration(script: &mut Script) {
    let iteration = Iteration(DONE);
    let policy = PolicyVersion(2 * DONE);
    script.tell(10, EventKind::IterationStarted { iteration, policy });
    let phase = Phase::Collect;
    script.tell(
        5,
        EventKind::PhaseStarted {
            iteration,
            phase,
            total: 48,
        },
    );
    for kind in evaluation(3, policy.0, 0.6, 9, Some(20)) {
        script.tell(1, kind);
    }
    for (index, (task, instruction, infeasible)) in TASKS.into_iter().enumerate() {
        let group = GroupId {
            iteration,
            index: index as u32,
        };
        let started = EventKind::GroupStarted {
            group,
            task: TaskId(task.to_owned()),
            instruction: instruction.to_owned(),
            infeasible,
        };
        script.tell(4, started);
        tell_group(script, index, group);
    }
    script.tell(
        30,
        EventKind::PhaseProgress {
            phase,
            done: 29,
            total: 48,
        },
    );
}

fn tell_group(script: &mut Script, index: usize, group: GroupId) {
    let mut outcomes = Vec::new();
    let mut members = Vec::new();
    for (sample, fate) in fates(index).into_iter().enumerate() {
        let episode = EpisodeId {
            incarnation: 0,
            number: script.next_episode,
        };
        script.next_episode += 1;
        let (steps, outcome) = match fate {
            Waiting => continue,
            Booting => (None, None),
            Running(steps) | Scoring(steps) | Crashed(steps) => (Some(steps), None),
            Done(steps, outcome, _) => (Some(steps), Some(outcome)),
        };
        outcomes.push(outcome);
        members.push(episode);
        let task = TaskId(TASKS[index].0.to_owned());
        let desktop = ((index * 8 + sample) % 16) as u32;
        let started = EventKind::EpisodeStarted {
            episode,
            purpose: Purpose::Train,
            group: Some(group),
            sample: sample as u32,
            task: task.clone(),
            desktop,
            evaluation: None,
            infeasible: false,
        };
        script.tell(25, started);
        for step in 0..steps.unwrap_or(0) {
            let is_running = matches!(fate, Running(steps) if step + 1 == steps);
            let is_broken =
                matches!(fate, Done(steps, _, EpisodeEnd::Malformed) if step + 1 == steps);
            tell_step(script, index, episode, step, is_running, is_broken);
        }
        tell_end(script, episode, &task, &fate);
    }
    match index {
        2 => {
            tell_signal(script, group, &outcomes, &members, None);
            for (place, stored) in [(0, 2), (4, 3)] {
                let task = TaskId(TASKS[index].0.to_owned());
                let episode = members[place];
                script.tell(
                    1,
                    EventKind::ReplayStored {
                        task,
                        episode,
                        stored,
                    },
                );
            }
        }
        3 => tell_signal(script, group, &outcomes, &members, Some(5)),
        _ => {}
    }
}

fn tell_step(
    script: &mut Script,
    group: usize,
    episode: EpisodeId,
    step: u32,
    is_running: bool,
    is_broken: bool,
) {
    let image = ImageHash(format!("{:032x}", episode.number * 100 + u64::from(step)).into());
    script.tell(
        40,
        EventKind::ObservationTaken {
            episode,
            step,
            image,
        },
    );
    if is_running {
        return;
    }
    let (thought, action) = thought_and_action(group, step);
    let (actions, malformed) = if is_broken {
        (
            Vec::new(),
            Some("clik is not an action; the nearest one is click".to_owned()),
        )
    } else {
        script.tell(310, EventKind::ActingStarted { episode, step });
        (vec![action], None)
    };
    let finished = EventKind::StepFinished {
        episode,
        step,
        thought: thought.to_owned(),
        actions,
        malformed,
        reply_tokens: 21 + 3 * step,
        mean_logprob: F(-0.41 - 0.05 * f64::from(step)),
        generate_ms: 310 + u64::from(step) * 20,
        act_ms: 95,
    };
    script.tell(90, finished);
}

fn thought_and_action(group: usize, step: u32) -> (&'static str, Action) {
    let click = |x: f32, y: f32| Action::Click { at: Point { x, y } };
    match (group, step) {
        (0, 0) => (
            "The text H2O is in the document. I select the 2 by dragging over it.",
            Action::Drag {
                from: Point { x: 151.0, y: 118.0 },
                to: Point { x: 163.0, y: 118.0 },
            },
        ),
        (0, 1) => (
            "上次拖动选中了数字2。现在点击工具栏上的“上标”按钮。",
            click(214.0, 61.0),
        ),
        (0, 2) => (
            "上次点击命中了上标，数字2被抬高了，这不是要求的下标。需要先撤销（Ctrl+Z），然后重新选中2，再点击“下标”按钮。",
            Action::Hotkey {
                keys: vec!["ctrl".to_owned(), "z".to_owned()],
            },
        ),
        (0, 3) => (
            "The superscript is gone. Subscript is the button to the right.",
            click(236.0, 61.0),
        ),
        (0, _) => (
            "H₂O is right now.",
            Action::Finished {
                content: String::new(),
            },
        ),
        (1, 0) => ("The switch for dark mode is off.", click(360.0, 92.0)),
        (1, _) => (
            "The text size is below; I scroll down.",
            Action::Scroll {
                at: Some(Point { x: 224.0, y: 200.0 }),
                direction: arpo::types::ScrollDirection::Down,
            },
        ),
        (2, 0) => (
            "report.txt is selected; F2 renames it.",
            Action::Press {
                key: "f2".to_owned(),
            },
        ),
        (2, _) => (
            "I type the new name.",
            Action::Type {
                content: "report-final.txt\n".to_owned(),
            },
        ),
        (3, 0) => ("The first field wants the name.", click(180.0, 96.0)),
        (3, _) => (
            "",
            Action::Type {
                content: "Ada Lovelace".to_owned(),
            },
        ),
        (4, _) => (
            "“Don't save” closes it without saving.",
            click(250.0, 222.0),
        ),
        (_, _) => ("There is no such setting.", Action::Fail),
    }
}

fn tell_end(script: &mut Script, episode: EpisodeId, task: &TaskId, fate: &Fate) {
    match fate {
        Scoring(_) => script.tell(5, EventKind::ScoringStarted { episode }),
        Done(steps, outcome, end) => {
            script.tell(5, EventKind::ScoringStarted { episode });
            let finished = EventKind::EpisodeFinished {
                episode,
                purpose: Purpose::Train,
                task: task.clone(),
                end: *end,
                outcome: *outcome,
                format: if *end == EpisodeEnd::Malformed {
                    -1.0
                } else {
                    0.0
                },
                state_score: *outcome,
                steps: *steps,
                tokens: 210 * steps,
                sampled_tokens: 23 * steps,
                clock_ms: 480 * u64::from(*steps),
                human_touched: false,
            };
            script.tell(12, finished);
        }
        Crashed(_) => {
            let failed = EventKind::EpisodeFailed {
                episode,
                purpose: Purpose::Train,
                task: task.clone(),
                class: ErrorClass::Crash,
                message: "desktop crashed during step".to_owned(),
                rerolled: false,
            };
            script.tell(30, failed);
        }
        Booting | Running(_) | Waiting => {}
    }
}

fn step_signal(step: u32) -> StepSignal {
    let t = f64::from(step);
    StepSignal {
        tokens: 21 + 3 * step,
        ratio: F(1.0 + 0.01 * t),
        ratio_max: F(1.21 + 0.05 * t),
        ratio_min: F(0.88),
        clip_high: F(0.02 * t),
        clip_low: F(0.0),
        entropy: F(0.7),
        logprob: F(-0.39),
        gap: F(0.004 + 0.03 * t),
    }
}

/// A group whose episodes are all in; `replaced` is the member that a stored success replaces.
fn tell_signal(
    script: &mut Script,
    group: GroupId,
    outcomes: &[Option<f32>],
    members: &[EpisodeId],
    replaced: Option<usize>,
) {
    let std = if replaced.is_some() { 0.0 } else { 0.353_553 };
    let finished = EventKind::GroupFinished {
        group,
        outcomes: outcomes.to_vec(),
        std: F(std),
    };
    script.tell(4, finished);
    let source = EpisodeId {
        incarnation: 0,
        number: 531,
    };
    let source_policy = PolicyVersion(23);
    if let Some(sample) = replaced {
        let sample = sample as u32;
        script.tell(
            2,
            EventKind::ReplayInjected {
                group,
                sample,
                source,
                source_policy,
            },
        );
    }
    let signal = |place: usize| {
        let replayed = replaced == Some(place);
        let reward = if replayed {
            1.0
        } else {
            outcomes[place].unwrap_or(0.0)
        };
        let advantage = match (replaced.is_some(), reward > 0.5) {
            (true, true) => 2.474_873,
            (true, false) => -0.353_553,
            (false, true) => 0.353_552,
            (false, false) => -2.474_867,
        };
        let episode = if replayed { source } else { members[place] };
        MemberSignal {
            episode,
            reward,
            advantage: F(advantage),
            replayed,
        }
    };
    let signals = (0..members.len()).map(signal).collect();
    let computed = EventKind::AdvantagesComputed {
        group,
        members: signals,
    };
    script.tell(2, computed);
    // As its update would tell it of one fresh trajectory, or of the one put in.
    let learned = EventKind::EpisodeLearned {
        episode: if replaced.is_some() {
            source
        } else {
            members[1]
        },
        replayed: replaced.is_some(),
        steps: (0..3).map(step_signal).collect(),
    };
    script.tell(2, learned);
}
