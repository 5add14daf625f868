//! Lines over iterations in braille dots, two by four a cell; no axis but numbers at its ends.

use ratatui::layout::{Position, Rect};

use crate::tui::text::{pad_left, width};
use crate::tui::theme::{ColorDepth, Role};
use crate::tui::train::nice_top;

use super::Sketch;

/// Cells of the numbers on the left.
const LABELS: u16 = 6;

/// How a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stroke {
    /// Points joined.
    Line,
    /// Points alone, so that it differs without color too.
    Points,
    /// Points joined where color tells it apart, else points alone.
    Faint,
}

/// Values of one figure, the first at iteration `Plot::first`.
pub(super) struct Series {
    pub(super) values: Vec<f64>,
    pub(super) role: Role,
    pub(super) stroke: Stroke,
}

/// What is plotted; later series lie above earlier ones.
pub(super) struct Plot {
    pub(super) series: Vec<Series>,
    /// Iteration of the left edge.
    pub(super) first: u64,
    /// Iterations from edge to edge.
    pub(super) span: usize,
    /// Top of the axis, if known; its bottom is 0 unless values are below.
    pub(super) top: Option<f64>,
    /// How numbers on the axis are written.
    pub(super) format: fn(f64) -> String,
    /// Whether the axis is logarithmic; values that are not above 0 are left out then.
    pub(super) is_log: bool,
    /// The cursor, counted from the left edge.
    pub(super) cursor: Option<usize>,
    /// Letters on the axis, counted from the left edge.
    pub(super) marks: Vec<(usize, char)>,
}

impl Default for Plot {
    fn default() -> Self {
        Self {
            series: Vec::new(),
            first: 1,
            span: 0,
            top: None,
            format: crate::tui::figures::short,
            is_log: false,
            cursor: None,
            marks: Vec::new(),
        }
    }
}

/// Where values lie between the bottom of an axis and its top.
struct Scale {
    bottom: f64,
    top: f64,
    is_log: bool,
}

impl Scale {
    fn of(plot: &Plot) -> Self {
        let values = || {
            let all = plot.series.iter().flat_map(|series| &series.values);
            all.copied().filter(|value| value.is_finite())
        };
        let lowest_positive = values()
            .filter(|value| *value > 0.0)
            .fold(f64::INFINITY, f64::min);
        let highest = values().fold(0.0, f64::max);
        if plot.is_log && lowest_positive.is_finite() {
            let bottom = 10_f64.powf(lowest_positive.log10().floor());
            let top = 10_f64.powf(highest.log10().ceil()).max(10.0 * bottom);
            return Self {
                bottom,
                top,
                is_log: true,
            };
        }
        let lowest = values().fold(0.0, f64::min);
        Self {
            bottom: if lowest < 0.0 {
                -nice_top(-lowest)
            } else {
                0.0
            },
            top: plot.top.unwrap_or_else(|| nice_top(highest)),
            is_log: false,
        }
    }

    /// 0 at the bottom, 1 at the top; nothing for what has no place.
    fn part(&self, value: f64) -> Option<f64> {
        if !value.is_finite() || self.is_log && value <= 0.0 {
            return None;
        }
        let part = if self.is_log {
            (value / self.bottom).log10() / (self.top / self.bottom).log10()
        } else {
            (value - self.bottom) / (self.top - self.bottom)
        };
        Some(part.clamp(0.0, 1.0))
    }

    fn middle(&self) -> f64 {
        if self.is_log {
            (self.top * self.bottom).sqrt()
        } else {
            f64::midpoint(self.top, self.bottom)
        }
    }
}

/// Bits of braille dots by column and row within a cell.
const DOTS: [[u8; 4]; 2] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];

