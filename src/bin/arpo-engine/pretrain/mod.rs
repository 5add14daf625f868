//! Behavior cloning of a base agent on the simulated desktops' own pixels.
//!
//! Writes a whole Hugging Face checkpoint: network, tokenizer, processor settings. A run that
//! was interrupted goes on from its last save, with the same batches. Nothing here is used at
//! run time of an agent.
//!
//! Recipe: each step half pointing and reading on single screenshots, half whole trajectories;
//! Muon for the hidden matrices, AdamW for the rest; warm-up, constant rate, linear decay.

mod agent;
mod objective;
mod samples;
mod state;
mod vocabulary;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tch::{Kind, Tensor};

use arpo::config::PretrainConfig;
use arpo::env::simulated::DesktopError;
use arpo::env::simulated::suite::SuiteError;
use arpo::prompt::{PromptBuilder, PromptError};
use arpo::screen::ScreenError;
use arpo::types::derive_seed;

use crate::model::{ModelError, Weights, checkpoint};
use crate::trainer::lanes;
use crate::trainer::optim::{Optimizer, OptimizerConfig, Rule, learning_rate};
use objective::{HEAD_NAMES, Heads, Tally};
use samples::{Maker, Sample};
use vocabulary::Vocabulary;

/// Steps in which only the vision tower learns, before the text model joins.
const VISION_STEPS: u64 = 400;
/// Steps between two lines of the log.
const LOG_EVERY: u64 = 50;
/// Steps between two measurements on unseen instances.
const MEASURE_EVERY: u64 = 500;
/// Trajectories of such a measurement.
const MEASURED_TRAJECTORIES: usize = 96;
/// Time between two saves.
const SAVE_EVERY: Duration = Duration::from_secs(150);
/// Screenshots of an average trajectory; how many trajectories fill a step.
const SCREENSHOTS_PER_TRAJECTORY: f64 = 3.2;

/// First numbers of the paths that seeds are derived by.
mod seed {
    pub(super) const WEIGHTS: u64 = 1;
    pub(super) const GROUNDING: u64 = 3;
    pub(super) const TRAJECTORY: u64 = 4;
    pub(super) const MEASURE: u64 = 5;
    pub(super) const LOOKING: u64 = 6;
}

