//! `arpo-engine version`: what `arpo doctor` asks a built engine.

use std::process::ExitCode;

use serde_json::json;

use crate::device;

/// Prints version, libtorch and device as one JSON object.
pub fn print() -> ExitCode {
    let found = device::cuda();
    let (device, gpus) = match &found {
        Ok(_) => ("cuda", tch::Cuda::device_count()),
        Err(_) => ("cpu", 0),
    };
    arpo::cli::say(json!({
        "arpo": env!("CARGO_PKG_VERSION"),
        "torch": env!("ARPO_TORCH_VERSION"),
        "device": device,
        "gpus": gpus,
        "no_cuda": found.as_ref().err().map(ToString::to_string),
    }));
    ExitCode::SUCCESS
}
