//! A fleet that does not exist: the events of many desktops at work, at any pace, for ever.

use crate::event::{EventKind, F, IterationReport, Phase, Purpose, SCHEMA_VERSION, TrainerState};
use crate::types::{
    Action, EpisodeEnd, EpisodeId, GroupId, ImageHash, Iteration, Point, PolicyVersion, ScreenSize,
    Screenshot, TaskId,
};

/// Samples of a task.
const SAMPLES: u32 = 8;

/// What a desktop shows and does next.
struct Desktop {
    episode: EpisodeId,
    step: u32,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Look,
    Think,
    Act,
    Done,
}

/// Desktops at work on groups of eight samples.
pub(super) struct Fleet {
    desktops: Vec<Desktop>,
    steps: u32,
    images: Vec<ImageHash>,
    iteration: u64,
    episodes: u64,
    turn: usize,
}

impl Fleet {
    /// So many desktops, each episode so many steps, showing these pictures in turn.
    pub(super) fn new(desktops: u32, steps: u32, images: Vec<ImageHash>) -> Self {
        let desktop = |number: u32| Desktop {
            episode: EpisodeId {
                incarnation: 0,
                number: u64::from(number),
            },
            step: 0,
            stage: Stage::Done,
        };
        Self {
            desktops: (0..desktops).map(desktop).collect(),
            steps,
            images,
            iteration: 0,
            episodes: 0,
            turn: 0,
        }
    }

    /// The first event of the run.
    pub(super) fn header(&self) -> EventKind {
        let desktops = self.desktops.len() as u32;
        EventKind::RunStarted {
            schema: SCHEMA_VERSION,
            run: "bench-console".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            profile: "bench".to_owned(),
            unix_ms: 1_764_432_000_000,
            seed: 1,
            desktops,
            group_size: SAMPLES,
            tasks_per_iteration: desktops / SAMPLES,
            iterations: 1_000,
            max_steps: 15,
            num_tasks: 128,
            context_tokens: 32_768,
            learning_rate: 1e-6,
            temperature: 1.0,
            virtual_clock: false,
            clip_low: Some(0.2),
            clip_high: Some(0.3),
            replay: Some(true),
        }
    }

    /// Episodes begun so far.
    pub(super) fn episodes(&self) -> u64 {
        self.episodes
    }

    /// Episodes have so many steps from the next iteration on.
    pub(super) fn set_steps(&mut self, steps: u32) {
        self.steps = steps;
    }

    /// What happens next: one event of one desktop, or the turn of an iteration.
    pub(super) fn next_events(&mut self) -> Vec<EventKind> {
        for _ in 0..self.desktops.len() {
            let place = self.turn % self.desktops.len();
            self.turn += 1;
            if self.desktops[place].stage != Stage::Done {
                return vec![self.advance(place)];
            }
        }
        self.next_iteration()
    }

    fn group(&self, place: usize) -> GroupId {
        GroupId {
            iteration: Iteration(self.iteration),
            index: place as u32 / SAMPLES,
        }
    }

    fn task(&self, place: usize) -> TaskId {
        let number = (self.iteration * 32 + place as u64 / u64::from(SAMPLES)) % 128;
        TaskId(format!("libreoffice/task-{number:03}"))
    }

    fn advance(&mut self, place: usize) -> EventKind {
        let task = self.task(place);
        let steps = self.steps;
        let picture = (place * 5 + self.turn) % self.images.len();
        let image = self.images[picture].clone();
        let desktop = &mut self.desktops[place];
        let (episode, step) = (desktop.episode, desktop.step);
        match desktop.stage {
            Stage::Look => {
                desktop.stage = Stage::Think;
                EventKind::ObservationTaken {
                    episode,
                    step,
                    image,
                }
            }
            Stage::Think => {
                desktop.stage = Stage::Act;
                EventKind::ActingStarted { episode, step }
            }
            Stage::Act if step < steps => {
                desktop.step += 1;
                desktop.stage = if step + 1 < steps {
                    Stage::Look
                } else {
                    Stage::Act
                };
                step_finished(episode, step, place)
            }
            Stage::Act | Stage::Done => {
                desktop.stage = Stage::Done;
                let outcome = if episode.number.is_multiple_of(3) {
                    1.0
                } else {
                    0.0
                };
                EventKind::EpisodeFinished {
                    human_touched: false,
                    episode,
                    purpose: Purpose::Train,
                    task,
                    end: EpisodeEnd::Finished,
                    outcome,
                    format: 0.0,
                    state_score: outcome,
                    steps,
                    tokens: 9_000,
                    sampled_tokens: 60 * steps,
                    clock_ms: 60_000,
                }
            }
        }
    }

