//! The language model laid out for inference: fewer, larger products over packed tokens, reading
//! and writing a KV cache.
//!
//! Queries, keys and values are one matrix, gate and up another; in float32 the norms' weights
//! are folded into the matrices behind them. Tokens of all rows stand in one `[tokens, hidden]`,
//! without padding; only attention knows rows. Not differentiable: training uses `text`, and
//! tests hold the two equal.

use tch::{Kind, Tensor};

use super::config::TextConfig;
use super::rope::{Rotary, text_rotary};
use crate::model::weights::{DecoderLayerWeights, Linear, TextWeights, Weights};

/// The language model of one `Weights`, fused.
#[derive(Debug)]
pub struct FusedText {
    config: TextConfig,
    layers: Vec<FusedLayer>,
    norm: Tensor,
    /// What keeps a norm of nothing from dividing by zero, as the shortest length of a state:
    /// `sqrt(hidden * eps)`.
    least_length: Tensor,
    /// 0, `[1, 1, 1]`.
    nothing: Tensor,
    /// Turns of text positions, complex, `[positions, 1, head_dim / 2]`.
    text_turns: Tensor,
}

/// One layer, fused.
#[derive(Debug)]
struct FusedLayer {
    /// `None` where folded into `qkv`.
    input_layernorm: Option<Tensor>,
    /// `[(heads + 2 * kv_heads) * head_dim, hidden]`.
    qkv: Tensor,
    qkv_bias: Tensor,
    /// Transposed, `[hidden, hidden]`.
    o_proj: Tensor,
    /// `None` where folded into `gate_up`.
    post_attention_layernorm: Option<Tensor>,
    /// `[2 * intermediate, hidden]`.
    gate_up: Tensor,
    /// Transposed, `[intermediate, hidden]`.
    down_proj: Tensor,
}

/// Keys and values of one layer of some slots; a slot holds one session.
#[derive(Debug)]
pub struct LayerKv {
    /// `[slots, kv_heads, max_len, head_dim]`; a pair's halves side by side, see `WideRotary`.
    pub keys: Tensor,
    /// `[slots, kv_heads, max_len, head_dim]`.
    pub values: Tensor,
    /// The same memory as rows of one head at one token:
    /// `[2 * slots * kv_heads * max_len, head_dim]`, all keys before all values.
    pub rows: Tensor,
}

/// Where a batch's tokens go and what they look at, within one chunk of slots.
#[derive(Debug)]
pub struct ChunkPlan<'a> {
    /// The chunk's layers.
    pub layers: &'a [LayerKv],
    /// Tokens of the batch in this chunk: `first_token..first_token + tokens`.
    pub first_token: i64,
    /// How many.
    pub tokens: i64,
    /// Where each token's heads are written: `[tokens * 2 * kv_heads]` into `LayerKv::rows`.
    pub write_rows: Tensor,
    /// Who attends together, covering the tokens in order.
    pub spans: Vec<Span>,
}

/// Tokens that attend in one call: slots side by side with as many new tokens each.
#[derive(Debug)]
pub struct Span {
    /// The first slot within the chunk.
    pub first_slot: i64,
    /// Slots.
    pub slots: i64,
    /// New tokens of each slot.
    pub new: i64,
    /// Cached tokens looked at, the new ones included; of the longest slot.
    pub len: i64,
    /// Added to scores; `None` where all is seen. For several new tokens a slot
    /// `[1, 1, groups * new, len]`, for one `[slots * kv_heads, 1, len]`.
    pub mask: Option<Tensor>,
}

impl FusedText {
    /// Lays out the language model of `weights`. `max_positions` text positions get their
    /// angles in advance.
    pub fn new(weights: &Weights, max_positions: i64) -> Self {
        let config = weights.config.text.clone();
        let fold = weights.kind() == Kind::Float;
        let gain = (config.hidden_size as f64).sqrt();
        let layers = weights
            .text
            .layers
            .iter()
            .map(|layer| FusedLayer::new(layer, config.head_dim(), fold.then_some(gain)));
        let layers = layers.collect();
        let options = (Kind::Int64, weights.device());
        let positions = Tensor::arange(max_positions, options).expand([3, 1, -1], true);
        let rotary = text_rotary(&config, &positions, weights.kind());
        let TextWeights { norm, .. } = &weights.text;
        let least_length = gain * config.rms_norm_eps.sqrt();
        Self {
            layers,
            norm: norm.detach(),
            least_length: Tensor::from(least_length as f32).to_device(weights.device()),
            nothing: Tensor::zeros([1, 1, 1], (Kind::Float, weights.device())),
            text_turns: turns(&rotary),
            config,
        }
    }

