//! Evaluations as the operator reads them: the run's own and those of the run compared with, the
//! newest first; scores by domain; two of them side by side. Pure: from `RunState`.

use crate::event::score::{Flips, count_fail_ends, flips, score_by_domain, score_trials};
use crate::event::{
    EvaluationState, EvaluationStatus, ManifestDifference, ProtocolScore, Score, TrialRow,
};
use crate::tui::app::App;
use crate::types::Protocol;

/// With fewer scored trials an interval says little.
pub const FEW: u64 = 30;

/// One evaluation among those of both runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EvalKey {
    /// Whether it is of the run compared with.
    pub is_other: bool,
    /// Its place among that run's, the oldest first.
    pub place: usize,
}

/// View of the Evals screen.
#[derive(Clone, Debug, Default)]
pub struct EvalsUi {
    /// The evaluation looked at; `None` is the newest.
    pub selected: Option<EvalKey>,
    /// Those marked to be compared, in the order they were; at most two.
    pub marked: Vec<EvalKey>,
    /// The protocol that flips are counted under.
    pub protocol: Protocol,
    /// Whether flips take the place of the scores.
    pub shows_flips: bool,
}

/// One row of the list.
#[derive(Clone, Copy, Debug)]
pub struct EvalRow<'a> {
    /// Which.
    pub key: EvalKey,
    /// What is known of it.
    pub state: &'a EvaluationState,
}

/// All evaluations, the run's own first, the newest of each first.
pub fn rows(app: &App) -> Vec<EvalRow<'_>> {
    let own = app.run.evaluations.iter().enumerate().rev();
    let other = app.ui.train.compared.iter();
    let other = other.flat_map(|run| run.evaluations.iter().enumerate().rev());
    let row = |is_other| {
        move |(place, state)| EvalRow {
            key: EvalKey { is_other, place },
            state,
        }
    };
    own.map(row(false)).chain(other.map(row(true))).collect()
}

