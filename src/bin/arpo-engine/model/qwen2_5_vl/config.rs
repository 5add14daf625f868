//! A checkpoint's `config.json`, in the layouts that `transformers` writes and has written.
//!
//! Flat (text keys at the root, as on the hub) and nested (`text_config`); rotary parameters
//! as `rope_theta` with `rope_scaling`, or as one `rope_parameters` table. What this code does
//! not compute (sliding windows, stretched rotary embeddings) is refused by name. The JSON is
//! kept and written back as it was read.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::model::ModelError;

/// Sizes of the network and ids of its special tokens.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelConfig {
    /// The language model.
    pub text: TextConfig,
    /// The vision tower.
    pub vision: VisionConfig,
    /// Placeholder of one merged patch.
    pub image_token_id: i64,
    /// Whether the embedding matrix is the head too.
    pub tie_word_embeddings: bool,
    raw: Value,
}

/// Sizes of the language model, named as in `Qwen2_5_VLTextConfig`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct TextConfig {
    /// Rows of the embedding matrix.
    pub vocab_size: i64,
    /// Width of the residual stream.
    pub hidden_size: i64,
    /// Width inside the MLP.
    pub intermediate_size: i64,
    /// Decoder layers.
    pub num_hidden_layers: i64,
    /// Query heads.
    pub num_attention_heads: i64,
    /// Key and value heads; each serves a group of query heads.
    pub num_key_value_heads: i64,
    /// Added to the mean square in norms.
    pub rms_norm_eps: f64,
    /// The context in tokens.
    #[serde(default = "default_max_position_embeddings")]
    pub max_position_embeddings: i64,
    /// Standard deviation of fresh weights.
    #[serde(default = "default_initializer_range")]
    pub initializer_range: f64,
    /// Base of the rotary frequencies.
    #[serde(skip)]
    pub rope_theta: f64,
    /// How many of the `head_dim / 2` frequencies turn with time, height and width.
    #[serde(skip)]
    pub mrope_section: [i64; 3],
}

/// Sizes of the vision tower, named as in `Qwen2_5_VLVisionConfig`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct VisionConfig {
    /// Blocks.
    pub depth: i64,
    /// Width of a patch's state.
    pub hidden_size: i64,
    /// Width inside the MLP.
    pub intermediate_size: i64,
    /// Attention heads.
    pub num_heads: i64,
    /// Colour channels.
    #[serde(default = "default_in_channels", alias = "in_chans")]
    pub in_channels: i64,
    /// Pixels along a patch's edge.
    pub patch_size: i64,
    /// Frames of a patch; a still picture is repeated.
    #[serde(default = "default_two")]
    pub temporal_patch_size: i64,
    /// Patches along the edge of a merged patch.
    #[serde(default = "default_two")]
    pub spatial_merge_size: i64,
    /// Pixels along the edge of an attention window.
    pub window_size: i64,
    /// Blocks that look at the whole picture instead of a window.
    pub fullatt_block_indexes: Vec<i64>,
    /// Width of a feature: the text model's `hidden_size`.
    pub out_hidden_size: i64,
    /// Standard deviation of fresh weights.
    #[serde(default = "default_initializer_range")]
    pub initializer_range: f64,
    /// Base of the rotary frequencies.
    #[serde(skip)]
    pub rope_theta: f64,
}

/// What `Qwen2_5_VLTextConfig` takes where a checkpoint is silent.
fn default_max_position_embeddings() -> i64 {
    32_768
}

/// The same.
fn default_initializer_range() -> f64 {
    0.02
}

/// The same, for `Qwen2_5_VLVisionConfig`.
fn default_in_channels() -> i64 {
    3
}

/// The same.
fn default_two() -> i64 {
    2
}

impl TextConfig {
    /// Width of one attention head.
    pub fn head_dim(&self) -> i64 {
        self.hidden_size / self.num_attention_heads
    }
}

impl VisionConfig {
    /// Width of one attention head.
    pub fn head_dim(&self) -> i64 {
        self.hidden_size / self.num_heads
    }

    /// Numbers of one patch as the processor lays them out: channels, frames, rows, columns.
    pub fn patch_dim(&self) -> i64 {
        self.in_channels * self.temporal_patch_size * self.patch_size * self.patch_size
    }

    /// Patches that become one feature.
    pub fn merge_unit(&self) -> i64 {
        self.spatial_merge_size * self.spatial_merge_size
    }
}

impl ModelConfig {
    /// Reads the text of a `config.json`.
    pub fn parse(json: &str) -> Result<Self, ModelError> {
        let raw: Value = serde_json::from_str(json).map_err(|e| invalid(e.to_string()))?;
        let root = raw.as_object().ok_or_else(|| invalid("not a table"))?;
        let model_type = root.get("model_type").and_then(Value::as_str);
        if model_type != Some("qwen2_5_vl") {
            let found = model_type.unwrap_or("none");
            return Err(invalid(format!(
                "model_type is {found}, but only qwen2_5_vl is computed here"
            )));
        }
        let text_table = match root.get("text_config").and_then(Value::as_object) {
            Some(nested) => nested,
            None => root,
        };
        let vision_table = root
            .get("vision_config")
            .and_then(Value::as_object)
            .ok_or_else(|| invalid("vision_config is missing"))?;
        let config = Self {
            text: parse_text(text_table)?,
            vision: parse_vision(vision_table)?,
            image_token_id: integer(root, "image_token_id")?,
            tie_word_embeddings: flag(root, "tie_word_embeddings")
                || flag(text_table, "tie_word_embeddings"),
            raw: raw.clone(),
        };
        config.check()?;
        Ok(config)
    }

