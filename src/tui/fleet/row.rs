//! Rows of the fleet: groups of the running iteration, or desktops.

use crate::event::{DesktopPhase, DesktopState, EpisodeState, GroupState, MachineView, RunState};
use crate::tui::machines::{MachineNote, Standing};
use crate::types::{GroupId, TaskId};

use super::FleetUi;
use super::cell::{Cell, CellKind, of_episode, of_machine, of_member};
use super::order::Attention;

/// Desktops in a row where there are no groups.
const DESKTOPS_A_ROW: usize = 8;
/// A step counts as stuck after so many times the usual length.
const STUCK_FACTOR: u64 = 3;
/// And not before so long: short steps vary more.
const STUCK_MIN_MS: u64 = 10_000;

/// What a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowKey {
    /// A group.
    Group(GroupId),
    /// Desktops from this number on.
    Desktops(u32),
}

impl RowKey {
    /// Its number within the fleet, the same in every iteration.
    pub fn number(self) -> u32 {
        match self {
            RowKey::Group(group) => group.index,
            RowKey::Desktops(first) => first,
        }
    }
}

/// What a group comes to.
#[derive(Clone, Debug, PartialEq)]
pub enum Note {
    /// Nothing to say yet.
    Running,
    /// Outcomes differ: the group trains.
    Signal,
    /// Members replaced by stored successes.
    Replayed(usize),
    /// All failed: no gradient.
    AllFail,
    /// All succeeded: no gradient.
    AllPass,
    /// So far all failed, and some are still at work.
    Failing,
    /// So many samples wait for a decision.
    Held(usize),
    /// A sample has not moved for this long.
    Stuck(u64),
    /// Errors ended this many samples.
    Faults(usize),
    /// Machines of its desktops are so.
    Machines(MachineNote),
}

/// One row.
#[derive(Clone, Debug, PartialEq)]
pub struct FleetRow {
    /// What it is.
    pub key: RowKey,
    /// The task, or what the desktops do.
    pub task: TaskId,
    /// Its instruction, empty for desktops.
    pub instruction: String,
    /// Its samples.
    pub cells: Vec<Cell>,
    /// Mean outcome of those scored.
    pub mean: Option<f64>,
    /// Sample standard deviation of outcomes: the group's own once all are in, else of those
    /// scored so far.
    pub std: Option<f64>,
    /// What it comes to.
    pub note: Note,
    /// How much it needs a look.
    pub attention: Attention,
    /// When it was last heard of, `at_ms`.
    pub heard_ms: u64,
    /// How long the sample at work that moved least recently has stood, ms.
    pub longest_ms: Option<u64>,
    /// Median of what desktops took for an action in its samples, ms of the run's clock.
    pub latency_ms: Option<u64>,
}

impl FleetRow {
    /// Whether all its samples are in and none differs: it has no gradient.
    pub fn is_dead(&self) -> bool {
        matches!(self.note, Note::AllFail | Note::AllPass)
    }
}

/// All rows by number.
pub fn rows(run: &RunState, fleet: &FleetUi, now_ms: u64) -> Vec<FleetRow> {
    let stuck_after_ms =
        step_median_ms(run).map_or(u64::MAX, |median| (STUCK_FACTOR * median).max(STUCK_MIN_MS));
    let iteration = run.iteration;
    let groups: Vec<_> = iteration
        .into_iter()
        .flat_map(|it| run.groups_of(it))
        .collect();
    if fleet.by_desktop || groups.is_empty() || runs_without_group(run) {
        return desktop_rows(run, stuck_after_ms, now_ms);
    }
    groups
        .into_iter()
        .map(|group| group_row(run, group, stuck_after_ms, now_ms))
        .collect()
}

/// Whether an evaluation keeps the desktops busy.
fn runs_without_group(run: &RunState) -> bool {
    run.episodes
        .values()
        .rev()
        .any(|episode| episode.is_running() && episode.group.is_none())
}