/// The place of the selected row among `rows`.
pub fn selected_place(app: &App, rows: &[EvalRow<'_>]) -> usize {
    let selected = app.ui.evals.selected;
    rows.iter()
        .position(|row| Some(row.key) == selected)
        .unwrap_or(0)
}

/// Looks at the evaluation at `place` of the list.
pub fn select(app: &mut App, place: usize) {
    let key = rows(app).get(place).map(|row| row.key);
    app.ui.evals.selected = key.or(app.ui.evals.selected);
}

/// Looks at another evaluation.
pub fn move_by(app: &mut App, by: isize) {
    let rows = rows(app);
    let place = selected_place(app, &rows);
    let last = rows.len().saturating_sub(1);
    select(app, place.saturating_add_signed(by).min(last));
}

/// Marks the selected evaluation, or takes the mark away; the older of two marks makes room.
pub fn toggle_mark(app: &mut App) {
    let rows = rows(app);
    let Some(key) = rows.get(selected_place(app, &rows)).map(|row| row.key) else {
        return;
    };
    let marked = &mut app.ui.evals.marked;
    if let Some(place) = marked.iter().position(|known| *known == key) {
        marked.remove(place);
        return;
    }
    if marked.len() == 2 {
        marked.remove(0);
    }
    marked.push(key);
}

/// Scores of a domain, or of all, under each protocol in the order of `Protocol::ALL`.
#[derive(Clone, Debug, PartialEq)]
pub struct DomainScores {
    /// The domain.
    pub name: String,
    /// Scores by protocol.
    pub scores: [Score; 3],
    /// Trials that ended in declaring the task infeasible: rightly and wrongly.
    pub fail_last: Option<(u32, u32)>,
}

/// Scores of each domain, and of all, feasible and infeasible tasks below them.
pub fn domain_scores(state: &EvaluationState) -> Vec<DomainScores> {
    let mut all = Vec::new();
    if state.has_all_trials() {
        let by = Protocol::ALL.map(|protocol| score_by_domain(&state.trials, protocol));
        for name in by[0].keys() {
            let scores = std::array::from_fn(|p| by[p].get(name).copied().unwrap_or_default());
            let of_domain = state.trials.iter().filter(|trial| trial.domain == *name);
            all.push(DomainScores {
                name: name.clone(),
                scores,
                fail_last: Some(count_fail_ends(of_domain)),
            });
        }
    }
    let Some(totals) = totals(state) else {
        return all;
    };
    let fail_last = |trials: Vec<&TrialRow>| {
        state
            .has_all_trials()
            .then(|| count_fail_ends(trials.iter().copied()))
    };
    let trials = |infeasible: Option<bool>| {
        let wanted = |trial: &&TrialRow| infeasible.is_none_or(|only| trial.infeasible == only);
        state.trials.iter().filter(wanted).collect::<Vec<_>>()
    };
    for (name, pick, infeasible) in [
        (
            "all",
            (|score| score.all) as fn(&ProtocolScore) -> Score,
            None,
        ),
        ("feasible", |score| score.feasible, Some(false)),
        ("infeasible", |score| score.infeasible, Some(true)),
    ] {
        all.push(DomainScores {
            name: name.to_owned(),
            scores: std::array::from_fn(|p| pick(&totals[p])),
            fail_last: fail_last(trials(infeasible)),
        });
    }
    all
}

/// Scores under each protocol: those reported, or of the trials so far.
fn totals(state: &EvaluationState) -> Option<[ProtocolScore; 3]> {
    if let Some(report) = &state.report {
        return Some(Protocol::ALL.map(|protocol| *report.under(protocol)));
    }
    state
        .has_all_trials()
        .then(|| Protocol::ALL.map(|protocol| score_trials(&state.trials, protocol)))
}

/// The headline of an evaluation: its share of successes under the protocol asked for.
pub fn headline(state: &EvaluationState) -> Option<(Protocol, Score)> {
    let protocol = match &state.request {
        Some(request) => request.protocol,
        None => Protocol::Plain,
    };
    let place = Protocol::ALL.iter().position(|one| *one == protocol)?;
    Some((protocol, totals(state)?[place].all))
}

/// Two evaluations compared.
#[derive(Clone, Debug, PartialEq)]
pub enum Comparison {
    /// Which two is not known.
    NotMarked,
    /// Trials of one of them are no longer kept, or it is an old log's.
    NoTrials,
    /// They were made under other conditions: what differs.
    Unlike(Vec<ManifestDifference>),
    /// They compare.
    Alike(Flips),
}

/// The two evaluations that are compared: those marked, in the order they were made, or the
/// selected one with the finished one before it.
pub fn compared_pair<'a>(app: &App, rows: &[EvalRow<'a>]) -> Option<(EvalRow<'a>, EvalRow<'a>)> {
    let find = |key: EvalKey| rows.iter().find(|row| row.key == key).copied();
    if let [one, other] = app.ui.evals.marked[..] {
        // Of one run the older is the first, whichever was marked before.
        let is_turned = one.is_other == other.is_other && one.place > other.place;
        let (first, second) = if is_turned {
            (other, one)
        } else {
            (one, other)
        };
        return Some((find(first)?, find(second)?));
    }
    let selected = *rows.get(selected_place(app, rows))?;
    let before = rows.iter().find(|row| {
        let is_older =
            row.key.is_other == selected.key.is_other && row.key.place < selected.key.place;
        is_older && row.state.status == EvaluationStatus::Finished
    });
    Some((*before?, selected))
}

/// Compares them under a protocol.
pub fn compare(pair: Option<(EvalRow<'_>, EvalRow<'_>)>, protocol: Protocol) -> Comparison {
    let Some((first, second)) = pair else {
        return Comparison::NotMarked;
    };
    let (first, second) = (first.state, second.state);
    let (Some(one), Some(other)) = (&first.manifest, &second.manifest) else {
        return Comparison::NoTrials;
    };
    let differences = one.differences(other);
    if !differences.is_empty() {
        return Comparison::Unlike(differences);
    }
    if first.trials.is_empty() || second.trials.is_empty() {
        return Comparison::NoTrials;
    }
    Comparison::Alike(flips(&first.trials, &second.trials, protocol))
}

