//! The network: Qwen2.5-VL as in `transformers`.
