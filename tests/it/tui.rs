//! The console without a terminal: golden screens of a recorded run, key scripts, any size.
//!
//! `UPDATE=1` rewrites the screens in `tests/it/screens/` and the recorded run they show.

mod debugger;
mod script;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{env, fs};

use arpo::event::{Command, CommandStatus, Event, EventKind, RunState, SafePoint, TrainerState};
use arpo::tui::app::{App, Link, Screen, SentStatus};
use arpo::tui::draw::{Drawn, draw};
use arpo::tui::picture::Raster;
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

fn app(depth: ColorDepth) -> App {
    let run = RunState::from_events(&recorded_events());
    App::new(
        run,
        "recorded",
        Link::Live,
        Theme::built_in("default", depth).unwrap(),
    )
}

fn press(app: &mut App, keys: &str) -> Vec<Effect> {
    let key = |name: &str| Input::Key(name.parse().unwrap());
    keys.split_whitespace()
        .flat_map(|name| update(app, key(name)).effects)
        .collect()
}

/// A picture in place of every screenshot: a window with a title bar on a gray desktop.
fn window(columns: u16, rows: u16) -> Raster {
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
    Raster::from_screenshot(&shot, columns, rows).unwrap()
}

fn draw_once(app: &App, terminal: &mut Terminal<TestBackend>) -> Drawn {
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
        let raster = Arc::new(window(key.columns, key.rows));
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
    let cases: [(&str, &str); 9] = [
        ("fleet", ""),
        ("fleet_cards", "z"),
        ("fleet_replayed", "j j l l"),
        ("rollout", "j l enter h"),
        ("rollout_picture", "enter v"),
        ("train", "3"),
        ("train_zoom", "3 tab enter"),
        ("logs", "4 k k"),
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
        ("filter", "4 / v m", 80, 24),
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

#[test]
fn without_color_the_selection_is_reversed_and_nothing_is_colored() {
    use ratatui::style::{Color, Modifier};
    let mut app = app(ColorDepth::None);
    for keys in ["", "enter", "3", "4"] {
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
    for keys in [
        "", "z", "enter", "v", "3", "enter", "4", "?", "esc :", "esc q",
    ] {
        press(&mut app, keys);
        for width in (1..=200).step_by(9) {
            for height in (1..=60).step_by(4) {
                draw_at(&mut app, width, height);
            }
        }
        for (width, height) in [(1, 1), (2, 1), (1, 60), (200, 1), (200, 60), (79, 23)] {
            draw_at(&mut app, width, height);
        }
    }
}

#[test]
fn a_run_without_events_draws() {
    let theme = Theme::built_in("default", ColorDepth::Ansi16).unwrap();
    let mut app = App::new(RunState::default(), "new", Link::Live, theme);
    for keys in ["1", "2", "3", "4", "j k h l g G n N space"] {
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
    assert_eq!(press(&mut app, "q s"), [Effect::Send(0, Command::Stop)]);
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
