//! Rows of tokens with screenshots, batched for one forward pass, and the log-probabilities of
//! the tokens that matter.
//!
//! Whole trajectories are rows: history only grows, so one causal pass sees for every reply
//! what the policy saw. Rows are padded on the right, which causal attention never looks at.

use tch::{Kind, Tensor};

use crate::model::qwen2_5_vl::config::ModelConfig;
use crate::model::qwen2_5_vl::rope::rope_index;
use crate::model::qwen2_5_vl::text::{Attention, forward_at};
use crate::model::qwen2_5_vl::{embed, lm_head, suppress_placeholder};
use crate::model::{ModelError, Weights};

/// Rows of a batch may be shorter than its longest by this share.
const MAX_PADDING: f64 = 0.2;
/// Logits are made for this many positions at a time: at a vocabulary of 150,000 and in
/// float32 more would take gigabytes.
const LOGIT_CHUNK: i64 = 4096;

/// One row before batching.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// Token ids, `[seq]`.
    pub ids: &'a [u32],
    /// True where a token's log-probability is wanted, `[seq]`; never at the first.
    pub wanted: &'a [bool],
    /// Its screenshots as `[time, height, width]` in patches, in order.
    pub grids: &'a [[i64; 3]],
}

/// Rows ready for the network.
#[derive(Debug)]
pub struct Batch {
    /// `[batch, seq]` int64, padded with 0.
    ids: Tensor,
    /// `[3, batch, seq]` int64.
    positions: Tensor,
    /// Flat places whose states predict the wanted tokens, `[wanted]` int64.
    places: Tensor,
    /// The wanted tokens, row by row, `[wanted]` int64.
    wanted: Tensor,
}

/// Indices of rows in batches of similar length, longest first.
pub fn group_by_length(lengths: &[usize]) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..lengths.len()).collect();
    order.sort_by_key(|&i| (std::cmp::Reverse(lengths[i]), i));
    let mut batches: Vec<Vec<usize>> = Vec::new();
    for i in order {
        let fits = batches.last().is_some_and(|batch| {
            lengths[batch[0]] as f64 * (1.0 - MAX_PADDING) <= lengths[i] as f64
        });
        match batches.last_mut() {
            Some(batch) if fits => batch.push(i),
            Some(_) | None => batches.push(vec![i]),
        }
    }
    batches
}

/// Pads and stacks rows.
pub fn collate(config: &ModelConfig, rows: &[Row<'_>]) -> Result<Batch, ModelError> {
    let seq = rows.iter().map(|row| row.ids.len()).max().unwrap_or(0);
    let mut ids = vec![0_i64; rows.len() * seq];
    let (mut places, mut wanted) = (Vec::new(), Vec::new());
    for (r, row) in rows.iter().enumerate() {
        for (t, id) in row.ids.iter().enumerate() {
            ids[r * seq + t] = i64::from(*id);
            if row.wanted[t] && 0 < t {
                // The state before a token predicts it.
                places.push((r * seq + t - 1) as i64);
                wanted.push(i64::from(*id));
            }
        }
    }
    let spans: Vec<(&[u32], &[[i64; 3]])> = rows.iter().map(|row| (row.ids, row.grids)).collect();
    Ok(Batch {
        positions: rope_index(config, &spans)?,
        ids: Tensor::from_slice(&ids).reshape([rows.len() as i64, seq as i64]),
        places: Tensor::from_slice(&places),
        wanted: Tensor::from_slice(&wanted),
    })
}

impl Batch {
    /// How many tokens are wanted.
    pub fn num_wanted(&self) -> usize {
        self.wanted.numel()
    }

    /// Logits that predict the wanted tokens, in chunks of at most `LOGIT_CHUNK` of them:
    /// `[chunk, vocab]` float32, each with the wanted tokens `[chunk, 1]`.
    ///
    /// - `features`: `[merged_total, hidden]`, the rows' screenshots in order
    /// - `temperature`: what logits are divided by
    pub fn logits(
        &self,
        weights: &Weights,
        features: &Tensor,
        temperature: f64,
    ) -> impl Iterator<Item = (Tensor, Tensor)> {
        let (embeds, positions) = self.inputs(weights, features);
        let places = self.places.to_device(weights.device());
        let states = forward_at(weights, &embeds, &positions, Attention::Causal, &places);
        self.logits_at(weights, states, temperature)
    }

    /// What the text model takes: embeddings `[batch, seq, hidden]` with `features`
    /// `[merged_total, hidden]` in place, and positions `[3, batch, seq]`.
    pub fn inputs(&self, weights: &Weights, features: &Tensor) -> (Tensor, Tensor) {
        let device = weights.device();
        (
            embed(weights, &self.ids.to_device(device), features),
            self.positions.to_device(device),
        )
    }

    /// `logits` from the text model's states `hidden` `[batch, seq, hidden]`.
    pub fn logits_of(
        &self,
        weights: &Weights,
        hidden: &Tensor,
        temperature: f64,
    ) -> impl Iterator<Item = (Tensor, Tensor)> {
        let places = self.places.to_device(weights.device());
        let states = hidden.flatten(0, 1).index_select(0, &places);
        self.logits_at(weights, states, temperature)
    }

    /// `logits` from the states `[wanted, hidden]` that predict the wanted tokens.
    fn logits_at(
        &self,
        weights: &Weights,
        states: Tensor,
        temperature: f64,
    ) -> impl Iterator<Item = (Tensor, Tensor)> {
        let wanted = self.wanted.to_device(weights.device()).unsqueeze(-1);
        let total = wanted.size()[0];
        (0..total).step_by(LOGIT_CHUNK as usize).map(move |start| {
            let len = LOGIT_CHUNK.min(total - start);
            let logits = lm_head(weights, &states.narrow(0, start, len)).to_kind(Kind::Float);
            // As in sampling: no reply contains a screenshot.
            let logits = suppress_placeholder(&weights.config, &logits);
            let logits = if temperature == 1.0 {
                logits
            } else {
                logits / temperature
            };
            (logits, wanted.narrow(0, start, len))
        })
    }

    /// Log-probability of each wanted token and the entropy of the distribution it was drawn
    /// from, nats; both `[wanted]` float32. The entropy carries no gradient.
    pub fn logprobs(
        &self,
        weights: &Weights,
        features: &Tensor,
        temperature: f64,
    ) -> (Tensor, Tensor) {
        let (mut logprobs, mut entropies) = (Vec::new(), Vec::new());
        for (logits, wanted) in self.logits(weights, features, temperature) {
            let all = logits.log_softmax(-1, Kind::Float);
            logprobs.push(all.gather(-1, &wanted, false).squeeze_dim(-1));
            let all = all.detach();
            // The placeholder's is -inf, which times its probability 0 would be NaN.
            let finite = all.clamp_min(f64::from(f32::MIN));
            entropies.push(-(all.exp() * finite).sum_dim_intlist(-1, false, Kind::Float));
        }
        if logprobs.is_empty() {
            let nothing = Tensor::zeros([0], (Kind::Float, weights.device()));
            return (nothing.shallow_clone(), nothing);
        }
        (Tensor::cat(&logprobs, 0), Tensor::cat(&entropies, 0))
    }
}