/// Median time between two screenshots of the same episode, ms of wall time.
pub fn step_median_ms(run: &RunState) -> Option<u64> {
    let mut times: Vec<u64> = run
        .episodes
        .values()
        .rev()
        .take(64)
        .flat_map(|episode| episode.steps.windows(2))
        .map(|pair| pair[1].observed_ms.saturating_sub(pair[0].observed_ms))
        .collect();
    if times.is_empty() {
        return None;
    }
    let middle = times.len() / 2;
    Some(*times.select_nth_unstable(middle).1)
}

fn group_row(run: &RunState, group: &GroupState, stuck_after_ms: u64, now_ms: u64) -> FleetRow {
    let cells: Vec<Cell> = (0..group.members.len())
        .map(|place| of_member(run, group, place, stuck_after_ms, now_ms))
        .collect();
    let outcomes = outcomes(run, &cells);
    let std = group
        .std
        .map_or_else(|| sample_std(&outcomes), |std| Some(std.0));
    let note = match held_note(&cells).or_else(|| machine_trouble(run, &cells, now_ms)) {
        Some(note) => note,
        None => group_note(group, &cells, &outcomes, now_ms),
    };
    FleetRow {
        key: RowKey::Group(group.id),
        task: group.task.clone(),
        instruction: group.instruction.clone(),
        mean: mean(&outcomes),
        std: std.filter(|std| std.is_finite()),
        attention: Attention::of(&note, &cells),
        heard_ms: last_heard(run, &cells, group.started_ms),
        longest_ms: longest_stand(&cells, now_ms),
        latency_ms: action_median_ms(run, &cells),
        note,
        cells,
    }
}

fn group_note(group: &GroupState, cells: &[Cell], outcomes: &[f64], now_ms: u64) -> Note {
    let faults = cells
        .iter()
        .filter(|cell| cell.kind == CellKind::Fault)
        .count();
    let stuck = cells
        .iter()
        .filter(|cell| matches!(cell.kind, CellKind::Stuck(_)));
    let longest = stuck.map(|cell| now_ms.saturating_sub(cell.since_ms)).max();
    let all_in = group.outcomes.is_some();
    if !group.injected.is_empty() {
        Note::Replayed(group.injected.len())
    } else if let Some(longest) = longest {
        Note::Stuck(longest)
    } else if all_in && outcomes.len() > 1 && outcomes.iter().all(|o| *o == outcomes[0]) {
        if outcomes[0] > 0.5 {
            Note::AllPass
        } else {
            Note::AllFail
        }
    } else if faults > 0 {
        Note::Faults(faults)
    } else if all_in {
        Note::Signal
    } else if outcomes.len() > 1 && outcomes.iter().all(|o| *o <= 0.0) {
        Note::Failing
    } else {
        Note::Running
    }
}

/// What is wrong with the machines that a group's samples are at work on.
fn machine_trouble(run: &RunState, cells: &[Cell], now_ms: u64) -> Option<Note> {
    let machine = |cell: &Cell| -> Option<&MachineView> {
        let episode = run.episodes.get(&cell.episode?)?;
        let desktop = run.desktops.get(episode.desktop as usize)?;
        let is_on_it = episode.is_running() && desktop.episode == cell.episode;
        desktop.machine.as_ref().filter(|_| is_on_it)
    };
    let note = MachineNote::of(cells.iter().filter_map(machine), now_ms)?;
    (note.standing <= Standing::Suspect).then_some(Note::Machines(note))
}

fn held_note(cells: &[Cell]) -> Option<Note> {
    let held = cells
        .iter()
        .filter(|cell| matches!(cell.kind, CellKind::Held(_)));
    let count = held.count();
    (count > 0).then_some(Note::Held(count))
}

fn desktop_rows(run: &RunState, stuck_after_ms: u64, now_ms: u64) -> Vec<FleetRow> {
    run.desktops
        .chunks(DESKTOPS_A_ROW)
        .enumerate()
        .map(|(chunk, desktops)| {
            let first = (chunk * DESKTOPS_A_ROW) as u32;
            desktop_row(run, first, desktops, stuck_after_ms, now_ms)
        })
        .collect()
}

