//! What computes: the CPU, or a GPU whose half of libtorch is opened at run time.
//!
//! `libtorch_cuda` is never linked, so that the same executable starts where there is no GPU and
//! none of CUDA's libraries. It registers itself when it is opened; libtorch asks for it once, at
//! the first question about CUDA, so it must be open before that. Hence everybody asks here
//! instead of asking `tch::Cuda`.

mod sys;

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::OnceLock;

use arpo::config::DeviceChoice;
use tch::{Cuda, Device};

/// The NVIDIA driver's library.
const DRIVER: &str = "libcuda.so.1";
/// The part of libtorch that is linked.
const LINKED: &str = "libtorch_cpu.so";
/// The part that is opened, beside the linked one.
const OPENED: &str = "libtorch_cuda.so";

/// Why no GPU can compute: what was looked for, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoCuda {
    /// No driver.
    #[error("no NVIDIA driver: {reason}")]
    Driver {
        /// What the loader said.
        reason: String,
    },
    /// A libtorch for the CPU alone.
    #[error(
        "no libtorch_cuda.so in {}: this libtorch is for the CPU alone; `just setup` brings the \
         other",
        .folder.display()
    )]
    Library {
        /// Where it was looked for.
        folder: PathBuf,
    },
    /// CUDA's own libraries are missing or too old.
    #[error(
        "{} does not load: {reason}; `just setup` brings what it needs where nvidia-smi works",
        .path.display()
    )]
    Load {
        /// Which library.
        path: PathBuf,
        /// What the loader said.
        reason: String,
    },
    /// A driver, but nothing to drive.
    #[error("libtorch sees no GPU: look at nvidia-smi and CUDA_VISIBLE_DEVICES")]
    NoGpu,
}

/// The device of a profile's choice.
pub fn choose(choice: DeviceChoice) -> Result<Device, NoCuda> {
    match choice {
        DeviceChoice::Cpu => Ok(Device::Cpu),
        DeviceChoice::Cuda => cuda(),
        DeviceChoice::Auto => Ok(cuda().unwrap_or_else(|reason| {
            tracing::debug!(%reason, "computing on the CPU");
            Device::Cpu
        })),
    }
}

/// The first GPU, with libtorch ready to use it.
pub fn cuda() -> Result<Device, NoCuda> {
    static FOUND: OnceLock<Result<Device, NoCuda>> = OnceLock::new();
    FOUND.get_or_init(open_cuda).clone()
}

/// Lanes on a device: a GPU has one, since its kernels do in parallel what lanes do on cores.
pub fn num_lanes(device: Device, configured: usize) -> usize {
    match (device, configured) {
        (Device::Cpu, 0) => std::thread::available_parallelism().map_or(1, usize::from),
        (Device::Cpu, lanes) => lanes,
        (Device::Cuda(_) | Device::Mps | Device::Vulkan, _) => 1,
    }
}

fn open_cuda() -> Result<Device, NoCuda> {
    sys::open_library(DRIVER).map_err(|reason| NoCuda::Driver { reason })?;
    let folder = libtorch_folder();
    let path = folder.join(OPENED);
    if !path.is_file() {
        return Err(NoCuda::Library { folder });
    }
    sys::open_library(&path.to_string_lossy()).map_err(|reason| NoCuda::Load { path, reason })?;
    if Cuda::is_available() && 0 < Cuda::device_count() {
        Ok(Device::Cuda(0))
    } else {
        Err(NoCuda::NoGpu)
    }
}

/// Folder of the libtorch that this process runs with, as the kernel knows it.
fn libtorch_folder() -> PathBuf {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let paths = maps
        .lines()
        .filter_map(|line| Some(&line[line.find('/')?..]));
    let linked = paths.map(PathBuf::from).find(|path| path.ends_with(LINKED));
    let folder = linked.and_then(|path| Some(path.parent()?.to_owned()));
    folder.unwrap_or_default()
}
