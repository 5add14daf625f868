//! One desktop: windows, keyboard focus, pointer, clipboard; what actions do to them and what
//! they look like.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::app::{App, Input};
use super::canvas::{Canvas, Ink, Rect};
use super::suite::words;
use super::theme::Theme;
use super::widget::{CELL_PX, Part, Widget, draw_widget};
use crate::types::{Action, Point, ScreenSize, Screenshot, ScrollDirection, Task};

/// Width of the lighter strip at the left edge, a landmark for the vision tower.
const STRIP_PX: i32 = 3;
/// Height of the dark bar at the bottom, the other landmark.
const BAR_PX: i32 = 8;

/// One window. Its content starts one cell below its place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// Its name in the state, unique on the desktop.
    pub key: String,
    /// Left edge of the content in logical pixels.
    pub x: i32,
    /// Top edge in logical pixels.
    pub y: i32,
    /// What runs in it.
    #[serde(flatten)]
    pub app: App,
}

impl Window {
    fn frame(&self) -> Rect {
        let (columns, rows) = self.app.size();
        Rect::new(
            self.x - 4,
            self.y + 5,
            columns * CELL_PX + 3,
            (rows + 1) * CELL_PX - 4,
        )
    }

    fn origin(&self) -> (i32, i32) {
        (self.x, self.y + CELL_PX)
    }
}

/// A desktop with its whole state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Desktop {
    /// Width in logical pixels.
    width_px: i32,
    /// Height in logical pixels.
    height_px: i32,
    /// Screen pixels of a logical pixel, per axis.
    scale: u32,
    theme: Theme,
    /// Back to front; the last one has the keyboard.
    windows: Vec<Window>,
    #[serde(default)]
    clipboard: String,
}

/// Something on the screen that can be clicked.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// What a click on it does, in the words of the expert's thoughts: `press bold`.
    pub phrase: String,
    /// Where to click, in screen pixels.
    pub center: Point,
}

/// Something that can be read off the screen: `Wifi is on`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// What it is about.
    pub subject: String,
    /// What holds of it: `on`, `off`, `here`, `missing`, and so on.
    pub value: String,
}

impl std::fmt::Display for Fact {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} is {}", self.subject, self.value)
    }
}

/// Why a task does not describe a desktop.
#[derive(Debug, thiserror::Error)]
pub enum DesktopError {
    /// No set-up step says what is on the desktop.
    #[error("its config has no step of type \"simulated\"; only simulated tasks run here")]
    NoStep,
    /// The step's parameters cannot be read.
    #[error("parameters of its \"simulated\" step: {0}")]
    Parameters(#[from] serde_json::Error),
    /// The screen is empty or too large.
    #[error("a screen of {width_px}x{height_px} logical pixels at scale {scale} is not possible")]
    Size {
        /// Width in logical pixels.
        width_px: i32,
        /// Height in logical pixels.
        height_px: i32,
        /// Screen pixels of a logical pixel.
        scale: u32,
    },
}

impl Desktop {
    /// A desktop of a size in logical pixels.
    pub(super) fn new(size_px: (i32, i32), scale: u32, theme: Theme, windows: Vec<Window>) -> Self {
        Self {
            width_px: size_px.0,
            height_px: size_px.1,
            scale,
            theme,
            windows,
            clipboard: String::new(),
        }
    }

    /// The desktop that a task starts from.
    pub fn from_task(task: &Task) -> Result<Self, DesktopError> {
        let step = task
            .config
            .iter()
            .find(|step| step.kind == "simulated")
            .ok_or(DesktopError::NoStep)?;
        let desktop: Desktop = serde_json::from_value(Value::Object(step.parameters.clone()))?;
        let possible = 1..=4096;
        if !possible.contains(&desktop.width_px)
            || !possible.contains(&desktop.height_px)
            || !(1..=8).contains(&desktop.scale)
        {
            return Err(DesktopError::Size {
                width_px: desktop.width_px,
                height_px: desktop.height_px,
                scale: desktop.scale,
            });
        }
        Ok(desktop)
    }

    /// The same desktop drawn larger or smaller, 1 to 8 screen pixels to a logical one.
    #[must_use]
    pub fn at_scale(self, scale: u32) -> Self {
        Self {
            scale: scale.clamp(1, 8),
            ..self
        }
    }

    /// Size of the screen in pixels.
    pub fn screen_size(&self) -> ScreenSize {
        ScreenSize {
            width: self.width_px as u32 * self.scale,
            height: self.height_px as u32 * self.scale,
        }
    }

    /// Draws the screen.
    pub fn render(&self) -> Screenshot {
        let palette = self.theme.palette();
        let mut canvas = Canvas::new(self.width_px, self.height_px, palette.wallpaper);
        canvas.fill(Rect::new(0, 0, STRIP_PX, self.height_px), palette.strip);
        let bar = Rect::new(0, self.height_px - BAR_PX, self.width_px, BAR_PX);
        canvas.fill(bar, palette.bar);
        for window in &self.windows {
            let frame = window.frame();
            canvas.panel(frame, palette.surface, palette.title);
            let title = Rect::new(frame.x, frame.y, frame.w, CELL_PX - 6);
            canvas.fill_round(title, palette.title);
            canvas.fill(Rect::new(title.x, title.y + 10, title.w, 12), palette.title);
            let ink = Ink::bold(palette.title_text);
            canvas.text_within(
                window.x + 7,
                window.y + 9,
                frame.w - 14,
                &window.app.title(),
                ink,
            );
            for widget in window.app.widgets(window.origin()) {
                draw_widget(&mut canvas, &widget, &palette);
            }
        }
        canvas.into_screenshot(self.scale)
    }

