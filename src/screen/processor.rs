//! From a screenshot to the patches a Qwen2.5-VL vision tower takes.
//!
//! Invariant: equal to `transformers`' torchvision processor (`Qwen2VLImageProcessor`) within
//! 1/255 of the pixel range before normalization; a test runs both.

use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::screen::{ScreenError, resize_bicubic, smart_resize};
use crate::types::{ScreenSize, Screenshot};

/// Names the processor's settings may be stored under, newest habit last.
const FILES: [&str; 2] = ["preprocessor_config.json", "processor_config.json"];

/// Bicubic, by Pillow's numbering; the only filter Qwen's processors use.
const BICUBIC: i64 = 3;

/// A checkpoint's image processor settings.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessorConfig {
    /// Side of a patch in pixels.
    pub patch_size: u32,
    /// Frames in a patch; a still picture is repeated.
    pub temporal_patch_size: u32,
    /// Side in patches of the square that becomes one token.
    pub merge_size: u32,
    /// The model never sees fewer pixels than this.
    pub min_pixels: u64,
    /// Nor more than this.
    pub max_pixels: u64,
    /// Mean of each channel, of values in [0, 1].
    pub image_mean: [f32; 3],
    /// Standard deviation of each channel, of values in [0, 1].
    pub image_std: [f32; 3],
    /// What brings a byte to [0, 1].
    pub rescale_factor: f64,
}

impl Default for ProcessorConfig {
    /// `transformers`' own defaults of `Qwen2VLImageProcessor`, which checkpoints may leave out.
    fn default() -> Self {
        Self {
            patch_size: 14,
            temporal_patch_size: 2,
            merge_size: 2,
            min_pixels: 56 * 56,
            max_pixels: 28 * 28 * 1280,
            image_mean: [0.481_454_66, 0.457_827_5, 0.408_210_73],
            image_std: [0.268_629_54, 0.261_302_6, 0.275_777_1],
            rescale_factor: 1.0 / 255.0,
        }
    }
}

/// The file's keys, all optional.
#[derive(Deserialize)]
struct StoredConfig {
    patch_size: Option<u32>,
    temporal_patch_size: Option<u32>,
    merge_size: Option<u32>,
    min_pixels: Option<u64>,
    max_pixels: Option<u64>,
    size: Option<StoredSize>,
    image_mean: Option<[f32; 3]>,
    image_std: Option<[f32; 3]>,
    rescale_factor: Option<f64>,
    resample: Option<i64>,
    do_resize: Option<bool>,
    do_rescale: Option<bool>,
    do_normalize: Option<bool>,
}

/// `size` bounds pixels, not edges, whatever its keys are called.
#[derive(Deserialize)]
struct StoredSize {
    #[serde(alias = "min_pixels")]
    shortest_edge: Option<u64>,
    #[serde(alias = "max_pixels")]
    longest_edge: Option<u64>,
}

impl ProcessorConfig {
    /// Reads the settings of the checkpoint in `dir`.
    pub fn open(dir: &Path) -> Result<Self, ScreenError> {
        let path = FILES
            .iter()
            .map(|name| dir.join(name))
            .find(|path| path.exists())
            .unwrap_or_else(|| dir.join(FILES[0]));
        let text = std::fs::read_to_string(&path).map_err(|source| ScreenError::Read {
            path: path.clone(),
            source,
        })?;
        Self::from_json(&text, &path.display().to_string())
    }

    /// Reads settings from JSON; `origin` names them in errors. The newer layout nests them
    /// under `image_processor`.
    pub fn from_json(text: &str, origin: &str) -> Result<Self, ScreenError> {
        let fail = |reason: String| ScreenError::Config {
            origin: origin.to_owned(),
            reason,
        };
        let mut value: Value = serde_json::from_str(text).map_err(|e| fail(e.to_string()))?;
        if let Some(inner) = value.get_mut("image_processor") {
            value = inner.take();
        }
        let stored: StoredConfig =
            serde_json::from_value(value).map_err(|e| fail(e.to_string()))?;
        Self::from_stored(&stored).map_err(fail)
    }