/// Why cloning stopped.
#[derive(Debug, thiserror::Error)]
pub enum PretrainError {
    /// A file could not be read or written.
    #[error("cannot {action} {}", .path.display())]
    Io {
        /// `read` or `write`.
        action: &'static str,
        /// Which file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The tokenizer could not be made or read.
    #[error("tokenizer: {0}")]
    Tokenizer(String),
    /// The saved state does not fit the profile.
    #[error("{}: {message}; remove the folder to start anew", .path.display())]
    State {
        /// Which file.
        path: PathBuf,
        /// What does not fit.
        message: String,
    },
    /// The network refused something.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// A picture could not be prepared.
    #[error(transparent)]
    Screen(#[from] ScreenError),
    /// A prompt could not be made.
    #[error(transparent)]
    Prompt(#[from] PromptError),
    /// A task could not be made.
    #[error(transparent)]
    Suite(#[from] SuiteError),
    /// A desktop could not be made.
    #[error(transparent)]
    Desktop(#[from] DesktopError),
}

impl PretrainError {
    fn io(action: &'static str, path: &Path, source: std::io::Error) -> Self {
        Self::Io {
            action,
            path: path.to_owned(),
            source,
        }
    }
}

/// Everything that changes while cloning.
struct Run<'a> {
    config: &'a PretrainConfig,
    out: &'a Path,
    num_lanes: usize,
    vocabulary: Vocabulary,
    prompts: PromptBuilder,
    /// Master weights; updated in place.
    weights: Weights,
    /// The matrices of `objective::Heads`.
    heads: Vec<Tensor>,
    optimizer: Optimizer,
    /// Steps done.
    step: u64,
    /// Time spent, earlier parts of a resumed run included.
    spent: Duration,
    log: fs::File,
}

/// Clones a base agent into the folder `out`; goes on from its last save if it has one. `say`
/// gets a line of progress now and then.
pub fn run(
    config: &PretrainConfig,
    out: &Path,
    num_lanes: usize,
    mut say: impl FnMut(&str),
) -> Result<(), PretrainError> {
    let mut run = Run::open(config, out, num_lanes)?;
    say(&format!(
        "{} tokens, {} weights, {} lanes, from step {} of {}",
        run.vocabulary.len(),
        run.weights
            .named()
            .iter()
            .map(|(_, t)| t.numel())
            .sum::<usize>(),
        num_lanes,
        run.step,
        config.steps
    ));
    let (mut tally, mut since, mut saved) = (Tally::default(), Instant::now(), Instant::now());
    while run.step < config.steps {
        let started = Instant::now();
        tally += run.update()?;
        run.spent += started.elapsed();
        if run.step.is_multiple_of(LOG_EVERY) {
            let seconds = since.elapsed().as_secs_f64() / LOG_EVERY as f64;
            say(&run.record("train", &tally, seconds)?);
            (tally, since) = (Tally::default(), Instant::now());
        }
        if run.step.is_multiple_of(MEASURE_EVERY) {
            let measured = run.measure(MEASURED_TRAJECTORIES)?;
            say(&run.record("unseen", &measured, 0.0)?);
            since = Instant::now();
        }
        if SAVE_EVERY <= saved.elapsed() {
            state::save(&run)?;
            saved = Instant::now();
        }
    }
    state::save(&run)?;
    let measured = run.measure(4 * MEASURED_TRAJECTORIES)?;
    say(&run.record("unseen", &measured, 0.0)?);
    Ok(())
}

impl<'a> Run<'a> {
    /// A fresh run, or the one that `out` holds.
    fn open(
        config: &'a PretrainConfig,
        out: &'a Path,
        num_lanes: usize,
    ) -> Result<Self, PretrainError> {
        fs::create_dir_all(out).map_err(|e| PretrainError::io("write", out, e))?;
        let processor = agent::processor(&config.model);
        let vocabulary = Vocabulary::train(&agent::texts(&processor)?)?;
        vocabulary.save(out)?;
        let settings = vocabulary::pretty(&processor.to_json());
        vocabulary::write(&out.join("preprocessor_config.json"), &settings)?;
        let prompts = PromptBuilder::open(out)?;
        let model = Arc::new(agent::model_config(&config.model, vocabulary.len())?);
        let weights = Weights::random(model, derive_seed(config.seed, &[seed::WEIGHTS]));
        let heads = agent::heads(&weights);
        let path = out.join("log.csv");
        let log = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .map_err(|e| PretrainError::io("write", &path, e))?;
        let mut run = Self {
            config,
            out,
            num_lanes,
            vocabulary,
            prompts,
            optimizer: new_optimizer(config, &weights, &heads),
            weights,
            heads,
            step: 0,
            spent: Duration::ZERO,
            log,
        };
        state::restore(&mut run)?;
        Ok(run)
    }

    /// One optimizer step on fresh samples.
    fn update(&mut self) -> Result<Tally, PretrainError> {
        if self.step == VISION_STEPS {
            agent::tie_keys(&self.weights);
        }
        let plans = lanes::split_by_cost(self.plan(), self.num_lanes, Plan::screenshots);
        let inputs = plans
            .into_iter()
            .map(|plan| {
                let heads = lanes::leaves(&self.heads);
                (plan, self.weights.leaves(|_| true), heads)
            })
            .collect();
        let maker = self.maker();
        let results = lanes::run(inputs, |_, (plan, weights, heads)| {
            differentiate(&maker, &plan, &weights, heads)
        });
        let (mut grads, mut tally) = (Vec::new(), Tally::default());
        for result in results {
            let (lane_grads, lane_tally) = result?;
            grads.push(lane_grads);
            tally += lane_tally;
        }
        let mut grads = lanes::sum_grads(grads);
        let weight = objective::weight(&tally).max(1.0);
        for grad in &mut grads {
            let _ = grad.g_mul_scalar_(1.0 / weight);
        }
        let config = self.config;
        let lr = learning_rate(
            config.lr,
            self.step,
            config.warmup_steps,
            config.steps,
            config.decay_share,
        );
        // The text model warms up on its own when it joins.
        let joined = (self.step + 1).saturating_sub(VISION_STEPS);
        let lr = if self.step < VISION_STEPS {
            lr
        } else {
            lr * (joined as f64 / config.warmup_steps.max(1) as f64).min(1.0)
        };
        let params = self.params();
        self.optimizer.step(&params, &mut grads, lr, self.num_lanes);
        self.step += 1;
        Ok(tally)
    }

    /// What the next step is made of.
    fn plan(&self) -> Vec<Plan> {
        let per_step = self.config.screenshots_per_step as f64;
        if self.step < VISION_STEPS {
            let of = |i: u64| derive_seed(self.config.seed, &[seed::LOOKING, self.step, i]);
            let looking = (0..per_step as u64).map(|i| Plan::Looking { seed: of(i) });
            return looking.collect();
        }
        let share = self.config.grounding_share;
        let grounding = (per_step * share).round() as u64;
        let trajectories = (per_step * (1.0 - share) / SCREENSHOTS_PER_TRAJECTORY).round() as u64;
        let of = |kind: u64, i: u64| derive_seed(self.config.seed, &[kind, self.step, i]);
        let pointing = (0..grounding).map(|i| Plan::Grounding {
            seed: of(seed::GROUNDING, i),
        });
        let cloning = (0..trajectories).map(|i| Plan::Trajectory {
            seed: of(seed::TRAJECTORY, i),
            number: self.step * trajectories + i,
        });
        cloning.chain(pointing).collect()
    }

    /// Accuracies on instances that nothing is trained on, families in turn, no mistakes; by
    /// family in `families.csv`.
    fn measure(&self, trajectories: usize) -> Result<Tally, PretrainError> {
        let tasks = agent::heldout_tasks(trajectories)?;
        let inputs = lanes::split_by_cost(tasks, self.num_lanes, |_| 1)
            .into_iter()
            .map(|tasks| (tasks, self.weights.shallow_clone(), self.heads_clone()))
            .collect();
        let (maker, seed) = (self.maker(), self.config.seed);
        let results = lanes::run(inputs, |_, (tasks, weights, heads)| {
            tch::no_grad(|| agent::measure(&maker, tasks, &weights, &heads, seed))
        });
        let mut families = BTreeMap::<String, Tally>::new();
        for result in results {
            for (task, tally) in result? {
                let family = task.id.0.split('/').nth(1).unwrap_or_default().to_owned();
                *families.entry(family).or_default() += tally;
            }
        }
        let mut text = String::from("family,trajectories,trajectory,follow,reply,word,xy,label\n");
        let mut all = Tally::default();
        for (family, tally) in families {
            let _ = writeln!(
                text,
                "{family},{},{:.3},{:.3},{:.3},{:.3},{:.3},{:.3}",
                tally.trajectories.asked,
                tally.trajectories.share(),
                tally.follow / tally.trajectories.asked.max(1) as f64,
                tally.replies.share(),
                tally.reply.share(),
                tally.reply_point.share(),
                tally.label.share(),
            );
            all += tally;
        }
        vocabulary::write(&self.out.join("families.csv"), &text)?;
        Ok(all)
    }

    fn maker(&self) -> Maker<'_> {
        Maker {
            vocabulary: &self.vocabulary,
            prompts: &self.prompts,
        }
    }

    /// All trained tensors in the optimizer's order.
    fn params(&self) -> Vec<Tensor> {
        let weights = self.weights.named().iter().map(|(_, tensor)| tensor);
        weights
            .chain(&self.heads)
            .map(Tensor::shallow_clone)
            .collect()
    }

    fn heads_clone(&self) -> Heads {
        objective_heads(self.heads.iter().map(Tensor::shallow_clone).collect())
    }

    /// Appends a line to `log.csv` and says it in words.
    fn record(&mut self, what: &str, tally: &Tally, seconds: f64) -> Result<String, PretrainError> {
        let path = self.out.join("log.csv");
        let fail = |e| PretrainError::io("write", &path, e);
        let line = objective_line(tally);
        if self.log.metadata().map_err(fail)?.len() == 0 {
            let names: Vec<&str> = line.iter().map(|(name, _)| *name).collect();
            writeln!(self.log, "step,set,spent_s,{}", names.join(",")).map_err(fail)?;
        }
        let values: Vec<String> = line
            .iter()
            .map(|(_, value)| format!("{value:.4}"))
            .collect();
        let (step, spent) = (self.step, self.spent.as_secs());
        writeln!(self.log, "{step},{what},{spent},{}", values.join(",")).map_err(fail)?;
        let words: Vec<String> = line
            .iter()
            .map(|(name, value)| format!("{name} {value:.3}"))
            .collect();
        Ok(format!(
            "{what} step {step} {spent} s {seconds:.3} s/step {}",
            words.join(" ")
        ))
    }
}

/// One sample to be made.
enum Plan {
    Looking { seed: u64 },
    Grounding { seed: u64 },
    Trajectory { seed: u64, number: u64 },
}

impl Plan {
    /// Expected screenshots in tenths, for an even split.
    fn screenshots(&self) -> usize {
        match self {
            Plan::Looking { .. } | Plan::Grounding { .. } => 10,
            Plan::Trajectory { .. } => (SCREENSHOTS_PER_TRAJECTORY * 10.0) as usize,
        }
    }

    fn make(&self, maker: &Maker<'_>) -> Result<Sample, PretrainError> {
        match self {
            Plan::Looking { seed } => maker.looking(*seed),
            Plan::Grounding { seed } => maker.grounding(*seed),
            Plan::Trajectory { seed, number } => maker.trajectory(*seed, *number),
        }
    }
}

/// One lane's part of a step: makes its samples and differentiates their summed loss.
fn differentiate(
    maker: &Maker<'_>,
    plan: &[Plan],
    weights: &Weights,
    heads: Vec<Tensor>,
) -> Result<(Vec<Tensor>, Tally), PretrainError> {
    let samples = plan
        .iter()
        .map(|plan| plan.make(maker))
        .collect::<Result<Vec<_>, _>>()?;
    let mut params: Vec<Tensor> = weights
        .named()
        .iter()
        .map(|(_, tensor)| tensor.shallow_clone())
        .collect();
    params.extend(heads.iter().map(Tensor::shallow_clone));
    let heads = objective_heads(heads);
    let (loss, tally) = objective::loss(weights, &heads, &samples, maker.vocabulary)?;
    loss.backward();
    Ok((lanes::take_grads(&params), tally))
}

/// The three matrices under their names.
fn objective_heads(matrices: Vec<Tensor>) -> Heads {
    let matrices = matrices
        .try_into()
        .unwrap_or_else(|_| unreachable!("there are as many matrices as names"));
    Heads { matrices }
}

/// Names and values of a log line.
fn objective_line(tally: &Tally) -> [(&'static str, f64); 15] {
    [
        ("loss", tally.loss / tally.tokens.max(1.0)),
        ("cell_loss", tally.cell_loss / tally.cells.max(1.0)),
        ("word", tally.reply.share()),
        ("xy", tally.reply_point.share()),
        ("xy_hit", tally.reply_hit.share()),
        ("point", tally.point.share()),
        ("hit", tally.hit.share()),
        ("reading", tally.reading.share()),
        ("fact", tally.fact.share()),
        ("label", tally.label.share()),
        ("place", tally.place.share()),
        ("pointer", tally.pointer.share()),
        ("reply", tally.replies.share()),
        ("trajectory", tally.trajectories.share()),
        (
            "follow",
            tally.follow / tally.trajectories.asked.max(1) as f64,
        ),
    ]
}

/// Muon for matrices inside the network, AdamW for embeddings, norms, biases and the rest.
fn new_optimizer(config: &PretrainConfig, weights: &Weights, heads: &[Tensor]) -> Optimizer {
    let rules = OptimizerConfig {
        beta1: 0.9,
        beta2: 0.98,
        eps: 1e-8,
        weight_decay: 0.0,
        muon_momentum: config.momentum,
        muon_weight_decay: config.weight_decay,
        max_grad_norm: 1.0,
    };
    let named = weights.named().iter().map(|(name, tensor)| {
        let hidden = name.contains(".layers.") || name.starts_with("visual.");
        let rule = if hidden && tensor.dim() == 2 {
            Rule::Muon
        } else {
            Rule::AdamW
        };
        (name.as_str(), rule, tensor)
    });
    let heads = HEAD_NAMES.into_iter().zip(heads);
    let heads = heads.map(|(name, tensor)| (name, Rule::Muon, tensor));
    Optimizer::new(rules, named.chain(heads))
}

/// Kind of the checkpoint's numbers.
const SAVED_KIND: Kind = Kind::BFloat16;

/// Writes the agent as it is into `out`.
fn save_agent(run: &Run<'_>) -> Result<(), PretrainError> {
    Ok(checkpoint::save(&run.weights, run.out, SAVED_KIND)?)
}
