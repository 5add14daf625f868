//! The vision tower: patches in, one feature per merged patch out.
//!
//! Most blocks attend within windows, some (`fullatt_block_indexes`) within the whole picture.
//! Patches are reordered once so that each window's are neighbours; where all segments are
//! equally long, attention is one batched call on a view; else one call per length.
//! Resizing, normalising and cutting into patches happen before, without torch.
//! Source: `Qwen2_5_VisionTransformerPretrainedModel`, `vision_utils.get_vision_window_index`.

use std::collections::BTreeMap;

use tch::{Device, Kind, Tensor};

use super::config::VisionConfig;
use super::rope::{Rotary, merged_grid, vision_rotary};
use super::{linear, rms_norm};
use crate::model::weights::{MergerWeights, Mlp, VisionBlockWeights, Weights};

/// The source fixes this one in code.
const RMS_NORM_EPS: f64 = 1e-6;

/// Everything about a batch of pictures that depends on their sizes alone.
#[derive(Debug)]
pub struct GridPlan {
    window_order: Tensor,
    reverse_order: Tensor,
    rotary: Rotary,
    windows: Segments,
    pictures: Segments,
}

/// A partition of the reordered patches into runs that attend among themselves.
#[derive(Debug)]
struct Segments {
    /// Patches of one segment, where all are equal.
    equal_len: Option<i64>,
    /// Else: per length, the rows of all segments of that length, `[count * len]`.
    by_len: Vec<(i64, Tensor)>,
    /// Undoes the grouping by length, `[patches]`.
    restore: Option<Tensor>,
}

/// Features of pictures.
///
/// - `pixel_values`: `[patches, patch_dim]`, the patches of all pictures one after another
/// - `grid_thw`: `[images]` of `[time, height, width]` in patches
///
/// Returns `[merged, hidden]` of the text model, in the pictures' order, row by row.
pub fn encode(weights: &Weights, pixel_values: &Tensor, grid_thw: &[[i64; 3]]) -> Tensor {
    let plan = GridPlan::new(
        &weights.config.vision,
        grid_thw,
        weights.device(),
        weights.kind(),
    );
    encode_planned(weights, pixel_values, &plan)
}

/// `encode` with a plan made before, for many batches of the same sizes.
pub fn encode_planned(weights: &Weights, pixel_values: &Tensor, plan: &GridPlan) -> Tensor {
    let config = &weights.config.vision;
    let visual = &weights.visual;
    // The kernel covers a patch exactly, so the convolution is a product.
    let kernel = visual
        .patch_embed
        .reshape([config.hidden_size, config.patch_dim()]);
    let patches = pixel_values
        .to_device(weights.device())
        .to_kind(weights.kind());
    let hidden = patches.linear(&kernel, None::<&Tensor>); // [patches, hidden]
    let mut hidden = hidden
        .reshape([-1, config.merge_unit(), config.hidden_size])
        .index_select(0, &plan.window_order)
        .reshape([-1, config.hidden_size]);
    for (block_idx, block) in visual.blocks.iter().enumerate() {
        let full = config.fullatt_block_indexes.contains(&(block_idx as i64));
        let segments = if full { &plan.pictures } else { &plan.windows };
        hidden = vision_block(block, config, &hidden, &plan.rotary, segments);
    }
    merge(&visual.merger, config, &hidden).index_select(0, &plan.reverse_order)
}

impl GridPlan {
    /// The plan for pictures of these sizes, `[images]` of `[time, height, width]` in patches.
    pub fn new(config: &VisionConfig, grid_thw: &[[i64; 3]], device: Device, kind: Kind) -> Self {
        let (order, window_lens) = window_order(config, grid_thw);
        let unit = config.merge_unit();
        let patch_order: Vec<i64> = order
            .iter()
            .flat_map(|merged| (0..unit).map(move |patch| merged * unit + patch))
            .collect();
        let patch_order = Tensor::from_slice(&patch_order).to_device(device);
        let picture_lens: Vec<i64> = grid_thw
            .iter()
            .flat_map(|[frames, rows, columns]| vec![rows * columns; *frames as usize])
            .collect();
        let mut reverse = vec![0; order.len()];
        for (place, merged) in order.iter().enumerate() {
            reverse[*merged as usize] = place as i64;
        }
        Self {
            window_order: Tensor::from_slice(&order).to_device(device),
            reverse_order: Tensor::from_slice(&reverse).to_device(device),
            rotary: vision_rotary(config, grid_thw, &patch_order, kind),
            windows: Segments::new(&window_lens, device),
            pictures: Segments::new(&picture_lens, device),
        }
    }
}

