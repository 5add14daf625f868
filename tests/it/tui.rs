//! The console without a terminal: golden screens of a recorded run, key scripts, any size.
//!
//! `UPDATE=1` rewrites the screens in `tests/it/screens/` and the recorded run they show.

mod debugger;
mod evaluations;
mod machines;
mod questions;
mod screens;
mod script;
mod tokens;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{env, fs};

use arpo::event::{Command, CommandStatus, Event, EventKind, RunState, SafePoint, TrainerState};
use arpo::tui::app::{App, Link, Overlay, Screen, SentStatus};
use arpo::tui::draw::{Drawn, draw};
use arpo::tui::picture::{EncodeJob, PictureKey, Raster, encode};
use arpo::tui::term::{Form, Graphics};
use arpo::tui::theme::{ColorDepth, Theme};
use arpo::tui::update::{Effect, Exit, Input, Target, update};
use arpo::types::{ScreenSize, Screenshot};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

pub(crate) use script::recorded_events;

/// Sizes every screen is kept at.
const SIZES: [(u16, u16); 2] = [(80, 24), (120, 40)];

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/it")
        .join(path)
}

fn updates() -> bool {
    env::var_os("UPDATE").is_some()
}

/// Compares with the committed file, or writes it.
#[track_caller]
fn check_file(path: &Path, actual: &str) {
    if updates() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, actual).unwrap();
        return;
    }
    let expected = fs::read_to_string(path).unwrap_or_default();
    assert!(
        expected == actual,
        "{} differs; UPDATE=1 rewrites it:\n{actual}",
        path.display()
    );
}

pub(crate) fn app(depth: ColorDepth) -> App {
    let run = RunState::from_events(&recorded_events());
    App::new(
        run,
        "recorded",
        Link::Live,
        Theme::built_in("default", depth).unwrap(),
    )
}

pub(crate) fn press(app: &mut App, keys: &str) -> Vec<Effect> {
    let key = |name: &str| Input::Key(name.parse().unwrap());
    keys.split_whitespace()
        .flat_map(|name| update(app, key(name)).effects)
        .collect()
}

/// A picture in place of every screenshot: a window with a title bar on a gray desktop.
pub(crate) fn window(key: &PictureKey) -> Raster {
    let (width, height) = (64, 48);
    let pixel = |x: u32, y: u32| match (x, y) {
        (10..54, 8..12) => [40, 60, 120],
        (10..54, 12..40) => [240, 240, 240],
        _ => [90, 110, 110],
    };
    let rgb = (0..height)
        .flat_map(|y| (0..width).flat_map(move |x| pixel(x, y)))
        .collect();
    let shot = Screenshot::new(ScreenSize { width, height }, rgb);
    Raster::with_grain(&shot, key.columns, key.rows, key.grain).unwrap()
}

pub(crate) fn draw_once(app: &App, terminal: &mut Terminal<TestBackend>) -> Drawn {
    let mut drawn = Drawn::default();
    terminal.draw(|frame| drawn = draw(app, frame)).unwrap();
    drawn
}

/// Draws twice: first to learn which pictures are wanted, then with them.
fn draw_at(app: &mut App, width: u16, height: u16) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    update(app, Input::Resize(width, height));
    let drawn = draw_once(app, &mut terminal);
    app.ui.pictures.want(&drawn.pictures);
    for key in drawn.pictures {
        let raster = Arc::new(window(&key));
        update(app, Input::Picture(key, Ok(raster)));
    }
    draw_once(app, &mut terminal);
    terminal
}

fn text_of(terminal: &Terminal<TestBackend>) -> String {
    let buffer = terminal.backend().buffer();
    let mut text = String::new();
    for row in buffer.content.chunks(usize::from(buffer.area.width)) {
        let mut line = String::new();
        let mut skip = 0;
        for cell in row {
            if skip == 0 {
                line.push_str(cell.symbol());
                skip = arpo::tui::text::width(cell.symbol());
            }
            skip = skip.saturating_sub(1);
        }
        writeln!(text, "{}", line.trim_end()).unwrap();
    }
    text
}

#[test]
fn the_recorded_run_is_what_its_script_says() {
    let mut lines = String::new();
    for event in recorded_events() {
        writeln!(lines, "{}", serde_json::to_string(&event).unwrap()).unwrap();
    }
    let path = here("fixtures/console/events.ndjson");
    check_file(&path, &lines);
    let committed = fs::read_to_string(&path).unwrap();
    let events: Vec<Event> = committed
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(
        RunState::from_events(&events),
        RunState::from_events(&recorded_events())
    );
}

