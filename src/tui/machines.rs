//! What is said of the machines under desktops: how each stands, in as many words as there is
//! room for, and what the fleet's come to. Pure: from `RunState`, without ratatui.
//!
//! A desktop without a machine of its own, as simulated ones, is never spoken of here.

use crate::event::{MachineView, RunState};
use crate::tui::figures;
use crate::tui::text::{fit_words, one_line, width};
use crate::tui::theme::Role;
use crate::types::{LayerStatus, MachineHealth, MachinePhase, MachineStatus};

/// The layers of a machine from the lowest. One may lack some.
const LAYERS: [&str; 6] = ["machine", "control", "tcp", "http", "display", "execute"];
/// A picture older than this is no longer what the screen shows, ms.
const STALE_MS: u64 = 10_000;
/// What passes sooner, as a revert from a snapshot, is not worth a place in the header, ms.
const BRIEF_MS: u64 = 5_000;
/// Actions so many times as slow as they were at first are worth a warning.
const SLOW_FACTOR: f64 = 1.5;

/// How a machine stands, the gravest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// It was given up: quarantined, or ended with a reason.
    Fault,
    /// It should have got on by now.
    Overdue,
    /// It does not answer.
    Suspect,
    /// It is on its way.
    Busy,
    /// There is nothing to wait for.
    Quiet,
}

impl Standing {
    /// How that looks.
    pub fn role(self) -> Role {
        match self {
            Self::Fault => Role::Danger,
            Self::Overdue | Self::Suspect => Role::Warning,
            Self::Busy => Role::Running,
            Self::Quiet => Role::Muted,
        }
    }
}

/// How a machine stands at `now_ms` of the run.
pub fn standing(machine: &MachineView, now_ms: u64) -> Standing {
    let status = &machine.status;
    match status.phase {
        MachinePhase::Quarantined => Standing::Fault,
        MachinePhase::Off if !status.detail.is_empty() => Standing::Fault,
        MachinePhase::Off | MachinePhase::Ready | MachinePhase::Frozen => Standing::Quiet,
        _ if overdue_ms(machine, now_ms) > 0 => Standing::Overdue,
        MachinePhase::Suspect => Standing::Suspect,
        MachinePhase::Queued
        | MachinePhase::Preparing
        | MachinePhase::Starting
        | MachinePhase::Booting
        | MachinePhase::Restoring
        | MachinePhase::Checking
        | MachinePhase::Stopping => Standing::Busy,
    }
}

/// How long it has stood where it stands, ms.
pub fn stood_ms(machine: &MachineView, now_ms: u64) -> u64 {
    now_ms.saturating_sub(machine.since_ms)
}

/// How far it is beyond the longest it may stay there, ms.
fn overdue_ms(machine: &MachineView, now_ms: u64) -> u64 {
    let limit_ms = machine.status.limit_ms.unwrap_or(u64::MAX);
    stood_ms(machine, now_ms).saturating_sub(limit_ms)
}

/// The part of its limit that is over, where it has one and will not stay.
pub fn part_over(machine: &MachineView, now_ms: u64) -> Option<f64> {
    let limit_ms = machine.status.limit_ms.filter(|limit| *limit > 0)?;
    let phase = machine.status.phase;
    if phase.is_settled() || phase == MachinePhase::Quarantined {
        return None;
    }
    Some((stood_ms(machine, now_ms) as f64 / limit_ms as f64).min(1.0))
}

/// A phase, one word.
pub fn phase(phase: MachinePhase) -> &'static str {
    match phase {
        MachinePhase::Off => "off",
        MachinePhase::Queued => "queued",
        MachinePhase::Preparing => "preparing",
        MachinePhase::Starting => "starting",
        MachinePhase::Booting => "booting",
        MachinePhase::Restoring => "restoring",
        MachinePhase::Checking => "checking",
        MachinePhase::Ready => "ready",
        MachinePhase::Frozen => "frozen",
        MachinePhase::Suspect => "suspect",
        MachinePhase::Stopping => "stopping",
        MachinePhase::Quarantined => "quarantined",
    }
}

