//! What the Rollout screen works out: screens before and after a step, where siblings part, what
//! an advantage would be. Pure: from `RunState`, without ratatui.

use crate::event::{EpisodeState, GroupState, RunState, StepState};
use crate::tui::app::{App, Screen};
use crate::tui::fleet::rollout_episode;
use crate::tui::work::Job;
use crate::types::{Action, ImageHash, Point};

/// Clicks this near to each other hit the same thing more often than not, pixels.
const SAME_PLACE: f32 = 6.0;
/// Added to a group's standard deviation where the profile's value is not known.
const ADVANTAGE_EPS: f64 = 1e-6;

/// The step shown of an episode.
pub fn shown_step(app: &App, episode: &EpisodeState) -> usize {
    let newest = episode.steps.len().saturating_sub(1);
    app.ui.rollout.step.unwrap_or(newest).min(newest)
}

/// The screen a step was decided on, and the one after it.
pub fn screens(episode: &EpisodeState, step: usize) -> (Option<&ImageHash>, Option<&ImageHash>) {
    let image = |step: usize| episode.steps.get(step).and_then(|step| step.image.as_ref());
    let is_last = step + 1 >= episode.steps.len();
    let after = if is_last {
        episode.final_image.as_ref()
    } else {
        image(step + 1)
    };
    (image(step), after)
}

/// The comparison of screens that the operator waits for, if it was not asked for yet.
pub fn wanted_changes(app: &mut App) -> Option<Job> {
    if app.ui.screen != Screen::Rollout || !app.ui.rollout.outlines {
        return None;
    }
    let episode = rollout_episode(app)?;
    let (before, after) = screens(episode, shown_step(app, episode));
    let pair = (before?.clone(), after?.clone());
    if app.ui.rollout.asked.as_ref() == Some(&pair) {
        return None;
    }
    app.ui.rollout.asked = Some(pair.clone());
    let (before, after) = pair;
    Some(Job::Changes { before, after })
}

/// Advantages that an episode under way would have with outcome 1 and with outcome 0, were the
/// group's other outcomes those known so far. Format rewards are left out.
pub fn what_if(run: &RunState, episode: &EpisodeState) -> Option<(f64, f64)> {
    if !episode.is_running() {
        return None;
    }
    let group = run.groups.get(&episode.group?)?;
    let others: Vec<f64> = group
        .members
        .iter()
        .flatten()
        .filter(|id| **id != episode.id)
        .filter_map(|id| run.episodes.get(id)?.outcome)
        .map(f64::from)
        .collect();
    if others.is_empty() {
        return None;
    }
    let advantage = |outcome: f64| {
        let mut all = others.clone();
        all.push(outcome);
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        let squares: f64 = all.iter().map(|value| (value - mean).powi(2)).sum();
        let std = (squares / (all.len() - 1) as f64).sqrt();
        (outcome - mean) / (std + ADVANTAGE_EPS)
    };
    Some((advantage(1.0), advantage(0.0)))
}

/// An episode and its siblings that have begun, in the order of their places from its own on.
pub fn siblings<'a>(run: &'a RunState, episode: &'a EpisodeState) -> Vec<&'a EpisodeState> {
    let group = episode.group.and_then(|id| run.groups.get(&id));
    let Some(GroupState { members, .. }) = group else {
        return vec![episode];
    };
    let own = members.iter().position(|id| *id == Some(episode.id));
    let own = own.unwrap_or(0);
    let (before, after) = members.split_at(own);
    let others = after.iter().chain(before).flatten();
    others.filter_map(|id| run.episodes.get(id)).collect()
}

/// The first step at which two episodes did something else, from 0; `None` while they agree.
pub fn parting(one: &EpisodeState, other: &EpisodeState) -> Option<usize> {
    let pairs = one.steps.iter().zip(&other.steps);
    let differ = pairs
        .take_while(|(a, b)| a.finished && b.finished)
        .position(|(a, b)| !same_step(a, b));
    let done = |episode: &EpisodeState| episode.steps.iter().filter(|s| s.finished).count();
    let ends = |episode: &EpisodeState| !episode.is_running();
    let (short, long) = (done(one).min(done(other)), done(one).max(done(other)));
    // One ended where the other went on.
    let ended = (ends(one) && done(one) == short) || (ends(other) && done(other) == short);
    differ.or((short < long && ended).then_some(short))
}

fn same_step(a: &StepState, b: &StepState) -> bool {
    a.malformed.is_some() == b.malformed.is_some()
        && a.actions.len() == b.actions.len()
        && a.actions
            .iter()
            .zip(&b.actions)
            .all(|(a, b)| same_action(a, b))
}