#[test]
fn screens_look_as_committed() {
    let cases: [(&str, &str); 24] = [
        ("fleet", ""),
        ("fleet_cards", "z"),
        ("fleet_gallery", "z z"),
        ("fleet_desktops", "b"),
        ("fleet_replayed", "j j l l"),
        ("rollout_siblings", "j l enter c"),
        ("rollout_thought", "j l enter h t"),
        ("rollout_after", "j l enter h h b"),
        ("rollout", "j l enter h"),
        ("rollout_trained", "j j j l enter H"),
        ("rollout_picture", "enter v"),
        ("train", "3"),
        ("train_zoom", "3 tab enter"),
        ("train_cursor", "3 h h h"),
        ("train_ratios", "3 L backtab enter"),
        ("evals", "4"),
        ("evals_flips", "4 j space j space f t"),
        ("evals_unlike", "4 f"),
        ("launch", "4 e down space"),
        ("replay", "5 o o j"),
        ("replay_frames", "5 o o j tab l l"),
        ("replay_never", "5 E"),
        ("logs", "6 k k"),
        ("help", "?"),
    ];
    for (name, keys) in cases {
        for (width, height) in SIZES {
            let mut app = app(ColorDepth::None);
            press(&mut app, keys);
            let terminal = draw_at(&mut app, width, height);
            let path = here(&format!("screens/{name}_{width}x{height}.txt"));
            check_file(&path, &text_of(&terminal));
        }
    }
}

#[test]
fn overlays_and_small_terminals_look_as_committed() {
    for (name, keys, width, height) in [
        ("palette", ": t e m", 80, 24),
        ("quit", "q", 80, 24),
        ("stop", "q s d e m o", 80, 24),
        ("palette_argument", ": p a u s e space", 80, 24),
        ("palette_place", ": @ s e t", 80, 24),
        ("goto", "' g 0 1", 80, 24),
        ("legend", "? tab", 80, 24),
        ("help_search", "? / c o p y", 80, 24),
        ("keys", ": k e y s enter", 80, 24),
        ("palette", ": t e m", 120, 40),
        ("stop", "q s", 120, 40),
        ("quit", "q", 120, 40),
        ("legend", "? tab", 120, 40),
        ("keys", ": k e y s enter", 120, 40),
        ("filter", "6 / v m", 120, 40),
        ("filter", "6 / v m", 80, 24),
        ("narrow", "", 64, 18),
        ("list", "", 44, 12),
        ("vitals", "", 24, 8),
        ("line", "", 18, 1),
    ] {
        let mut app = app(ColorDepth::None);
        press(&mut app, keys);
        let terminal = draw_at(&mut app, width, height);
        check_file(
            &here(&format!("screens/{name}_{width}x{height}.txt")),
            &text_of(&terminal),
        );
    }
}

/// Presses keys, and lets the box of a begun chord appear.
fn press_and_wait(app: &mut App, keys: &str) {
    press(app, keys);
    let now_ms = app.ui.now_ms + 500;
    update(app, Input::Clock(now_ms));
}

#[test]
fn a_begun_chord_shows_what_may_follow() {
    for (width, height) in SIZES {
        let mut app = app(ColorDepth::None);
        press_and_wait(&mut app, "y");
        let terminal = draw_at(&mut app, width, height);
        check_file(
            &here(&format!("screens/chord_{width}x{height}.txt")),
            &text_of(&terminal),
        );
    }
}

#[test]
fn the_demo_asks_on_the_row_of_messages() {
    for (width, height) in SIZES {
        let mut app = app(ColorDepth::None);
        app.ui.is_demo = true;
        press(&mut app, ": s t o p enter");
        let text = text_of(&draw_at(&mut app, width, height));
        check_file(
            &here(&format!("screens/confirm_{width}x{height}.txt")),
            &text,
        );
        assert_eq!(press(&mut app, "y"), [Effect::Send(0, Command::Stop)]);
    }
}

