//! The replay buffer as the operator reads it: one row a task, in an order that can be chosen, and
//! the stored success looked at. Pure: from `RunState`, without ratatui.

use crate::event::{ReplayState, RunState, StoredSuccess};
use crate::tui::app::App;
use crate::types::{Iteration, PolicyVersion, TaskId};

/// A task whose newest success is older than so many versions of the weights is stale: what it
/// teaches is far from what the policy would do.
pub const STALE_VERSIONS: u64 = 8;
/// Successes that a bar shows; the buffer of a usual profile holds so many a task.
pub const BAR_CELLS: usize = 8;

/// How tasks are ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReplaySort {
    /// Newest injection first, then what has never succeeded.
    #[default]
    LastInjection,
    /// Oldest successes first.
    Age,
    /// Most used first.
    Uses,
    /// By name.
    Name,
}

/// View of the Replay screen.
#[derive(Clone, Debug, Default)]
pub struct ReplayUi {
    /// The task looked at; `None` is the first one.
    pub task: Option<TaskId>,
    /// Its success looked at, counted from the newest.
    pub entry: usize,
    /// The frame of that success, from 0; `None` is the first one.
    pub frame: usize,
    /// Order of tasks.
    pub sort: ReplaySort,
    /// Whether only tasks that have never succeeded are shown.
    pub only_never: bool,
}

/// What a task's successes come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// It has never succeeded: all its groups failed, and none taught anything.
    Never,
    /// It has succeeded, but nothing is stored.
    Empty,
    /// Its newest success is older than `STALE_VERSIONS` by this many versions in all.
    Stale(u64),
    /// A success of it was put into a group of the running iteration or the one before.
    Injected,
    /// Successes wait.
    Idle,
}

/// One task.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplayRow<'a> {
    /// Which.
    pub task: &'a TaskId,
    /// What is known of it.
    pub state: &'a ReplayState,
    /// Weights of its newest success.
    pub newest: Option<PolicyVersion>,
    /// Weights of its oldest success.
    pub oldest: Option<PolicyVersion>,
    /// How often successes of it were put in.
    pub uses: u64,
    /// What it comes to.
    pub condition: Condition,
}

/// A sort as the screen names it.
pub fn sort_name(sort: ReplaySort) -> &'static str {
    match sort {
        ReplaySort::LastInjection => "last injection",
        ReplaySort::Age => "age",
        ReplaySort::Uses => "uses",
        ReplaySort::Name => "name",
    }
}

/// All rows in the order shown.
pub fn rows<'a>(run: &'a RunState, view: &ReplayUi) -> Vec<ReplayRow<'a>> {
    let mut all: Vec<ReplayRow<'a>> = run
        .replay
        .iter()
        .map(|(task, state)| row(run, task, state))
        .filter(|row| !view.only_never || row.condition == Condition::Never)
        .collect();
    match view.sort {
        ReplaySort::LastInjection => all.sort_by_key(|row| {
            let is_quiet = row.condition == Condition::Idle;
            (std::cmp::Reverse(row.state.last_injected), is_quiet)
        }),
        ReplaySort::Age => all.sort_by_key(|row| (row.newest.is_none(), row.newest)),
        ReplaySort::Uses => all.sort_by_key(|row| std::cmp::Reverse(row.uses)),
        ReplaySort::Name => {}
    }
    all
}

fn row<'a>(run: &RunState, task: &'a TaskId, state: &'a ReplayState) -> ReplayRow<'a> {
    let newest = state.successes.back().map(|success| success.policy);
    ReplayRow {
        task,
        state,
        newest,
        oldest: state.successes.front().map(|success| success.policy),
        uses: state.injected,
        condition: condition(run, state, newest),
    }
}

fn condition(run: &RunState, state: &ReplayState, newest: Option<PolicyVersion>) -> Condition {
    let Some(newest) = newest else {
        return if state.solved == 0 {
            Condition::Never
        } else {
            Condition::Empty
        };
    };
    let age = run.policy.0.saturating_sub(newest.0);
    let recent = Iteration(run.iteration.unwrap_or_default().0.saturating_sub(1));
    if age > STALE_VERSIONS {
        Condition::Stale(age)
    } else if state.last_injected.is_some_and(|last| last >= recent) {
        Condition::Injected
    } else {
        Condition::Idle
    }
}

/// The place of the selected row; 0 where the selected task is not among them.
pub fn selected_place(view: &ReplayUi, rows: &[ReplayRow<'_>]) -> usize {
    let is_selected = |row: &ReplayRow<'_>| Some(row.task) == view.task.as_ref();
    rows.iter().position(is_selected).unwrap_or(0)
}

/// The success looked at, and its number from 1, the newest first.
pub fn selected_success<'a>(
    view: &ReplayUi,
    row: &ReplayRow<'a>,
) -> Option<(usize, &'a StoredSuccess)> {
    let count = row.state.successes.len();
    let place = view.entry.min(count.checked_sub(1)?);
    let success = row.state.successes.get(count - 1 - place)?;
    Some((place + 1, success))
}

