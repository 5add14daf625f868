//! Marks on a screenshot that show people where an action went. No policy ever sees them.

use crate::types::{Action, Point, ScreenSize, Screenshot};

/// Red, readable on light and dark, with a white rim for red surroundings.
const INK: [u8; 3] = [230, 30, 40];
const RIM: [u8; 3] = [255, 255, 255];

/// The screenshot with a ring and a cross around `at`.
pub fn draw_click(screenshot: &Screenshot, at: Point) -> Screenshot {
    draw(screenshot, |canvas| canvas.ring(at))
}

/// The screenshot with a line from a small dot at `from` to a ring at `to`.
pub fn draw_drag(screenshot: &Screenshot, from: Point, to: Point) -> Screenshot {
    draw(screenshot, |canvas| {
        canvas.line(from, to);
        canvas.ring(to);
    })
}

/// The screenshot with the place of `action` marked; unchanged if it has none.
pub fn draw_action(screenshot: &Screenshot, action: &Action) -> Screenshot {
    match action {
        Action::Click { at }
        | Action::LeftDouble { at }
        | Action::RightSingle { at }
        | Action::Hover { at }
        | Action::Scroll { at: Some(at), .. } => draw_click(screenshot, *at),
        Action::Drag { from, to } => draw_drag(screenshot, *from, *to),
        Action::Scroll { at: None, .. }
        | Action::Hotkey { .. }
        | Action::Press { .. }
        | Action::Type { .. }
        | Action::Wait
        | Action::Finished { .. }
        | Action::Fail
        | Action::CallUser => screenshot.clone(),
    }
}

fn draw(screenshot: &Screenshot, paint: impl FnOnce(&mut Canvas)) -> Screenshot {
    let size = screenshot.size();
    let mut canvas = Canvas {
        size,
        // A mark must still be seen when the picture is shown an eighth of its size.
        unit: (size.height as f32 / 168.0).max(1.0),
        rgb: screenshot.rgb().to_vec(),
    };
    paint(&mut canvas);
    Screenshot::new(size, canvas.rgb)
}

struct Canvas {
    size: ScreenSize,
    unit: f32,
    rgb: Vec<u8>,
}

impl Canvas {
    fn set(&mut self, x: i64, y: i64, color: [u8; 3]) {
        let (width, height) = (i64::from(self.size.width), i64::from(self.size.height));
        if (0..width).contains(&x) && (0..height).contains(&y) {
            let start = (y * width + x) as usize * 3;
            self.rgb[start..start + 3].copy_from_slice(&color);
        }
    }

    /// A ring of radius 6 units with a gap-free rim, and a cross of 2 units in its middle.
    fn ring(&mut self, at: Point) {
        let (cx, cy) = nearest_pixel(at.x, at.y);
        let reach = (9.0 * self.unit).ceil() as i64;
        for dy in -reach..=reach {
            for dx in -reach..=reach {
                let from_ring = ((dx as f32).hypot(dy as f32) / self.unit - 6.0).abs();
                let on_cross = (dx == 0 || dy == 0) && from_ring > 4.0 && from_ring <= 6.0;
                if from_ring <= 0.8 || on_cross {
                    self.set(cx + dx, cy + dy, INK);
                } else if from_ring <= 1.8 {
                    self.set(cx + dx, cy + dy, RIM);
                }
            }
        }
    }

    /// A line with a rim; its thick start shows where the button went down.
    fn line(&mut self, from: Point, to: Point) {
        let length = (to.x - from.x).hypot(to.y - from.y);
        // Half a pixel a stamp leaves no gaps; the bound keeps absurd points harmless.
        let stamps = (length * 2.0).clamp(1.0, 20_000.0) as u32;
        for (extra, color) in [(1.0, RIM), (0.0, INK)] {
            for stamp in 0..=stamps {
                let along = stamp as f32 / stamps as f32;
                let x = from.x + (to.x - from.x) * along;
                let y = from.y + (to.y - from.y) * along;
                let radius = if stamp == 0 { 2.5 } else { 0.7 };
                self.dot(x, y, (radius + extra) * self.unit, color);
            }
        }
    }

    fn dot(&mut self, x: f32, y: f32, radius: f32, color: [u8; 3]) {
        let reach = radius.ceil() as i64;
        let (cx, cy) = nearest_pixel(x, y);
        for dy in -reach..=reach {
            for dx in -reach..=reach {
                if (dx as f32).hypot(dy as f32) <= radius {
                    self.set(cx + dx, cy + dy, color);
                }
            }
        }
    }
}

/// Far outside any screen stays far outside, without overflow.
fn nearest_pixel(x: f32, y: f32) -> (i64, i64) {
    let near = |value: f32| value.clamp(-1e6, 1e6).round() as i64;
    (near(x), near(y))
}