/// One word; a machine that is off for a reason ended by itself, or could not start.
fn phase_or_ended(status: &MachineStatus) -> &'static str {
    match status.phase {
        MachinePhase::Off if !status.detail.is_empty() => "ended",
        other => phase(other),
    }
}

/// Whether a phase's detail says why it is so, rather than how far it is.
fn tells_why(phase: MachinePhase) -> bool {
    matches!(
        phase,
        MachinePhase::Off
            | MachinePhase::Queued
            | MachinePhase::Suspect
            | MachinePhase::Quarantined
    )
}

/// How a machine stands, in words, the longest form first: `booting · kernel 6s of 120s, then
/// killed, try 2 of 3`, down to one word. `reason_cells` is the room for a reason.
fn forms(machine: &MachineView, now_ms: u64, reason_cells: usize) -> Vec<String> {
    let status = &machine.status;
    let standing = standing(machine, now_ms);
    let word = phase_or_ended(status);
    let stood = stood_ms(machine, now_ms);
    let time = match (standing, status.limit_ms) {
        (Standing::Overdue, _) => {
            format!("{} overdue", figures::age(overdue_ms(machine, now_ms)))
        }
        (Standing::Quiet, _) | (_, None) => figures::age(stood),
        // How long it is left alone.
        (_, Some(limit_ms)) => figures::of_limit(stood.min(limit_ms), limit_ms),
    };
    let detail = fit_words(&status.detail, reason_cells);
    let then = one_line(&status.then);
    let why = tells_why(status.phase);
    if why && detail.ends_with('…') {
        return vec![format!("{word} · {detail}"), word.to_owned()];
    }
    let mut all = Vec::new();
    let timed = match (detail.is_empty(), why) {
        (true, _) => format!("{word} {time}"),
        (false, true) => format!("{word} · {detail}, {time}"),
        (false, false) => format!("{word} · {detail} {time}"),
    };
    if !then.is_empty() && standing != Standing::Quiet {
        all.push(format!("{timed}, then {then}"));
    }
    all.push(timed);
    if why && !detail.is_empty() {
        all.push(format!("{word} · {detail}"));
    } else {
        all.push(format!("{word} {time}"));
    }
    all.push(word.to_owned());
    all
}

/// How a machine stands, in the longest form that fits into `cells`; a reason that does not fit is
/// cut between words.
pub fn words(machine: &MachineView, now_ms: u64, cells: usize) -> String {
    let word_cells = width(phase_or_ended(&machine.status)) + 3;
    let reason_cells = if tells_why(machine.status.phase) {
        cells.saturating_sub(word_cells)
    } else {
        cells
    };
    crate::tui::text::first_fit(&forms(machine, now_ms, reason_cells), cells)
}

/// The same in full.
pub fn all_words(machine: &MachineView, now_ms: u64) -> String {
    words(machine, now_ms, usize::MAX)
}

/// What is told of a change where nothing else is shown: `desktop 3: booting · kernel, at most
/// 120s, then killed, try 2 of 3`.
pub fn change(desktop: u32, status: &MachineStatus) -> String {
    let detail = one_line(&status.detail);
    let word = phase_or_ended(status);
    let mut text = format!("desktop {desktop}: {word}");
    if !detail.is_empty() {
        text = format!("{text} · {detail}");
    }
    if let Some(limit_ms) = status.limit_ms {
        let limit = figures::of_limit(0, limit_ms);
        let limit = limit.rsplit(' ').next().unwrap_or_default();
        text = format!("{text}, at most {limit}");
    }
    let then = one_line(&status.then);
    if then.is_empty() {
        text
    } else {
        format!("{text}, then {then}")
    }
}

/// What is known of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayerMark {
    /// It answered.
    Up,
    /// It is waited for.
    Awaited,
    /// It does not work.
    Broken,
    /// Nobody asked: one below it does not work.
    NotAsked,
}