    fn from_stored(stored: &StoredConfig) -> Result<Self, String> {
        let standard = Self::default();
        let size = stored.size.as_ref();
        let config = Self {
            patch_size: stored.patch_size.unwrap_or(standard.patch_size),
            temporal_patch_size: stored
                .temporal_patch_size
                .unwrap_or(standard.temporal_patch_size),
            merge_size: stored.merge_size.unwrap_or(standard.merge_size),
            min_pixels: stored
                .min_pixels
                .or(size.and_then(|size| size.shortest_edge))
                .unwrap_or(standard.min_pixels),
            max_pixels: stored
                .max_pixels
                .or(size.and_then(|size| size.longest_edge))
                .unwrap_or(standard.max_pixels),
            image_mean: stored.image_mean.unwrap_or(standard.image_mean),
            image_std: stored.image_std.unwrap_or(standard.image_std),
            rescale_factor: stored.rescale_factor.unwrap_or(standard.rescale_factor),
        };
        refuse_switched_off(stored)?;
        config.check()?;
        Ok(config)
    }

    fn check(&self) -> Result<(), String> {
        for (key, value) in [
            ("patch_size", self.patch_size),
            ("temporal_patch_size", self.temporal_patch_size),
            ("merge_size", self.merge_size),
        ] {
            if !(1..=256).contains(&value) {
                return Err(format!("{key} is {value}, must be between 1 and 256"));
            }
        }
        if self.max_pixels == 0 || self.min_pixels > self.max_pixels {
            return Err(format!(
                "min_pixels {} and max_pixels {} leave no size",
                self.min_pixels, self.max_pixels
            ));
        }
        if self.image_std.contains(&0.0) || self.rescale_factor == 0.0 {
            return Err("image_std and rescale_factor must not be 0".to_owned());
        }
        Ok(())
    }

    /// The settings as `preprocessor_config.json` has them.
    pub fn to_json(&self) -> Value {
        json!({
            "image_processor_type": "Qwen2VLImageProcessor",
            "processor_class": "Qwen2_5_VLProcessor",
            "do_convert_rgb": true,
            "do_normalize": true,
            "do_rescale": true,
            "do_resize": true,
            "image_mean": self.image_mean,
            "image_std": self.image_std,
            "max_pixels": self.max_pixels,
            "merge_size": self.merge_size,
            "min_pixels": self.min_pixels,
            "patch_size": self.patch_size,
            "resample": BICUBIC,
            "rescale_factor": self.rescale_factor,
            "size": { "shortest_edge": self.min_pixels, "longest_edge": self.max_pixels },
            "temporal_patch_size": self.temporal_patch_size,
        })
    }

    /// Side in pixels of the square that becomes one token.
    pub fn factor(&self) -> u32 {
        self.patch_size * self.merge_size
    }

    /// Numbers in one patch: channels, frames, rows, columns.
    pub fn patch_dim(&self) -> usize {
        3 * self.temporal_patch_size as usize * (self.patch_size as usize).pow(2)
    }

    /// Normalized value of every byte in every channel, `[3, 256]`. Rescaling is folded into
    /// mean and deviation in float32, as the reference does.
    fn lookup(&self) -> [[f32; 256]; 3] {
        let scale = (1.0 / self.rescale_factor) as f32;
        std::array::from_fn(|channel| {
            let mean = self.image_mean[channel] * scale;
            let std = self.image_std[channel] * scale;
            std::array::from_fn(|byte| (byte as f32 - mean) / std)
        })
    }
}

fn refuse_switched_off(stored: &StoredConfig) -> Result<(), String> {
    for (key, value) in [
        ("do_resize", stored.do_resize),
        ("do_rescale", stored.do_rescale),
        ("do_normalize", stored.do_normalize),
    ] {
        if value == Some(false) {
            return Err(format!("{key} is false, only true is supported"));
        }
    }
    match stored.resample {
        None | Some(BICUBIC) => Ok(()),
        Some(other) => Err(format!(
            "resample is {other}, only {BICUBIC} (bicubic) is supported"
        )),
    }
}

