//! Whose a container is: labels that say which engine made it, and whether that engine is dead.
//!
//! A process is told by its host, the boot, the namespace that counts it, its number and its start;
//! where any of these cannot be compared from here, nobody here calls it dead. What nobody can judge
//! has a lease: its engine ends a container when that is over, so that any engine may remove it an
//! hour later.

use std::collections::HashMap;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::store::{LockHolder, started_ticks};

const RUN: &str = "arpo.run";
const HOST: &str = "arpo.host";
/// The label that every container of ours has.
pub(super) const PID: &str = "arpo.pid";
const STARTED: &str = "arpo.started";
const BOOT: &str = "arpo.boot";
const NAMESPACE: &str = "arpo.pidns";
const CREATED: &str = "arpo.created";
const LEASE: &str = "arpo.lease";
const DESKTOP: &str = "arpo.desktop";
const MACHINE: &str = "arpo.machine";

/// How far clocks may be apart, and how long an engine may take to end what its lease ends, seconds.
const GRACE_S: u64 = 3600;

/// An engine, as it can be told from here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Engine {
    holder: LockHolder,
    /// The namespace that its number counts in; empty where the kernel does not say.
    namespace: String,
}

impl Engine {
    /// This process.
    pub(super) fn this_process() -> Self {
        let namespace = std::fs::read_link("/proc/self/ns/pid");
        let namespace = namespace.map(|path| path.to_string_lossy().into_owned());
        Self {
            holder: LockHolder::this_process(),
            namespace: namespace.unwrap_or_default(),
        }
    }
}

/// What a container's labels say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) engine: Engine,
    /// Its run.
    pub(super) run: String,
    pub(super) desktop: u32,
    /// Which of the engine's machines, counted over all its runs.
    pub(super) machine: u64,
    /// Seconds since 1970.
    pub(super) created: u64,
    /// The same.
    pub(super) lease: u64,
}

/// What is to be done about a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Its engine lives.
    Alive,
    /// Its engine is dead.
    Dead,
    /// Its engine cannot be looked for from here.
    Elsewhere,
    /// Neither can it, but the lease is long over.
    Expired,
}

impl Owner {
    /// The labels that say so.
    pub(super) fn labels(&self) -> HashMap<String, String> {
        let Engine { holder, namespace } = &self.engine;
        let labels = [
            (RUN, self.run.clone()),
            (HOST, holder.host.clone()),
            (PID, holder.pid.to_string()),
            (STARTED, holder.started_ticks.to_string()),
            (BOOT, holder.boot.clone()),
            (NAMESPACE, namespace.clone()),
            (CREATED, self.created.to_string()),
            (LEASE, self.lease.to_string()),
            (DESKTOP, self.desktop.to_string()),
            (MACHINE, self.machine.to_string()),
        ];
        let labels = labels.into_iter();
        labels.map(|(key, value)| (key.to_owned(), value)).collect()
    }

    /// Labels, `key=value`, that no other machine's containers bear.
    pub(super) fn filters(&self) -> Vec<String> {
        let labels = self.labels();
        let keys = [HOST, PID, STARTED, BOOT, NAMESPACE, MACHINE];
        keys.iter()
            .map(|key| format!("{key}={}", labels[*key]))
            .collect()
    }

    /// What labels say; none where one is missing that decides, or cannot be read.
    pub(super) fn read(labels: &HashMap<String, String>) -> Option<Self> {
        let text = |key: &str| labels.get(key).cloned();
        let number = |key: &str| labels.get(key)?.parse::<u64>().ok();
        let holder = LockHolder {
            pid: number(PID)?.try_into().ok()?,
            started_ticks: number(STARTED)?,
            boot: text(BOOT)?,
            host: text(HOST)?,
        };
        Some(Self {
            engine: Engine {
                holder,
                namespace: text(NAMESPACE)?,
            },
            run: text(RUN)?,
            desktop: number(DESKTOP)?.try_into().ok()?,
            machine: number(MACHINE)?,
            created: number(CREATED)?,
            lease: number(LEASE)?,
        })
    }

