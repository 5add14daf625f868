//! Actions as Python: held against Python itself, with a pyautogui that only writes down what it
//! is called with.

use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::input::python;
use super::python::write_text;
use crate::action::keys;
use crate::types::{Action, Point, ScreenSize, ScrollDirection};

const SCREEN: ScreenSize = ScreenSize {
    width: 1920,
    height: 1080,
};

/// Texts that have broken somebody's quoting.
const TEXTS: &[&str] = &[
    "",
    "plain",
    "it's \"done\" \\ \\n \\x41 \\u0041 {x} %s $HOME `id`",
    "');import os;os.system('id');('",
    "\\",
    "\\'",
    "'''",
    "a\nb\r\nc\td\0e\u{7}\u{1b}[0m\u{7f}\u{80}\u{ff}",
    "é ñ Ω € 你好世界 \u{2028} \u{feff} \u{ffff} 🙂 👩\u{200d}💻 e\u{301}",
    "#coding: latin-1",
];

/// Reads what Python prints as JSON; `None`, and says so, where there is no Python.
fn by_python(test: &str, program: &str, input: &Value) -> Option<Value> {
    let spawned = Command::new("python3")
        .args(["-c", program])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut child) = spawned else {
        eprintln!("skipped, no python3: {test}");
        return None;
    };
    let mut stdin = child.stdin.take().expect("it is piped");
    stdin
        .write_all(input.to_string().as_bytes())
        .expect("python3 reads");
    drop(stdin);
    let output = child.wait_with_output().expect("python3 ends");
    assert!(output.status.success(), "{test}: python3 failed");
    Some(serde_json::from_slice(&output.stdout).expect("python3 prints JSON"))
}

#[test]
fn literals_are_what_python_reads() {
    let every = (1..=0x3000)
        .chain(0x1_f300..0x1_f700)
        .chain(0xff00..=0xffff);
    let every: String = every.filter_map(char::from_u32).collect();
    let texts: Vec<&str> = TEXTS.iter().copied().chain([every.as_str()]).collect();
    let literals = texts.iter().map(|text| {
        let mut source = String::new();
        write_text(&mut source, text);
        assert!(source.bytes().all(|byte| (b' '..=b'~').contains(&byte)));
        source
    });
    let program = "import ast, json, sys; \
        print(json.dumps([ast.literal_eval(text) for text in json.load(sys.stdin)]))";
    let input = json!(literals.collect::<Vec<_>>());
    if let Some(read) = by_python("literals_are_what_python_reads", program, &input) {
        assert_eq!(read, json!(texts));
    }
}

/// Runs each source with a pyautogui, and in place of `paste` a function, that write down their
/// calls: name, arguments, named arguments.
const RECORDER: &str = r#"
import ast, json, sys, types

def run(source):
    calls = []
    def recorder(name):
        return lambda *args, **named: calls.append([name, *args] + ([named] if named else []))
    class Stub(types.ModuleType):
        def __getattr__(self, name):
            if name.startswith("__"):
                raise AttributeError(name)
            return recorder(name)
    stub = sys.modules["pyautogui"] = Stub("pyautogui")
    tree = ast.parse(source)
    ours = (ast.FunctionDef, ast.ImportFrom, ast.For)
    tree.body = [part for part in tree.body if not isinstance(part, ours)]
    exec(compile(tree, "action", "exec"), {"paste": recorder("paste")})
    assert stub.FAILSAFE is False
    return calls

print(json.dumps([run(source) for source in json.load(sys.stdin)]))
"#;

fn typed(content: &str) -> Action {
    Action::Type {
        content: content.to_owned(),
    }
}

fn hotkey(keys: &[&str]) -> Action {
    Action::Hotkey {
        keys: keys.iter().map(|&key| key.to_owned()).collect(),
    }
}

fn scroll(at: Option<Point>, direction: ScrollDirection) -> Action {
    Action::Scroll { at, direction }
}

