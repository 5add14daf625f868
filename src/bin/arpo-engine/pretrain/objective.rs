//! The loss of behavior cloning, and how often the network is right.
//!
//! Two parts: the next token wherever a sample says something, and what single merged patches
//! show. The second reads the vision tower's features directly: a feature has to point towards
//! the embeddings of the words drawn on its patch, and tell its place through two matrices
//! that exist only while cloning (`Heads`). Labels are read within a few hundred steps that
//! way; without it they were not after 36,000 screenshots. A feature that resembles its word is
//! also what an attention head needs to find the place of a word.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};
use tch::{Kind, Tensor, no_grad};

use crate::model::Weights;
use crate::model::qwen2_5_vl::rope::text_rotary;
use crate::model::qwen2_5_vl::text::{Attention, decoder_layer};
use crate::model::qwen2_5_vl::vision::encode;
use crate::model::qwen2_5_vl::{lm_head, rms_norm};
use crate::pretrain::PretrainError;
use crate::pretrain::samples::{Sample, Says};
use crate::pretrain::vocabulary::{IM_END, Vocabulary};
use crate::trainer::rows::{Row, collate, group_by_length};

/// Weight of a merged patch's label against one token of the text loss.
const CELL_WEIGHT: f64 = 0.5;
/// A coordinate this near still hits its widget; half of the smallest side.
const HIT_PX: i64 = 8;

/// A label counts as read if its word is among this many likeliest: a phrase is a verb or two
/// and a name.
const PHRASE_WORDS: i64 = 3;

/// Names of the matrices that exist only while cloning, in the order of `Heads`.
pub const HEAD_NAMES: [&str; 4] = [
    "cloning.column",
    "cloning.row",
    "cloning.word_column",
    "cloning.word_row",
];

/// `[hidden, hidden]` each: from a merged patch's feature, and from a word's state in the
/// middle of the text model, to the embedding of its place.
pub struct Heads {
    /// Column and row of a patch, column and row of a word.
    pub matrices: [Tensor; 4],
}

/// Right and asked, of one kind of token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    /// How often it was right.
    pub right: u64,
    /// How often it was asked.
    pub asked: u64,
}

impl Count {
    /// Notes one answer.
    fn note(&mut self, right: bool) {
        self.right += u64::from(right);
        self.asked += 1;
    }

    /// Share of right answers; 0 if nothing was asked.
    pub fn share(self) -> f64 {
        self.right as f64 / self.asked.max(1) as f64
    }
}

impl AddAssign for Count {
    fn add_assign(&mut self, other: Self) {
        self.right += other.right;
        self.asked += other.asked;
    }
}

/// Sums over a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tally {
    /// Text loss, summed over tokens, nats.
    pub loss: f64,
    /// Tokens of the text loss.
    pub tokens: f64,
    /// Label loss, summed over labels and their three questions, nats.
    pub cell_loss: f64,
    /// Labels of merged patches, times three questions.
    pub cells: f64,
    /// Words and syntax of replies.
    pub reply: Count,
    /// Coordinates of replies.
    pub reply_point: Count,
    /// Coordinates of replies that hit the widget.
    pub reply_hit: Count,
    /// Coordinates of named targets.
    pub point: Count,
    /// The same, hitting the widget.
    pub hit: Count,
    /// Words of a target at a given place.
    pub reading: Count,
    /// States of things.
    pub fact: Count,
    /// Words told from a merged patch: all of a phrase among the likeliest.
    pub label: Count,
    /// Columns and rows told from a merged patch.
    pub place: Count,
    /// Columns and rows told from a word's state.
    pub pointer: Count,
    /// Replies right in every token.
    pub replies: Count,
    /// Trajectories right in every token.
    pub trajectories: Count,
    /// Probability that sampling at temperature 1 follows the trajectory, summed.
    pub follow: f64,
    /// Screenshots.
    pub images: u64,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.loss += other.loss;
        self.tokens += other.tokens;
        self.cell_loss += other.cell_loss;
        self.cells += other.cells;
        self.reply += other.reply;
        self.reply_point += other.reply_point;
        self.reply_hit += other.reply_hit;
        self.point += other.point;
        self.hit += other.hit;
        self.reading += other.reading;
        self.fact += other.fact;
        self.label += other.label;
        self.place += other.place;
        self.pointer += other.pointer;
        self.replies += other.replies;
        self.trajectories += other.trajectories;
        self.follow += other.follow;
        self.images += other.images;
    }
}

