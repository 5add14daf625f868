//! The machines under desktops.

use super::{MachineView, RunState};
use crate::types::{ImageHash, MachineHealth, MachinePhase, MachineStatus};

impl RunState {
    pub(super) fn machine_changed(&mut self, desktop: u32, status: &MachineStatus, at_ms: u64) {
        let Some(state) = self.desktop_mut(desktop) else {
            return;
        };
        let is_new = state.machine.is_none();
        let machine = state.machine.get_or_insert_default();
        // A boot that gets on is one and the same wait; to end is not to have been closed before.
        let was = &machine.status;
        let ended = status.phase == MachinePhase::Off && was.detail != status.detail;
        if is_new || ended || was.phase != status.phase {
            machine.since_ms = at_ms;
        }
        if status.phase == MachinePhase::Off {
            machine.health = None;
        }
        machine.status = status.clone();
    }

    pub(super) fn machine_measured(&mut self, desktop: u32, health: &MachineHealth, at_ms: u64) {
        if let Some(machine) = self.machine_mut(desktop) {
            let before = machine.health.take().unwrap_or_default();
            // What is known of episodes alone is not told by who has just started it.
            machine.health = Some(MachineHealth {
                act_ms: health.act_ms.or(before.act_ms),
                baseline_ms: health.baseline_ms.or(before.baseline_ms),
                ..health.clone()
            });
            machine.health_ms = at_ms;
        }
    }

    pub(super) fn machine_seen(&mut self, desktop: u32, image: &ImageHash, at_ms: u64) {
        if let Some(state) = self.desktop_mut(desktop) {
            state.image = Some(image.clone());
            state.image_ms = at_ms;
            state.machine.get_or_insert_default().seen_from_outside = true;
        }
    }

    fn machine_mut(&mut self, desktop: u32) -> Option<&mut MachineView> {
        let state = self.desktop_mut(desktop)?;
        Some(state.machine.get_or_insert_default())
    }
}
