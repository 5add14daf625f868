//! What each call of pyautogui does.

use std::time::Duration;

use super::read::{Literal, Statement};
use crate::guest::input::{
    Gesture, LEFT, MIDDLE, RIGHT, WHEEL_DOWN, WHEEL_LEFT, WHEEL_RIGHT, WHEEL_UP,
};
use crate::guest::keyboard::{symbol_of_char, symbol_of_key};

/// Longer than the server lets any command run, so that a mistake is no overflow.
const LONGEST_S: f64 = 100.0;

/// The most of anything that is counted.
const MOST: i64 = 1000;

/// The gestures of a statement; none if it is not understood.
pub(super) fn gestures(statement: &Statement) -> Option<Vec<Gesture>> {
    match statement {
        Statement::Import(names) => {
            let is_known = |name: &String| matches!(name.as_str(), "pyautogui" | "time");
            names.iter().all(is_known).then(Vec::new)
        }
        Statement::Assign(name, Literal::Bool(_)) if name == "pyautogui.FAILSAFE" => {
            Some(Vec::new())
        }
        Statement::Assign(..) => None,
        Statement::Call {
            function,
            arguments,
            named,
        } => {
            let function = match function.as_str() {
                "time.sleep" => "sleep",
                name => name.strip_prefix("pyautogui.")?,
            };
            if function == "hotkey" {
                return hotkey(arguments, named);
            }
            let names = parameters(function)?;
            call(function, &Arguments::bind(names, arguments, named)?)
        }
    }
}

/// Parameters of a function, in order, as far as they are understood.
fn parameters(function: &str) -> Option<&'static [&'static str]> {
    Some(match function {
        "click" => &[
            "x", "y", "clicks", "interval", "button", "duration", "tween",
        ],
        "leftClick" | "rightClick" | "middleClick" => &["x", "y", "interval", "duration", "tween"],
        "doubleClick" | "tripleClick" => &["x", "y", "interval", "button", "duration", "tween"],
        "moveTo" => &["x", "y", "duration", "tween"],
        "moveRel" | "move" => &["xOffset", "yOffset", "duration", "tween"],
        // What stands between is about logs.
        "dragTo" => &["x", "y", "duration", "tween", "button", "mouseDownUp"],
        "dragRel" | "drag" => &[
            "xOffset",
            "yOffset",
            "duration",
            "tween",
            "button",
            "mouseDownUp",
        ],
        "mouseDown" | "mouseUp" => &["x", "y", "button", "duration", "tween"],
        "scroll" | "vscroll" | "hscroll" => &["clicks", "x", "y"],
        "press" => &["keys", "presses", "interval"],
        "keyDown" | "keyUp" => &["key"],
        "typewrite" | "write" => &["message", "interval"],
        "sleep" => &["seconds"],
        _ => return None,
    })
}

/// The arguments of a call by their names.
struct Arguments<'a>(Vec<(&'a str, &'a Literal)>);

