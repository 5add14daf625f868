//! Tests of the table of commands, and of what keys do to a console without a run.

use std::collections::HashSet;

use super::{COMMANDS, CommandRow, Danger, Scope, command_named, matching_commands, run_line};
use crate::event::{BreakOn, Command, DebugCommand, HoldTarget, RunState, SafePoint};
use crate::tui::app::{App, Link, Overlay, QuitChoice, SCREENS, Screen};
use crate::tui::focus;
use crate::tui::keymap::{Keymap, Meaning};
use crate::tui::keys::{Key, chord_name, parse_chord};
use crate::tui::theme::{ColorDepth, Theme};
use crate::tui::update::{Effect, Exit, Input, update};
use crate::types::EpisodeId;

fn app(link: Link) -> App {
    let theme = Theme::built_in("default", ColorDepth::True).unwrap();
    App::new(RunState::default(), "test", link, theme)
}

fn press(app: &mut App, keys: &str) -> Vec<Effect> {
    let one = |name: &str| Input::Key(name.parse().unwrap());
    keys.split(' ')
        .flat_map(|name| update(app, one(name)).effects)
        .collect()
}

#[test]
fn every_command_is_documented_and_named_once() {
    let mut names = HashSet::new();
    for row in COMMANDS {
        assert!(names.insert(row.name), "{} twice", row.name);
        assert!(
            row.doc.ends_with('.') && row.doc.contains(' '),
            "{}: {:?}",
            row.name,
            row.doc
        );
        assert!(
            row.name.chars().all(|c| c.is_ascii_lowercase() || c == '-'),
            "{}",
            row.name
        );
        assert!(
            row.hint.is_empty() || !row.keys.is_empty(),
            "{} hints at no key",
            row.name
        );
    }
}

#[test]
fn every_key_reads_and_means_one_thing_on_each_screen() {
    let keymap = Keymap::default();
    for screen in SCREENS {
        let mut chords: HashSet<Vec<Key>> = HashSet::new();
        let scopes = [Scope::On(screen), Scope::Global];
        for row in COMMANDS.iter().filter(|row| scopes.contains(&row.scope)) {
            for name in row.keys {
                let chord = parse_chord(name).unwrap();
                let Meaning::Command(found) = keymap.meaning(&chord, &scopes) else {
                    panic!("{name} of {} is the start of another", row.name)
                };
                assert_eq!(found.row.name, row.name, "{name} on {screen:?}");
                assert!(chords.insert(chord), "{name} twice on {screen:?}");
            }
        }
        for chord in &chords {
            let longer = |other: &&Vec<Key>| *other != chord && other.starts_with(chord);
            let hidden = chords.iter().find(longer);
            assert!(hidden.is_none(), "{} hides {hidden:?}", chord_name(chord));
        }
    }
}

#[test]
fn what_is_lost_is_asked_about() {
    for row in COMMANDS {
        let asks = row.danger >= Danger::Costly;
        assert_eq!(row.victim.is_some(), asks, "{}", row.name);
        assert!(
            row.operates || row.danger == Danger::Harmless,
            "{}",
            row.name
        );
        assert_eq!(row.ctl_form().is_some(), row.operates, "{}", row.name);
    }
}

/// Loses nothing, but asks as if it did.
fn costly() -> CommandRow {
    let row = command_named("pause").unwrap();
    row.costly(|_, argument| match argument {
        "" => Err("name a desktop".to_owned()),
        name => Ok(format!("desktop {name}")),
    })
}

#[test]
fn costly_commands_ask_and_name_what_they_take() {
    let mut app = app(Link::Live);
    assert!(super::invoke(&mut app, &costly(), "").is_empty());
    assert_eq!(app.ui.message.as_ref().unwrap().text, "name a desktop");
    assert_eq!(app.ui.overlay, None);
    super::invoke(&mut app, &costly(), "batch");
    let Some(Overlay::Confirm(question)) = app.ui.overlay.clone() else {
        panic!("nothing was asked")
    };
    assert_eq!(question.victim, "desktop batch");
    // Other keys neither answer nor get through.
    assert!(press(&mut app, "x r enter").is_empty());
    assert!(press(&mut app, "n").is_empty());
    assert_eq!(app.ui.overlay, None);
    super::invoke(&mut app, &costly(), "batch");
    let at = SafePoint::Batch;
    assert_eq!(
        press(&mut app, "y"),
        [Effect::Send(0, Command::Pause { at })]
    );
}