    /// Rotary of tokens anywhere: `positions` `[3, 1, tokens]` int64.
    pub fn rotary(&self, positions: &Tensor) -> WideRotary {
        let rotary = text_rotary(&self.config, positions, self.norm.kind());
        WideRotary::new(&self.config, &turns(&rotary))
    }

    /// Rotary of text tokens, whose three positions agree: `positions` `[tokens]` int64.
    pub fn text_rotary(&self, positions: &Tensor) -> WideRotary {
        WideRotary::new(&self.config, &self.text_turns.index_select(0, positions))
    }

    /// States after the last layer and norm of tokens with embeddings `embeds`
    /// `[tokens, hidden]`: of those at `wanted` (`[n]` int64, to `[n, hidden]`), or of all
    /// (`[tokens, hidden]`). Writes the keys and values of all where `plans` say.
    pub fn forward(
        &self,
        embeds: &Tensor,
        wanted: Option<&Tensor>,
        rotary: &WideRotary,
        plans: &[ChunkPlan<'_>],
    ) -> Tensor {
        let mut hidden = embeds.shallow_clone();
        for (layer_idx, layer) in self.layers.iter().enumerate() {
            let attended = self.attended(layer_idx, layer, &hidden, rotary, plans);
            // Nobody looks at the last layer's states, so only those wanted are worked out.
            hidden = match wanted.filter(|_| layer_idx + 1 == self.layers.len()) {
                Some(rows) => self.after_attention(
                    layer,
                    &hidden.index_select(0, rows),
                    &attended.index_select(0, rows),
                ),
                None => self.after_attention(layer, &hidden, &attended),
            };
        }
        self.normed(&hidden, Some(&self.norm))
    }

    /// What the tokens see of each other in one layer, before the output projection:
    /// `[tokens, hidden]` to `[tokens, heads * head_dim]`.
    fn attended(
        &self,
        layer_idx: usize,
        layer: &FusedLayer,
        hidden: &Tensor,
        rotary: &WideRotary,
        plans: &[ChunkPlan<'_>],
    ) -> Tensor {
        let normed = self.normed(hidden, layer.input_layernorm.as_ref());
        let qkv = normed.linear(&layer.qkv, Some(&layer.qkv_bias)).view([
            -1,
            self.num_qkv_heads(),
            self.config.head_dim(),
        ]);
        let qkv = rotary.turn(&qkv);
        let mut outs: Vec<Tensor> = Vec::with_capacity(plans.len());
        for plan in plans {
            self.attend(
                layer_idx,
                &qkv.narrow(0, plan.first_token, plan.tokens),
                plan,
                &mut outs,
            );
        }
        match outs.as_slice() {
            [only] => only.shallow_clone(),
            _ => Tensor::cat(&outs, 0),
        }
    }

    /// What a layer does to each token alone: `hidden` `[n, hidden]`, `attended`
    /// `[n, heads * head_dim]`, to `[n, hidden]`.
    fn after_attention(&self, layer: &FusedLayer, hidden: &Tensor, attended: &Tensor) -> Tensor {
        let hidden = hidden.addmm(attended, &layer.o_proj);
        let normed = self.normed(&hidden, layer.post_attention_layernorm.as_ref());
        let inner = self.config.intermediate_size;
        let gate_up = normed.linear(&layer.gate_up, None::<&Tensor>);
        let mut gated = gate_up.narrow(1, 0, inner).silu();
        let _ = gated.multiply_(&gate_up.narrow(1, inner, inner));
        hidden.addmm(&gated, &layer.down_proj)
    }

    /// Writes one chunk's keys and values and appends what its tokens saw to `outs`, in order,
    /// each `[.., heads * head_dim]`. `qkv` is `[tokens, heads + 2 * kv_heads, head_dim]`.
    fn attend(&self, layer_idx: usize, qkv: &Tensor, plan: &ChunkPlan<'_>, outs: &mut Vec<Tensor>) {
        let (heads, kv_heads) = (
            self.config.num_attention_heads,
            self.config.num_key_value_heads,
        );
        let kv = &plan.layers[layer_idx];
        let new_rows = qkv
            .narrow(1, heads, 2 * kv_heads)
            .reshape([-1, self.config.head_dim()]);
        let mut rows = kv.rows.shallow_clone();
        let _ = rows.index_copy_(0, &plan.write_rows, &new_rows);
        let q = qkv.narrow(1, 0, heads);
        let mut first = 0;
        for span in &plan.spans {
            let tokens = span.slots * span.new;
            outs.push(self.attend_span(&q.narrow(0, first, tokens), kv, span));
            first += tokens;
        }
    }

    /// Attention of one span: `q` `[slots * new, heads, head_dim]` to `[slots * new, hidden]`.
    ///
    /// The query heads of a group share keys, so they stand beside each other as further
    /// queries of one head, and no key is copied.
    fn attend_span(&self, q: &Tensor, kv: &LayerKv, span: &Span) -> Tensor {
        if span.new == 1 && q.kind() == Kind::Float {
            return self.attend_one(q, kv, span);
        }
        let (head_dim, kv_heads) = (self.config.head_dim(), self.config.num_key_value_heads);
        let groups = self.config.num_attention_heads / kv_heads;
        let cached = |x: &Tensor| {
            x.narrow(0, span.first_slot, span.slots)
                .narrow(2, 0, span.len)
        };
        let q = q.reshape([span.slots, span.new, kv_heads, groups, head_dim]);
        let q = match span.new {
            1 => q.view([span.slots, kv_heads, groups, head_dim]),
            new => {
                q.permute([0, 2, 3, 1, 4])
                    .reshape([span.slots, kv_heads, groups * new, head_dim])
            }
        };
        let (keys, values) = (cached(&kv.keys), cached(&kv.values));
        let mask = span.mask.as_ref().map(|mask| match span.new {
            1 => mask.view([span.slots, kv_heads, 1, span.len]),
            _ => mask.shallow_clone(),
        });
        let mask = mask.as_ref();
        let out =
            Tensor::scaled_dot_product_attention(&q, &keys, &values, mask, 0.0, false, None, false);
        let out = match span.new {
            1 => out,
            new => out
                .reshape([span.slots, kv_heads, groups, new, head_dim])
                .permute([0, 3, 1, 2, 4]),
        };
        out.reshape([span.slots * span.new, self.config.hidden_size])
    }

    /// The same for one new token of each slot, in float32: two batched products. The kernel of
    /// `attend_span` calls a product a head and slot, which is most of what small models take.
    fn attend_one(&self, q: &Tensor, kv: &LayerKv, span: &Span) -> Tensor {
        let (head_dim, kv_heads) = (self.config.head_dim(), self.config.num_key_value_heads);
        let groups = self.config.num_attention_heads / kv_heads;
        let (first, heads) = (span.first_slot * kv_heads, span.slots * kv_heads);
        let cached = |x: &Tensor| {
            x.flatten(0, 1)
                .narrow(0, first, heads)
                .narrow(1, 0, span.len)
        };
        let (keys, values) = (cached(&kv.keys), cached(&kv.values)); // [heads, len, head_dim]
        let q = q.reshape([heads, groups, head_dim]);
        let mask = span.mask.as_ref().unwrap_or(&self.nothing);
        let scale = (head_dim as f64).powf(-0.5);
        let scores = mask.baddbmm(&q, &keys.transpose(1, 2), 1.0, scale);
        let seen = scores.softmax(-1, Kind::Float).bmm(&values);
        seen.reshape([span.slots, self.config.hidden_size])
    }

    /// Root-mean-square normalisation in float32. Where the weight is folded (`None`), so is the
    /// root of the hidden size, and what comes back has length 1.
    ///
    /// `x / sqrt(mean(x^2) + eps) = sqrt(hidden) * x / hypot(|x|, sqrt(hidden * eps))`, which is
    /// three calls instead of five: at one token, calls are what takes the time.
    fn normed(&self, x: &Tensor, weight: Option<&Tensor>) -> Tensor {
        let kind = x.kind();
        let x = x.to_kind(Kind::Float);
        let length = x.norm_scalaropt_dim(2, [-1_i64].as_slice(), true);
        let unit = x / length.hypot(&self.least_length);
        match weight {
            Some(weight) => (unit * (self.config.hidden_size as f64).sqrt()).to_kind(kind) * weight,
            None => unit,
        }
    }

    /// Heads of queries, keys and values together.
    fn num_qkv_heads(&self) -> i64 {
        self.config.num_attention_heads + 2 * self.config.num_key_value_heads
    }
}

impl FusedLayer {
    /// `gain` is what norms leave to the matrices behind them, where their weights are folded.
    fn new(layer: &DecoderLayerWeights, head_dim: i64, gain: Option<f64>) -> Self {
        let DecoderLayerWeights {
            q_proj,
            k_proj,
            v_proj,
            mlp,
            ..
        } = layer;
        let bias = |proj: &Linear| {
            let zeros = || proj.weight.select(1, 0).zeros_like();
            proj.bias.as_ref().map_or_else(zeros, Tensor::detach)
        };
        let paired = |x: &Tensor| pair_rows(&x.detach(), head_dim);
        let biases = [paired(&bias(q_proj)), paired(&bias(k_proj)), bias(v_proj)];
        let qkv = [
            paired(&q_proj.weight),
            paired(&k_proj.weight),
            v_proj.weight.detach(),
        ];
        let folded = |stacked: Tensor, norm: &Tensor| match gain {
            Some(gain) => stacked * (norm * gain),
            None => stacked,
        };
        let kept = |norm: &Tensor| gain.is_none().then(|| norm.detach());
        let gate_up = [&mlp.gate_proj, &mlp.up_proj].map(|proj| proj.weight.detach());
        let gate_up = Tensor::cat(&gate_up, 0);
        Self {
            input_layernorm: kept(&layer.input_layernorm),
            qkv: folded(Tensor::cat(&qkv, 0), &layer.input_layernorm.detach()),
            qkv_bias: Tensor::cat(&biases, 0),
            o_proj: layer.o_proj.weight.detach().tr(),
            post_attention_layernorm: kept(&layer.post_attention_layernorm),
            gate_up: folded(gate_up, &layer.post_attention_layernorm.detach()),
            down_proj: mlp.down_proj.weight.detach().tr(),
        }
    }
}

/// Turns of `rotary`, `[.., tokens, head_dim]`, as complex numbers `[tokens, 1, head_dim / 2]`.
fn turns(rotary: &Rotary) -> Tensor {
    let head_dim = *rotary.cos.size().last().expect("angles have dimensions");
    let half = |x: &Tensor, start: i64| {
        let x = x.reshape([-1, 1, head_dim]).to_kind(Kind::Float);
        x.narrow(-1, start, head_dim / 2)
    };
    // Of the sines, the first half is negated.
    Tensor::complex(&half(&rotary.cos, 0), &half(&rotary.sin, head_dim / 2))
}

/// Rows of a projection in the order that `WideRotary` turns: `[heads * head_dim, ..]` with the
/// two numbers of a pair side by side, instead of half a head apart.
fn pair_rows(x: &Tensor, head_dim: i64) -> Tensor {
    let split = x.reshape([-1, 2, head_dim / 2, x.numel() as i64 / x.size()[0]]);
    split.transpose(1, 2).reshape(x.size())
}

/// A rotary over queries, keys and values at once: it leaves the values alone.
///
/// Turning a pair of numbers is one complex product. The pairs of queries and keys stand side by
/// side for it, which their product does not notice.
#[derive(Debug)]
pub struct WideRotary(Tensor);

impl WideRotary {
    /// Widens `turns`, complex `[tokens, 1, head_dim / 2]`, to `[tokens, heads + 2 * kv_heads,
    /// head_dim / 2]`.
    fn new(config: &TextConfig, turns: &Tensor) -> Self {
        let (tokens, _, half) = turns.size3().expect("turns are [tokens, 1, head_dim / 2]");
        let kv_heads = config.num_key_value_heads;
        let turned = [tokens, config.num_attention_heads + kv_heads, half];
        let kept = turns.new_ones([1, 1, 1], (turns.kind(), turns.device()));
        let kept = kept.expand([tokens, kv_heads, half], false);
        Self(Tensor::cat(&[&turns.expand(turned, false), &kept], 1))
    }

    /// Turns `[tokens, heads + 2 * kv_heads, head_dim]`.
    fn turn(&self, qkv: &Tensor) -> Tensor {
        let (tokens, heads, head_dim) = qkv.size3().expect("heads are three-dimensional");
        let pairs = qkv
            .to_kind(Kind::Float)
            .view([tokens, heads, head_dim / 2, 2]);
        let turned = (pairs.view_as_complex() * &self.0).view_as_real();
        turned.view([tokens, heads, head_dim]).to_kind(qkv.kind())
    }
}