fn same_action(a: &Action, b: &Action) -> bool {
    let near = |a: Point, b: Point| (a.x - b.x).hypot(a.y - b.y) <= SAME_PLACE;
    match (a, b) {
        (Action::Click { at }, Action::Click { at: other })
        | (Action::LeftDouble { at }, Action::LeftDouble { at: other })
        | (Action::RightSingle { at }, Action::RightSingle { at: other })
        | (Action::Hover { at }, Action::Hover { at: other }) => near(*at, *other),
        (
            Action::Drag { from, to },
            Action::Drag {
                from: other_from,
                to: other_to,
            },
        ) => near(*from, *other_from) && near(*to, *other_to),
        (a, b) => a == b,
    }
}

#[cfg(test)]
mod tests {
    use super::{parting, screens, siblings, what_if};
    use crate::event::{EpisodeState, GroupState, Purpose, RunState, StepState};
    use crate::types::{Action, EpisodeId, GroupId, ImageHash, Iteration, Point, TaskId};

    const GROUP: GroupId = GroupId {
        iteration: Iteration(0),
        index: 0,
    };

    fn episode(number: u64, clicks: &[f32], is_over: bool) -> EpisodeState {
        let id = EpisodeId {
            incarnation: 0,
            number,
        };
        let task = TaskId("t".to_owned());
        let mut episode = EpisodeState::new(id, Purpose::Train, task, 0);
        episode.group = Some(GROUP);
        let step = |x: &f32| StepState {
            actions: vec![Action::Click {
                at: Point { x: *x, y: 0.0 },
            }],
            image: Some(ImageHash(format!("{x}").into())),
            finished: true,
            ..StepState::default()
        };
        episode.steps = clicks.iter().map(step).collect();
        episode.ended_ms = is_over.then_some(1);
        episode
    }

    #[test]
    fn siblings_part_at_the_first_action_that_differs() {
        let long = episode(0, &[10.0, 50.0, 90.0], false);
        for (clicks, is_over, expected) in [
            (&[10.0, 50.0, 90.0][..], false, None),
            (&[12.0, 50.0], false, None),
            (&[12.0, 50.0], true, Some(2)),
            (&[10.0, 80.0, 90.0], true, Some(1)),
            (&[30.0], false, Some(0)),
            (&[], false, None),
        ] {
            let other = episode(1, clicks, is_over);
            assert_eq!(parting(&long, &other), expected, "{clicks:?}");
            assert_eq!(parting(&other, &long), expected, "{clicks:?}");
        }
    }

    #[test]
    fn a_step_lies_between_two_screens() {
        let mut shown = episode(0, &[1.0, 2.0], true);
        let name = |hash: Option<&ImageHash>| hash.map(|hash| hash.0.to_string());
        let (before, after) = screens(&shown, 0);
        assert_eq!(
            (name(before), name(after)),
            (Some("1".into()), Some("2".into()))
        );
        assert_eq!(screens(&shown, 1).1, None);
        shown.final_image = Some(ImageHash("end".to_owned().into()));
        assert_eq!(name(screens(&shown, 1).1), Some("end".into()));
        assert_eq!(screens(&shown, 7), (None, shown.final_image.as_ref()));
    }

    #[test]
    fn what_an_outcome_would_be_worth_depends_on_the_others() {
        let mut run = RunState::default();
        let mut members = Vec::new();
        for (number, outcome) in [(0, None), (1, Some(0.0)), (2, Some(0.0)), (3, Some(1.0))] {
            let mut one = episode(number, &[], outcome.is_some());
            one.outcome = outcome;
            members.push(Some(one.id));
            run.episodes.insert(one.id, one);
        }
        run.groups.insert(
            GROUP,
            GroupState {
                id: GROUP,
                task: TaskId("t".to_owned()),
                instruction: String::new(),
                infeasible: false,
                started_ms: 0,
                members,
                outcomes: None,
                std: None,
                injected: Vec::new(),
                signals: Vec::new(),
            },
        );
        let pending = run.episodes.values().next().unwrap();
        let (pass, fail) = what_if(&run, pending).unwrap();
        // Outcomes 1 0 0 1: mean 0.5, std 0.577; outcomes 0 0 0 1: mean 0.25, std 0.5.
        assert!((pass - 0.866).abs() < 1e-3, "{pass}");
        assert!((fail + 0.5).abs() < 1e-3, "{fail}");
        let over = run.episodes.values().nth(3).unwrap();
        assert_eq!(what_if(&run, over), None);
        let order: Vec<_> = siblings(&run, over).iter().map(|e| e.id.number).collect();
        assert_eq!(order, [3, 0, 1, 2]);
    }
}
