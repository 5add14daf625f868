//! `arpo-engine gpu-check`: one checkpoint, the same screenshots and trajectories, on the GPU and on
//! the CPU.
//!
//! Loads, lets both answer greedily over two turns, and makes one update on both from what was
//! answered. Kernels add in orders of their own, so numbers are compared within limits and only
//! tokens exactly. With `engine.device = "cpu"` the CPU is held against itself.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use arpo::cli::args::ProfileArgs;
use arpo::cli::wiring;
use arpo::config::{DeviceChoice, Profile};
use arpo::env::simulated::suite::{HELD_OUT_FIRST, task};
use arpo::env::simulated::{Desktop, expert};
use arpo::grpo::TrainSample;
use arpo::policy::{Extension, Generation, Policy as _, SamplingParams, SessionId, SessionSpec};
use arpo::prompt::PromptBuilder;
use arpo::types::{EpisodeId, Iteration, Task};
use tch::{Device, Kind};

use crate::device;
use crate::engine::Embedded;
use crate::model::{Weights, checkpoint};
use crate::run::device::{start_policy, start_trainer};
use crate::trainer::TrainerError;

/// Exit code where there is no GPU.
const NO_GPU: u8 = 2;
/// Families whose first held-out instance is answered.
const FAMILIES: [&str; 8] = [
    "ed_sub", "ed_char", "se_one", "se_two", "fi_open", "fi_bin", "di_press", "fo_fill",
];
/// Replies of each.
const TURNS: usize = 2;
/// Rate of the update: enough to see it in log-probabilities, too little to amplify rounding.
const LEARNING_RATE: f64 = 1e-4;

/// Load, decode and learn on the GPU and compare with the CPU
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    profile: ProfileArgs,
}

/// How far the two are apart in one respect.
#[derive(Clone, Debug)]
pub struct Figure {
    what: &'static str,
    found: f64,
    limit: f64,
    note: String,
}

impl Figure {
    /// Whether it is within its limit; what is no number never is.
    pub fn holds(&self) -> bool {
        self.found <= self.limit
    }
}

impl std::fmt::Display for Figure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mark = if self.holds() { "ok" } else { "MISMATCH" };
        let Self {
            what,
            found,
            limit,
            note,
        } = self;
        write!(
            f,
            "{mark:8} {what:38} {found:8.1e}  limit {limit:.0e}  {note}"
        )
    }
}

