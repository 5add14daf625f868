//! Virtual time and gates.

use std::time::Duration;

use super::*;

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
