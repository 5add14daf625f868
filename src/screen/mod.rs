//! Pixels: what a screenshot becomes for the model, for the disk and for people.
//!
//! Nothing here knows tensors: `preprocess` gives plain floats in the order that
//! `transformers`' `Qwen2VLImageProcessor` gives them, and whoever owns a model wraps them.
//! No colour management, no video: one frame, repeated `temporal_patch_size` times.
//!
//! Source: transformers@5.24 `models/qwen2_vl/image_processing_qwen2_vl.py`.

mod codec;
mod error;
mod marks;
mod processor;
mod scale;
mod smart_resize;

pub use codec::{decode_png, encode_png, encode_rgb};
pub use error::ScreenError;
pub use marks::{draw_action, draw_click, draw_drag};
pub use processor::{PixelValues, ProcessorConfig, image_tokens, model_size, preprocess};
pub use scale::{resize_bicubic, thumbnail};
pub use smart_resize::smart_resize;

#[cfg(test)]
mod tests;
