//! One desktop: windows, clipboard, shell; what they look like and what lies where. What
//! actions do to it is in `input`.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::app::App;
use super::canvas::{Canvas, Ink, Rect};
use super::shell::{Chrome, ChromeTarget, Shell};
use super::suite::words;
use super::theme::Theme;
use super::widget::{CELL_PX, Part, Widget, draw_widget};
use crate::types::{Point, ScreenSize, Screenshot, Task};

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
    /// Whether it is on the screen.
    #[serde(default, skip_serializing_if = "is_shown")]
    pub placement: Placement,
    /// What runs in it.
    #[serde(flatten)]
    pub app: App,
}

/// Whether a window is on the screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// It is.
    #[default]
    Shown,
    /// Only in the task bar, by its minimize button.
    Minimized,
    /// Only in the task bar, by its close button.
    Closed,
}

/// What serde skips: the usual placement.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_shown(placement: &Placement) -> bool {
    placement.is_shown()
}

impl Placement {
    pub(super) fn is_shown(self) -> bool {
        self == Placement::Shown
    }
}

impl Window {
    /// Its whole area; `menu_bar` says whether it has one.
    pub(super) fn frame(&self, menu_bar: bool) -> Rect {
        let (columns, rows) = self.app.size();
        Rect::new(
            self.x - 4,
            self.y + 5,
            columns * CELL_PX + 3,
            (rows + 1 + i32::from(menu_bar)) * CELL_PX - 4,
        )
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
    pub(super) windows: Vec<Window>,
    #[serde(default)]
    pub(super) clipboard: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) shell: Option<Shell>,
}

