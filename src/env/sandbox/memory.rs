//! What the processes of a sandbox keep in memory and take of processors, as the kernel counts it.

use std::fs;
use std::time::Duration;

/// Processes that are counted at most: a sandbox may be full of them.
const MAX_PROCESSES: usize = 4096;

/// Bytes that a process and all below it keep in memory, what several share counted in parts. None
/// where that cannot be read.
pub fn used_by(pid: u32) -> Option<u64> {
    let kib: Vec<u64> = family_of(pid)
        .iter()
        .filter_map(|pid| kib_of(*pid))
        .collect();
    (!kib.is_empty()).then(|| kib.iter().sum::<u64>() * 1024)
}

/// Processor time that a process and all below it have taken, those that ended there included. None
/// where that cannot be read.
pub fn cpu_of(pid: u32) -> Option<Duration> {
    let ticks: Vec<u64> = family_of(pid).into_iter().filter_map(ticks_of).collect();
    let seconds = ticks.iter().sum::<u64>() as f64 / rustix::param::clock_ticks_per_second() as f64;
    (!ticks.is_empty()).then(|| Duration::from_secs_f64(seconds))
}

/// A process and all below it.
fn family_of(pid: u32) -> Vec<u32> {
    let mut family = vec![pid];
    let mut next = 0;
    while next < family.len() && family.len() < MAX_PROCESSES {
        family.extend(children_of(family[next]));
        next += 1;
    }
    family
}

/// Ticks in user and system mode, of it and of children that it waited for.
fn ticks_of(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may contain anything.
    let (_, fields) = stat.rsplit_once(')')?;
    let ticks = fields.split_whitespace().skip(11).take(4);
    Some(ticks.filter_map(|ticks| ticks.parse::<u64>().ok()).sum())
}

fn children_of(pid: u32) -> Vec<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let numbers = text.split_whitespace();
    numbers.filter_map(|number| number.parse().ok()).collect()
}

/// Its share (PSS), KiB; where that is not for us to know, what it has in memory (RSS).
fn kib_of(pid: u32) -> Option<u64> {
    field(pid, "smaps_rollup", "Pss:").or_else(|| field(pid, "status", "VmRSS:"))
}

fn field(pid: u32, file: &str, name: &str) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/{file}")).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{cpu_of, used_by};

    #[test]
    fn a_process_keeps_something_and_nobody_keeps_nothing() {
        let ours = used_by(std::process::id());
        assert!(ours.is_some_and(|bytes| bytes > 1 << 20), "{ours:?}");
        // The kernel gives no process this number.
        assert_eq!(used_by(u32::MAX), None);
        assert!(cpu_of(std::process::id()).is_some());
        assert_eq!(cpu_of(u32::MAX), None);
    }
}
