//! One sample in the matrix: what it is doing, in four characters.

use crate::event::{DesktopPhase, DesktopState, EpisodeState, GroupState, RunState, TrainerState};
use crate::tui::figures;
use crate::tui::machines::{Standing, standing};
use crate::types::{EpisodeEnd, EpisodeId};

/// What a sample is doing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CellKind {
    /// Nothing yet.
    Waiting,
    /// Its desktop is being prepared.
    Booting,
    /// Its desktop's machine should be up by now.
    Overdue,
    /// At this step, from 1.
    Running(u32),
    /// At this step, and the run is paused.
    Paused(u32),
    /// At this step, and it waits for an operator's decision.
    Held(u32),
    /// At this step, and for too long.
    Stuck(u32),
    /// Its end state is judged.
    Scoring,
    /// Scored; the outcome.
    Done(f32),
    /// Scored, and the last reply did not parse; the outcome.
    Malformed(f32),
    /// Ended by an error.
    Fault,
    /// A stored success took its place; its reward, once known.
    Replayed(Option<f32>),
}

/// One sample.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Its episode, once there is one.
    pub episode: Option<EpisodeId>,
    /// What it is doing.
    pub kind: CellKind,
    /// Since when, `at_ms`.
    pub since_ms: u64,
}

impl Cell {
    /// Its code, at most four cells: `b`, `b!`, `r07`, `P07`, `H07`, `!07`, `v`, `D1.0`, `F.00`, `X!`, `~1.0`.
    pub fn code(&self) -> String {
        match self.kind {
            CellKind::Waiting => "·".to_owned(),
            CellKind::Booting => "b".to_owned(),
            CellKind::Overdue => "b!".to_owned(),
            CellKind::Running(step) => format!("r{step:02}"),
            CellKind::Paused(step) => format!("P{step:02}"),
            CellKind::Held(step) => format!("H{step:02}"),
            CellKind::Stuck(step) => format!("!{step:02}"),
            CellKind::Scoring => "v".to_owned(),
            CellKind::Done(outcome) => format!("D{}", figures::fraction(f64::from(outcome))),
            CellKind::Malformed(outcome) => format!("F{}", figures::fraction(f64::from(outcome))),
            CellKind::Fault => "X!".to_owned(),
            CellKind::Replayed(Some(reward)) => {
                format!("~{}", figures::fraction(f64::from(reward)))
            }
            CellKind::Replayed(None) => "~".to_owned(),
        }
    }

    /// Its code in at most three cells, so that four leave a gap: outcomes have one digit.
    pub fn short_code(&self) -> String {
        let digit = |outcome: f32| match outcome {
            o if o >= 0.95 => "1".to_owned(),
            o if o < 0.05 => "0".to_owned(),
            o => format!(".{:.0}", (o * 10.0).clamp(1.0, 9.0)),
        };
        match self.kind {
            CellKind::Done(outcome) => format!("D{}", digit(outcome)),
            CellKind::Malformed(outcome) => format!("F{}", digit(outcome)),
            CellKind::Replayed(Some(reward)) => format!("~{}", digit(reward)),
            _ => self.code(),
        }
    }

    /// Its code in one character, for small terminals.
    pub fn letter(&self) -> char {
        match self.kind {
            CellKind::Waiting => '·',
            CellKind::Booting => 'b',
            CellKind::Running(_) => 'r',
            CellKind::Paused(_) => 'P',
            CellKind::Held(_) => 'H',
            CellKind::Overdue | CellKind::Stuck(_) => '!',
            CellKind::Scoring => 'v',
            CellKind::Done(outcome) if outcome > 0.5 => '1',
            CellKind::Done(_) => '0',
            CellKind::Malformed(_) => 'F',
            CellKind::Fault => 'X',
            CellKind::Replayed(_) => '~',
        }
    }

