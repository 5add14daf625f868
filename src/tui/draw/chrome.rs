//! What every screen has: tabs, state of the run, messages, hints.

use ratatui::layout::Rect;

use crate::event::{PhaseState, RunState, TrainerState};
use crate::tui::app::{App, Link, SCREENS, SentCommand, SentStatus};
use crate::tui::term::LinkFigures;
use crate::tui::text::{one_line, width};
use crate::tui::theme::Role;
use crate::tui::update::Target;
use crate::tui::{figures, focus, lease, machines, wording};

use super::Sketch;

/// Without a sign of life for so long, the engine is worth a warning.
const SILENT_MS: u64 = 15_000;
/// Without events for so long, what is shown gets its age.
const QUIET_MS: u64 = 3_000;

/// First row: product, screens, run, connection.
pub(super) fn draw_tabs(sketch: &mut Sketch<'_>, area: Rect) {
    let is_wide = area.width >= 100;
    let mut at = 1;
    if is_wide {
        at = sketch.put(area, at, 0, "arpo", Role::Brand) + 2;
    }
    for (number, screen) in SCREENS.into_iter().enumerate() {
        let label = if area.width >= 80 {
            format!(" {} {} ", number + 1, screen.title())
        } else {
            format!(" {}{} ", number + 1, &screen.title()[..2])
        };
        let role = if sketch.app.ui.screen == screen {
            Role::Selection
        } else {
            Role::Muted
        };
        let start = at;
        at = sketch.put(area, at, 0, &label, role);
        let tab = Rect {
            x: area.x + start,
            width: at - start,
            ..area
        };
        sketch.drawn.targets.push((tab, Target::Tab(screen)));
    }
    let room = area.width.saturating_sub(at + 1);
    let right = Rect {
        x: area.x + at + 1,
        width: room,
        ..area
    };
    let pieces = connection(sketch.app, usize::from(room));
    sketch.put_right(right, 0, &pieces);
}

/// Run, connection and time, as many as fit into `room`; the connection always.
fn connection(app: &App, room: usize) -> Vec<(String, Role)> {
    let mut pieces = Vec::new();
    if app.ui.dropped > 0 {
        pieces.push((
            format!("dropped {}", figures::count(app.ui.dropped)),
            Role::Danger,
        ));
    }
    if app.run.missed > 0 {
        pieces.push((
            format!("{} events lost", figures::count(app.run.missed)),
            Role::Danger,
        ));
    }
    pieces.push(match (&app.ui.lost, app.ui.link) {
        (Some(lost), _) => {
            let gone = figures::age(app.ui.now_ms.saturating_sub(lost.since_ms));
            (format!("DISCONNECTED {gone}"), Role::Danger)
        }
        (None, Link::Recorded) => ("recorded".to_owned(), Role::Warning),
        (None, _) if app.run.is_over() => ("ended".to_owned(), Role::Muted),
        (None, Link::Live) => lease::header(app).unwrap_or(("live".to_owned(), Role::Good)),
        (None, Link::WatchOnly) => ("watching".to_owned(), Role::Good),
    });
    let silent_ms = app.ui.now_ms.saturating_sub(app.ui.alive_ms);
    if app.is_alive() && silent_ms >= SILENT_MS {
        pieces.push((format!("silent {}", figures::age(silent_ms)), Role::Danger));
    } else if app.is_alive() && !app.is_paused() && app.silence_ms() >= QUIET_MS {
        pieces.push((
            format!("no news {}", figures::age(app.silence_ms())),
            Role::Muted,
        ));
    }
    // The time is more worth than the line's figures, those more than the run's name.
    let place = pieces.len();
    let time = (figures::time(app.run_now_ms()), Role::Muted);
    let name = (one_line(app.run_name()), Role::Text);
    let wanted = [
        (place, Some(time)),
        (place, link_words(app.ui.terminal.link)),
        (0, Some(name)),
    ];
    for (place, piece) in wanted {
        if let Some(piece) = piece
            && cells(&pieces) + width(&piece.0) + 2 < room
        {
            pieces.insert(place, piece);
        }
    }
    let spaced = pieces
        .into_iter()
        .flat_map(|piece| [("  ".to_owned(), Role::Text), piece]);
    spaced.chain([(" ".to_owned(), Role::Text)]).collect()
}

/// Cells of pieces with the blanks before each.
fn cells(pieces: &[(String, Role)]) -> usize {
    pieces.iter().map(|(text, _)| width(text) + 2).sum()
}

