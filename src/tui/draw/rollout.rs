//! Rollout: why did it do that? Steps of one episode; picture, thought, action and what training
//! makes of it.

use ratatui::layout::{Constraint, Layout, Rect};

use crate::event::{EpisodeState, GroupState, HeldState, StepState};
use crate::tui::fleet::{episode_name, instruction, rollout_episode};
use crate::tui::layout::SizeClass;
use crate::tui::picture::Mark;
use crate::tui::text::{one_line, pad_left};
use crate::tui::theme::Role;
use crate::tui::update::Target;
use crate::tui::{figures, wording};

use super::Sketch;
use super::debug;
use super::sketch::FrameTitle;

pub(super) fn draw(sketch: &mut Sketch<'_>, area: Rect, class: SizeClass) {
    let Some(episode) = rollout_episode(sketch.app) else {
        sketch.center(
            area,
            "no episode here yet; choose one in Fleet",
            Role::Muted,
        );
        return;
    };
    let newest = episode.steps.len().saturating_sub(1);
    let at = sketch.app.ui.rollout.step.unwrap_or(newest).min(newest);
    if sketch.app.ui.rollout.only_picture {
        draw_picture(sketch, area, episode, at);
        return;
    }
    if let Some(held) = sketch.app.run.held.get(&episode.id) {
        draw_held(sketch, area, class, (episode, at), held);
        return;
    }
    match class {
        SizeClass::Line | SizeClass::Vitals | SizeClass::List => {
            draw_steps(sketch, area, episode, at);
        }
        SizeClass::Narrow => {
            let [top, bottom] =
                Layout::vertical([Constraint::Fill(1), Constraint::Length(6)]).areas(area);
            draw_steps(sketch, top, episode, at);
            draw_thought(sketch, bottom, episode, at);
        }
        SizeClass::Full => draw_full(sketch, area, episode, at),
        SizeClass::Wide => draw_wide(sketch, area, episode, at),
    }
}

/// The debugger's panel in place of thought and learning signal.
fn draw_held(
    sketch: &mut Sketch<'_>,
    area: Rect,
    class: SizeClass,
    (episode, at): (&EpisodeState, usize),
    held: &HeldState,
) {
    let rows = debug::panel_rows(held, area.height);
    let [top, bottom] =
        Layout::vertical([Constraint::Fill(1), Constraint::Length(rows)]).areas(area);
    let steps = match class {
        SizeClass::Wide => (area.width / 3).clamp(38, 60),
        SizeClass::Full => 36,
        SizeClass::Line | SizeClass::Vitals | SizeClass::List | SizeClass::Narrow => area.width,
    };
    let [left, right] =
        Layout::horizontal([Constraint::Fill(1), Constraint::Length(steps)]).areas(top);
    if left.width > 0 {
        draw_picture(sketch, left, episode, at);
    }
    draw_steps(sketch, right, episode, at);
    debug::draw_panel(sketch, bottom, episode.id, held);
}

fn draw_full(sketch: &mut Sketch<'_>, area: Rect, episode: &EpisodeState, at: usize) {
    let [top, bottom] = Layout::vertical([Constraint::Fill(1), Constraint::Length(8)]).areas(area);
    let [left, right] =
        Layout::horizontal([Constraint::Fill(1), Constraint::Length(36)]).areas(top);
    draw_picture(sketch, left, episode, at);
    draw_steps(sketch, right, episode, at);
    draw_thought(sketch, bottom, episode, at);
}

fn draw_wide(sketch: &mut Sketch<'_>, area: Rect, episode: &EpisodeState, at: usize) {
    let words = (area.height / 3).clamp(10, 13);
    let [top, bottom] =
        Layout::vertical([Constraint::Fill(1), Constraint::Length(words)]).areas(area);
    let steps = (area.width / 3).clamp(38, 60);
    let [left, right] =
        Layout::horizontal([Constraint::Length(steps), Constraint::Fill(1)]).areas(top);
    draw_steps(sketch, left, episode, at);
    draw_picture(sketch, right, episode, at);
    let [thought, signal] =
        Layout::horizontal([Constraint::Fill(1), Constraint::Length(54)]).areas(bottom);
    draw_thought(sketch, thought, episode, at);
    draw_signal(sketch, signal, episode, at);
}