fn desktop_row(
    run: &RunState,
    first: u32,
    desktops: &[DesktopState],
    stuck_after_ms: u64,
    now_ms: u64,
) -> FleetRow {
    let cells: Vec<Cell> = desktops
        .iter()
        .map(|desktop| {
            let episode = desktop.episode.and_then(|id| run.episodes.get(&id));
            let is_at_work = episode.is_some_and(EpisodeState::is_running);
            let machine = of_machine(desktop, now_ms).filter(|_| !is_at_work);
            match (machine, episode) {
                (Some(machine), _) => machine,
                (None, Some(episode))
                    if desktop.phase != DesktopPhase::Idle || episode.ended_ms.is_some() =>
                {
                    of_episode(run, episode, stuck_after_ms, now_ms)
                }
                (None, _) => Cell {
                    episode: None,
                    kind: CellKind::Waiting,
                    since_ms: desktop.since_ms,
                },
            }
        })
        .collect();
    let outcomes = outcomes(run, &cells);
    let faults = cells
        .iter()
        .filter(|cell| cell.kind == CellKind::Fault)
        .count();
    let machines = desktops
        .iter()
        .filter_map(|desktop| desktop.machine.as_ref());
    let machines = MachineNote::of(machines, now_ms);
    let is_trouble = machines.is_some_and(|note| note.standing <= Standing::Suspect);
    let note = match (held_note(&cells), machines) {
        (Some(held), _) => held,
        (None, Some(machines)) if is_trouble || faults == 0 => Note::Machines(machines),
        (None, _) if faults > 0 => Note::Faults(faults),
        (None, _) => Note::Running,
    };
    let last = first as usize + desktops.len() - 1;
    FleetRow {
        key: RowKey::Desktops(first),
        task: TaskId(format!("desktops {first}-{last}")),
        instruction: String::new(),
        mean: mean(&outcomes),
        std: None,
        attention: Attention::of(&note, &cells),
        heard_ms: last_heard(run, &cells, 0),
        longest_ms: longest_stand(&cells, now_ms),
        latency_ms: action_median_ms(run, &cells),
        note,
        cells,
    }
}

fn longest_stand(cells: &[Cell], now_ms: u64) -> Option<u64> {
    let at_work = cells.iter().filter(|cell| cell.is_at_work());
    at_work
        .map(|cell| now_ms.saturating_sub(cell.since_ms))
        .max()
}

fn action_median_ms(run: &RunState, cells: &[Cell]) -> Option<u64> {
    let episodes = cells
        .iter()
        .filter_map(|cell| run.episodes.get(&cell.episode?));
    let steps = episodes.flat_map(|episode| &episode.steps);
    let mut times: Vec<u64> = steps
        .filter(|step| step.finished && step.malformed.is_none())
        .map(|step| step.act_ms)
        .collect();
    if times.is_empty() {
        return None;
    }
    let middle = times.len() / 2;
    Some(*times.select_nth_unstable(middle).1)
}

fn outcomes(run: &RunState, cells: &[Cell]) -> Vec<f64> {
    cells
        .iter()
        .filter_map(|cell| cell.outcome(run))
        .map(f64::from)
        .collect()
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Sample standard deviation (n - 1); absent below two values.
fn sample_std(values: &[f64]) -> Option<f64> {
    let center = mean(values).filter(|_| values.len() > 1)?;
    let squares: f64 = values.iter().map(|value| (value - center).powi(2)).sum();
    Some((squares / (values.len() - 1) as f64).sqrt())
}

fn last_heard(run: &RunState, cells: &[Cell], floor_ms: u64) -> u64 {
    let of_cell = |cell: &Cell| {
        let episode = run.episodes.get(&cell.episode?)?;
        let observed = episode.steps.last().map_or(0, |step| step.observed_ms);
        Some(observed.max(cell.since_ms))
    };
    cells
        .iter()
        .filter_map(of_cell)
        .max()
        .unwrap_or(0)
        .max(floor_ms)
}