impl<'a> Arguments<'a> {
    fn bind(
        names: &'static [&'static str],
        arguments: &'a [Literal],
        named: &'a [(String, Literal)],
    ) -> Option<Self> {
        // Positions behind the fourth differ between versions.
        if arguments.len() > names.len().min(4) {
            return None;
        }
        let mut bound: Vec<(&str, &Literal)> = names.iter().copied().zip(arguments).collect();
        for (name, value) in named {
            let is_new = bound.iter().all(|(bound, _)| bound != name);
            if !is_new || !names.contains(&name.as_str()) {
                return None;
            }
            bound.push((name, value));
        }
        let this = Self(bound);
        this.is_tween_known().then_some(this)
    }

    fn get(&self, name: &str) -> &'a Literal {
        let own = self.0.iter().find(|(bound, _)| *bound == name);
        own.map_or(&Literal::None, |(_, value)| value)
    }

    fn is_tween_known(&self) -> bool {
        match self.get("tween") {
            Literal::None => true,
            Literal::Name(name) => name.starts_with("pyautogui.ease") || name == "pyautogui.linear",
            _ => false,
        }
    }

    fn number(&self, name: &str) -> Option<f64> {
        match self.get(name) {
            Literal::Int(value) => Some(*value as f64),
            Literal::Float(value) => Some(*value),
            _ => None,
        }
    }

    /// A number, 0 where there is none.
    fn offset(&self, name: &str) -> Option<f64> {
        match self.get(name) {
            Literal::None => Some(0.0),
            _ => self.number(name),
        }
    }

    fn duration(&self, name: &str) -> Option<Duration> {
        let seconds = self.offset(name)?;
        (0.0..=LONGEST_S)
            .contains(&seconds)
            .then(|| Duration::from_secs_f64(seconds))
    }

    fn count(&self, name: &str, usual: i64) -> Option<i64> {
        match self.get(name) {
            Literal::None => Some(usual),
            Literal::Int(value) => (-MOST..=MOST).contains(value).then_some(*value),
            // Of the wheel.
            Literal::Float(value) => (value.abs() <= MOST as f64).then_some(*value as i64),
            _ => None,
        }
    }

    fn button(&self) -> Option<u8> {
        match self.get("button") {
            Literal::None => Some(LEFT),
            Literal::Text(name) => match name.as_str() {
                "left" | "primary" => Some(LEFT),
                "middle" => Some(MIDDLE),
                "right" | "secondary" => Some(RIGHT),
                _ => None,
            },
            _ => None,
        }
    }

    /// The move to where it says, if it says so.
    fn there(&self) -> Option<Vec<Gesture>> {
        let over = self.duration("duration")?;
        if (self.get("x"), self.get("y")) == (&Literal::None, &Literal::None) {
            return Some(Vec::new());
        }
        Some(vec![Gesture::MoveTo {
            x: self.number("x")? as i32,
            y: self.number("y")? as i32,
            over,
        }])
    }

    fn away(&self) -> Option<Vec<Gesture>> {
        Some(vec![Gesture::MoveBy {
            x: self.offset("xOffset")? as i32,
            y: self.offset("yOffset")? as i32,
            over: self.duration("duration")?,
        }])
    }

    fn texts(&self, name: &str) -> Option<Vec<&'a str>> {
        let text = |literal: &'a Literal| match literal {
            Literal::Text(text) => Some(text.as_str()),
            _ => None,
        };
        match self.get(name) {
            Literal::List(list) => list.iter().map(text).collect(),
            literal => Some(vec![text(literal)?]),
        }
    }
}

fn call(function: &str, arguments: &Arguments<'_>) -> Option<Vec<Gesture>> {
    let clicks = |button: u8, count: i64| {
        let count = usize::try_from(count).ok()?;
        let pause = arguments.duration("interval")?;
        Some([arguments.there()?, Gesture::clicks(button, count, pause)].concat())
    };
    match function {
        "click" => clicks(arguments.button()?, arguments.count("clicks", 1)?),
        "leftClick" => clicks(LEFT, 1),
        "rightClick" => clicks(RIGHT, 1),
        "middleClick" => clicks(MIDDLE, 1),
        "doubleClick" => clicks(arguments.button()?, 2),
        "tripleClick" => clicks(arguments.button()?, 3),
        "moveTo" => arguments.there(),
        "moveRel" | "move" => arguments.away(),
        "dragTo" => drag(arguments, arguments.there()?),
        "dragRel" | "drag" => drag(arguments, arguments.away()?),
        "mouseDown" => {
            let down = Gesture::ButtonDown(arguments.button()?);
            Some([arguments.there()?, vec![down]].concat())
        }
        "mouseUp" => {
            let up = Gesture::ButtonUp(arguments.button()?);
            Some([arguments.there()?, vec![up]].concat())
        }
        "scroll" | "vscroll" => scroll(arguments, [WHEEL_UP, WHEEL_DOWN]),
        "hscroll" => scroll(arguments, [WHEEL_RIGHT, WHEEL_LEFT]),
        "press" => press(arguments),
        "keyDown" => Some(vec![Gesture::KeyDown(key(arguments)?)]),
        "keyUp" => Some(vec![Gesture::KeyUp(key(arguments)?)]),
        "typewrite" | "write" => typewrite(arguments),
        "sleep" => {
            arguments.number("seconds")?;
            Some(vec![Gesture::Rest(arguments.duration("seconds")?)])
        }
        _ => None,
    }
}