    /// What is to be done about its container. `has_ended` is whether that has run and does not any
    /// more, `now` in seconds since 1970.
    pub(super) fn verdict(&self, here: &Engine, has_ended: bool, now: u64) -> Verdict {
        let (theirs, ours) = (&self.engine.holder, &here.holder);
        let is_comparable = theirs.host == ours.host
            && theirs.boot == ours.boot
            && self.engine.namespace == here.namespace;
        if is_comparable {
            return match started_ticks(theirs.pid) {
                Some(ticks) if ticks == theirs.started_ticks => Verdict::Alive,
                _ => Verdict::Dead,
            };
        }
        // A boot ends every container with every engine. One that runs was started in this boot, by
        // an engine of another machine with the same name.
        if theirs.host == ours.host && theirs.boot != ours.boot && has_ended {
            return Verdict::Dead;
        }
        if now > self.lease.saturating_add(GRACE_S) {
            return Verdict::Expired;
        }
        Verdict::Elsewhere
    }

    /// Who that is, for people.
    pub(super) fn describe(&self) -> String {
        let holder = &self.engine.holder;
        // Labels are anybody's to write.
        let text = format!(
            "desktop {} of run {}, engine {} on {}",
            self.desktop, self.run, holder.pid, holder.host
        );
        crate::env::lines::plain(text.as_bytes())
    }
}

/// Seconds since 1970.
pub(super) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::{Engine, GRACE_S, Owner, Verdict, now};

    fn owner(change: impl FnOnce(&mut Owner)) -> Owner {
        let mut owner = Owner {
            engine: Engine::this_process(),
            run: "2026-01-01-x-0001".to_owned(),
            desktop: 3,
            machine: 7,
            created: now(),
            lease: now() + 60,
        };
        change(&mut owner);
        owner
    }

    #[test]
    fn nobody_is_called_dead_who_cannot_be_looked_for() {
        let here = Engine::this_process();
        let past = now() - GRACE_S - 1;
        let other_boot = |it: &mut Owner| it.engine.holder.boot = "earlier".to_owned();
        let other_host = |it: &mut Owner| it.engine.holder.host = "elsewhere".to_owned();
        let reused = |it: &mut Owner| it.engine.holder.started_ticks += 1;
        let table = [
            ("this process", owner(|_| {}), false, Verdict::Alive),
            (
                "alive beyond its lease: its own to end",
                owner(|it| it.lease = past),
                true,
                Verdict::Alive,
            ),
            ("a number used again", owner(reused), false, Verdict::Dead),
            (
                "a number of nobody",
                // Above the most that the kernel gives.
                owner(|it| it.engine.holder.pid = 1 << 23),
                false,
                Verdict::Dead,
            ),
            ("an earlier boot", owner(other_boot), true, Verdict::Dead),
            (
                "another boot, running: a machine of the same name",
                owner(other_boot),
                false,
                Verdict::Elsewhere,
            ),
            ("another host", owner(other_host), true, Verdict::Elsewhere),
            (
                "another host, its lease just over",
                owner(|it| {
                    other_host(it);
                    it.lease = now() - 1;
                }),
                true,
                Verdict::Elsewhere,
            ),
            (
                "another host, its lease long over",
                owner(|it| {
                    other_host(it);
                    it.lease = past;
                }),
                false,
                Verdict::Expired,
            ),
            (
                "a container of this host, with numbers of its own",
                owner(|it| it.engine.namespace = "pid:[1]".to_owned()),
                false,
                Verdict::Elsewhere,
            ),
        ];
        for (what, owner, has_ended, expected) in table {
            assert_eq!(owner.verdict(&here, has_ended, now()), expected, "{what}");
        }
    }

    #[test]
    fn labels_say_all_or_nothing() {
        let owner = owner(|_| {});
        let labels = owner.labels();
        assert_eq!(Owner::read(&labels), Some(owner));
        for key in labels.keys() {
            let mut lacking = labels.clone();
            lacking.remove(key);
            assert_eq!(Owner::read(&lacking), None, "without {key}");
        }
        for (key, bad) in [("arpo.pid", "-1"), ("arpo.pid", "1 "), ("arpo.lease", "")] {
            let mut wrong = labels.clone();
            wrong.insert(key.to_owned(), bad.to_owned());
            assert_eq!(Owner::read(&wrong), None, "{key}={bad}");
        }
    }
}