impl LayerMark {
    /// One character, or in ASCII a word.
    pub fn sign(self, ascii: bool) -> &'static str {
        match (self, ascii) {
            (Self::Up, false) => "✓",
            (Self::Awaited, false) => "…",
            (Self::Broken, false) => "✗",
            (Self::NotAsked, false) => "–",
            (Self::Up, true) => "ok",
            (Self::Awaited, true) => "..",
            (Self::Broken, true) => "FAILS",
            (Self::NotAsked, true) => "-",
        }
    }

    /// How that looks.
    pub fn role(self) -> Role {
        match self {
            Self::Up => Role::Good,
            Self::Awaited => Role::Running,
            Self::Broken => Role::Danger,
            Self::NotAsked => Role::Muted,
        }
    }
}

/// A layer's name, what is known of it, and how long it took to answer where it did, ms.
pub type Layer = (String, LayerMark, Option<u64>);

/// The layers of a machine from the lowest, as they were last asked; of one that is on its way only
/// what was asked since.
pub fn layers(machine: &MachineView) -> Vec<Layer> {
    let is_waited_for = !machine.status.phase.is_settled()
        && !matches!(
            machine.status.phase,
            MachinePhase::Suspect | MachinePhase::Quarantined
        );
    // What was before it was started says nothing of it now.
    let is_new = !is_waited_for || machine.health_ms >= machine.since_ms;
    let health = machine.health.iter().filter(|_| is_new);
    let asked = health.flat_map(|health| &health.layers);
    let mark = |layer: &LayerStatus| match (layer.is_up(), is_waited_for) {
        (true, _) => LayerMark::Up,
        (false, true) => LayerMark::Awaited,
        (false, false) => LayerMark::Broken,
    };
    let mut all: Vec<Layer> = asked
        .map(|layer| {
            let took_ms = layer.is_up().then_some(layer.took_ms);
            (one_line(&layer.layer), mark(layer), took_ms)
        })
        .collect();
    let Some((last, known, _)) = all.last() else {
        return all;
    };
    let place = LAYERS.iter().position(|name| name == last);
    let is_whole = *known == LayerMark::Up && !is_waited_for;
    if let (Some(place), false) = (place, is_whole) {
        let mut next = if *known == LayerMark::Up {
            LayerMark::Awaited
        } else {
            LayerMark::NotAsked
        };
        for name in &LAYERS[place + 1..] {
            all.push(((*name).to_owned(), next, None));
            next = LayerMark::NotAsked;
        }
    }
    all
}

/// What does not work, and why: `http: connection refused`.
pub fn broken(machine: &MachineView) -> Option<String> {
    let broken = machine.health.as_ref()?.broken()?;
    let (layer, error) = (one_line(&broken.layer), one_line(&broken.error));
    Some(format!("{layer}: {error}"))
}

/// Kind, memory and reverts, the longest form first; none where nothing was measured.
pub fn health_forms(health: &MachineHealth) -> Vec<String> {
    let mut parts = Vec::new();
    if !health.kind.is_empty() {
        parts.push(one_line(&health.kind));
    }
    if let Some(memory_mb) = health.memory_mb {
        parts.push(match memory_mb {
            0..10_000 => format!("{memory_mb} MB"),
            _ => format!("{} GB", memory_mb / 1000),
        });
    }
    let short = parts.clone();
    let count = match health.reverts {
        0 => String::new(),
        1 => "1 revert".to_owned(),
        many => format!("{} reverts", figures::count(many)),
    };
    let last = health.revert_ms.map(figures::duration);
    let (long, middle) = match (count.is_empty(), last) {
        (true, None) => (None, None),
        (false, None) => (Some(count.clone()), Some(count)),
        (true, Some(last)) => (Some(format!("reverted in {last}")), None),
        (false, Some(last)) => (Some(format!("{count}, last {last}")), Some(count)),
    };
    let join = |more: Option<String>| {
        let all: Vec<String> = short.iter().cloned().chain(more).collect();
        all.join("  ")
    };
    let mut forms = vec![join(long), join(middle), join(None)];
    forms.dedup();
    forms.retain(|form| !form.is_empty());
    forms
}

