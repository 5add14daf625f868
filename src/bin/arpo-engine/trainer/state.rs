//! Checkpoints of a trainer: weights in Hugging Face layout and float32, optimizer state,
//! counters. Resuming from one gives the bits of a run that was not interrupted.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};
use tch::{Kind, Tensor};

use arpo::types::PolicyVersion;

use super::{Trainer, TrainerError};
use crate::model::{Weights, checkpoint};

/// Optimizer state beside the weights.
const OPTIMIZER_FILE: &str = "optimizer.safetensors";
/// Counters beside the weights.
const COUNTERS_FILE: &str = "trainer.json";

/// `trainer.json`.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Counters {
    version: PolicyVersion,
    updates: u64,
    optimizer_steps: i64,
}

impl Trainer {
    /// Writes weights, `config.json`, optimizer state and counters into `folder`. Tokenizer and
    /// processor files are not the trainer's.
    pub fn save(&self, folder: &Path) -> Result<(), TrainerError> {
        checkpoint::save(&self.weights, folder, Kind::Float)?;
        let path = folder.join(OPTIMIZER_FILE);
        Tensor::write_safetensors(&self.optimizer.state(), &path).map_err(|e| {
            TrainerError::State {
                path: path.clone(),
                message: e.to_string(),
            }
        })?;
        let counters = Counters {
            version: self.version,
            updates: self.updates,
            optimizer_steps: self.optimizer.steps(),
        };
        let path = folder.join(COUNTERS_FILE);
        let text = serde_json::to_string_pretty(&counters).expect("numbers are JSON");
        fs::write(&path, text).map_err(|source| TrainerError::Io {
            action: "write",
            path,
            source,
        })
    }

    /// Takes up what `save` wrote into `folder`.
    pub fn load(&mut self, folder: &Path) -> Result<(), TrainerError> {
        let path = folder.join(COUNTERS_FILE);
        let text = fs::read_to_string(&path).map_err(|source| TrainerError::Io {
            action: "read",
            path: path.clone(),
            source,
        })?;
        let fail = |path: &Path, message: String| TrainerError::State {
            path: path.to_owned(),
            message,
        };
        let counters: Counters =
            serde_json::from_str(&text).map_err(|e| fail(&path, e.to_string()))?;
        self.weights = checkpoint::load(folder, self.weights.device(), Kind::Float)?;
        let path = folder.join(OPTIMIZER_FILE);
        let found: HashMap<String, Tensor> = Tensor::read_safetensors(&path)
            .map_err(|e| fail(&path, e.to_string()))?
            .into_iter()
            .collect();
        self.optimizer
            .restore(counters.optimizer_steps, |name| {
                found.get(name).map(Tensor::shallow_clone)
            })
            .map_err(|message| fail(&path, message))?;
        self.version = counters.version;
        self.updates = counters.updates;
        Ok(())
    }

    /// Hash of the master weights, 32 hex digits: the same bits give the same hash.
    pub fn weights_hash(&self) -> String {
        weights_hash(&self.weights)
    }
}

/// Hash of names, shapes and float32 bits of all tensors, 32 hex digits.
pub fn weights_hash(weights: &Weights) -> String {
    let mut hasher = blake3::Hasher::new();
    for (name, tensor) in weights.named() {
        let flat = tensor.detach().to_kind(Kind::Float).reshape([-1]);
        let values = Vec::<f32>::try_from(&flat).expect("weights are float vectors");
        hasher.update(name.as_bytes());
        hasher.update(format!("{:?}", tensor.size()).as_bytes());
        for value in values {
            hasher.update(&value.to_le_bytes());
        }
    }
    hasher.finalize().to_hex()[..32].to_owned()
}