#[test]
fn the_header_says_who_writes_and_the_holder_is_asked() {
    for (width, height) in SIZES {
        let mut app = app(ColorDepth::None);
        let state = arpo::bus::LeaseState {
            holder: Some("li@laptop".to_owned()),
            held_ms: 180_000,
            ..arpo::bus::LeaseState::default()
        };
        update(&mut app, Input::Lease(state));
        let text = text_of(&draw_at(&mut app, width, height));
        check_file(
            &here(&format!("screens/lease_ro_{width}x{height}.txt")),
            &text,
        );
        let state = arpo::bus::LeaseState {
            yours: true,
            holder: Some("me@here".to_owned()),
            asked_by: Some("li@laptop".to_owned()),
            answer_ms: 9_500,
            ..arpo::bus::LeaseState::default()
        };
        update(&mut app, Input::Lease(state));
        let text = text_of(&draw_at(&mut app, width, height));
        check_file(
            &here(&format!("screens/lease_asked_{width}x{height}.txt")),
            &text,
        );
    }
}

#[test]
fn recorded_runs_have_a_time_line() {
    use arpo::bus::TimelineInfo;
    use arpo::store::IterationMark;
    for (width, height) in SIZES {
        let mut app = app(ColorDepth::None);
        app.ui.link = Link::Recorded;
        app.ui.timeline = Some(arpo::tui::timeline::TimelineUi::default());
        let reading = text_of(&draw_at(&mut app, width, height));
        assert!(reading.contains("reading the log"), "{reading}");
        let mark = |iteration| IterationMark {
            iteration,
            seq: iteration,
            at_ms: 11_000 * iteration,
        };
        let info = TimelineInfo {
            marks: (0..20).map(mark).collect(),
            end_seq: 9_000,
            end_ms: 220_000,
        };
        update(&mut app, Input::Timeline(Arc::new(info)));
        press(&mut app, "ctrl-p");
        let terminal = draw_at(&mut app, width, height);
        check_file(
            &here(&format!("screens/timeline_{width}x{height}.txt")),
            &text_of(&terminal),
        );
    }
}

#[test]
fn ascii_screens_are_ascii_but_for_what_was_written() {
    for (name, keys) in [
        ("fleet", ""),
        ("train", "3"),
        ("help", "?"),
        ("palette", ": t e m"),
        ("rollout", "j l enter h"),
    ] {
        for (width, height) in SIZES {
            let mut app = app(ColorDepth::None);
            press(&mut app, ": a s c i i enter");
            press(&mut app, keys);
            let text = text_of(&draw_at(&mut app, width, height));
            let drawn = |c: &char| ('\u{2010}'..='\u{2bff}').contains(c) && *c != '₂';
            let left: String = text.chars().filter(drawn).collect();
            assert_eq!(left, "", "{name} {width}x{height}:\n{text}");
            check_file(
                &here(&format!("screens/ascii_{name}_{width}x{height}.txt")),
                &text,
            );
        }
    }
}

#[test]
fn exactly_one_pane_has_the_keys() {
    for keys in [
        "",
        "z",
        "j l enter",
        "j l enter tab",
        "3",
        "3 tab",
        "3 enter",
        "4",
        "?",
        ":",
        "4 /",
        "q",
        "q s",
        "M",
        ": k e y s enter",
    ] {
        for (width, height) in SIZES {
            let mut app = app(ColorDepth::True);
            press(&mut app, keys);
            draw_at(&mut app, width, height);
            let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
            let drawn = draw_once(&app, &mut terminal);
            assert_eq!(drawn.focused, 1, "{keys:?} at {width}x{height}");
        }
    }
}

#[test]
fn the_hint_bar_follows_whoever_has_the_keys() {
    let hints = |keys: &str| {
        let mut app = app(ColorDepth::None);
        press(&mut app, keys);
        let text = text_of(&draw_at(&mut app, 80, 24));
        text.lines().last().unwrap().trim().to_owned()
    };
    assert!(hints("").contains("enter open"), "{}", hints(""));
    assert!(
        hints("j l enter tab").starts_with("j scroll"),
        "{}",
        hints("j l enter tab")
    );
    assert!(hints("g").contains("g first"), "{}", hints("g"));
    assert!(hints(":").contains("tab complete"), "{}", hints(":"));
    assert!(hints("?").contains("/ search"), "{}", hints("?"));
}

#[test]
fn the_help_runs_what_is_chosen() {
    let mut app = app(ColorDepth::None);
    press(&mut app, "? / d e s k t o p s - enter");
    assert!(app.ui.fleet.by_desktop);
    assert_eq!(app.ui.overlay, None);
    // One that needs an argument asks for it.
    press(&mut app, "? / s e t space enter");
    press(
        &mut app,
        "esc ? / f r o m space t h e space n e x t space u p d a t e enter",
    );
    assert!(matches!(&app.ui.overlay, Some(Overlay::Prompt(prompt)) if prompt.text == "lr "));
}

