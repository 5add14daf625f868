//! Logs: what happened? One stream, newest at the bottom; the selected row in full below it.

use ratatui::layout::{Constraint, Layout, Rect};

use crate::event::NoticeLevel;
use crate::tui::app::LogSource;
use crate::tui::layout::SizeClass;
use crate::tui::logs::{LogRow, log_rows, source_name};
use crate::tui::text::{one_line, pad};
use crate::tui::theme::Role;
use crate::tui::update::Target;
use crate::tui::{figures, wording};

use super::Sketch;
use super::sketch::FrameTitle;

/// Rows of the pane with the selected row.
const DETAIL_ROWS: u16 = 6;

pub(super) fn draw(sketch: &mut Sketch<'_>, area: Rect, class: SizeClass) {
    let rows = log_rows(sketch.app);
    let detail = if class >= SizeClass::Full {
        DETAIL_ROWS
    } else {
        0
    };
    let [list, below] =
        Layout::vertical([Constraint::Fill(1), Constraint::Length(detail)]).areas(area);
    let inner = if class >= SizeClass::Full {
        sketch.frame(list, &list_title(sketch, rows.len()))
    } else {
        list
    };
    if rows.is_empty() {
        sketch.center(inner, "nothing here", Role::Muted);
        return;
    }
    let up = sketch.app.ui.logs.up.min(rows.len() - 1);
    let selected = rows.len() - 1 - up;
    let shown = usize::from(inner.height);
    // The selection stays on screen; following, the newest row is the last line.
    let end = rows
        .len()
        .min(selected + shown / 2 + 1)
        .max(rows.len().min(shown));
    let first = end.saturating_sub(shown);
    for (line, (place, row)) in rows.iter().enumerate().skip(first).take(shown).enumerate() {
        let row_area = Rect {
            y: inner.y + line as u16,
            height: 1,
            ..inner
        };
        draw_row(sketch, row_area, row);
        if place == selected {
            sketch.select(row_area);
        }
        sketch
            .drawn
            .targets
            .push((row_area, Target::LogRow(rows.len() - 1 - place)));
    }
    if detail > 0 {
        draw_detail(sketch, below, &rows[selected]);
    }
}

fn list_title(sketch: &Sketch<'_>, count: usize) -> FrameTitle {
    let logs = &sketch.app.ui.logs;
    let filter = logs.filter.as_ref().map_or(String::new(), |filter| {
        format!("  filter /{}/", one_line(&filter.text))
    });
    let search = logs.search.as_ref().map_or(String::new(), |search| {
        format!("  search /{}/", one_line(&search.text))
    });
    let follows = if logs.up == 0 {
        ("following", Role::Good)
    } else {
        ("held", Role::Warning)
    };
    FrameTitle {
        left: format!(
            "{count} rows  level {} and up  source {}{filter}{search}",
            logs.least.name(),
            source_name(logs.source)
        ),
        right: Some((follows.0.to_owned(), follows.1)),
        focused: true,
    }
}

fn level_words(level: NoticeLevel) -> (&'static str, Role) {
    match level {
        NoticeLevel::Info => ("info", Role::Muted),
        NoticeLevel::Warning => ("warn", Role::Warning),
        NoticeLevel::Error => ("ERROR", Role::Danger),
    }
}

fn source_role(source: LogSource) -> Role {
    match source {
        LogSource::Journal => Role::Running,
        LogSource::Failures => Role::Bad,
        LogSource::All | LogSource::Notices | LogSource::Trainer => Role::Muted,
    }
}

fn draw_row(sketch: &mut Sketch<'_>, area: Rect, row: &LogRow) {
    let (level, role) = level_words(row.level);
    let at = sketch.put(area, 0, 0, &pad(&figures::time(row.at_ms), 8), Role::Muted) + 1;
    let at = sketch.put(area, at, 0, &pad(level, 5), role) + 1;
    let at = sketch.put(
        area,
        at,
        0,
        &pad(source_name(row.source), 7),
        source_role(row.source),
    ) + 1;
    let times = if row.count > 1 {
        format!("{}x ", row.count)
    } else {
        String::new()
    };
    let at = sketch.put(area, at, 0, &times, Role::Warning);
    let role = if row.level == NoticeLevel::Info {
        Role::Text
    } else {
        role
    };
    sketch.put(area, at, 0, &one_line(&row.text), role);
}

fn draw_detail(sketch: &mut Sketch<'_>, area: Rect, row: &LogRow) {
    let ago = figures::age(sketch.app.run_now_ms().saturating_sub(row.at_ms));
    let title = FrameTitle {
        left: format!(
            "{} at {}",
            source_name(row.source),
            figures::time(row.at_ms)
        ),
        right: Some((format!("{ago} ago"), Role::Muted)),
        focused: false,
    };
    let inner = sketch.frame(area, &title);
    let body = Rect {
        height: inner.height.saturating_sub(1),
        ..inner
    };
    sketch.text(body, &row.text, Role::Text, 0);
    let mut facts = Vec::new();
    if let Some(command) = &row.command {
        let run = one_line(sketch.app.run_name());
        facts.push(format!("$ arpo ctl {run} {}", wording::ctl(command)));
    }
    if row.count > 1 {
        facts.push(format!(
            "{} times since {}",
            row.count,
            figures::time(row.first_ms)
        ));
    }
    if let Some(episode) = row.episode.and_then(|id| sketch.app.run.episodes.get(&id)) {
        facts.push(format!(
            "enter: {} of {}",
            crate::tui::fleet::episode_name(episode),
            one_line(&episode.task.0)
        ));
        facts.extend(episode.end.map(|end| wording::end(end).to_owned()));
    }
    sketch.put(
        inner,
        0,
        inner.height.saturating_sub(1),
        &facts.join("  "),
        Role::Muted,
    );
}
