//! Help: keys and commands from their table, those of the focused pane first; on its second page
//! the codes and colors as the theme shows them.

use ratatui::layout::Rect;

use crate::tui::app::App;
use crate::tui::commands::{CommandRow, Danger};
use crate::tui::help::{Help, HelpLine, help_commands, help_lines};
use crate::tui::machines::has_machines;
use crate::tui::page::PageLine;
use crate::tui::text::{one_line, pad};
use crate::tui::theme::Role;

use super::Sketch;
use super::overlay::danger_role;
use super::sketch::FrameTitle;

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

/// The same of desktops with machines of their own, each with the code that it stands below.
const MACHINE_CODES: [(&str, &str, Role, &str); 2] = [
    (
        "b",
        "b!",
        Role::Warning,
        "its desktop's machine should be up by now, or does not answer",
    ),
    (
        "X!",
        "X!",
        Role::Danger,
        "of a desktop: its machine ended, or is quarantined",
    ),
];

/// What colors mean beside text.
const COLORS: [(Role, &str, &str); 12] = [
    (
        Role::Selection,
        "selected",
        "the row or cell that keys are for",
    ),
    (
        Role::Focus,
        "focused",
        "frame and title of the pane that has the keys",
    ),
    (Role::Key, "key", "what can be pressed"),
    (Role::Good, "good", "success, a reward that rose"),
    (Role::Bad, "bad", "a failed outcome, a reward that fell"),
    (
        Role::Warning,
        "warning",
        "needs a look: stuck, stale, dead group",
    ),
    (Role::Danger, "danger", "errors, a lost connection"),
    (Role::Running, "running", "at work"),
    (Role::Waiting, "waiting", "waits for its turn"),
    (
        Role::Replay,
        "replay",
        "taken from the replay buffer; paused",
    ),
    (Role::Muted, "muted", "labels and units"),
    (Role::Brand, "brand", "heads of sections"),
];

/// What a command can cost.
const DANGERS: [(Danger, &str); 4] = [
    (Danger::Harmless, "only the view changes"),
    (
        Danger::Reversible,
        "asks the engine at once; can be changed back",
    ),
    (Danger::Costly, "asks y or n, naming what is lost"),
    (
        Danger::Irreversible,
        "wants the name typed; the demo asks y or n",
    ),
];

/// Number of lines of the second page.
pub fn legend_lines(app: &App) -> usize {
    legend(app).len()
}

pub(super) fn draw(sketch: &mut Sketch<'_>, area: Rect, help: &Help) {
    let lines = if help.legend {
        legend(sketch.app)
    } else {
        command_lines(sketch.app, &help.query)
    };
    let width = area.width.min(92);
    // The hint bar below it stays in view.
    let height = area
        .height
        .saturating_sub(1)
        .max(1)
        .min(lines.len() as u16 + 3);
    let popup = Rect {
        x: area.x + (area.width - width) / 2,
        y: area.y + (area.height - 1).saturating_sub(height) / 2,
        width,
        height,
    };
    sketch.clear(popup);
    let inner = sketch.frame(popup, &title(sketch.app, help));
    let shown = usize::from(inner.height.saturating_sub(1));
    let selected = if help.legend {
        help.selected
    } else {
        line_of(sketch.app, help)
    };
    let top = if help.legend {
        selected
    } else {
        selected.saturating_sub(shown / 2)
    };
    let top = top.min(lines.len().saturating_sub(shown));
    for (row, line) in lines.iter().skip(top).take(shown).enumerate() {
        sketch.put_all(inner, 1, row as u16, line);
        if !help.legend && top + row == selected {
            let line = Rect {
                y: inner.y + row as u16,
                height: 1,
                ..inner
            };
            sketch.select(line);
        }
    }
    draw_foot(sketch, inner, help);
}

fn title(app: &App, help: &Help) -> FrameTitle {
    let right = match (help.legend, help_commands(app, &help.query).len()) {
        (true, _) => "2/2 codes and colors".to_owned(),
        (false, count) => format!("1/2 {count} commands"),
    };
    FrameTitle {
        left: "Help".to_owned(),
        right: Some((right, Role::Muted)),
        focused: true,
    }
}

/// Last line: what is searched, and what the command in focus costs.
fn draw_foot(sketch: &mut Sketch<'_>, inner: Rect, help: &Help) {
    let Some(last) = inner.height.checked_sub(1) else {
        return;
    };
    let mut at = 1;
    if help.types || !help.query.is_empty() {
        at = sketch.put(inner, at, last, "/", Role::Key);
        at = sketch.put(inner, at, last, &one_line(&help.query), Role::Text) + 3;
    }
    let chosen = help_commands(sketch.app, &help.query)
        .get(help.selected)
        .copied();
    if let Some(row) = chosen.filter(|_| !help.legend) {
        let word = row.danger.word();
        at = sketch.put(inner, at, last, word, danger_role(row.danger)) + 3;
        if let Some(form) = row.ctl_form() {
            let run = one_line(sketch.app.run_name());
            let line = format!("$ arpo ctl {run} {form}");
            sketch.put(inner, at, last, &line, Role::Muted);
        }
    }
}

/// The line of the command in focus.
fn line_of(app: &App, help: &Help) -> usize {
    let lines = help_lines(app, &help.query);
    let commands = lines
        .iter()
        .enumerate()
        .filter(|(_, line)| matches!(line, HelpLine::Command(_)));
    commands
        .map(|(place, _)| place)
        .nth(help.selected)
        .unwrap_or(0)
}

fn command_lines(app: &App, query: &str) -> Vec<PageLine> {
    let lines: Vec<PageLine> = help_lines(app, query)
        .into_iter()
        .map(|line| match line {
            HelpLine::Title(title) => vec![(title, Role::Brand)],
            HelpLine::Command(row) => vec![
                (pad(&keys_of(app, row), 14), Role::Key),
                (pad(row.name, 17), Role::Muted),
                (row.doc.to_owned(), Role::Text),
            ],
        })
        .collect();
    if lines.is_empty() {
        return vec![vec![("nothing is called so".to_owned(), Role::Warning)]];
    }
    lines
}

fn legend(app: &App) -> Vec<PageLine> {
    let head = |text: &str| vec![(text.to_owned(), Role::Brand)];
    let line = |name: &str, role: Role, meaning: &str| {
        vec![
            (name.to_owned(), role),
            (
                " ".repeat(14_usize.saturating_sub(name.chars().count())),
                Role::Text,
            ),
            (meaning.to_owned(), Role::Text),
        ]
    };
    let mut all = vec![head("Codes of the matrix")];
    for (code, role, meaning) in CODES {
        all.push(line(code, role, meaning));
        let more = MACHINE_CODES.iter().filter(|(after, ..)| *after == code);
        for (_, code, role, meaning) in more.filter(|_| has_machines(&app.run)) {
            all.push(line(code, *role, meaning));
        }
    }
    all.push(head("Colors"));
    all.extend(COLORS.map(|(role, name, meaning)| line(name, role, meaning)));
    all.push(head("What a command can cost"));
    all.extend(DANGERS.map(|(class, meaning)| line(class.word(), danger_role(class), meaning)));
    all
}

/// The keys of a command as they are written, or how it is typed where it has none.
fn keys_of(app: &App, row: &CommandRow) -> String {
    let keys = app.ui.keymap.keys_of(row);
    if keys.is_empty() {
        return format!(":{}", row.name);
    }
    keys.join("  ")
}