    /// Carries out one action. Terminal actions and waiting change nothing.
    pub fn apply(&mut self, action: &Action) {
        match action {
            Action::Click { at } => self.point(*at, Input::Click),
            Action::LeftDouble { at } => self.point(*at, Input::Double),
            Action::RightSingle { at } => self.point(*at, Input::Right),
            Action::Drag { from, to } => self.drag(*from, *to),
            Action::Hotkey { keys } => self.keys(&keys.join("+")),
            Action::Press { key } => self.keys(key),
            Action::Type { content } => self.tell(&Input::Text(content.clone())),
            Action::Scroll { direction, .. } => match direction {
                ScrollDirection::Down => self.tell(&Input::Scroll(1)),
                ScrollDirection::Up => self.tell(&Input::Scroll(-1)),
                ScrollDirection::Left | ScrollDirection::Right => {}
            },
            Action::Hover { .. }
            | Action::Wait
            | Action::Finished { .. }
            | Action::Fail
            | Action::CallUser => {}
        }
    }

    /// What evaluators read: per window its application's state.
    pub fn state(&self) -> Value {
        let windows: Map<String, Value> = self
            .windows
            .iter()
            .map(|window| (window.key.clone(), window.app.state()))
            .collect();
        Value::Object(windows)
    }

    /// Everything on the screen that can be clicked, back to front. What cannot be told apart
    /// in words, such as the two l of Hello, is left out.
    pub fn targets(&self) -> Vec<Target> {
        let all = self.all_targets();
        let alone = |target: &&Target| {
            let twins = all.iter().filter(|other| other.phrase == target.phrase);
            twins.count() == 1
        };
        all.iter().filter(alone).cloned().collect()
    }

    fn all_targets(&self) -> Vec<Target> {
        let mut targets = Vec::new();
        for window in &self.windows {
            for widget in window.app.widgets(window.origin()) {
                let Some((x, y)) = widget.target else {
                    continue;
                };
                let center = self.screen_point(x, y);
                if let (App::Files(_), Some(name)) =
                    (&window.app, widget.phrase.strip_prefix("select "))
                {
                    targets.push(Target {
                        phrase: format!("open {name}"),
                        center,
                    });
                }
                targets.push(Target {
                    phrase: widget.phrase,
                    center,
                });
            }
        }
        targets
    }

    /// What can be read off the screen, things that are missing included.
    pub fn facts(&self) -> Vec<Fact> {
        let mut facts = Vec::new();
        for window in &self.windows {
            let seen = window.app.facts();
            if seen.is_empty() {
                continue;
            }
            for label in words::vocabulary(&window.app) {
                if seen.iter().all(|(subject, _)| subject != label) {
                    facts.push(Fact {
                        subject: (*label).to_owned(),
                        value: "missing".to_owned(),
                    });
                }
            }
            facts.extend(
                seen.into_iter()
                    .map(|(subject, value)| Fact { subject, value }),
            );
        }
        facts
    }

    /// The windows, back to front.
    pub(super) fn windows(&self) -> &[Window] {
        &self.windows
    }

    /// What was copied last.
    pub(super) fn clipboard(&self) -> &str {
        &self.clipboard
    }

    /// Where the widget that carries `part` in a window is to be clicked.
    pub(super) fn target_of(&self, window: &Window, part: Part) -> Option<Point> {
        let widgets = window.app.widgets(window.origin());
        let widget = widgets.iter().rev().find(|widget| widget.part == part)?;
        let (x, y) = widget.target?;
        Some(self.screen_point(x, y))
    }

    fn screen_point(&self, x: i32, y: i32) -> Point {
        let scale = self.scale as f32;
        Point {
            x: x as f32 * scale,
            y: y as f32 * scale,
        }
    }

    fn logical(&self, at: Point) -> (i32, i32) {
        let scale = self.scale as f32;
        ((at.x / scale).floor() as i32, (at.y / scale).floor() as i32)
    }

    /// The window at a place and its part there.
    fn hit(&self, at: Point) -> Option<(usize, Part)> {
        let (x, y) = self.logical(at);
        let i = self
            .windows
            .iter()
            .rposition(|window| window.frame().contains(x, y))?;
        let window = &self.windows[i];
        if y < window.y + CELL_PX {
            return Some((i, Part::Title));
        }
        let widgets: Vec<Widget> = window.app.widgets(window.origin());
        let part = widgets
            .iter()
            .rev()
            .find(|widget| widget.rect.contains(x, y))
            .map_or(Part::Blank, |widget| widget.part);
        Some((i, part))
    }

    fn point(&mut self, at: Point, input: impl FnOnce(Part) -> Input) {
        if let Some((i, part)) = self.hit(at) {
            self.raise(i);
            self.tell(&input(part));
        }
    }

    fn drag(&mut self, from: Point, to: Point) {
        let Some((i, start)) = self.hit(from) else {
            return;
        };
        let end = self.hit(to).filter(|(j, _)| i == *j);
        self.raise(i);
        if let Some((_, end)) = end {
            self.tell(&Input::Drag(start, end));
        }
    }

    fn keys(&mut self, keys: &str) {
        self.tell(&Input::Keys(keys.to_lowercase()));
    }

    fn raise(&mut self, i: usize) {
        let window = self.windows.remove(i);
        self.windows.push(window);
    }

    fn tell(&mut self, input: &Input) {
        if let Some(window) = self.windows.last_mut() {
            window.app.handle(input, &mut self.clipboard);
        }
    }
}
