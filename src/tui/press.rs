//! What a key does, by whoever has the keys: text input, popup, pane, screen, everything.

use crossterm::event::KeyCode;

use crate::tui::app::{App, Overlay, Question, QuitChoice};
use crate::tui::commands::{
    CommandRow, Scope, command_named, invoke, run_line, send, set_filter, set_search,
};
use crate::tui::debug;
use crate::tui::focus::{Pending, scopes};
use crate::tui::help::{Help, help_commands};
use crate::tui::keymap::Meaning;
use crate::tui::keys::{Key, chord_name};
use crate::tui::launch::LaunchReply;
use crate::tui::lease;
use crate::tui::machine_log::MachineLogUi;
use crate::tui::page::Page;
use crate::tui::prompt::{Prompt, PromptReply, edit};
use crate::tui::theme::Role;
use crate::tui::update::{Effect, Exit};

/// Takes a key in.
pub(super) fn press(app: &mut App, key: Key) -> Vec<Effect> {
    // A question of another console does not take the keys from what is being typed.
    if app.ui.overlay.is_none()
        && app.ui.pending.keys.is_empty()
        && let Some(answer) = lease::answer(app, key)
    {
        return vec![Effect::Lease(answer)];
    }
    match app.ui.overlay.take() {
        None => press_on_screen(app, key),
        Some(Overlay::Help(help)) => press_in_help(app, key, help),
        Some(Overlay::Page(page)) => press_in_page(app, key, page),
        Some(Overlay::MachineLog(log)) => press_in_log(app, key, log),
        Some(Overlay::Prompt(prompt)) => match prompt.press(key, app) {
            PromptReply::Open(prompt) => {
                app.ui.overlay = Some(Overlay::Prompt(prompt));
                Vec::new()
            }
            PromptReply::Closed => Vec::new(),
            PromptReply::Run(line) => {
                app.ui.typed.push(line.clone());
                run_line(app, &line)
            }
        },
        Some(Overlay::Filter(text)) => {
            press_in_filter(app, key, text, false);
            Vec::new()
        }
        Some(Overlay::Search(text)) => {
            press_in_filter(app, key, text, true);
            Vec::new()
        }
        Some(Overlay::Launch(form)) => match form.press(key, &app.run) {
            LaunchReply::Open(form) => {
                app.ui.overlay = Some(Overlay::Launch(form));
                Vec::new()
            }
            LaunchReply::Closed => Vec::new(),
            LaunchReply::Launch(command) => send(app, command),
        },
        Some(Overlay::Reply(editor)) => debug::press_in_editor(app, key, editor),
        // Any key closes it.
        Some(Overlay::About) => Vec::new(),
        Some(Overlay::Quit(choice)) => press_in_quit(app, key, choice),
        Some(Overlay::Confirm(question)) => press_in_confirm(app, key, question),
        Some(Overlay::Naming(question, typed)) => press_in_naming(app, key, question, typed),
    }
}

fn press_on_screen(app: &mut App, key: Key) -> Vec<Effect> {
    let mut keys = std::mem::take(&mut app.ui.pending.keys);
    if key.code == KeyCode::Esc && !keys.is_empty() {
        return Vec::new();
    }
    keys.push(key);
    match app.ui.keymap.meaning(&keys, &scopes(app)) {
        Meaning::Command(binding) => {
            let (row, argument) = (binding.row, binding.argument.clone());
            invoke(app, row, &argument)
        }
        Meaning::Prefix => {
            let since_ms = app.ui.now_ms;
            app.ui.pending = Pending { keys, since_ms };
            Vec::new()
        }
        Meaning::Nothing => {
            if keys.len() > 1 {
                let text = format!("{} means nothing here", chord_name(&keys));
                app.say(Role::Muted, text);
            }
            Vec::new()
        }
    }
}

/// How far a key scrolls a popup, in lines; nothing if it is for something else. Arrows and
/// letters, as everywhere.
fn scrolls(app: &App, key: Key) -> Option<isize> {
    let meaning = app.ui.keymap.meaning(&[key], &[Scope::Global]);
    let name = match meaning {
        Meaning::Command(binding) => binding.row.name,
        // The first key of `g g` is enough where nothing else begins so.
        Meaning::Prefix => "first",
        Meaning::Nothing => return None,
    };
    match name {
        "up" => Some(-1),
        "down" => Some(1),
        "page-up" => Some(-10),
        "page-down" => Some(10),
        "first" => Some(isize::MIN),
        "last" => Some(isize::MAX / 2),
        _ => None,
    }
}

/// Whether a key suspends, over a popup too.
fn suspends(app: &App, key: Key) -> bool {
    let meaning = app.ui.keymap.meaning(&[key], &[Scope::Global]);
    matches!(meaning, Meaning::Command(binding) if binding.row.name == "suspend")
}

fn press_in_page(app: &mut App, key: Key, page: Page) -> Vec<Effect> {
    if let Some(by) = scrolls(app, key) {
        app.ui.overlay = Some(Overlay::Page(page.scrolled(by)));
    } else if suspends(app, key) {
        app.ui.overlay = Some(Overlay::Page(page));
        return vec![Effect::Suspend];
    }
    Vec::new()
}

fn press_in_log(app: &mut App, key: Key, mut log: Box<MachineLogUi>) -> Vec<Effect> {
    let mut effects = Vec::new();
    match scrolls(app, key) {
        Some(by) => log.scroll(by, app.ui.size),
        None if suspends(app, key) => effects.push(Effect::Suspend),
        None => return effects,
    }
    app.ui.overlay = Some(Overlay::MachineLog(log));
    effects
}