#[test]
fn jumping_goes_to_groups_samples_episodes_and_tasks() {
    let mut app = app(ColorDepth::None);
    press(&mut app, "' g 2 . s 3 enter");
    let looked_at = |app: &App| {
        let episode = arpo::tui::fleet::rollout_episode(app).unwrap();
        arpo::tui::fleet::episode_name(episode)
    };
    assert_eq!(
        (app.ui.screen, looked_at(&app)),
        (Screen::Rollout, "g02.s3".to_owned())
    );
    press(&mut app, ": @ r e n a m e enter");
    assert_eq!((app.ui.screen, app.ui.fleet.row), (Screen::Fleet, 2));
    press(&mut app, "' 0 - 0 0 2 0 0 1 enter");
    assert_eq!(
        (app.ui.screen, looked_at(&app)),
        (Screen::Rollout, "g00.s1".to_owned())
    );
    press(&mut app, "' g 7 7 enter");
    let said = &app.ui.message.as_ref().unwrap().text;
    assert!(said.starts_with("g77 is not here"), "{said}");
    // The line before is run again.
    press(&mut app, ": t r a i n enter 1 : ! ! enter");
    assert_eq!(app.ui.screen, Screen::Train);
}

#[test]
fn text_goes_out_as_it_is() {
    let mut app = app(ColorDepth::None);
    press(&mut app, "' g 0 . s 0 enter H l");
    let copied = |effects: Vec<Effect>| match &effects[..] {
        [Effect::Copy { text, .. }] => text.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(copied(press(&mut app, "y i")), "0-002000");
    assert!(copied(press(&mut app, "y t")).starts_with("上次拖动"));
    assert_eq!(copied(press(&mut app, "y a")), "click 214,61");
    assert_eq!(
        copied(press(&mut app, "y c")),
        "arpo ctl demo-1129-1631 set-desktops 64"
    );
    let [
        Effect::Export {
            path: None,
            name,
            text,
        },
    ] = &press(&mut app, "x")[..]
    else {
        panic!("nothing is exported")
    };
    assert_eq!(name, "demo-1129-1631-rollout.txt");
    assert!(text.contains("step 2\n上次拖动"), "{text}");
    for (keys, head) in [("1", "row\ttask"), ("3", "iteration\treward"), ("6", "0:")] {
        press(&mut app, keys);
        let [Effect::Read { text, .. }] = &press(&mut app, "V")[..] else {
            panic!("nothing is shown")
        };
        assert!(text.starts_with(head), "{text}");
    }
}

#[test]
fn without_color_the_selection_is_reversed_and_nothing_is_colored() {
    use ratatui::style::{Color, Modifier};
    let mut app = app(ColorDepth::None);
    for keys in ["", "enter", "3", "4", "5", "6"] {
        press(&mut app, keys);
        let terminal = draw_at(&mut app, 120, 40);
        let cells = &terminal.backend().buffer().content;
        assert!(
            cells
                .iter()
                .all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset)
        );
        assert!(
            cells
                .iter()
                .any(|cell| cell.modifier.contains(Modifier::REVERSED))
        );
    }
}

#[test]
fn no_size_and_no_screen_panics() {
    let mut app = app(ColorDepth::True);
    let mut shift = 0;
    for keys in [
        "",
        "z",
        "z",
        "enter",
        "b",
        "d",
        "c",
        "esc v",
        "3",
        "h",
        "enter",
        "4",
        "5",
        "l",
        "E",
        "6",
        "?",
        "tab",
        "esc :",
        "p",
        "esc q",
        "s",
        "esc g",
        "esc : k e y s enter",
        "esc : a s c i i enter 1",
    ] {
        press_and_wait(&mut app, keys);
        // Each state at other sizes: together they are close enough to all.
        for width in (1 + shift..=200).step_by(27) {
            for height in (1 + shift % 9..=60).step_by(9) {
                draw_at(&mut app, width, height);
            }
        }
        shift = (shift + 5) % 27;
        for (width, height) in [(1, 1), (2, 1), (1, 60), (200, 1), (200, 60), (79, 23)] {
            draw_at(&mut app, width, height);
        }
    }
}

