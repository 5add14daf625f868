//! Saves of a cloning run: weights, optimizer state and counters in float32, so that an
//! interrupted run goes on with the same bits.

use std::collections::HashMap;
use std::fs;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tch::{Tensor, no_grad};

use super::objective::HEAD_NAMES;
use super::{PretrainError, Run, save_agent};

/// Beside the tensors.
#[derive(Serialize, Deserialize)]
struct Counters {
    step: u64,
    optimizer_steps: i64,
    spent_s: f64,
}

/// Writes the agent as it is and what is needed to go on.
pub(super) fn save(run: &Run<'_>) -> Result<(), PretrainError> {
    save_agent(run)?;
    let path = run.out.join("state.safetensors");
    let partial = run.out.join("state.partial");
    let mut tensors: Vec<(String, Tensor)> = run
        .weights
        .named()
        .iter()
        .map(|(name, tensor)| (name.clone(), tensor.shallow_clone()))
        .collect();
    for (name, tensor) in HEAD_NAMES.iter().zip(&run.heads) {
        tensors.push(((*name).to_owned(), tensor.shallow_clone()));
    }
    tensors.extend(run.optimizer.state());
    let counters = Counters {
        step: run.step,
        optimizer_steps: run.optimizer.steps(),
        spent_s: run.spent.as_secs_f64(),
    };
    // The counters travel in the same file, so that both are of the same moment.
    let counters = serde_json::to_vec(&counters).expect("numbers are JSON");
    tensors.push(("counters".to_owned(), Tensor::from_slice(&counters)));
    Tensor::write_safetensors(&tensors, &partial).map_err(|e| PretrainError::State {
        path: partial.clone(),
        message: e.to_string(),
    })?;
    fs::rename(&partial, &path).map_err(|e| PretrainError::io("write", &path, e))
}

/// Takes up the save in the run's folder, if there is one.
pub(super) fn restore(run: &mut Run<'_>) -> Result<(), PretrainError> {
    let path = run.out.join("state.safetensors");
    if !path.exists() {
        return Ok(());
    }
    let fail = |message: String| PretrainError::State {
        path: path.clone(),
        message,
    };
    let found: HashMap<String, Tensor> = Tensor::read_safetensors(&path)
        .map_err(|e| fail(e.to_string()))?
        .into_iter()
        .collect();
    let find = |name: &str| found.get(name).map(Tensor::shallow_clone);
    let names = run.weights.named().iter().map(|(name, _)| name.clone());
    let names: Vec<String> = names.chain(HEAD_NAMES.map(str::to_owned)).collect();
    for (name, mut param) in names.iter().zip(run.params()) {
        let saved = find(name).filter(|saved| saved.size() == param.size());
        let saved = saved.ok_or_else(|| fail(format!("{name} is missing or of another shape")))?;
        no_grad(|| param.copy_(&saved));
    }
    let counters = find("counters").ok_or_else(|| fail("counters are missing".to_owned()))?;
    let bytes = Vec::<u8>::try_from(&counters).map_err(|e| fail(e.to_string()))?;
    let counters: Counters = serde_json::from_slice(&bytes).map_err(|e| fail(e.to_string()))?;
    run.optimizer
        .restore(counters.optimizer_steps, find)
        .map_err(fail)?;
    run.step = counters.step;
    run.spent = Duration::from_secs_f64(counters.spent_s);
    Ok(())
}