#[cfg(test)]
mod tests {
    use super::{Comparison, EvalKey, compare, compared_pair, domain_scores, rows, toggle_mark};
    use crate::event::{EvalManifest, EvaluationState, EvaluationStatus, F, RunState, TrialRow};
    use crate::tui::app::{App, Link};
    use crate::tui::theme::{ColorDepth, Theme};
    use crate::types::{EpisodeEnd, EpisodeId, Protocol, TaskId};

    fn trial(task: &str, end: EpisodeEnd, score: f32, infeasible: bool) -> TrialRow {
        TrialRow {
            task: TaskId(format!("form/{task}")),
            domain: if infeasible { "none" } else { "form" }.to_owned(),
            trial: 0,
            episode: EpisodeId {
                incarnation: 0,
                number: 0,
            },
            end: Some(end),
            state_score: score,
            infeasible,
            steps: 3,
            error: None,
        }
    }

    fn evaluation(number: u32, temperature: f64, trials: Vec<TrialRow>) -> EvaluationState {
        EvaluationState {
            number: Some(number),
            status: EvaluationStatus::Finished,
            done: trials.len() as u32,
            total: trials.len() as u32,
            manifest: Some(EvalManifest {
                temperature: F(temperature),
                ..EvalManifest::default()
            }),
            trials,
            ..EvaluationState::default()
        }
    }

    fn app() -> App {
        let theme = Theme::built_in("default", ColorDepth::None).unwrap();
        let fail = |task| trial(task, EpisodeEnd::Finished, 0.0, false);
        let pass = |task| trial(task, EpisodeEnd::Finished, 1.0, false);
        let limit = trial("z", EpisodeEnd::StepLimit, 0.0, true);
        let run = RunState {
            evaluations: [
                evaluation(1, 0.0, vec![fail("a"), pass("b"), limit.clone()]),
                evaluation(2, 0.0, vec![pass("a"), pass("b"), limit.clone()]),
                evaluation(3, 1.0, vec![pass("a"), pass("b"), limit]),
            ]
            .into(),
            ..RunState::default()
        };
        App::new(run, "test", Link::Recorded, theme)
    }

    #[test]
    fn protocols_differ_where_they_should() {
        let app = app();
        let scores = domain_scores(rows(&app)[0].state);
        let names: Vec<_> = scores.iter().map(|s| s.name.as_str()).collect();
        assert_eq!(names, ["form", "none", "all", "feasible", "infeasible"]);
        // The step limit on an infeasible task is what standard and hard disagree on.
        let success = |place: usize| scores[place].scores.map(|score| score.success);
        assert_eq!(success(1), [1.0, 0.0, 0.0]);
        assert_eq!(success(3), [1.0, 1.0, 1.0]);
        assert_eq!(scores[2].fail_last, Some((0, 0)));
    }

    #[test]
    fn like_evaluations_flip_and_unlike_ones_show_why_not() {
        let mut app = app();
        let all = rows(&app);
        // The newest and the one before it: other temperatures.
        let Comparison::Unlike(why) = compare(compared_pair(&app, &all), Protocol::Plain) else {
            panic!("compared unlike evaluations");
        };
        assert_eq!(why[0].what, "temperature");
        for place in [0, 1] {
            app.ui.evals.selected = Some(EvalKey {
                is_other: false,
                place,
            });
            toggle_mark(&mut app);
        }
        let all = rows(&app);
        let Comparison::Alike(flips) = compare(compared_pair(&app, &all), Protocol::Plain) else {
            panic!("did not compare");
        };
        assert_eq!((flips.gained, flips.lost, flips.pairs), (1, 0, 3));
        // A third mark takes the place of the first.
        app.ui.evals.selected = None;
        toggle_mark(&mut app);
        let places: Vec<_> = app.ui.evals.marked.iter().map(|key| key.place).collect();
        assert_eq!(places, [1, 2]);
    }
}
