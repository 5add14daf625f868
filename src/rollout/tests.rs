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

#[tokio::test]
async fn whoever_gives_up_waiting_neither_holds_others_back_nor_lets_them_through() {
    let barrier = barrier::Barrier::default();
    for _ in 0..3 {
        barrier.join();
    }
    {
        // An operator ends the first while it waits.
        let mut first = Box::pin(barrier.arrive());
        assert!(futures::poll!(&mut first).is_pending());
    }
    let mut second = Box::pin(barrier.arrive());
    let mut third = Box::pin(barrier.arrive());
    assert!(futures::poll!(&mut second).is_pending());
    assert!(futures::poll!(&mut third).is_pending());
    barrier.leave();
    assert!(futures::poll!(&mut second).is_ready());
    assert!(futures::poll!(&mut third).is_ready());
}

#[test]
fn the_first_who_ends_an_episode_decides_and_all_are_answered() {
    let fleet = Fleet::default();
    let id = |number| crate::types::EpisodeId {
        incarnation: 0,
        number,
    };
    let answers = Arc::new(std::sync::Mutex::new(Vec::new()));
    let answer = |name: &'static str| -> Answer {
        let answers = Arc::clone(&answers);
        Box::new(move |done| answers.lock().unwrap().push((name, done.is_ok())))
    };
    let mut seat = fleet.enter(id(1), 0, Some(3));
    fleet.end(id(2), Ending::Kill, answer("unknown"));
    fleet.end(id(1), Ending::Reroll, answer("reroll"));
    fleet.end_evaluation(3);
    fleet.reboot(0, answer("reboot"));
    let ending = futures::executor::block_on(seat.ended());
    assert_eq!(ending, Ending::Reroll);
    assert_eq!(*answers.lock().unwrap(), [("unknown", false)]);
    drop(seat);
    assert!(!fleet.is_running(id(1)));
    fleet.refuse_reboots(0, "the desktop is gone");
    let expected = [("unknown", false), ("reroll", true), ("reboot", false)];
    assert_eq!(*answers.lock().unwrap(), expected);
}