fn draw_steps(sketch: &mut Sketch<'_>, area: Rect, episode: &EpisodeState, at: usize) {
    let most = sketch
        .app
        .run
        .header
        .as_ref()
        .map_or(0, |header| header.max_steps);
    let follows = sketch.app.ui.rollout.step.is_none();
    let state = match (episode.is_running(), follows) {
        (true, true) => ("following".to_owned(), Role::Good),
        (true, false) => ("running".to_owned(), Role::Running),
        (false, _) => (outcome_words(episode), outcome_role(episode)),
    };
    let title = FrameTitle {
        left: format!("{}  step {}/{most}", episode_name(episode), at + 1),
        right: Some(state),
        focused: true,
    };
    let inner = sketch.frame(area, &title);
    if inner.height < 2 {
        return;
    }
    let room = usize::from(inner.width).saturating_sub(17);
    sketch.put(
        inner,
        0,
        0,
        &format!("  #  {}  time  tok", crate::tui::text::pad("action", room)),
        Role::Muted,
    );
    let list = Rect {
        y: inner.y + 1,
        height: inner.height - 1,
        ..inner
    };
    // Where there is room for all of them, each step shows its thought too.
    let fits = episode.steps.len() * 2 <= usize::from(list.height);
    let height = if fits { 2 } else { 1 };
    let shown = usize::from(list.height) / height;
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
            y: list.y + (line * height) as u16,
            height: height as u16,
            ..list
        };
        let held = sketch.app.run.held.get(&episode.id);
        let held = held.is_some_and(|held| held.step as usize == number);
        draw_step(sketch, place, number, step, held);
        sketch.drawn.targets.push((place, Target::Step(number)));
        if number == at {
            sketch.select(place);
        }
    }
}

fn draw_step(sketch: &mut Sketch<'_>, area: Rect, number: usize, step: &StepState, held: bool) {
    let room = usize::from(area.width).saturating_sub(17);
    let (text, role) = match (&step.malformed, step.finished) {
        (Some(_), _) => ("did not parse".to_owned(), Role::Bad),
        (None, true) => (wording::actions(&step.actions), Role::Text),
        (None, false) if held => ("held".to_owned(), Role::Warning),
        (None, false) => ("thinking".to_owned(), Role::Running),
    };
    let at = sketch.put(area, 0, 0, &format!("{:>3}  ", number + 1), Role::Muted);
    sketch.put(area, at, 0, &crate::tui::text::pad(&text, room), role);
    if step.finished {
        let took = figures::duration(step.generate_ms + step.act_ms);
        let tokens = step.reply_tokens.to_string();
        let figures = format!("{} {}", pad_left(&took, 6), pad_left(&tokens, 4));
        sketch.put_right(area, 0, &[(figures, Role::Muted)]);
    }
    if area.height > 1 {
        sketch.put(area, 5, 1, &one_line(&step.thought), Role::Muted);
    }
}

fn draw_picture(sketch: &mut Sketch<'_>, area: Rect, episode: &EpisodeState, at: usize) {
    let step = episode.steps.get(at);
    let observed = step.map_or(0, |step| step.observed_ms);
    let age = sketch.app.run_now_ms().saturating_sub(observed);
    let is_live = episode.is_running() && observed > 0;
    let age = is_live.then(|| (format!("{} old", figures::age(age)), Role::Muted));
    let title = FrameTitle {
        left: format!("Screen at step {}", at + 1),
        right: label(episode)
            .map(|text| (text.to_owned(), Role::Warning))
            .or(age),
        focused: false,
    };
    let inner = sketch.frame(area, &title);
    let mark = step.and_then(|step| step.actions.iter().find_map(Mark::of));
    sketch.picture(
        inner,
        step.and_then(|step| step.image.as_ref()),
        None,
        mark.as_ref(),
    );
}

