//! Versioned weights: every tensor of a checkpoint under its name, and the same tensors as the
//! forward passes use them.
//!
//! A forward takes `&Weights`, so nobody can see half of an update: publishing makes a new
//! `Weights` and swaps it. Names are those of the checkpoints on the hub (`visual.*`,
//! `model.*`, `lm_head.weight`), which every release of `transformers` loads.
//!
//! Invariants: `tensors` holds exactly the names and shapes of `schema`, in that order; the
//! structs below hold handles of the same tensors, so setting `requires_grad` or writing to one
//! is seen through the other.

use std::collections::HashMap;
use std::sync::Arc;

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use tch::{Device, Kind, Tensor};

use arpo::types::PolicyVersion;

use super::ModelError;
use super::qwen2_5_vl::config::{ModelConfig, TextConfig, VisionConfig};

/// All weights of one policy version. Cheap to clone shallowly: one per thread that computes,
/// as a `Tensor` may be sent but not shared.
#[derive(Debug)]
pub struct Weights {
    /// Number of optimizer updates behind them.
    pub version: PolicyVersion,
    /// The version that last changed the vision tower: features made since then still hold.
    pub vision_version: PolicyVersion,
    /// Sizes.
    pub config: Arc<ModelConfig>,
    /// The vision tower.
    pub visual: VisionWeights,
    /// The language model without its head.
    pub text: TextWeights,
    /// The head, `[vocab, hidden]`; `None` where it is tied to the embeddings.
    pub lm_head: Option<Tensor>,
    tensors: Vec<(String, Tensor)>,
}

/// `weight` is `[out, in]`, `bias` `[out]`.
#[derive(Debug)]
pub struct Linear {
    /// `[out, in]`.
    pub weight: Tensor,
    /// `[out]`.
    pub bias: Option<Tensor>,
}

/// The three matrices of a gated MLP.
#[expect(clippy::struct_field_names, reason = "the names of the checkpoint")]
#[derive(Debug)]
pub struct Mlp {
    /// `[intermediate, hidden]`.
    pub gate_proj: Linear,
    /// `[intermediate, hidden]`.
    pub up_proj: Linear,
    /// `[hidden, intermediate]`.
    pub down_proj: Linear,
}

/// The vision tower's weights.
#[derive(Debug)]
pub struct VisionWeights {
    /// Kernel of the patch embedding, `[hidden, channels, frames, patch, patch]`.
    pub patch_embed: Tensor,
    /// Blocks in order.
    pub blocks: Vec<VisionBlockWeights>,
    /// What makes features of patches.
    pub merger: MergerWeights,
}

/// One vision block.
#[derive(Debug)]
pub struct VisionBlockWeights {
    /// Norm before the attention, `[hidden]`.
    pub norm1: Tensor,
    /// Norm before the MLP, `[hidden]`.
    pub norm2: Tensor,
    /// Queries, keys and values in one, `[3 * hidden, hidden]`.
    pub qkv: Linear,
    /// Output of the attention.
    pub proj: Linear,
    /// The MLP.
    pub mlp: Mlp,
}

/// Merges each 2x2 patches into one feature.
#[derive(Debug)]
pub struct MergerWeights {
    /// Norm of each patch, `[hidden]`.
    pub ln_q: Tensor,
    /// `mlp.0`, over the patches of a unit side by side.
    pub up: Linear,
    /// `mlp.2`, to the text model's width.
    pub down: Linear,
}

/// The language model's weights.
#[derive(Debug)]
pub struct TextWeights {
    /// Token embeddings, `[vocab, hidden]`.
    pub embed_tokens: Tensor,
    /// Layers in order.
    pub layers: Vec<DecoderLayerWeights>,
    /// Final norm, `[hidden]`.
    pub norm: Tensor,
}

/// One decoder layer.
#[derive(Debug)]
pub struct DecoderLayerWeights {
    /// Norm before the attention, `[hidden]`.
    pub input_layernorm: Tensor,
    /// Queries, `[heads * head_dim, hidden]`.
    pub q_proj: Linear,
    /// Keys, `[kv_heads * head_dim, hidden]`.
    pub k_proj: Linear,
    /// Values, `[kv_heads * head_dim, hidden]`.
    pub v_proj: Linear,
    /// Output of the attention.
    pub o_proj: Linear,
    /// Norm before the MLP, `[hidden]`.
    pub post_attention_layernorm: Tensor,
    /// The MLP.
    pub mlp: Mlp,
}

