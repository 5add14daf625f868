//! The action grammar against its table of cases, the package `ui-tars`, and random replies.

use std::collections::HashMap;

use arpo::action::{ParsedReply, Space, keys, parse_reply, print_reply};
use arpo::types::{Action, Point, ReplyFormat, ScreenSize, ScrollDirection};
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::reference;

const SCRIPT: &str = "actions/reference.py";
const ANSWERS: &str = "actions/ui_tars.json";

/// One reply of `cases.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    reply: String,
    #[serde(default = "absolute")]
    format: ReplyFormat,
    thought: Option<String>,
    clamped: Option<bool>,
    actions: Option<Vec<Action>>,
    error: Option<String>,
    at: Option<usize>,
    departs: Option<String>,
}

fn absolute() -> ReplyFormat {
    ReplyFormat::Absolute
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cases {
    case: Vec<Case>,
}

fn cases() -> Vec<Case> {
    let path = reference::fixtures().join("actions/cases.toml");
    let text = std::fs::read_to_string(path).expect("the table of cases is there");
    let cases: Cases = toml::from_str(&text).expect("the table of cases is valid");
    cases.case
}

fn osworld(format: ReplyFormat) -> Space {
    Space {
        format,
        model_size: ScreenSize {
            width: 1932,
            height: 1092,
        },
        screen: ScreenSize {
            width: 1920,
            height: 1080,
        },
        snap: 1,
        box_tokens: false,
    }
}

fn compact() -> Space {
    Space {
        format: ReplyFormat::Absolute,
        model_size: ScreenSize {
            width: 224,
            height: 168,
        },
        screen: ScreenSize {
            width: 448,
            height: 336,
        },
        snap: 4,
        box_tokens: false,
    }
}

fn check(case: &Case) {
    let name = &case.name;
    let parsed = parse_reply(&case.reply, &osworld(case.format));
    match (&case.actions, &case.error, parsed) {
        (Some(actions), None, Ok(parsed)) => {
            assert_eq!(&parsed.actions, actions, "{name}");
            assert_eq!(parsed.clamped, case.clamped.unwrap_or(false), "{name}");
            if let Some(thought) = &case.thought {
                assert_eq!(&parsed.thought, thought, "{name}");
            }
        }
        (None, Some(phrase), Err(error)) => {
            let message = error.to_string();
            assert!(message.contains(phrase), "{name}: {message}");
            assert!(error.at <= case.reply.len(), "{name}");
            if let Some(at) = case.at {
                assert_eq!(error.at, at, "{name}: {message}");
            }
        }
        (_, _, parsed) => panic!("{name}: unexpected {parsed:?}"),
    }
}

#[test]
fn every_case_is_read_as_its_table_says() {
    for case in cases() {
        check(&case);
    }
}

/// What the package answers to every case, by name: effects, or nothing for an error.
fn committed_answers() -> HashMap<String, Option<Value>> {
    let text = std::fs::read_to_string(reference::fixtures().join(ANSWERS))
        .expect("committed answers are there: run the tests with UPDATE=1");
    let answers: Vec<Value> = serde_json::from_str(&text).expect("answers are JSON");
    answers
        .into_iter()
        .map(|answer| {
            let name = answer["name"]
                .as_str()
                .expect("answers have names")
                .to_owned();
            (name, answer.get("actions").cloned())
        })
        .collect()
}

#[test]
fn each_difference_from_ui_tars_is_listed_with_its_reason() {
    let answers = committed_answers();
    for case in cases() {
        let name = &case.name;
        let theirs = answers.get(name).unwrap_or_else(|| {
            panic!("{ANSWERS} lacks `{name}`: run the tests with UPDATE=1");
        });
        let agree = agree(case.actions.as_deref(), theirs.as_ref());
        match case.departs {
            None => assert!(agree, "{name}: theirs is {theirs:?}, say why in `departs`"),
            Some(reason) => {
                assert!(reason.len() > 20, "{name}: give a reason");
                assert!(!agree, "{name}: they agree, drop `departs`");
            }
        }
    }
}

/// Whether both refuse, or both do the same. What is not an action of ours is not the same.
fn agree(ours: Option<&[Action]>, theirs: Option<&Value>) -> bool {
    match (ours, theirs) {
        (None, None) => true,
        (Some(ours), Some(theirs)) => {
            serde_json::from_value::<Vec<Action>>(theirs.clone()).is_ok_and(|theirs| theirs == ours)
        }
        _ => false,
    }
}

#[test]
fn the_committed_answers_of_ui_tars_are_its_own() {
    let questions: Vec<Value> = cases()
        .iter()
        .map(|case| json!({"name": case.name, "reply": case.reply, "format": case.format}))
        .collect();
    let Some(answers) = reference::run(SCRIPT, &json!(questions).to_string()) else {
        return;
    };
    let path = reference::fixtures().join(ANSWERS);
    if reference::is_update() {
        std::fs::write(&path, answers + "\n").unwrap();
        return;
    }
    let live: Value = serde_json::from_str(&answers).unwrap();
    let committed = std::fs::read_to_string(path).unwrap();
    let committed: Value = serde_json::from_str(&committed).unwrap();
    assert_eq!(live, committed, "run the tests with UPDATE=1");
}

#[test]
fn the_small_agent_is_read_and_written_in_its_own_spelling() {
    let at = |x, y| Point { x, y };
    let hotkey = |keys: &[&str]| Action::Hotkey {
        keys: keys.iter().map(|&key| key.to_owned()).collect(),
    };
    for (action, call) in [
        (
            Action::Click {
                at: at(312.0, 80.0),
            },
            "click(start_box='(156,40)')",
        ),
        (
            Action::LeftDouble { at: at(8.0, 16.0) },
            "left_double(start_box='(4,8)')",
        ),
        (
            Action::Drag {
                from: at(8.0, 16.0),
                to: at(80.0, 160.0),
            },
            "drag(start_box='(4,8)', end_box='(40,80)')",
        ),
        (hotkey(&["ctrl", "z"]), "hotkey(key='ctrl z')"),
        (
            Action::Type {
                content: "plan".to_owned(),
            },
            "type(content='plan')",
        ),
        (
            Action::Scroll {
                at: None,
                direction: ScrollDirection::Down,
            },
            "scroll(direction='down')",
        ),
        (Action::Wait, "wait()"),
        (
            Action::Finished {
                content: String::new(),
            },
            "finished()",
        ),
        (Action::Fail, "fail()"),
    ] {
        let text = format!("Thought: press subscript\nAction: {call}");
        let actions = vec![action];
        assert_eq!(print_reply("press subscript", &actions, &compact()), text);
        let parsed = parse_reply(&text, &compact()).unwrap();
        let expected = ParsedReply {
            thought: "press subscript".to_owned(),
            actions,
            clamped: false,
        };
        assert_eq!(parsed, expected);
    }
}

#[test]
fn box_tokens_and_points_are_written_where_asked_for() {
    let click = [Action::Click {
        at: Point { x: 480.0, y: 270.0 },
    }];
    let mut space = osworld(ReplyFormat::Absolute);
    space.box_tokens = true;
    let text = print_reply("", &click, &space);
    assert_eq!(
        text,
        "Action: click(start_box='<|box_start|>(483,273)<|box_end|>')"
    );
    assert_eq!(parse_reply(&text, &space).unwrap().actions, click);
    let text = print_reply("", &click, &osworld(ReplyFormat::Point));
    assert_eq!(text, "Action: click(point='<point>483 273</point>')");
    let text = print_reply("", &click, &osworld(ReplyFormat::Relative1000));
    assert_eq!(text, "Action: click(start_box='(250,250)')");
}

fn any_space() -> impl Strategy<Value = Space> {
    let format = prop_oneof![
        Just(ReplyFormat::Absolute),
        Just(ReplyFormat::Relative1000),
        Just(ReplyFormat::Point),
    ];
    let size = || (28_u32..3000, 28_u32..3000);
    (format, size(), size(), 1_u32..=28, any::<bool>()).prop_map(
        |(format, model, screen, snap, box_tokens)| Space {
            format,
            model_size: ScreenSize {
                width: model.0,
                height: model.1,
            },
            screen: ScreenSize {
                width: screen.0,
                height: screen.1,
            },
            snap,
            box_tokens,
        },
    )
}

fn any_key() -> impl Strategy<Value = String> {
    let named = prop::sample::select(vec!["ctrl", "shift", "space", "f12", "enter", "+", "a"]);
    let printed = prop::char::range('!', '~').prop_map(String::from);
    prop_oneof![named.prop_map(str::to_owned), printed]
        .prop_map(|key| keys::canonical(&key).expect("all are keys").to_owned())
}

/// Anything but the actions that end an episode; points are fractions of the screen.
fn any_action() -> impl Strategy<Value = Action> {
    let place = || (0.0_f32..1.0, 0.0_f32..1.0).prop_map(|(x, y)| Point { x, y });
    let direction = prop::sample::select(vec![
        ScrollDirection::Up,
        ScrollDirection::Down,
        ScrollDirection::Left,
        ScrollDirection::Right,
    ]);
    prop_oneof![
        place().prop_map(|at| Action::Click { at }),
        place().prop_map(|at| Action::LeftDouble { at }),
        place().prop_map(|at| Action::RightSingle { at }),
        place().prop_map(|at| Action::Hover { at }),
        (place(), place()).prop_map(|(from, to)| Action::Drag { from, to }),
        prop::collection::vec(any_key(), 1..4).prop_map(|keys| Action::Hotkey { keys }),
        any_key().prop_map(|key| Action::Press { key }),
        any_text().prop_map(|content| Action::Type { content }),
        (prop::option::of(place()), direction)
            .prop_map(|(at, direction)| Action::Scroll { at, direction }),
        Just(Action::Wait),
    ]
}

/// Text that is hard on quotes and escapes, never empty.
fn any_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        any::<String>(),
        r#"[\\'"nxu(),= \n\t]{1,12}"#,
        Just("Action: wait()".to_owned()),
        Just("')\n\nclick(".to_owned()),
        Just("你好\\".to_owned()),
    ];
    prop::collection::vec(piece, 1..4)
        .prop_map(|pieces| pieces.concat())
        .prop_filter("typing nothing is an error", |text| !text.is_empty())
}