/// The line to the terminal: `42ms 18kB/s`, `~` before a rate that is only a bound, `!` where
/// pictures are worse for its sake.
fn link_words(link: Option<LinkFigures>) -> Option<(String, Role)> {
    let link = link?;
    let Some(round_trip_ms) = link.round_trip_ms else {
        return Some(("link ?".to_owned(), Role::Warning));
    };
    let bound = if link.is_bound { "~" } else { "" };
    let rate = link.goodput.map_or(String::new(), |goodput| {
        format!(" {bound}{}B/s", figures::count(goodput))
    });
    let text = format!("{round_trip_ms}ms{rate}");
    if !link.is_degraded {
        return Some((text, Role::Muted));
    }
    Some((text + "!", Role::Warning))
}

/// The role of the trainer's state.
pub(super) fn state_role(state: TrainerState) -> Role {
    match state {
        TrainerState::Running | TrainerState::Stepping(_) => Role::Good,
        TrainerState::Starting | TrainerState::Pausing(_) | TrainerState::Stopping => Role::Warning,
        TrainerState::Paused(_) => Role::Replay,
        TrainerState::Finished => Role::Brand,
        TrainerState::Failed => Role::Danger,
    }
}

/// Second row: state, iteration, phase with progress, figures; what does not fit is left out.
pub(super) fn draw_status(sketch: &mut Sketch<'_>, area: Rect) {
    let app = sketch.app;
    let run = &app.run;
    let state = match run.trainer {
        TrainerState::Pausing(at) | TrainerState::Paused(at) => {
            format!(
                "{} at {}",
                wording::trainer(run.trainer),
                wording::safe_point(at)
            )
        }
        state => wording::trainer(state).to_owned(),
    };
    let mut at = sketch.put(area, 1, 0, &state, state_role(run.trainer)) + 2;
    if let Some(iteration) = run.iteration {
        let planned = run.header.as_ref().map_or(0, |header| header.iterations);
        at = sketch.put(area, at, 0, "iteration ", Role::Muted);
        at = sketch.put(
            area,
            at,
            0,
            &format!("{}/{planned}", iteration.0 + 1),
            Role::Text,
        ) + 2;
    }
    if let Some(phase) = run.phase() {
        at = draw_phase(sketch, area, at, phase) + 2;
    }
    // How many machines are up is told as fully as there is room.
    let room = usize::from(area.width.saturating_sub(at + 1));
    if let Some((forms, role)) = machines::fleet_forms(run, app.run_now_ms()) {
        let form = forms.iter().find(|form| width(form) + 4 <= room);
        if let Some(form) = form {
            at = sketch.put(area, at, 0, "vms ", Role::Muted);
            at = sketch.put(area, at, 0, form, role) + 2;
        }
    }
    for (name, value, role) in vitals(run) {
        let cells = (width(name) + width(&value) + 3) as u16;
        if at + cells > area.width {
            break;
        }
        at = sketch.put(area, at, 0, &format!("{name} "), Role::Muted);
        at = sketch.put(area, at, 0, &value, role) + 2;
    }
}

fn draw_phase(sketch: &mut Sketch<'_>, area: Rect, at: u16, phase: &PhaseState) -> u16 {
    let mut at = sketch.put(area, at, 0, wording::phase(phase.phase), Role::Running) + 1;
    if phase.total > 0 {
        let bar_cells: u16 = if area.width >= 110 { 14 } else { 8 };
        let part = f64::from(phase.done) / f64::from(phase.total);
        at = draw_progress(sketch, area, at, bar_cells, part) + 1;
        at = sketch.put(
            area,
            at,
            0,
            &format!("{}/{}", phase.done, phase.total),
            Role::Text,
        ) + 1;
    }
    let since = sketch.app.run_now_ms().saturating_sub(phase.since_ms);
    sketch.put(area, at, 0, &figures::age(since), Role::Muted)
}

/// A thin bar of `cells` cells filled to `part`.
pub(super) fn draw_progress(
    sketch: &mut Sketch<'_>,
    area: Rect,
    at: u16,
    cells: u16,
    part: f64,
) -> u16 {
    let filled = (part.clamp(0.0, 1.0) * f64::from(cells)).round() as usize;
    let at = sketch.put(area, at, 0, &"━".repeat(filled), Role::Running);
    sketch.put(
        area,
        at,
        0,
        &"─".repeat(usize::from(cells) - filled),
        Role::Frame,
    )
}