fn drag(arguments: &Arguments<'_>, moves: Vec<Gesture>) -> Option<Vec<Gesture>> {
    let button = arguments.button()?;
    match arguments.get("mouseDownUp") {
        Literal::Bool(false) => return Some(moves),
        Literal::Bool(true) | Literal::None => {}
        _ => return None,
    }
    let down = vec![Gesture::ButtonDown(button)];
    Some([down, moves, vec![Gesture::ButtonUp(button)]].concat())
}

/// The first button for a positive number, the second for a negative one.
fn scroll(arguments: &Arguments<'_>, buttons: [u8; 2]) -> Option<Vec<Gesture>> {
    let clicks = match arguments.get("clicks") {
        Literal::None => return None,
        _ => arguments.count("clicks", 0)?,
    };
    let button = buttons[usize::from(clicks < 0)];
    let turns = Gesture::clicks(button, clicks.unsigned_abs() as usize, Duration::ZERO);
    Some([arguments.there()?, turns].concat())
}

fn key(arguments: &Arguments<'_>) -> Option<String> {
    match arguments.get("key") {
        Literal::Text(name) => known(name),
        _ => None,
    }
}

/// A key's name, if it has a key.
fn known(name: &str) -> Option<String> {
    symbol_of_key(name).map(|_| name.to_owned())
}

fn press(arguments: &Arguments<'_>) -> Option<Vec<Gesture>> {
    let names = arguments.texts("keys")?.into_iter().map(known);
    let names: Vec<String> = names.collect::<Option<_>>()?;
    let presses = usize::try_from(arguments.count("presses", 1)?).ok()?;
    let pause = Gesture::Rest(arguments.duration("interval")?);
    let once = names.iter().flat_map(|name| {
        let keys = std::slice::from_ref(name);
        [Gesture::chord(keys), vec![pause.clone()]].concat()
    });
    let once: Vec<Gesture> = once.collect();
    Some(vec![once; presses].concat())
}

/// A text, or a list of keys and characters.
fn typewrite(arguments: &Arguments<'_>) -> Option<Vec<Gesture>> {
    let interval = arguments.duration("interval")?;
    let is_list = matches!(arguments.get("message"), Literal::List(_));
    let parts = arguments.texts("message")?.into_iter().map(|part| {
        if is_list && part.chars().count() > 1 {
            return Some(Gesture::chord(&[known(part)?]));
        }
        part.chars()
            .all(|c| c == '\r' || symbol_of_char(c).is_some())
            .then_some(())?;
        let mut typing = Gesture::text(part);
        if let Gesture::Type { interval: own, .. } = &mut typing {
            *own = interval.max(*own);
        }
        Some(vec![typing])
    });
    Some(parts.collect::<Option<Vec<_>>>()?.concat())
}

/// Keys held together.
fn hotkey(arguments: &[Literal], named: &[(String, Literal)]) -> Option<Vec<Gesture>> {
    let is_interval = |(name, _): &(String, Literal)| name == "interval";
    let name = |literal: &Literal| match literal {
        Literal::Text(name) => known(name),
        _ => None,
    };
    let list = match arguments {
        [Literal::List(list)] => list.as_slice(),
        list => list,
    };
    let names: Vec<String> = list.iter().map(name).collect::<Option<_>>()?;
    named
        .iter()
        .all(is_interval)
        .then(|| Gesture::chord(&names))
}