fn any_ending() -> impl Strategy<Value = Option<Action>> {
    prop_oneof![
        Just(None),
        Just(Some(Action::Fail)),
        Just(Some(Action::CallUser)),
        prop_oneof![Just(String::new()), any_text()]
            .prop_map(|content| Some(Action::Finished { content })),
    ]
}

fn points_mut(action: &mut Action) -> Vec<&mut Point> {
    match action {
        Action::Click { at }
        | Action::LeftDouble { at }
        | Action::RightSingle { at }
        | Action::Hover { at } => vec![at],
        Action::Drag { from, to } => vec![from, to],
        Action::Scroll { at, .. } => at.iter_mut().collect(),
        _ => Vec::new(),
    }
}

/// Asserts that `found` is `wanted` with points moved by at most one snap of the model's
/// coordinates, in screen pixels.
fn assert_same_up_to_rounding(mut wanted: Action, mut found: Action, space: &Space) {
    let (across, down) = match space.format {
        ReplyFormat::Relative1000 => (1000, 1000),
        _ => (space.model_size.width, space.model_size.height),
    };
    let step_x = (space.snap * space.screen.width) as f32 / across as f32;
    let step_y = (space.snap * space.screen.height) as f32 / down as f32;
    for (a, b) in points_mut(&mut wanted)
        .into_iter()
        .zip(points_mut(&mut found))
    {
        assert!((a.x - b.x).abs() <= step_x + 1.0, "{a:?} {b:?} {space:?}");
        assert!((a.y - b.y).abs() <= step_y + 1.0, "{a:?} {b:?} {space:?}");
        *b = *a;
    }
    assert_eq!(wanted, found);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_printed_reads_back_the_same(
        space in any_space(),
        thought in any_text(),
        mut actions in prop::collection::vec(any_action(), 0..4),
        ending in any_ending(),
    ) {
        actions.extend(ending);
        if actions.is_empty() {
            actions.push(Action::Wait);
        }
        for point in actions.iter_mut().flat_map(points_mut) {
            point.x *= space.screen.width as f32 - 1.0;
            point.y *= space.screen.height as f32 - 1.0;
        }
        let text = print_reply(&thought, &actions, &space);
        let parsed = parse_reply(&text, &space).unwrap();
        prop_assert!(!parsed.clamped);
        prop_assert_eq!(&parsed.thought, &thought.trim().replace("Action:", "Action :"));
        prop_assert_eq!(parsed.actions.len(), actions.len());
        for (wanted, found) in actions.into_iter().zip(parsed.actions) {
            assert_same_up_to_rounding(wanted, found, &space);
        }
    }

    #[test]
    fn any_text_is_read_or_refused(space in any_space(), text in any::<String>()) {
        check_total(&text, &space);
    }

    #[test]
    fn pieces_of_the_grammar_in_any_order_are_read_or_refused(
        space in any_space(),
        pieces in prop::collection::vec(prop::sample::select(PIECES), 0..24),
    ) {
        check_total(&pieces.concat(), &space);
    }

    #[test]
    fn a_cut_reply_is_never_half_read(
        actions in prop::collection::vec(any_action(), 1..4),
        keep in 0.0..1.0_f64,
    ) {
        let text = print_reply("do it", &actions, &osworld(ReplyFormat::Absolute));
        let mut end = (text.len() as f64 * keep) as usize;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        if let Ok(parsed) = parse_reply(&text[..end], &osworld(ReplyFormat::Absolute)) {
            // Only a cut between two actions leaves a whole reply.
            let rest = text[end..].trim_start();
            let called = PIECES.iter().any(|name| name.ends_with('(') && rest.starts_with(name));
            prop_assert!(rest.is_empty() || called, "{rest:?}");
            prop_assert!(parsed.actions.len() <= actions.len());
        }
    }
}