    fn next_iteration(&mut self) -> Vec<EventKind> {
        let mut kinds = Vec::new();
        if self.episodes == 0 {
            kinds.push(EventKind::StateChanged {
                state: TrainerState::Running,
            });
        } else {
            kinds.extend(self.close_iteration());
            self.iteration += 1;
        }
        let iteration = Iteration(self.iteration);
        kinds.push(EventKind::IterationStarted {
            iteration,
            policy: PolicyVersion(self.iteration),
        });
        kinds.push(EventKind::PhaseStarted {
            iteration,
            phase: Phase::Collect,
            total: self.desktops.len() as u32,
        });
        for place in 0..self.desktops.len() {
            let (group, task) = (self.group(place), self.task(place));
            let sample = place as u32 % SAMPLES;
            if sample == 0 {
                kinds.push(EventKind::GroupStarted {
                    group,
                    task: task.clone(),
                    instruction: "Make the 2 in H2O a subscript and save the document".to_owned(),
                    infeasible: false,
                });
            }
            let episode = EpisodeId {
                incarnation: 0,
                number: self.episodes,
            };
            self.episodes += 1;
            self.desktops[place] = Desktop {
                episode,
                step: 0,
                stage: Stage::Look,
            };
            kinds.push(EventKind::EpisodeStarted {
                episode,
                purpose: Purpose::Train,
                group: Some(group),
                sample,
                task,
                desktop: place as u32,
                evaluation: None,
                infeasible: false,
            });
        }
        kinds
    }

    fn close_iteration(&self) -> Vec<EventKind> {
        let iteration = Iteration(self.iteration);
        let groups = (0..self.desktops.len()).step_by(SAMPLES as usize);
        let mut kinds: Vec<EventKind> = groups
            .map(|place| EventKind::GroupFinished {
                group: self.group(place),
                outcomes: vec![Some(1.0), Some(0.0), Some(0.0), Some(1.0)],
                std: F(0.5),
            })
            .collect();
        kinds.push(EventKind::PhaseFinished {
            iteration,
            phase: Phase::Collect,
            wall_ms: 60_000,
        });
        kinds.push(EventKind::IterationFinished(IterationReport {
            iteration,
            policy: PolicyVersion(self.iteration + 1),
            reward_mean: F((self.iteration as f64 / 40.0).sin().abs()),
            ..IterationReport::default()
        }));
        kinds
    }
}

fn step_finished(episode: EpisodeId, step: u32, place: usize) -> EventKind {
    EventKind::StepFinished {
        episode,
        step,
        thought: format!("上标按钮在工具栏里, so I click it (step {step} of desktop {place})"),
        actions: vec![Action::Click {
            at: Point {
                x: 40.0 + place as f32,
                y: 30.0 + step as f32 * 9.0,
            },
        }],
        malformed: None,
        reply_tokens: 60,
        mean_logprob: F(-0.2),
        generate_ms: 900,
        act_ms: 1_400,
    }
}

/// Screenshots that differ: a window somewhere on a gradient.
pub(super) fn desktops_seen(count: u32) -> Vec<Screenshot> {
    let size = ScreenSize {
        width: 1280,
        height: 720,
    };
    let shot = |number: u32| {
        let (left, top) = (40 + number * 37 % 500, 30 + number * 53 % 260);
        let pixel = move |x: u32, y: u32| {
            let (dx, dy) = (x.wrapping_sub(left), y.wrapping_sub(top));
            match (dx, dy) {
                (0..640, 0..28) => [38, 70, 150],
                (20..600, 60..380) if dx * 7 % 11 < 4 && dy % 18 < 9 => [30, 30, 34],
                (0..640, 0..400) => [244, 244, 240],
                _ => [(x * 90 / 1280) as u8, 80, 90 + (y * 90 / 720) as u8],
            }
        };
        let rgb = (0..size.height).flat_map(|y| (0..size.width).flat_map(move |x| pixel(x, y)));
        Screenshot::new(size, rgb.collect())
    };
    (0..count).map(shot).collect()
}
