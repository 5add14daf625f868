//! The expert: from any state the next thought and action towards a task's goal, and the
//! plausible mistakes that noisy demonstrations are made of. It reads the state, not pixels,
//! so it also recovers from mistakes: undoes, toggles back, cancels, selects anew.

mod compact;
mod full;

use rand::Rng;
use rand::seq::IndexedRandom;
use serde_json::Value;

use super::app::App;
use super::desktop::{Desktop, Window};
use super::goal::Goal;
use super::shell::Chrome;
use super::widget::Part;
use crate::types::{Action, Point, Task};

/// What the expert does next.
#[derive(Clone, Debug, PartialEq)]
pub struct Expert {
    /// Why, in few words.
    pub thought: String,
    /// What.
    pub action: Action,
}

/// The expert's next step on a task from the state the desktop is in.
pub fn next(desktop: &Desktop, task: &Task) -> Expert {
    let Some(goal) = Goal::of(task) else {
        return Expert {
            thought: format!("{} is missing", missing_thing(&task.instruction)),
            action: Action::Fail,
        };
    };
    let mut windows = (0..desktop.windows().len()).rev();
    let step = windows.find_map(|i| {
        let window = &desktop.windows()[i];
        let step = Hand { desktop, window }.next(&goal)?;
        Some(
            desktop
                .shell()
                .map_or_else(|| step.clone(), |_| reach(desktop, i, &step)),
        )
    });
    step.or_else(|| full::arrange(desktop, &goal))
        .unwrap_or_else(|| Expert {
            thought: "done".to_owned(),
            action: Action::Finished {
                content: String::new(),
            },
        })
}

/// What comes before a step at a window that is not in front, or behind an open menu.
fn reach(desktop: &Desktop, i: usize, step_there: &Expert) -> Expert {
    let is_front = desktop.front() == Some(i);
    let menu = desktop.shell().is_some_and(|shell| shell.popup.is_some());
    if menu {
        let on_menu = match &step_there.action {
            Action::Click { at } => {
                matches!(desktop.chrome_at(*at), Some(Chrome::PopupItem(_)))
            }
            _ => false,
        };
        if is_front && on_menu {
            return step_there.clone();
        }
        return step("close the menu", hotkey(&["esc"]));
    }
    if is_front {
        step_there.clone()
    } else {
        full::show(desktop, i)
    }
}

/// A wrong but plausible action: another target, or a key that does something.
pub fn plausible_mistake(desktop: &Desktop, rng: &mut impl Rng) -> Action {
    let targets = desktop.targets();
    match targets.choose(rng) {
        Some(target) if rng.random_bool(0.85) => Action::Click { at: target.center },
        Some(_) | None => {
            let keys: &[&[&str]] = &[&["ctrl", "a"], &["ctrl", "z"], &["enter"], &["esc"]];
            let keys = keys.choose(rng).expect("four hotkeys are listed");
            hotkey(keys)
        }
    }
}

/// The word of an infeasible instruction that names what is not there.
fn missing_thing(instruction: &str) -> &str {
    let mut words = instruction.split(' ').skip(1);
    match words.next() {
        Some("the") => words.next().unwrap_or("it"),
        Some(word) => word,
        None => "it",
    }
}

fn hotkey(keys: &[&str]) -> Action {
    Action::Hotkey {
        keys: keys.iter().map(|key| (*key).to_owned()).collect(),
    }
}

fn step(thought: impl Into<String>, action: Action) -> Expert {
    Expert {
        thought: thought.into(),
        action,
    }
}

fn type_text(text: &str) -> Expert {
    let content = text.to_owned();
    step(format!("type {text}"), Action::Type { content })
}

/// The expert at one window.
struct Hand<'a> {
    desktop: &'a Desktop,
    window: &'a Window,
}

impl Hand<'_> {
    fn next(&self, goal: &Goal) -> Option<Expert> {
        match &self.window.app {
            App::Editor(app) => self.edit(app, goal),
            App::Settings(app) => self.switch(app, goal),
            App::Themes(app) => self.choose(app, goal),
            App::Files(app) => self.file(app, goal),
            App::Dialog(app) => self.answer(app, goal),
            App::Form(app) => self.fill(app, goal),
            App::Calculator(app) => self.calculate(app, goal),
            App::Mail(app) => self.sort_mail(app, goal),
            App::Sheet(app) => self.tabulate(app, goal),
            App::Calendar(app) => self.plan(app, goal),
            App::Player(app) => self.play(app, goal),
            App::Terminal(app) => self.command(app, goal),
        }
    }

    fn wanted<'g>(&self, goal: &'g Goal, path: &str) -> Option<&'g Value> {
        goal.wanted(&format!("/{}/{path}", self.window.key))
    }

    fn place(&self, part: Part) -> Option<Point> {
        self.desktop.target_of(self.window, part)
    }

    fn click(&self, thought: impl Into<String>, part: Part) -> Option<Expert> {
        let at = self.place(part)?;
        Some(step(thought, Action::Click { at }))
    }
}
