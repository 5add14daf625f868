//! Whether this machine has room for so many real desktops, told before they are opened.
//!
//! Looks at what is free now, and knows nothing of what others start meanwhile.

use std::fs;
use std::io;

use crate::config::{AdmissionMode, FleetConfig};

/// Memory that is asked for beyond what machines were measured to take: work makes them grow.
const HEADROOM: f64 = 1.3;

/// How many times more machines than cores suggest are opened without a word.
const CROWD: f64 = 2.0;

/// What one machine of a provider takes of this host; zeros where that is unknown, and not asked.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MachineNeed {
    /// Memory at work.
    pub memory_mb: u64,
    /// Memory of the idle one that waits in its stead, if one does.
    pub spare_mb: u64,
    /// The share of a core that one keeps busy: 0.5 suggests two a core.
    pub cores: f64,
}

/// What this host has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host {
    /// Cores that this process may use.
    pub cores: usize,
    /// Memory that can be had without swapping.
    pub available_mb: u64,
}

/// What comes of asking for desktops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admitted {
    /// There is room.
    Fits,
    /// They are opened, though, as this says, there may be too little of something.
    Warned(String),
    /// They are not opened: why, and how many would be.
    Refused(String),
}

/// Who admits the desktops of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Admission {
    /// What one takes.
    pub need: MachineNeed,
    /// The most that there can be in this run, where that is known.
    pub most: Option<u32>,
    /// What is done if there is no room.
    pub mode: AdmissionMode,
    /// Memory that is left to everything else.
    pub reserve_mb: u64,
}

impl Admission {
    /// Of machines that take so much, as a profile wants it.
    pub fn of(need: MachineNeed, config: &FleetConfig) -> Self {
        Self {
            need,
            most: None,
            mode: config.admission,
            reserve_mb: config.memory_reserve_mb,
        }
    }

    /// Why this run cannot have so many, however much is free.
    pub fn beyond(&self, wanted: u32) -> Option<String> {
        let most = self.most.filter(|most| wanted > *most)?;
        Some(format!(
            "env.desktops = {wanted} is more than this run has: {most} machines; name more, set \
             env.desktops higher and start it anew"
        ))
    }

    /// Asks for `wanted` desktops, `open` of which are there already.
    pub fn ask(&self, open: u32, wanted: u32) -> Admitted {
        if self.mode == AdmissionMode::Off || wanted <= open {
            return Admitted::Fits;
        }
        match Host::read() {
            Ok(host) => self.weigh(host, open, wanted),
            Err(error) => {
                tracing::warn!(%error, "nobody can say how much memory is free");
                Admitted::Fits
            }
        }
    }

    /// As `ask`, on this host.
    pub fn weigh(&self, host: Host, open: u32, wanted: u32) -> Admitted {
        let each_mb = (self.need.memory_mb + self.need.spare_mb) as f64 * HEADROOM;
        let free_mb = host.available_mb.saturating_sub(self.reserve_mb);
        let more = wanted.saturating_sub(open);
        if self.mode == AdmissionMode::Off || more == 0 {
            return Admitted::Fits;
        }
        if f64::from(more) * each_mb > free_mb as f64 {
            let largest = open + (free_mb as f64 / each_mb) as u32;
            let says = self.no_room(wanted, largest, each_mb, free_mb);
            return match self.mode {
                AdmissionMode::Warn => Admitted::Warned(says),
                AdmissionMode::Refuse | AdmissionMode::Off => Admitted::Refused(says),
            };
        }
        let busy = f64::from(wanted) * self.need.cores;
        if busy > CROWD * host.cores as f64 {
            let suggested = (host.cores as f64 / self.need.cores).max(1.0) as u32;
            return Admitted::Warned(format!(
                "env.desktops = {wanted} is many for {} cores: each keeps about {} of one busy, so \
                 that all will be slow; {suggested} are suggested",
                host.cores, self.need.cores
            ));
        }
        Admitted::Fits
    }

    fn no_room(&self, wanted: u32, largest: u32, each_mb: f64, free_mb: u64) -> String {
        let remedy = match largest {
            0 => "not even one fits: free some memory".to_owned(),
            _ => format!("set env.desktops to {largest} at most"),
        };
        let anyway = match self.mode {
            AdmissionMode::Refuse => ", or env.fleet.admission to \"warn\" to try all the same",
            AdmissionMode::Warn | AdmissionMode::Off => "",
        };
        format!(
            "env.desktops = {wanted} wants {each_mb:.0} MB of memory a desktop, and {free_mb} MB are \
             free beside env.fleet.memory_reserve_mb = {}; {remedy}{anyway}",
            self.reserve_mb
        )
    }
}