/// A tensor that a configuration asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorSpec {
    /// Its name.
    pub name: String,
    /// Its shape.
    pub shape: Vec<i64>,
    /// How it starts.
    pub init: Init,
}

/// How a fresh tensor is filled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Init {
    /// Normal with this standard deviation.
    Normal(f64),
    /// Zeros: biases.
    Zeros,
    /// Ones: norms.
    Ones,
}

impl Weights {
    /// Assembles weights from tensors by name.
    pub fn from_tensors(
        config: Arc<ModelConfig>,
        version: PolicyVersion,
        mut by_name: HashMap<String, Tensor>,
    ) -> Result<Self, ModelError> {
        let mut tensors = Vec::new();
        for spec in schema(&config) {
            let tensor = by_name
                .remove(&spec.name)
                .ok_or_else(|| ModelError::Weights(format!("{} is missing", spec.name)))?;
            if tensor.size() != spec.shape {
                return Err(ModelError::Weights(format!(
                    "{} has shape {:?}, but config.json asks for {:?}",
                    spec.name,
                    tensor.size(),
                    spec.shape
                )));
            }
            tensors.push((spec.name, tensor));
        }
        Ok(Self::assemble(config, version, tensors))
    }

    /// Fresh weights as `transformers` initialises them: normal with the configuration's
    /// standard deviation, biases 0, norms 1. The same seed gives the same bits anywhere.
    pub fn random(config: Arc<ModelConfig>, seed: u64) -> Self {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let tensors = schema(&config)
            .into_iter()
            .map(|spec| {
                let numel = spec.shape.iter().product::<i64>() as usize;
                let values = match spec.init {
                    Init::Normal(std) => normal_values(&mut rng, numel, std),
                    Init::Zeros => vec![0.0; numel],
                    Init::Ones => vec![1.0; numel],
                };
                (spec.name, Tensor::from_slice(&values).reshape(&spec.shape))
            })
            .collect();
        Self::assemble(config, PolicyVersion(0), tensors)
    }

    /// Names and tensors in the checkpoint's order.
    pub fn named(&self) -> &[(String, Tensor)] {
        &self.tensors
    }

    /// The tensor of this name.
    #[cfg(test)]
    pub fn get(&self, name: &str) -> Option<&Tensor> {
        self.tensors
            .iter()
            .find_map(|(other, tensor)| (other == name).then_some(tensor))
    }

    /// Where the tensors are.
    pub fn device(&self) -> Device {
        self.text.embed_tokens.device()
    }

    /// In which kind they compute.
    pub fn kind(&self) -> Kind {
        self.text.embed_tokens.kind()
    }

    /// New handles of the same tensors, for another thread.
    pub fn shallow_clone(&self) -> Self {
        self.map(|_, tensor| tensor.shallow_clone())
    }

    /// Leaves of an autograd graph of their own on the same memory: gradients flow into those
    /// that `trainable` names and into nobody else's. One per lane, so that lanes never add
    /// into the same gradient.
    pub fn leaves(&self, trainable: impl Fn(&str) -> bool) -> Self {
        self.map(|name, tensor| tensor.detach().set_requires_grad(trainable(name)))
    }

    /// A copy that later updates do not reach, numbered `version`: what publishing hands out.
    /// Tensors that `trainable` does not name are shared, since nothing writes to them.
    pub fn snapshot(&self, version: PolicyVersion, trainable: impl Fn(&str) -> bool) -> Self {
        let mut copy = self.map(|name, tensor| {
            let tensor = tensor.detach();
            if trainable(name) {
                tensor.copy()
            } else {
                tensor
            }
        });
        copy.version = version;
        if self
            .tensors
            .iter()
            .any(|(name, _)| name.starts_with("visual.") && trainable(name))
        {
            copy.vision_version = version;
        }
        copy
    }

    /// The same configuration and version over other tensors of the same names.
    pub fn map(&self, mut change: impl FnMut(&str, &Tensor) -> Tensor) -> Self {
        let tensors = self
            .tensors
            .iter()
            .map(|(name, tensor)| (name.clone(), change(name, tensor)));
        Self::assemble(Arc::clone(&self.config), self.version, tensors.collect())
    }