/// Looks at the task at `place`.
pub fn select(app: &mut App, place: usize) {
    let rows = rows(&app.run, &app.ui.replay);
    let task = rows.get(place).map(|row| row.task.clone());
    if task.is_some() && task != app.ui.replay.task {
        (app.ui.replay.task, app.ui.replay.entry) = (task, 0);
        app.ui.replay.frame = 0;
    }
}

/// Goes to another task, or to another frame of the success looked at.
pub fn move_by(app: &mut App, frames: isize, tasks: isize) {
    let rows = rows(&app.run, &app.ui.replay);
    let place = selected_place(&app.ui.replay, &rows);
    if tasks != 0 {
        let last = rows.len().saturating_sub(1);
        return select(app, place.saturating_add_signed(tasks).min(last));
    }
    let success = rows
        .get(place)
        .and_then(|row| selected_success(&app.ui.replay, row));
    let last = success.map_or(0, |(_, success)| success.frames.len().saturating_sub(1));
    let frame = app.ui.replay.frame.min(last);
    app.ui.replay.frame = frame.saturating_add_signed(frames).min(last);
}

/// Looks at an older success of the task (`by` 1) or at a newer one (-1), around the ends.
pub fn turn_entry(app: &mut App, by: isize) {
    let rows = rows(&app.run, &app.ui.replay);
    let Some(row) = rows.get(selected_place(&app.ui.replay, &rows)) else {
        return;
    };
    let count = row.state.successes.len().max(1) as isize;
    let entry = app.ui.replay.entry as isize + by;
    app.ui.replay.entry = entry.rem_euclid(count) as usize;
    app.ui.replay.frame = 0;
}

#[cfg(test)]
mod tests {
    use super::{Condition, ReplaySort, ReplayUi, rows, selected_success};
    use crate::event::{RunState, StoredSuccess};
    use crate::types::{EpisodeId, Iteration, PolicyVersion, TaskId};

    fn success(number: u64, policy: u64) -> StoredSuccess {
        StoredSuccess {
            episode: EpisodeId {
                incarnation: 0,
                number,
            },
            iteration: Iteration(0),
            at_ms: 0,
            used: 0,
            pinned: false,
            policy: PolicyVersion(policy),
            source: None,
            uses: std::collections::VecDeque::new(),
            learned: Vec::new(),
            frames: Vec::new(),
        }
    }

    fn run() -> RunState {
        let mut run = RunState {
            policy: PolicyVersion(20),
            iteration: Some(Iteration(10)),
            ..RunState::default()
        };
        for (task, policies, injected, solved) in [
            ("fresh", &[12_u64, 19][..], None, 4_u64),
            ("old", &[3], Some(4), 1),
            ("used", &[14], Some(9), 1),
            ("never", &[], None, 0),
            ("lost", &[], None, 2),
        ] {
            let state = run.replay.entry(TaskId(task.to_owned())).or_default();
            state.solved = solved;
            state.last_injected = injected.map(Iteration);
            state.injected = injected.map_or(0, |_| 1);
            let stored = policies.iter().zip(0..);
            state.successes = stored.map(|(policy, n)| success(n, *policy)).collect();
        }
        run
    }

    #[test]
    fn conditions_follow_age_use_and_success() {
        let run = run();
        let view = ReplayUi {
            sort: ReplaySort::Name,
            ..ReplayUi::default()
        };
        let found: Vec<_> = rows(&run, &view)
            .iter()
            .map(|row| (row.task.0.clone(), row.condition))
            .collect();
        let expected = [
            ("fresh", Condition::Idle),
            ("lost", Condition::Empty),
            ("never", Condition::Never),
            ("old", Condition::Stale(17)),
            ("used", Condition::Injected),
        ];
        assert_eq!(found, expected.map(|(name, c)| (name.to_owned(), c)));
    }

    #[test]
    fn orders_differ_and_never_shows_only_those() {
        let run = run();
        for (sort, only_never, expected) in [
            (
                ReplaySort::LastInjection,
                false,
                vec!["used", "old", "lost", "never", "fresh"],
            ),
            (
                ReplaySort::Age,
                false,
                vec!["old", "used", "fresh", "lost", "never"],
            ),
            (
                ReplaySort::Uses,
                false,
                vec!["old", "used", "fresh", "lost", "never"],
            ),
            (ReplaySort::Name, true, vec!["never"]),
        ] {
            let view = ReplayUi {
                sort,
                only_never,
                ..ReplayUi::default()
            };
            let names: Vec<_> = rows(&run, &view)
                .iter()
                .map(|row| row.task.0.as_str())
                .collect();
            assert_eq!(names, expected, "{sort:?}");
        }
    }

    #[test]
    fn successes_count_from_the_newest() {
        let run = run();
        let mut view = ReplayUi::default();
        let all = rows(&run, &view);
        let fresh = all.iter().find(|row| row.task.0 == "fresh").unwrap();
        let policy = |view: &ReplayUi| {
            let (number, success) = selected_success(view, fresh).unwrap();
            (number, success.policy.0)
        };
        assert_eq!(policy(&view), (1, 19));
        view.entry = 1;
        assert_eq!(policy(&view), (2, 12));
        view.entry = 9;
        assert_eq!(policy(&view), (2, 12));
    }
}