#[test]
fn stopping_wants_the_name_typed_and_the_demo_only_asks() {
    let mut live = app(Link::Live);
    assert!(run_line(&mut live, "stop").is_empty());
    assert!(press(&mut live, "t e s enter").is_empty());
    assert!(live.ui.message.as_ref().unwrap().text.contains("type test"));
    assert_eq!(
        press(&mut live, "t enter"),
        [Effect::Send(0, Command::Stop)]
    );
    assert!(live.ui.leaving);
    let mut demo = app(Link::Live);
    demo.ui.is_demo = true;
    run_line(&mut demo, "stop");
    assert_eq!(press(&mut demo, "y"), [Effect::Send(0, Command::Stop)]);
}

#[test]
fn chords_wait_are_explained_and_can_be_given_up() {
    let mut app = app(Link::Recorded);
    press(&mut app, "g");
    assert!(!focus::explains(&app));
    assert!(update(&mut app, Input::Clock(focus::EXPLAIN_MS)).dirty);
    assert!(focus::explains(&app));
    let hints = focus::hints(&app);
    assert!(
        hints
            .iter()
            .any(|(key, name)| key == "g" && *name == "first")
    );
    press(&mut app, "esc");
    assert!(app.ui.pending.keys.is_empty());
    press(&mut app, "g z");
    assert_eq!(
        app.ui.message.as_ref().unwrap().text,
        "g z means nothing here"
    );
    press(&mut app, "3 G g g");
    assert_eq!(app.ui.train.chart, 0);
}

#[test]
fn keys_go_to_the_nearest_that_wants_them() {
    let mut app = app(Link::Live);
    // Text input keeps what would otherwise command.
    press(&mut app, "6 / p r");
    assert_eq!(app.ui.overlay, Some(Overlay::Filter("pr".to_owned())));
    press(&mut app, "esc 2");
    // The focused pane comes before the screen, the screen before everything.
    press(&mut app, "tab j");
    assert_eq!(app.ui.rollout.thought_scroll, 1);
    assert_eq!(focus::scopes(&app)[0], Scope::Detail(Screen::Rollout));
    press(&mut app, "esc j");
    assert_eq!(app.ui.rollout.thought_scroll, 1);
    assert!(!focus::has_focused_detail(&app));
}

#[test]
fn help_and_quit_come_last_so_that_hints_keep_them() {
    let hinted: Vec<_> = COMMANDS.iter().filter(|row| !row.hint.is_empty()).collect();
    let last: Vec<_> = hinted[hinted.len() - 2..]
        .iter()
        .map(|row| row.name)
        .collect();
    assert_eq!(last, ["help", "quit"]);
}

#[test]
fn key_names_round_trip() {
    assert_eq!(chord_name(&parse_chord("g  ctrl-x").unwrap()), "g ctrl-x");
    assert!(parse_chord(" ").is_err());
    for name in [
        "q", "G", "ctrl-c", "enter", "pagedown", "space", "alt-x", "?", "-",
    ] {
        let key: Key = name.parse().unwrap();
        assert_eq!(key.to_string(), name);
    }
    assert!("hyper-x".parse::<Key>().is_err());
}

#[test]
fn the_palette_finds_by_letters_and_names_the_nearest() {
    assert_eq!(matching_commands("temp")[0].name, "temperature");
    assert_eq!(matching_commands("ckpt")[0].name, "checkpoint");
    assert!(matching_commands("xyzzy").is_empty());
    assert_eq!(matching_commands("").len(), COMMANDS.len());
    let mut app = app(Link::Live);
    assert!(run_line(&mut app, "temperatur 2").is_empty());
    assert!(
        app.ui
            .message
            .unwrap()
            .text
            .contains("did you mean temperature?")
    );
}

#[track_caller]
fn check_sends(line: &str, expected: Option<Command>) {
    let mut app = app(Link::Live);
    let effects = run_line(&mut app, line);
    if let Some(command) = expected {
        assert_eq!(effects, [Effect::Send(0, command)]);
    } else {
        assert!(effects.is_empty(), "{line}");
        assert!(app.ui.message.is_some(), "{line} says nothing");
    }
}

#[test]
fn typed_commands_are_checked_before_they_are_sent() {
    check_sends(
        "pause",
        Some(Command::Pause {
            at: SafePoint::EnvStep,
        }),
    );
    check_sends(
        "pause pre-update",
        Some(Command::Pause {
            at: SafePoint::PreUpdate,
        }),
    );
    check_sends("pause somewhere", None);
    check_sends("lr 1e-4", Some(Command::SetLearningRate { value: 1e-4 }));
    check_sends("lr nan", None);
    check_sends("lr -1", None);
    check_sends(
        "temperature 0.7",
        Some(Command::SetTemperature { value: 0.7 }),
    );
    check_sends("temperature", None);
    check_sends("desktops 12", Some(Command::SetDesktops { value: 12 }));
    check_sends("desktops 0", None);
}