/// Merged patches in the order of their windows, and the windows' lengths in patches.
///
/// Windows at the right and lower edge are smaller where the picture does not divide.
fn window_order(config: &VisionConfig, grid_thw: &[[i64; 3]]) -> (Vec<i64>, Vec<i64>) {
    let edge = config.window_size / config.spatial_merge_size / config.patch_size;
    let (mut order, mut lens) = (Vec::new(), Vec::new());
    for grid in grid_thw {
        let [frames, rows, columns] = merged_grid(grid, config.spatial_merge_size);
        let first = order.len() as i64;
        for frame in 0..frames {
            for (top, left) in window_corners(rows, columns, edge) {
                let before = order.len();
                for row in top..rows.min(top + edge) {
                    let start = first + (frame * rows + row) * columns;
                    order.extend(start + left..start + columns.min(left + edge));
                }
                lens.push((order.len() - before) as i64 * config.merge_unit());
            }
        }
    }
    (order, lens)
}

/// Upper left corners of the windows of a picture, row by row.
fn window_corners(rows: i64, columns: i64, edge: i64) -> impl Iterator<Item = (i64, i64)> {
    let tops = (0..rows).step_by(edge as usize);
    tops.flat_map(move |top| {
        (0..columns)
            .step_by(edge as usize)
            .map(move |left| (top, left))
    })
}

impl Segments {
    /// Segments of these lengths, one after another.
    fn new(lens: &[i64], device: Device) -> Self {
        if let [first, rest @ ..] = lens
            && rest.iter().all(|len| len == first)
        {
            return Self {
                equal_len: Some(*first),
                by_len: Vec::new(),
                restore: None,
            };
        }
        let mut rows_by_len: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
        let mut start = 0;
        for len in lens {
            rows_by_len
                .entry(*len)
                .or_default()
                .extend(start..start + len);
            start += len;
        }
        let mut restore = vec![0; start as usize];
        for (place, row) in rows_by_len.values().flatten().enumerate() {
            restore[*row as usize] = place as i64;
        }
        let by_len = rows_by_len
            .into_iter()
            .map(|(len, rows)| (len, Tensor::from_slice(&rows).to_device(device)))
            .collect();
        let restore = Some(Tensor::from_slice(&restore).to_device(device));
        Self {
            equal_len: None,
            by_len,
            restore,
        }
    }

    /// Attention within each segment: `qkv` `[patches, 3, heads, head_dim]` to
    /// `[patches, heads * head_dim]`.
    fn attend(&self, qkv: &Tensor) -> Tensor {
        if let Some(len) = self.equal_len {
            return attend_equal(qkv, len);
        }
        let groups: Vec<Tensor> = self
            .by_len
            .iter()
            .map(|(len, rows)| attend_equal(&qkv.index_select(0, rows), *len))
            .collect();
        let grouped = Tensor::cat(&groups, 0);
        match &self.restore {
            Some(restore) => grouped.index_select(0, restore),
            None => grouped,
        }
    }
}

/// Attention within consecutive segments of `len` patches, without a mask.
fn attend_equal(qkv: &Tensor, len: i64) -> Tensor {
    let (_, _, heads, head_dim) = qkv
        .size4()
        .expect("queries, keys and values have four dims");
    let split = qkv
        .reshape([-1, len, 3, heads, head_dim])
        .permute([2, 0, 3, 1, 4]);
    let (q, k, v) = (split.get(0), split.get(1), split.get(2)); // [segments, heads, len, head_dim]
    let mask = None::<&Tensor>;
    let out = Tensor::scaled_dot_product_attention(&q, &k, &v, mask, 0.0, false, None, false);
    out.transpose(1, 2).reshape([-1, heads * head_dim])
}

/// One block over `hidden` `[patches, hidden]`.
fn vision_block(
    block: &VisionBlockWeights,
    config: &VisionConfig,
    hidden: &Tensor,
    rotary: &Rotary,
    segments: &Segments,
) -> Tensor {
    let normed = rms_norm(hidden, &block.norm1, RMS_NORM_EPS);
    let qkv = linear(&block.qkv, &normed).reshape([-1, 3, config.num_heads, config.head_dim()]);
    let turned = rotary.turn(&qkv.narrow(1, 0, 2));
    let qkv = Tensor::cat(&[turned, qkv.narrow(1, 2, 1)], 1);
    let hidden = hidden + linear(&block.proj, &segments.attend(&qkv));
    let normed = rms_norm(&hidden, &block.norm2, RMS_NORM_EPS);
    hidden + gated_mlp(&block.mlp, &normed)
}

/// `down(silu(gate(x)) * up(x))`, `[.., hidden]` to `[.., hidden]`.
pub(super) fn gated_mlp(mlp: &Mlp, x: &Tensor) -> Tensor {
    linear(
        &mlp.down_proj,
        &(linear(&mlp.gate_proj, x).silu() * linear(&mlp.up_proj, x)),
    )
}

/// Features of merged patches: `[patches, hidden]` to `[merged, out_hidden]`.
fn merge(merger: &MergerWeights, config: &VisionConfig, hidden: &Tensor) -> Tensor {
    let normed = rms_norm(hidden, &merger.ln_q, RMS_NORM_EPS);
    let units = normed.reshape([-1, config.hidden_size * config.merge_unit()]);
    linear(&merger.down, &linear(&merger.up, &units).gelu("none"))
}
