//! Help: keys and commands from their table, those of the screen first; codes of the matrix.

use ratatui::layout::Rect;

use crate::tui::app::{App, SCREENS, Screen};
use crate::tui::commands::{COMMANDS, CommandRow, Scope};
use crate::tui::keys::Key;
use crate::tui::text::pad;
use crate::tui::theme::Role;

use super::Sketch;
use super::sketch::FrameTitle;

/// A line of pieces by role.
type HelpLine = Vec<(String, Role)>;

/// What the codes of the matrix mean.
const CODES: [(&str, Role, &str); 10] = [
    ("·", Role::Waiting, "not begun"),
    ("b", Role::Running, "its desktop is being prepared"),
    (
        "r07",
        Role::Running,
        "at step 7; P07 while the run is paused",
    ),
    (
        "H07",
        Role::Warning,
        "held before its action at step 7; waits for a decision",
    ),
    (
        "!07",
        Role::Warning,
        "at step 7, and for more than three times the usual while",
    ),
    ("v", Role::Running, "its end state is being judged"),
    ("D1.0", Role::Good, "done; the outcome, good above .5"),
    ("F.00", Role::Bad, "done, and its last reply did not parse"),
    ("X!", Role::Danger, "ended by an error; no outcome"),
    (
        "~1.0",
        Role::Replay,
        "failed, and a stored success trains in its place",
    ),
];

/// Number of lines the help has.
pub fn help_lines(app: &App) -> usize {
    lines(app.ui.screen).len()
}

pub(super) fn draw(sketch: &mut Sketch<'_>, area: Rect, scroll: usize) {
    let all = lines(sketch.app.ui.screen);
    let width = area.width.min(92);
    let height = area.height.min(all.len() as u16 + 2);
    let popup = Rect {
        x: area.x + (area.width - width) / 2,
        y: area.y + (area.height - height) / 2,
        width,
        height,
    };
    sketch.clear(popup);
    let shown = usize::from(height.saturating_sub(2));
    let scroll = scroll.min(all.len().saturating_sub(shown));
    let rest = all.len().saturating_sub(scroll + shown);
    let right = if rest > 0 {
        format!("j k scroll, {rest} more")
    } else {
        "esc closes".to_owned()
    };
    let title = FrameTitle {
        left: "Help".to_owned(),
        right: Some((right, Role::Muted)),
        focused: true,
    };
    let inner = sketch.frame(popup, &title);
    for (row, line) in all.iter().skip(scroll).take(shown).enumerate() {
        sketch.put_all(inner, 1, row as u16, line);
    }
}

fn lines(screen: Screen) -> Vec<HelpLine> {
    let mut all = section(&format!("On {}", screen.title()), |row| {
        row.scope == Scope::On(screen)
    });
    all.extend(section("Run (asks the engine)", |row| {
        row.operates && row.scope == Scope::Global
    }));
    all.extend(section("Everywhere", |row| {
        row.scope == Scope::Global && !row.operates
    }));
    all.push(vec![("Codes of the matrix".to_owned(), Role::Brand)]);
    for (code, role, meaning) in CODES {
        all.push(vec![
            (pad(code, 14), role),
            (meaning.to_owned(), Role::Text),
        ]);
    }
    all.push(Vec::new());
    for other in SCREENS.into_iter().filter(|other| *other != screen) {
        all.extend(section(&format!("On {}", other.title()), |row| {
            row.scope == Scope::On(other)
        }));
    }
    all
}

fn section(title: &str, wanted: impl Fn(&CommandRow) -> bool) -> Vec<HelpLine> {
    let mut lines = vec![vec![(title.to_owned(), Role::Brand)]];
    for row in COMMANDS.iter().filter(|row| wanted(row)) {
        lines.push(vec![
            (pad(&keys_of(row), 14), Role::Key),
            (pad(row.name, 17), Role::Muted),
            (row.doc.to_owned(), Role::Text),
        ]);
    }
    lines.push(Vec::new());
    lines
}

/// The keys of a command as they are written, or how it is typed where it has none.
pub(super) fn keys_of(row: &CommandRow) -> String {
    if row.keys.is_empty() {
        return format!(":{}", row.name);
    }
    let keys = row.keys.iter().filter_map(|name| name.parse().ok());
    keys.map(|key: Key| key.to_string())
        .collect::<Vec<_>>()
        .join(" ")
}