    /// Builds the structs over tensors that are known to fit the schema.
    fn assemble(
        config: Arc<ModelConfig>,
        version: PolicyVersion,
        tensors: Vec<(String, Tensor)>,
    ) -> Self {
        let by_name: HashMap<&str, &Tensor> = tensors
            .iter()
            .map(|(name, tensor)| (name.as_str(), tensor))
            .collect();
        let visual = VisionWeights::assemble(&by_name, &config.vision);
        let text = TextWeights::assemble(&by_name, &config.text);
        let lm_head = by_name
            .get("lm_head.weight")
            .map(|tensor| tensor.shallow_clone());
        Self {
            version,
            vision_version: version,
            config,
            visual,
            text,
            lm_head,
            tensors,
        }
    }
}

impl VisionWeights {
    fn assemble(by_name: &HashMap<&str, &Tensor>, config: &VisionConfig) -> Self {
        let blocks = (0..config.depth).map(|block_idx| {
            let prefix = format!("visual.blocks.{block_idx}");
            VisionBlockWeights {
                norm1: take(by_name, &format!("{prefix}.norm1.weight")),
                norm2: take(by_name, &format!("{prefix}.norm2.weight")),
                qkv: take_linear(by_name, &format!("{prefix}.attn.qkv")),
                proj: take_linear(by_name, &format!("{prefix}.attn.proj")),
                mlp: take_mlp(by_name, &format!("{prefix}.mlp")),
            }
        });
        Self {
            patch_embed: take(by_name, "visual.patch_embed.proj.weight"),
            blocks: blocks.collect(),
            merger: MergerWeights {
                ln_q: take(by_name, "visual.merger.ln_q.weight"),
                up: take_linear(by_name, "visual.merger.mlp.0"),
                down: take_linear(by_name, "visual.merger.mlp.2"),
            },
        }
    }
}

impl TextWeights {
    fn assemble(by_name: &HashMap<&str, &Tensor>, config: &TextConfig) -> Self {
        let layers = (0..config.num_hidden_layers).map(|layer_idx| {
            let prefix = format!("model.layers.{layer_idx}");
            DecoderLayerWeights {
                input_layernorm: take(by_name, &format!("{prefix}.input_layernorm.weight")),
                q_proj: take_linear(by_name, &format!("{prefix}.self_attn.q_proj")),
                k_proj: take_linear(by_name, &format!("{prefix}.self_attn.k_proj")),
                v_proj: take_linear(by_name, &format!("{prefix}.self_attn.v_proj")),
                o_proj: take_linear(by_name, &format!("{prefix}.self_attn.o_proj")),
                post_attention_layernorm: take(
                    by_name,
                    &format!("{prefix}.post_attention_layernorm.weight"),
                ),
                mlp: take_mlp(by_name, &format!("{prefix}.mlp")),
            }
        });
        Self {
            embed_tokens: take(by_name, "model.embed_tokens.weight"),
            layers: layers.collect(),
            norm: take(by_name, "model.norm.weight"),
        }
    }
}

/// A handle of a tensor that the schema guarantees.
fn take(by_name: &HashMap<&str, &Tensor>, name: &str) -> Tensor {
    by_name
        .get(name)
        .expect("assembled from every name of the schema")
        .shallow_clone()
}

/// A matrix with its bias, if the schema has one.
fn take_linear(by_name: &HashMap<&str, &Tensor>, prefix: &str) -> Linear {
    let bias = by_name.get(format!("{prefix}.bias").as_str());
    Linear {
        weight: take(by_name, &format!("{prefix}.weight")),
        bias: bias.map(|tensor| tensor.shallow_clone()),
    }
}

/// The matrices of a gated MLP.
fn take_mlp(by_name: &HashMap<&str, &Tensor>, prefix: &str) -> Mlp {
    Mlp {
        gate_proj: take_linear(by_name, &format!("{prefix}.gate_proj")),
        up_proj: take_linear(by_name, &format!("{prefix}.up_proj")),
        down_proj: take_linear(by_name, &format!("{prefix}.down_proj")),
    }
}

/// Every tensor that a configuration asks for, in the checkpoint's order.
pub fn schema(config: &ModelConfig) -> Vec<TensorSpec> {
    let mut specs = Vec::new();
    vision_schema(&mut specs, &config.vision);
    text_schema(&mut specs, &config.text);
    if !config.tie_word_embeddings {
        let text = &config.text;
        let init = Init::Normal(text.initializer_range);
        push(
            &mut specs,
            "lm_head.weight",
            &[text.vocab_size, text.hidden_size],
            init,
        );
    }
    specs
}