/// Loss of samples as a sum over tokens and labels, with the graph behind it, and the tally.
///
/// The sum is what a lane differentiates; the trainer divides by all lanes' weight afterwards.
pub fn loss(
    weights: &Weights,
    heads: &Heads,
    samples: &[Sample],
    vocabulary: &Vocabulary,
) -> Result<(Tensor, Tally), PretrainError> {
    let mut tally = Tally::default();
    let (features, offsets) = features(weights, samples);
    tally.images = samples.iter().map(|s| s.images.len() as u64).sum();
    let mut total = cell_loss(weights, heads, samples, &features, &offsets, &mut tally);
    let lengths: Vec<usize> = samples.iter().map(|sample| sample.ids.len()).collect();
    for batch in group_by_length(&lengths) {
        if samples[batch[0]].ids.is_empty() {
            continue;
        }
        let rows: Vec<&Sample> = batch.iter().map(|&i| &samples[i]).collect();
        let parts: Vec<Tensor> = batch
            .iter()
            .map(|&i| features.narrow(0, offsets[i], offsets[i + 1] - offsets[i]))
            .collect();
        let features = Tensor::cat(&parts, 0);
        total += text_loss(weights, heads, &rows, &features, vocabulary, &mut tally)?;
    }
    Ok((total, tally))
}

/// Weight of a tally's loss: what the summed loss is divided by.
pub fn weight(tally: &Tally) -> f64 {
    tally.tokens + CELL_WEIGHT * tally.cells
}

/// Features of all samples' screenshots, `[merged_total, hidden]`, and where each sample's
/// begin; one more offset than samples.
fn features(weights: &Weights, samples: &[Sample]) -> (Tensor, Vec<i64>) {
    let unit = weights.config.vision.merge_unit();
    let (mut grids, mut pixels, mut offsets) = (Vec::new(), Vec::new(), vec![0]);
    let mut merged = 0;
    for sample in samples {
        for image in &sample.images {
            grids.push(image.grid_thw);
            pixels.extend_from_slice(&image.values);
            merged += image.grid_thw.iter().product::<i64>() / unit;
        }
        offsets.push(merged);
    }
    let patch_dim = weights.config.vision.patch_dim();
    let pixels = Tensor::from_slice(&pixels).reshape([-1, patch_dim]);
    (encode(weights, &pixels, &grids), offsets)
}

