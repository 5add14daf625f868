//! The check of a GPU, on the CPU: equal weights agree to the last bit, and each kind of
//! difference is noticed.

use arpo::cli::wiring::{checkpoint_path, open_prompt};
use arpo::config::Resolved;
use tch::{Device, Kind};

use super::gpu_check::{Figure, compare};
use crate::model::checkpoint;

#[test]
fn equal_weights_pass_the_check_and_others_do_not() {
    let profile = Resolved::load::<&str>(&[], &[]).unwrap().profile;
    let prompt = open_prompt(&profile).unwrap();
    let weights = checkpoint::load(&checkpoint_path(&profile), Device::Cpu, Kind::Float).unwrap();
    let same = compare(&profile, &prompt, &weights, &weights.shallow_clone()).unwrap();
    let text: Vec<String> = same.iter().map(Figure::to_string).collect();
    assert!(same.iter().all(Figure::holds), "{text:#?}");
    assert!(
        text.iter().all(|line| line.contains(" 0.0e0 ")),
        "{text:#?}"
    );

    // A hundredth of one norm: nothing that would be seen in what the agent does.
    let bent = weights.map(|name, tensor| match name {
        "model.norm.weight" => tensor * 1.01,
        _ => tensor.shallow_clone(),
    });
    let other = compare(&profile, &prompt, &weights, &bent).unwrap();
    let text: Vec<String> = other.iter().map(Figure::to_string).collect();
    for what in ["loaded weights", "decoding:", "training: largest"] {
        let line = text.iter().find(|line| line.contains(what)).unwrap();
        assert!(line.starts_with("MISMATCH"), "{text:#?}");
    }
}
