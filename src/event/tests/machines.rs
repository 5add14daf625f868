//! Machines under desktops, as events tell of them.

use serde_json::{Value, json};

use super::kinds::*;
use crate::event::*;
use crate::types::{LayerStatus, MachineHealth, MachinePhase, MachineStatus};

fn changed(desktop: u32, phase: MachinePhase, detail: &str) -> EventKind {
    EventKind::MachineChanged {
        desktop,
        status: MachineStatus {
            phase,
            limit_ms: Some(120_000),
            then: "killed, try 2 of 3".to_owned(),
            detail: detail.to_owned(),
        },
    }
}

fn health() -> MachineHealth {
    let layer = |layer: &str, error: &str| LayerStatus {
        layer: layer.to_owned(),
        took_ms: 3,
        error: error.to_owned(),
    };
    MachineHealth {
        layers: vec![layer("machine", ""), layer("control", "no answer")],
        kind: "tcg".to_owned(),
        memory_mb: Some(812),
        act_ms: Some(180),
        baseline_ms: Some(120),
        revert_ms: Some(2_140),
        reverts: 3,
    }
}

pub(super) fn kinds() -> Vec<EventKind> {
    vec![
        changed(1, MachinePhase::Booting, "kernel"),
        EventKind::MachineMeasured {
            desktop: 1,
            health: health(),
        },
        EventKind::MachineSeen {
            desktop: 1,
            image: image('e'),
        },
    ]
}

/// What a machine's view must be after events: the phase, since when, the detail, of when the
/// health is, whether the picture is from outside and of when.
type Expected = (MachinePhase, u64, &'static str, Option<u64>, bool, u64);

#[test]
fn a_machine_is_followed_from_boot_to_quarantine() {
    use MachinePhase::{Booting, Off, Quarantined, Ready, Suspect};
    let observed = || EventKind::ObservationTaken {
        episode: id(1),
        step: 0,
        image: image('a'),
    };
    let measured = || EventKind::MachineMeasured {
        desktop: 0,
        health: health(),
    };
    let seen = || EventKind::MachineSeen {
        desktop: 0,
        image: image('b'),
    };
    let script: Vec<(EventKind, Expected)> = vec![
        (
            changed(0, Booting, "kernel"),
            (Booting, 10, "kernel", None, false, 0),
        ),
        // A boot that gets on is the same wait.
        (
            changed(0, Booting, "session"),
            (Booting, 10, "session", None, false, 0),
        ),
        (changed(0, Ready, ""), (Ready, 30, "", None, false, 0)),
        (measured(), (Ready, 30, "", Some(40), false, 0)),
        (
            episode_started(1, None, 0, 0),
            (Ready, 30, "", Some(40), false, 0),
        ),
        (observed(), (Ready, 30, "", Some(40), false, 60)),
        (
            changed(0, Suspect, "http"),
            (Suspect, 70, "http", Some(40), false, 60),
        ),
        (seen(), (Suspect, 70, "http", Some(40), true, 80)),
        // Its server answers again.
        (observed(), (Suspect, 70, "http", Some(40), false, 90)),
        // A new machine has another health.
        (changed(0, Off, ""), (Off, 100, "", None, false, 90)),
        // It ended by itself, which is another thing than to be off.
        (
            changed(0, Off, "QEMU ended"),
            (Off, 110, "QEMU ended", None, false, 90),
        ),
        (
            changed(0, Quarantined, "disk"),
            (Quarantined, 120, "disk", None, false, 90),
        ),
        (seen(), (Quarantined, 120, "disk", None, true, 130)),
        // What the next episode finds is not what was seen before.
        (
            episode_started(2, None, 0, 0),
            (Quarantined, 120, "disk", None, false, 130),
        ),
    ];
    let (told, expected): (Vec<_>, Vec<_>) = script.into_iter().unzip();
    let mut events = numbered(std::iter::once(run_started()).chain(told)).into_iter();
    let mut state = RunState::default();
    state.apply(&events.next().unwrap());
    for (event, expected) in events.zip(expected) {
        state.apply(&event);
        let desktop = &state.desktops[0];
        let machine = desktop.machine.as_ref().unwrap();
        let found = (
            machine.status.phase,
            machine.since_ms,
            machine.status.detail.as_str(),
            machine.health.as_ref().map(|_| machine.health_ms),
            machine.seen_from_outside,
            desktop.image_ms,
        );
        assert_eq!(found, expected, "{event:?}");
    }
    // Another start of the engine has other machines.
    let resumed = EventKind::RunResumed {
        from_iteration: Iteration(0),
        discard_from_seq: 14,
        incarnation: 1,
    };
    state.apply(&Event {
        seq: 14,
        at_ms: 500,
        kind: resumed,
    });
    assert_eq!(state.desktops[0].machine, None);
    // A number that no run can have makes no desktops.
    state.apply(&Event {
        seq: 15,
        at_ms: 510,
        kind: changed(u32::MAX, Booting, ""),
    });
    assert_eq!(state.desktops.len(), 2);
}

#[test]
fn machines_are_read_by_older_and_newer_consoles() {
    let events = numbered(std::iter::once(run_started()).chain(kinds()));
    let state = RunState::from_events(&events);
    let mut value: Value = serde_json::to_value(&state).unwrap();
    let machine = &mut value["desktops"][1]["machine"];
    assert_eq!(machine["status"]["phase"], "booting");
    // What a newer engine adds is ignored.
    for part in ["/status", "/health", "/health/layers/0", ""] {
        let part = machine.pointer_mut(part).unwrap();
        part["added_later"] = json!({"deep": 1});
    }
    let back: RunState = serde_json::from_value(value.clone()).unwrap();
    assert_eq!(back, state);
    // An older engine says nothing of machines and pictures' times.
    for desktop in value["desktops"].as_array_mut().unwrap() {
        let desktop = desktop.as_object_mut().unwrap();
        desktop.remove("machine");
        desktop.remove("image_ms");
    }
    let older: RunState = serde_json::from_value(value).unwrap();
    assert!(older.desktops.iter().all(|one| one.machine.is_none()));
    // Parts that may be absent are.
    let bare = json!({"seq": 1, "at_ms": 2, "type": "machine_changed", "desktop": 0,
        "status": {"phase": "ready"}});
    let event: Event = serde_json::from_value(bare.clone()).unwrap();
    assert_eq!(serde_json::to_value(&event).unwrap(), bare);
}