/// What merged patches show, read from their features alone.
fn cell_loss(
    weights: &Weights,
    heads: &Heads,
    samples: &[Sample],
    features: &Tensor,
    offsets: &[i64],
    tally: &mut Tally,
) -> Tensor {
    let (mut rows, mut columns, mut lines) = (Vec::new(), Vec::new(), Vec::new());
    let (mut word_rows, mut word_ids, mut word_weights) = (Vec::new(), Vec::new(), Vec::new());
    for (sample, offset) in samples.iter().zip(offsets) {
        for label in &sample.cells {
            for word in &label.words {
                word_rows.push(rows.len() as i64);
                word_ids.push(i64::from(*word));
                word_weights.push(1.0 / label.words.len() as f32);
            }
            rows.push(offset + label.cell as i64);
            columns.push(i64::from(label.point[0]));
            lines.push(i64::from(label.point[1]));
        }
    }
    if rows.is_empty() {
        return Tensor::zeros([], (Kind::Float, features.device()));
    }
    let shown = features.index_select(0, &Tensor::from_slice(&rows)); // [labels, hidden]
    let [column, row, ..] = &heads.matrices;
    let logprobs = |shown: &Tensor| lm_head(weights, shown).log_softmax(-1, Kind::Float);
    let word_ids = Tensor::from_slice(&word_ids).unsqueeze(-1);
    let said = logprobs(&shown).index_select(0, &Tensor::from_slice(&word_rows));
    let told = said.gather(-1, &word_ids, false).squeeze_dim(-1);
    let likely = said.detach().topk(PHRASE_WORDS, -1, true, false).1;
    count(
        &likely.eq_tensor(&word_ids).any_dim(-1, false),
        &mut tally.label,
    );
    let mut loss = -(told * Tensor::from_slice(&word_weights)).sum(Kind::Float);
    for (head, ids) in [(column, &columns), (row, &lines)] {
        let ids = Tensor::from_slice(ids).unsqueeze(-1);
        let said = logprobs(&shown.linear(head, None::<&Tensor>));
        loss -= said.gather(-1, &ids, false).sum(Kind::Float);
        let best = said.detach().argmax(-1, true);
        count(&best.eq_tensor(&ids), &mut tally.place);
    }
    tally.cells += 3.0 * rows.len() as f64;
    tally.cell_loss += loss.double_value(&[]);
    loss * CELL_WEIGHT
}

/// Adds a tensor of truth values to a count.
fn count(right: &Tensor, count: &mut Count) {
    count.right += right.sum(Kind::Int64).int64_value(&[]) as u64;
    count.asked += right.numel() as u64;
}

/// Next-token loss of rows, `features` being their screenshots' in order.
fn text_loss(
    weights: &Weights,
    heads: &Heads,
    rows: &[&Sample],
    features: &Tensor,
    vocabulary: &Vocabulary,
    tally: &mut Tally,
) -> Result<Tensor, PretrainError> {
    let grids: Vec<Vec<[i64; 3]>> = rows
        .iter()
        .map(|row| row.images.iter().map(|image| image.grid_thw).collect())
        .collect();
    let wanted: Vec<Vec<bool>> = rows
        .iter()
        .map(|row| row.says.iter().map(|says| *says != Says::Nothing).collect())
        .collect();
    let views: Vec<Row<'_>> = rows
        .iter()
        .zip(&grids)
        .zip(&wanted)
        .map(|((row, grids), wanted)| Row {
            ids: &row.ids,
            wanted,
            grids,
        })
        .collect();
    let batch = collate(&weights.config, &views)?;
    if batch.num_wanted() == 0 {
        // Every step of the trajectory was a mistake.
        return Ok(Tensor::zeros([], (Kind::Float, weights.device())));
    }
    let (embeds, positions) = batch.inputs(weights, features);
    let config = &weights.config.text;
    let rotary = text_rotary(config, &positions, embeds.kind());
    let (mut hidden, mut middle) = (embeds.shallow_clone(), embeds);
    for (i, layer) in weights.text.layers.iter().enumerate() {
        hidden = decoder_layer(layer, config, &hidden, &rotary, Attention::Causal);
        if i + 1 == weights.text.layers.len() / 2 {
            middle = hidden.shallow_clone();
        }
    }
    let hidden = rms_norm(&hidden, &weights.text.norm, config.rms_norm_eps);
    let pointers = pointer_loss(weights, heads, rows, &middle, tally);
    let (mut told, mut best) = (Vec::new(), Vec::new());
    for (logits, wanted) in batch.logits_of(weights, &hidden, 1.0) {
        best.push(no_grad(|| logits.argmax(-1, false)));
        let logprobs = logits.log_softmax(-1, Kind::Float);
        told.push(logprobs.gather(-1, &wanted, false));
    }
    let (told, best) = (Tensor::cat(&told, 0), Tensor::cat(&best, 0));
    let loss = -told.sum(Kind::Float);
    tally.tokens += batch.num_wanted() as f64;
    tally.loss += loss.double_value(&[]);
    judge(rows, &best, &told, vocabulary, tally);
    Ok(loss + pointers)
}

