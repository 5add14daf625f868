//! What is known of the terminal: support questions begin here.

use ratatui::layout::Rect;

use crate::tui::app::App;
use crate::tui::text::{one_line, wrap};
use crate::tui::theme::Role;

use super::Sketch;
use super::overlay::popup;
use super::sketch::FrameTitle;

/// Label column.
const LABEL: u16 = 11;

pub(super) fn draw(sketch: &mut Sketch<'_>, area: Rect) {
    let rows = rows_of(sketch.app);
    let width = area.width.min(84);
    let room = usize::from(width.saturating_sub(LABEL + 4)).max(1);
    let lines: Vec<(&str, String)> = rows
        .iter()
        .flat_map(|(label, text)| {
            let wrapped = wrap(text, room);
            let labels = std::iter::once(*label).chain(std::iter::repeat(""));
            labels.zip(wrapped).collect::<Vec<_>>()
        })
        .collect();
    let place = popup(area, width, lines.len() as u16 + 2);
    sketch.clear(place);
    let title = FrameTitle {
        left: format!("arpo {}", env!("CARGO_PKG_VERSION")),
        right: Some(("any key closes".to_owned(), Role::Muted)),
        focused: true,
    };
    let inner = sketch.frame(place, &title);
    for (row, (label, text)) in lines.iter().enumerate() {
        sketch.put(inner, 1, row as u16, label, Role::Muted);
        sketch.put(inner, 1 + LABEL, row as u16, text, Role::Text);
    }
}

fn rows_of(app: &App) -> Vec<(&'static str, String)> {
    let terminal = &app.ui.terminal;
    let answers = &terminal.answers;
    let known = |text: Option<String>| text.unwrap_or_else(|| "not answered".to_owned());
    let sync = answers.sync.map(|setting| match setting {
        0 | 4 => "no".to_owned(),
        _ => "yes".to_owned(),
    });
    let (cell_width, cell_height) = terminal.cell_px();
    let link = match terminal.link.map(|link| (link.round_trip_ms, link.goodput)) {
        Some((Some(ms), Some(rate))) => format!("{ms} ms, {rate} bytes/s"),
        Some((Some(ms), None)) => format!("{ms} ms"),
        Some((None, _)) => "does not answer; paced by time".to_owned(),
        None => "not measured yet".to_owned(),
    };
    let focus = terminal.graphics.focus;
    let tiles = terminal.graphics.tiles;
    vec![
        ("terminal", known(answers.brand.as_deref().map(one_line))),
        ("TERM", one_line(&terminal.environment.term)),
        (
            "pictures",
            format!("{focus}; tiles: {tiles} ({})", one_line(&terminal.why)),
        ),
        ("asked for", format!("--images {}", terminal.images.name())),
        (
            "their rate",
            format!("at most {} kB/s", terminal.picture_rate / 1_000),
        ),
        ("cell", format!("{cell_width} x {cell_height} pixels")),
        ("one piece", known(sync)),
        ("colors", format!("{:?}", app.ui.theme.depth())),
        ("line", link),
        ("answers", terminal.raw.join("  ")),
    ]
}
