//! Where an action hit the screen, drawn into the dots so that it survives every depth.

use super::Raster;
use crate::types::{Action, Point};

/// Color of the mark's lines; magenta, which desktops rarely have.
const LINE: [u8; 3] = [255, 0, 140];
/// Color around it, so that it is seen on anything.
const HALO: [u8; 3] = [255, 255, 255];

/// Height of a cell over its width.
const CELL_ASPECT: f32 = 2.0;

/// Radius of the ring in half cells.
const RING: f32 = 4.0;

/// What to mark on a screenshot.
#[derive(Clone, Debug, PartialEq)]
pub enum Mark {
    /// A place that was clicked or pointed at.
    Point(Point),
    /// A drag.
    Line(Point, Point),
    /// A region, by two corners.
    Region(Point, Point),
    /// Several, later ones above earlier ones.
    All(Vec<Mark>),
}

impl Mark {
    /// The mark of an action, if it has a place.
    pub fn of(action: &Action) -> Option<Self> {
        match action {
            Action::Click { at }
            | Action::LeftDouble { at }
            | Action::RightSingle { at }
            | Action::Hover { at }
            | Action::Scroll { at: Some(at), .. } => Some(Mark::Point(*at)),
            Action::Drag { from, to } => Some(Mark::Line(*from, *to)),
            Action::Scroll { at: None, .. }
            | Action::Hotkey { .. }
            | Action::Press { .. }
            | Action::Type { .. }
            | Action::Wait
            | Action::Finished { .. }
            | Action::Fail
            | Action::CallUser => None,
        }
    }

    /// A copy of `raster` with the mark on it.
    pub fn drawn_on(&self, raster: &Raster) -> Raster {
        let mut drawn = raster.clone();
        self.draw(&mut drawn);
        drawn
    }

    fn draw(&self, raster: &mut Raster) {
        match self {
            Mark::Point(at) => draw_ring(raster, *at),
            Mark::Line(from, to) => {
                draw_line(raster, *from, *to);
                draw_ring(raster, *to);
            }
            Mark::Region(from, to) => draw_box(raster, *from, *to),
            Mark::All(marks) => marks.iter().for_each(|mark| mark.draw(raster)),
        }
    }
}

/// Screen pixels to dots.
fn place(raster: &Raster, at: Point) -> (f32, f32) {
    let x = at.x / raster.source.width as f32 * raster.width() as f32;
    let y = at.y / raster.source.height as f32 * raster.height() as f32;
    (x, y)
}

fn draw_ring(raster: &mut Raster, at: Point) {
    let (cx, cy) = place(raster, at);
    let (width, height) = (raster.width(), raster.height());
    let across = width as f32 / f32::from(raster.columns.max(1));
    let down = height as f32 / f32::from(raster.rows.max(1));
    // Width of half a cell, and height of a dot over its width.
    let unit = (across / 2.0).max(0.5);
    let aspect = CELL_ASPECT * across / down.max(1.0);
    // On small pictures a smaller ring, or it hides what was clicked.
    let radius = (width as f32 / unit / 22.0).clamp(1.5, RING);
    for y in 0..height {
        for x in 0..width {
            let dx = x as f32 + 0.5 - cx;
            let dy = (y as f32 + 0.5 - cy) * aspect;
            let distance = dx.hypot(dy) / unit;
            let dot = &mut raster.dots[y * width + x];
            if distance < 1.2 || (distance - radius).abs() < 0.8 {
                *dot = LINE;
            } else if distance > radius && distance < radius + 1.7 {
                *dot = HALO;
            }
        }
    }
}

/// The four edges; at the far ones the last dots within, so that none falls off the picture.
fn draw_box(raster: &mut Raster, from: Point, to: Point) {
    let dot = |size: u32, dots: usize| size as f32 / dots.max(1) as f32;
    let right = to.x - dot(raster.source.width, raster.width()) / 2.0;
    let below = to.y - dot(raster.source.height, raster.height()) / 2.0;
    let corners = [
        from,
        Point { x: right, ..from },
        Point { x: right, y: below },
        Point { y: below, ..from },
    ];
    for (place, corner) in corners.iter().enumerate() {
        draw_line(raster, *corner, corners[(place + 1) % 4]);
    }
}

fn draw_line(raster: &mut Raster, from: Point, to: Point) {
    let ((x0, y0), (x1, y1)) = (place(raster, from), place(raster, to));
    let (width, height) = (raster.width(), raster.height());
    let points = ((x1 - x0).abs().max((y1 - y0).abs()).ceil() as usize).clamp(1, 1000);
    for point in 0..=points {
        let t = point as f32 / points as f32;
        let (x, y) = (x0 + t * (x1 - x0), y0 + t * (y1 - y0));
        if x >= 0.0 && y >= 0.0 && (x as usize) < width && (y as usize) < height {
            raster.dots[y as usize * width + x as usize] = LINE;
        }
    }
}