fn press_in_help(app: &mut App, key: Key, mut help: Help) -> Vec<Effect> {
    let commands = help_commands(app, &help.query);
    match key.code {
        KeyCode::Esc if help.types || !help.query.is_empty() => help = Help::default(),
        KeyCode::Enter if !help.legend => {
            let chosen = commands.get(help.selected).copied();
            return chosen.map_or(Vec::new(), |row| run_chosen(app, row));
        }
        KeyCode::Down if help.types => help.selected += 1,
        KeyCode::Up if help.types => help.selected = help.selected.saturating_sub(1),
        _ if help.types => {
            if gives_up(key) {
                return Vec::new();
            }
            edit(&mut help.query, key);
            help.selected = 0;
        }
        KeyCode::Tab => {
            help = Help {
                legend: !help.legend,
                ..Help::default()
            }
        }
        KeyCode::Char('/') => {
            (help.legend, help.types) = (false, true);
        }
        _ => {
            if suspends(app, key) {
                app.ui.overlay = Some(Overlay::Help(help));
                return vec![Effect::Suspend];
            }
            let Some(by) = scrolls(app, key) else {
                return Vec::new();
            };
            help.selected = help.selected.saturating_add_signed(by);
        }
    }
    let last = if help.legend {
        crate::tui::draw::legend_lines(app)
    } else {
        help_commands(app, &help.query).len()
    };
    help.selected = help.selected.min(last.saturating_sub(1));
    app.ui.overlay = Some(Overlay::Help(help));
    Vec::new()
}

/// Runs what was chosen from a list; asks for its argument where it needs one.
fn run_chosen(app: &mut App, row: &'static CommandRow) -> Vec<Effect> {
    if row.argument.is_empty() || row.argument.starts_with('[') {
        return invoke(app, row, "");
    }
    let prompt = Prompt::with_text(&format!("{} ", row.name));
    app.ui.overlay = Some(Overlay::Prompt(prompt));
    Vec::new()
}

/// Whether a key gives a popup up.
fn gives_up(key: Key) -> bool {
    key.code == KeyCode::Esc || key.code == KeyCode::Char('c') && key.ctrl
}

fn press_in_filter(app: &mut App, key: Key, mut text: String, is_search: bool) {
    if gives_up(key) {
        return;
    }
    match (key.code == KeyCode::Enter, is_search) {
        (true, true) => return set_search(app, &text),
        (true, false) => return set_filter(app, &text),
        (false, _) => edit(&mut text, key),
    }
    app.ui.overlay = Some(if is_search {
        Overlay::Search(text)
    } else {
        Overlay::Filter(text)
    });
}

fn do_it(app: &mut App, question: &Question) -> Vec<Effect> {
    match command_named(question.command) {
        Some(row) => (row.run)(app, &question.argument),
        None => Vec::new(),
    }
}

fn press_in_confirm(app: &mut App, key: Key, question: Question) -> Vec<Effect> {
    match key.text() {
        Some('y' | 'Y') => return do_it(app, &question),
        Some('n' | 'N') => {}
        _ if gives_up(key) => {}
        // Any other key might have been meant for something else: it is asked on.
        _ => app.ui.overlay = Some(Overlay::Confirm(question)),
    }
    Vec::new()
}

fn press_in_naming(app: &mut App, key: Key, question: Question, mut typed: String) -> Vec<Effect> {
    if gives_up(key) {
        return Vec::new();
    }
    if key.code == KeyCode::Enter {
        if typed.trim() == question.victim {
            return do_it(app, &question);
        }
        app.say(
            Role::Danger,
            format!("type {} to {} it", question.victim, question.command),
        );
    } else {
        edit(&mut typed, key);
    }
    app.ui.overlay = Some(Overlay::Naming(question, typed));
    Vec::new()
}

fn press_in_quit(app: &mut App, key: Key, choice: QuitChoice) -> Vec<Effect> {
    let place = QuitChoice::ALL
        .iter()
        .position(|known| *known == choice)
        .unwrap_or(0);
    let by = |step: usize| QuitChoice::ALL[(place + step) % QuitChoice::ALL.len()];
    let next = match key.code {
        KeyCode::Left | KeyCode::Up | KeyCode::BackTab => by(QuitChoice::ALL.len() - 1),
        KeyCode::Right | KeyCode::Down | KeyCode::Tab => by(1),
        KeyCode::Char('d') if !key.ctrl => return leave(app, QuitChoice::Detach),
        KeyCode::Char('s') if !key.ctrl => return leave(app, QuitChoice::Stop),
        KeyCode::Enter => return leave(app, choice),
        // A second ctrl-c means it: the run is left as it is.
        KeyCode::Char('c') if key.ctrl => return leave(app, QuitChoice::Detach),
        KeyCode::Esc | KeyCode::Char(_) => return Vec::new(),
        _ => choice,
    };
    app.ui.overlay = Some(Overlay::Quit(next));
    Vec::new()
}

fn leave(app: &mut App, choice: QuitChoice) -> Vec<Effect> {
    match (choice, command_named("stop")) {
        (QuitChoice::Detach, _) => vec![Effect::Leave(Exit::Detached)],
        // The demo has asked already.
        (QuitChoice::Stop, Some(row)) if app.ui.is_demo => (row.run)(app, ""),
        (QuitChoice::Stop, Some(row)) => invoke(app, row, ""),
        (QuitChoice::Stop, None) | (QuitChoice::Stay, _) => Vec::new(),
    }
}
