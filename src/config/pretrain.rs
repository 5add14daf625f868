//! `[pretrain]`: how a base agent is made by behavior cloning, and its shape.

use serde::{Deserialize, Serialize};

/// `[pretrain]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PretrainConfig {
    /// Seed of weights and data; apart from `run.seed`.
    pub seed: u64,
    /// Optimizer steps.
    pub steps: u64,
    /// Screenshots a step.
    pub screenshots_per_step: usize,
    /// Share of steps that ground widgets; the others clone trajectories.
    pub grounding_share: f64,
    /// Learning rate after warm-up.
    pub lr: f64,
    /// Steps over which the rate rises.
    pub warmup_steps: u64,
    /// Last share of the steps, over which the rate falls linearly to 0.
    pub decay_share: f64,
    /// Momentum of Muon, which moves the hidden matrices.
    pub momentum: f64,
    /// Decoupled weight decay of those.
    pub weight_decay: f64,
    /// Folder the checkpoint is written to.
    pub out: String,
    /// Shape of the network.
    pub model: PretrainModelConfig,
}

/// `[pretrain.model]`: the text model, by the names of Hugging Face's `config.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PretrainModelConfig {
    /// Width.
    pub hidden_size: usize,
    /// Width inside the MLP.
    pub intermediate_size: usize,
    /// Layers.
    pub num_hidden_layers: usize,
    /// Query heads.
    pub num_attention_heads: usize,
    /// Key and value heads.
    pub num_key_value_heads: usize,
    /// Base of the rotary frequencies.
    pub rope_theta: f64,
    /// Frequencies of time, row and column.
    pub mrope_section: [usize; 3],
    /// Added inside the norms.
    pub rms_norm_eps: f64,
    /// Longest position.
    pub max_position_embeddings: usize,
    /// Whether the output head is the embedding.
    pub tie_word_embeddings: bool,
    /// Standard deviation of initial weights.
    pub initializer_range: f64,
    /// Smallest picture after resizing, pixels in area.
    pub min_pixels: u32,
    /// Largest picture after resizing, pixels in area.
    pub max_pixels: u32,
    /// The vision tower.
    pub vision: PretrainVisionConfig,
}

/// `[pretrain.model.vision]`: the vision tower, by the names of `vision_config`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PretrainVisionConfig {
    /// Layers.
    pub depth: usize,
    /// Width.
    pub hidden_size: usize,
    /// Heads.
    pub num_heads: usize,
    /// Width inside the MLP.
    pub intermediate_size: usize,
    /// Pixels of a patch's side.
    pub patch_size: usize,
    /// Pictures in a patch.
    pub temporal_patch_size: usize,
    /// Patches of a merged token's side.
    pub spatial_merge_size: usize,
    /// Pixels of a window's side.
    pub window_size: usize,
    /// Layers that attend beyond windows.
    pub fullatt_block_indexes: Vec<usize>,
}