#[test]
fn pictures_of_the_terminal_fit_any_size() {
    for form in [Form::Kitty, Form::Sixel(64), Form::Off] {
        let mut app = app(ColorDepth::True);
        app.ui.terminal.graphics = Graphics::all(form);
        for keys in ["", "z", "enter", "v", "?", "esc q"] {
            press(&mut app, keys);
            for (width, height) in [(1, 1), (20, 5), (80, 24), (83, 25), (120, 40)] {
                let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
                update(&mut app, Input::Resize(width, height));
                let drawn = draw_once(&app, &mut terminal);
                for wanted in drawn.wanted {
                    let area = wanted.area;
                    assert!(area.right() <= width && area.bottom() <= height, "{area:?}");
                    let raster = Arc::new(window(&wanted.key));
                    let job = EncodeJob {
                        wanted,
                        raster,
                        colors: 16,
                        depth: ColorDepth::True,
                    };
                    let placed = encode(&job).unwrap().placed;
                    app.ui.slots.put(job.wanted.slot, placed);
                }
                let drawn = draw_once(&app, &mut terminal);
                assert!(drawn.wanted.iter().all(|wanted| wanted.is_update));
                app.ui.slots.take_unwanted(&drawn.wanted);
            }
        }
    }
}

#[test]
fn a_run_without_events_draws() {
    let theme = Theme::built_in("default", ColorDepth::Ansi16).unwrap();
    let mut app = App::new(RunState::default(), "new", Link::Live, theme);
    for keys in [
        "1",
        "2",
        "3 j k h l g g G tab x",
        "4 j k g g G",
        "5 j k h l g g G tab o E enter",
        "6",
        "j k h l g g G n N space",
    ] {
        press(&mut app, keys);
        draw_at(&mut app, 100, 30);
    }
}

fn event(app: &App, kind: EventKind) -> Input {
    let at_ms = app.run.at_ms + 10;
    Input::Events(vec![Arc::new(Event {
        seq: app.run.next_seq,
        at_ms,
        kind,
    })])
}

#[test]
fn a_command_shows_only_what_was_answered() {
    let mut app = app(ColorDepth::None);
    let request = Command::Pause {
        at: SafePoint::EnvStep,
    };
    assert_eq!(press(&mut app, "p"), [Effect::Send(0, request.clone())]);
    let shown = |app: &mut App| {
        let text = text_of(&draw_at(app, 120, 40));
        text.lines().nth(38).unwrap().trim().to_owned()
    };
    assert_eq!(shown(&mut app), "pause env-step  sent");
    update(
        &mut app,
        Input::Answer(0, Some((7, CommandStatus::Received))),
    );
    update(
        &mut app,
        Input::Answer(0, Some((7, CommandStatus::Accepted))),
    );
    assert_eq!(shown(&mut app), "pause env-step  sent → accepted");
    // The trainer's state is what events say, not what was asked.
    assert_eq!(app.run.trainer, TrainerState::Running);
    update(&mut app, Input::Answer(0, Some((7, CommandStatus::Done))));
    assert_eq!(shown(&mut app), "pause env-step  sent → accepted → done");
    update(&mut app, Input::Clock(60_000));
    assert_eq!(shown(&mut app), "");
}

#[test]
fn a_refusal_shows_its_reason_and_a_lost_answer_says_so() {
    let mut app = app(ColorDepth::None);
    press(&mut app, "C r");
    let reason = "no update has been made yet".to_owned();
    update(
        &mut app,
        Input::Answer(0, Some((8, CommandStatus::Refused { reason }))),
    );
    update(&mut app, Input::Answer(1, None));
    let text = text_of(&draw_at(&mut app, 120, 40));
    assert!(
        text.contains("checkpoint  sent → refused: no update has been made yet"),
        "{text}"
    );
    assert!(
        text.contains("resume  sent → no answer: the connection was lost"),
        "{text}"
    );
}

#[test]
fn stopping_leaves_once_the_engine_accepted() {
    let mut app = app(ColorDepth::None);
    assert!(press(&mut app, "q s").is_empty());
    let typed = press(&mut app, "d e m o - 1 1 2 9 - 1 6 3 1 enter");
    assert_eq!(typed, [Effect::Send(0, Command::Stop)]);
    assert!(update(&mut app, Input::Heard).effects.is_empty());
    let answer = Input::Answer(0, Some((9, CommandStatus::Accepted)));
    assert_eq!(
        update(&mut app, answer).effects,
        [Effect::Leave(Exit::StopAsked)]
    );
}