/// What actions take and what they took at first, and how old all that is: the longest form first.
/// With them whether they have become slow.
pub fn act_forms(machine: &MachineView, now_ms: u64) -> (Vec<String>, bool) {
    let Some(health) = &machine.health else {
        return (Vec::new(), false);
    };
    let age = figures::age(now_ms.saturating_sub(machine.health_ms));
    let measured = format!("measured {age} ago");
    let Some(act_ms) = health.act_ms else {
        return (vec![measured], false);
    };
    let acts = figures::duration(act_ms);
    let Some(usual_ms) = health.baseline_ms else {
        return (vec![format!("{acts}  {measured}"), acts], false);
    };
    let is_slow = act_ms as f64 > usual_ms as f64 * SLOW_FACTOR;
    let both = format!("{acts}, usual {}", figures::duration(usual_ms));
    (
        vec![
            format!("{both}  {measured}"),
            format!("{both}  {age} ago"),
            both,
            acts,
        ],
        is_slow,
    )
}

/// What must be known of the newest picture of a desktop: its age where the screen may show
/// something else by now, and that it was taken past its server. The longest form first, none
/// where there is nothing to say.
pub fn picture_forms(run: &RunState, desktop: u32, now_ms: u64) -> Vec<String> {
    let Some(desktop) = run.desktops.get(desktop as usize) else {
        return Vec::new();
    };
    let (Some(machine), Some(_)) = (&desktop.machine, &desktop.image) else {
        return Vec::new();
    };
    let age_ms = now_ms.saturating_sub(desktop.image_ms);
    // The screen of one that is frozen changes as little as it does itself.
    let may_change = matches!(
        machine.status.phase,
        MachinePhase::Ready | MachinePhase::Suspect
    );
    let old = (may_change && age_ms > STALE_MS).then(|| format!("{} old", figures::age(age_ms)));
    // One that is well is seen so while its task is set up, which is no news.
    let is_news = machine.seen_from_outside && machine.status.phase != MachinePhase::Ready;
    let forms: &[&str] = if is_news {
        &["from outside", "outside"]
    } else {
        &[]
    };
    let forms = forms.iter().map(|from| match &old {
        Some(old) => format!("{old}, {from}"),
        None => (*from).to_owned(),
    });
    forms.chain(old.clone()).collect()
}

/// Machines of the run that have something to say: their desktops' numbers with them.
fn machines(run: &RunState) -> impl Iterator<Item = (usize, &MachineView)> {
    let known = run.desktops.iter().enumerate();
    known.filter_map(|(number, desktop)| Some((number, desktop.machine.as_ref()?)))
}

/// Whether any desktop of the run has a machine of its own.
pub fn has_machines(run: &RunState) -> bool {
    machines(run).next().is_some()
}

/// What the fleet's machines come to while not all are up: `3/4 up, 1 booting`, the longest form
/// first, and how that looks. None while there is nothing to wait for.
pub fn fleet_forms(run: &RunState, now_ms: u64) -> Option<(Vec<String>, Role)> {
    let is_wanted = |machine: &&MachineView| {
        let status = &machine.status;
        status.phase != MachinePhase::Off || !status.detail.is_empty()
    };
    let wanted: Vec<(usize, &MachineView)> = machines(run)
        .filter(|(_, machine)| is_wanted(machine))
        .collect();
    let gravest = wanted.iter().map(|(_, one)| standing(one, now_ms)).min()?;
    let is_brief = wanted.iter().all(|(_, one)| {
        standing(one, now_ms) == Standing::Quiet || stood_ms(one, now_ms) < BRIEF_MS
    });
    let is_well = gravest == Standing::Quiet || gravest == Standing::Busy && is_brief;
    if is_well || run.is_over() {
        return None;
    }
    let up = wanted.iter().filter(|(_, one)| one.status.phase.is_up());
    let up = format!("{}/{} up", up.count(), wanted.len());
    let count = |is_so: &dyn Fn(&MachineView) -> bool| {
        wanted.iter().filter(|(_, machine)| is_so(machine)).count()
    };
    let mut parts = Vec::new();
    let ended = count(&|one| {
        one.status.phase == MachinePhase::Off && standing(one, now_ms) == Standing::Fault
    });
    let phases = [
        MachinePhase::Quarantined,
        MachinePhase::Suspect,
        MachinePhase::Booting,
        MachinePhase::Starting,
        MachinePhase::Restoring,
        MachinePhase::Checking,
        MachinePhase::Preparing,
        MachinePhase::Queued,
        MachinePhase::Stopping,
    ];
    let counts = phases.map(|known| (phase(known), count(&|one| one.status.phase == known)));
    for (word, count) in std::iter::once(("ended", ended)).chain(counts) {
        if count > 0 {
            parts.push(format!("{count} {word}"));
        }
    }
    let overdue = wanted
        .iter()
        .filter(|(_, one)| standing(one, now_ms) == Standing::Overdue)
        .max_by_key(|(_, one)| overdue_ms(one, now_ms));
    let overdue = overdue.map(|(number, one)| {
        let late = figures::age(overdue_ms(one, now_ms));
        format!("d{number:02} {late} overdue")
    });
    let first = parts.first().cloned();
    let mut forms = Vec::new();
    let joined = |parts: &mut dyn Iterator<Item = String>| {
        let parts: Vec<String> = std::iter::once(up.clone()).chain(parts).collect();
        parts.join(", ")
    };
    forms.push(joined(&mut parts.into_iter().chain(overdue.clone())));
    match overdue {
        Some(overdue) => {
            let fault = first.filter(|_| gravest == Standing::Fault);
            forms.push(joined(&mut fault.into_iter().chain([overdue.clone()])));
            forms.push(joined(&mut std::iter::once(overdue)));
        }
        None => forms.push(joined(&mut first.into_iter())),
    }
    forms.push(up);
    forms.dedup();
    Some((forms, gravest.role()))
}