    /// The text of its `config.json`.
    pub fn to_json(&self) -> String {
        format!("{:#}\n", self.raw)
    }

    /// Sizes that must fit each other.
    fn check(&self) -> Result<(), ModelError> {
        let (text, vision) = (&self.text, &self.vision);
        require(
            text.hidden_size % text.num_attention_heads == 0,
            "hidden_size must be a multiple of num_attention_heads",
        )?;
        require(
            text.num_attention_heads % text.num_key_value_heads == 0,
            "num_attention_heads must be a multiple of num_key_value_heads",
        )?;
        require(
            text.mrope_section.iter().sum::<i64>() * 2 == text.head_dim(),
            "mrope_section must add up to half of the head's width",
        )?;
        require(
            vision.hidden_size % vision.num_heads == 0 && vision.head_dim() % 4 == 0,
            "vision_config.hidden_size must give heads whose width is a multiple of 4",
        )?;
        require(
            vision.out_hidden_size == text.hidden_size,
            "vision_config.out_hidden_size must equal hidden_size",
        )?;
        require(
            vision.window_size >= vision.patch_size * vision.spatial_merge_size,
            "vision_config.window_size must hold at least one merged patch",
        )
    }
}

/// The language model's table.
fn parse_text(table: &Map<String, Value>) -> Result<TextConfig, ModelError> {
    let mut text: TextConfig = section(table, "text_config")?;
    refuse_other_activation(table)?;
    require(
        !flag(table, "use_sliding_window"),
        "use_sliding_window is not supported; set it to false if the checkpoint does not need it",
    )?;
    let rope = ["rope_parameters", "rope_scaling"]
        .iter()
        .find_map(|key| table.get(*key).and_then(Value::as_object));
    let nested_theta = rope.and_then(|rope| rope.get("rope_theta"));
    text.rope_theta = nested_theta
        .or_else(|| table.get("rope_theta"))
        .map_or(Some(1_000_000.0), Value::as_f64)
        .ok_or_else(|| invalid("rope_theta must be a number"))?;
    let rope_type = rope.and_then(|rope| rope.get("rope_type").or_else(|| rope.get("type")));
    refuse_other_rope(rope_type, &["default", "mrope"])?;
    text.mrope_section = match rope.and_then(|rope| rope.get("mrope_section")) {
        Some(section) => serde_json::from_value(section.clone())
            .map_err(|e| invalid(format!("mrope_section: {e}")))?,
        None => [16, 24, 24],
    };
    Ok(text)
}

/// The vision tower's table.
fn parse_vision(table: &Map<String, Value>) -> Result<VisionConfig, ModelError> {
    let mut vision: VisionConfig = section(table, "vision_config")?;
    refuse_other_activation(table)?;
    let rope = table.get("rope_parameters").and_then(Value::as_object);
    refuse_other_rope(
        rope.and_then(|rope| rope.get("rope_type")),
        &["axial", "default"],
    )?;
    vision.rope_theta = rope
        .and_then(|rope| rope.get("rope_theta"))
        .and_then(Value::as_f64)
        .unwrap_or(10_000.0);
    Ok(vision)
}

/// Reads one table; unknown keys belong to others.
fn section<T: for<'de> Deserialize<'de>>(
    table: &Map<String, Value>,
    name: &str,
) -> Result<T, ModelError> {
    serde_json::from_value(Value::Object(table.clone()))
        .map_err(|e| invalid(format!("{name}: {e}")))
}

/// Only SiLU is computed.
fn refuse_other_activation(table: &Map<String, Value>) -> Result<(), ModelError> {
    match table.get("hidden_act").and_then(Value::as_str) {
        None | Some("silu") => Ok(()),
        Some(other) => Err(invalid(format!(
            "hidden_act {other} is not supported, only silu"
        ))),
    }
}

/// Stretched rotary embeddings (yarn and its like) are not computed.
fn refuse_other_rope(rope_type: Option<&Value>, known: &[&str]) -> Result<(), ModelError> {
    match rope_type.and_then(Value::as_str) {
        None => Ok(()),
        Some(rope_type) if known.contains(&rope_type) => Ok(()),
        Some(other) => Err(invalid(format!(
            "rope_type {other} is not supported, only {known:?}"
        ))),
    }
}

/// An integer that must be there.
fn integer(table: &Map<String, Value>, key: &str) -> Result<i64, ModelError> {
    table
        .get(key)
        .and_then(Value::as_i64)
        .ok_or_else(|| invalid(format!("{key} is missing")))
}

/// A truth value; absent is false.
fn flag(table: &Map<String, Value>, key: &str) -> bool {
    table.get(key).and_then(Value::as_bool).unwrap_or(false)
}

/// A check with its sentence.
fn require(holds: bool, message: &str) -> Result<(), ModelError> {
    if holds { Ok(()) } else { Err(invalid(message)) }
}

/// The boundary's error.
fn invalid(message: impl Into<String>) -> ModelError {
    ModelError::Config(message.into())
}