/// The vision tower's tensors.
fn vision_schema(specs: &mut Vec<TensorSpec>, config: &VisionConfig) {
    let (hidden, normal) = (config.hidden_size, Init::Normal(config.initializer_range));
    let (frames, patch) = (config.temporal_patch_size, config.patch_size);
    let kernel = [hidden, config.in_channels, frames, patch, patch];
    push(specs, "visual.patch_embed.proj.weight", &kernel, normal);
    for block_idx in 0..config.depth {
        let prefix = format!("visual.blocks.{block_idx}");
        push(
            specs,
            &format!("{prefix}.norm1.weight"),
            &[hidden],
            Init::Ones,
        );
        push(
            specs,
            &format!("{prefix}.norm2.weight"),
            &[hidden],
            Init::Ones,
        );
        push_linear(
            specs,
            &format!("{prefix}.attn.qkv"),
            [3 * hidden, hidden],
            normal,
        );
        push_linear(
            specs,
            &format!("{prefix}.attn.proj"),
            [hidden, hidden],
            normal,
        );
        let inner = config.intermediate_size;
        push_linear(
            specs,
            &format!("{prefix}.mlp.gate_proj"),
            [inner, hidden],
            normal,
        );
        push_linear(
            specs,
            &format!("{prefix}.mlp.up_proj"),
            [inner, hidden],
            normal,
        );
        push_linear(
            specs,
            &format!("{prefix}.mlp.down_proj"),
            [hidden, inner],
            normal,
        );
    }
    let unit = hidden * config.merge_unit();
    push(specs, "visual.merger.ln_q.weight", &[hidden], Init::Ones);
    push_linear(specs, "visual.merger.mlp.0", [unit, unit], normal);
    push_linear(
        specs,
        "visual.merger.mlp.2",
        [config.out_hidden_size, unit],
        normal,
    );
}

/// The language model's tensors.
fn text_schema(specs: &mut Vec<TensorSpec>, config: &TextConfig) {
    let (hidden, normal) = (config.hidden_size, Init::Normal(config.initializer_range));
    let kv = config.num_key_value_heads * config.head_dim();
    let inner = config.intermediate_size;
    push(
        specs,
        "model.embed_tokens.weight",
        &[config.vocab_size, hidden],
        normal,
    );
    for layer_idx in 0..config.num_hidden_layers {
        let prefix = format!("model.layers.{layer_idx}");
        push(
            specs,
            &format!("{prefix}.input_layernorm.weight"),
            &[hidden],
            Init::Ones,
        );
        push_linear(
            specs,
            &format!("{prefix}.self_attn.q_proj"),
            [hidden, hidden],
            normal,
        );
        push_linear(
            specs,
            &format!("{prefix}.self_attn.k_proj"),
            [kv, hidden],
            normal,
        );
        push_linear(
            specs,
            &format!("{prefix}.self_attn.v_proj"),
            [kv, hidden],
            normal,
        );
        push(
            specs,
            &format!("{prefix}.self_attn.o_proj.weight"),
            &[hidden, hidden],
            normal,
        );
        push(
            specs,
            &format!("{prefix}.post_attention_layernorm.weight"),
            &[hidden],
            Init::Ones,
        );
        push(
            specs,
            &format!("{prefix}.mlp.gate_proj.weight"),
            &[inner, hidden],
            normal,
        );
        push(
            specs,
            &format!("{prefix}.mlp.up_proj.weight"),
            &[inner, hidden],
            normal,
        );
        push(
            specs,
            &format!("{prefix}.mlp.down_proj.weight"),
            &[hidden, inner],
            normal,
        );
    }
    push(specs, "model.norm.weight", &[hidden], Init::Ones);
}

/// One tensor.
fn push(specs: &mut Vec<TensorSpec>, name: &str, shape: &[i64], init: Init) {
    specs.push(TensorSpec {
        name: name.to_owned(),
        shape: shape.to_vec(),
        init,
    });
}

/// A matrix with a bias.
fn push_linear(specs: &mut Vec<TensorSpec>, prefix: &str, shape: [i64; 2], init: Init) {
    push(specs, &format!("{prefix}.weight"), &shape, init);
    push(specs, &format!("{prefix}.bias"), &shape[..1], Init::Zeros);
}

/// Normal values by the Box-Muller transform.
fn normal_values(rng: &mut Pcg64Mcg, numel: usize, std: f64) -> Vec<f32> {
    (0..numel)
        .map(|_| {
            // 1 - u lies in (0, 1], where the logarithm is finite.
            let radius = (-2.0 * (1.0 - rng.random::<f64>()).ln()).sqrt();
            let angle = std::f64::consts::TAU * rng.random::<f64>();
            (std * radius * angle.cos()) as f32
        })
        .collect()
}