#[test]
fn a_refused_stop_stays() {
    let mut app = app(ColorDepth::None);
    app.ui.is_demo = true;
    press(&mut app, "q s");
    let refused = CommandStatus::Refused {
        reason: "a checkpoint is being written".to_owned(),
    };
    assert!(
        update(&mut app, Input::Answer(0, Some((9, refused))))
            .effects
            .is_empty()
    );
    assert!(!app.ui.leaving);
    assert!(matches!(app.ui.sent[0].status, SentStatus::Refused(_)));
}

#[test]
fn a_lost_connection_shows_in_the_header_until_news_come() {
    let mut app = app(ColorDepth::None);
    update(&mut app, Input::LinkLost("broken pipe".to_owned()));
    update(&mut app, Input::Clock(12_000));
    let text = text_of(&draw_at(&mut app, 120, 40));
    assert!(text.contains("DISCONNECTED 12s"), "{text}");
    assert!(
        text.contains("the engine cannot be reached: broken pipe"),
        "{text}"
    );
    let state = Box::new(app.run.clone());
    update(&mut app, Input::Snapshot(state, 31));
    let text = text_of(&draw_at(&mut app, 120, 40));
    assert!(
        !text.contains("DISCONNECTED") && text.contains("dropped 31"),
        "{text}"
    );
}

#[test]
fn silence_is_news_only_of_a_run_at_work() {
    for (trainer, is_told) in [
        (TrainerState::Running, true),
        (TrainerState::Pausing(SafePoint::Batch), true),
        (TrainerState::Paused(SafePoint::Batch), false),
    ] {
        let mut app = app(ColorDepth::None);
        app.run.trainer = trainer;
        update(&mut app, Input::Heard);
        update(&mut app, Input::Clock(9_000));
        let text = text_of(&draw_at(&mut app, 120, 40));
        assert_eq!(text.contains("no news 9s"), is_told, "{trainer:?}: {text}");
    }
}

#[test]
fn time_goes_on_only_while_the_run_is_heard() {
    let mut app = app(ColorDepth::None);
    let before = app.run_now_ms();
    update(&mut app, Input::Clock(5_000));
    assert_eq!(app.run_now_ms(), before + 5_000);
    let news = event(
        &app,
        EventKind::PolicyPublished {
            policy: app.run.policy,
        },
    );
    update(&mut app, news);
    assert_eq!(app.run_now_ms(), before + 10);
    app.ui.link = Link::Recorded;
    update(&mut app, Input::Clock(50_000));
    assert_eq!(app.run_now_ms(), before + 10);
}

#[test]
fn rows_stay_in_place_for_a_while() {
    let mut app = app(ColorDepth::None);
    let order = app.ui.fleet.order.clone();
    // The first row's trouble ends; it keeps its place until the order is due.
    update(&mut app, Input::Clock(2_000));
    assert_eq!(app.ui.fleet.order, order);
    press(&mut app, "o");
    assert!(app.ui.fleet.order.is_sorted());
}

#[test]
fn stepping_back_stays_with_the_episode_and_space_follows_again() {
    let mut app = app(ColorDepth::None);
    press(&mut app, "j l enter");
    assert_eq!(app.ui.screen, Screen::Rollout);
    assert_eq!(app.ui.rollout.step, None);
    press(&mut app, "H l");
    assert_eq!(app.ui.rollout.step, Some(1));
    assert!(app.ui.rollout.pinned.is_some());
    press(&mut app, "space");
    assert_eq!((app.ui.rollout.step, app.ui.rollout.pinned), (None, None));
    press(&mut app, "n n");
    assert_eq!(app.ui.fleet.sample, 3);
    press(&mut app, "esc");
    assert_eq!(app.ui.screen, Screen::Fleet);
}

#[test]
fn clicks_select_and_then_open() {
    let mut app = app(ColorDepth::None);
    let mut terminal = Terminal::new(TestBackend::new(120, 40)).unwrap();
    let drawn = draw_once(&app, &mut terminal);
    let (area, target) = drawn
        .targets
        .iter()
        .find(|(_, target)| matches!(target, Target::Sample(2, 3)))
        .copied()
        .unwrap();
    assert_eq!(drawn.target_at(area.x, area.y), Some(target));
    update(&mut app, Input::Click(target));
    assert_eq!(
        (app.ui.fleet.row, app.ui.fleet.sample, app.ui.screen),
        (2, 3, Screen::Fleet)
    );
    update(&mut app, Input::Click(target));
    assert_eq!(app.ui.screen, Screen::Rollout);
    update(&mut app, Input::Click(Target::Tab(Screen::Logs)));
    assert_eq!(app.ui.screen, Screen::Logs);
}
