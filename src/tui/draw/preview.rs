//! The selected sample beside the matrix: picture, task, thought, action, group, desktop.

use ratatui::layout::Rect;

use crate::event::{EpisodeState, MachineView, StepState};
use crate::tui::app::App;
use crate::tui::fleet::{
    FleetRow, Note, RowKey, episode_name, machine_of, newest_pictures, selected_place,
};
use crate::tui::picture::Mark;
use crate::tui::text::{first_fit, one_line, pad, wrap};
use crate::tui::theme::Role;
use crate::tui::{figures, wording};
use crate::types::{ImageHash, ScreenSize, TaskId};

use super::Sketch;
use super::fleet::{cell_role, note_words};
use super::machine;
use super::sketch::FrameTitle;

/// Rows of words that a picture leaves at least.
const WORDS_ROWS: u16 = 11;
/// The shape pictures most often have; only for sharing out rows.
const USUAL_SCREEN: ScreenSize = ScreenSize {
    width: 4,
    height: 3,
};

pub(super) fn draw(sketch: &mut Sketch<'_>, area: Rect, rows: &[FleetRow]) {
    let (row, sample) = selected_place(sketch.app, rows);
    let Some((row, cell)) = rows
        .get(row)
        .and_then(|row| Some((row, row.cells.get(sample)?)))
    else {
        return;
    };
    let episode = cell.episode.and_then(|id| sketch.app.run.episodes.get(&id));
    let of_desktop = machine_of(&sketch.app.run, row, sample);
    let name = match (episode, of_desktop, row.key) {
        // The machine is what there is to show of it.
        (None, Some((desktop, _)), RowKey::Desktops(_)) => format!("d{desktop:02}"),
        (None, ..) => format!("g{:02}.s{sample}", row.key.number()),
        (Some(episode), ..) => episode_name(episode),
    };
    let task: &TaskId = episode.map_or(&row.task, |episode| &episode.task);
    let title = FrameTitle {
        left: format!("{name}  {}", one_line(&task.0)),
        right: Some((cell.code(), cell_role(cell))),
        focused: false,
    };
    let inner = sketch.frame(area, &title);
    let machine = of_desktop.map(|(_, machine)| machine);
    let Some(episode) = episode else {
        match machine {
            Some(machine) => drop(machine::draw_rows(sketch, inner, machine, LABEL)),
            None => sketch.center(inner, "not begun", Role::Muted),
        }
        return;
    };
    let is_running = episode.is_running();
    let has_picture = newest_pictures(&sketch.app.run, episode).0.is_some();
    let more = match machine {
        // Without a picture all the room is for words.
        Some(_) if is_running && !has_picture => inner.height,
        Some(_) => machine::ROWS,
        None => 0,
    };
    let room = inner.height.saturating_sub(WORDS_ROWS + more);
    let (_, rows_wanted) = crate::tui::picture::cells_for(USUAL_SCREEN, inner.width, room);
    let picture = Rect {
        height: rows_wanted,
        ..inner
    };
    let shown = shown_step(episode);
    let image = draw_newest(sketch, picture, episode);
    if let Some((desktop, _)) = of_desktop.filter(|_| is_running) {
        machine::draw_picture_note(sketch, area, desktop, image);
    }
    let words = Rect {
        y: picture.bottom(),
        height: inner.height.saturating_sub(picture.height),
        ..inner
    };
    draw_words(sketch, words, row, (episode, machine), shown);
}

/// The newest step that was carried out, or the one under way.
fn shown_step(episode: &EpisodeState) -> Option<(usize, &StepState)> {
    let steps = || episode.steps.iter().enumerate().rev();
    steps()
        .find(|(_, step)| step.finished)
        .or_else(|| steps().next())
}

/// The newest picture; returns which that is.
fn draw_newest<'a>(
    sketch: &mut Sketch<'a>,
    area: Rect,
    episode: &'a EpisodeState,
) -> Option<&'a ImageHash> {
    let (image, older) = newest_pictures(&sketch.app.run, episode);
    let last = episode
        .steps
        .last()
        .filter(|step| step.image.as_ref() == image);
    let mark = last.and_then(|step| step.actions.iter().find_map(Mark::of));
    sketch.picture(area, image, older, mark.as_ref());
    image
}

/// Label column of the words.
const LABEL: u16 = 9;

