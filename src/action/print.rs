//! Actions to a reply.

use crate::action::text::quote;
use crate::action::{Space, keys};
use crate::types::{Action, Point, ReplyFormat, ScrollDirection};

/// The reply that says `thought` and does `actions`. `parse_reply` gives both back: points up
/// to the rounding of `space`, the thought trimmed and with `Action:` in it broken up.
pub fn print_reply(thought: &str, actions: &[Action], space: &Space) -> String {
    let thought = thought.trim().replace("Action:", "Action :");
    let calls: Vec<String> = actions
        .iter()
        .map(|action| print_action(action, space))
        .collect();
    let calls = calls.join("\n\n");
    if thought.is_empty() {
        format!("Action: {calls}")
    } else {
        format!("Thought: {thought}\nAction: {calls}")
    }
}

fn print_action(action: &Action, space: &Space) -> String {
    let place = |point: &Point| format!("{}={}", place_name(space), print_place(*point, space));
    let arguments = match action {
        Action::Click { at }
        | Action::LeftDouble { at }
        | Action::RightSingle { at }
        | Action::Hover { at } => place(at),
        Action::Drag { from, to } => print_drag(*from, *to, space),
        Action::Hotkey { keys } => format!("key={}", quote(&keys::join(keys))),
        Action::Press { key } => {
            let keys = std::slice::from_ref(key);
            format!("key={}", quote(&keys::join(keys)))
        }
        Action::Type { content } => format!("content={}", quote(content)),
        Action::Scroll { at, direction } => {
            let place = at.as_ref().map(|at| place(at) + ", ");
            let direction = direction_name(*direction);
            format!("{}direction='{direction}'", place.unwrap_or_default())
        }
        Action::Finished { content } if !content.is_empty() => {
            format!("content={}", quote(content))
        }
        Action::Wait | Action::Finished { .. } | Action::Fail | Action::CallUser => String::new(),
    };
    format!("{}({arguments})", action.name())
}

fn print_drag(from: Point, to: Point, space: &Space) -> String {
    let (from, to) = (print_place(from, space), print_place(to, space));
    match space.format {
        ReplyFormat::Point => format!("start_point={from}, end_point={to}"),
        ReplyFormat::Absolute | ReplyFormat::Relative1000 => {
            format!("start_box={from}, end_box={to}")
        }
    }
}

fn place_name(space: &Space) -> &'static str {
    match space.format {
        ReplyFormat::Point => "point",
        ReplyFormat::Absolute | ReplyFormat::Relative1000 => "start_box",
    }
}

fn print_place(at: Point, space: &Space) -> String {
    let (x, y) = space.to_model(at);
    match (space.format, space.box_tokens) {
        (ReplyFormat::Point, _) => format!("'<point>{x} {y}</point>'"),
        (_, true) => format!("'<|box_start|>({x},{y})<|box_end|>'"),
        (_, false) => format!("'({x},{y})'"),
    }
}

fn direction_name(direction: ScrollDirection) -> &'static str {
    match direction {
        ScrollDirection::Up => "up",
        ScrollDirection::Down => "down",
        ScrollDirection::Left => "left",
        ScrollDirection::Right => "right",
    }
}
