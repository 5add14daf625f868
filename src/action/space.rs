//! The model's coordinates and the screen's.

use crate::types::{Point, ReplyFormat, ScreenSize};

/// What coordinates in a reply mean, and how to write them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// How the model writes places.
    pub format: ReplyFormat,
    /// Size of the picture the model sees, pixels after the resize.
    pub model_size: ScreenSize,
    /// Size of the screen, pixels.
    pub screen: ScreenSize,
    /// Written coordinates are multiples of this; 1 is every one. Reading takes any.
    pub snap: u32,
    /// Whether places are written between `<|box_start|>` and `<|box_end|>`. Reading takes
    /// both.
    pub box_tokens: bool,
}

impl Space {
    /// Largest coordinates of the model's space, width and height.
    fn extent(&self) -> (f64, f64) {
        match self.format {
            ReplyFormat::Relative1000 => (1000.0, 1000.0),
            ReplyFormat::Absolute | ReplyFormat::Point => (
                f64::from(self.model_size.width.max(1)),
                f64::from(self.model_size.height.max(1)),
            ),
        }
    }

    /// The screen pixel that the model's `(x, y)` means, and whether it had to be clamped to
    /// the screen. Rounded to thousandths of a pixel, as the reference does.
    ///
    /// Source: ARPO@7489ae3 `gui_agent.py` `parsing_response_to_pyautogui_code`.
    /// Departs: places outside the picture are clamped and flagged.
    pub(super) fn to_screen(self, x: f64, y: f64) -> (Point, bool) {
        let (across, down) = self.extent();
        let outside = |value: f64, extent: f64| !(0.0..=extent).contains(&value);
        let point = Point {
            x: scale(x, across, self.screen.width),
            y: scale(y, down, self.screen.height),
        };
        (point, outside(x, across) || outside(y, down))
    }

    /// The model's coordinates of a screen pixel, as written: whole, snapped, inside.
    pub fn to_model(self, at: Point) -> (u32, u32) {
        let (across, down) = self.extent();
        (
            self.snapped(at.x, self.screen.width, across),
            self.snapped(at.y, self.screen.height, down),
        )
    }

    fn snapped(&self, value: f32, screen: u32, extent: f64) -> u32 {
        let snap = f64::from(self.snap.max(1));
        let exact = f64::from(value) * extent / f64::from(screen.max(1));
        let last = ((extent - 1.0) / snap).floor() * snap;
        ((exact / snap).round() * snap).clamp(0.0, last) as u32
    }
}

fn scale(value: f64, extent: f64, screen: u32) -> f32 {
    let last = f64::from(screen.max(1) - 1);
    let exact = value / extent * f64::from(screen);
    // Thousandths beyond 2^53 do not exist, and the clamp follows anyway.
    let rounded = (exact.clamp(-1e9, 1e9) * 1000.0).round_ties_even() / 1000.0;
    rounded.clamp(0.0, last) as f32
}
