//! The episodes of a group side by side, step by step; where one parts from the first is marked.

use ratatui::layout::Rect;

use crate::event::{EpisodeState, StepState};
use crate::tui::fleet::episode_name;
use crate::tui::rollout::{parting, siblings};
use crate::tui::text::{one_line, pad};
use crate::tui::theme::Role;
use crate::tui::{figures, wording};

use super::Sketch;
use super::signal::{outcome_role, outcome_words};
use super::sketch::FrameTitle;

/// Least columns of an episode.
const COLUMN: u16 = 26;
/// Rows above the steps.
const HEADING: u16 = 2;

/// Draws `episode` and as many siblings as fit; `at` is the step looked at, from 0.
pub(super) fn draw(sketch: &mut Sketch<'_>, area: Rect, episode: &EpisodeState, at: usize) {
    let all = siblings(&sketch.app.run, episode);
    let title = FrameTitle {
        left: format!(
            "{} and its siblings  step {}",
            episode_name(episode),
            at + 1
        ),
        right: Some((
            "≠ parts here from the first column".to_owned(),
            Role::Warning,
        )),
        focused: true,
    };
    let inner = sketch.frame(area, &title);
    let fit = usize::from((inner.width / COLUMN).max(1)).min(all.len());
    let width = inner.width / fit.max(1) as u16;
    for (place, sibling) in all.iter().take(fit).enumerate() {
        let column = Rect {
            x: inner.x + place as u16 * width,
            width: width.saturating_sub(1),
            ..inner
        };
        let parts = (place > 0).then(|| parting(episode, sibling)).flatten();
        draw_column(sketch, column, sibling, at, parts);
    }
    let hidden = all.len() - fit;
    sketch.put_hidden(inner, hidden, " siblings: n turns", Role::Muted);
}

fn draw_column(
    sketch: &mut Sketch<'_>,
    area: Rect,
    episode: &EpisodeState,
    at: usize,
    parts: Option<usize>,
) {
    let (state, role) = if episode.is_running() {
        ("running".to_owned(), Role::Running)
    } else {
        (outcome_words(episode), outcome_role(episode))
    };
    let name = format!("{}  ", episode_name(episode));
    let column = sketch.put(area, 0, 0, &name, Role::Text);
    sketch.put(area, column, 0, &state, role);
    let worth = match (episode.advantage, parts) {
        (Some(advantage), _) => format!("advantage {}", figures::signed(advantage.0)),
        (None, Some(parts)) if parts >= episode.steps.len() => {
            format!("≠ ends after step {parts}")
        }
        (None, Some(parts)) => format!("parts at step {}", parts + 1),
        (None, None) => String::new(),
    };
    sketch.put(area, 0, 1, &worth, Role::Muted);
    let list = Rect {
        y: area.y + HEADING,
        height: area.height.saturating_sub(HEADING),
        ..area
    };
    // Each step has its action and its thought; all columns show the same steps in the same rows.
    let shown = usize::from(list.height / 2).max(1);
    let first = (at + 1).saturating_sub(shown);
    for (line, (number, step)) in episode
        .steps
        .iter()
        .enumerate()
        .skip(first)
        .take(shown)
        .enumerate()
    {
        let place = Rect {
            y: list.y + 2 * line as u16,
            height: 2,
            ..list
        }
        .intersection(list);
        draw_step(sketch, place, number, step, parts);
        if number == at {
            sketch.select(Rect { height: 1, ..place });
        }
    }
}

fn draw_step(
    sketch: &mut Sketch<'_>,
    area: Rect,
    number: usize,
    step: &StepState,
    parts: Option<usize>,
) {
    let (text, role) = match (&step.malformed, step.finished) {
        (Some(_), _) => ("did not parse".to_owned(), Role::Bad),
        (None, true) => (wording::actions(&step.actions), Role::Text),
        (None, false) => ("thinking".to_owned(), Role::Running),
    };
    let (mark, role) = match parts {
        Some(parts) if number == parts => ("≠", Role::Warning),
        _ => (" ", role),
    };
    let label = format!("{mark}{:>2} ", number + 1);
    let at = sketch.put(area, 0, 0, &label, role);
    let room = usize::from(area.width.saturating_sub(at));
    sketch.put(area, at, 0, &pad(&text, room), role);
    sketch.put(area, at, 1, &one_line(&step.thought), Role::Muted);
}
