//! Evaluations of a run: `evals/003.json`, what was asked for, under which conditions, and the
//! trials so far. Rewritten whole after every trial, so that none is lost and none is done twice.

use std::fs;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::event::{EvalManifest, EvalReport, EvalRequest, TrialRow};
use crate::store::atomic::{self, Durability};
use crate::store::{RunDir, StoreError};

/// One evaluation on disk.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EvaluationRecord {
    /// Its number in the run, from 1.
    pub number: u32,
    /// What for: `heldout_first`, `heldout_last`, `eval`, or `operator`.
    pub name: String,
    /// What was asked for.
    pub request: EvalRequest,
    /// Under which conditions.
    pub manifest: EvalManifest,
    /// Trials in all.
    pub total: u32,
    /// The trials so far, in the order of tasks and trials; their episodes lie in the run.
    pub trials: Vec<TrialRow>,
    /// Its scores, once all trials are in.
    #[serde(default)]
    pub report: Option<EvalReport>,
}

impl RunDir {
    /// Stores an evaluation in the place of what was there of it.
    pub fn put_evaluation(&self, record: &EvaluationRecord) -> Result<(), StoreError> {
        let path = self.evaluation_path(record.number);
        let bytes = serde_json::to_vec_pretty(record)
            .map_err(|error| StoreError::damaged(&path, error.to_string()))?;
        atomic::write(&path, &bytes, Durability::Process)
    }

    /// A stored evaluation.
    pub fn evaluation(&self, number: u32) -> Result<EvaluationRecord, StoreError> {
        let path = self.evaluation_path(number);
        let bytes = fs::read(&path).map_err(StoreError::io("read", &path))?;
        serde_json::from_slice(&bytes)
            .map_err(|error| StoreError::damaged(&path, error.to_string()))
    }

    /// Numbers of the stored evaluations, in order.
    pub fn evaluations(&self) -> Result<Vec<u32>, StoreError> {
        let folder = self.root().join("evals");
        if !folder.exists() {
            return Ok(Vec::new());
        }
        let entries = fs::read_dir(&folder).map_err(StoreError::io("list", &folder))?;
        let mut numbers = Vec::new();
        for entry in entries {
            let name = entry.map_err(StoreError::io("list", &folder))?.file_name();
            let name = name.to_string_lossy();
            let number = name.strip_suffix(".json").map(str::parse::<u32>);
            numbers.extend(number.and_then(Result::ok));
        }
        numbers.sort_unstable();
        Ok(numbers)
    }

    fn evaluation_path(&self, number: u32) -> PathBuf {
        self.root().join("evals").join(format!("{number:03}.json"))
    }
}