impl Host {
    /// This one, now.
    pub fn read() -> io::Result<Self> {
        let meminfo = fs::read_to_string("/proc/meminfo")?;
        let available_mb = available_mb(&meminfo).ok_or_else(|| {
            let says = "/proc/meminfo has no MemAvailable";
            io::Error::new(io::ErrorKind::InvalidData, says)
        })?;
        Ok(Self {
            cores: cores(),
            available_mb,
        })
    }
}

/// Cores that this process may use.
pub(super) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// `MemAvailable` of /proc/meminfo, which counts in kB.
fn available_mb(meminfo: &str) -> Option<u64> {
    let mut lines = meminfo.lines();
    let said = lines.find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kilobytes = said.split_whitespace().next()?;
    Some(kilobytes.parse::<u64>().ok()? / 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    const XVFB: MachineNeed = MachineNeed {
        memory_mb: 300,
        spare_mb: 100,
        cores: 0.125,
    };
    const QEMU: MachineNeed = MachineNeed {
        memory_mb: 1000,
        spare_mb: 1000,
        cores: 0.5,
    };

    #[test]
    fn desktops_are_admitted_by_memory_and_told_of_by_cores() {
        use AdmissionMode::{Off, Refuse, Warn};
        // need, mode, free MB, open, wanted, what is said ("" fits; "-" refuses, "!" warns).
        let table: [(MachineNeed, AdmissionMode, u64, u32, u32, &str); 16] = [
            (XVFB, Refuse, 8_000, 0, 8, ""),
            (
                XVFB,
                Refuse,
                5_183,
                0,
                8,
                "-set env.desktops to 7 at most, or",
            ),
            (XVFB, Refuse, 5_184, 0, 8, ""),
            // Those that are open have what they need.
            (XVFB, Refuse, 2_100, 6, 8, ""),
            (XVFB, Refuse, 2_000, 6, 8, "-set env.desktops to 7 at most"),
            (XVFB, Refuse, 1_100, 6, 8, "-set env.desktops to 6 at most"),
            (XVFB, Refuse, 0, 8, 8, ""),
            (XVFB, Refuse, 0, 8, 2, ""),
            (XVFB, Refuse, 1_200, 0, 1, "-not even one fits"),
            (
                XVFB,
                Warn,
                1_200,
                0,
                1,
                "!not even one fits: free some memory",
            ),
            (XVFB, Off, 0, 0, 4096, ""),
            (MachineNeed::default(), Refuse, 0, 0, 4096, ""),
            (QEMU, Refuse, 24_000, 0, 8, ""),
            (QEMU, Refuse, 60_000, 0, 9, "!9 is many for 2 cores"),
            (QEMU, Refuse, 60_000, 0, 9, "!4 are suggested"),
            (QEMU, Refuse, 24_000, 0, 9, "-set env.desktops to 8 at most"),
        ];
        for (need, mode, available_mb, open, wanted, expected) in table {
            let admission = Admission {
                need,
                most: None,
                mode,
                reserve_mb: 1_024,
            };
            let host = Host {
                cores: 2,
                available_mb,
            };
            let told = match admission.weigh(host, open, wanted) {
                Admitted::Fits => String::new(),
                Admitted::Warned(says) => format!("!{says}"),
                Admitted::Refused(says) => format!("-{says}"),
            };
            let case = format!("{need:?} {mode:?} {available_mb} {open} {wanted}: {told}");
            let (kind, says) = expected.split_at(expected.len().min(1));
            assert_eq!(told.get(..1).unwrap_or_default(), kind, "{case}");
            assert!(told.contains(says), "{case}");
            assert!(
                told.is_empty() || told.contains("env.desktops = "),
                "{case}"
            );
        }
    }

    #[test]
    fn more_machines_than_there_are_cannot_be_had_whatever_is_free() {
        // The most, wanted, whether that is too many.
        let table = [
            (None, 4096, false),
            (Some(2), 1, false),
            (Some(2), 2, false),
            (Some(2), 3, true),
            (Some(0), 1, true),
        ];
        for (most, wanted, is_beyond) in table {
            let admission = Admission {
                need: MachineNeed::default(),
                most,
                mode: AdmissionMode::Off,
                reserve_mb: 0,
            };
            let says = admission.beyond(wanted);
            assert_eq!(says.is_some(), is_beyond, "{most:?} {wanted}: {says:?}");
            let said = says.unwrap_or_default();
            assert!(!is_beyond || said.starts_with("env.desktops = "), "{said}");
        }
    }

    #[test]
    fn free_memory_is_read_where_it_is_told() {
        let table = [
            ("MemTotal: 9 kB\nMemAvailable:    2097152 kB\n", Some(2048)),
            ("MemTotal: 9 kB\n", None),
            ("MemAvailable: many kB\n", None),
            ("MemAvailable:", None),
        ];
        for (meminfo, expected) in table {
            assert_eq!(available_mb(meminfo), expected, "{meminfo}");
        }
    }
}
