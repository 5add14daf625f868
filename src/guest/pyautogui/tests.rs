//! What is understood, what it means, and what is left to Python.

use std::time::Duration;

use super::{PREFIX, read_source, without_prefix};
use crate::guest::input::Gesture;

fn read(calls: &str) -> Option<Vec<Gesture>> {
    read_source(&format!("{PREFIX}{calls}"))
}

fn typed(text: &str) -> Vec<Gesture> {
    vec![Gesture::text(text)]
}

fn pointer(x: i32, y: i32, seconds: f64) -> Gesture {
    let over = Duration::from_secs_f64(seconds);
    Gesture::MoveTo { x, y, over }
}

#[test]
fn calls_are_gestures() {
    let none = Duration::ZERO;
    let left = |count| Gesture::clicks(1, count, none);
    let table: Vec<(&str, Vec<Gesture>)> = vec![
        ("", vec![]),
        ("pyautogui.click()", left(1)),
        ("pyautogui.moveTo()", vec![]),
        (
            "pyautogui.moveTo(10, 20.9, 0.5, pyautogui.easeInQuad)",
            vec![pointer(10, 20, 0.5)],
        ),
        (
            "pyautogui.click(button='right', x=1, y=2, clicks=2)",
            [vec![pointer(1, 2, 0.0)], Gesture::clicks(3, 2, none)].concat(),
        ),
        (
            "pyautogui.doubleClick(x=1, y=2)",
            [vec![pointer(1, 2, 0.0)], left(2)].concat(),
        ),
        (
            "pyautogui.mouseDown(button='middle')",
            vec![Gesture::ButtonDown(2)],
        ),
        (
            "pyautogui.dragTo(3, 4, duration=1.0, button='left', mouseDownUp=True)",
            vec![
                Gesture::ButtonDown(1),
                pointer(3, 4, 1.0),
                Gesture::ButtonUp(1),
            ],
        ),
        ("pyautogui.vscroll(-2)", Gesture::clicks(5, 2, none)),
        ("pyautogui.hscroll(1)", Gesture::clicks(7, 1, none)),
        (
            "pyautogui.hotkey('ctrl', 'shift', 't')",
            Gesture::chord(&["ctrl", "shift", "t"]),
        ),
        (
            "pyautogui.keyUp('altleft')",
            vec![Gesture::KeyUp("altleft".into())],
        ),
        (
            "pyautogui.press(['up', \"a\"], presses=1)",
            ["up", "a"]
                .map(|key| [Gesture::chord(&[key]), vec![Gesture::Rest(none)]].concat())
                .concat(),
        ),
        (
            r#"pyautogui.typewrite('it\'s "x" \\ \u00e9\n')"#,
            typed("it's \"x\" \\ é\n"),
        ),
        (
            "pyautogui.typewrite(\"it's; pyautogui.click(1\")",
            typed("it's; pyautogui.click(1"),
        ),
        ("pyautogui.write('你好🙂', interval=0.001)", typed("你好🙂")),
        (
            "pyautogui.typewrite(['a', 'enter'])",
            [typed("a"), Gesture::chord(&["enter"])].concat(),
        ),
        (
            "# first\npyautogui.click(\n  x=1,\n  y=2,\n)\n\ntime.sleep(0.5) # then\n",
            [
                vec![pointer(1, 2, 0.0)],
                left(1),
                vec![Gesture::Rest(Duration::from_millis(500))],
            ]
            .concat(),
        ),
    ];
    for (calls, expected) in table {
        assert_eq!(read(calls), Some(expected), "{calls}");
    }
}

#[test]
fn what_is_not_understood_to_its_end_is_pythons() {
    let table = [
        "import os",
        "print(1)",
        "x = 5; pyautogui.click(x, 5)",
        "pyautogui.click(1, 2); os.remove('x')",
        "pyautogui.click(1, 2) if True else None",
        "pyautogui.click(1 + 1, 2)",
        "pyautogui.click(1, 2).x",
        "pyautogui.click('button.png')",
        "pyautogui.click(1, 2, 3, 4, 5)",
        "pyautogui.click(x=1, x=2)",
        "pyautogui.click(y=2, 1)",
        "pyautogui.click(1, 2",
        "pyautogui.click(1, 2, clicks=1000000)",
        "pyautogui.typewrite(f'{x}')",
        "pyautogui.typewrite('a' 'b')",
        "pyautogui.typewrite('a' + 'b')",
        "pyautogui.typewrite('''a''')",
        "pyautogui.typewrite('a\nb')",
        r"pyautogui.typewrite('\101')",
        r"pyautogui.typewrite('\N{BULLET}')",
        "pyautogui.typewrite('a\\",
        "pyautogui.typewrite(012)",
        "pyautogui.press('no such key')",
        "pyautogui.screenshot()",
        "pyautogui.moveTo(1, 2, tween=evil)",
        "pyautogui.sleep(1e9)",
        "pyautogui.sleep(-1)",
        "pyautogui.sleep()",
        "pyautogui.FAILSAFE = os.system('x')",
        "for i in range(3): pyautogui.click()",
        "pyautogui.scroll()",
    ];
    for calls in table {
        assert_eq!(read(calls), None, "{calls}");
    }
}

#[test]
fn what_needs_no_pyautogui_does_not_import_it() {
    let command = |source: &str| ["python", "-c", source].map(str::to_owned).to_vec();
    let table = [
        ("print(1)", "import time; print(1)".to_owned()),
        (
            "x = pyautogui.size()",
            format!("{PREFIX}x = pyautogui.size()"),
        ),
    ];
    for (code, expected) in table {
        let run = without_prefix(command(&format!("{PREFIX}{code}")));
        assert_eq!(run, command(&expected));
    }
    assert_eq!(without_prefix(command("import os")), command("import os"));
}
