//! One parsed action in screen pixels. Text and grammar are in `action`; nothing after the
//! parser knows the model's coordinate space.

use serde::{Deserialize, Serialize};

/// A place on the screen in pixels from the top left.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Pixels from the left.
    pub x: f32,
    /// Pixels from the top.
    pub y: f32,
}

/// How a model writes coordinates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplyFormat {
    /// Pixels of the resized image (UI-TARS 1.5): `start_box='(x,y)'`.
    Absolute,
    /// Thousandths of width and height (UI-TARS 1.0): `start_box='(x,y)'`.
    #[serde(rename = "relative_1000")]
    Relative1000,
    /// Pixels of the resized image in `<point>x y</point>`.
    Point,
}

/// Where a scroll goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScrollDirection {
    /// Towards the start of the page.
    Up,
    /// Towards its end.
    Down,
    /// Towards the left edge.
    Left,
    /// Towards the right edge.
    Right,
}

/// What an agent does to a desktop, or says about its task. Points are screen pixels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Action {
    /// Left click.
    Click {
        /// Where.
        at: Point,
    },
    /// Left double click.
    LeftDouble {
        /// Where.
        at: Point,
    },
    /// Right click.
    RightSingle {
        /// Where.
        at: Point,
    },
    /// Move the pointer.
    Hover {
        /// Where to.
        at: Point,
    },
    /// Press the left button, move, release.
    Drag {
        /// Where the button goes down.
        from: Point,
        /// Where it comes up.
        to: Point,
    },
    /// Keys held together, in order, by canonical name (`ctrl`, `shift`, `enter`, `a`, `f2`).
    Hotkey {
        /// The keys.
        keys: Vec<String>,
    },
    /// One key pressed and released, by canonical name.
    Press {
        /// The key.
        key: String,
    },
    /// Text entered at the focus; a trailing newline submits.
    Type {
        /// The text, escapes already undone.
        content: String,
    },
    /// Turn the wheel.
    Scroll {
        /// Over which place; the pointer's own if absent.
        at: Option<Point>,
        /// Which way.
        direction: ScrollDirection,
    },
    /// Wait five seconds.
    Wait,
    /// The task is done.
    Finished {
        /// The agent's closing words, if any.
        content: String,
    },
    /// The agent declares the task infeasible.
    Fail,
    /// The agent asks for the user, which scores as `Fail`.
    CallUser,
}

impl Action {
    /// The grammar's name of every action.
    pub const NAMES: [&'static str; 13] = [
        "click",
        "left_double",
        "right_single",
        "hover",
        "drag",
        "hotkey",
        "press",
        "type",
        "scroll",
        "wait",
        "finished",
        "fail",
        "call_user",
    ];

    /// Whether the episode ends with this action.
    pub fn is_terminal(&self) -> bool {
        matches!(
            self,
            Action::Finished { .. } | Action::Fail | Action::CallUser
        )
    }

    /// The grammar's name of the action.
    pub fn name(&self) -> &'static str {
        match self {
            Action::Click { .. } => "click",
            Action::LeftDouble { .. } => "left_double",
            Action::RightSingle { .. } => "right_single",
            Action::Hover { .. } => "hover",
            Action::Drag { .. } => "drag",
            Action::Hotkey { .. } => "hotkey",
            Action::Press { .. } => "press",
            Action::Type { .. } => "type",
            Action::Scroll { .. } => "scroll",
            Action::Wait => "wait",
            Action::Finished { .. } => "finished",
            Action::Fail => "fail",
            Action::CallUser => "call_user",
        }
    }
}