/// What the vision tower takes for one picture.
#[derive(Clone, Debug, PartialEq)]
pub struct PixelValues {
    /// Patches in time, down and across.
    pub grid_thw: [i64; 3],
    /// `[patches, patch_dim]`, normalized; patches in merge order: the `merge_size` square of
    /// one token together, tokens row by row. Within a patch: channel, frame, row, column.
    pub values: Vec<f32>,
}

/// The size at which the model sees a picture of `size` pixels.
pub fn model_size(size: ScreenSize, config: &ProcessorConfig) -> Result<ScreenSize, ScreenError> {
    let (height, width) = smart_resize(
        size.height,
        size.width,
        config.factor(),
        config.min_pixels,
        config.max_pixels,
    )?;
    Ok(ScreenSize { width, height })
}

/// How many tokens a picture of `size` pixels takes in the prompt.
pub fn image_tokens(size: ScreenSize, config: &ProcessorConfig) -> Result<usize, ScreenError> {
    let seen = model_size(size, config)?;
    let factor = config.factor() as usize;
    Ok((seen.height as usize / factor) * (seen.width as usize / factor))
}

/// Resizes, normalizes and cuts a screenshot into patches.
pub fn preprocess(
    screenshot: &Screenshot,
    config: &ProcessorConfig,
) -> Result<PixelValues, ScreenError> {
    let size = model_size(screenshot.size(), config)?;
    if size == screenshot.size() {
        Ok(patchify(screenshot.rgb(), size, config))
    } else {
        Ok(patchify(&resize_bicubic(screenshot, size)?, size, config))
    }
}

/// Cuts `rgb`, `[height, width, 3]` with sides divisible by the factor, into patches.
fn patchify(rgb: &[u8], size: ScreenSize, config: &ProcessorConfig) -> PixelValues {
    let patch = config.patch_size as usize;
    let merge = config.merge_size as usize;
    let (down, across) = (size.height as usize / patch, size.width as usize / patch);
    let lookup = config.lookup();
    let mut values = vec![0.0; down * across * config.patch_dim()];
    let mut patches = values.chunks_exact_mut(config.patch_dim());
    for token_row in 0..down / merge {
        for token_col in 0..across / merge {
            for within in 0..merge * merge {
                let row = token_row * merge + within / merge;
                let col = token_col * merge + within % merge;
                let start = (row * patch * size.width as usize + col * patch) * 3;
                let Some(out) = patches.next() else { break };
                fill_patch(out, &rgb[start..], size.width as usize * 3, config, &lookup);
            }
        }
    }
    PixelValues {
        grid_thw: [1, down as i64, across as i64],
        values,
    }
}

/// Writes one patch, `[channel, frame, row, column]`, from the picture's bytes that start at
/// its upper left corner; `stride` is the bytes of a picture's row.
fn fill_patch(
    out: &mut [f32],
    rgb: &[u8],
    stride: usize,
    config: &ProcessorConfig,
    lookup: &[[f32; 256]; 3],
) {
    let patch = config.patch_size as usize;
    let frame_len = patch * patch;
    let channel_len = frame_len * config.temporal_patch_size as usize;
    for (channel, out) in out.chunks_exact_mut(channel_len).enumerate() {
        let table = &lookup[channel];
        let (first, others) = out.split_at_mut(frame_len);
        for (row, out) in first.chunks_exact_mut(patch).enumerate() {
            let bytes = &rgb[row * stride..row * stride + patch * 3];
            for (value, pixel) in out.iter_mut().zip(bytes.chunks_exact(3)) {
                *value = table[pixel[channel] as usize];
            }
        }
        for other in others.chunks_exact_mut(frame_len) {
            other.copy_from_slice(first);
        }
    }
}
