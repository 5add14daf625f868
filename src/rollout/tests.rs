//! Virtual time and gates.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::config::Resolved;
use crate::policy::scripted::{Script, Scripted};
use crate::prompt::PromptBuilder;

#[test]
fn virtual_time_moves_only_when_told() {
    let clock = Clock::starting_at(Duration::from_millis(5));
    assert!(clock.is_virtual());
    assert_eq!(clock.now_ms(), 5);
    clock.advance_by(Duration::from_millis(7));
    assert_eq!(clock.now_ms(), 12);
    assert!(!clock.advance_to_next_timer());
}

#[tokio::test]
async fn a_shut_gate_stays_shut() {
    let (handle, gate) = GateHandle::new();
    assert!(gate.clone().pass().await);
    handle.set(GateState::Shut);
    handle.set(GateState::Open);
    assert_eq!(handle.state(), GateState::Shut);
    assert!(!gate.clone().pass().await);
}

/// A policy that nobody asks.
fn idle_policy() -> Scripted {
    let profile = Resolved::load::<&str>(&[], &[]).unwrap().profile;
    let agent = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/agent");
    let prompt = Arc::new(PromptBuilder::open(&agent).unwrap());
    Scripted::new(Script::Expert, prompt, profile.policy, profile.engine.cost)
}

#[tokio::test(flavor = "multi_thread")]
async fn more_steps_than_the_runtime_has_patience_for_come_to_an_end() {
    let (_handle, gate) = GateHandle::new();
    let clock = Clock::starting_at(Duration::ZERO);
    let passed = std::cell::Cell::new(0);
    let tasks = (0..64)
        .map(|_| {
            let (mut gate, clock, passed) = (gate.clone(), clock.clone(), &passed);
            Box::pin(async move {
                for _ in 0..100 {
                    assert!(gate.pass().await);
                    clock.pass(Duration::from_millis(1)).await;
                    passed.set(passed.get() + 1);
                }
            }) as _
        })
        .collect();
    executor::run(&clock, &idle_policy(), tasks).await;
    assert_eq!(passed.get(), 6400);
    assert_eq!(clock.now_ms(), 100);
}
