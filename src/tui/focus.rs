//! Who gets a key: text input, then the popup, then the focused pane, then its screen, then
//! everything. Exactly one pane is focused; the hint bar is computed from this chain.

use crate::tui::app::{App, Overlay, Pane, Screen};
use crate::tui::commands::{COMMANDS, CommandRow, Scope};
use crate::tui::debug::held_here;
use crate::tui::keys::Key;
use crate::tui::lease;
use crate::tui::machines::has_machines;

/// A chord that was begun is explained after so long.
pub const EXPLAIN_MS: u64 = 400;

/// Keys pressed that begin a chord.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pending {
    /// Which, in order.
    pub keys: Vec<Key>,
    /// Since when, by the console's clock.
    pub since_ms: u64,
}

/// Scopes whose keys hold while nothing lies over the screen, the nearest first.
pub fn scopes(app: &App) -> Vec<Scope> {
    let screen = app.ui.screen;
    let pane = has_focused_detail(app).then_some(Scope::Detail(screen));
    let held = (screen == Screen::Rollout && held_here(app).is_some()).then_some(Scope::Held);
    let mut all: Vec<_> = held.into_iter().chain(pane).collect();
    all.extend([Scope::On(screen), Scope::Global]);
    all
}

/// Whether the detail pane of the screen has the keys.
pub fn has_focused_detail(app: &App) -> bool {
    app.ui.pane == Pane::Detail && has_detail(app.ui.screen)
}

/// Whether a screen has a second pane that takes keys of its own.
pub fn has_detail(screen: Screen) -> bool {
    COMMANDS
        .iter()
        .any(|row| row.scope == Scope::Detail(screen))
}

/// Whether a command means something for the run shown.
pub fn means_something(app: &App, row: &CommandRow) -> bool {
    !row.machines || has_machines(&app.run)
}

/// Whether a chord that was begun is to be explained.
pub fn explains(app: &App) -> bool {
    !app.ui.pending.keys.is_empty() && app.ui.now_ms >= app.ui.pending.since_ms + EXPLAIN_MS
}

/// Whether that became so since `before_ms`.
pub fn is_due(app: &App, before_ms: u64) -> bool {
    explains(app) && before_ms < app.ui.pending.since_ms + EXPLAIN_MS
}

/// Keys that do something now, with a word each; the last two are never left out.
pub fn hints(app: &App) -> Vec<(String, &'static str)> {
    if let Some(overlay) = &app.ui.overlay {
        let fixed = overlay_hints(overlay).iter();
        return fixed
            .map(|(key, word)| ((*key).to_owned(), *word))
            .collect();
    }
    if !app.ui.pending.keys.is_empty() {
        let ahead = app.ui.keymap.ahead(&app.ui.pending.keys, &scopes(app));
        let mut all: Vec<_> = ahead
            .into_iter()
            .map(|(rest, binding)| (rest, binding.row.name))
            .collect();
        all.push(("esc".to_owned(), "give up"));
        return all;
    }
    let can_command = app.can_command().is_ok();
    let has_line = app.ui.timeline.is_some();
    let shown = |row: &&CommandRow| {
        !row.hint.is_empty()
            && (can_command || !row.operates)
            && (has_line || !row.recorded)
            && means_something(app, row)
    };
    let of = |scope: Scope| COMMANDS.iter().filter(move |row| row.scope == scope);
    let rows = scopes(app).into_iter().flat_map(of).filter(shown);
    let known = rows.filter_map(|row| {
        let key = app.ui.keymap.keys_of(row).into_iter().next()?;
        Some((key, row.hint))
    });
    lease::hints(app)
        .iter()
        .map(|(key, word)| ((*key).to_owned(), *word))
        .chain(known)
        .collect()
}

fn overlay_hints(overlay: &Overlay) -> &'static [(&'static str, &'static str)] {
    match overlay {
        Overlay::Help(help) if help.types => &[("enter", "run"), ("esc", "all")],
        Overlay::Help(_) => &[
            ("j k", "choose"),
            ("/", "search"),
            ("tab", "legend"),
            ("enter", "run"),
            ("esc", "close"),
        ],
        Overlay::Reply(_) => &[("ctrl-s", "send"), ("esc", "leave")],
        Overlay::About => &[("any key", "close")],
        Overlay::MachineLog(_) => &[("j k", "scroll"), ("G", "newest"), ("esc", "close")],
        Overlay::Page(_) => &[("j k", "scroll"), ("esc", "close")],
        Overlay::Prompt(_) => &[
            ("↑ ↓", "choose"),
            ("tab", "complete"),
            ("enter", "run"),
            ("esc", "close"),
        ],
        Overlay::Filter(_) => &[("enter", "apply"), ("esc", "close")],
        Overlay::Search(_) => &[("enter", "find"), ("esc", "close")],
        Overlay::Launch(_) => &[
            ("↑ ↓", "field"),
            ("← →", "choose"),
            ("enter", "launch"),
            ("esc", "give up"),
        ],
        Overlay::Quit(_) => &[("← →", "choose"), ("enter", "do it"), ("esc", "stay")],
        Overlay::Confirm(_) => &[("y", "yes"), ("n", "no")],
        Overlay::Naming(..) => &[("enter", "do it"), ("esc", "give up")],
    }
}
