//! A reply token by token: what the sampler thought of each, and what training made of it.

use ratatui::layout::Rect;

use crate::event::{Clip, EpisodeState};
use crate::tui::figures;
use crate::tui::fleet::episode_name;
use crate::tui::text::{pad, pad_left};
use crate::tui::theme::Role;
use crate::tui::tokens::{TokenRow, learned_words, shown_tokens, token_rows};

use super::Sketch;
use super::sketch::FrameTitle;

/// Columns of a number.
const FIGURE: usize = 9;
/// Most columns of a text: beyond it the figures are too far away to belong to it.
const TEXT_MAX: usize = 40;
/// Columns of everything else: place, four figures, the mark of clipping.
const BESIDE: usize = 6 + 4 * FIGURE + 2;

/// Draws the tokens of the reply at step `at`, from 0.
pub(super) fn draw(sketch: &mut Sketch<'_>, area: Rect, episode: &EpisodeState, at: usize) {
    let app = sketch.app;
    let mut title = FrameTitle {
        left: format!("Tokens at step {} of {}", at + 1, episode_name(episode)),
        right: None,
        focused: true,
    };
    let tokens = match shown_tokens(app, episode) {
        Ok(tokens) => tokens,
        Err(reason) => {
            let inner = sketch.frame(area, &title);
            sketch.center(inner, reason, Role::Muted);
            return;
        }
    };
    let rows = token_rows(tokens);
    // Inside the frame: a row of heads above, one of marks below.
    let height = usize::from(area.height.saturating_sub(4));
    let last = rows.len().saturating_sub(height);
    let skip = app.ui.rollout.thought_scroll.min(last);
    let (mut state, is_pending) = learned_words(app, episode, tokens);
    if last > 0 {
        let end = (skip + height).min(rows.len());
        state = format!("{}-{end} of {}  {state}", skip + 1, rows.len());
    }
    title.right = Some((state, Role::Muted));
    let inner = sketch.frame(area, &title);
    let room = usize::from(inner.width)
        .saturating_sub(BESIDE)
        .min(TEXT_MAX);
    put_heads(sketch, inner, room);
    for (line, (place, row)) in rows.iter().enumerate().skip(skip).take(height).enumerate() {
        let at = sketch.put(
            inner,
            0,
            line as u16 + 1,
            &format!("{:>4}  ", place + 1),
            Role::Muted,
        );
        let at = sketch.put(
            inner,
            at,
            line as u16 + 1,
            &pad(&row.text, room),
            Role::Text,
        );
        sketch.put_all(inner, at, line as u16 + 1, &figures_of(row, is_pending));
    }
    if let Some(bottom) = inner.height.checked_sub(1) {
        let marks = "▲ clipped high  ▼ clipped low  log-probs and entropy in nats";
        sketch.put(inner, 6, bottom, marks, Role::Muted);
    }
}

fn put_heads(sketch: &mut Sketch<'_>, inner: Rect, room: usize) {
    let head = |text: &str| pad_left(text, FIGURE);
    let heads = format!(
        "   #  {}{}{}{}  {}",
        pad("token", room),
        head("sampled"),
        head("learned"),
        head("ratio"),
        head("entropy"),
    );
    sketch.put(inner, 0, 0, &heads, Role::Muted);
}

/// A token's figures. What may be known later is pending.
fn figures_of(row: &TokenRow, is_pending: bool) -> [(String, Role); 5] {
    let figure = |value: Option<f64>, role: Role| match value {
        // Ratios are told apart by their third digit, and a column reads down its points.
        Some(value) => (pad_left(&format!("{value:.3}"), FIGURE), role),
        None if is_pending => (pad_left("pending", FIGURE), Role::Muted),
        None => (pad_left(figures::NOTHING, FIGURE), Role::Muted),
    };
    let learned = row.learned;
    let (mark, role) = match learned.and_then(|learned| learned.clip) {
        Some(Clip::High) => (" ▲", Role::Warning),
        Some(Clip::Low) => (" ▼", Role::Warning),
        None => ("  ", Role::Text),
    };
    [
        figure(row.sampler, Role::Text),
        figure(learned.map(|learned| learned.logprob), Role::Text),
        figure(learned.map(|learned| learned.ratio), role),
        (mark.to_owned(), role),
        figure(learned.map(|learned| learned.entropy), Role::Text),
    ]
}
