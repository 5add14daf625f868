//! Features of screenshots for training: computed once where the vision tower is frozen.

use std::collections::{HashMap, HashSet};

use tch::{Tensor, no_grad};

use arpo::screen::{PixelValues, ProcessorConfig, ScreenError, preprocess};
use arpo::types::{ImageHash, Screenshot};

use crate::model::Weights;
use crate::model::qwen2_5_vl::vision::encode;
use crate::trainer::lanes;

/// Pictures encoded at a time; more would only take memory.
const BATCH: usize = 16;

/// One picture's features and its size.
#[derive(Debug)]
struct Seen {
    /// `[merged, hidden]`.
    features: Tensor,
    /// Patches in time, down and across.
    grid_thw: [i64; 3],
}

/// Features by picture, under weights whose vision tower does not change.
#[derive(Debug, Default)]
pub struct FeatureCache {
    seen: HashMap<ImageHash, Seen>,
}

impl FeatureCache {
    /// Keeps what `screenshots` need, computes what is missing over `num_lanes` lanes, and
    /// forgets the rest.
    pub fn prepare<'a>(
        &mut self,
        weights: &Weights,
        processor: &ProcessorConfig,
        screenshots: impl IntoIterator<Item = &'a Screenshot>,
        num_lanes: usize,
    ) -> Result<(), ScreenError> {
        let (mut wanted, mut missing) = (HashSet::new(), Vec::new());
        for screenshot in screenshots {
            if wanted.insert(screenshot.hash().clone())
                && !self.seen.contains_key(screenshot.hash())
            {
                missing.push(screenshot.clone());
            }
        }
        self.seen.retain(|hash, _| wanted.contains(hash));
        let inputs = lanes::split_by_cost(missing, num_lanes, |_| 1)
            .into_iter()
            .map(|screenshots| (weights.shallow_clone(), screenshots))
            .collect();
        let results = lanes::run(inputs, |_, (weights, screenshots): (Weights, Vec<_>)| {
            no_grad(|| encode_all(&weights, processor, &screenshots))
        });
        for encoded in results {
            self.seen.extend(encoded?);
        }
        Ok(())
    }

    /// Features `[merged, hidden]` of a picture that was prepared, and its size in patches.
    ///
    /// # Panics
    /// If it was not.
    pub fn get(&self, hash: &ImageHash) -> (Tensor, [i64; 3]) {
        let seen = self
            .seen
            .get(hash)
            .expect("every screenshot of the samples was prepared");
        (seen.features.shallow_clone(), seen.grid_thw)
    }
}

/// Features of pictures, in batches.
fn encode_all(
    weights: &Weights,
    processor: &ProcessorConfig,
    screenshots: &[Screenshot],
) -> Result<Vec<(ImageHash, Seen)>, ScreenError> {
    let mut encoded = Vec::with_capacity(screenshots.len());
    for batch in screenshots.chunks(BATCH) {
        let pixels = batch
            .iter()
            .map(|screenshot| preprocess(screenshot, processor))
            .collect::<Result<Vec<_>, _>>()?;
        let features = encode_pixels(weights, &pixels);
        for ((screenshot, pixels), features) in batch.iter().zip(&pixels).zip(features) {
            let seen = Seen {
                // A copy, so that one kept picture does not keep its whole batch.
                features: features.copy(),
                grid_thw: pixels.grid_thw,
            };
            encoded.push((screenshot.hash().clone(), seen));
        }
    }
    Ok(encoded)
}

/// Features of prepared pictures, one tensor `[merged, hidden]` each. Differentiable.
pub fn encode_pixels(weights: &Weights, pixels: &[PixelValues]) -> Vec<Tensor> {
    if pixels.is_empty() {
        return Vec::new();
    }
    let grids: Vec<[i64; 3]> = pixels.iter().map(|picture| picture.grid_thw).collect();
    let mut values = Vec::with_capacity(pixels.iter().map(|picture| picture.values.len()).sum());
    for picture in pixels {
        values.extend_from_slice(&picture.values);
    }
    let values = Tensor::from_slice(&values).reshape([-1, weights.config.vision.patch_dim()]);
    let unit = weights.config.vision.merge_unit();
    let merged: Vec<i64> = grids
        .iter()
        .map(|grid| grid.iter().product::<i64>() / unit)
        .collect();
    encode(weights, &values, &grids).split_with_sizes(merged, 0)
}