/// What lies at a place of the screen.
pub(super) enum Spot {
    /// A part of the shell.
    Chrome(Chrome),
    /// A part of the content of the window of this index.
    Content(usize, Part),
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
            shell: None,
        }
    }

    /// The same desktop with a shell.
    pub(super) fn with_shell(self) -> Self {
        Self {
            shell: Some(Shell::default()),
            ..self
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
        for (i, window) in self.windows.iter().enumerate() {
            if window.placement.is_shown() {
                self.draw_window(&mut canvas, i);
            }
        }
        self.draw_shell(&mut canvas, &palette);
        canvas.into_screenshot(self.scale)
    }

    /// What evaluators read: per window its application's state.
    pub fn state(&self) -> Value {
        let windows: Map<String, Value> = self
            .windows
            .iter()
            .map(|window| (window.key.clone(), window.app.state()))
            .collect();
        let mut state = windows;
        if self.shell.is_some() {
            state.insert("desk".to_owned(), self.desk_state());
        }
        Value::Object(state)
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
        for i in self.shown() {
            let window = &self.windows[i];
            for widget in window.app.widgets(self.origin(window)) {
                let Some((x, y)) = widget.target else {
                    continue;
                };
                let center = self.screen_point(x, y);
                if self.is_covered(i, center) {
                    continue;
                }
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
        targets.extend(self.chrome_targets());
        targets
    }

    /// What of the shell can be clicked and is on top.
    fn chrome_targets(&self) -> Vec<Target> {
        let windows = self.shown().into_iter().flat_map(|i| self.window_chrome(i));
        let named = self
            .chrome()
            .into_iter()
            .chain(windows)
            .filter(|target| !target.phrase.is_empty());
        let mut targets = Vec::new();
        for target in named {
            let (x, y) = target.center();
            let center = self.screen_point(x, y);
            let top = matches!(self.spot(center), Some(Spot::Chrome(top)) if top == target.chrome);
            if top {
                targets.push(Target {
                    phrase: target.phrase,
                    center,
                });
            }
        }
        targets
    }

    /// What can be read off the screen, things that are missing included.
    pub fn facts(&self) -> Vec<Fact> {
        let mut facts = Vec::new();
        // Where windows overlap, only the one in front is legible.
        let front = self.front().map(|i| &self.windows[i]);
        let seen = front.map(|window| (window, window.app.facts()));
        if let Some((window, seen)) = seen.filter(|(_, seen)| !seen.is_empty()) {
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

    /// The shell, if this desktop has one.
    pub(super) fn shell(&self) -> Option<&Shell> {
        self.shell.as_ref()
    }

    /// The shell, to be changed.
    pub(super) fn shell_mut(&mut self) -> Option<&mut Shell> {
        self.shell.as_mut()
    }

    /// Width and height in logical pixels.
    pub(super) fn size_px(&self) -> (i32, i32) {
        (self.width_px, self.height_px)
    }

    /// The window that has the keyboard, by index.
    pub(super) fn front(&self) -> Option<usize> {
        self.windows
            .iter()
            .rposition(|window| window.placement.is_shown())
    }

    /// Whether something of the shell lies at a place: then which.
    pub(super) fn chrome_at(&self, at: Point) -> Option<Chrome> {
        match self.spot(at) {
            Some(Spot::Chrome(chrome)) => Some(chrome),
            Some(Spot::Content(..)) | None => None,
        }
    }

    /// Where the widget that carries `part` in a window is to be clicked.
    pub(super) fn target_of(&self, window: &Window, part: Part) -> Option<Point> {
        let widgets = window.app.widgets(self.origin(window));
        let widget = widgets.iter().rev().find(|widget| widget.part == part)?;
        let (x, y) = widget.target?;
        Some(self.screen_point(x, y))
    }

    /// A place in logical pixels as the middle of its screen pixels.
    pub(super) fn screen_point(&self, x: i32, y: i32) -> Point {
        let scale = self.scale as f32;
        Point {
            x: x as f32 * scale,
            y: y as f32 * scale,
        }
    }

    /// A place in logical pixels. What is far off the screen stays off it, but near enough to be
    /// reckoned with.
    pub(super) fn logical(&self, at: Point) -> (i32, i32) {
        const FAR: i32 = 1 << 20;
        let scale = self.scale as f32;
        let pixel = |place: f32| ((place / scale).floor() as i32).clamp(-FAR, FAR);
        (pixel(at.x), pixel(at.y))
    }

    /// Left top corner of a window's content.
    fn origin(&self, window: &Window) -> (i32, i32) {
        let bars = 1 + i32::from(self.shell.is_some());
        (window.x, window.y + bars * CELL_PX)
    }

    /// Windows on the screen, back to front, by index.
    pub(super) fn shown(&self) -> Vec<usize> {
        let all = 0..self.windows.len();
        all.filter(|i| self.windows[*i].placement.is_shown())
            .collect()
    }

    fn draw_window(&self, canvas: &mut Canvas, i: usize) {
        let palette = self.theme.palette();
        let window = &self.windows[i];
        let frame = window.frame(self.shell.is_some());
        // Overlapping windows need an edge that dark title bars do not give.
        let (edge, buttons_px) = if self.shell.is_some() {
            (palette.border, 40)
        } else {
            (palette.title, 0)
        };
        canvas.panel(frame, palette.surface, edge);
        let title = Rect::new(frame.x, frame.y, frame.w, CELL_PX - 6);
        canvas.fill_round(title, palette.title);
        canvas.fill(Rect::new(title.x, title.y + 10, title.w, 12), palette.title);
        let ink = Ink::bold(palette.title_text);
        canvas.text_within(
            window.x + 7,
            window.y + 9,
            frame.w - 14 - buttons_px,
            &window.app.title(),
            ink,
        );
        self.draw_window_chrome(canvas, i, &palette);
        for widget in window.app.widgets(self.origin(window)) {
            draw_widget(canvas, &widget, &palette);
        }
    }

    /// What lies at a place, front to back.
    pub(super) fn spot(&self, at: Point) -> Option<Spot> {
        let (x, y) = self.logical(at);
        let holds = |target: &ChromeTarget| target.rect.contains(x, y);
        if let Some(target) = self.chrome().into_iter().find(holds) {
            return Some(Spot::Chrome(target.chrome));
        }
        let menu_bar = self.shell.is_some();
        let i = self
            .shown()
            .into_iter()
            .rfind(|i| self.windows[*i].frame(menu_bar).contains(x, y))?;
        if let Some(target) = self.window_chrome(i).into_iter().find(holds) {
            return Some(Spot::Chrome(target.chrome));
        }
        let window = &self.windows[i];
        let origin = self.origin(window);
        if y < origin.1 {
            return Some(Spot::Content(i, Part::Title));
        }
        let widgets: Vec<Widget> = window.app.widgets(origin);
        let part = widgets
            .iter()
            .rev()
            .find(|widget| widget.rect.contains(x, y))
            .map_or(Part::Blank, |widget| widget.part);
        Some(Spot::Content(i, part))
    }

    /// Whether something else lies over the content of a window at a place.
    fn is_covered(&self, i: usize, at: Point) -> bool {
        !matches!(self.spot(at), Some(Spot::Content(j, _)) if i == j)
    }
}
