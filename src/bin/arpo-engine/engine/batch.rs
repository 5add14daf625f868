//! Turns sessions chosen for a batch into what the fused model takes: packed tokens, places to
//! write, spans that attend together.

use tch::{Device, Kind, Tensor};

use super::kv::{KvCache, Slot};
use crate::model::qwen2_5_vl::fused::{ChunkPlan, Span};

/// New tokens of one session: `new` of them after `past` cached ones.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub(super) slot: Slot,
    pub(super) past: usize,
    pub(super) new: usize,
}

/// How a lane's batch attends.
#[derive(Clone, Copy, Debug)]
pub(super) struct BatchShape {
    /// Query heads of one key head.
    pub(super) groups: i64,
    /// Key heads.
    pub(super) kv_heads: i64,
    pub(super) device: Device,
    pub(super) kind: Kind,
}

/// Padding a span to its longest slot costs reading what is masked; a further span costs calls.
/// Slots whose lengths differ by more than this many tokens go into spans of their own.
const MAX_PADDING: usize = 128;

/// Plans of a batch whose rows are ordered by slot, one per chunk. In neighbouring slots, rows with
/// one new token (decoding) share a span, and rows of the same lengths (a group's first prompts).
pub(super) fn chunk_plans<'a>(
    kv: &'a KvCache,
    rows: &[Row],
    shape: BatchShape,
) -> Vec<ChunkPlan<'a>> {
    let mut first_token = 0;
    rows.chunk_by(|a, b| a.slot.chunk == b.slot.chunk)
        .map(|rows| {
            let tokens = rows.iter().map(|row| row.new as i64).sum();
            let write_rows: Vec<i64> = rows
                .iter()
                .flat_map(|row| (row.past..row.past + row.new).map(|at| (row.slot, at)))
                .flat_map(|(slot, at)| kv.rows_of(slot, at))
                .collect();
            let plan = ChunkPlan {
                layers: kv.layers(rows[0].slot.chunk),
                first_token,
                tokens,
                write_rows: Tensor::from_slice(&write_rows).to_device(shape.device),
                spans: split_spans(rows).map(|rows| span(rows, shape)).collect(),
            };
            first_token += tokens;
            plan
        })
        .collect()
}

/// Runs of rows that can attend in one call.
fn split_spans(rows: &[Row]) -> impl Iterator<Item = &[Row]> {
    rows.chunk_by(|a, b| {
        let neighbours = a.slot.place + 1 == b.slot.place;
        let padding = if a.new == 1 { MAX_PADDING } else { 0 };
        neighbours && a.new == b.new && a.past.abs_diff(b.past) <= padding
    })
}

/// One call's worth of attention.
fn span(rows: &[Row], shape: BatchShape) -> Span {
    let len = rows.iter().map(|row| row.past + row.new).max().unwrap_or(0);
    let mask = match rows {
        [row, ..] if 1 < row.new => Some(causal_mask(row, shape)),
        [_] => None,
        _ => padding_mask(rows, len, shape),
    };
    Span {
        first_slot: rows[0].slot.place as i64,
        slots: rows.len() as i64,
        new: rows[0].new as i64,
        len: len as i64,
        mask,
    }
}

/// For several new tokens of rows like this one: each sees the past, itself and what is new
/// before it.
/// `[1, 1, groups * new, past + new]`.
fn causal_mask(row: &Row, shape: BatchShape) -> Tensor {
    let (new, past) = (row.new as i64, row.past as i64);
    let hidden = Tensor::full(
        [new, past + new],
        f64::NEG_INFINITY,
        (shape.kind, shape.device),
    );
    let mask = hidden.triu(past + 1);
    mask.repeat([shape.groups, 1])
        .reshape([1, 1, shape.groups * new, past + new])
}

/// For one new token of several rows: each sees its own tokens only.
/// `[rows * kv_heads, 1, len]`; `None` where all are equally long.
fn padding_mask(rows: &[Row], len: usize, shape: BatchShape) -> Option<Tensor> {
    if rows.iter().all(|row| row.past + row.new == len) {
        return None;
    }
    let heads = rows.len() * shape.kv_heads as usize;
    let mut mask = vec![0.0_f32; heads * len];
    let mut of_rows = mask.chunks_mut(len * shape.kv_heads as usize);
    for (row, of_row) in rows.iter().zip(&mut of_rows) {
        for mask in of_row.chunks_mut(len) {
            mask[row.past + row.new..].fill(f32::NEG_INFINITY);
        }
    }
    let mask = Tensor::from_slice(&mask).reshape([heads as i64, 1, len as i64]);
    Some(mask.to_device(shape.device).to_kind(shape.kind))
}
