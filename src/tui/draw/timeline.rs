//! The row of a recorded run's time line.

use ratatui::layout::Rect;

use crate::tui::figures;
use crate::tui::text::width;
use crate::tui::theme::Role;
use crate::tui::timeline::TimelineUi;

use super::Sketch;

/// Draws it: whether it plays, the place between start and end, the time of both.
pub(super) fn draw(sketch: &mut Sketch<'_>, area: Rect, timeline: &TimelineUi) {
    let Some(info) = &timeline.info else {
        sketch.put(area, 1, 0, "reading the log", Role::Muted);
        return;
    };
    let run = &sketch.app.run;
    let state = match timeline.speed {
        Some(speed) => format!("play x{speed}"),
        None => "still".to_owned(),
    };
    let role = if timeline.speed.is_some() {
        Role::Running
    } else {
        Role::Muted
    };
    let iteration = run.iteration.map_or(0, |iteration| iteration.0 + 1);
    let last = info.marks.last().map_or(0, |mark| mark.iteration + 1);
    let right = format!(
        " {}/{}  iteration {iteration}/{last} ",
        figures::time(run.at_ms),
        figures::time(info.end_ms)
    );
    let at = sketch.put(area, 1, 0, &state, role) + 1;
    let cells = usize::from(area.width.saturating_sub(at)).saturating_sub(width(&right));
    let whole = info.end_ms.max(1) as f64;
    let cell_of = |at_ms: u64| {
        let part = (at_ms as f64 / whole).clamp(0.0, 1.0);
        (part * cells.saturating_sub(1) as f64).round() as usize
    };
    let here = cell_of(run.at_ms);
    let mut line: Vec<char> = (0..cells)
        .map(|cell| if cell <= here { '━' } else { '─' })
        .collect();
    let room_a_mark = cells / info.marks.len().max(1);
    for mark in info.marks.iter().filter(|_| room_a_mark >= 3) {
        if let Some(cell) = line.get_mut(cell_of(mark.at_ms)) {
            *cell = if cell == &'━' { '┿' } else { '┼' };
        }
    }
    let text = |part: &[char]| part.iter().collect::<String>();
    if let Some(cell) = line.get_mut(here) {
        *cell = '●';
        let after = sketch.put(area, at, 0, &text(&line[..here]), Role::Running);
        let after = sketch.put(area, after, 0, "●", Role::Focus);
        sketch.put(area, after, 0, &text(&line[here + 1..]), Role::Frame);
    }
    sketch.put_right(area, 0, &[(right, Role::Text)]);
}
