//! The language model: token states from left to right.
//!
//! Grouped-query attention, SwiGLU, rotary positions of three axes. Logits are another
//! function (`super::lm_head`), so that they are computed only where somebody reads them.
//! Source: `Qwen2_5_VLTextModel`.

use tch::Tensor;

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

/// States after the last layer and norm.
///
/// - `inputs_embeds`: `[batch, seq, hidden]`
/// - `position_ids`: `[3, batch, seq]`, int64
///
/// Returns `[batch, seq, hidden]`. Differentiable in the weights and the embeddings.
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

/// One layer over `hidden` `[batch, seq, hidden]`. Public so that training can recompute it in
/// the backward pass instead of keeping what it made.
pub fn decoder_layer(
    layer: &DecoderLayerWeights,
    config: &TextConfig,
    hidden: &Tensor,
    rotary: &Rotary,
    attention: Attention<'_>,
) -> Tensor {
    let normed = rms_norm(hidden, &layer.input_layernorm, config.rms_norm_eps);
    let hidden = hidden + self_attention(layer, config, &normed, rotary, attention);
    let normed = rms_norm(
        &hidden,
        &layer.post_attention_layernorm,
        config.rms_norm_eps,
    );
    hidden + gated_mlp(&layer.mlp, &normed)
}

/// Attention of one layer: `[batch, seq, hidden]` to `[batch, seq, hidden]`.
fn self_attention(
    layer: &DecoderLayerWeights,
    config: &TextConfig,
    x: &Tensor,
    rotary: &Rotary,
    attention: Attention<'_>,
) -> Tensor {
    let (batch, seq, _) = x.size3().expect("states are [batch, seq, hidden]");
    let split = |x: Tensor| {
        x.reshape([batch, seq, -1, config.head_dim()])
            .transpose(1, 2)
    };
    let q = rotary.turn(&split(linear(&layer.q_proj, x))); // [batch, heads, seq, head_dim]
    let k = rotary.turn(&split(linear(&layer.k_proj, x))); // [batch, kv_heads, seq, head_dim]
    let v = split(linear(&layer.v_proj, x));
    let groups = config.num_attention_heads / config.num_key_value_heads;
    let (k, v) = (repeat_kv(&k, groups), repeat_kv(&v, groups));
    let (mask, is_causal) = match attention {
        Attention::Causal => (None, true),
        Attention::Masked(mask) => (Some(mask), false),
    };
    let out = Tensor::scaled_dot_product_attention(&q, &k, &v, mask, 0.0, is_causal, None, false);
    linear(
        &layer.o_proj,
        &out.transpose(1, 2).reshape([batch, seq, -1]),
    )
}

/// Each key or value head once per query head of its group: `[batch, kv_heads, seq, head_dim]`
/// to `[batch, kv_heads * groups, seq, head_dim]`, a group's copies side by side.
fn repeat_kv(x: &Tensor, groups: i64) -> Tensor {
    let (batch, kv_heads, seq, head_dim) = x.size4().expect("heads are four-dimensional");
    x.unsqueeze(2)
        .expand([batch, kv_heads, groups, seq, head_dim], false)
        .reshape([batch, kv_heads * groups, seq, head_dim])
}
