//! The learning signal of an episode: rewards, advantage, and its group.

use ratatui::layout::Rect;

use crate::event::{EpisodeState, GroupState};
use crate::tui::app::App;
use crate::tui::rollout::what_if;
use crate::tui::theme::Role;
use crate::tui::{figures, wording};

use super::Sketch;
use super::sketch::FrameTitle;

pub(super) fn outcome_words(episode: &EpisodeState) -> String {
    match (&episode.failure, episode.outcome) {
        (Some(failure), _) => wording::error_class(failure.class).to_owned(),
        (None, Some(outcome)) => format!("outcome {}", figures::fraction(f64::from(outcome))),
        (None, None) => "ended".to_owned(),
    }
}

pub(super) fn outcome_role(episode: &EpisodeState) -> Role {
    match (&episode.failure, episode.outcome) {
        (Some(_), _) => Role::Danger,
        (None, Some(outcome)) if outcome > 0.5 => Role::Good,
        (None, _) => Role::Bad,
    }
}

/// What training makes of the episode and of its siblings.
pub(super) fn draw_signal(sketch: &mut Sketch<'_>, area: Rect, episode: &EpisodeState) {
    let title = FrameTitle {
        left: "Learning signal".to_owned(),
        ..FrameTitle::default()
    };
    let inner = sketch.frame(area, &title);
    let mut row = 0;
    for (label, text, role) in signal_rows(sketch.app, episode) {
        let column = sketch.put(inner, 0, row, &format!("{label:<11}"), Role::Muted);
        sketch.put(inner, column, row, &text, role);
        row += 1;
    }
    let group = episode.group.and_then(|id| sketch.app.run.groups.get(&id));
    if let Some(group) = group {
        row += 1;
        draw_siblings(sketch, inner, row, group, episode);
    }
}

fn signal_rows(app: &App, episode: &EpisodeState) -> Vec<(&'static str, String, Role)> {
    let number = |value: Option<f32>| match value {
        Some(value) => figures::fraction(f64::from(value)),
        None => "pending".to_owned(),
    };
    let end = episode
        .end
        .map_or(String::new(), |end| format!("  {}", wording::end(end)));
    let mut rows = vec![
        (
            "outcome",
            format!("{}{end}", number(episode.outcome)),
            outcome_role_or_text(episode),
        ),
        (
            "reward",
            format!(
                "{}  format {}",
                number(episode.reward),
                number(episode.format)
            ),
            Role::Text,
        ),
    ];
    let advantage = match (episode.advantage, what_if(&app.run, episode)) {
        (Some(advantage), _) => figures::signed(advantage.0),
        (None, Some((pass, fail))) => format!(
            "{} if it passes, {} if it fails",
            figures::signed(pass),
            figures::signed(fail)
        ),
        (None, None) => "pending".to_owned(),
    };
    rows.push(("advantage", advantage, Role::Text));
    if let Some(source) = episode.replaced_by {
        rows.push(("replay", format!("replaced by {source}"), Role::Replay));
    } else if episode.stored {
        rows.push(("replay", "stored".to_owned(), Role::Replay));
    }
    let logprob = mean_logprob(episode).map_or(String::new(), |logprob| {
        format!(", log-prob {} nats", figures::short(logprob))
    });
    let tokens = format!(
        "{}, {} sampled{logprob}",
        figures::count(u64::from(episode.tokens)),
        figures::count(u64::from(episode.sampled_tokens)),
    );
    rows.push(("tokens", tokens, Role::Text));
    rows
}

/// Mean log-probability of the sampled tokens of finished steps.
fn mean_logprob(episode: &EpisodeState) -> Option<f64> {
    let finished = || episode.steps.iter().filter(|step| step.finished);
    let tokens: u32 = finished().map(|step| step.reply_tokens).sum();
    let sum: f64 = finished()
        .map(|step| step.mean_logprob.0 * f64::from(step.reply_tokens))
        .sum();
    (tokens > 0).then(|| sum / f64::from(tokens))
}

fn outcome_role_or_text(episode: &EpisodeState) -> Role {
    if episode.ended_ms.is_some() {
        outcome_role(episode)
    } else {
        Role::Muted
    }
}

/// Siblings side by side: outcome, advantage, steps; the one shown is selected.
fn draw_siblings(
    sketch: &mut Sketch<'_>,
    area: Rect,
    row: u16,
    group: &GroupState,
    shown: &EpisodeState,
) {
    const CELLS: u16 = 5;
    let std = group.std.map_or(String::new(), |std| {
        format!("  std {}", figures::fraction(std.0))
    });
    let line = format!("group g{:02}{std}", group.id.index);
    sketch.put(area, 0, row, &line, Role::Muted);
    for (label, below) in [("outcome", 2), ("advantage", 3), ("steps", 4)] {
        sketch.put(area, 0, row + below, label, Role::Muted);
    }
    for (place, member) in group.members.iter().enumerate() {
        let column = 11 + place as u16 * CELLS;
        if column + CELLS > area.width {
            break;
        }
        sketch.put(area, column, row + 1, &format!("s{place}"), Role::Muted);
        let episode = member.and_then(|id| sketch.app.run.episodes.get(&id));
        if let Some(episode) = episode {
            draw_sibling(sketch, area, column, row + 1, episode);
            if episode.id == shown.id {
                let place = Rect {
                    x: area.x + column,
                    y: area.y + row + 1,
                    width: CELLS - 1,
                    height: 4,
                };
                sketch.select(place.intersection(area));
            }
        }
    }
}

fn draw_sibling(
    sketch: &mut Sketch<'_>,
    area: Rect,
    column: u16,
    row: u16,
    episode: &EpisodeState,
) {
    let outcome = match (&episode.failure, episode.outcome) {
        (Some(_), _) => "X!".to_owned(),
        (None, Some(outcome)) => figures::fraction(f64::from(outcome)),
        (None, None) => figures::NOTHING.to_owned(),
    };
    sketch.put(
        area,
        column,
        row + 1,
        &outcome,
        outcome_role_or_text(episode),
    );
    let (advantage, role) = match (episode.replaced_by, episode.advantage) {
        (Some(_), _) => ("~".to_owned(), Role::Replay),
        (None, Some(advantage)) => (figures::signed(advantage.0), Role::Text),
        (None, None) => (figures::NOTHING.to_owned(), Role::Muted),
    };
    sketch.put(area, column, row + 2, &advantage, role);
    sketch.put(
        area,
        column,
        row + 3,
        &episode.steps.len().to_string(),
        Role::Muted,
    );
}