#[test]
fn typed_requests_to_the_debugger_are_checked() {
    let debug = |command| Some(Command::Debug(command));
    let hold = |target, others| debug(DebugCommand::Hold { target, others });
    let episode = EpisodeId {
        incarnation: 0,
        number: 531,
    };
    let stop_at = |on| debug(DebugCommand::SetBreakpoint { on, episode: None });
    let clear = |id| debug(DebugCommand::ClearBreakpoint { id });
    check_sends("hold all", hold(HoldTarget::All, false));
    check_sends("hold all others", hold(HoldTarget::All, true));
    check_sends(
        "hold 0-000531",
        hold(HoldTarget::Episode { episode }, false),
    );
    check_sends(
        "hold desktop:3",
        hold(HoldTarget::Desktop { desktop: 3 }, false),
    );
    check_sends("hold desktop:x", None);
    check_sends("hold", None);
    let target = HoldTarget::All;
    check_sends("release all", debug(DebugCommand::Release { target }));
    check_sends("break step 3", stop_at(BreakOn::Step { step: 2 }));
    check_sends("break step 0", None);
    let action = "click".to_owned();
    check_sends("break kind click", stop_at(BreakOn::Kind { action }));
    check_sends("break kind clack", None);
    check_sends("break parse-error", stop_at(BreakOn::ParseError));
    let below = -1.5;
    check_sends(
        "break low-logprob -1.5",
        stop_at(BreakOn::LowLogprob { below }),
    );
    check_sends("break low-logprob 1", None);
    check_sends("break unchanged", stop_at(BreakOn::UnchangedScreen));
    check_sends("break clear", clear(None));
    check_sends("break clear 2", clear(Some(2)));
    check_sends("break dance", None);
    check_sends("break", None);
    check_sends("branch 3", None);
}

#[test]
fn nothing_is_sent_where_nobody_listens() {
    for link in [Link::Recorded, Link::WatchOnly] {
        let mut app = app(link);
        assert!(press(&mut app, "p r C").is_empty());
        assert!(app.ui.message.unwrap().text.starts_with("not sent: "));
        assert!(app.ui.sent.is_empty());
    }
}

#[test]
fn typing_into_the_palette_runs_the_line() {
    let mut app = app(Link::Live);
    let keys = ": d e s k t o p s space 9 enter";
    assert_eq!(
        press(&mut app, keys),
        [Effect::Send(0, Command::SetDesktops { value: 9 })]
    );
    assert_eq!(app.ui.overlay, None);
    // Proposals that take an argument are completed, others are run.
    assert!(press(&mut app, ": t e m p enter").is_empty());
    let Some(Overlay::Prompt(prompt)) = &app.ui.overlay else {
        panic!("the palette closed")
    };
    assert_eq!(prompt.text, "temperature ");
    press(&mut app, "esc");
    press(&mut app, ": t r a i enter");
    assert_eq!(app.ui.screen, Screen::Train);
    // Up brings the line typed before.
    press(&mut app, ": up");
    let Some(Overlay::Prompt(prompt)) = &app.ui.overlay else {
        panic!("the palette closed")
    };
    assert_eq!(prompt.text, "train");
}

#[test]
fn leaving_asks_where_something_is_at_stake() {
    for link in [Link::Recorded, Link::WatchOnly] {
        assert_eq!(press(&mut app(link), "q"), [Effect::Leave(Exit::Detached)]);
    }
    let mut live = app(Link::Live);
    assert!(press(&mut live, "q").is_empty());
    assert_eq!(live.ui.overlay, Some(Overlay::Quit(QuitChoice::Detach)));
    assert_eq!(press(&mut live, "enter"), [Effect::Leave(Exit::Detached)]);
    let mut live = app(Link::Live);
    assert!(press(&mut live, "q esc").is_empty());
    assert_eq!(live.ui.overlay, None);
    assert_eq!(
        press(&mut live, "ctrl-c ctrl-c"),
        [Effect::Leave(Exit::Detached)]
    );
    let mut demo = app(Link::Live);
    demo.ui.is_demo = true;
    press(&mut demo, "q");
    assert_eq!(demo.ui.overlay, Some(Overlay::Quit(QuitChoice::Stop)));
}

#[test]
fn every_name_can_be_typed_without_an_argument() {
    for row in COMMANDS {
        let mut app = app(Link::Live);
        run_line(&mut app, row.name);
        assert!(command_named(row.name).is_some());
    }
}
