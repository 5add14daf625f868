//! Choosing a device where there is no GPU, and what is said then. Where there is one, `just
//! gpu-check` computes on it.

use arpo::config::DeviceChoice;
use tch::Device;

use super::{NoCuda, choose, cuda, libtorch_folder, num_lanes, sys};

#[test]
fn the_cpu_is_always_there_and_auto_finds_something() {
    assert_eq!(choose(DeviceChoice::Cpu), Ok(Device::Cpu));
    let auto = choose(DeviceChoice::Auto);
    assert_eq!(auto, Ok(cuda().unwrap_or(Device::Cpu)));
    assert_eq!(choose(DeviceChoice::Cuda), cuda());
}

#[test]
fn the_loader_says_what_it_missed() {
    let reason = sys::open_library("libarpo-does-not-exist.so.1").unwrap_err();
    assert!(reason.contains("libarpo-does-not-exist.so.1"), "{reason}");
    let told = NoCuda::Driver { reason }.to_string();
    assert!(told.starts_with("no NVIDIA driver: libarpo"), "{told}");
    assert!(sys::open_library("no\0name").is_err());
    // What is open already opens again.
    sys::open_library("libc.so.6").unwrap();
}

#[test]
fn libtorch_is_found_where_it_was_loaded_from() {
    assert!(libtorch_folder().join("libtorch_cpu.so").is_file());
}

#[test]
fn a_gpu_has_one_lane() {
    assert_eq!(num_lanes(Device::Cuda(0), 8), 1);
    assert_eq!(num_lanes(Device::Cpu, 8), 8);
    assert!(0 < num_lanes(Device::Cpu, 0));
}