fn draw_thought(sketch: &mut Sketch<'_>, area: Rect, episode: &EpisodeState, at: usize) {
    let Some(step) = episode.steps.get(at) else {
        sketch.frame(
            area,
            &FrameTitle {
                left: "Thought".to_owned(),
                ..FrameTitle::default()
            },
        );
        return;
    };
    let title = FrameTitle {
        left: format!("Thought at step {}", at + 1),
        right: Some((format!("{} tokens", step.reply_tokens), Role::Muted)),
        focused: false,
    };
    let inner = sketch.frame(area, &title);
    let (action, role) = match (&step.malformed, step.finished) {
        (Some(reason), _) => (format!("did not parse: {}", one_line(reason)), Role::Bad),
        (None, true) => (wording::actions(&step.actions), Role::Running),
        (None, false) => ("writing".to_owned(), Role::Muted),
    };
    let task = instruction(&sketch.app.run, episode).unwrap_or(episode.task.0.as_str());
    let task_rows = u16::from(inner.height >= 4);
    if task_rows > 0 {
        let at = sketch.put(inner, 0, 0, "task   ", Role::Muted);
        sketch.put(inner, at, 0, &one_line(task), Role::Muted);
    }
    let thought = Rect {
        y: inner.y + task_rows,
        height: inner.height.saturating_sub(task_rows + 2),
        ..inner
    };
    let skip = sketch.app.ui.rollout.thought_scroll;
    sketch.text(thought, &step.thought, Role::Text, skip);
    let last = inner.height.saturating_sub(2);
    let next = sketch.put(inner, 0, last, "action ", Role::Muted);
    sketch.put(inner, next, last, &action, role);
    if step.finished {
        let timing = format!(
            "wrote in {}, acted in {}, mean log-prob {}",
            figures::duration(step.generate_ms),
            figures::duration(step.act_ms),
            figures::short(step.mean_logprob.0),
        );
        sketch.put(inner, 0, last + 1, &timing, Role::Muted);
    }
}

fn outcome_words(episode: &EpisodeState) -> String {
    match (&episode.failure, episode.outcome) {
        (Some(failure), _) => wording::error_class(failure.class).to_owned(),
        (None, Some(outcome)) => format!("outcome {}", figures::fraction(f64::from(outcome))),
        (None, None) => "ended".to_owned(),
    }
}

fn outcome_role(episode: &EpisodeState) -> Role {
    match (&episode.failure, episode.outcome) {
        (Some(_), _) => Role::Danger,
        (None, Some(outcome)) if outcome > 0.5 => Role::Good,
        (None, _) => Role::Bad,
    }
}

/// What training makes of the episode and of its siblings.
fn draw_signal(sketch: &mut Sketch<'_>, area: Rect, episode: &EpisodeState, at: usize) {
    let title = FrameTitle {
        left: "Learning signal".to_owned(),
        ..FrameTitle::default()
    };
    let inner = sketch.frame(area, &title);
    let mut row = 0;
    for (label, text, role) in signal_rows(episode) {
        let column = sketch.put(inner, 0, row, &format!("{label:<11}"), Role::Muted);
        sketch.put(inner, column, row, &text, role);
        row += 1;
    }
    let group = episode.group.and_then(|id| sketch.app.run.groups.get(&id));
    if let Some(group) = group {
        row += 1;
        draw_siblings(sketch, inner, row, group, episode, at);
    }
}

fn signal_rows(episode: &EpisodeState) -> Vec<(&'static str, String, Role)> {
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
        ("format", number(episode.format), Role::Text),
        ("reward", number(episode.reward), Role::Text),
    ];
    let advantage = match episode.advantage {
        Some(advantage) => figures::signed(advantage.0),
        None => "pending".to_owned(),
    };
    rows.push(("advantage", advantage, Role::Text));
    if let Some(source) = episode.replaced_by {
        rows.push(("replay", format!("replaced by {source}"), Role::Replay));
    } else if episode.stored {
        rows.push(("replay", "stored".to_owned(), Role::Replay));
    }
    if let Some(from) = &episode.debug.branched_from {
        let text = format!("{} steps of {} in {}", from.steps, from.episode, from.run);
        rows.push(("branched", text, Role::Replay));
    }
    if let Some(step) = episode.debug.differs_at {
        let text = format!("from the recorded screen at step {}", step + 1);
        rows.push(("differs", text, Role::Warning));
    }
    if episode.debug.human_touched {
        rows.push(("touched", "by a person".to_owned(), Role::Warning));
    }
    let tokens = format!(
        "{} in all, {} sampled",
        figures::count(u64::from(episode.tokens)),
        figures::count(u64::from(episode.sampled_tokens)),
    );
    rows.push(("tokens", tokens, Role::Text));
    rows
}

/// What sets an episode apart from what the policy did by itself.
fn label(episode: &EpisodeState) -> Option<&'static str> {
    match (&episode.debug.branched_from, episode.debug.human_touched) {
        (Some(_), _) => Some("counterfactual"),
        (None, true) => Some("touched"),
        (None, false) => None,
    }
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
    _at: usize,
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