    /// Whether an episode is under way.
    pub fn is_at_work(&self) -> bool {
        match self.kind {
            CellKind::Booting
            | CellKind::Overdue
            | CellKind::Running(_)
            | CellKind::Paused(_)
            | CellKind::Held(_)
            | CellKind::Stuck(_)
            | CellKind::Scoring => true,
            CellKind::Waiting
            | CellKind::Done(_)
            | CellKind::Malformed(_)
            | CellKind::Fault
            | CellKind::Replayed(_) => false,
        }
    }

    /// Its outcome before replay, once scored.
    pub fn outcome(&self, run: &RunState) -> Option<f32> {
        run.episodes.get(&self.episode?)?.outcome
    }
}

/// The cell of a place in a group.
pub(super) fn of_member(
    run: &RunState,
    group: &GroupState,
    place: usize,
    stuck_after_ms: u64,
    now_ms: u64,
) -> Cell {
    let episode = group.members.get(place).copied().flatten();
    let injection = group
        .injected
        .iter()
        .find(|injection| injection.sample as usize == place);
    if let Some(injection) = injection {
        let signal = group
            .signals
            .iter()
            .find(|signal| signal.episode == injection.source);
        let kind = CellKind::Replayed(signal.map(|signal| signal.reward));
        return Cell {
            episode,
            kind,
            since_ms: group.started_ms,
        };
    }
    match episode.and_then(|id| run.episodes.get(&id)) {
        Some(state) => of_episode(run, state, stuck_after_ms, now_ms),
        None => Cell {
            episode,
            kind: CellKind::Waiting,
            since_ms: group.started_ms,
        },
    }
}

/// The cell of an episode.
pub(super) fn of_episode(
    run: &RunState,
    episode: &EpisodeState,
    stuck_after_ms: u64,
    now_ms: u64,
) -> Cell {
    let cell = |kind, since_ms| Cell {
        episode: Some(episode.id),
        kind,
        since_ms,
    };
    if let Some(failure) = &episode.failure {
        return cell(CellKind::Fault, failure.at_ms);
    }
    if let (Some(outcome), Some(ended_ms)) = (episode.outcome, episode.ended_ms) {
        let kind = if episode.end == Some(EpisodeEnd::Malformed) {
            CellKind::Malformed(outcome)
        } else {
            CellKind::Done(outcome)
        };
        return cell(kind, ended_ms);
    }
    if let Some(held) = run.held.get(&episode.id) {
        return cell(CellKind::Held(held.step + 1), held.since_ms);
    }
    let desktop = run.desktops.get(episode.desktop as usize);
    let desktop = desktop.filter(|desktop| desktop.episode == Some(episode.id));
    let since_ms = desktop.map_or(episode.started_ms, |desktop| desktop.since_ms);
    let phase = desktop.map_or(DesktopPhase::Thinking, |desktop| desktop.phase);
    let step = episode.steps.len() as u32;
    let kind = match phase {
        DesktopPhase::Scoring => CellKind::Scoring,
        _ if step == 0 => match desktop.and_then(|desktop| desktop.machine.as_ref()) {
            Some(machine) if standing(machine, now_ms) == Standing::Overdue => CellKind::Overdue,
            _ => CellKind::Booting,
        },
        _ if matches!(run.trainer, TrainerState::Paused(_)) => CellKind::Paused(step),
        _ if now_ms.saturating_sub(since_ms) > stuck_after_ms => CellKind::Stuck(step),
        _ => CellKind::Running(step),
    };
    cell(kind, since_ms)
}

/// The cell of a desktop on which no episode runs: what its machine is at, where that says more
/// than what came of its last episode.
pub(super) fn of_machine(desktop: &DesktopState, now_ms: u64) -> Option<Cell> {
    let machine = desktop.machine.as_ref()?;
    let kind = match standing(machine, now_ms) {
        Standing::Fault => CellKind::Fault,
        Standing::Overdue | Standing::Suspect => CellKind::Overdue,
        Standing::Busy => CellKind::Booting,
        Standing::Quiet => return None,
    };
    Some(Cell {
        episode: desktop.episode,
        kind,
        since_ms: machine.since_ms,
    })
}