pub(super) fn draw(sketch: &mut Sketch<'_>, area: Rect, plot: &Plot) {
    if area.width <= LABELS + 2 || area.height < 3 {
        return;
    }
    let body = Rect {
        x: area.x + LABELS,
        width: area.width - LABELS,
        height: area.height - 1,
        ..area
    };
    let scale = Scale::of(plot);
    draw_labels(sketch, area, body, plot, &scale);
    let dots_across = f64::from(body.width) * 2.0 - 1.0;
    let dots_down = f64::from(body.height) * 4.0 - 1.0;
    let last = (plot.span.max(2) - 1) as f64;
    let across = |place: usize| (place as f64 / last * dots_across).round() as i32;
    let has_color = sketch.app.ui.theme.depth() != ColorDepth::None;
    for series in &plot.series {
        let is_joined = match series.stroke {
            Stroke::Line => true,
            Stroke::Points => false,
            Stroke::Faint => has_color,
        };
        let mut before: Option<(i32, i32)> = None;
        for (place, value) in series.values.iter().enumerate() {
            let here = scale.part(*value).map(|part| {
                let y = (1.0 - part) * dots_down;
                (across(place), y.round() as i32)
            });
            if let Some(here) = here {
                let from = before.filter(|_| is_joined).unwrap_or(here);
                draw_line(sketch, body, from, here, series.role);
            }
            before = here;
        }
    }
    if let Some(cursor) = plot.cursor.filter(|cursor| *cursor < plot.span.max(2)) {
        draw_cursor(sketch, body, across(cursor));
    }
    let axis = Rect {
        y: area.bottom() - 1,
        height: 1,
        ..body
    };
    for (place, letter) in &plot.marks {
        let column = (across(*place) / 2) as u16;
        sketch.put(axis, column, 0, &letter.to_string(), Role::Warning);
    }
}

/// A line from top to bottom where nothing else is drawn.
fn draw_cursor(sketch: &mut Sketch<'_>, body: Rect, x: i32) {
    let style = sketch.style(Role::Focus);
    let column = body.x + (x / 2) as u16;
    for y in body.top()..body.bottom() {
        let cell = sketch.buffer.cell_mut(Position::new(column, y));
        if let Some(cell) = cell {
            if cell.symbol() == " " {
                cell.set_symbol("│");
            }
            cell.set_style(style);
        }
    }
}

fn draw_labels(sketch: &mut Sketch<'_>, area: Rect, body: Rect, plot: &Plot, scale: &Scale) {
    // A long number takes the gap to the curve before it is cut.
    let label = |value: f64| {
        let text = (plot.format)(value);
        let cells = usize::from(LABELS);
        pad_left(&text, width(&text).clamp(cells - 1, cells))
    };
    sketch.put(area, 0, 0, &label(scale.top), Role::Muted);
    if body.height >= 5 {
        let middle = label(scale.middle());
        sketch.put(area, 0, (body.height - 1) / 2, &middle, Role::Muted);
    }
    let bottom = label(scale.bottom);
    sketch.put(area, 0, body.height - 1, &bottom, Role::Muted);
    let axis = Rect {
        y: area.bottom() - 1,
        height: 1,
        ..body
    };
    let line = "─".repeat(usize::from(axis.width));
    sketch.put(axis, 0, 0, &line, Role::Frame);
    let last = plot.first + plot.span.max(1) as u64 - 1;
    sketch.put(axis, 0, 0, &format!("{} ", plot.first), Role::Muted);
    sketch.put_right(axis, 0, &[(format!(" {last}"), Role::Muted)]);
}

/// Bresenham's line.
fn draw_line(sketch: &mut Sketch<'_>, body: Rect, from: (i32, i32), to: (i32, i32), role: Role) {
    let (dx, dy) = ((to.0 - from.0).abs(), -(to.1 - from.1).abs());
    let (sx, sy) = ((to.0 - from.0).signum(), (to.1 - from.1).signum());
    let (mut x, mut y) = from;
    let mut error = dx + dy;
    loop {
        draw_dot(sketch, body, x, y, role);
        if (x, y) == to {
            return;
        }
        let doubled = 2 * error;
        if doubled >= dy {
            error += dy;
            x += sx;
        }
        if doubled <= dx {
            error += dx;
            y += sy;
        }
    }
}

fn draw_dot(sketch: &mut Sketch<'_>, body: Rect, x: i32, y: i32, role: Role) {
    let style = sketch.style(role);
    let place = Position::new(body.x + (x / 2) as u16, body.y + (y / 4) as u16);
    if !body.contains(place) {
        return;
    }
    if let Some(cell) = sketch.buffer.cell_mut(place) {
        let old = cell.symbol().chars().next().unwrap_or(' ');
        let bits = match u32::from(old) {
            code @ 0x2800..=0x28ff => (code - 0x2800) as u8,
            _ => 0,
        };
        let bits = bits | DOTS[(x % 2) as usize][(y % 4) as usize];
        let symbol = char::from_u32(0x2800 + u32::from(bits)).unwrap_or(' ');
        cell.set_char(symbol).set_style(style);
    }
}