const PIECES: &[&str] = &[
    "Action:",
    "Action: ",
    "Thought: ",
    "\n",
    "\n\n",
    " ",
    "click(",
    "left_double(",
    "right_single(",
    "hover(",
    "drag(",
    "hotkey(",
    "press(",
    "type(",
    "scroll(",
    "wait(",
    "finished()",
    "start_box=",
    "end_box=",
    "content=",
    "key=",
    "direction=",
    "'",
    "\"",
    "\\",
    "'(1,2)'",
    "'ctrl +'",
    "'down'",
    "<|box_start|>",
    "<|box_end|>",
    "<point>",
    ", ",
    ")",
    "(",
    "é",
    "你",
];

/// Every reply gives actions that do something, or an error within the reply.
fn check_total(text: &str, space: &Space) {
    match parse_reply(text, space) {
        Ok(parsed) => {
            assert!(!parsed.actions.is_empty());
            let count = parsed.actions.len();
            let early = parsed.actions[..count - 1].iter();
            assert!(early.clone().all(|action| !action.is_terminal()));
            for mut action in parsed.actions {
                for point in points_mut(&mut action) {
                    let (x, y) = (f64::from(point.x), f64::from(point.y));
                    assert!((0.0..f64::from(space.screen.width)).contains(&x));
                    assert!((0.0..f64::from(space.screen.height)).contains(&y));
                }
            }
        }
        Err(error) => {
            assert!(error.at <= text.len());
            assert!(text.is_char_boundary(error.at));
            assert!(!error.to_string().is_empty());
        }
    }
}
