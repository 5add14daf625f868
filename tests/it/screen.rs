//! Pixels against `transformers`: committed samples, and the live processor.

use arpo::screen::{ProcessorConfig, encode_png, preprocess};
use arpo::types::{ScreenSize, Screenshot};
use serde_json::{Value, json};

use crate::reference;

const SCRIPT: &str = "screen/reference.py";
const SAMPLES: &str = "screen/transformers.json";

/// One step of an 8-bit pixel: resampling in whole numbers may round the other way.
const TOLERANCE: f32 = 1.0 / 255.0;

/// About so many values of each picture are committed.
const NUM_SAMPLES: usize = 300;

/// Width, height, and the most pixels the model may see.
const CASES: [(u32, u32, u64); 7] = [
    (448, 336, 224 * 168),
    (224, 168, 224 * 168),
    (90, 62, 224 * 168),
    (20, 30, 224 * 168),
    (333, 517, 224 * 168),
    (640, 360, 1280 * 28 * 28),
    (1920, 1080, 2_116_800),
];

fn settings(max_pixels: u64) -> ProcessorConfig {
    ProcessorConfig {
        max_pixels,
        ..ProcessorConfig::default()
    }
}

/// A picture with noise, hard edges and slopes, the same on every machine.
fn picture(width: u32, height: u32) -> Screenshot {
    let mut rgb = Vec::new();
    let mut state = width * 7919 + height;
    for y in 0..height {
        for x in 0..width {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let noise = (state >> 24) as u8;
            let edges = if (x / 3 + y / 5) % 2 == 0 { 255 } else { 0 };
            let slope = ((x * 255) / width) as u8;
            rgb.extend([noise, edges, slope]);
        }
    }
    Screenshot::new(ScreenSize { width, height }, rgb)
}

/// One of so many values is committed; odd, to visit every corner of a patch.
fn stride(len: usize) -> usize {
    (len / NUM_SAMPLES) | 1
}

/// Largest difference of `ours` from `theirs` in [0, 1] pixel values, before normalization.
fn largest_difference(ours: &[f32], theirs: &[f32], config: &ProcessorConfig) -> f32 {
    let patch_dim = config.patch_dim();
    assert_eq!(ours.len(), theirs.len());
    let pairs = ours.iter().zip(theirs).enumerate();
    pairs.fold(0.0, |largest, (index, (a, b))| {
        let channel = index % patch_dim / (patch_dim / 3);
        largest.max((a - b).abs() * config.image_std[channel])
    })
}

#[test]
fn committed_samples_of_transformers_are_met() {
    let path = reference::fixtures().join(SAMPLES);
    let samples: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    for ((width, height, max_pixels), sample) in CASES.iter().zip(samples.as_array().unwrap()) {
        let config = settings(*max_pixels);
        let made = preprocess(&picture(*width, *height), &config).unwrap();
        assert_eq!(json!(made.grid_thw), sample["grid_thw"], "{width}x{height}");
        let theirs = sample["values"].as_array().unwrap();
        let stride = stride(made.values.len());
        let ours: Vec<f32> = made.values.iter().copied().step_by(stride).collect();
        assert_eq!(ours.len(), theirs.len(), "{width}x{height}");
        for (index, (a, b)) in ours.iter().zip(theirs).enumerate() {
            let channel = index * stride % config.patch_dim() / (config.patch_dim() / 3);
            let gap = (a - b.as_f64().unwrap() as f32).abs() * config.image_std[channel];
            assert!(gap <= TOLERANCE + 1e-5, "{width}x{height}[{index}]: {gap}");
        }
    }
}

#[test]
fn every_pixel_is_within_a_step_of_the_live_processor() {
    let dir = tempfile::tempdir().unwrap();
    let out = |index: usize| dir.path().join(format!("{index}.f32"));
    let questions: Vec<Value> = CASES
        .iter()
        .enumerate()
        .map(|(index, (width, height, max_pixels))| {
            let png = dir.path().join(format!("{index}.png"));
            std::fs::write(&png, encode_png(&picture(*width, *height)).unwrap()).unwrap();
            let settings = settings(*max_pixels).to_json();
            json!({"png": png, "settings": settings, "out": out(index)})
        })
        .collect();
    let Some(grids) = reference::run(SCRIPT, &json!(questions).to_string()) else {
        return;
    };
    let grids: Vec<[i64; 3]> = serde_json::from_str(&grids).unwrap();
    let mut samples = Vec::new();
    for (index, (width, height, max_pixels)) in CASES.iter().enumerate() {
        let config = settings(*max_pixels);
        let made = preprocess(&picture(*width, *height), &config).unwrap();
        let theirs: Vec<f32> = std::fs::read(out(index))
            .unwrap()
            .chunks_exact(4)
            .map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap()))
            .collect();
        let gap = largest_difference(&made.values, &theirs, &config);
        println!("{width}x{height}: within {:.2} of a step", gap * 255.0);
        assert_eq!(made.grid_thw, grids[index]);
        assert!(gap <= TOLERANCE + 1e-5, "{width}x{height}: {gap}");
        let stride = stride(theirs.len());
        let kept: Vec<f32> = theirs.iter().copied().step_by(stride).collect();
        samples.push(json!({"grid_thw": made.grid_thw, "values": kept}));
    }
    if reference::is_update() {
        let path = reference::fixtures().join(SAMPLES);
        std::fs::write(path, json!(samples).to_string() + "\n").unwrap();
    }
}
