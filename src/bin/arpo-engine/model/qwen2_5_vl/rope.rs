//! Rotary embeddings: positions of tokens and patches, and the turning of queries and keys.
//!
//! Text advances all three axes by one a token. A picture's merged patches share one time and
//! count rows and columns from there; the next token continues after the longer of the two, so
//! that a screenshot of 6x8 merged patches costs 8 positions, not 48.
//! Source: `Qwen2_5_VLModel.get_rope_index`, `Qwen2_5_VLRotaryEmbedding`,
//! `Qwen2_5_VLVisionRotaryEmbedding`, `vision_utils.get_vision_position_ids`.

use tch::{Device, Kind, Tensor};

use super::config::{ModelConfig, TextConfig, VisionConfig};
use crate::model::ModelError;

/// Position of one token: time, height, width.
pub type Position = [i64; 3];

/// Hands out positions to an append-only row of tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PositionCursor {
    next: i64,
}

impl PositionCursor {
    /// The position that the next text token gets on every axis.
    pub fn next(self) -> i64 {
        self.next
    }

    /// Positions of `ids` appended to the row, one each. `grids` are the pictures whose
    /// placeholders stand in `ids`, in order, as `[time, height, width]` in patches.
    ///
    /// Placeholders must be as many as the pictures have merged patches, or nothing is
    /// appended and the error says which picture is short.
    pub fn extend(
        &mut self,
        config: &ModelConfig,
        ids: &[u32],
        grids: &[[i64; 3]],
    ) -> Result<Vec<Position>, ModelError> {
        let mut cursor = *self;
        let mut pictures = grids.iter();
        let mut positions = Vec::with_capacity(ids.len());
        while let Some(id) = ids.get(positions.len()) {
            if i64::from(*id) != config.image_token_id {
                positions.push([cursor.next; 3]);
                cursor.next += 1;
                continue;
            }
            let grid = pictures.next().ok_or_else(|| {
                let given = grids.len();
                prompt_error(format!(
                    "image placeholders for more than the {given} images given"
                ))
            })?;
            let merged = merged_grid(grid, config.vision.spatial_merge_size);
            let wanted = merged.iter().product::<i64>() as usize;
            let run = ids[positions.len()..]
                .iter()
                .take(wanted)
                .take_while(|id| i64::from(**id) == config.image_token_id)
                .count();
            if run < wanted {
                return Err(prompt_error(format!(
                    "an image of {wanted} merged patches has {run} placeholders"
                )));
            }
            positions.extend(picture_positions(merged, cursor.next));
            cursor.next += merged[1].max(merged[2]);
        }
        match pictures.len() {
            0 => *self = cursor,
            left => return Err(prompt_error(format!("{left} images have no placeholders"))),
        }
        Ok(positions)
    }
}

/// Positions of whole rows: `PositionCursor` from the start for each of `rows`.
/// Returns `[3, batch, seq]` int64, padded on the right with zeros.
pub fn rope_index(
    config: &ModelConfig,
    rows: &[(&[u32], &[[i64; 3]])],
) -> Result<Tensor, ModelError> {
    let positions = rows
        .iter()
        .map(|(ids, grids)| PositionCursor::default().extend(config, ids, grids))
        .collect::<Result<Vec<_>, _>>()?;
    let slices: Vec<&[Position]> = positions.iter().map(Vec::as_slice).collect();
    Ok(position_tensor(&slices))
}

/// Positions of rows as the text model takes them: `[3, batch, seq]` int64, where `seq` is the
/// longest row; shorter rows are padded on the right with zeros.
pub fn position_tensor(rows: &[&[Position]]) -> Tensor {
    let seq = rows.iter().map(|row| row.len()).max().unwrap_or(0);
    let mut flat = vec![0; 3 * rows.len() * seq];
    for (batch_idx, row) in rows.iter().enumerate() {
        for (seq_idx, position) in row.iter().enumerate() {
            for (axis, value) in position.iter().enumerate() {
                flat[(axis * rows.len() + batch_idx) * seq + seq_idx] = *value;
            }
        }
    }
    Tensor::from_slice(&flat).reshape([3, rows.len() as i64, seq as i64])
}

/// `[time, height, width]` in merged patches.
pub fn merged_grid(grid: &[i64; 3], merge_size: i64) -> [i64; 3] {
    [grid[0], grid[1] / merge_size, grid[2] / merge_size]
}

/// Positions of one picture's merged patches, row by row, all counted from `start`.
fn picture_positions(merged: [i64; 3], start: i64) -> impl Iterator<Item = Position> {
    let [frames, rows, columns] = merged;
    (0..frames * rows * columns).map(move |patch| {
        let (frame, within) = (patch / (rows * columns), patch % (rows * columns));
        [
            start + frame,
            start + within / columns,
            start + within % columns,
        ]
    })
}

