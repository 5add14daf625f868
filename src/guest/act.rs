//! An agent's actions as gestures: the same that `env::guest` does with pyautogui on a desktop whose
//! server is the original.

use std::time::Duration;

use super::input::{Gesture, LEFT, RIGHT, WHEEL_DOWN, WHEEL_LEFT, WHEEL_RIGHT, WHEEL_UP};
use crate::types::{Action, Point, ScreenSize, ScrollDirection};

/// Clicks of the wheel that a scroll is.
const SCROLL_CLICKS: usize = 5;

/// How long a drag takes: programs take a jump for no drag.
const DRAG: Duration = Duration::from_secs(1);

/// What is done for an action; nothing where it is none of the desktop's. Points are clamped to the
/// screen.
pub(super) fn gestures(action: &Action, screen: ScreenSize) -> Vec<Gesture> {
    let to = |point: &Point| {
        let (x, y) = pixel(*point, screen);
        Gesture::move_to(x, y)
    };
    let click = |at: &Point, button, count| {
        let clicks = Gesture::clicks(button, count, Duration::ZERO);
        [vec![to(at)], clicks].concat()
    };
    match action {
        Action::Click { at } => click(at, LEFT, 1),
        Action::LeftDouble { at } => click(at, LEFT, 2),
        Action::RightSingle { at } => click(at, RIGHT, 1),
        Action::Hover { at } => vec![to(at)],
        Action::Drag { from, to: end } => {
            let (x, y) = pixel(*end, screen);
            vec![
                to(from),
                Gesture::ButtonDown(LEFT),
                Gesture::MoveTo { x, y, over: DRAG },
                Gesture::ButtonUp(LEFT),
            ]
        }
        Action::Hotkey { keys } => Gesture::chord(keys),
        Action::Press { key } => Gesture::chord(std::slice::from_ref(key)),
        Action::Type { content } => vec![Gesture::text(content)],
        Action::Scroll { at, direction } => {
            let button = match direction {
                ScrollDirection::Up => WHEEL_UP,
                ScrollDirection::Down => WHEEL_DOWN,
                ScrollDirection::Left => WHEEL_LEFT,
                ScrollDirection::Right => WHEEL_RIGHT,
            };
            let turns = Gesture::clicks(button, SCROLL_CLICKS, Duration::ZERO);
            at.iter().map(to).chain(turns).collect()
        }
        Action::Wait | Action::Finished { .. } | Action::Fail | Action::CallUser => Vec::new(),
    }
}

/// The pixel of a point, within the screen.
fn pixel(point: Point, screen: ScreenSize) -> (i32, i32) {
    let within = |value: f32, length: u32| {
        let last = length.clamp(1, i16::MAX as u32) as i32 - 1;
        // Not a number is 0 as an integer.
        (value.floor() as i32).clamp(0, last)
    };
    (
        within(point.x, screen.width),
        within(point.y, screen.height),
    )
}
