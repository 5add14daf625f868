//! Qwen2.5-VL, a vision-language model, with the names and the numerics of `transformers`.
//!
//! A screenshot is cut into patches, which the vision tower turns into features `[merged,
//! hidden]`, one per 2x2 patches; these replace the image placeholders among the token
//! embeddings; the text model reads the row from left to right under a rotary embedding of
//! three axes (time, height, width). Video is left out: a GUI agent sees still pictures.
//!
//! Shapes: `batch, seq, hidden, heads, kv_heads, head_dim, patches, patch_dim, merged, images`.
//! Source: `transformers` 5.24, `models/qwen2_5_vl/modeling_qwen2_5_vl.py`; tests compare
//! with it live.

pub mod config;
pub mod fused;
pub mod rope;
pub mod text;
pub mod vision;

pub use config::ModelConfig;

use tch::{Kind, Tensor};

use super::weights::{Linear, Weights};

/// `x W^T + b` over the last dimension: `[.., in]` to `[.., out]`.
pub(crate) fn linear(layer: &Linear, x: &Tensor) -> Tensor {
    x.linear(&layer.weight, layer.bias.as_ref())
}

/// Root-mean-square normalisation over the last dimension, computed in float32.
///
/// `x / sqrt(mean(x^2) + eps) * weight`; `x` is `[.., hidden]`, `weight` `[hidden]`.
/// Source: `Qwen2_5_VLRMSNorm`.
pub(crate) fn rms_norm(x: &Tensor, weight: &Tensor, eps: f64) -> Tensor {
    let kind = x.kind();
    let x = x.to_kind(Kind::Float);
    let variance = x.square().mean_dim(-1, true, Kind::Float);
    weight * (&x * (variance + eps).rsqrt()).to_kind(kind)
}

/// Token embeddings with the image placeholders replaced, row by row in order, by `image_features`.
///
/// - `token_ids`: `[batch, seq]`, int64; `config.image_token_id` marks a placeholder
/// - `image_features`: `[merged_total, hidden]`, as many rows as there are placeholders
///
/// Returns `[batch, seq, hidden]`. Differentiable in the embeddings and in the features.
///
/// # Panics
/// If there are fewer features than placeholders; `rope::Positions` refuses such prompts before.
pub fn embed(weights: &Weights, token_ids: &Tensor, image_features: &Tensor) -> Tensor {
    let embeds = embed_text(weights, token_ids);
    if image_features.size()[0] == 0 {
        return embeds;
    }
    let placeholders = token_ids.eq(weights.config.image_token_id).unsqueeze(-1);
    embeds.masked_scatter(&placeholders, &image_features.to_kind(embeds.kind()))
}

/// Token embeddings of a text without images: `[batch, seq]` int64 to `[batch, seq, hidden]`.
pub fn embed_text(weights: &Weights, token_ids: &Tensor) -> Tensor {
    Tensor::embedding(&weights.text.embed_tokens, token_ids, -1, false, false)
}

/// Logits of the next token at chosen positions only: `[n, hidden]` to `[n, vocab]`, in the
/// weights' kind. The embedding matrix serves as head where the checkpoint ties them.
pub fn lm_head(weights: &Weights, hidden: &Tensor) -> Tensor {
    let head = weights
        .lm_head
        .as_ref()
        .unwrap_or(&weights.text.embed_tokens);
    hidden.linear(head, None::<&Tensor>)
}

/// Makes the image placeholder impossible: `logits` `[n, vocab]` with its column at minus
/// infinity. A sampled placeholder would be taken for a picture when the tokens are read again,
/// so engine and trainer both leave it out of every distribution.
pub fn suppress_placeholder(config: &ModelConfig, logits: &Tensor) -> Tensor {
    let column = Tensor::from_slice(&[config.image_token_id]).to_device(logits.device());
    logits.index_fill(-1, &column, f64::NEG_INFINITY)
}
