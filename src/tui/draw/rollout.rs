//! Rollout: why did it do that? Steps of one episode; picture, thought, action and what training
//! makes of it.

use ratatui::layout::{Constraint, Layout, Rect};

use crate::event::{EpisodeState, HeldState, StepSignal, StepState};
use crate::tui::app::{App, RolloutPage};
use crate::tui::changes::Changes;
use crate::tui::debug::held_here;
use crate::tui::fleet::{episode_name, instruction, rollout_episode};
use crate::tui::focus::has_focused_detail;
use crate::tui::layout::SizeClass;
use crate::tui::picture::Mark;
use crate::tui::rollout::{screens, shown_step};
use crate::tui::text::{one_line, pad, pad_left, wrap};
use crate::tui::theme::Role;
use crate::tui::update::Target;
use crate::tui::{figures, wording};

use super::Sketch;
use super::debug;
use super::siblings;
use super::signal::{draw_signal, outcome_role, outcome_words};
use super::sketch::FrameTitle;
use super::tokens;

pub(super) fn draw(sketch: &mut Sketch<'_>, area: Rect, class: SizeClass) {
    let Some(episode) = rollout_episode(sketch.app) else {
        sketch.center(
            area,
            "no episode here yet; choose one in Fleet",
            Role::Muted,
        );
        return;
    };
    let at = shown_step(sketch.app, episode);
    let view = &sketch.app.ui.rollout;
    if view.only_picture {
        draw_picture(sketch, area, episode, at);
        return;
    }
    if let Some(held) = sketch.app.run.held.get(&episode.id) {
        draw_held(sketch, area, class, (episode, at), held);
        return;
    }
    if view.page == RolloutPage::Thought && class >= SizeClass::Narrow {
        draw_thought(sketch, area, episode, at);
        return;
    }
    if view.page == RolloutPage::Siblings && class >= SizeClass::Narrow {
        siblings::draw(sketch, area, episode, at);
        return;
    }
    if view.page == RolloutPage::Tokens && class >= SizeClass::Narrow {
        tokens::draw(sketch, area, episode, at);
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
    draw_signal(sketch, signal, episode);
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
        focused: !has_focused_detail(sketch.app) && held_here(sketch.app).is_none(),
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
        &format!("  #  {}  time  tok", pad("action", room)),
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
    sketch.put(area, at, 0, &pad(&text, room), role);
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

/// The screen before the step's action with the action drawn on it, or the one after it.
fn draw_picture(sketch: &mut Sketch<'_>, area: Rect, episode: &EpisodeState, at: usize) {
    let view = &sketch.app.ui.rollout;
    let step = episode.steps.get(at);
    let (before, after) = screens(episode, at);
    let image = if view.shows_after { after } else { before };
    let title = FrameTitle {
        left: if view.shows_after {
            format!("Screen after step {}", at + 1)
        } else {
            format!("Screen at step {}", at + 1)
        },
        right: picture_state(sketch.app, episode, at),
        focused: false,
    };
    let inner = sketch.frame(area, &title);
    if view.shows_after && after.is_none() {
        sketch.center(inner, "no screen after this step yet", Role::Muted);
        return;
    }
    let mut marks = Vec::new();
    if !view.shows_after {
        marks.extend(step.and_then(|step| step.actions.iter().find_map(Mark::of)));
    }
    if view.outlines
        && let Some(Ok(changes)) = changes_of(sketch.app, episode, at)
    {
        let regions = changes.regions.iter();
        marks.extend(regions.map(|region| Mark::Region(region.from, region.to)));
    }
    sketch.picture(inner, image, None, Some(&Mark::All(marks)));
}

/// What sets an episode apart from what the policy did by itself.
fn label(episode: &EpisodeState) -> Option<&'static str> {
    match (&episode.debug.branched_from, episode.debug.human_touched) {
        (Some(_), _) => Some("counterfactual"),
        (None, true) => Some("touched"),
        (None, false) => None,
    }
}

/// What the outlined step changed, once that is known.
fn changes_of<'a>(
    app: &'a App,
    episode: &EpisodeState,
    at: usize,
) -> Option<&'a Result<Changes, String>> {
    let (before, after, changes) = app.ui.rollout.changes.as_ref()?;
    (screens(episode, at) == (Some(before), Some(after))).then_some(changes)
}

/// What the step changed, or how old the screen is.
fn picture_state(app: &App, episode: &EpisodeState, at: usize) -> Option<(String, Role)> {
    if app.ui.rollout.outlines {
        return Some(match changes_of(app, episode, at) {
            Some(Ok(changes)) if changes.count == 0 => {
                ("nothing changed".to_owned(), Role::Warning)
            }
            Some(Ok(changes)) => {
                let regions = if changes.count == 1 {
                    "region"
                } else {
                    "regions"
                };
                let share = figures::percent(changes.share);
                (
                    format!("changed: {} {regions}, {share} of pixels", changes.count),
                    Role::Running,
                )
            }
            Some(Err(reason)) => (format!("cannot compare: {reason}"), Role::Danger),
            None if screens(episode, at).1.is_none() => {
                ("no screen after it yet".to_owned(), Role::Muted)
            }
            None => ("comparing".to_owned(), Role::Muted),
        });
    }
    if let Some(label) = label(episode) {
        return Some((label.to_owned(), Role::Warning));
    }
    let observed = episode.steps.get(at).map_or(0, |step| step.observed_ms);
    let age = app.run_now_ms().saturating_sub(observed);
    (episode.is_running() && observed > 0)
        .then(|| (format!("{} old", figures::age(age)), Role::Muted))
}

