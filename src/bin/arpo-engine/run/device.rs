//! The embedded policy and the learner over one checkpoint.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use arpo::cli::wiring;
use arpo::config::{EngineConfig, Profile};
use arpo::event::UpdateReport;
use arpo::grpo::TrainSample;
use arpo::http::with_causes;
use arpo::policy::Policy;
use arpo::prompt::PromptBuilder;
use arpo::session::{Learner, LearnerError, OldLogprobReport, UpdateSettings};
use arpo::types::{Iteration, PolicyVersion};
use async_trait::async_trait;
use tch::Kind;

use crate::device;
use crate::engine::{Embedded, EmbeddedSpec};
use crate::model::{Weights, checkpoint};
use crate::trainer::{Trainer, TrainerConfig, TrainerError};

/// Who answers and who learns.
pub struct Device {
    /// The policy.
    pub policy: Arc<dyn Policy>,
    /// The learner, which publishes to it.
    pub learner: Box<dyn Learner>,
}

/// Loads the profile's checkpoint to the profile's device and starts the lanes.
pub fn open(profile: &Profile) -> anyhow::Result<Device> {
    tch::set_num_threads(1);
    let device = device::choose(profile.engine.device).context("engine.device = \"cuda\"")?;
    let folder = wiring::checkpoint_path(profile);
    let weights = checkpoint::load(&folder, device, Kind::Float)
        .with_context(|| format!("policy.checkpoint {}", folder.display()))?;
    let prompt = wiring::open_prompt(profile)?;
    let policy = Arc::new(start_policy(profile, &prompt, &weights)?);
    let learner = EmbeddedLearner {
        trainer: start_trainer(profile, &prompt, &weights),
        policy: Arc::clone(&policy),
        samples: Vec::new(),
        old_logprobs: Vec::new(),
        updates: 0,
    };
    Ok(Device {
        policy,
        learner: Box::new(learner),
    })
}

/// The policy over `weights`, on their device.
pub(super) fn start_policy(
    profile: &Profile,
    prompt: &PromptBuilder,
    weights: &Weights,
) -> anyhow::Result<Embedded> {
    let spec = EmbeddedSpec {
        context_tokens: profile.policy.context_tokens,
        stop_ids: vec![prompt.special().turn_end],
        processor: prompt.processor().clone(),
    };
    let config = EngineConfig {
        lanes: device::num_lanes(weights.device(), profile.engine.lanes),
        ..profile.engine.clone()
    };
    Ok(Embedded::start(weights, &config, &spec)?)
}

/// A trainer over a copy of `weights`, on their device.
pub(super) fn start_trainer(
    profile: &Profile,
    prompt: &PromptBuilder,
    weights: &Weights,
) -> Trainer {
    let config = TrainerConfig {
        grpo: profile.grpo,
        optimizer: profile.optimizer,
        replayed_old_logprobs: profile.replay.old_logprobs,
        temperature: profile.sampling.temperature,
        num_lanes: device::num_lanes(weights.device(), profile.engine.lanes),
    };
    Trainer::new(weights, prompt.processor().clone(), config)
}

/// The trainer behind the `Learner` trait. Its work blocks; the runtime's other threads go on.
struct EmbeddedLearner {
    trainer: Trainer,
    policy: Arc<Embedded>,
    samples: Vec<TrainSample>,
    old_logprobs: Vec<Vec<f32>>,
    updates: u32,
}

impl EmbeddedLearner {
    /// Runs blocking work; a panic in it becomes an error.
    fn work<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, TrainerError>,
    ) -> Result<T, LearnerError> {
        let caught = tokio::task::block_in_place(|| catch_unwind(AssertUnwindSafe(|| work(self))));
        match caught {
            Ok(result) => result.map_err(|error| LearnerError::Failed(with_causes(&error))),
            Err(panic) => Err(LearnerError::Failed(panic_message(&panic))),
        }
    }

    fn hand_out(&self, weights: &Weights) -> Result<PolicyVersion, LearnerError> {
        let published = self.policy.publish(weights);
        published.map_err(|error| LearnerError::Failed(error.to_string()))?;
        Ok(weights.version)
    }
}

#[async_trait]
impl Learner for EmbeddedLearner {
    async fn begin(
        &mut self,
        samples: Vec<TrainSample>,
        temperature: f64,
    ) -> Result<OldLogprobReport, LearnerError> {
        self.trainer.set_temperature(temperature);
        self.samples = samples;
        self.updates = 0;
        self.work(|own| {
            let report = own.trainer.old_logprobs(&own.samples)?;
            own.old_logprobs = report.logprobs;
            Ok(OldLogprobReport {
                gap_mean: report.gap_mean,
                gap_max: report.gap_max,
            })
        })
    }

    async fn update(
        &mut self,
        indices: &[usize],
        settings: UpdateSettings,
    ) -> Result<UpdateReport, LearnerError> {
        self.work(|own| {
            own.trainer.set_learning_rate(settings.learning_rate);
            own.trainer.set_clip(settings.clip_low, settings.clip_high);
            let samples: Vec<&TrainSample> = indices.iter().map(|i| &own.samples[*i]).collect();
            let old: Vec<&[f32]> = indices
                .iter()
                .map(|i| own.old_logprobs[*i].as_slice())
                .collect();
            own.updates += 1;
            own.trainer
                .update(&samples, &old, Iteration(0), own.updates - 1)
        })
    }

    async fn publish(&mut self) -> Result<PolicyVersion, LearnerError> {
        let weights = self.work(|own| Ok(own.trainer.publish()))?;
        self.hand_out(&weights)
    }

    async fn save(&mut self, dir: &Path) -> Result<String, LearnerError> {
        self.work(|own| own.trainer.save(dir))
            .map_err(|error| at(dir, &error))?;
        hash_weights(dir)
    }

    async fn load(&mut self, dir: &Path) -> Result<PolicyVersion, LearnerError> {
        self.work(|own| own.trainer.load(dir))
            .map_err(|error| at(dir, &error))?;
        self.publish().await
    }
}

/// blake3 of the weights' file, hex.
fn hash_weights(dir: &Path) -> Result<String, LearnerError> {
    let path = dir.join("model.safetensors");
    let bytes = std::fs::read(&path).map_err(|error| at(&path, &error))?;
    Ok(blake3::hash(&bytes).to_hex()[..16].to_owned())
}

fn at(path: &Path, error: &(dyn std::error::Error + 'static)) -> LearnerError {
    LearnerError::Checkpoint {
        path: path.display().to_string(),
        reason: with_causes(error),
    }
}

fn panic_message(panic: &Box<dyn std::any::Any + Send>) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("the trainer panicked").to_owned()
}
