//! Screenshots of a prefill batch on their way through the vision tower.

use std::collections::HashMap;

use arpo::policy::{PolicyError, SessionId};
use arpo::screen::{ScreenError, preprocess};
use arpo::types::{ImageHash, Screenshot};
use tch::Tensor;

use super::lane::{Completion, Lane, Prepared, grid_of};
use super::session::Work;
use crate::model::qwen2_5_vl::vision;

/// Most patches that go through the tower together, about: what they become then stays in a
/// core's cache. A larger picture goes alone.
const PATCHES_PER_CALL: i64 = 1024;

/// A screenshot without features, and its grid in patches.
struct Fresh {
    hash: ImageHash,
    screenshot: Screenshot,
    grid: [i64; 3],
}

impl Fresh {
    fn num_patches(&self) -> i64 {
        self.grid.iter().product()
    }
}

impl Lane {
    /// Encodes the images of `batch` that have no features yet, each screenshot once, and says
    /// how many. Sessions whose picture cannot be read fail.
    pub(super) fn encode_images(
        &mut self,
        batch: &[SessionId],
        prepared: &Prepared,
        completions: &mut Vec<(SessionId, Completion)>,
    ) -> usize {
        let mut encoded = HashMap::new();
        let fresh = self.fresh_images(batch, prepared, &mut encoded);
        let mut rest = fresh.as_slice();
        while !rest.is_empty() {
            let (part, later) = rest.split_at(first_call(rest));
            self.encode_part(part, prepared, &mut encoded);
            rest = later;
        }
        for id in batch {
            if let Err(error) = self.hand_out(*id, &encoded) {
                completions.push((*id, Completion::Failed(PolicyError::Failed(error))));
            }
        }
        fresh.len()
    }

    /// The screenshots of `batch` that nobody has encoded yet, in order, each once. What is
    /// known of the others goes into `encoded`.
    fn fresh_images(
        &mut self,
        batch: &[SessionId],
        prepared: &Prepared,
        encoded: &mut HashMap<ImageHash, Result<Tensor, String>>,
    ) -> Vec<Fresh> {
        let mut fresh: Vec<Fresh> = Vec::new();
        let sessions = batch.iter().filter_map(|id| self.sessions.get(id));
        for image in sessions.flat_map(|session| &session.images) {
            let Some(screenshot) = &image.screenshot else {
                continue;
            };
            let known = fresh.iter().any(|other| other.hash == image.hash);
            if known || encoded.contains_key(&image.hash) {
                continue;
            }
            let version = prepared.weights.vision_version;
            if let Some(features) = self.features.get(&image.hash, version) {
                encoded.insert(image.hash.clone(), Ok(features));
                continue;
            }
            match grid_of(screenshot, &self.spec.processor) {
                Ok(grid) => fresh.push(Fresh {
                    hash: image.hash.clone(),
                    screenshot: screenshot.clone(),
                    grid,
                }),
                Err(error) => _ = encoded.insert(image.hash.clone(), Err(error.to_string())),
            }
        }
        fresh
    }

    /// Runs the vision tower over some screenshots and keeps their features.
    fn encode_part(
        &mut self,
        part: &[Fresh],
        prepared: &Prepared,
        encoded: &mut HashMap<ImageHash, Result<Tensor, String>>,
    ) {
        let pixels = match self.pixels_of(part) {
            Ok(pixels) => pixels,
            Err(error) => {
                let failed = part
                    .iter()
                    .map(|one| (one.hash.clone(), Err(error.to_string())));
                encoded.extend(failed);
                return;
            }
        };
        let config = &prepared.weights.config.vision;
        let pixels = Tensor::from_slice(&pixels).reshape([-1, config.patch_dim()]);
        let grids: Vec<[i64; 3]> = part.iter().map(|one| one.grid).collect();
        let features = vision::encode(&prepared.weights, &pixels, &grids);
        let merged = part
            .iter()
            .map(|one| one.num_patches() / config.merge_unit());
        let lens: Vec<i64> = merged.collect();
        self.stats.images_encoded += part.len() as u64;
        for (one, features) in part.iter().zip(features.split_with_sizes(&lens, 0)) {
            // Own memory, so that one picture does not keep its whole batch alive.
            let features = features.copy();
            let version = prepared.weights.vision_version;
            self.features.insert(one.hash.clone(), version, &features);
            encoded.insert(one.hash.clone(), Ok(features));
        }
    }

    /// Patches of some screenshots one after another, `[patches, patch_dim]`.
    fn pixels_of(&self, part: &[Fresh]) -> Result<Vec<f32>, ScreenError> {
        let mut pixels = Vec::new();
        for one in part {
            let values = preprocess(&one.screenshot, &self.spec.processor)?.values;
            if pixels.is_empty() {
                pixels = values;
            } else {
                pixels.extend(values);
            }
        }
        Ok(pixels)
    }

    /// Gives a session the features of its images; it fails where one cannot be had, and says
    /// why.
    fn hand_out(
        &mut self,
        id: SessionId,
        encoded: &HashMap<ImageHash, Result<Tensor, String>>,
    ) -> Result<(), String> {
        let Some(session) = self.sessions.get_mut(&id) else {
            return Ok(());
        };
        for image in session
            .images
            .iter_mut()
            .filter(|image| image.screenshot.is_some())
        {
            match encoded.get(&image.hash) {
                Some(Ok(features)) => {
                    image.features = Some(features.shallow_clone());
                    image.screenshot = None;
                }
                Some(Err(error)) => {
                    session.work = Work::Idle;
                    return Err(error.clone());
                }
                None => {}
            }
        }
        Ok(())
    }
}

/// How many of the first screenshots go through the tower together; at least one.
fn first_call(fresh: &[Fresh]) -> usize {
    let mut patches = 0;
    let fitting = fresh.iter().take_while(|one| {
        patches += one.num_patches();
        patches <= PATCHES_PER_CALL
    });
    fitting.count().max(1)
}
