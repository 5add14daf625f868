//! How a machine under a desktop is, below anything that an episode does on it.

use serde::{Deserialize, Serialize};

/// Where a machine stands between nothing and a desktop that answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MachinePhase {
    /// It was never started, or was closed.
    #[default]
    Off,
    /// It waits for its turn to start, or for memory.
    Queued,
    /// What it begins from is being made: a snapshot, a template.
    Preparing,
    /// Its program or container starts, and does not answer for itself yet.
    Starting,
    /// Its own system starts.
    Booting,
    /// It is brought back from a snapshot.
    Restoring,
    /// It runs, and its layers are asked one by one.
    Checking,
    /// It answers.
    Ready,
    /// It is stopped while the policy thinks.
    Frozen,
    /// It did not answer, and is asked again.
    Suspect,
    /// It is being ended.
    Stopping,
    /// It failed too often, and is left alone for a while, or until it is rebooted.
    Quarantined,
}

impl MachinePhase {
    /// Whether an episode can run on it.
    pub fn is_up(self) -> bool {
        matches!(self, Self::Ready | Self::Frozen)
    }

    /// Whether it stays as it is until somebody asks for something.
    pub fn is_settled(self) -> bool {
        matches!(self, Self::Off | Self::Ready | Self::Frozen)
    }
}

/// A machine's phase, how long that may take, and what happens then.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MachineStatus {
    /// Where it stands.
    pub phase: MachinePhase,
    /// Longest it may stay there, ms; absent where it may stay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_ms: Option<u64>,
    /// What happens when that is over, in a few words: «killed, try 2 of 3».
    #[serde(skip_serializing_if = "String::is_empty")]
    pub then: String,
    /// How far it is, or why it stands there, in one line: «kernel», «disk full».
    #[serde(skip_serializing_if = "String::is_empty")]
    pub detail: String,
}

/// A layer of a machine, each on top of the one before: machine, control, tcp, http, display,
/// execute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayerStatus {
    /// Its name.
    pub layer: String,
    /// How long it took to answer, ms.
    pub took_ms: u64,
    /// Why it does not work; empty where it does.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub error: String,
}

impl LayerStatus {
    /// Whether it works.
    pub fn is_up(&self) -> bool {
        self.error.is_empty()
    }
}

/// What was measured of a machine between two episodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MachineHealth {
    /// Its layers from the lowest; ends with the first that does not work.
    pub layers: Vec<LayerStatus>,
    /// Its kind in a word or two, where there are several: «kvm», «tcg», «container».
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Its own memory on the host, MB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_mb: Option<u64>,
    /// Median time of an action in its newest episodes, ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub act_ms: Option<u64>,
    /// The same in its first ones, which the newest are compared with, ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline_ms: Option<u64>,
    /// How long its last revert took, ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revert_ms: Option<u64>,
    /// Reverts so far.
    pub reverts: u64,
}

impl MachineHealth {
    /// The lowest layer that does not work.
    pub fn broken(&self) -> Option<&LayerStatus> {
        self.layers.iter().find(|layer| !layer.is_up())
    }
}
