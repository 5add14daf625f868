//! Actions as what the guest's own Python does to its desktop with pyautogui.
//!
//! Source: ARPO@7489ae3 `verl/trainer/gui_agent.py` for which call each action is. Departs: text
//! that pyautogui drops or garbles goes another way, keys are pressed by their names, and nothing
//! is spliced into source.

use super::python::{Literal, Source};
use crate::types::{Action, Point, ScreenSize, ScrollDirection};

/// Before any action: a pointer in the corner must not end it.
const PRELUDE: &str = "import pyautogui\npyautogui.FAILSAFE = False\n";

/// pyautogui has names for these keys and looks for them under wrong ones; by X's numbers they are
/// found (`XF86AudioLowerVolume` and so on in X11's `XF86keysym.h`).
const VOLUME_KEYS: &str = "\
from pyautogui import _pyautogui_x11 as x11
for name, keysym in (('volumedown', 0x1008ff11), ('volumemute', 0x1008ff12), ('volumeup', 0x1008ff13)):
    x11.keyboardMapping[name] = x11._display.keysym_to_keycode(keysym)
";

/// The function `paste`, for what keys cannot type.
const PASTE: &str = include_str!("../../../assets/guest/paste.py");

/// Clicks of the wheel that a scroll is.
const SCROLL_CLICKS: i64 = 5;

/// How long a drag takes: applications take a jump for no drag.
const DRAG_S: f64 = 1.0;

/// Time between typed characters; less where a text is so long that it would take half a minute.
const TYPE_INTERVAL_S: f64 = 0.02;

/// How long typing a text may take, beside pyautogui's own work.
const TYPE_S: f64 = 30.0;

/// Python that does it; `None` where an action does nothing to the desktop. Points are clamped to
/// the screen.
pub(super) fn python(action: &Action, screen: ScreenSize) -> Option<String> {
    let mut source = Source::new(PRELUDE);
    let at = |point: &Point| pixel(*point, screen);
    match action {
        Action::Click { at: place } => source.call("pyautogui.click", &at(place)),
        Action::LeftDouble { at: place } => source.call("pyautogui.doubleClick", &at(place)),
        Action::RightSingle { at: place } => source.call("pyautogui.rightClick", &at(place)),
        Action::Hover { at: place } => source.call("pyautogui.moveTo", &at(place)),
        Action::Drag { from, to } => {
            source.call("pyautogui.moveTo", &at(from));
            let named = [
                ("duration", Literal::Float(DRAG_S)),
                ("button", Literal::Text("left")),
            ];
            source.call_with("pyautogui.dragTo", &at(to), &named);
        }
        Action::Hotkey { keys } => press(&mut source, keys),
        Action::Press { key } => press(&mut source, std::slice::from_ref(key)),
        Action::Type { content } => return Some(type_text(content)),
        Action::Scroll {
            at: place,
            direction,
        } => {
            if let Some(place) = place {
                source.call("pyautogui.moveTo", &at(place));
            }
            let (function, clicks) = match direction {
                ScrollDirection::Up => ("pyautogui.vscroll", SCROLL_CLICKS),
                ScrollDirection::Down => ("pyautogui.vscroll", -SCROLL_CLICKS),
                ScrollDirection::Left => ("pyautogui.hscroll", -SCROLL_CLICKS),
                ScrollDirection::Right => ("pyautogui.hscroll", SCROLL_CLICKS),
            };
            source.call(function, &[Literal::Int(clicks)]);
        }
        Action::Wait | Action::Finished { .. } | Action::Fail | Action::CallUser => return None,
    }
    Some(source.finish())
}

/// The pixel of a point, within the screen.
fn pixel(point: Point, screen: ScreenSize) -> [Literal<'static>; 2] {
    let within = |value: f32, length: u32| {
        let last = i64::from(length.max(1)) - 1;
        // Not a number is 0 as an integer.
        Literal::Int((value.floor() as i64).clamp(0, last))
    };
    [
        within(point.x, screen.width),
        within(point.y, screen.height),
    ]
}

/// Keys together, by their canonical names.
fn press<T: AsRef<str>>(source: &mut Source, keys: &[T]) {
    let keys = keys.iter().map(AsRef::as_ref);
    if keys.clone().any(|key| key.starts_with("volume")) {
        source.add(VOLUME_KEYS);
    }
    let names: Vec<Literal<'_>> = keys.flat_map(names).map(Literal::Text).collect();
    source.call("pyautogui.hotkey", &names);
}

/// pyautogui's names of a key. It ignores names that it does not know.
pub(super) fn names(key: &str) -> impl Iterator<Item = &str> {
    let (first, second) = match key {
        "super" => ("win", None),
        "menu" => ("apps", None),
        // It looks for a key that gives `<` by itself, finds the one beside the left shift, and
        // holds shift on it, which gives `>`.
        "<" => ("shift", Some(",")),
        key => (key, None),
    };
    std::iter::once(first).chain(second)
}

/// Types line by line: what is between ends of lines and tabulators by keys if all of it can be,
/// else through the clipboard; the ends and tabulators are keys.
fn type_text(content: &str) -> String {
    let content = content.replace("\r\n", "\n").replace('\r', "\n");
    let can_type = |text: &str| text.chars().all(|c| matches!(c, ' '..='~'));
    let pieces = || content.split_inclusive(['\n', '\t']);
    let strip = |piece: &'_ str| piece.trim_end_matches(['\n', '\t']).to_owned();
    let is_pasted = pieces().any(|piece| !can_type(&strip(piece)));
    let mut source = Source::new(if is_pasted { PASTE } else { PRELUDE });
    let seconds = TYPE_S / content.chars().count().max(1) as f64;
    let interval = Literal::Float(TYPE_INTERVAL_S.min(seconds));
    for piece in pieces() {
        let text = strip(piece);
        if can_type(&text) {
            type_keys(&mut source, &text, interval);
        } else {
            source.call("paste", &[Literal::Text(&text)]);
        }
        match piece.chars().next_back() {
            Some('\n') => press(&mut source, &["enter"]),
            Some('\t') => press(&mut source, &["tab"]),
            _ => {}
        }
    }
    source.finish()
}

/// Types a text of printable ASCII.
fn type_keys(source: &mut Source, text: &str, interval: Literal<'_>) {
    for (index, part) in text.split('<').enumerate() {
        if index > 0 {
            press(source, &["<"]);
        }
        if !part.is_empty() {
            let named = [("interval", interval)];
            source.call_with("pyautogui.typewrite", &[Literal::Text(part)], &named);
        }
    }
}
