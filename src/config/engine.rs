//! `[engine]`: embedded inference, and what its work costs on a virtual clock.

use serde::{Deserialize, Serialize};

/// `[engine]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EngineConfig {
    /// What computes.
    pub device: DeviceChoice,
    /// CPU lanes: threads that compute apart, one intra-op thread each. 0 is one a core. Part of
    /// what decides a run's bits. A GPU has one lane, whatever this says.
    pub lanes: usize,
    /// KV memory of all lanes, MB; beyond it the session longest unused is computed again.
    pub kv_budget_mb: usize,
    /// Most sessions in one lane's batch.
    pub max_batch: usize,
    /// What work costs.
    pub cost: CostTable,
}

/// What computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceChoice {
    /// The first GPU where there is one that works, else the CPU.
    Auto,
    /// The CPU, whatever there is.
    Cpu,
    /// The first GPU, or nothing.
    Cuda,
}

/// `[engine.cost]`: what one lane's batch takes on a virtual clock, µs. Measured once and
/// written down, so that simulated runs do not depend on the machine's mood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CostTable {
    /// A vision batch, whatever its size.
    pub vision_call_us: u64,
    /// Each screenshot in it.
    pub vision_image_us: u64,
    /// A prefill batch, whatever its size.
    pub prefill_call_us: u64,
    /// Each prompt token in it.
    pub prefill_token_us: u64,
    /// A decode batch, whatever its size.
    pub decode_call_us: u64,
    /// Each session in it.
    pub decode_row_us: u64,
}

impl CostTable {
    /// Cost of one tick of one lane, µs: `images` screenshots encoded, `prompt_tokens`
    /// prefilled, `rows` sessions decoded by one token. What is 0 costs nothing.
    pub fn batch_us(&self, images: usize, prompt_tokens: usize, rows: usize) -> u64 {
        let part = |count: usize, call: u64, each: u64| {
            if count == 0 {
                0
            } else {
                call + each * count as u64
            }
        };
        part(images, self.vision_call_us, self.vision_image_us)
            + part(prompt_tokens, self.prefill_call_us, self.prefill_token_us)
            + part(rows, self.decode_call_us, self.decode_row_us)
    }
}
