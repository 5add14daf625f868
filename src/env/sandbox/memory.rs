//! What the processes of a sandbox keep in memory, as the kernel counts it.

use std::fs;

/// Processes that are counted at most: a sandbox may be full of them.
const MAX_PROCESSES: usize = 4096;

/// Bytes that a process and all below it keep in memory, what several share counted in parts. None
/// where that cannot be read.
pub fn used_by(pid: u32) -> Option<u64> {
    let mut family = vec![pid];
    let mut next = 0;
    while next < family.len() && family.len() < MAX_PROCESSES {
        family.extend(children_of(family[next]));
        next += 1;
    }
    let kib: Vec<u64> = family.iter().filter_map(|pid| kib_of(*pid)).collect();
    (!kib.is_empty()).then(|| kib.iter().sum::<u64>() * 1024)
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
    use super::used_by;

    #[test]
    fn a_process_keeps_something_and_nobody_keeps_nothing() {
        let ours = used_by(std::process::id());
        assert!(ours.is_some_and(|bytes| bytes > 1 << 20), "{ours:?}");
        // The kernel gives no process this number.
        assert_eq!(used_by(u32::MAX), None);
    }
}