/// Actions and the calls that they are.
fn table() -> Vec<(Action, Value)> {
    let at = Point { x: 966.7, y: 0.0 };
    let outside = Point { x: 1e9, y: -3.0 };
    let nowhere = Point {
        x: f32::NAN,
        y: 1080.0,
    };
    let write = |text: &str| json!(["typewrite", text, {"interval": 0.02}]);
    let (enter, less) = (["hotkey", "enter"], ["hotkey", "shift", ","]);
    vec![
        (Action::Click { at }, json!([["click", 966, 0]])),
        (Action::Click { at: outside }, json!([["click", 1919, 0]])),
        (Action::Click { at: nowhere }, json!([["click", 0, 1079]])),
        (Action::LeftDouble { at }, json!([["doubleClick", 966, 0]])),
        (Action::RightSingle { at }, json!([["rightClick", 966, 0]])),
        (Action::Hover { at }, json!([["moveTo", 966, 0]])),
        (
            Action::Drag {
                from: at,
                to: Point { x: 1.0, y: 2.0 },
            },
            json!([["moveTo", 966, 0], ["dragTo", 1, 2, {"duration": 1.0, "button": "left"}]]),
        ),
        (
            hotkey(&["ctrl", "shift", "p"]),
            json!([["hotkey", "ctrl", "shift", "p"]]),
        ),
        (
            hotkey(&["ctrl", "<"]),
            json!([["hotkey", "ctrl", "shift", ","]]),
        ),
        (
            hotkey(&["super", "menu"]),
            json!([["hotkey", "win", "apps"]]),
        ),
        (
            Action::Press {
                key: "<".to_owned(),
            },
            json!([less]),
        ),
        (
            Action::Press {
                key: "'".to_owned(),
            },
            json!([["hotkey", "'"]]),
        ),
        (hotkey(&["volumeup"]), json!([["hotkey", "volumeup"]])),
        (
            scroll(Some(at), ScrollDirection::Up),
            json!([["moveTo", 966, 0], ["vscroll", 5]]),
        ),
        (
            scroll(None, ScrollDirection::Down),
            json!([["vscroll", -5]]),
        ),
        (
            scroll(None, ScrollDirection::Left),
            json!([["hscroll", -5]]),
        ),
        (
            scroll(None, ScrollDirection::Right),
            json!([["hscroll", 5]]),
        ),
        (typed(""), json!([])),
        (typed("it's\n"), json!([write("it's"), enter])),
        (
            typed("a <b>\r\n\r\tc\\n<"),
            json!([
                write("a "),
                less,
                write("b>"),
                enter,
                enter,
                ["hotkey", "tab"],
                write("c\\n"),
                less
            ]),
        ),
        (
            typed("plain\n你好 <b>\ttail\n"),
            json!([
                write("plain"),
                enter,
                ["paste", "你好 <b>"],
                ["hotkey", "tab"],
                write("tail"),
                enter
            ]),
        ),
        (typed("a\u{1b}b"), json!([["paste", "a\u{1b}b"]])),
    ]
}

#[test]
fn volume_keys_are_taught_to_pyautogui() {
    for (keys, is_taught) in [(&["ctrl", "volumeup"], true), (&["ctrl", "up"], false)] {
        let source = python(&hotkey(keys), SCREEN).expect("it does something");
        assert_eq!(source.contains("keyboardMapping[name] ="), is_taught);
    }
}

#[test]
fn actions_are_calls_of_pyautogui() {
    let (actions, expected): (Vec<Action>, Vec<Value>) = table().into_iter().unzip();
    let sources: Vec<String> = actions
        .iter()
        .map(|action| python(action, SCREEN).expect("it does something"))
        .collect();
    for source in &sources {
        assert!(source.is_ascii(), "{source}");
    }
    let test = "actions_are_calls_of_pyautogui";
    let Some(calls) = by_python(test, RECORDER, &json!(sources)) else {
        return;
    };
    for (index, (action, expected)) in actions.iter().zip(expected).enumerate() {
        assert_eq!(calls[index], expected, "{action:?}: {}", sources[index]);
    }
}

#[test]
fn any_text_is_typed_whole() {
    let sources = TEXTS.iter().map(|text| python(&typed(text), SCREEN));
    let test = "any_text_is_typed_whole";
    let Some(calls) = by_python(test, RECORDER, &json!(sources.collect::<Vec<_>>())) else {
        return;
    };
    for (index, text) in TEXTS.iter().enumerate() {
        let mut entered = String::new();
        for call in calls[index].as_array().expect("calls") {
            entered += match call[1].as_str().expect("a text or a key") {
                "enter" => "\n",
                "tab" => "\t",
                text => text,
            };
        }
        assert_eq!(entered, text.replace("\r\n", "\n"));
    }
}

#[test]
fn a_long_text_is_typed_in_time() {
    let source = python(&typed(&"x".repeat(30_000)), SCREEN).expect("it does something");
    assert!(
        source.ends_with("', interval=0.001)\n"),
        "{}",
        &source[30_000..]
    );
}

#[test]
fn what_is_no_input_asks_nothing_of_the_desktop() {
    let done = Action::Finished {
        content: "done".to_owned(),
    };
    for action in [Action::Wait, done, Action::Fail, Action::CallUser] {
        assert_eq!(python(&action, SCREEN), None);
    }
}

/// The named keys that pyautogui 0.9.54 finds under X, as far as ours are among them.
// python: keys = pyautogui._pyautogui_x11.keyboardMapping
// python: sorted(key for key in keys if len(key) > 1 and keys[key])
const KEYS_OF_PYAUTOGUI: &str = "alt apps backspace capslock ctrl delete down end enter esc f1 f2 \
    f3 f4 f5 f6 f7 f8 f9 f10 f11 f12 home insert left numlock pagedown pageup pause printscreen \
    right scrolllock shift space tab up win";

#[test]
fn every_named_key_is_one_of_pyautoguis() {
    let theirs: Vec<&str> = KEYS_OF_PYAUTOGUI.split_whitespace().collect();
    for key in keys::all_named() {
        for name in super::input::names(key) {
            let is_taught = name.starts_with("volume");
            assert!(is_taught || theirs.contains(&name), "{key} is {name}");
        }
    }
}
