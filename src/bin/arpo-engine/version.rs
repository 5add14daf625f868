//! `arpo-engine version`: what `arpo doctor` asks a built engine.

use std::process::ExitCode;

use serde_json::json;

/// Prints version, libtorch and device as one JSON object.
pub fn print() -> ExitCode {
    let device = if tch::Cuda::is_available() {
        "cuda"
    } else {
        "cpu"
    };
    arpo::cli::say(json!({
        "arpo": env!("CARGO_PKG_VERSION"),
        "torch": env!("ARPO_TORCH_VERSION"),
        "device": device,
        "gpus": tch::Cuda::device_count(),
    }));
    ExitCode::SUCCESS
}