fn draw_thought(sketch: &mut Sketch<'_>, area: Rect, episode: &EpisodeState, at: usize) {
    let Some(step) = episode.steps.get(at) else {
        let left = "Thought".to_owned();
        sketch.frame(
            area,
            &FrameTitle {
                left,
                ..FrameTitle::default()
            },
        );
        return;
    };
    // What is inside the frame, the task's row and the two or three below it left out.
    let width = usize::from(area.width.saturating_sub(2));
    let wanted = if episode.learned.get(at).is_some() {
        5
    } else {
        3
    };
    // At least two rows are left to the thought itself.
    let facts = wanted.min(area.height.saturating_sub(5)).max(2);
    let task_rows = u16::from(area.height >= 6);
    let height = area.height.saturating_sub(2 + task_rows + facts);
    let lines = wrap(&step.thought, width).len();
    let last = lines.saturating_sub(usize::from(height));
    let skip = sketch.app.ui.rollout.thought_scroll.min(last);
    let mut state = format!("{} tokens", step.reply_tokens);
    if step.finished {
        let logprob = figures::short(step.mean_logprob.0);
        state = format!("log-prob {logprob} nats  {state}");
    }
    if last > 0 {
        let shown = (skip + usize::from(height)).min(lines);
        state = format!("lines {}-{shown} of {lines}  {state}", skip + 1);
    }
    let title = FrameTitle {
        left: format!("Thought at step {}", at + 1),
        right: Some((state, Role::Muted)),
        focused: sketch.app.ui.rollout.page == RolloutPage::Thought
            || has_focused_detail(sketch.app),
    };
    let inner = sketch.frame(area, &title);
    if task_rows > 0 {
        let task = instruction(&sketch.app.run, episode).unwrap_or(episode.task.0.as_str());
        let at = sketch.put(inner, 0, 0, "task    ", Role::Muted);
        sketch.put(inner, at, 0, &one_line(task), Role::Muted);
    }
    let thought = Rect {
        y: inner.y + task_rows,
        height: height.min(inner.height),
        ..inner
    };
    sketch.text(thought, &step.thought, Role::Text, skip);
    let rows = fact_rows(sketch.app, episode, step, at);
    let below = inner.height.saturating_sub(facts);
    for (row, (label, text, role)) in rows.into_iter().enumerate().take(usize::from(facts)) {
        let row = below + row as u16;
        let next = sketch.put(inner, 0, row, &pad(label, 8), Role::Muted);
        sketch.put(inner, next, row, &text, role);
    }
}

/// What the last update made of a reply: its ratios, then what was clipped.
fn signal_words(signal: &StepSignal) -> [String; 2] {
    [
        format!(
            "ratio {} [{}, {}], log-prob {} nats/token",
            figures::short(signal.ratio.0),
            figures::short(signal.ratio_min.0),
            figures::short(signal.ratio_max.0),
            figures::short(signal.logprob.0),
        ),
        format!(
            "clipped high {}, low {}, entropy {} nats/token",
            figures::percent(signal.clip_high.0),
            figures::percent(signal.clip_low.0),
            figures::short(signal.entropy.0),
        ),
    ]
}

/// What came of a step: the parsed action, the guest's part, the context.
fn fact_rows(
    app: &App,
    episode: &EpisodeState,
    step: &StepState,
    at: usize,
) -> Vec<(&'static str, String, Role)> {
    let (action, role) = match (&step.malformed, step.finished) {
        (Some(reason), _) => (format!("did not parse: {}", one_line(reason)), Role::Bad),
        (None, true) => (wording::actions(&step.actions), Role::Running),
        (None, false) => ("writing".to_owned(), Role::Muted),
    };
    let mut rows = vec![("action", action, role)];
    if step.finished {
        let answer = if step.malformed.is_some() {
            "not asked".to_owned()
        } else {
            format!("done in {}", figures::duration(step.act_ms))
        };
        let timing = format!(
            "{answer}, reply written in {}",
            figures::duration(step.generate_ms),
        );
        rows.push(("guest", timing, Role::Muted));
    }
    if let Some(failure) = &episode.failure {
        let class = wording::error_class(failure.class);
        let text = format!("{class}: {}", one_line(&failure.message));
        rows.insert(1, ("fault", text, Role::Danger));
    }
    if let Some(signal) = episode.learned.get(at) {
        let [ratio, clip] = signal_words(signal);
        rows.push(("trained", ratio, Role::Text));
        rows.push(("", clip, Role::Text));
    }
    let context = app.run.header.as_ref().map_or(0, |h| h.context_tokens);
    if !episode.is_running() && context > 0 {
        let left = context.saturating_sub(episode.tokens);
        let text = format!("{} of {context} tokens used, {left} left", episode.tokens);
        rows.push(("context", text, Role::Muted));
    }
    rows
}