fn draw_words(
    sketch: &mut Sketch<'_>,
    area: Rect,
    row: &FleetRow,
    (episode, machine): (&EpisodeState, Option<&MachineView>),
    step: Option<(usize, &StepState)>,
) {
    let mut pen = Rows { area, at: 0 };
    let is_up = machine.is_none_or(|machine| machine.status.phase.is_up());
    // What is not as it should be comes first.
    if let Some(machine) = machine.filter(|_| !is_up) {
        pen.machine(sketch, machine);
    }
    if !row.instruction.is_empty() {
        pen.wrapped(sketch, "task", &row.instruction, Role::Text, 3);
    }
    if let Some((number, step)) = step {
        let left = area.height.saturating_sub(pen.at + 6).max(1);
        pen.wrapped(sketch, "thought", &step.thought, Role::Text, left);
        let (action, role) = match &step.malformed {
            Some(reason) => (format!("did not parse: {}", one_line(reason)), Role::Bad),
            None => (wording::actions(&step.actions), Role::Running),
        };
        pen.wrapped(sketch, "action", &action, role, 2);
        let took = figures::duration(step.generate_ms + step.act_ms);
        pen.line(
            sketch,
            "step",
            &format!("{}  {took}  {} tokens", number + 1, step.reply_tokens),
        );
    }
    if let Some(failure) = &episode.failure {
        let text = format!(
            "{}: {}",
            wording::error_class(failure.class),
            failure.message
        );
        pen.wrapped(sketch, "fault", &text, Role::Danger, 2);
    }
    let (note, note_role) = note_words(&row.note, usize::from(area.width.saturating_sub(LABEL)));
    let is_told = matches!(
        (row.key, &row.note),
        (RowKey::Desktops(_), Note::Machines(_))
    );
    if !note.is_empty() && !is_told {
        pen.wrapped(sketch, "group", &note, note_role, 1);
    }
    let ran = match episode.ended_ms {
        Some(ended_ms) => ended_ms,
        None => sketch.app.run_now_ms(),
    };
    let ran = figures::duration(ran.saturating_sub(episode.started_ms));
    let ended = episode.end.map_or("running", wording::end);
    let head = format!("{}  {ended}  {ran}", episode.desktop);
    let more = desktop_words(sketch.app, episode, machine);
    let full = format!("{head}{}{more}", acts_words(episode));
    let desktop = if machine.is_some() {
        let room = usize::from(area.width.saturating_sub(LABEL));
        first_fit(&[full, format!("{head}{more}")], room)
    } else {
        full
    };
    pen.line(sketch, "desktop", &desktop);
    if let Some(machine) = machine.filter(|_| is_up) {
        pen.machine(sketch, machine);
    }
    pen.signal(sketch, episode);
    pen.steps(sketch, episode);
}

/// What an action of the episode takes.
fn acts_words(episode: &EpisodeState) -> String {
    let last = episode.steps.iter().rev().find(|step| step.finished);
    last.map_or(String::new(), |last| {
        format!("  acts in {}", figures::duration(last.act_ms))
    })
}

/// How old an episode's desktop's picture is, and what went wrong on it.
fn desktop_words(app: &App, episode: &EpisodeState, machine: Option<&MachineView>) -> String {
    let mut words = String::new();
    // Where there is a machine, the frame tells the age of its picture.
    let is_told = !episode.is_running() || machine.is_some();
    if let (false, Some(step)) = (is_told, episode.steps.last()) {
        let age = app.run_now_ms().saturating_sub(step.observed_ms);
        words = format!("{words}  frame {} old", figures::age(age));
    }
    let desktop = app.run.desktops.get(episode.desktop as usize);
    match desktop.map_or(0, |desktop| desktop.errors) {
        0 => words,
        1 => format!("{words}  1 error"),
        errors => format!("{words}  {errors} errors"),
    }
}

/// Labelled rows, one below the other.
struct Rows {
    area: Rect,
    at: u16,
}

impl Rows {
    fn line(&mut self, sketch: &mut Sketch<'_>, label: &str, text: &str) {
        self.wrapped(sketch, label, text, Role::Text, 1);
    }

    fn machine(&mut self, sketch: &mut Sketch<'_>, machine: &MachineView) {
        let left = Rect {
            y: self.area.y + self.at,
            height: self.area.height.saturating_sub(self.at),
            ..self.area
        };
        self.at += machine::draw_rows(sketch, left, machine, LABEL);
    }

    /// What training makes of the episode, once it does.
    fn signal(&mut self, sketch: &mut Sketch<'_>, episode: &EpisodeState) {
        let Some(reward) = episode.reward else {
            return;
        };
        let advantage = episode.advantage.map_or(f64::NAN, |advantage| advantage.0);
        let text = format!(
            "reward {}  advantage {}",
            figures::fraction(f64::from(reward)),
            figures::signed(advantage)
        );
        self.line(sketch, "signal", &text);
    }

    /// The newest steps that fit below, one a row.
    fn steps(&mut self, sketch: &mut Sketch<'_>, episode: &EpisodeState) {
        let room = usize::from(self.area.height.saturating_sub(self.at + 1));
        if room < 2 {
            return;
        }
        self.at += 1;
        let first = episode.steps.len().saturating_sub(room);
        for (number, step) in episode.steps.iter().enumerate().skip(first) {
            let action = match (&step.malformed, step.finished) {
                (Some(_), _) => "did not parse".to_owned(),
                (None, true) => wording::actions(&step.actions),
                (None, false) => "thinking".to_owned(),
            };
            let text = format!("{:>2} {}", number + 1, pad(&action, 20));
            let at = sketch.put(self.area, 0, self.at, &text, Role::Muted) + 1;
            sketch.put(
                self.area,
                at,
                self.at,
                &one_line(&step.thought),
                Role::Muted,
            );
            self.at += 1;
        }
    }

    fn wrapped(&mut self, sketch: &mut Sketch<'_>, label: &str, text: &str, role: Role, most: u16) {
        let left = self.area.height.saturating_sub(self.at);
        let body = Rect {
            x: self.area.x + LABEL.min(self.area.width),
            y: self.area.y + self.at,
            width: self.area.width.saturating_sub(LABEL),
            height: most.min(left),
        };
        if body.height == 0 {
            return;
        }
        sketch.put(self.area, 0, self.at, label, Role::Muted);
        let used = sketch.text(body, text, role, 0);
        self.at += used
            .max(1)
            .min(wrap(text, usize::from(body.width)).len().max(1) as u16);
    }
}
