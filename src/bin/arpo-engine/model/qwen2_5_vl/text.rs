//! The language model: token states from left to right.
//!
//! Grouped-query attention, SwiGLU, rotary positions of three axes. Logits are another
//! function (`super::lm_head`), so that they are computed only where somebody reads them.
//! Source: `Qwen2_5_VLTextModel`.

use tch::{Device, Tensor};

use super::config::TextConfig;
use super::rope::{Rotary, text_rotary};
use super::vision::gated_mlp;
use super::{linear, rms_norm};
use crate::model::weights::{DecoderLayerWeights, Weights};

/// Who may look at whom.
#[derive(Clone, Copy, Debug)]
pub enum Attention<'a> {
    /// Each token sees itself and what stands before it in its row. Rows padded on the right
    /// need no more: nothing real looks at padding.
    Causal,
    /// What the mask says: bool, true where seen, broadcastable to `[batch, heads, seq, seq]`.
    /// For several trajectories packed into a row, and for histories cut to the newest images.
    #[cfg_attr(
        not(test),
        expect(
            dead_code,
            reason = "rows are packed and histories cut from the full size on"
        )
    )]
    Masked(&'a Tensor),
}

/// States after the last layer and norm: what tests hold training and decoding against, which
/// compute less.
///
/// - `inputs_embeds`: `[batch, seq, hidden]`
/// - `position_ids`: `[3, batch, seq]`, int64
///
/// Returns `[batch, seq, hidden]`. Differentiable in the weights and the embeddings.
#[cfg(test)]
pub fn forward(
    weights: &Weights,
    inputs_embeds: &Tensor,
    position_ids: &Tensor,
    attention: Attention<'_>,
) -> Tensor {
    let config = &weights.config.text;
    let rotary = text_rotary(config, position_ids, inputs_embeds.kind());
    let mut hidden = inputs_embeds.shallow_clone();
    for layer in &weights.text.layers {
        hidden = decoder_layer(layer, config, &hidden, &rotary, attention);
    }
    rms_norm(&hidden, &weights.text.norm, config.rms_norm_eps)
}

/// `forward` for those who read few states: those at the flat `places` `[n]` of `[batch * seq]`,
/// int64. What the last layer does to a token alone, which is most of its work, is done for them
/// only. Returns `[n, hidden]`.
pub fn forward_at(
    weights: &Weights,
    inputs_embeds: &Tensor,
    position_ids: &Tensor,
    attention: Attention<'_>,
    places: &Tensor,
) -> Tensor {
    let config = &weights.config.text;
    let rotary = text_rotary(config, position_ids, inputs_embeds.kind());
    let at = |x: &Tensor| x.flatten(0, 1).index_select(0, places);
    let mut hidden = inputs_embeds.shallow_clone();
    let layers = &weights.text.layers;
    for (layer_idx, layer) in layers.iter().enumerate() {
        if layer_idx + 1 < layers.len() {
            hidden = decoder_layer(layer, config, &hidden, &rotary, attention);
        } else {
            let seen = look(layer, config, &hidden, &rotary, attention);
            hidden = after_look(layer, config, &at(&hidden), &at(&seen));
        }
    }
    rms_norm(&hidden, &weights.text.norm, config.rms_norm_eps)
}

/// One layer over `hidden` `[batch, seq, hidden]`. Public so that training can recompute it in
/// the backward pass instead of keeping what it made.
pub fn decoder_layer(
    layer: &DecoderLayerWeights,
    config: &TextConfig,
    hidden: &Tensor,
    rotary: &Rotary,
    attention: Attention<'_>,
) -> Tensor {
    let seen = look(layer, config, hidden, rotary, attention);
    after_look(layer, config, hidden, &seen)
}

/// What a layer does to a token alone, once it has `seen` the others: both `[.., hidden]`.
fn after_look(
    layer: &DecoderLayerWeights,
    config: &TextConfig,
    hidden: &Tensor,
    seen: &Tensor,
) -> Tensor {
    let hidden = hidden + linear(&layer.o_proj, seen);
    let normed = rms_norm(
        &hidden,
        &layer.post_attention_layernorm,
        config.rms_norm_eps,
    );
    hidden + gated_mlp(&layer.mlp, &normed)
}

/// What each token sees of the others, before the output projection: `hidden`
/// `[batch, seq, hidden]` to `[batch, seq, heads * head_dim]`.
fn look(
    layer: &DecoderLayerWeights,
    config: &TextConfig,
    hidden: &Tensor,
    rotary: &Rotary,
    attention: Attention<'_>,
) -> Tensor {
    let x = &rms_norm(hidden, &layer.input_layernorm, config.rms_norm_eps);
    let (batch, seq, _) = x.size3().expect("states are [batch, seq, hidden]");
    let split = |x: Tensor| {
        x.reshape([batch, seq, -1, config.head_dim()])
            .transpose(1, 2)
    };
    let q = rotary.turn(&split(linear(&layer.q_proj, x))); // [batch, heads, seq, head_dim]
    let k = rotary.turn(&split(linear(&layer.k_proj, x))); // [batch, kv_heads, seq, head_dim]
    let v = split(linear(&layer.v_proj, x));
    let (mask, is_causal) = match attention {
        Attention::Causal => (None, true),
        Attention::Masked(mask) => (Some(mask), false),
    };
    // Query heads of a group share a key head. The CPU's kernel needs no copy for that; the GPU's
    // kernel for float32 does, and the one without holds all scores in memory.
    let groups = config.num_attention_heads / config.num_key_value_heads;
    let grouped = 1 < groups && x.device() == Device::Cpu;
    let (k, v) = if grouped {
        (k, v)
    } else {
        (repeat_kv(&k, groups), repeat_kv(&v, groups))
    };
    let out = Tensor::scaled_dot_product_attention(&q, &k, &v, mask, 0.0, is_causal, None, grouped);
    out.transpose(1, 2).reshape([batch, seq, -1])
}

/// Each key or value head once per query head of its group: `[batch, kv_heads, seq, head_dim]`
/// to `[batch, kv_heads * groups, seq, head_dim]`, a group's copies side by side.
fn repeat_kv(x: &Tensor, groups: i64) -> Tensor {
    let (batch, kv_heads, seq, head_dim) = x.size4().expect("heads are four-dimensional");
    x.unsqueeze(2)
        .expand([batch, kv_heads, groups, seq, head_dim], false)
        .reshape([batch, kv_heads * groups, seq, head_dim])
}