/// What the machines of some desktops come to, for their row's note.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MachineNote {
    /// How the gravest of them stands.
    pub standing: Standing,
    /// In which phase it is.
    pub phase: MachinePhase,
    /// How many are so.
    pub count: usize,
    /// How long the one that is longest overdue is, ms; 0 where none is.
    pub overdue_ms: u64,
}

impl MachineNote {
    /// Of some machines; none where there is nothing to say.
    pub fn of<'a>(
        machines: impl Iterator<Item = &'a MachineView> + Clone,
        now_ms: u64,
    ) -> Option<Self> {
        let gravest = machines.clone().map(|one| standing(one, now_ms)).min()?;
        let alike = machines.filter(|one| standing(one, now_ms) == gravest);
        let is_frozen = |one: &&MachineView| one.status.phase == MachinePhase::Frozen;
        let alike: Vec<&MachineView> = if gravest == Standing::Quiet {
            alike.filter(is_frozen).collect()
        } else {
            alike.collect()
        };
        // The one that has stood longest speaks for those that stand alike.
        let speaks = alike.iter().max_by_key(|one| stood_ms(one, now_ms))?;
        let phase = speaks.status.phase;
        let in_it = alike.iter().filter(|one| one.status.phase == phase);
        let overdue = alike.iter().map(|one| overdue_ms(one, now_ms)).max();
        Some(Self {
            standing: gravest,
            phase,
            count: in_it.count(),
            overdue_ms: overdue.unwrap_or(0),
        })
    }

    /// In few words, the longest form first: `booting 2`, `quarantined 1`, `frozen 3`.
    pub fn forms(&self) -> Vec<String> {
        let count = self.count;
        let late = figures::age(self.overdue_ms);
        let short = match (self.standing, self.phase) {
            (Standing::Overdue, _) => {
                return vec![
                    format!("overdue {late}"),
                    format!("late {late}"),
                    "late".to_owned(),
                ];
            }
            (Standing::Fault, MachinePhase::Off) => return vec![format!("ended {count}")],
            (_, MachinePhase::Quarantined) => "quar",
            (_, MachinePhase::Suspect) => "susp",
            (_, MachinePhase::Restoring) => "rest",
            (_, MachinePhase::Starting) => "start",
            (_, MachinePhase::Booting) => "boot",
            (_, MachinePhase::Checking) => "check",
            (_, MachinePhase::Preparing) => "prep",
            (_, MachinePhase::Stopping) => "stop",
            (_, MachinePhase::Queued) => "queue",
            (_, MachinePhase::Frozen | MachinePhase::Ready | MachinePhase::Off) => {
                phase(self.phase)
            }
        };
        vec![
            format!("{} {count}", phase(self.phase)),
            format!("{short} {count}"),
            short.to_owned(),
        ]
    }
}