/// Figures of the run, the most telling first: name, value, role.
pub(super) fn vitals(run: &RunState) -> Vec<(&'static str, String, Role)> {
    let mut all = Vec::new();
    if let Some(last) = run.history.last() {
        all.push(("reward", figures::fraction(last.reward_mean.0), Role::Text));
        all.push(("std", figures::fraction(last.group_std.0), Role::Text));
        let role = if last.groups_zero_variance > 0 {
            Role::Warning
        } else {
            Role::Text
        };
        all.push((
            "dead",
            format!("{}/{}", last.groups_zero_variance, last.groups),
            role,
        ));
    }
    if !run.held.is_empty() {
        all.insert(0, ("held", run.held.len().to_string(), Role::Warning));
    }
    let errors = run.counters.all_errors();
    if errors > 0 {
        all.push(("errors", figures::count(errors), Role::Danger));
    }
    let busy = run
        .episodes
        .values()
        .filter(|episode| episode.is_running())
        .count();
    all.push((
        "busy",
        format!("{busy}/{}", run.settings.desktops),
        Role::Text,
    ));
    all.push(("policy", format!("v{}", run.policy.0), Role::Text));
    all.push((
        "replay",
        figures::count(run.stored_successes() as u64),
        Role::Replay,
    ));
    all.push((
        "episodes",
        figures::count(run.counters.episodes),
        Role::Text,
    ));
    all
}

/// Last row but one: a lost link, commands under way, or a message.
pub(super) fn draw_message(sketch: &mut Sketch<'_>, area: Rect) {
    let app = sketch.app;
    if let Some(question) = lease::question(app) {
        sketch.put(area, 1, 0, &question, Role::Warning);
        return;
    }
    let mut at = 1;
    for sent in app.ui.sent.iter().rev() {
        let before = at;
        at = sketch.put_all(area, at, 0, &command_progress(app, sent)) + 3;
        if at >= area.width || at == before {
            return;
        }
    }
    if let Some(message) = &app.ui.message {
        sketch.put(area, at, 0, &one_line(&message.text), message.role);
    } else if let Some(lost) = &app.ui.lost {
        let text = format!("the engine cannot be reached: {}", one_line(&lost.reason));
        sketch.put(area, at, 0, &text, Role::Danger);
    } else if let (1, Some(error)) = (at, app.run.summary.as_ref().and_then(|s| s.error.as_ref())) {
        sketch.put(
            area,
            at,
            0,
            &format!("the run failed: {}", one_line(error)),
            Role::Danger,
        );
    }
}

/// A command's way: `pause env-step  sent → accepted → done`.
fn command_progress(app: &App, sent: &SentCommand) -> Vec<(String, Role)> {
    let mut pieces = vec![(format!("{}  ", wording::command(&sent.request)), Role::Text)];
    let mut stages = vec![("sent".to_owned(), Role::Muted)];
    match &sent.status {
        SentStatus::Sent => {}
        SentStatus::Received => stages.push(("received".to_owned(), Role::Running)),
        SentStatus::Accepted => stages.push(("accepted".to_owned(), Role::Running)),
        SentStatus::Refused(reason) => {
            stages.push((format!("refused: {}", one_line(reason)), Role::Danger));
        }
        SentStatus::Unanswered => {
            stages.push((
                "no answer: the connection was lost".to_owned(),
                Role::Danger,
            ));
        }
        SentStatus::Done => {
            stages.push(("accepted".to_owned(), Role::Muted));
            stages.push(("done".to_owned(), Role::Good));
        }
    }
    for (place, (text, role)) in stages.into_iter().enumerate() {
        if place > 0 {
            pieces.push((" → ".to_owned(), Role::Muted));
        }
        pieces.push((text, role));
    }
    let is_open = matches!(
        sent.status,
        SentStatus::Sent | SentStatus::Received | SentStatus::Accepted
    );
    let waited = app.ui.now_ms.saturating_sub(sent.at_ms);
    if is_open && waited >= 1_000 {
        pieces.push((format!(" {}", figures::age(waited)), Role::Muted));
    }
    pieces
}

/// Last row: what the keys do here, by whoever has them.
pub(super) fn draw_hints(sketch: &mut Sketch<'_>, area: Rect) {
    let hints = focus::hints(sketch.app);
    // Help and quit come last in the table and are never left out.
    let (fixed, rest) = hints.split_at(hints.len().saturating_sub(2));
    let cells = |(key, word): &(String, &str)| (width(key) + width(word) + 3) as u16;
    let kept: u16 = rest.iter().map(cells).sum();
    let mut at = 1;
    for hint in fixed {
        if at + cells(hint) + kept <= area.width {
            at = put_hint(sketch, area, at, hint);
        }
    }
    for hint in rest {
        at = put_hint(sketch, area, at, hint);
    }
}

fn put_hint(sketch: &mut Sketch<'_>, area: Rect, at: u16, (key, word): &(String, &str)) -> u16 {
    let at = sketch.put(area, at, 0, key, Role::Key) + 1;
    sketch.put(area, at, 0, word, Role::Muted) + 2
}