/// Compares and prints: 0 if all figures hold, 1 if one does not, 2 if there is no GPU.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let profile = args.profile.resolve()?.profile;
    let device = match profile.engine.device {
        DeviceChoice::Cpu => Device::Cpu,
        DeviceChoice::Auto | DeviceChoice::Cuda => match device::cuda() {
            Ok(device) => device,
            Err(reason) => {
                crate::say(&format!("gpu-check: no GPU to check, {reason}"));
                return Ok(ExitCode::from(NO_GPU));
            }
        },
    };
    tch::set_num_threads(1);
    let folder = wiring::checkpoint_path(&profile);
    let load = |device| {
        let loaded = checkpoint::load(&folder, device, Kind::Float);
        loaded.with_context(|| format!("policy.checkpoint {}", folder.display()))
    };
    let prompt = wiring::open_prompt(&profile)?;
    let figures = compare(&profile, &prompt, &load(Device::Cpu)?, &load(device)?)?;
    figures.iter().for_each(arpo::cli::say);
    Ok(if figures.iter().all(Figure::holds) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Everything that is compared, of weights that should compute the same on two devices.
pub fn compare(
    profile: &Profile,
    prompt: &PromptBuilder,
    cpu: &Weights,
    other: &Weights,
) -> anyhow::Result<Vec<Figure>> {
    let mut profile = profile.clone();
    profile.optimizer.lr = LEARNING_RATE;
    profile.optimizer.warmup_updates = 0;
    let told = answer(&profile, prompt, cpu)?;
    let other_told = answer(&profile, prompt, other)?;
    let learned = learn(&profile, prompt, cpu, &told.samples)?;
    let other_learned = learn(&profile, prompt, other, &told.samples)?;
    let mut figures = vec![Figure {
        what: "loaded weights that differ",
        found: f64::from(u8::from(learned.hash != other_learned.hash)),
        limit: 0.0,
        note: format!("cpu and {:?}", other.device()),
    }];
    figures.extend(compare_answers(&told, &other_told));
    figures.extend(compare_updates(&learned, &other_learned));
    Ok(figures)
}

/// Trajectories and how long they took.
struct Answers {
    samples: Vec<TrainSample>,
    took: Duration,
}

/// A trajectory under way.
struct Running {
    session: SessionId,
    task: Arc<Task>,
    desktop: Desktop,
    sample: TrainSample,
}

/// Greedy replies over `TURNS` turns, all tasks in one batch. The desktop follows its expert, so
/// that both devices see the same screens whatever they answer. A reply that was cut is followed
/// by its next turn all the same: these are numbers to compare, not behavior to judge.
fn answer(profile: &Profile, prompt: &PromptBuilder, weights: &Weights) -> anyhow::Result<Answers> {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.context("cannot start the runtime")?;
    let policy = start_policy(profile, prompt, weights)?;
    let started = Instant::now();
    let mut running = runtime.block_on(open_all(&policy))?;
    for turn in 0..TURNS {
        let extensions = running
            .iter()
            .map(|one| extension(profile, prompt, one, turn))
            .collect::<anyhow::Result<Vec<_>>>()?;
        let max_tokens = profile.sampling.max_reply_tokens;
        let replies = runtime.block_on(generate_all(&policy, &running, &extensions, max_tokens))?;
        for ((one, extension), reply) in running.iter_mut().zip(extensions).zip(replies) {
            record(&mut one.sample, extension, &reply);
            let advice = expert::next(&one.desktop, &one.task);
            one.desktop.apply(&advice.action);
        }
    }
    let took = started.elapsed();
    let count = running.len();
    let samples = running.into_iter().enumerate();
    let samples = samples.map(|(index, one)| with_signal(one.sample, index, count));
    Ok(Answers {
        samples: samples.collect(),
        took,
    })
}

/// A session and a desktop for each family.
async fn open_all(policy: &Embedded) -> anyhow::Result<Vec<Running>> {
    let mut running = Vec::new();
    for (number, family) in (0..).zip(FAMILIES) {
        let task = Arc::new(task(family, HELD_OUT_FIRST)?);
        let episode = EpisodeId {
            incarnation: 0,
            number,
        };
        let spec = SessionSpec {
            episode,
            sample: 0,
            seed: 0,
            task: Arc::clone(&task),
            weights: None,
        };
        running.push(Running {
            session: policy.open(spec).await?,
            desktop: Desktop::from_task(&task)?,
            task,
            sample: TrainSample {
                episode,
                ids: Vec::new(),
                mask: Vec::new(),
                sampler_logprobs: Vec::new(),
                images: Vec::new(),
                advantage: 0.0,
                weight: 0.0,
                replayed: false,
            },
        });
    }
    Ok(running)
}

/// What a trajectory's next turn adds to its session.
fn extension(
    profile: &Profile,
    prompt: &PromptBuilder,
    one: &Running,
    turn: usize,
) -> anyhow::Result<Extension> {
    let screenshot = one.desktop.render();
    let size = screenshot.size();
    let piece = match turn {
        0 => prompt.first(profile.policy.prompt, &one.task.instruction, size)?,
        _ => prompt.next(size)?,
    };
    Ok(Extension {
        ids: piece.ids,
        images: vec![screenshot],
        replies: Vec::new(),
    })
}

/// One greedy reply of every session.
async fn generate_all(
    policy: &Embedded,
    running: &[Running],
    extensions: &[Extension],
    max_tokens: usize,
) -> anyhow::Result<Vec<Generation>> {
    let greedy = SamplingParams {
        temperature: 0.0,
        top_p: 1.0,
        max_tokens,
    };
    let asked = running.iter().zip(extensions);
    let replies = asked.map(|(one, new)| policy.generate(one.session, new.clone(), greedy));
    // The first poll of the replies has sent every request before the first tick.
    let ticks = async { while policy.tick().await.is_some() {} };
    let (replies, ()) = futures::join!(futures::future::join_all(replies), ticks);
    Ok(replies.into_iter().collect::<Result<_, _>>()?)
}

/// Appends a turn.
fn record(sample: &mut TrainSample, extension: Extension, reply: &Generation) {
    let (prompted, sampled) = (extension.ids.len(), reply.ids.len());
    sample.ids.extend(extension.ids);
    sample.ids.extend(&reply.ids);
    sample.mask.extend(vec![false; prompted]);
    sample.mask.extend(vec![true; sampled]);
    sample.sampler_logprobs.extend(vec![0.0; prompted]);
    sample.sampler_logprobs.extend(&reply.logprobs);
    sample.images.extend(extension.images);
}

/// The same with an advantage: good and bad ones in turn, not in balance.
fn with_signal(sample: TrainSample, index: usize, count: usize) -> TrainSample {
    TrainSample {
        advantage: if index.is_multiple_of(2) { 1.0 } else { -0.5 },
        weight: 1.0 / (sample.num_sampled().max(1) * count) as f32,
        ..sample
    }
}

/// What came of one update.
struct Learned {
    /// Of the weights before it.
    hash: String,
    before: Vec<f32>,
    loss: f64,
    grad_norm: f64,
    after: Vec<f32>,
    took: Duration,
}

fn learn(
    profile: &Profile,
    prompt: &PromptBuilder,
    weights: &Weights,
    samples: &[TrainSample],
) -> Result<Learned, TrainerError> {
    let mut trainer = start_trainer(profile, prompt, weights);
    let hash = trainer.weights_hash();
    let started = Instant::now();
    let before = trainer.old_logprobs(samples)?.logprobs;
    let old: Vec<&[f32]> = before.iter().map(Vec::as_slice).collect();
    let all: Vec<&TrainSample> = samples.iter().collect();
    let report = trainer.update(&all, &old, Iteration(0), 0)?;
    let took = started.elapsed();
    Ok(Learned {
        hash,
        loss: report.loss.0,
        grad_norm: report.grad_norm.0,
        after: trainer.old_logprobs(samples)?.logprobs.concat(),
        before: before.concat(),
        took,
    })
}

fn compare_answers(cpu: &Answers, other: &Answers) -> [Figure; 2] {
    let pairs = || cpu.samples.iter().zip(&other.samples);
    let differing = pairs().filter(|(a, b)| a.ids != b.ids || a.mask != b.mask);
    let sampled: usize = cpu.samples.iter().map(TrainSample::num_sampled).sum();
    let gaps = pairs().map(|(a, b)| gap(&a.sampler_logprobs, &b.sampler_logprobs));
    let rate = |answers: &Answers| sampled as f64 / answers.took.as_secs_f64();
    [
        Figure {
            what: "trajectories with other tokens",
            found: differing.count() as f64,
            limit: 0.0,
            note: format!("of {}, {sampled} sampled tokens", cpu.samples.len()),
        },
        Figure {
            what: "decoding: largest log-prob gap",
            found: gaps.fold(0.0, worse),
            limit: 1e-3,
            note: format!("{:.0} and {:.0} tokens/s", rate(cpu), rate(other)),
        },
    ]
}

fn compare_updates(cpu: &Learned, other: &Learned) -> [Figure; 4] {
    let relative = (cpu.grad_norm - other.grad_norm).abs() / cpu.grad_norm.abs();
    let moved = gap(&cpu.before, &cpu.after);
    let seconds = |learned: &Learned| learned.took.as_secs_f64();
    [
        Figure {
            what: "training: largest log-prob gap",
            found: gap(&cpu.before, &other.before),
            limit: 1e-3,
            note: String::new(),
        },
        Figure {
            what: "training: loss gap",
            found: (cpu.loss - other.loss).abs(),
            limit: 1e-4,
            note: format!("{:.6} and {:.6}", cpu.loss, other.loss),
        },
        Figure {
            what: "training: relative gradient norm gap",
            found: relative,
            limit: 1e-2,
            note: format!("{:.6} and {:.6}", cpu.grad_norm, other.grad_norm),
        },
        Figure {
            what: "after one update: largest log-prob gap",
            found: gap(&cpu.after, &other.after),
            limit: 2e-2,
            note: format!(
                "moved by up to {moved:.1e}; {:.2} and {:.2} s",
                seconds(cpu),
                seconds(other)
            ),
        },
    ]
}

/// Largest difference of two lists; infinite where they are not equally long.
fn gap(a: &[f32], b: &[f32]) -> f64 {
    if a.len() != b.len() {
        return f64::INFINITY;
    }
    let gaps = a.iter().zip(b).map(|(a, b)| f64::from((a - b).abs()));
    gaps.fold(0.0, worse)
}

/// The larger of two; what is no number is worst.
fn worse(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() {
        return f64::NAN;
    }
    a.max(b)
}