/// Cosines and sines to turn heads by, broadcastable to `[.., head_dim]`.
///
/// Invariant: the first half of `sin` is negated, so that turning needs no negation:
/// `x * cos + roll(x, head_dim / 2) * sin`.
#[derive(Debug)]
pub struct Rotary {
    /// Cosine of each angle, both halves alike.
    pub cos: Tensor,
    /// Sine of each angle, the first half negated.
    pub sin: Tensor,
}

impl Rotary {
    /// From angles `[.., head_dim / 2]`, to `kind`.
    fn from_angles(angles: &Tensor, kind: Kind) -> Self {
        let (cos, sin) = (angles.cos(), angles.sin());
        Self {
            cos: Tensor::cat(&[&cos, &cos], -1).to_kind(kind),
            sin: Tensor::cat(&[&sin.neg(), &sin], -1).to_kind(kind),
        }
    }

    /// Turns `x`, `[.., head_dim]`.
    pub fn turn(&self, x: &Tensor) -> Tensor {
        let half = x.size()[x.dim() - 1] / 2;
        (x * &self.cos).addcmul(&x.roll([half], [-1]), &self.sin)
    }
}

/// Angles of text tokens: `position_ids` `[3, batch, seq]` to a rotary of `[batch, 1, seq,
/// head_dim]`. Frequency `f` turns with the axis whose section of `mrope_section` holds it.
pub fn text_rotary(config: &TextConfig, position_ids: &Tensor, kind: Kind) -> Rotary {
    let device = position_ids.device();
    let axes: Vec<i64> = config
        .mrope_section
        .iter()
        .enumerate()
        .flat_map(|(section, length)| vec![section as i64 % 3; *length as usize])
        .collect();
    let axes = Tensor::from_slice(&axes).to_device(device);
    // [head_dim / 2, batch, seq] -> [batch, seq, head_dim / 2]
    let positions = position_ids
        .index_select(0, &axes)
        .permute([1, 2, 0])
        .to_kind(Kind::Float);
    let frequencies = inverse_frequencies(config.rope_theta, config.head_dim(), device);
    Rotary::from_angles(&(positions * frequencies).unsqueeze(1), kind)
}

/// Angles of patches in the processor's order (units of merged patches, row by row inside),
/// reordered by `patch_order` `[patches]`: a rotary of `[patches, 1, 1, head_dim]`.
/// Half of the frequencies turn with the row, half with the column.
pub fn vision_rotary(
    config: &VisionConfig,
    grids: &[[i64; 3]],
    patch_order: &Tensor,
    kind: Kind,
) -> Rotary {
    let device = patch_order.device();
    let places: Vec<i64> = grids
        .iter()
        .flat_map(|grid| patch_places(grid, config.spatial_merge_size))
        .collect();
    let places = Tensor::from_slice(&places)
        .to_device(device)
        .reshape([-1, 2]); // [patches, 2]
    let places = places.index_select(0, patch_order).to_kind(Kind::Float);
    let frequencies = inverse_frequencies(config.rope_theta, config.head_dim() / 2, device);
    // [patches, 2, 1] * [head_dim / 4] -> [patches, 1, 1, head_dim / 2], rows before columns.
    let angles = places.unsqueeze(-1) * frequencies;
    Rotary::from_angles(&angles.reshape([-1, 1, 1, config.head_dim() / 2]), kind)
}

/// Row and column of each patch of one picture, flattened, in the processor's order.
fn patch_places(grid: &[i64; 3], merge_size: i64) -> Vec<i64> {
    let [frames, rows, columns] = *grid;
    let mut places = Vec::with_capacity((frames * rows * columns * 2) as usize);
    for _ in 0..frames {
        for unit_row in 0..rows / merge_size {
            for unit_column in 0..columns / merge_size {
                for within in 0..merge_size * merge_size {
                    places.push(unit_row * merge_size + within / merge_size);
                    places.push(unit_column * merge_size + within % merge_size);
                }
            }
        }
    }
    places
}

/// `theta^(-2i / dim)` for `i` in `0..dim / 2`, in float32 by the same operations as the source,
/// so that angles agree to the last bit.
fn inverse_frequencies(theta: f64, dim: i64, device: Device) -> Tensor {
    let exponents = Tensor::arange_start_step(0, dim, 2, (Kind::Float, device)) / dim as f64;
    Tensor::pow_scalar(theta, &exponents).reciprocal()
}

/// A prompt that does not fit its pictures.
fn prompt_error(message: String) -> ModelError {
    ModelError::Prompt(message)
}