/// Places of words, read from their states `middle` `[batch, seq, hidden]` in the middle of the
/// text model: what makes an attention head find a word's picture within a few hundred steps.
fn pointer_loss(
    weights: &Weights,
    heads: &Heads,
    rows: &[&Sample],
    middle: &Tensor,
    tally: &mut Tally,
) -> Tensor {
    let seq = middle.size()[1] as usize;
    let (mut places, mut columns, mut lines) = (Vec::new(), Vec::new(), Vec::new());
    for (r, row) in rows.iter().enumerate() {
        for pointer in &row.pointers {
            places.push((r * seq + pointer.at) as i64);
            columns.push(i64::from(pointer.point[0]));
            lines.push(i64::from(pointer.point[1]));
        }
    }
    let mut loss = Tensor::zeros([], (Kind::Float, middle.device()));
    if places.is_empty() {
        return loss;
    }
    let states = middle
        .flatten(0, 1)
        .index_select(0, &Tensor::from_slice(&places));
    let [_, _, column, row] = &heads.matrices;
    for (head, ids) in [(column, &columns), (row, &lines)] {
        let ids = Tensor::from_slice(ids).unsqueeze(-1);
        let logits = lm_head(weights, &states.linear(head, None::<&Tensor>));
        let said = logits.log_softmax(-1, Kind::Float);
        loss -= said.gather(-1, &ids, false).sum(Kind::Float);
        let best = said.detach().argmax(-1, true);
        count(&best.eq_tensor(&ids), &mut tally.pointer);
    }
    tally.cells += 2.0 * places.len() as f64;
    tally.cell_loss += loss.double_value(&[]);
    loss * CELL_WEIGHT
}

/// Counts what was right: the likeliest token against the wanted one, in the order of `rows`.
fn judge(
    rows: &[&Sample],
    best: &Tensor,
    told: &Tensor,
    vocabulary: &Vocabulary,
    tally: &mut Tally,
) {
    let best = Vec::<i64>::try_from(best).expect("argmax is a vector");
    let told = told.detach().reshape([-1]);
    let told = Vec::<f32>::try_from(told).expect("log-probs are a vector");
    let mut answers = best.into_iter().zip(told);
    for row in rows {
        let (mut trajectory, mut reply, mut logprob) = (true, true, 0.0);
        for (id, says) in row.ids.iter().zip(&row.says) {
            if *says == Says::Nothing {
                continue;
            }
            let (best, told) = answers.next().expect("one answer a token of the loss");
            let right = best == i64::from(*id);
            match says {
                Says::Nothing => {}
                Says::Reply => tally.reply.note(right),
                Says::ReplyPoint => {
                    tally.reply_point.note(right);
                    tally.reply_hit.note(is_near(vocabulary, best, *id));
                }
                Says::Point => {
                    tally.point.note(right);
                    tally.hit.note(is_near(vocabulary, best, *id));
                }
                Says::Reading => tally.reading.note(right),
                Says::Fact => tally.fact.note(right),
            }
            (trajectory, reply, logprob) = (trajectory && right, reply && right, logprob + told);
            if *id == IM_END {
                tally.replies.note(reply);
                reply = true;
            }
        }
        if !row.replies.is_empty() {
            tally.trajectories.note(trajectory);
            tally.follow += f64::from(logprob).exp();
        }
    }
}

/// Whether a token is a coordinate within a widget's reach of the wanted one.
fn is_near(vocabulary: &Vocabulary, best: i64, wanted: u32) -> bool {
    let best = u32::try_from(best)
        .ok()
        .and_then(|id| vocabulary.coordinate(id));
    match (best, vocabulary.coordinate(wanted)) {
        (Some(best), Some(wanted)) => (i64::from(best) - i64::from(wanted)).abs() <= HIT_PX,
        _ => false,
    }
}
