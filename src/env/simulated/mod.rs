//! Simulated desktops: windows and applications drawn to real pixels in this process.
//!
//! `Desktop` is the synchronous core: made from a task, driven by actions, rendered to a
//! screenshot, asked for its state. Invariants: a desktop is a function of its task and the
//! actions applied to it, its picture is a function of its state, and neither draws at random
//! nor reads a clock. No action, however odd, panics.
//!
//! Everything is laid out on cells of 28 logical pixels, the area of one image token of the
//! model, and drawn without anti-aliasing (source: the shipped agent's base recipe, which
//! measured twice the grounding accuracy for layouts on the patch grid).

mod app;
mod canvas;
mod desktop;
mod environment;
pub mod expert;
mod goal;
mod icons;
mod input;
mod law;
mod plan;
mod shell;
pub mod suite;
mod theme;
mod widget;

#[cfg(test)]
mod tests;

pub use desktop::{Desktop, DesktopError, Fact, Target};
pub use environment::Simulated;
pub use goal::Goal;

/// Fingerprint of what a checkpoint trained on this renderer has seen: blake3 over pictures of
/// the first instances of every family the base agent is cloned on, as they begin and after
/// each of the expert's actions. It changes with any pixel, layout, word or task.
pub fn renderer_hash() -> String {
    let mut hasher = blake3::Hasher::new();
    let trained = suite::families(suite::Suite::Compact);
    for family in trained.iter().filter(|family| family.trained) {
        for instance in 0..2 {
            let task = family.task(suite::Suite::Compact, instance);
            hasher.update(task.instruction.as_bytes());
            let Ok(mut desktop) = Desktop::from_task(&task) else {
                continue;
            };
            for _ in 0..family.steps {
                hasher.update(desktop.render().hash().0.as_bytes());
                let step = expert::next(&desktop, &task);
                hasher.update(step.thought.as_bytes());
                desktop.apply(&step.action);
            }
        }
    }
    hasher.finalize().to_hex()[..32].to_owned()
}
